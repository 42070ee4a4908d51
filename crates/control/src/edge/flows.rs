//! The routes of local hosts: which stand in route memory, which in software, which are gone.

use super::Cx;
use crate::effect::Effect;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_node::Note;
use axon_plane::RouteError;
use axon_wire::message::Stamp;
use axon_wire::{MacAddr, PortNo, Route, Span, Time};
use core::net::Ipv4Addr;

/// How long the stamp of a removed route is remembered: longer than any message is under way.
const TOMBSTONE_LIFE: Span = Span::from_secs(10);
/// How many such stamps are remembered; the oldest are forgotten first.
const TOMBSTONES_MAX: usize = 16_384;

type Key = (PortNo, MacAddr);

/// A route from a host port to a destination MAC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// When the controller decided it, or its removal.
    pub stamp: Stamp,
    /// The route.
    pub route: Route,
    /// Whether it stands in the port's route memory; if not, the control plane forwards.
    pub placed: bool,
    /// The destination's address, where an ARP exchange told it.
    pub ip: Option<Ipv4Addr>,
}

/// What became of a route that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is the flow's route now.
    Set,
    /// It was already, or a newer one is.
    Known,
    /// It is older than the removal of this flow: there is no route.
    Removed,
    /// Good to use once, but neither route memory nor software has room to keep it.
    NotKept,
    /// No header can hold it, or no host has such an address.
    Unusable,
}

/// All flows of the switch.
///
/// Messages about one flow arrive by different ways and so in any order. Each carries the
/// stamp of the controller's decision. For each flow the newest stamp is remembered with its
/// route, or without one after a removal (a tombstone, for a while); whatever is not newer
/// changes nothing.
#[derive(Debug)]
pub(super) struct Flows {
    software_per_port_max: usize,
    live: BTreeMap<Key, Flow>,
    unplaced: BTreeSet<Key>,
    by_ip: BTreeMap<(PortNo, Ipv4Addr), MacAddr>,
    removed: BTreeMap<Key, (Stamp, Time)>,
    removed_order: BTreeSet<(Time, Key)>,
}

impl Flows {
    /// No flows. Beside its route memory each port may have `software_per_port_max` in software.
    pub(super) fn new(software_per_port_max: usize) -> Flows {
        Flows {
            software_per_port_max,
            live: BTreeMap::new(),
            unplaced: BTreeSet::new(),
            by_ip: BTreeMap::new(),
            removed: BTreeMap::new(),
            removed_order: BTreeSet::new(),
        }
    }

