//! IPv6 addresses that the external DHCPv6 server has leased to hosts. Each belongs to its host for
//! its valid lifetime.
//!
//! A lease counts until it expires. There is no timer, and expired leases are removed when a lease
//! is added. The number of leases is bounded, for each port and in total.

use super::hosts::Place;
use alloc::collections::{BTreeMap, BTreeSet};
use axon_wire::{MacAddr, Span, Time};
use core::net::Ipv6Addr;

/// Maximum number of leases: four each for a quarter of the hosts that a controller supports.
const LEASES_MAX: usize = 65_536;
/// Maximum duration of a lease, in seconds. A longer one counts as infinite.
const SECONDS_MAX: u32 = 1_000_000;

/// Table of leased addresses.
#[derive(Clone, Debug)]
pub(super) struct Leases6 {
    by_ip: BTreeMap<Ipv6Addr, Lease6>,
    until: BTreeSet<(Time, Ipv6Addr)>,
    by_port: BTreeMap<Place, BTreeSet<Ipv6Addr>>,
    per_port_max: usize,
    /// Addresses whose stored entry may have changed.
    changed: BTreeSet<Ipv6Addr>,
}

/// Lease of an IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lease6 {
    /// MAC address of the host.
    pub mac: MacAddr,
    /// Port of the host.
    pub place: Place,
    /// End of the lease.
    pub until: Time,
}

impl Leases6 {
    /// Creates an empty table with at most `per_port_max` leases at one port.
    pub(super) const fn new(per_port_max: usize) -> Leases6 {
        Leases6 {
            by_ip: BTreeMap::new(),
            until: BTreeSet::new(),
            by_port: BTreeMap::new(),
            per_port_max,
            changed: BTreeSet::new(),
        }
    }

    /// Returns the lease for an address. It may have just expired.
    pub(super) fn get(&self, ip: Ipv6Addr) -> Option<&Lease6> {
        self.by_ip.get(&ip)
    }

    /// Returns the addresses whose stored entry may have changed since the last call.
    pub(super) fn take_changed(&mut self) -> BTreeSet<Ipv6Addr> {
        core::mem::take(&mut self.changed)
    }

    /// Returns the host that has leased an address, or `None` if there is no valid lease.
    pub(super) fn holder(&self, now: Time, ip: Ipv6Addr) -> Option<MacAddr> {
        self.by_ip.get(&ip).filter(|lease| now < lease.until).map(|lease| lease.mac)
    }

    /// Returns whether a host at a port has a lease.
    pub(super) fn has_one(&self, now: Time, mac: MacAddr, at: Place) -> bool {
        let mut held = self.by_port.get(&at).into_iter().flatten();
        held.any(|&ip| self.holder(now, ip) == Some(mac))
    }

    /// Returns whether a port has room for `more` leases.
    pub(super) fn has_room(&mut self, now: Time, at: Place, more: usize) -> bool {
        self.expire(now);
        let held = self.by_port.get(&at).map_or(0, BTreeSet::len);
        held + more <= self.per_port_max && self.by_ip.len() + more <= LEASES_MAX
    }

    /// Adds a lease. The caller has already checked its holder, and that there is room.
    pub(super) fn bind(
        &mut self,
        now: Time,
        ip: Ipv6Addr,
        (mac, place): (MacAddr, Place),
        seconds: u32,
    ) {
        let until = now + Span::from_secs(seconds.min(SECONDS_MAX).into());
        self.put(ip, Lease6 { mac, place, until });
    }

    /// Restores a stored lease. Returns whether it was restored. An expired lease is dropped.
    pub(super) fn restore(&mut self, now: Time, ip: Ipv6Addr, lease: Lease6) -> bool {
        let longest = now + Span::from_secs(SECONDS_MAX.into());
        let lease = Lease6 { until: lease.until.min(longest), ..lease };
        let fits = now < lease.until && self.has_room(now, lease.place, 1);
        if fits {
            self.put(ip, lease);
        }
        fits
    }

    fn put(&mut self, ip: Ipv6Addr, lease: Lease6) {
        self.remove(ip);
        self.by_ip.insert(ip, lease);
        self.until.insert((lease.until, ip));
        self.by_port.entry(lease.place).or_default().insert(ip);
        self.changed.insert(ip);
    }

    /// Removes a lease.
    pub(super) fn remove(&mut self, ip: Ipv6Addr) {
        let Some(lease) = self.by_ip.remove(&ip) else { return };
        self.changed.insert(ip);
        self.until.remove(&(lease.until, ip));
        if let Some(held) = self.by_port.get_mut(&lease.place) {
            held.remove(&ip);
            if held.is_empty() {
                self.by_port.remove(&lease.place);
            }
        }
    }

    fn expire(&mut self, now: Time) {
        while let Some(&(until, ip)) = self.until.first()
            && until <= now
        {
            self.remove(ip);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::topology::SwitchIndex;
    use super::*;
    use axon_wire::PortNo;

    #[test]
    fn a_lease_is_its_hosts_until_it_runs_out_and_a_port_holds_so_many() {
        let mut leases = Leases6::new(2);
        let ip = |last| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last);
        let place = Place { switch: SwitchIndex(0), port: PortNo(1) };
        let (one, two) = (MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
        let at = |seconds| Time::ZERO + Span::from_secs(seconds);
        leases.bind(at(0), ip(1), (one, place), 10);
        leases.bind(at(0), ip(2), (two, place), 20);
        assert_eq!((leases.holder(at(9), ip(1)), leases.holder(at(10), ip(1))), (Some(one), None));
        assert!(!leases.has_room(at(9), place, 1));
        assert!(leases.has_one(at(9), one, place) && !leases.has_one(at(10), one, place));
        assert!(leases.has_room(at(10), place, 1) && !leases.has_room(at(10), place, 2));
        leases.bind(at(10), ip(2), (two, place), u32::MAX);
        leases.remove(ip(2));
        assert_eq!(leases.holder(at(11), ip(2)), None);
        assert_eq!((leases.by_ip.len(), leases.until.len(), leases.by_port.len()), (0, 0, 0));
    }

    #[test]
    fn what_the_store_held_counts_until_it_runs_out_and_no_more_than_a_port_may_hold() {
        let mut leases = Leases6::new(1);
        let ip = |last| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last);
        let place = Place { switch: SwitchIndex(0), port: PortNo(1) };
        let mac = MacAddr([2, 0, 0, 0, 0, 1]);
        let at = |seconds| Time::ZERO + Span::from_secs(seconds);
        let lease = |until| Lease6 { mac, place, until };
        assert!(!leases.restore(at(5), ip(1), lease(at(5))), "it has run out");
        assert!(leases.restore(at(5), ip(2), lease(at(6))));
        assert!(!leases.restore(at(5), ip(3), lease(at(9))), "the port is full");
        assert_eq!((leases.holder(at(5), ip(2)), leases.holder(at(6), ip(2))), (Some(mac), None));
        assert!(leases.restore(at(6), ip(3), lease(Time::MAX)));
        assert_eq!(leases.holder(at(6) + Span::from_secs(1_000_000), ip(3)), None);
        assert_eq!(leases.take_changed(), [ip(2), ip(3)].into());
        assert_eq!(leases.take_changed(), [].into());
    }
}
