//! Addresses of one host at an edge.
//!
//! A host may have several: more than one IPv4 address, and IPv6 addresses. Each is learned from
//! the host's ARP or neighbour discovery, and each is probed. A host that answers for some of its
//! addresses and not for one of them has given that one up.
//!
//! The addresses are ordered by last use. A probe queries the least recently used one. If it is not
//! answered, the next probe queries the newest, so a host is not removed because of an address that
//! it no longer has. An address with the maximum number of unanswered probes is removed, unless it
//! is the last.

use alloc::vec::Vec;
use axon_link::config::IPS_PER_HOST_MAX;
use core::net::{IpAddr, Ipv4Addr};

/// Addresses of a host, most recently used last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses(Vec<Address>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Address {
    ip: IpAddr,
    /// Number of consecutive unanswered probes of this address.
    unanswered: u32,
}

impl Addresses {
    /// Returns the addresses, most recently used last.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = IpAddr> {
        self.0.iter().map(|address| address.ip)
    }

    /// Returns whether there are no addresses.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether the host has this address.
    pub(crate) fn contains(&self, ip: IpAddr) -> bool {
        self.iter().any(|own| own == ip)
    }

    /// Returns the most recently used address.
    pub(crate) fn newest(&self) -> Option<IpAddr> {
        self.iter().next_back()
    }

    /// Returns the most recently used IPv4 address.
    pub fn ipv4(&self) -> Option<Ipv4Addr> {
        self.iter().rev().find_map(|ip| match ip {
            IpAddr::V4(ip) => Some(ip),
            IpAddr::V6(_) => None,
        })
    }

    /// Returns whether another address would replace the oldest.
    pub(super) fn is_full(&self) -> bool {
        self.0.len() >= IPS_PER_HOST_MAX
    }

    /// Records the use of an address. If there are too many, the oldest is removed.
    pub(super) fn used(&mut self, ip: IpAddr) {
        self.0.retain(|own| own.ip != ip);
        if self.is_full() {
            self.0.remove(0);
        }
        self.0.push(Address { ip, unanswered: 0 });
    }

    /// Removes an address.
    pub(super) fn forget(&mut self, ip: IpAddr) {
        self.0.retain(|own| own.ip != ip);
    }

    /// Returns the address to probe, for a host with `unanswered` unanswered probes. Removes an
    /// address with `probes_max` unanswered probes of its own.
    pub(super) fn next_probe(&mut self, unanswered: u32, probes_max: u32) -> Option<IpAddr> {
        if unanswered == 0 && self.0.len() > 1 {
            let oldest = self.0.first_mut()?;
            if oldest.unanswered < probes_max {
                oldest.unanswered += 1;
                return Some(oldest.ip);
            }
            self.0.remove(0);
        }
        self.newest()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, SERVER, arp_request, arps, mac};
    use super::*;
    use crate::effect::Effect;
    use axon_wire::message::Item;
    use axon_wire::{Span, host_frame};

    fn ip(last: u8) -> IpAddr {
        Ipv4Addr::new(10, 0, 0, last).into()
    }

    #[test]
    fn an_address_that_is_given_up_is_removed_and_the_others_stay() {
        let mut own = Addresses::default();
        [1, 2, 3].into_iter().for_each(|last| own.used(ip(last)));
        // The host no longer has address 1. Every second probe queries another one.
        let mut unanswered = 0;
        let mut asked = Vec::new();
        for _ in 0..8 {
            let probed = own.next_probe(unanswered, 3).unwrap();
            asked.push(probed);
            unanswered += 1;
            if probed != ip(1) {
                own.used(probed);
                unanswered = 0;
            }
            assert!(unanswered < 2, "it is alive");
        }
        assert_eq!(asked, [1, 3, 1, 3, 1, 3, 3, 2].map(ip));
        assert_eq!(own.iter().collect::<Vec<_>>(), [3, 2].map(ip));
    }

    #[test]
    fn the_last_address_stays_however_silent_the_host_is_and_the_oldest_of_many_goes() {
        let mut own = Addresses::default();
        assert_eq!((own.next_probe(0, 3), own.newest()), (None, None));
        own.used(ip(1));
        for unanswered in 0..9 {
            assert_eq!(own.next_probe(unanswered, 3), Some(ip(1)));
        }
        (2..100).for_each(|last| own.used(ip(last)));
        assert_eq!(own.iter().count(), IPS_PER_HOST_MAX);
        assert_eq!((own.contains(ip(1)), own.ipv4()), (false, Some(Ipv4Addr::new(10, 0, 0, 99))));
    }
    /// Returns the addresses of host 1 that these effects report.
    fn reported(effects: &[Effect]) -> Vec<IpAddr> {
        let ips = |effect: &Effect| match effect {
            Effect::Report(Item::HostSeen { ips, .. }) => Some(ips.clone()),
            _ => None,
        };
        effects.iter().filter_map(ips).flatten().collect()
    }

    #[test]
    fn a_host_has_two_addresses_at_once_and_both_are_reported_and_probed() {
        let mut bench = Bench::new();
        let says = |last| {
            let address = Ipv4Addr::new(10, 0, 0, last);
            host_frame::reply(mac(1), address, SERVER.mac, SERVER.ip)
        };
        assert_eq!(reported(&bench.frame(0, &says(1))), [ip(1)]);
        assert_eq!(reported(&bench.frame(0, &says(51))), [ip(51)], "only what is new");
        assert!(reported(&bench.frame(0, &says(1))).is_empty());
        bench.frame(0, &arp_request(2, 2));
        assert_eq!(bench.frame(0, &arp_request(2, 51)), [], "it has heard that itself");
        let mut probed = Vec::new();
        for _ in 0..4 {
            for (_, arp) in arps(&bench.pass(Span::from_secs(5))) {
                if arp.target_ip != Ipv4Addr::new(10, 0, 0, 2) {
                    probed.push(arp.target_ip.octets()[3]);
                }
                let last = arp.target_ip.octets()[3];
                let from = if last == 2 { mac(2) } else { mac(1) };
                let answer = host_frame::reply(from, arp.target_ip, SERVER.mac, SERVER.ip);
                bench.frame(0, &answer);
            }
        }
        assert_eq!(probed, [51, 1, 51, 1], "in turn");
        bench.controller(None);
        let again = bench.controller(Some(axon_wire::Incarnation {
            number: 6,
            ..super::super::testing::CONTROLLER
        }));
        assert_eq!(reported(&again)[..2], [51, 1].map(ip), "a new controller has none of them");
        assert_eq!(bench.port(0, None).len(), 4, "two notes, and two hosts that are gone");
        assert_eq!(bench.edge.plain().hosts().count(), 0);
    }
}
