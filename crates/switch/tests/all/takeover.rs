//! Decisions of a controller about routes of its previous incarnation.

use axon_controller::Controller;
use axon_controller::config::{ControllerConfig, DhcpConfig};
use axon_controller::policy::Policy;
use axon_controller::router::RouterKind;
use axon_controller::{Effect, Effects};
use axon_link::config::{NodeConfig, ServerIdentity, Timers};
use axon_wire::message::{ControllerHello, Item, Peer, PortState, Role, Stamp};
use axon_wire::vlan::VlanId;
use axon_wire::{Hops, Incarnation, Layer, MacAddr, NodeId, PortNo, Route, Span, Time};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

const EPOCH: u64 = 3;
/// The port of each switch's one host.
const HOST: u16 = 9;

/// Switches 1 to 4 in a ring, port 1 clockwise, port 2 counter-clockwise; host n at switch n.
struct Ring {
    controller: Controller,
    now: Time,
    out: Effects,
    version: u64,
}

fn mac(host: u64) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, host as u8])
}

fn incarnation(node: u64) -> Incarnation {
    Incarnation { node: NodeId(node), number: 1 }
}

fn stamp(epoch: u64) -> Stamp {
    Stamp { epoch, number: 77 }
}

impl Ring {
    fn new(router: &str) -> Ring {
        let mac = MacAddr([2, 255, 0, 0, 0, 1]);
        let config = ControllerConfig {
            node: NodeConfig {
                incarnation: Incarnation { node: NodeId(1000), number: EPOCH },
                mac,
                keys: [0; 32].into(),
                seed: 1,
                timers: Timers::default(),
                server: ServerIdentity { mac, ip: Ipv4Addr::new(10, 0, 0, 254) },
            },
            dhcp: DhcpConfig {
                prefix_len: 24,
                pool_first: Ipv4Addr::new(10, 0, 0, 100),
                pool_last: Ipv4Addr::new(10, 0, 0, 120),
                lease: Span::from_secs(3600),
                leases_per_port_max: 16,
                reservations: BTreeMap::new(),
                router: None,
                dns: Vec::new(),
                domain: None,
                mtu: None,
                clients: BTreeMap::new(),
                relay: None,
            },
            router: RouterKind::named(router).unwrap(),
            layers: 2,
            policy: Policy::default(),
            by_source: Default::default(),
            backups: true,
            dhcpv6: None,
            uplinks: Vec::new(),
            vlans: Default::default(),
            bonds: Vec::new(),
        };
        let controller = Controller::new(&config, 100);
        Ring { controller, now: Time::ZERO, out: Vec::new(), version: 0 }
    }

    /// A ring that is known, with its hosts.
    fn known(router: &str) -> Ring {
        let mut ring = Ring::new(router);
        (1..=4).for_each(|node| ring.hello(node, &[1, 2]));
        (1..=4).for_each(|node| ring.seen(node, node));
        ring
    }

    /// A switch reports these of its links in the ring.
    fn hello(&mut self, node: u64, ports: &[u16]) {
        let state = |&port: &u16| {
            let (peer, there) = if port == 1 { (node % 4 + 1, 2) } else { ((node + 2) % 4 + 1, 1) };
            let peer = Peer::Axon { node: NodeId(peer), port: PortNo(there), role: Role::Switch };
            PortState { port: PortNo(port), peer }
        };
        self.says(node, ports.iter().map(state).collect());
    }

    /// A switch reports its ports.
    fn says(&mut self, node: u64, ports: Vec<PortState>) {
        self.version += 1;
        let hello = ControllerHello { version: self.version, nonce: 0, ports };
        let (from, reverse) = (incarnation(node), Hops::from([0, PortNo::CONTROL.0]));
        self.controller.controller_hello(self.now, from, reverse, hello, &mut self.out);
    }

    fn seen(&mut self, node: u64, host: u64) {
        let ips = vec![IpAddr::V4(Ipv4Addr::new(10, 0, 0, host as u8))];
        let item = Item::HostSeen { port: PortNo(HOST), mac: mac(host), ips };
        self.controller.item(self.now, incarnation(node), (VlanId::NONE, item), &mut self.out);
    }

    /// A switch reports its route to a host.
    fn has(&mut self, node: u64, to: u64, route: &Route) {
        let (port, destination, route) = (PortNo(HOST), mac(to), route.clone());
        let item =
            Item::SetRoute { port, destination, source: None, stamp: stamp(EPOCH - 1), route };
        self.controller.item(self.now, incarnation(node), (VlanId::NONE, item), &mut self.out);
    }

