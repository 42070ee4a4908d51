//! Routes of an earlier incarnation of the controller, or of the switch.
//!
//! A restarted controller has none of the decisions of its previous incarnation. The routes in the
//! tables are kept, so hosts are not interrupted. Each is reported to the new incarnation, on the
//! reliable stream and after the hosts of the switch, as an [`Item::SetRoute`] with its old stamp.
//! The controller decides about each (`takeover.rs`): it takes the route over unchanged, sends
//! another one, or removes it. An inherited route is older than any decision of the current
//! incarnation, whatever its stamp.
//!
//! A switch that restarts on a running data plane finds routes there. Their decisions are unknown,
//! so they are older than any. As soon as a port is known to be a host port, its routes become
//! flows again, are installed in their own place, and are reported with a stamp of zeros. Hosts are
//! not interrupted, because their frames never miss. Routes in route memory are kept too, under the
//! address that hosts were given, whose index is not given again meanwhile. Routes that do not fit
//! are removed. If a port turns out not to be a host port, loses its carrier, or stays unknown for
//! that long, its routes are removed, because a later host there is a different one.
//!
//! A route without a decision for [`Timers::inherited_max`] is removed. Time without a path to the
//! controller does not count.
//!
//! [`Timers::inherited_max`]: axon_link::config::Timers::inherited_max

use super::context::Cx;
use super::decisions::Decisions;
use super::entry_reservations::{Key, of_port};
use super::flows::Flow;
use super::route_installs::{Installer, by_address};
use crate::effect::Effect;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_node::{RouteKey, Snapshot};
use axon_wire::message::Item;
use axon_wire::vlan::VlanId;
use axon_wire::{MacAddr, PortNo, Route, Time};

/// Routes without a decision of the current controller.
#[derive(Clone, Debug, Default)]
pub(super) struct Inherited {
    /// Time when these routes are removed.
    until: Option<Time>,
    /// Routes that the data plane had at the start, at ports of unknown kind, by their address in
    /// its table or route memory.
    found: BTreeMap<Key, Found>,
}

/// A route that the data plane had at the start.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Found {
    /// MAC address of the destination itself.
    destination: MacAddr,
    route: Route,
}

impl Inherited {
    /// Returns when inherited routes are due.
    pub(super) fn until(&self) -> Option<Time> {
        self.until
    }

    /// Handles a new incarnation of the controller: reports all routes to it, and keeps them until
    /// it decides.
    pub(super) fn inherit(
        &mut self,
        cx: &mut Cx,
        decisions: &mut Decisions,
        installer: &mut Installer,
    ) {
        decisions.inherit(installer);
        for (key, flow) in installer.flows().all() {
            claim(cx, key, flow);
        }
        let waits = !installer.flows().is_empty() || !self.found.is_empty();
        self.until = waits.then_some(cx.now + cx.settings.inherited_max);
    }

    /// Records the routes in a VLAN of a data plane that has outlived the previous incarnation.
    /// Call it before anything else.
    pub(super) fn found(&mut self, has: &Snapshot, vlan: VlanId) {
        let all = by_address(has, vlan).into_iter();
        self.found.extend(all.map(|(address, (destination, route))| {
            (address, Found { destination, route: route.clone() })
        }));
    }

    /// Handles a change of carrier. Routes found at a port without carrier are removed; others wait
    /// from now on for at most [`Timers::inherited_max`].
    ///
    /// [`Timers::inherited_max`]: axon_link::config::Timers::inherited_max
    pub(super) fn link(&mut self, cx: &mut Cx, (port, up): (PortNo, bool)) {
        if !up {
            let keys: Vec<Key> = self.found.range(of_port(port)).map(|(&key, _)| key).collect();
            self.give_up(cx, keys);
        }
        if !self.found.is_empty() {
            self.until.get_or_insert(cx.now + cx.settings.inherited_max);
        }
    }

    /// Removes found routes that are no longer usable.
    fn give_up(&mut self, cx: &mut Cx, keys: Vec<Key>) {
        for key in keys {
            self.found.remove(&key);
            cx.tables.take_out(cx.now, cx.out, key);
        }
    }