    pub(super) fn get(&self, port: PortNo, destination: MacAddr) -> Option<&Flow> {
        self.live.get(&(port, destination))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (PortNo, MacAddr, &Flow)> {
        self.live.iter().map(|(&(port, mac), flow)| (port, mac, flow))
    }

    /// The MAC of the host at `ip`, if `port` has a flow to it.
    pub(super) fn mac_of(&self, port: PortNo, ip: Ipv4Addr) -> Option<MacAddr> {
        self.by_ip.get(&(port, ip)).copied()
    }

    /// Takes a route that the controller has decided.
    ///
    /// The route memory comes first. Where it is full, software keeps the route and the frames
    /// of this flow go through the control plane, until [`Flows::promote`] finds a place.
    pub(super) fn set(
        &mut self,
        cx: &mut Cx,
        key: Key,
        stamp: Stamp,
        route: &Route,
        ip: Option<Ipv4Addr>,
    ) -> Verdict {
        let (port, destination) = key;
        if self.live.get(&key).is_some_and(|flow| flow.stamp >= stamp) {
            self.learn_ip(key, ip);
            self.place(cx, key);
            return Verdict::Known;
        }
        if self.removed.get(&key).is_some_and(|&(newest, _)| newest >= stamp) {
            return Verdict::Removed;
        }
        let placed = match cx.tables.install(port, destination, route) {
            Ok(()) => true,
            Err(RouteError::Full) => false,
            Err(RouteError::NoSuchPort | RouteError::Unrepresentable) => {
                // What is decided later counts, even if it is of no use.
                self.remove(cx, key, Some(stamp));
                return Verdict::Unusable;
            }
        };
        if !placed && !self.live.contains_key(&key) && self.software_is_full(port) {
            return Verdict::NotKept;
        }
        self.forget_removed(key);
        let ip_before = self.live.get(&key).and_then(|flow| flow.ip);
        self.live.insert(key, Flow { stamp, route: route.clone(), placed, ip: ip_before });
        self.learn_ip(key, ip);
        if placed {
            self.unplaced.remove(&key);
            cx.out.push(Effect::Note(Note::RouteSet { port, destination }));
        } else {
            self.unplaced.insert(key);
        }
        Verdict::Set
    }

    fn software_is_full(&self, port: PortNo) -> bool {
        self.unplaced.range(of_port(port)).count() >= self.software_per_port_max
    }

    /// Removes a route. With a stamp that is not newer than the flow's nothing happens; without
    /// one the flow ends here and now, and only newer decisions can bring it back.
    pub(super) fn remove(&mut self, cx: &mut Cx, key: Key, stamp: Option<Stamp>) {
        let (port, destination) = key;
        let live = self.live.get(&key).map(|flow| flow.stamp);
        let known = live.max(self.removed.get(&key).map(|&(stamp, _)| stamp));
        if stamp.is_some() && stamp <= known {
            return;
        }
        let Some(newest) = stamp.or(known) else {
            return;
        };
        if let Some(flow) = self.live.remove(&key) {
            self.unplaced.remove(&key);
            if let Some(ip) = flow.ip {
                self.by_ip.remove(&(port, ip));
            }
            if flow.placed {
                cx.tables.remove(port, destination);
                cx.out.push(Effect::Note(Note::RouteRemoved { port, destination }));
            }
        }
        self.forget_removed(key);
        let until = cx.now + TOMBSTONE_LIFE;
        self.removed.insert(key, (newest, until));
        self.removed_order.insert((until, key));
        while self.removed.len() > TOMBSTONES_MAX {
            let Some((_, oldest)) = self.removed_order.pop_first() else {
                break;
            };
            self.removed.remove(&oldest);
        }
    }

    /// Moves software routes of `port` into route memory while it has room.
    pub(super) fn promote(&mut self, cx: &mut Cx, port: PortNo) {
        while let Some(&key) = self.unplaced.range(of_port(port)).next()
            && self.place(cx, key)
        {}
    }

    /// Moves one route from software to route memory, if it is there and finds room.
    fn place(&mut self, cx: &mut Cx, key: Key) -> bool {
        let (port, destination) = key;
        let Some(flow) = self.live.get_mut(&key) else {
            return false;
        };
        if flow.placed || cx.tables.install(port, destination, &flow.route).is_err() {
            return false;
        }
        flow.placed = true;
        self.unplaced.remove(&key);
        cx.out.push(Effect::Note(Note::RouteSet { port, destination }));
        true
    }

    /// Ends all flows of one port; their stamps stay for a while.
    pub(super) fn clear_port(&mut self, cx: &mut Cx, port: PortNo) {
        let keys: Vec<_> = self.live.range(of_port(port)).map(|(&key, _)| key).collect();
        for key in keys {
            self.remove(cx, key, None);
        }
    }

    /// Forgets everything, stamps included: a new controller counts anew.
    pub(super) fn clear(&mut self, cx: &mut Cx) {
        let keys: Vec<_> = self.live.keys().copied().collect();
        for key in keys {
            self.remove(cx, key, None);
        }
        self.removed.clear();
        self.removed_order.clear();
    }

    /// Forgets the stamps of routes that were removed long enough ago.
    pub(super) fn expire(&mut self, now: Time) {
        while let Some(&(until, key)) = self.removed_order.first()
            && until <= now
        {
            self.removed_order.remove(&(until, key));
            self.removed.remove(&key);
        }
    }

    /// When [`Flows::expire`] has something to do next.
    pub(super) fn next_expiry(&self) -> Option<Time> {
        self.removed_order.first().map(|&(until, _)| until)
    }

    fn forget_removed(&mut self, key: Key) {
        if let Some((_, until)) = self.removed.remove(&key) {
            self.removed_order.remove(&(until, key));
        }
    }

    /// One address belongs to one flow of a port, and one flow has one address.
    fn learn_ip(&mut self, key: Key, ip: Option<Ipv4Addr>) {
        let Some(ip) = ip else { return };
        let (port, mac) = key;
        if let Some(other) = self.by_ip.insert((port, ip), mac)
            && other != mac
            && let Some(flow) = self.live.get_mut(&(port, other))
        {
            flow.ip = None;
        }
        let Some(flow) = self.live.get_mut(&key) else {
            return;
        };
        if let Some(before) = flow.ip.replace(ip)
            && before != ip
        {
            self.by_ip.remove(&(port, before));
        }
    }

    /// Live flows, software flows and tombstones.
    #[cfg(test)]
    pub(super) fn sizes(&self) -> (usize, usize, usize) {
        assert_eq!(self.removed.len(), self.removed_order.len());
        assert!(self.by_ip.len() <= self.live.len());
        (self.live.len(), self.unplaced.len(), self.removed.len())
    }
}

fn of_port(port: PortNo) -> core::ops::RangeInclusive<Key> {
    (port, MacAddr([0; 6]))..=(port, MacAddr::BROADCAST)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ip, mac, stamp};
    use super::*;
    use axon_plane::RouteTables;
    use axon_wire::HopWidth;
    use proptest::prelude::*;