    /// Returns the decisions of the controller within `after`: switch, host, route.
    fn decided(&mut self, after: Span) -> Vec<(u64, u64, Option<Route>)> {
        let end = self.now + after;
        while let Some(next) = self.controller.deadline().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.controller.timeout(self.now, &mut self.out);
        }
        self.now = end;
        let decision = |(_, effect): (VlanId, Effect)| match effect {
            Effect::Command { to, item: Item::SetRoute { destination, stamp, route, .. } } => {
                assert_eq!(stamp.epoch, EPOCH);
                Some((to.0, u64::from(destination.0[5]), Some(route)))
            }
            Effect::Command { to, item: Item::RemoveRoute { destination, stamp, .. } } => {
                assert_eq!(stamp.epoch, EPOCH);
                Some((to.0, u64::from(destination.0[5]), None))
            }
            _ => None,
        };
        std::mem::take(&mut self.out).into_iter().filter_map(decision).collect()
    }

    /// Routes kept, moved, removed and pending.
    fn counts(&self) -> (u64, u64, u64, u64) {
        let counts = self.controller.restored();
        let [kept, moved, removed] =
            [counts.routes_kept, counts.routes_moved, counts.routes_removed];
        (kept, moved, removed, counts.routes_pending)
    }
}

#[test]
fn a_route_waits_for_the_switches_and_hosts_on_it_and_is_then_taken_over_as_it_is() {
    let mut ring = Ring::new("shortest_path");
    // The longer way around, which this router would not choose.
    let route = Route::from([2, 2, 2, HOST]);
    ring.hello(1, &[1, 2]);
    ring.seen(1, 1);
    ring.has(1, 2, &route);
    assert_eq!(ring.decided(Span::from_secs(1)), []);
    ring.hello(2, &[1, 2]);
    ring.seen(2, 2);
    assert_eq!(ring.decided(Span::from_secs(1)), [], "there is a path, but not all is known");
    ring.hello(4, &[1, 2]);
    ring.hello(3, &[1, 2]);
    assert_eq!(ring.decided(Span::from_millis(250)), [], "the graph has just changed");
    assert_eq!(ring.decided(Span::from_secs(1)), [(1, 2, Some(route))]);
    assert_eq!(ring.counts(), (1, 0, 0, 0));
    assert_eq!(ring.controller.flows().len(), 1, "it follows it from now on");
    ring.hello(4, &[2]);
    let moved = ring.decided(Span::ZERO);
    assert_eq!(moved, [(1, 2, Some(Route::from([1, HOST])))], "as when a link of it is cut");
}

#[test]
fn a_route_over_a_dead_link_or_to_the_old_place_of_a_host_is_replaced() {
    let mut ring = Ring::known("shortest_path");
    ring.hello(1, &[2]);
    ring.has(1, 2, &Route::from([1, HOST]));
    ring.has(2, 4, &Route::from([1, HOST]));
    ring.has(4, 3, &Route::from([7, HOST]));
    let mut decided = ring.decided(Span::from_secs(1));
    decided.sort();
    assert_eq!(decided[0], (1, 2, Some(Route::from([2, 2, 2, HOST]))));
    assert_eq!((decided[1].0, decided[1].1), (2, 4));
    let way = decided[1].2.clone().unwrap();
    assert_eq!(way, Route::from([1, 1, HOST]), "the host is one switch farther");
    assert_eq!(decided[2], (4, 3, Some(Route::from([2, HOST]))));
    assert_eq!(ring.counts(), (0, 3, 0, 0));
}

#[test]
fn a_link_that_dies_while_routes_wait_is_seen_at_once() {
    let mut ring = Ring::known("shortest_path");
    ring.has(1, 2, &Route::from([1, HOST]));
    ring.hello(1, &[2]);
    let moved = ring.decided(Span::ZERO);
    assert_eq!(moved, [(1, 2, Some(Route::from([2, 2, 2, HOST])))]);
}

