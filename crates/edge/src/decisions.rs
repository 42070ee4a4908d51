//! Decisions of the controller about the flows of local hosts, and removals.
//!
//! Messages about one flow take different paths and arrive in any order. Each carries the stamp of
//! the controller's decision. The newest stamp of each flow is kept with its route, or, for a
//! while, without one after a removal (a tombstone). Messages that are not newer change nothing.
//!
//! A route without frames for some time is removed, which frees its room at the edge and the
//! controller.

use super::context::Cx;
use super::entry_reservations::Key;
use super::failover::{Backups, is_from};
use super::flows::Flow;
use super::hosts::Hosts;
use super::route_installs::Installer;
use super::tables::Tables;
use super::tombstones::Tombstones;
use crate::effect::Effect;
use axon_node::{RouteAnswer, RouteKey};
use axon_wire::message::{Item, LinkEnd, RoutePath, Stamp};
use axon_wire::{PortNo, Route, Time};
use core::net::IpAddr;

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

/// Decision of the controller for a route.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decision<'a> {
    pub(super) key: Key,
    pub(super) stamp: Stamp,
    pub(super) route: &'a Route,
    /// Address of the destination, if the decision answers a request for it.
    pub(super) ip: Option<IpAddr>,
}

/// State of decisions besides the flows themselves.
#[derive(Clone, Debug)]
pub(super) struct Decisions {
    removed: Tombstones,
    backups: Backups,
}

impl Decisions {
    /// Creates the state without decisions, for the flows of these tables.
    pub(super) fn new(tables: &Tables) -> Decisions {
        // The table's routes and the software routes each may have a backup.
        let backups_max = tables.placed_max().saturating_add(tables.per_port_max());
        Decisions { removed: Tombstones::default(), backups: Backups::new(backups_max) }
    }

    pub(super) fn backups(&self) -> &Backups {
        &self.backups
    }

    /// Sets a route. A port without hosts gets none, and no route leads to the control plane.
    pub(super) fn set_route(
        &mut self,
        cx: &mut Cx,
        installer: &mut Installer,
        hosts: &Hosts,
        decision: Decision,
    ) -> Verdict {
        let Decision { key, stamp, .. } = decision;
        if hosts.count_on(key.0) == 0 || !cx.settings.is_host_mac(key.1.destination) {
            if cx.ports.is_host(key.0) {
                self.remove(cx, installer, key, Some(stamp));
            }
            return Verdict::Unusable;
        }
        installer.evade(cx, key.0, key.1.destination);
        let verdict = self.set(cx, installer, decision);
        // The controller may have decided before it received the loss of a link.
        self.use_backup(cx, installer, key);
        verdict
    }

    /// Sets a route that the controller has decided.
    fn set(&mut self, cx: &mut Cx, installer: &mut Installer, decision: Decision) -> Verdict {
        let Decision { key, stamp, route, ip } = decision;
        if installer.confirm(cx, (key, stamp), route, ip) {
            return Verdict::Set;
        }
        if installer.flows().decided(key).is_some_and(|known| known >= stamp) {
            installer.learn_ip(cx, key, ip);
            return Verdict::Known;
        }
        if self.removed.get(key).is_some_and(|newest| newest >= stamp) {
            return Verdict::Removed;
        }
        if !cx.tables.can_hold(cx.ports, key.0, route) {
            // The later decision counts, even if it cannot be used.
            self.remove(cx, installer, key, Some(stamp));
            return Verdict::Unusable;
        }
        if !installer.set(cx, (key, stamp), route, ip) {
            return Verdict::NotKept;
        }
        self.removed.remove(key);
        Verdict::Set
    }

    /// Removes a route. A stamp that is not newer than the flow's changes nothing. Without a stamp
    /// the flow ends at once, and only newer decisions can restore it.
    pub(super) fn remove(
        &mut self,
        cx: &mut Cx,
        installer: &mut Installer,
        key: Key,
        stamp: Option<Stamp>,
    ) {
        let known = installer.flows().decided(key).max(self.removed.get(key));
        if stamp.is_some() && stamp <= known {
            return;
        }
        let of_flow = installer.flows().get(key).map(|flow| flow.stamp);
        let Some(newest) = stamp.or(known).or(of_flow) else {
            return;
        };
        self.backups.forget(key);
        installer.remove(cx, key);
        self.removed.insert(cx.now, key, newest);
    }

