//! Flows of local hosts: the controller's decisions, where each route is installed, and removals.
//!
//! `install.rs` has the requests to the data plane and its answers; `inherited.rs` has the routes
//! of an earlier incarnation of the controller.

use super::backup::Backups;
use super::context::Cx;
use super::hosts::Hosts;
use super::places::{Key, of_port};
use super::tables::Tables;
use super::tombstones::Tombstones;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_node::{RouteKey, RouteTicket};
use axon_wire::message::Stamp;
use axon_wire::{MacAddr, PortNo, Route, Span, Time};
use core::net::IpAddr;

/// Interval at which routes are checked. A route without frames between two checks is removed, so
/// after five to ten minutes: longer than hosts keep ARP entries.
pub const ROUTE_LOOK: Span = Span::from_secs(300);

/// Route from a host port to a destination MAC address, for all hosts there or for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Stamp of the controller's decision.
    pub stamp: Stamp,
    /// Installed or wanted route.
    pub route: Route,
    /// Location of the route.
    pub placement: Placement,
    /// IP address of the destination, if an ARP exchange has shown it.
    pub ip: Option<IpAddr>,
    /// True if the route is from an earlier incarnation of the controller, and the current one has
    /// not decided about it yet.
    pub inherited: bool,
    /// Time when this route was set.
    pub(super) set_at: Time,
    /// True if the control plane has forwarded a frame on it since the last check.
    pub(super) used: bool,
}

/// Location of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// In software only: the control plane forwards the frames of this flow.
    Software,
    /// Requested from the data plane, without an answer yet. The data plane may have this route,
    /// the previous one, or none. The control plane forwards frames that it punts.
    Requested(RouteTicket),
    /// In the data plane's table.
    Installed,
}

impl Flow {
    /// Returns whether the data plane has the route, or may have it.
    pub fn is_placed(&self) -> bool {
        self.placement != Placement::Software
    }
}

/// Result of setting a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The flow has the route now.
    Set,
    /// The flow has this route already, or a newer one.
    Known,
    /// The route is older than the removal of this flow and is not set.
    Removed,
    /// The route may be used once, but neither table nor software has room for it.
    NotKept,
    /// The route does not fit in a header, or its destination is no host address.
    Unusable,
}

/// All flows of the switch.
///
/// Messages about one flow take different paths and arrive in any order. Each carries the stamp of
/// the controller's decision. The newest stamp of each flow is kept with its route, or, for a
/// while, without one after a removal (a tombstone). Messages that are not newer change nothing.
#[derive(Clone, Debug)]
pub(super) struct Flows {
    software_per_port_max: usize,
    pub(super) live: BTreeMap<Key, Flow>,
    /// Flows whose routes are kept in software.
    pub(super) unplaced: BTreeSet<Key>,
    pub(super) tables: Tables,
    pub(super) backups: Backups,
    /// Flows by address, for each source like routes.
    by_ip: BTreeMap<(PortNo, Option<MacAddr>, IpAddr), MacAddr>,
    pub(super) removed: Tombstones,
}

impl Flows {
    /// Creates an empty set. Besides its table each port may have as many routes in software as the
    /// table holds.
    pub(super) fn new(tables: Tables) -> Flows {
        Flows {
            software_per_port_max: tables.per_port_max(),
            // The table's routes and the software routes each may have a backup.
            backups: Backups::new(tables.placed_max().saturating_add(tables.per_port_max())),
            tables,
            live: BTreeMap::new(),
            unplaced: BTreeSet::new(),
            by_ip: BTreeMap::new(),
            removed: Tombstones::default(),
        }
    }

    pub(super) fn get(&self, key: Key) -> Option<&Flow> {
        self.live.get(&key)
    }