    /// Handles a port whose kind is known now. At a host port, the routes found there become flows.
    pub(super) fn adopt(&mut self, cx: &mut Cx, installer: &mut Installer, port: PortNo) {
        let addresses: Vec<Key> = self.found.range(of_port(port)).map(|(&key, _)| key).collect();
        // Masqueraded addresses get their indexes before new ones are given.
        let (own, given): (Vec<Key>, Vec<Key>) = addresses.into_iter().partition(|address| {
            self.found.get(address).is_none_or(|is| is.destination == address.1.destination)
        });
        for address in given.into_iter().chain(own) {
            let Some(Found { destination, route }) = self.found.remove(&address) else { continue };
            let key = (port, RouteKey { destination, ..address.1 });
            if !installer.adopt(cx, address, key, &route) {
                continue;
            }
            if let Some(flow) = installer.flows().get(key)
                && cx.controller.is_reachable()
            {
                claim(cx, key, flow);
            }
            self.until.get_or_insert(cx.now + cx.settings.inherited_max);
        }
    }

    /// Returns the number of found routes of a port, and of those in route memory.
    #[cfg(test)]
    pub(super) fn found_on(&self, port: PortNo) -> (usize, usize) {
        let found = || self.found.range(of_port(port));
        let by_index = found().filter(|(key, is)| is.destination != key.1.destination);
        (found().count(), by_index.count())
    }

    /// Removes inherited routes if their time has expired.
    pub(super) fn due(
        &mut self,
        cx: &mut Cx,
        decisions: &mut Decisions,
        installer: &mut Installer,
    ) {
        if self.until.is_none_or(|until| until > cx.now) {
            return;
        }
        // The port's kind would be known by now, with or without a controller.
        self.give_up(cx, self.found.keys().copied().collect());
        if !cx.controller.is_reachable() {
            let waits = !installer.flows().inherited().is_empty();
            self.until = waits.then_some(cx.now + cx.settings.inherited_max);
            return;
        }
        self.until = None;
        for key in installer.flows().inherited() {
            cx.counters.routes_unconfirmed += 1;
            decisions.remove(cx, installer, key, None);
            installer.promote(cx, key.0);
        }
    }
}

