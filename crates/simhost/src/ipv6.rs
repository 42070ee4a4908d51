//! A host's IPv6 addresses: assignment and duplicate address detection.
//!
//! A host (RFC 4862) has a link-local address made from its MAC, its fixed address if there is one,
//! and an address of each prefix that a router advertises. It probes each address before use. If
//! another host answers, or probes the same address at the same time, the address stays unused;
//! otherwise it is valid one interval later. Then the host solicits routers, at most three times,
//! four intervals apart (RFC 4861 clause 10). A silent host uses its addresses without probing, as
//! Linux does with `nodad`.
//!
//! The stack keeps no state for this: it answers solicitations for the addresses that it is given.

use crate::nic::Nic;
use axon_wire::constants::ethertype::IPV6;
use axon_wire::nd::{self, Nd};
use axon_wire::{MacAddr, Span, Time, host_frame, router};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    Icmpv6Packet, Icmpv6Repr, IpProtocol, Ipv6Packet, NdiscPrefixInfoFlags, NdiscRepr,
};
use std::net::Ipv6Addr;

/// Maximum number of addresses of a host.
pub(crate) const ADDRESSES_MAX: usize = 3;
/// Number of router solicitations (RFC 4861 clause 10, MAX_RTR_SOLICITATIONS).
const SOLICITATIONS: u32 = 3;
/// Intervals between router solicitations (RTR_SOLICITATION_INTERVAL, of one second each).
const SOLICITATION_INTERVALS: u64 = 4;
/// Prefix length of a link, in bits.
const LINK_BITS: u8 = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not yet probed, for want of carrier.
    New,
    /// Valid from this time, unless a duplicate is found.
    Tentative(Time),
    Valid,
    /// Used by another host.
    Duplicate,
}

/// Addresses of a host.
#[derive(Debug)]
pub(crate) struct Ipv6 {
    mac: MacAddr,
    interval: Span,
    /// True if addresses are used without probing.
    silent: bool,
    addresses: Vec<(Ipv6Addr, State)>,
    /// Time of the next router solicitation, and the number left.
    solicit: Option<(Time, u32)>,
}

impl Ipv6 {
    /// Returns the state of a host without carrier. `interval` separates probes and solicitations.
    pub(crate) fn new(mac: MacAddr, fixed: Option<Ipv6Addr>, silent: bool, interval: Span) -> Ipv6 {
        let own = [Some(nd::link_local(mac)), fixed].into_iter().flatten();
        let addresses = own.map(|ip| (ip, State::New)).collect();
        Ipv6 { mac, interval, silent, addresses, solicit: None }
    }

    /// Returns the valid addresses, the link-local one first.
    pub(crate) fn valid(&self) -> impl Iterator<Item = Ipv6Addr> {
        let valid = self.addresses.iter().filter(|(_, state)| *state == State::Valid);
        valid.map(|&(ip, _)| ip)
    }

    /// Returns the host's public address: the first of global scope.
    pub(crate) fn address(&self) -> Option<Ipv6Addr> {
        self.valid().find(|ip| !ip.is_unicast_link_local())
    }

    /// Returns the source address for a solicitation of `target`.
    pub(crate) fn source_for(&self, target: Ipv6Addr) -> Option<Ipv6Addr> {
        let is_local = |ip: Ipv6Addr| ip.is_unicast_link_local();
        self.valid().find(|&ip| is_local(ip) == is_local(target)).or_else(|| self.valid().next())
    }

    /// Handles a carrier change, after which the link may be another one.
    pub(crate) fn carrier(&mut self, now: Time, up: bool) {
        for (_, state) in &mut self.addresses {
            *state = State::New;
        }
        let starts = up && !self.silent;
        self.solicit = starts.then_some((now + self.interval, SOLICITATIONS));
    }

    /// Processes what is due. Returns whether the valid addresses have changed.
    pub(crate) fn poll(&mut self, now: Time, nic: &mut Nic) -> bool {
        let mut changed = false;
        for (ip, state) in &mut self.addresses {
            match *state {
                State::New if nic.has_carrier() && self.silent => *state = State::Valid,
                State::New if nic.has_carrier() => {
                    nic.put(&nd::detection(self.mac, *ip));
                    *state = State::Tentative(now + self.interval);
                    continue;
                }
                State::Tentative(at) if at <= now => *state = State::Valid,
                _ => continue,
            }
            changed = true;
        }
        if let Some((at, left)) = self.solicit
            && at <= now
        {
            let source = self.valid().find(|ip| ip.is_unicast_link_local());
            nic.put(&router::solicitation_frame((self.mac, source)));
            let next = now + self.interval * SOLICITATION_INTERVALS;
            self.solicit = (left > 1).then_some((next, left - 1));
        }
        changed
    }

    /// Returns when something is due.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let tentative = self.addresses.iter().filter_map(|&(_, state)| match state {
            State::Tentative(at) => Some(at),
            _ => None,
        });
        tentative.chain(self.solicit.map(|(at, _)| at)).min()
    }

    /// Processes a received frame. Returns whether there is something to do.
    pub(crate) fn receive(&mut self, frame: &[u8]) -> bool {
        let Some((IPV6, packet)) = host_frame::contents(frame) else { return false };
        match nd::parse(packet) {
            Some(Some(Nd::Advertisement { target, .. })) => self.taken(target),
            Some(Some(Nd::Solicitation { source: None, target, .. })) => {
                // No fabric returns the host's own solicitation.
                MacAddr::source_of(frame) != Some(self.mac) && self.taken(target)
            }
            Some(_) => false,
            None => self.advertised(packet),
        }
    }

    /// Marks an address as a duplicate, after an answer or a probe of another host.
    fn taken(&mut self, target: Ipv6Addr) -> bool {
        for (ip, state) in &mut self.addresses {
            if *ip == target && matches!(state, State::Tentative(_)) {
                *state = State::Duplicate;
            }
        }
        false
    }

    /// Processes the prefix of a router advertisement (RFC 4862 clause 5.5.3).
    fn advertised(&mut self, packet: &[u8]) -> bool {
        let Some(prefix) = prefix(packet) else { return false };
        self.solicit = None;
        let own = nd::link_local(self.mac).to_bits() & u128::from(u64::MAX);
        let ip = Ipv6Addr::from_bits(prefix.to_bits() & !u128::from(u64::MAX) | own);
        let is_known = self.addresses.iter().any(|&(known, _)| known == ip);
        if !is_known && self.addresses.len() < ADDRESSES_MAX {
            self.addresses.push((ip, State::New));
        }
        !is_known
    }
}