#[test]
fn a_link_that_dies_while_the_graph_is_in_part_decides_nothing_about_routes_elsewhere() {
    let mut ring = Ring::new("shortest_path");
    // Beside the ring, switch 5 is at switch 1, and the link between 2 and 3 is not reported yet.
    let peer =
        |node, port| Peer::Axon { node: NodeId(node), port: PortNo(port), role: Role::Switch };
    let state = |port, peer| PortState { port: PortNo(port), peer };
    let one = |spur: &[PortState]| [&[state(1, peer(2, 2)), state(2, peer(4, 1))], spur].concat();
    ring.says(1, one(&[state(3, peer(5, 1))]));
    ring.says(5, vec![state(1, peer(1, 3))]);
    for node in [2, 4] {
        ring.hello(node, &[1, 2]);
    }
    ring.hello(3, &[1]);
    (1..=5).for_each(|node| ring.seen(node, node));
    let (far, over) = (Route::from([1, HOST]), Route::from([3, HOST]));
    ring.has(2, 3, &far);
    ring.has(1, 5, &over);
    ring.says(1, one(&[]));
    assert_eq!(ring.decided(Span::ZERO), [], "to switch 5 there is no other path");
    ring.hello(3, &[1, 2]);
    let decided = ring.decided(Span::from_secs(1));
    assert_eq!(decided, [(2, 3, Some(far))], "as it is");
    assert_eq!(ring.counts(), (1, 0, 0, 1));
}

#[test]
fn a_route_without_a_host_or_a_path_is_removed_when_its_time_is_over() {
    let mut ring = Ring::known("shortest_path");
    ring.has(1, 200, &Route::from([1, HOST]));
    ring.has(2, 3, &Route::from([1, HOST]));
    for node in [2, 3, 4] {
        ring.hello(node, &[]);
    }
    let half = Span::from_ticks(Timers::default().inherited_max().ticks() / 2);
    assert_eq!(ring.decided(Span::from_ticks(half.ticks() - 1)), [], "they may come");
    assert_eq!(ring.counts(), (0, 0, 0, 2));
    assert_eq!(ring.decided(Span::from_ticks(1)), [(1, 200, None), (2, 3, None)]);
    assert_eq!(ring.counts(), (0, 0, 2, 0));
    assert!(ring.controller.flows().is_empty());
}

#[test]
fn routes_to_an_address_that_another_host_has_now_are_removed_at_once() {
    let mut ring = Ring::known("shortest_path");
    ring.has(1, 2, &Route::from([1, HOST]));
    let taken = vec![IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2))];
    let item = Item::HostSeen { port: PortNo(HOST), mac: mac(3), ips: taken };
    ring.controller.item(ring.now, incarnation(3), (VlanId::NONE, item), &mut ring.out);
    for _ in 0..2 {
        assert_eq!(ring.decided(Span::from_millis(100)), [], "host 2 is asked first");
    }
    assert_eq!(ring.decided(Span::from_millis(100)), [(1, 2, None)], "it is silent");
}

#[test]
fn a_switch_that_has_no_route_any_more_or_names_the_present_incarnation_changes_nothing() {
    let mut ring = Ring::known("shortest_path");
    let (port, destination) = (PortNo(HOST), mac(2));
    let route = Route::from([1, HOST]);
    let own = Item::SetRoute {
        port,
        destination,
        source: None,
        stamp: stamp(EPOCH),
        route: route.clone(),
    };
    ring.controller.item(ring.now, incarnation(1), (VlanId::NONE, own), &mut ring.out);
    ring.has(1, 2, &route);
    let aged = Item::RemoveRoute { port, destination, source: None, stamp: stamp(EPOCH - 1) };
    ring.controller.item(ring.now, incarnation(1), (VlanId::NONE, aged), &mut ring.out);
    ring.has(3, 4, &route);
    let again = Incarnation { number: 2, ..incarnation(3) };
    let hello = ControllerHello { version: 1, nonce: 0, ports: Vec::new() };
    let reverse = Hops::from([0, PortNo::CONTROL.0]);
    ring.controller.controller_hello(ring.now, again, reverse, hello, &mut ring.out);
    assert_eq!(ring.decided(Span::from_secs(100)), []);
    assert_eq!((ring.counts(), ring.controller.counters().item_misplaced), ((0, 0, 0, 0), 1));
}

#[test]
fn routes_that_would_form_a_cycle_of_buffers_on_their_layer_are_not_all_taken_over() {
    let mut ring = Ring::known("layered");
    let layer = Layer::new(1).unwrap();
    // Two links clockwise from every switch: no three of them form a cycle, all four do.
    for node in 1..=4u64 {
        let route = Route { layer, ..Route::from([1, 1, HOST]) };
        ring.has(node, (node + 1) % 4 + 1, &route);
    }
    let decided = ring.decided(Span::from_secs(1));
    let on_layer = decided.iter().filter(|(_, _, route)| route.as_ref().unwrap().layer == layer);
    let clockwise = on_layer.filter(|(_, _, route)| route.as_ref().unwrap().hops[0] == PortNo(1));
    assert_eq!((decided.len(), clockwise.count()), (4, 3));
    assert_eq!(ring.counts(), (3, 1, 0, 0));
}
