//! Reserved entries of each host port's route table.

use super::masqueraded::{Given, Place};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_node::RouteKey;
use axon_wire::vlan::VlanId;
use axon_wire::{MacAddr, PortNo};
use core::net::IpAddr;

/// Ingress port and route key: the VLAN, the destination MAC address, and the source if the route
/// is for that one only.
pub(super) type Key = (PortNo, RouteKey);

/// Returns the range of all keys of one port.
pub(super) fn of_port(port: PortNo) -> core::ops::RangeInclusive<Key> {
    let (first, last) = (MacAddr([0; 6]), MacAddr::BROADCAST);
    let last = RouteKey { vlan: VlanId::MAX, destination: last, source: Some(last) };
    (port, RouteKey::to(first))..=(port, last)
}

/// Entries of every port's route table that the edge has reserved.
///
/// An entry is reserved before its route is known (paper 001 §4.2.2): by MAC address for a unicast
/// frame, or only counted for an ARP request, where the MAC address is not known yet. The table
/// itself belongs to the data plane.
#[derive(Clone, Debug)]
pub(super) struct Places {
    per_port_max: usize,
    ports: Vec<PortPlaces>,
}

#[derive(Clone, Debug)]
struct PortPlaces {
    named: BTreeSet<RouteKey>,
    /// Number of places, above zero, that each VLAN has taken without a MAC address.
    unnamed: BTreeMap<VlanId, usize>,
    /// Masqueraded addresses of destinations without a place in the table.
    given: Given,
    /// The VLAN whose hosts have these addresses. Ports of several VLANs give none.
    given_in: VlanId,
    /// Hosts' own MAC addresses at this port that have masqueraded form.
    own: BTreeSet<MacAddr>,
}

impl Places {
    /// Creates `per_port_max` free places at each of `ports` ports, and `indexes` indexes of route
    /// memory besides, whose generations depend on `seed`.
    pub(super) fn new(ports: u16, per_port_max: usize, (indexes, seed): (usize, u64)) -> Places {
        let port = |port| PortPlaces {
            named: BTreeSet::new(),
            unnamed: BTreeMap::new(),
            given: Given::new(indexes, seed, port),
            given_in: VlanId::NONE,
            own: BTreeSet::new(),
        };
        Places { per_port_max, ports: (0..ports).map(PortNo).map(port).collect() }
    }

    /// Takes a place for a route, if it has none yet; `false` if there is none left. If the table
    /// is full, takes an index of route memory, for a route of any source.
    pub(super) fn reserve(&mut self, (port, key): Key) -> bool {
        let most = self.per_port_max;
        let Some(places) = self.ports.get_mut(port.index()) else {
            return false;
        };
        let is_given = key.source.is_none() && places.given.of(key.destination).is_some();
        if places.named.contains(&key) || is_given {
            return true;
        }
        if places.taken() < most {
            return places.named.insert(key);
        }
        let PortPlaces { named, given, given_in, own, .. } = places;
        let is_used = |mac| own.contains(&mac) || is_named(named, mac, key.vlan);
        let is_given = key.source.is_none() && given.take(key.destination, is_used);
        if is_given {
            *given_in = key.vlan;
        }
        is_given
    }

    /// Takes the index of the masqueraded MAC address at this address for `destination`, for which
    /// an earlier incarnation has given it; `false` if that is impossible.
    pub(super) fn take_over(&mut self, (port, address): Key, destination: MacAddr) -> bool {
        let mac = address.destination;
        let Some(places) = self.ports.get_mut(port.index()) else { return false };
        let PortPlaces { named, given, given_in, own, .. } = places;
        let is_used = own.contains(&mac)
            || is_named(named, mac, address.vlan)
            || named.contains(&RouteKey { destination, ..address });
        let is_given = !is_used && given.take_over(mac, destination);
        if is_given {
            *given_in = address.vlan;
        }
        is_given
    }

    /// Takes a place for a destination whose MAC address is not known yet; `false` if there is none
    /// left.
    pub(super) fn hold(&mut self, port: PortNo, vlan: VlanId) -> bool {
        let most = self.per_port_max;
        let place = self.ports.get_mut(port.index()).filter(|places| places.taken() < most);
        place.is_some_and(|places| {
            *places.unnamed.entry(vlan).or_default() += 1;
            true
        })
    }

    /// Releases a place that [`Places::hold`] took; `false` if there is none.
    pub(super) fn release(&mut self, port: PortNo, vlan: VlanId) -> bool {
        let Some(places) = self.ports.get_mut(port.index()) else { return false };
        let Some(unnamed) = places.unnamed.get_mut(&vlan) else { return false };
        *unnamed -= 1;
        if *unnamed == 0 {
            places.unnamed.remove(&vlan);
        }
        true
    }

    /// Releases the place of a route; `false` if it has none.
    pub(super) fn free(&mut self, (port, key): Key) -> bool {
        let Some(places) = self.ports.get_mut(port.index()) else { return false };
        let is_named = places.named.remove(&key);
        let is_given = key.source.is_none() && places.given.release(key.destination);
        is_named || is_given
    }