    /// Returns the key of the route for frames of `source` to `destination`: that of this source if
    /// it exists, or else that of any source.
    pub(super) fn key_of(&self, port: PortNo, source: MacAddr, destination: MacAddr) -> Key {
        let any = (port, RouteKey::to(destination));
        let pair = (port, any.1.from_source(Some(source)));
        if self.live.contains_key(&pair) { pair } else { any }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (Key, &Flow)> {
        self.live.iter().map(|(&key, flow)| (key, flow))
    }

    /// Returns the MAC address of the host at `ip`, if `port` has a flow to it that `source` may
    /// use.
    pub(super) fn mac_of(&self, port: PortNo, source: MacAddr, ip: IpAddr) -> Option<MacAddr> {
        let of = |source| self.by_ip.get(&(port, source, ip)).copied();
        of(Some(source)).or_else(|| of(None))
    }

    /// Returns the routes without frames since the last call; see
    /// [`Edge::idle_flows`](super::Edge::idle_flows).
    pub(super) fn idle(
        &mut self,
        now: Time,
        mut used: impl FnMut(PortNo, RouteKey) -> bool,
    ) -> Vec<Key> {
        let mut idle = Vec::new();
        for (&(port, key), flow) in &mut self.live {
            let by_software = core::mem::take(&mut flow.used);
            let (_, address) = self.tables.address((port, key));
            let by_table = flow.placement == Placement::Installed && used(port, address);
            if !by_software && !by_table && now.since(flow.set_at) >= ROUTE_LOOK {
                idle.push((port, key));
            }
        }
        idle
    }

    /// Sets a route. A port without hosts gets none, and no route leads to the control plane.
    pub(super) fn set_route(
        &mut self,
        cx: &mut Cx,
        hosts: &Hosts,
        key: Key,
        stamp: Stamp,
        route: &Route,
        ip: Option<IpAddr>,
    ) -> Verdict {
        if hosts.count_on(key.0) == 0 || !cx.settings.is_host_mac(key.1.destination) {
            if cx.ports.is_host(key.0) {
                self.remove(cx, key, Some(stamp));
            }
            return Verdict::Unusable;
        }
        self.evade(cx, key.0, key.1.destination);
        let verdict = self.set(cx, key, stamp, route, ip);
        // The controller may have decided before it received the loss of a link.
        self.use_backup(cx, key);
        verdict
    }

    /// Sets a route that the controller has decided.
    ///
    /// The data plane has priority. If its table is full, the route is kept in software and the
    /// frames of this flow pass through the control plane, until [`Flows::promote`] finds a free
    /// entry.
    pub(super) fn set(
        &mut self,
        cx: &mut Cx,
        key: Key,
        stamp: Stamp,
        route: &Route,
        ip: Option<IpAddr>,
    ) -> Verdict {
        if self.confirm(cx, key, stamp, route, ip) {
            return Verdict::Set;
        }
        if self.decided(key).is_some_and(|known| known >= stamp) {
            self.learn_ip(key, ip);
            self.place(cx, key);
            return Verdict::Known;
        }
        if self.removed.get(key).is_some_and(|newest| newest >= stamp) {
            return Verdict::Removed;
        }
        if !self.tables.can_hold(cx.ports, key.0, route) {
            // The later decision counts, even if it cannot be used.
            self.remove(cx, key, Some(stamp));
            return Verdict::Unusable;
        }
        let placed = self.tables.reserve(key);
        if !placed && !self.live.contains_key(&key) && self.software_is_full(key.0) {
            return Verdict::NotKept;
        }
        self.removed.remove(key);
        let ip = ip.or(self.live.get(&key).filter(|flow| !flow.inherited).and_then(|flow| flow.ip));
        self.forget_ip(key);
        let placement = match placed {
            true => Placement::Requested(self.tables.install(cx, key, route.clone())),
            false => {
                // A lost data plane takes no route, not even as a replacement.
                self.tables.free(key);
                Placement::Software
            }
        };
        let (route, set_at) = (route.clone(), cx.now);
        let flow =
            Flow { stamp, route, placement, ip: None, inherited: false, set_at, used: false };
        self.live.insert(key, flow);
        self.learn_ip(key, ip);
        match placed {
            true => self.unplaced.remove(&key),
            false => self.unplaced.insert(key),
        };
        Verdict::Set
    }

    /// Returns the flows with inherited routes.
    pub(super) fn inherited(&self) -> impl Iterator<Item = Key> {
        self.live.iter().filter(|(_, flow)| flow.inherited).map(|(&key, _)| key)
    }

    /// Takes an inherited route over if the controller has decided for the same one; returns
    /// whether it has. The data plane is not changed. Until then the flow answers ARP requests for
    /// the address of its destination. From then on the controller does, since the address may have
    /// moved to another host meanwhile.
    fn confirm(
        &mut self,
        cx: &mut Cx,
        key: Key,
        stamp: Stamp,
        route: &Route,
        ip: Option<IpAddr>,
    ) -> bool {
        let flow = self.live.get_mut(&key);
        let Some(flow) = flow.filter(|flow| flow.inherited && flow.route == *route) else {
            return false;
        };
        (flow.stamp, flow.inherited) = (stamp, false);
        self.forget_ip(key);
        self.learn_ip(key, ip);
        self.place(cx, key);
        true
    }

    pub(super) fn software_is_full(&self, port: PortNo) -> bool {
        self.unplaced.range(of_port(port)).count() >= self.software_per_port_max
    }

    /// Removes a route. A stamp that is not newer than the flow's changes nothing. Without a stamp
    /// the flow ends at once, and only newer decisions can restore it.
    pub(super) fn remove(&mut self, cx: &mut Cx, key: Key, stamp: Option<Stamp>) {
        let removed = self.removed.get(key);
        let known = self.decided(key).max(removed);
        if stamp.is_some() && stamp <= known {
            return;
        }
        let live = self.live.get(&key).map(|flow| flow.stamp);
        let Some(newest) = stamp.or(known).or(live) else {
            return;
        };
        self.forget_ip(key);
        self.backups.forget(key);
        if let Some(flow) = self.live.remove(&key) {
            self.unplaced.remove(&key);
            if flow.is_placed() {
                self.tables.remove(cx, key);
            }
        }
        self.removed.insert(cx.now, key, newest);
    }

    /// Removes all flows of one port; their stamps are kept for a while.
    pub(super) fn clear_port(&mut self, cx: &mut Cx, port: PortNo) {
        let keys: Vec<_> = self.live.range(of_port(port)).map(|(&key, _)| key).collect();
        for key in keys {
            self.remove(cx, key, None);
        }
    }

    /// Returns the stamp of the current controller's decision, if the flow has one.
    pub(super) fn decided(&self, key: Key) -> Option<Stamp> {
        self.live.get(&key).filter(|flow| !flow.inherited).map(|flow| flow.stamp)
    }

    /// Removes a flow that neither table nor software keeps, without a tombstone.
    pub(super) fn let_go(&mut self, key: Key) {
        self.forget_ip(key);
        self.backups.forget(key);
        self.live.remove(&key);
        self.unplaced.remove(&key);
    }

    /// Clears the address of a flow's destination: the next ARP request for it starts a set-up.
    pub(super) fn forget_ip(&mut self, key: Key) {
        if let Some(ip) = self.live.get_mut(&key).and_then(|flow| flow.ip.take()) {
            self.by_ip.remove(&(key.0, key.1.source, ip));
        }
    }

    /// Sets the address of a flow. Each address belongs to one flow of a port, and each flow has
    /// one address.
    pub(super) fn learn_ip(&mut self, key: Key, ip: Option<IpAddr>) {
        let Some(ip) = ip else { return };
        let (port, RouteKey { destination: mac, source, .. }) = key;
        if let Some(other) = self.by_ip.insert((port, source, ip), mac)
            && other != mac
            && let Some(flow) = self.live.get_mut(&(port, RouteKey::to(other).from_source(source)))
        {
            flow.ip = None;
        }
        let Some(flow) = self.live.get_mut(&key) else {
            return;
        };
        if let Some(before) = flow.ip.replace(ip)
            && before != ip
        {
            self.by_ip.remove(&(port, source, before));
        }
    }

    /// Returns the numbers of live flows, software flows and tombstones.
    #[cfg(test)]
    pub(super) fn sizes(&self) -> (usize, usize, usize) {
        assert!(self.by_ip.len() <= self.live.len());
        (self.live.len(), self.unplaced.len(), self.removed.len())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tables::Tables;
    use super::super::test_device::Around;
    use super::super::testing::{TestDevice, ip, mac, stamp};
    use super::*;
    use axon_link::effect::Effect;
    use axon_node::RouteChange;
    use proptest::prelude::*;

    const KEY: Key = (PortNo(0), RouteKey::to(MacAddr([2, 0, 0, 0, 0, 9])));

    fn flows(device: &TestDevice) -> Flows {
        Flows::new(Tables::new(&device.capabilities(), 1))
    }

    /// Carries out the requests of the flows and returns the answers to them, in order.
    fn carry_out(flows: &mut Flows, device: &mut TestDevice, around: &mut Around) {
        for effect in core::mem::take(&mut around.out) {
            if let Effect::Route { ticket, change } = effect {
                let answer = device.change(ticket, &change);
                flows.answered(&mut around.cx(device), answer);
            }
        }
    }

    proptest! {
        #[test]
        fn the_newest_decision_wins_whatever_the_order(
            order in Just((1..=6u64).collect::<Vec<_>>()).prop_shuffle(),
            removals in prop::collection::vec(any::<bool>(), 6),
            repeats in prop::collection::vec(0..6usize, 0..6),
        ) {
            let mut device = TestDevice::new(4);
            let mut flows = flows(&device);
            let mut around = Around::new();
            let again: Vec<_> = repeats.into_iter().map(|index| order[index]).collect();
            for number in order.into_iter().chain(again) {
                let cx = &mut around.cx(&device);
                if removals[number as usize - 1] {
                    flows.remove(cx, KEY, Some(stamp(number)));
                } else {
                    flows.set(cx, KEY, stamp(number), &Route::from([number as u16]), None);
                }
                // Answers arrive late, and several at once.
                if number % 2 == 0 {
                    carry_out(&mut flows, &mut device, &mut around);
                }
            }
            carry_out(&mut flows, &mut device, &mut around);
            let expected = (!removals[5]).then(|| Route::from([6]));
            let route = flows.get(KEY).map(|flow| flow.route.clone());
            prop_assert_eq!(route, expected.clone());
            prop_assert_eq!(device.route(KEY).cloned(), expected);
        }
    }

    #[test]
    fn a_removal_is_remembered_for_a_while_only() {
        let device = TestDevice::new(4);
        let mut flows = flows(&device);
        let mut around = Around::new();
        let cx = &mut around.cx(&device);
        flows.remove(cx, KEY, Some(stamp(5)));
        assert_eq!(flows.set(cx, KEY, stamp(4), &Route::from([1]), None), Verdict::Removed);
        let expiry = flows.removed.next_expiry().unwrap();
        flows.removed.expire(expiry);
        assert_eq!(flows.removed.next_expiry(), None);
        assert_eq!(flows.set(cx, KEY, stamp(4), &Route::from([1]), None), Verdict::Set);
    }

    #[test]
    fn a_route_that_no_header_holds_takes_the_old_one_away() {
        let device = TestDevice::new(4);
        let mut flows = flows(&device);
        let mut around = Around::new();
        let cx = &mut around.cx(&device);
        flows.set(cx, KEY, stamp(1), &Route::from([1]), None);
        assert_eq!(flows.set(cx, KEY, stamp(2), &Route::from([999]), None), Verdict::Unusable);
        assert_eq!(flows.sizes(), (0, 0, 1));
        let last = cx.out.iter().rfind(|effect| matches!(effect, Effect::Route { .. }));
        assert!(matches!(last, Some(Effect::Route { change: RouteChange::Remove { .. }, .. })));
    }

    #[test]
    fn software_keeps_as_many_routes_as_it_may() {
        let device = TestDevice::new(1);
        let mut flows = flows(&device);
        let mut around = Around::new();
        let cx = &mut around.cx(&device);
        let verdicts: Vec<_> = (1..=4)
            .map(|n| {
                let key = (PortNo(0), mac(n).into());
                flows.set(cx, key, stamp(1), &Route::from([1]), Some(ip(n).into()))
            })
            .collect();
        assert_eq!(verdicts, [Verdict::Set, Verdict::Set, Verdict::NotKept, Verdict::NotKept]);
        assert_eq!(flows.sizes(), (2, 1, 0));
        assert_eq!(flows.mac_of(PortNo(0), mac(99), ip(2).into()), Some(mac(2)));
        assert_eq!(flows.mac_of(PortNo(0), mac(99), ip(3).into()), None);
    }

    #[test]
    fn an_address_belongs_to_the_flow_that_learned_it_last() {
        let device = TestDevice::new(4);
        let mut flows = flows(&device);
        let mut around = Around::new();
        let cx = &mut around.cx(&device);
        let route = Route::from([1]);
        flows.set(cx, (PortNo(0), mac(1).into()), stamp(1), &route, Some(ip(1).into()));
        flows.set(cx, (PortNo(0), mac(2).into()), stamp(2), &route, Some(ip(1).into()));
        assert_eq!(flows.mac_of(PortNo(0), mac(99), ip(1).into()), Some(mac(2)));
        flows.remove(cx, (PortNo(0), mac(1).into()), Some(stamp(3)));
        assert_eq!(flows.mac_of(PortNo(0), mac(99), ip(1).into()), Some(mac(2)));
        flows.remove(cx, (PortNo(0), mac(2).into()), Some(stamp(4)));
        assert_eq!(flows.mac_of(PortNo(0), mac(99), ip(1).into()), None);
    }
}
