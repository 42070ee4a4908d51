//! Masqueraded addresses given to the hosts of one port (thesis 000 §3.2.1).
//!
//! Each destination without a place in the table gets an index of route memory. Hosts are given the
//! address of that index instead of the destination's own. A destination that is gone releases its
//! index. If it returns before another has taken the index, it gets its previous address. Another
//! destination gets the next generation of the index, so stale entries in hosts' caches lead
//! nowhere. Unused indexes are taken first, then the one released longest ago. The first generation
//! of an index depends on a seed that differs for each incarnation of each switch. So addresses
//! given before a restart lead nowhere either, except for one in 16 million.
//!
//! An address that a host of the port or a destination uses itself is never given.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_wire::masquerade::{GENERATIONS, address, parts_of};
use axon_wire::{MacAddr, PortNo, Time};
use core::net::IpAddr;

/// Number of generations tried before an index is skipped, because hosts use that many of its
/// addresses as their own.
const TRIES: usize = 64;

/// Masqueraded addresses of one port.
#[derive(Clone, Debug)]
pub(super) struct Given {
    most: usize,
    seed: u64,
    /// State of each index.
    places: Vec<Place>,
    /// Index of each destination that has one or had one.
    of: BTreeMap<MacAddr, u16>,
    /// Released indexes, in order of release.
    back: BTreeSet<(u64, u16)>,
    backs: u64,
}

/// State of one index.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) mac: MacAddr,
    generation: u32,
    pub(super) destination: MacAddr,
    /// Sequence number of its release; `None` while it is in use.
    back: Option<u64>,
    /// IPv4 and IPv6 addresses that hosts were given the MAC address for.
    ips: [Option<IpAddr>; 2],
    /// Time when a host was last sent the current address as a correction.
    pub(super) corrected: Option<Time>,
}

impl Place {
    /// Creates an index that has not been given; its next generation follows `generation`.
    fn never_given(generation: u32, back: u64) -> Place {
        let nobody = MacAddr([0; 6]);
        Place {
            mac: nobody,
            generation,
            destination: nobody,
            back: Some(back),
            ips: [None; 2],
            corrected: None,
        }
    }

    /// Returns whether a destination has it.
    pub(super) fn is_taken(&self) -> bool {
        self.back.is_none()
    }

    /// Returns the IP address that hosts were given it for, of the family of `like` if that is
    /// known.
    pub(super) fn ip(&self, like: Option<IpAddr>) -> Option<IpAddr> {
        let [v4, v6] = self.ips;
        match like {
            Some(IpAddr::V4(_)) => v4,
            Some(IpAddr::V6(_)) => v6,
            None => v4.or(v6),
        }
    }
}

impl Given {
    /// Creates an empty set of at most `most` indexes. `seed` is that of the switch's incarnation.
    pub(super) fn new(most: usize, seed: u64, port: PortNo) -> Given {
        Given {
            most,
            seed: mixed(seed ^ u64::from(port.0)),
            places: Vec::new(),
            of: BTreeMap::new(),
            back: BTreeSet::new(),
            backs: 0,
        }
    }

    /// Gives `destination` an address, if it has none; `false` if no index is left. Skips addresses
    /// that `is_used` by a host.
    pub(super) fn take(&mut self, destination: MacAddr, is_used: impl Fn(MacAddr) -> bool) -> bool {
        if let Some(&index) = self.of.get(&destination) {
            let place = &mut self.places[usize::from(index)];
            if let Some(back) = place.back.take() {
                self.back.remove(&(back, index));
            }
            return true;
        }
        let fresh = self.places.len() < self.most;
        let index = match u16::try_from(self.places.len()) {
            Ok(index) if fresh => index,
            _ => match self.back.pop_first() {
                Some((_, index)) => index,
                None => return false,
            },
        };
        let first = match self.places.get(usize::from(index)) {
            Some(place) => place.generation.wrapping_add(1),
            None => mixed(self.seed ^ u64::from(index)) as u32,
        };
        let generations = (0..TRIES as u32).map(|more| first.wrapping_add(more) % GENERATIONS);
        let is_free = |&generation: &u32| {
            let mac = address(index, generation);
            mac != destination && !self.of.contains_key(&mac) && !is_used(mac)
        };
        let mut free = generations.filter(is_free);
        let generation = free.next().unwrap_or(first % GENERATIONS);
        let place = Place {
            mac: address(index, generation),
            generation,
            destination,
            back: None,
            ips: [None; 2],
            corrected: None,
        };
        match self.places.get_mut(usize::from(index)) {
            Some(old) => {
                if self.of.get(&old.destination) == Some(&index) {
                    self.of.remove(&old.destination);
                }
                *old = place;
            }
            None => self.places.push(place),
        }
        self.of.insert(destination, index);
        true
    }