    /// Releases all places of a VLAN at one port; `false` if it has none.
    pub(super) fn clear(&mut self, port: PortNo, vlan: VlanId) -> bool {
        let Some(places) = self.ports.get_mut(port.index()) else { return false };
        let named = places.named.len();
        places.named.retain(|key| key.vlan != vlan);
        let is_unnamed = places.unnamed.remove(&vlan).is_some();
        let is_given = places.given_in == vlan && places.given.count() > 0;
        if is_given {
            places.given.release_all();
        }
        places.named.len() < named || is_unnamed || is_given
    }

    /// Returns the masqueraded address of a route's destination at a port, if it has one. A route
    /// for one source has none.
    pub(super) fn given(&self, (port, key): Key) -> Option<MacAddr> {
        let places = self.ports.get(port.index()).filter(|_| key.source.is_none());
        places?.given.of(key.destination)
    }

    /// Returns the state of an address last given at a port, in use or not.
    pub(super) fn given_at(&self, (port, address): Key) -> Option<&Place> {
        self.ports.get(port.index())?.given.at(address.destination)
    }

    /// Returns the state of a destination that has a masqueraded address, or had one.
    pub(super) fn given_to(&mut self, (port, key): Key) -> Option<&mut Place> {
        let places = self.ports.get_mut(port.index()).filter(|_| key.source.is_none());
        places?.given.place_of(key.destination)
    }

    /// Returns the masqueraded address of a route's destination, and records that a host is given
    /// it for `ip`.
    pub(super) fn show(&mut self, (port, key): Key, ip: IpAddr) -> Option<MacAddr> {
        let places = self.ports.get_mut(port.index()).filter(|_| key.source.is_none());
        places?.given.show(key.destination, ip)
    }

    /// Reserves the MAC address of a host of `port`, which is therefore not given.
    pub(super) fn occupy(&mut self, port: PortNo, mac: MacAddr) {
        if let Some(places) = self.ports.get_mut(port.index()) {
            places.own.insert(mac);
        }
    }

    /// Stops giving this MAC address; its destination has none any more.
    pub(super) fn give_up(&mut self, port: PortNo, mac: MacAddr) {
        if let Some(places) = self.ports.get_mut(port.index()) {
            places.given.give_up(mac);
        }
    }

    /// Releases a MAC address that no host of `port` has any more.
    pub(super) fn vacate(&mut self, port: PortNo, mac: MacAddr) {
        if let Some(places) = self.ports.get_mut(port.index()) {
            places.own.remove(&mac);
        }
    }

    /// Returns the number of masqueraded addresses in use at all ports.
    pub(super) fn given_count(&self) -> usize {
        self.ports.iter().map(|places| places.given.count()).sum()
    }

    /// Returns the number of places taken on one port.
    #[cfg(test)]
    pub(super) fn taken(&self, port: PortNo) -> usize {
        self.ports.get(port.index()).map_or(0, PortPlaces::taken)
    }
}

impl PortPlaces {
    fn taken(&self) -> usize {
        self.named.len() + self.unnamed.values().sum::<usize>()
    }
}

/// Returns whether a MAC address is the destination of a route of this VLAN in the table.
fn is_named(named: &BTreeSet<RouteKey>, mac: MacAddr, vlan: VlanId) -> bool {
    let first = RouteKey { vlan, ..RouteKey::to(mac) };
    named.range(first..=first.from_source(Some(MacAddr::BROADCAST))).next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORT: PortNo = PortNo(1);

    fn to(last: u8) -> RouteKey {
        MacAddr([2, 0, 0, 0, 0, last]).into()
    }

    #[test]
    fn a_place_is_taken_once_for_a_destination_and_counts_until_it_is_given_back() {
        let mut places = Places::new(2, 2, (0, 1));
        assert!(places.reserve((PORT, to(1))) && places.reserve((PORT, to(1))));
        assert!(places.hold(PORT, VlanId::NONE));
        assert!(!places.reserve((PORT, to(2))) && !places.hold(PORT, VlanId::NONE));
        assert!(places.reserve((PORT, to(1))), "it has its place");
        assert!(places.reserve((PortNo(0), to(2))), "each port has places of its own");
        places.release(PORT, VlanId::NONE);
        places.release(PORT, VlanId::NONE);
        assert!(places.reserve((PORT, to(2))));
        places.free((PORT, to(1)));
        assert_eq!((places.taken(PORT), places.hold(PORT, VlanId::NONE)), (1, true));
        places.clear(PORT, VlanId::NONE);
        assert_eq!(places.taken(PORT), 0);
    }

    #[test]
    fn a_route_for_one_source_takes_a_place_of_its_own_and_no_index() {
        let mut places = Places::new(2, 2, (4, 1));
        let of = |last| to(9).from_source(Some(MacAddr([2, 0, 0, 0, 1, last])));
        assert!(places.reserve((PORT, of(1))) && places.reserve((PORT, to(9))));
        assert!(!places.reserve((PORT, of(2))), "the table is full");
        assert!(places.reserve((PORT, to(8))), "by index");
        assert_eq!((places.taken(PORT), places.given_count()), (2, 1));
        places.free((PORT, to(9)));
        assert!(places.reserve((PORT, of(2))) && places.given((PORT, of(2))).is_none());
    }

    #[test]
    fn a_port_that_is_not_there_has_no_places() {
        let mut places = Places::new(1, 4, (0, 1));
        assert!(!places.reserve((PORT, to(1))) && !places.hold(PORT, VlanId::NONE));
    }
}