/// Reports a route to the controller.
fn claim(cx: &mut Cx, (port, key): Key, flow: &Flow) {
    let RouteKey { destination, source, .. } = key;
    let (stamp, route) = (flow.stamp, flow.route.clone());
    cx.out.push(Effect::Report(Item::SetRoute { port, destination, source, stamp, route }));
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use axon_node::{Masqueraded, PortKind, PortSnapshot};
    use axon_wire::message::Stamp;
    use axon_wire::{Incarnation, PortNo, Span};

    const NEXT: Incarnation = Incarnation { number: CONTROLLER.number + 1, ..CONTROLLER };

    fn decided(number: u64) -> Stamp {
        Stamp { epoch: NEXT.number, number }
    }

    fn set(host: u8, number: u64, hop: u16) -> Item {
        let route = Route::from([hop]);
        Item::SetRoute {
            port: PortNo(0),
            destination: mac(host),
            source: None,
            stamp: decided(number),
            route,
        }
    }

    /// Returns the routes that the edge reports.
    fn claims(effects: &[Effect]) -> Vec<Item> {
        let claim = |effect: &Effect| match effect {
            Effect::Report(item @ Item::SetRoute { .. }) => Some(item.clone()),
            _ => None,
        };
        effects.iter().filter_map(claim).collect()
    }

    /// An edge with one host and routes to hosts 8 and 9, the second with an address.
    fn bench() -> Bench {
        let mut bench = Bench::new();
        bench.host(0, 1);
        bench.set_route(0, 8, 1, 3);
        let request = asked(&bench.frame(0, &arp_request(1, 9)));
        bench.reply(answer_to(request, 2));
        bench
    }

    /// Advances time, while host 1 answers its probes.
    fn pass(bench: &mut Bench, span: Span) {
        let until = bench.now + span;
        while bench.now < until {
            bench.pass(Span::from_secs(1));
            bench.host(0, 1);
        }
    }

    #[test]
    fn routes_stay_until_the_new_incarnation_decides_and_are_reported_after_the_hosts() {
        let mut bench = bench();
        let effects = bench.controller(Some(NEXT));
        let report = |effect: &Effect| matches!(effect, Effect::Report(Item::HostSeen { .. }));
        let routes = claims(&effects);
        let first = effects.iter().position(|e| matches!(e, Effect::Report(Item::SetRoute { .. })));
        assert!(effects.iter().rposition(report) < first);
        let (port, route) = (PortNo(0), Route::from([3]));
        let old =
            Item::SetRoute { port, destination: mac(8), source: None, stamp: stamp(1), route };
        assert_eq!((routes.len(), &routes[0]), (2, &old));
        assert_eq!(bench.placed(0, 8), Some(Route::from([3])));
        assert_eq!(bench.placed(0, 9), Some(Route::from([3, 4])));
        // Decisions of the old controller no longer count, and any of the new one does.
        bench.set_route(0, 8, 99, 7);
        assert_eq!(bench.placed(0, 8), Some(Route::from([3])));
        bench.item(set(8, 1, 5));
        assert_eq!(bench.placed(0, 8), Some(Route::from([5])));
        let stamp = decided(2);
        bench.item(Item::RemoveRoute { port, destination: mac(9), source: None, stamp });
        assert_eq!((bench.placed(0, 9), bench.places(0)), (None, 1));
    }

    #[test]
    fn a_route_that_is_taken_over_is_not_installed_again_and_its_address_is_asked_for_anew() {
        let mut bench = bench();
        bench.controller(Some(NEXT));
        let cached = bench.frame(0, &arp_request(1, 9));
        assert_eq!(arps(&cached).len(), 1, "answered from the flow");
        bench.tables.refuses = 1;
        let route = Route::from([3, 4]);
        let (port, destination, stamp) = (PortNo(0), mac(9), decided(1));
        bench.item(Item::SetRoute { port, destination, source: None, stamp, route: route.clone() });
        assert_eq!(bench.tables.refuses, 1, "the data plane was not asked");
        assert_eq!(bench.placed(0, 9), Some(route));
        asked(&bench.frame(0, &arp_request(1, 9)));
        pass(&mut bench, Span::from_secs(60));
        assert_eq!(bench.edge.plain().flows().count(), 1, "the other was not");
    }

    #[test]
    fn what_nobody_decides_about_goes_after_a_deadline_that_waits_for_the_controller() {
        let mut bench = bench();
        bench.controller(Some(NEXT));
        pass(&mut bench, Span::from_secs(10));
        bench.controller(None);
        pass(&mut bench, Span::from_secs(300));
        assert_eq!(bench.edge.plain().flows().count(), 2, "without a controller they stay");
        bench.controller(Some(NEXT));
        let inherited_max = bench.edge.plain_mut().settings().inherited_max;
        pass(&mut bench, inherited_max);
        assert_eq!(bench.edge.plain().flows().count(), 0);
        assert_eq!((bench.places(0), bench.edge.counters().routes_unconfirmed), (0, 2));
        bench.item(set(8, 1, 5));
        assert_eq!(bench.placed(0, 8), Some(Route::from([5])), "a late decision counts");
    }

    /// A restarted edge on a data plane with routes to hosts 8 and 9 at port 0 and to host 8 at
    /// port 1. The kinds of its ports are not known yet.
    fn reborn() -> Bench {
        let mut bench = Bench::new();
        bench.tables.kinds[..2].fill(PortKind::Unknown);
        let mut has = Snapshot { ports: alloc::vec![PortSnapshot::default(); 4] };
        for (port, host, hop) in [(0, 8, 3), (0, 9, 4), (1, 8, 5)] {
            bench.tables.routes.insert((PortNo(port), mac(host).into()), Route::from([hop]));
            has.ports[usize::from(port)].routes.push((mac(host).into(), Route::from([hop])));
        }
        bench.edge.found(&has);
        bench
    }

    #[test]
    fn routes_that_outlived_the_switch_are_flows_of_their_port_and_are_decided_about() {
        let mut bench = reborn();
        assert_eq!(bench.edge.plain().flows().count(), 0, "nothing is known of their ports");
        let old = |port, host, hop| Item::SetRoute {
            port: PortNo(port),
            destination: mac(host),
            source: None,
            stamp: Stamp::default(),
            route: Route::from([hop]),
        };
        assert_eq!(claims(&bench.port(0, Some(PortKind::Host))), [old(0, 8, 3), old(0, 9, 4)]);
        assert_eq!(claims(&bench.port(0, Some(PortKind::Host))), [], "once");
        assert_eq!((bench.placed(0, 8), bench.places(0)), (Some(Route::from([3])), 2));
        // Hosts have their routes from the first frame on.
        let frame = udp_frame(mac(9), mac(1), 1);
        bench.frame(0, &frame);
        assert_eq!(bench.sent, [(PortNo(0), Route::from([4]), frame)]);
        bench.set_route(0, 8, 1, 3);
        bench.set_route(0, 9, 2, 7);
        assert_eq!((bench.placed(0, 8), bench.placed(0, 9)), (Some([3].into()), Some([7].into())));
        pass(&mut bench, Span::from_secs(60));
        assert_eq!(bench.edge.plain().flows().filter(|(port, ..)| *port == PortNo(0)).count(), 2);
        // There is a switch.
        assert_eq!(claims(&bench.port(1, Some(PortKind::Axon))), []);
        assert_eq!(bench.placed(1, 8), None);
        assert_eq!(claims(&bench.port(1, Some(PortKind::Host))), [], "what was there is over");
    }

    /// Returns the address of an index that the previous incarnation has given.
    fn given(index: u16, generation: u32) -> MacAddr {
        axon_wire::masquerade::address(index, generation)
    }

    /// A restarted edge with one place in the table and four indexes, on a data plane with routes
    /// to host 8 in its table, and to 9, 7 and others in its route memory.
    fn reborn_masquerading(memory: &[(MacAddr, u8)]) -> Bench {
        let mut bench = Bench::masquerading(1, 4);
        bench.tables.kinds[0] = PortKind::Unknown;
        let mut has = Snapshot { ports: alloc::vec![PortSnapshot::default(); 4] };
        let is = &mut has.ports[0];
        bench.tables.routes.insert((PortNo(0), mac(8).into()), Route::from([3]));
        is.routes.push((mac(8).into(), Route::from([3])));
        for &(mac_given, host) in memory {
            let (destination, route) = (mac(host), Route::from([u16::from(host)]));
            bench.tables.memory.insert((PortNo(0), mac_given), (destination, route.clone()));
            is.masqueraded.push(Masqueraded { key: mac_given.into(), destination, route });
        }
        bench.edge.found(&has);
        bench
    }

    #[test]
    fn masqueraded_macs_that_outlived_the_switch_go_on_and_no_index_of_them_is_given_anew() {
        let mut bench = reborn_masquerading(&[(given(1, 5), 9), (given(3, 2), 7)]);
        let claimed = claims(&bench.port(0, Some(PortKind::Host)));
        let to = |item: &Item| match item {
            Item::SetRoute { destination, .. } => *destination,
            item => panic!("{item:?}"),
        };
        let claimed: Vec<MacAddr> = claimed.iter().map(to).collect();
        assert_eq!(claimed, [mac(7), mac(9), mac(8)], "the controller knows no masqueraded MACs");
        let masquerade = |bench: &Bench, host| bench.edge.masquerade_of(PortNo(0), mac(host));
        assert_eq!(masquerade(&bench, 9), Some(given(1, 5)));
        assert_eq!(masquerade(&bench, 7), Some(given(3, 2)));
        assert_eq!(masquerade(&bench, 8), None);
        // Other hosts get the free indexes.
        bench.host(0, 1);
        for host in [10, 11] {
            bench.set_route(0, host, 1, 3);
            let index = axon_wire::masquerade::index_of(masquerade(&bench, host).unwrap());
            assert_eq!(index, Some(2 * u16::from(host - 10)));
        }
        // Unconfirmed routes are removed, and the next destination has another generation at that
        // index.
        bench.set_route(0, 8, 2, 3);
        bench.set_route(0, 9, 3, 9);
        let inherited_max = bench.edge.plain_mut().settings().inherited_max;
        pass(&mut bench, inherited_max);
        assert!(!bench.tables.memory.contains_key(&(PortNo(0), given(3, 2))), "unconfirmed");
        assert!(bench.tables.memory.contains_key(&(PortNo(0), given(1, 5))), "confirmed");
        bench.set_route(0, 12, 4, 3);
        assert_eq!(masquerade(&bench, 12), Some(given(3, 3)));
    }

    #[test]
    fn masqueraded_macs_that_outlived_the_switch_and_cannot_go_on_are_removed() {
        // For a host that is in the table, beyond the route memory, twice at one index, twice for
        // one host: in the order of the addresses.
        let memory = [
            (given(2, 0), 8),
            (given(4, 0), 9),
            (given(0, 1), 10),
            (given(0, 2), 11),
            (given(1, 3), 10),
        ];
        let mut bench = reborn_masquerading(&memory);
        bench.port(0, Some(PortKind::Host));
        let left: Vec<MacAddr> = bench.tables.memory.keys().map(|key| key.1).collect();
        assert_eq!(left, [given(2, 0), given(0, 1)], "the first of each counts");
        assert_eq!(bench.placed(0, 8), None, "it is in route memory");
        bench.host(0, 1);
        assert_eq!(bench.edge.plain().flows().count(), 2);
    }

    #[test]
    fn masqueraded_macs_that_outlived_the_switch_end_with_their_port() {
        let memory = [(given(1, 5), 9)];
        let end: [fn(&mut Bench); 3] = [
            |bench| drop(bench.link(0, false)),
            |bench| drop(bench.port(0, Some(PortKind::Axon))),
            |bench| {
                bench.link(2, true);
                let inherited_max = bench.edge.plain_mut().settings().inherited_max;
                bench.pass(inherited_max);
            },
        ];
        for end in end {
            let mut bench = reborn_masquerading(&memory);
            end(&mut bench);
            assert!(bench.tables.memory.is_empty() && bench.tables.is_empty());
            assert_eq!(claims(&bench.port(0, Some(PortKind::Host))), []);
        }
    }

    #[test]
    fn routes_that_outlived_the_switch_are_reported_to_a_controller_that_is_met_later() {
        let mut bench = reborn();
        bench.controller(None);
        assert_eq!(claims(&bench.port(0, Some(PortKind::Host))), []);
        pass(&mut bench, Span::from_secs(300));
        assert_eq!(bench.edge.plain().flows().count(), 2, "without a controller they stay");
        assert_eq!(claims(&bench.controller(Some(NEXT))).len(), 2);
        let inherited_max = bench.edge.plain_mut().settings().inherited_max;
        pass(&mut bench, inherited_max);
        assert_eq!(
            (bench.edge.plain().flows().count(), bench.placed(0, 8)),
            (0, None),
            "undecided"
        );
    }

    #[test]
    fn routes_that_outlived_the_switch_end_with_the_carrier_of_their_port() {
        let mut bench = reborn();
        bench.link(0, false);
        assert_eq!(bench.placed(0, 8), None, "the data plane has lost it too");
        bench.link(0, true);
        assert_eq!(claims(&bench.port(0, Some(PortKind::Host))), [], "another host");
        assert_eq!(bench.edge.plain().flows().count(), 0);
        bench.link(1, true);
        assert_eq!(claims(&bench.port(1, Some(PortKind::Host))).len(), 1, "another port");
    }

    #[test]
    fn routes_that_outlived_the_switch_do_not_wait_for_ever_for_their_port() {
        for met in [false, true] {
            let mut bench = reborn();
            bench.controller(met.then_some(NEXT));
            bench.link(2, true);
            let inherited_max = bench.edge.plain_mut().settings().inherited_max;
            bench.pass(inherited_max);
            assert_eq!((bench.placed(0, 8), bench.placed(1, 8)), (None, None));
            assert_eq!(claims(&bench.port(0, Some(PortKind::Host))), []);
            assert_eq!(bench.edge.plain().flows().count(), 0);
        }
    }

    #[test]
    fn a_set_up_that_was_open_keeps_its_place_through_the_change() {
        let mut bench = bench();
        let open = asked(&bench.frame(0, &arp_request(1, 7)));
        assert_eq!(bench.places(0), 3);
        assert_eq!(asked(&bench.controller(Some(NEXT))), open, "asked again");
        assert_eq!(bench.places(0), 3);
    }
}