    /// Keeps an address for `destination` that an earlier incarnation has given. `false` if its
    /// index does not exist or is taken, or the destination has an address already.
    pub(super) fn take_over(&mut self, mac: MacAddr, destination: MacAddr) -> bool {
        let Some((index, generation)) = parts_of(mac) else { return false };
        let at = usize::from(index);
        let is_free = self.places.get(at).is_none_or(|place| !place.is_taken());
        let known = self.of.contains_key(&destination) || self.of.contains_key(&mac);
        if at >= self.most || !is_free || known || mac == destination {
            return false;
        }
        // Lower indexes were not given by this incarnation, and start as new.
        while self.places.len() <= at {
            let index = self.places.len() as u16;
            let before = (mixed(self.seed ^ u64::from(index)) as u32).wrapping_sub(1);
            self.backs += 1;
            self.back.insert((self.backs, index));
            self.places.push(Place::never_given(before, self.backs));
        }
        let place = &mut self.places[at];
        if let Some(back) = place.back {
            self.back.remove(&(back, index));
        }
        if self.of.get(&place.destination) == Some(&index) {
            self.of.remove(&place.destination);
        }
        *place =
            Place { mac, generation, destination, back: None, ips: [None; 2], corrected: None };
        self.of.insert(destination, index);
        true
    }

    /// Returns the current masqueraded address of `destination`.
    pub(super) fn of(&self, destination: MacAddr) -> Option<MacAddr> {
        let place = &self.places[usize::from(*self.of.get(&destination)?)];
        place.is_taken().then_some(place.mac)
    }

    /// Returns the state of the index that `mac` was last given for, in use or not. `None` if it
    /// was never given, or its index has been given again since.
    pub(super) fn at(&self, mac: MacAddr) -> Option<&Place> {
        let index = axon_wire::masquerade::index_of(mac)?;
        self.places.get(usize::from(index)).filter(|place| place.mac == mac)
    }

    /// Returns the state of `destination`'s index, in use or not.
    pub(super) fn place_of(&mut self, destination: MacAddr) -> Option<&mut Place> {
        self.places.get_mut(usize::from(*self.of.get(&destination)?))
    }

    /// Records the IP address for which a host is given the MAC address of `destination`; returns
    /// the latter.
    pub(super) fn show(&mut self, destination: MacAddr, ip: IpAddr) -> Option<MacAddr> {
        let place = self.place_of(destination).filter(|place| place.is_taken())?;
        place.ips[usize::from(ip.is_ipv6())] = Some(ip);
        Some(place.mac)
    }

    /// Releases the index of `destination`; `false` if it has none.
    pub(super) fn release(&mut self, destination: MacAddr) -> bool {
        let Some(&index) = self.of.get(&destination) else { return false };
        let place = &mut self.places[usize::from(index)];
        let is_taken = place.is_taken();
        if is_taken {
            self.backs += 1;
            place.back = Some(self.backs);
            self.back.insert((self.backs, index));
        }
        is_taken
    }

    /// Stops giving `mac`, which a host uses itself, and releases its index.
    pub(super) fn give_up(&mut self, mac: MacAddr) {
        let Some(destination) = self.at(mac).map(|place| place.destination) else { return };
        // The destination may have another index by now.
        if self.of.get(&destination).copied() == axon_wire::masquerade::index_of(mac) {
            self.release(destination);
            self.of.remove(&destination);
        }
    }