    /// Removes all flows of one port; their stamps are kept for a while.
    pub(super) fn clear_port(&mut self, cx: &mut Cx, installer: &mut Installer, port: PortNo) {
        for key in installer.flows().on_port(port) {
            self.remove(cx, installer, key, None);
        }
    }

    /// Removes these routes, which have no frames, and reports that to the controller.
    pub(super) fn remove_idle(&mut self, cx: &mut Cx, installer: &mut Installer, idle: &[Key]) {
        for &key in idle {
            let Some(stamp) = installer.flows().get(key).map(|flow| flow.stamp) else {
                continue;
            };
            // The stamp is remembered, so that only a newer decision restores the route.
            self.remove(cx, installer, key, None);
            let (port, RouteKey { destination, source, .. }) = key;
            cx.out.push(Effect::Report(Item::RemoveRoute { port, destination, source, stamp }));
            cx.counters.routes_aged += 1;
        }
        for port in (0..cx.ports.count()).map(PortNo) {
            installer.promote(cx, port);
        }
    }

    /// Handles an answer of the data plane.
    pub(super) fn answered(&mut self, cx: &mut Cx, installer: &mut Installer, answer: RouteAnswer) {
        if let Some(key) = installer.answered(cx, answer) {
            self.backups.forget(key);
        }
    }

    /// Forgets old removals.
    pub(super) fn timeout(&mut self, now: Time) {
        self.removed.expire(now);
    }