    const KEY: Key = (PortNo(0), MacAddr([2, 0, 0, 0, 0, 9]));

    fn tables(routes: usize) -> RouteTables {
        RouteTables::new(HopWidth::Eight, 1, routes)
    }

    proptest! {
        #[test]
        fn the_newest_decision_wins_whatever_the_order(
            order in Just((1..=6u64).collect::<Vec<_>>()).prop_shuffle(),
            removals in prop::collection::vec(any::<bool>(), 6),
            repeats in prop::collection::vec(0..6usize, 0..6),
        ) {
            let mut tables = tables(4);
            let mut flows = Flows::new(4);
            let mut out = Vec::new();
            let cx = &mut Cx { now: Time::ZERO, tables: &mut tables, out: &mut out };
            let again: Vec<_> = repeats.into_iter().map(|index| order[index]).collect();
            for number in order.into_iter().chain(again) {
                if removals[number as usize - 1] {
                    flows.remove(cx, KEY, Some(stamp(number)));
                } else {
                    flows.set(cx, KEY, stamp(number), &Route::from([number as u16]), None);
                }
            }
            let expected = (!removals[5]).then(|| Route::from([6]));
            prop_assert_eq!(flows.get(KEY.0, KEY.1).map(|flow| flow.route.clone()), expected.clone());
            let placed = tables.routes(PortNo(0)).pop().map(|(_, route)| route);
            prop_assert_eq!(placed, expected);
        }
    }

    #[test]
    fn a_removal_is_remembered_for_a_while_only() {
        let mut tables = tables(4);
        let mut flows = Flows::new(4);
        let mut out = Vec::new();
        let cx = &mut Cx { now: Time::ZERO, tables: &mut tables, out: &mut out };
        flows.remove(cx, KEY, Some(stamp(5)));
        assert_eq!(flows.set(cx, KEY, stamp(4), &Route::from([1]), None), Verdict::Removed);
        let expiry = flows.next_expiry().unwrap();
        flows.expire(expiry);
        assert_eq!(flows.next_expiry(), None);
        assert_eq!(flows.set(cx, KEY, stamp(4), &Route::from([1]), None), Verdict::Set);
    }

    #[test]
    fn a_route_that_no_header_holds_takes_the_old_one_away() {
        let mut tables = tables(4);
        let mut flows = Flows::new(4);
        let mut out = Vec::new();
        let cx = &mut Cx { now: Time::ZERO, tables: &mut tables, out: &mut out };
        flows.set(cx, KEY, stamp(1), &Route::from([1]), None);
        assert_eq!(flows.set(cx, KEY, stamp(2), &Route::from([999]), None), Verdict::Unusable);
        assert_eq!(flows.sizes(), (0, 0, 1));
        assert!(cx.tables.is_empty());
    }

    #[test]
    fn software_keeps_as_many_routes_as_it_may() {
        let mut tables = tables(1);
        let mut flows = Flows::new(2);
        let mut out = Vec::new();
        let cx = &mut Cx { now: Time::ZERO, tables: &mut tables, out: &mut out };
        let verdicts: Vec<_> = (1..=4)
            .map(|n| flows.set(cx, (PortNo(0), mac(n)), stamp(1), &Route::from([1]), Some(ip(n))))
            .collect();
        assert_eq!(verdicts, [Verdict::Set, Verdict::Set, Verdict::Set, Verdict::NotKept]);
        assert_eq!(flows.sizes(), (3, 2, 0));
        assert_eq!(flows.mac_of(PortNo(0), ip(3)), Some(mac(3)));
        assert_eq!(flows.mac_of(PortNo(0), ip(4)), None);
    }

    #[test]
    fn an_address_belongs_to_the_flow_that_told_it_last() {
        let mut tables = tables(4);
        let mut flows = Flows::new(4);
        let mut out = Vec::new();
        let cx = &mut Cx { now: Time::ZERO, tables: &mut tables, out: &mut out };
        let route = Route::from([1]);
        flows.set(cx, (PortNo(0), mac(1)), stamp(1), &route, Some(ip(1)));
        flows.set(cx, (PortNo(0), mac(2)), stamp(2), &route, Some(ip(1)));
        assert_eq!(flows.mac_of(PortNo(0), ip(1)), Some(mac(2)));
        flows.remove(cx, (PortNo(0), mac(1)), Some(stamp(3)));
        assert_eq!(flows.mac_of(PortNo(0), ip(1)), Some(mac(2)));
        flows.remove(cx, (PortNo(0), mac(2)), Some(stamp(4)));
        assert_eq!(flows.mac_of(PortNo(0), ip(1)), None);
    }
}