/// Returns the prefix for addresses in a packet, if it is a valid router advertisement.
fn prefix(packet: &[u8]) -> Option<Ipv6Addr> {
    let ip = Ipv6Packet::new_checked(packet).ok()?;
    let (from, to) = (ip.src_addr(), ip.dst_addr());
    if ip.next_header() != IpProtocol::Icmpv6 || ip.hop_limit() != 255 {
        return None;
    }
    let message = Icmpv6Packet::new_checked(ip.payload()).ok()?;
    let read = Icmpv6Repr::parse(&from, &to, &message, &ChecksumCapabilities::default()).ok()?;
    let Icmpv6Repr::Ndisc(NdiscRepr::RouterAdvert { prefix_info: Some(prefix), .. }) = read else {
        return None;
    };
    let makes_addresses = prefix.flags.contains(NdiscPrefixInfoFlags::ADDRCONF);
    let sound = from.is_unicast_link_local() && prefix.prefix_len == LINK_BITS;
    (makes_addresses && sound).then_some(prefix.prefix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_wire::router::Advertisement;

    const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 7]);
    const OTHER: MacAddr = MacAddr([2, 0, 0, 0, 0, 8]);

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn fixed() -> Ipv6Addr {
        "2001:db8::7".parse().unwrap()
    }

    fn nic() -> Nic {
        let mut nic = Nic::new(1500, None);
        nic.link(Time::ZERO, true);
        nic
    }

    fn started(silent: bool) -> (Ipv6, Nic) {
        let (mut ipv6, mut nic) =
            (Ipv6::new(MAC, Some(fixed()), silent, Span::from_secs(1)), nic());
        ipv6.carrier(at(0), true);
        ipv6.poll(at(0), &mut nic);
        (ipv6, nic)
    }

    fn valid(ipv6: &Ipv6) -> Vec<Ipv6Addr> {
        ipv6.valid().collect()
    }

    #[test]
    fn an_address_is_used_when_nobody_has_objected_for_an_interval() {
        let (mut ipv6, mut nic) = started(false);
        assert_eq!((valid(&ipv6), nic.accounts().2), (vec![], 2), "both are asked for");
        assert_eq!(ipv6.deadline(), Some(at(1000)));
        // Another host has the fixed address.
        assert!(!ipv6.receive(&nd::advertisement(OTHER, fixed(), None)));
        assert!(ipv6.poll(at(1000), &mut nic));
        assert_eq!(valid(&ipv6), [nd::link_local(MAC)]);
        assert_eq!((ipv6.address(), nic.accounts().2), (None, 3), "it looks for a router");
        // Another host probes the same address at the same time.
        let (mut ipv6, mut nic) = started(false);
        ipv6.receive(&nd::detection(OTHER, fixed()));
        ipv6.receive(&nd::detection(MAC, nd::link_local(MAC)));
        ipv6.poll(at(1000), &mut nic);
        assert_eq!(valid(&ipv6), [nd::link_local(MAC)]);
    }

    #[test]
    fn a_silent_host_says_nothing() {
        let (mut ipv6, mut nic) = started(true);
        assert_eq!(valid(&ipv6), [nd::link_local(MAC), fixed()]);
        ipv6.poll(at(60_000), &mut nic);
        assert_eq!((nic.accounts().2, ipv6.deadline()), (0, None));
        assert_eq!(ipv6.source_for(fixed()), Some(fixed()));
        assert_eq!(ipv6.source_for(nd::link_local(OTHER)), Some(nd::link_local(MAC)));
    }

    #[test]
    fn an_advertised_prefix_makes_an_address_and_routers_are_looked_for_three_times() {
        let advertisement = Advertisement {
            router_seconds: 0,
            prefix: "2001:db8:7::".parse().unwrap(),
            prefix_len: 64,
            valid_seconds: 100,
            preferred_seconds: 100,
            mtu: None,
            dns: Vec::new(),
            domain: None,
            dns_seconds: 0,
            autonomous: true,
            managed: false,
            other: false,
        };
        let (mut ipv6, mut nic) = (Ipv6::new(MAC, None, false, Span::from_secs(1)), nic());
        ipv6.carrier(at(0), true);
        for second in 0..60 {
            ipv6.poll(at(second * 1000), &mut nic);
        }
        assert_eq!(nic.accounts().2, 1 + SOLICITATIONS as usize);
        let frame = advertisement.frame((OTHER, nd::link_local(OTHER)), None);
        assert!(ipv6.receive(&frame) && !ipv6.receive(&frame), "once");
        ipv6.poll(at(60_000), &mut nic);
        assert_eq!(ipv6.address(), None);
        assert!(ipv6.poll(at(61_000), &mut nic));
        assert_eq!(ipv6.address(), Some("2001:db8:7::ff:fe00:7".parse().unwrap()));
    }
}