    /// Releases all indexes.
    pub(super) fn release_all(&mut self) {
        let all: Vec<_> = self.of.keys().copied().collect();
        for destination in all {
            self.release(destination);
        }
    }

    /// Returns the number of indexes in use.
    pub(super) fn count(&self) -> usize {
        self.places.len() - self.back.len()
    }
}

/// Returns a pseudorandom number (the finalizer of splitmix64).
pub(super) fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_wire::masquerade::index_of;
    use proptest::prelude::*;

    fn mac(last: u8) -> MacAddr {
        MacAddr([2, 0, 0, 0, 0, last])
    }

    fn given(most: usize) -> Given {
        Given::new(most, 7, PortNo(0))
    }

    fn nobody(_: MacAddr) -> bool {
        false
    }

    #[test]
    fn who_comes_back_has_its_address_again_and_another_gets_the_next_generation() {
        let mut given = given(1);
        assert!(given.take(mac(1), nobody) && !given.take(mac(2), nobody));
        let first = given.of(mac(1)).unwrap();
        given.release(mac(1));
        assert!(given.of(mac(1)).is_none() && given.at(first).is_some());
        assert!(given.take(mac(1), nobody));
        assert_eq!(given.of(mac(1)), Some(first));
        given.release(mac(1));
        assert!(given.take(mac(2), nobody));
        let second = given.of(mac(2)).unwrap();
        assert!(first != second && index_of(first) == index_of(second));
        assert!(given.at(first).is_none(), "it leads nowhere");
    }

    #[test]
    fn an_address_that_a_host_has_itself_is_not_given() {
        let mut one = given(4);
        one.take(mac(1), nobody);
        let first = one.of(mac(1)).unwrap();
        let mut other = given(4);
        other.take(mac(1), |mac| mac == first);
        assert_ne!(other.of(mac(1)), Some(first));
        one.give_up(first);
        assert_eq!(one.of(mac(1)), None);
        one.take(mac(1), |mac| mac == first);
        assert!(one.of(mac(1)).is_some_and(|mac| mac != first));
    }

    #[test]
    fn ports_and_incarnations_begin_with_other_generations() {
        let first = |seed, port| {
            let mut given = Given::new(4, seed, PortNo(port));
            given.take(mac(1), nobody);
            given.of(mac(1)).unwrap()
        };
        let all: BTreeSet<_> = (0..100).map(|n| first(n, 0)).collect();
        assert_eq!(all.len(), 100);
        assert!((1..100).all(|port| first(7, port) != first(7, 0)));
    }

    proptest! {
        /// The reference remembers every address that was ever given, with its destination.
        #[test]
        fn no_address_is_ever_given_to_two_destinations(
            most in 0..4usize,
            events in prop::collection::vec((0..3u8, 0..8u8), 0..300),
        ) {
            let mut given = given(most);
            let mut ever: BTreeMap<MacAddr, MacAddr> = BTreeMap::new();
            let mut now: BTreeSet<MacAddr> = BTreeSet::new();
            let mut own: BTreeSet<MacAddr> = BTreeSet::new();
            for (event, host) in events {
                let to = mac(host);
                match event {
                    0 => {
                        let room = now.contains(&to) || now.len() < most;
                        prop_assert_eq!(given.take(to, |mac| own.contains(&mac)), room);
                        if room {
                            now.insert(to);
                        }
                    }
                    1 => {
                        given.release(to);
                        now.remove(&to);
                    }
                    _ => if let Some(mac) = given.of(to) {
                        own.insert(mac);
                        given.give_up(mac);
                        now.remove(&to);
                    }
                }
                prop_assert_eq!(given.count(), now.len());
                for &to in &now {
                    let mac = given.of(to).unwrap();
                    prop_assert!(!own.contains(&mac) && usize::from(index_of(mac).unwrap()) < most);
                    prop_assert_eq!(given.at(mac).unwrap().destination, to);
                    prop_assert_eq!(*ever.entry(mac).or_insert(to), to);
                }
                for (mac, to) in &ever {
                    let leads = given.at(*mac).filter(|place| place.is_taken());
                    prop_assert!(leads.is_none_or(|place| place.destination == *to));
                }
            }
        }
    }
}