    /// Returns when [`Decisions::timeout`] is due next.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.removed.next_expiry()
    }

    /// Makes all flows inherited ones: a new incarnation of the controller restarts its numbers,
    /// and backups of the previous one may violate a rule of the new one.
    pub(super) fn inherit(&mut self, installer: &mut Installer) {
        self.removed.clear();
        self.backups.clear();
        installer.inherit();
    }

    /// Handles the controller's command to set or remove a backup.
    pub(super) fn set_backup(
        &mut self,
        cx: &mut Cx,
        installer: &mut Installer,
        key: Key,
        (primary, backup): (RoutePath, Option<RoutePath>),
    ) {
        self.backups.forget(key);
        let Some(backup) = backup else { return };
        let sound = cx.ports.is_host(key.0)
            && [&primary, &backup].into_iter().all(|path| is_from(cx.settings.node, path))
            && cx.tables.can_hold(cx.ports, key.0, &backup.route);
        let is_live = |key| installer.flows().get(key).is_some();
        if !sound || !self.backups.set(key, (primary, backup), is_live) {
            cx.counters.messages_ignored += 1;
            return;
        }
        self.use_backup(cx, installer, key);
    }

    /// Switches every flow over this lost link to its backup route.
    pub(super) fn fail_over(&mut self, cx: &mut Cx, installer: &mut Installer, ends: [LinkEnd; 2]) {
        for key in self.backups.over(ends) {
            self.use_backup(cx, installer, key);
        }
    }

    /// Switches a flow to its backup, if it has one for its current route and a link of that is
    /// down.
    fn use_backup(&mut self, cx: &mut Cx, installer: &mut Installer, key: Key) {
        let flow = installer.flows().get(key).filter(|flow: &&Flow| !flow.inherited);
        let backup = flow.and_then(|flow| self.backups.take((cx.now, cx.down), key, &flow.route));
        let Some(route) = backup else { return };
        let Some(stamp) = installer.reroute(cx, key, &route) else { return };
        let (port, RouteKey { destination, source, .. }) = key;
        cx.out.push(Effect::Report(Item::BackupUsed { port, destination, source, stamp, route }));
        cx.counters.backups_used += 1;
    }

    /// Returns the number of remembered removals.
    #[cfg(test)]
    pub(super) fn removed(&self) -> usize {
        self.removed.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::flows::ROUTE_LOOK;
    use super::super::test_device::Around;
    use super::super::testing::*;
    use super::*;
    use alloc::vec::Vec;
    use axon_node::RouteChange;
    use axon_wire::{MacAddr, Span};
    use proptest::prelude::*;

    const KEY: Key = (PortNo(0), RouteKey::to(MacAddr([2, 0, 0, 0, 0, 9])));

    struct Flows {
        decisions: Decisions,
        installer: Installer,
    }

    fn flows(device: &TestDevice) -> (Flows, Around) {
        let around = Around::new(&device.capabilities());
        let tables = &around.tables;
        let flows = Flows { decisions: Decisions::new(tables), installer: Installer::new(tables) };
        (flows, around)
    }

    impl Flows {
        fn set(
            &mut self,
            cx: &mut Cx,
            (key, number): (Key, u64),
            route: &Route,
            ip: Option<IpAddr>,
        ) -> Verdict {
            let decision = Decision { key, stamp: stamp(number), route, ip };
            self.decisions.set(cx, &mut self.installer, decision)
        }

        fn remove(&mut self, cx: &mut Cx, key: Key, number: u64) {
            self.decisions.remove(cx, &mut self.installer, key, Some(stamp(number)));
        }

        fn mac_of(&self, host: u8) -> Option<MacAddr> {
            self.installer.flows().mac_of(PortNo(0), mac(99), ip(host).into())
        }
    }

    /// Carries out the requests of the flows and returns the answers to them, in order.
    fn carry_out(flows: &mut Flows, device: &mut TestDevice, around: &mut Around) {
        for effect in core::mem::take(&mut around.out) {
            if let Effect::Route { ticket, change } = effect {
                let answer = device.change(ticket, &change);
                let cx = &mut around.cx(device);
                flows.decisions.answered(cx, &mut flows.installer, answer);
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
            let (mut flows, mut around) = flows(&device);
            let again: Vec<_> = repeats.into_iter().map(|index| order[index]).collect();
            for number in order.into_iter().chain(again) {
                let cx = &mut around.cx(&device);
                if removals[number as usize - 1] {
                    flows.remove(cx, KEY, number);
                } else {
                    flows.set(cx, (KEY, number), &Route::from([number as u16]), None);
                }
                // Answers arrive late, and several at once.
                if number % 2 == 0 {
                    carry_out(&mut flows, &mut device, &mut around);
                }
            }
            carry_out(&mut flows, &mut device, &mut around);
            let expected = (!removals[5]).then(|| Route::from([6]));
            let route = flows.installer.flows().get(KEY).map(|flow| flow.route.clone());
            prop_assert_eq!(route, expected.clone());
            prop_assert_eq!(device.route(KEY).cloned(), expected);
        }
    }

    #[test]
    fn a_removal_is_remembered_for_a_while_only() {
        let device = TestDevice::new(4);
        let (mut flows, mut around) = flows(&device);
        let cx = &mut around.cx(&device);
        flows.remove(cx, KEY, 5);
        assert_eq!(flows.set(cx, (KEY, 4), &Route::from([1]), None), Verdict::Removed);
        let expiry = flows.decisions.removed.next_expiry().unwrap();
        flows.decisions.removed.expire(expiry);
        assert_eq!(flows.decisions.removed.next_expiry(), None);
        assert_eq!(flows.set(cx, (KEY, 4), &Route::from([1]), None), Verdict::Set);
    }

    #[test]
    fn a_route_that_no_header_holds_takes_the_old_one_away() {
        let device = TestDevice::new(4);
        let (mut flows, mut around) = flows(&device);
        let cx = &mut around.cx(&device);
        flows.set(cx, (KEY, 1), &Route::from([1]), None);
        assert_eq!(flows.set(cx, (KEY, 2), &Route::from([999]), None), Verdict::Unusable);
        assert_eq!((flows.installer.flows().sizes(), flows.decisions.removed()), ((0, 0), 1));
        let last = cx.out.iter().rfind(|effect| matches!(effect, Effect::Route { .. }));
        assert!(matches!(last, Some(Effect::Route { change: RouteChange::Remove { .. }, .. })));
    }

    #[test]
    fn software_keeps_as_many_routes_as_it_may() {
        let device = TestDevice::new(1);
        let (mut flows, mut around) = flows(&device);
        let cx = &mut around.cx(&device);
        let verdicts: Vec<_> = (1..=4)
            .map(|n| {
                let key = (PortNo(0), mac(n).into());
                flows.set(cx, (key, 1), &Route::from([1]), Some(ip(n).into()))
            })
            .collect();
        assert_eq!(verdicts, [Verdict::Set, Verdict::Set, Verdict::NotKept, Verdict::NotKept]);
        assert_eq!((flows.installer.flows().sizes(), flows.decisions.removed()), ((2, 1), 0));
        assert_eq!(flows.mac_of(2), Some(mac(2)));
        assert_eq!(flows.mac_of(3), None);
    }

    #[test]
    fn an_address_belongs_to_the_flow_that_learned_it_last() {
        let device = TestDevice::new(4);
        let (mut flows, mut around) = flows(&device);
        let cx = &mut around.cx(&device);
        let route = Route::from([1]);
        flows.set(cx, ((PortNo(0), mac(1).into()), 1), &route, Some(ip(1).into()));
        flows.set(cx, ((PortNo(0), mac(2).into()), 2), &route, Some(ip(1).into()));
        assert_eq!(flows.mac_of(1), Some(mac(2)));
        flows.remove(cx, (PortNo(0), mac(1).into()), 3);
        assert_eq!(flows.mac_of(1), Some(mac(2)));
        flows.remove(cx, (PortNo(0), mac(2).into()), 4);
        assert_eq!(flows.mac_of(1), None);
    }

    /// Runs one check, with only these destinations in use. Returns those reported as removed.
    fn look(bench: &mut Bench, used: &[u8]) -> Vec<MacAddr> {
        bench.now += ROUTE_LOOK;
        let is_used = |_, key| used.iter().any(|&host| key == mac(host).into());
        let idle = bench.edge.age(bench.now, is_used);
        let removed = |effect: &Effect| match effect {
            Effect::Report(Item::RemoveRoute { destination, .. }) => Some(*destination),
            _ => None,
        };
        bench.remove_idle(&idle).iter().filter_map(removed).collect()
    }

    #[test]
    fn a_route_that_no_frame_takes_is_removed_and_makes_room_for_one_in_software() {
        let mut bench = Bench::with(2, 1000, 4);
        bench.host(0, 1);
        for (number, host) in [(1, 7), (2, 8), (3, 9)] {
            bench.set_route(0, host, number, 1);
        }
        assert_eq!(bench.placed(0, 9), None, "the table has two places");
        bench.frame(0, &udp_frame(mac(9), mac(1), 0));
        assert_eq!(look(&mut bench, &[7]), [mac(8)], "software has sent a frame to host 9");
        assert_eq!(bench.placed(0, 9), Some(Route::from([1])));
        assert_eq!(look(&mut bench, &[7, 9]), []);
        assert_eq!(look(&mut bench, &[]), [mac(7), mac(9)]);
        assert!(!bench.edge.has_flows());
        assert_eq!(bench.edge.counters().routes_aged, 3);
        bench.set_route(0, 7, 1, 1);
        assert!(!bench.edge.has_flows(), "a late message of the old route");
        bench.set_route(0, 7, 4, 1);
        assert!(bench.edge.has_flows(), "a new decision");
    }

    #[test]
    fn a_route_that_was_set_since_the_last_look_stays_and_without_a_controller_all_do() {
        let mut bench = Bench::new();
        bench.host(0, 1);
        bench.set_route(0, 7, 1, 1);
        bench.now += Span::from_secs(1);
        bench.set_route(0, 8, 2, 1);
        bench.now = Time::from_ticks(bench.now.ticks() - Span::from_secs(1).ticks());
        assert_eq!(look(&mut bench, &[]), [mac(7)]);
        bench.controller(None);
        assert_eq!(look(&mut bench, &[]), []);
        bench.controller(Some(CONTROLLER));
        assert_eq!(look(&mut bench, &[]), [mac(8)]);
    }
}
