//! Messages of a controller to its switches.

use axon_controller::Controller;
use axon_controller::config::{ControllerConfig, DhcpConfig};
use axon_controller::policy::Policy;
use axon_controller::router::{Router, RouterKind};
use axon_controller::{Effect, Effects};
use axon_link::config::{NodeConfig, ServerIdentity, Timers};
use axon_wire::message::{
    ArpRequest, ArpTarget, ControllerHello, Item, Message, Peer, PortBytes, PortState, Role,
    RoutePath, Stamp, Target,
};
use axon_wire::vlan::VlanId;
use axon_wire::{Hops, Incarnation, MacAddr, NodeId, PortNo, Route, Span, Time};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

/// The longest route, in hops.
pub const HOPS_MAX: usize = 122;
/// The controller hangs on this port of the first switch.
const CONTROLLER_PORT: u16 = 200;

pub fn config() -> ControllerConfig {
    let mac = MacAddr([2, 255, 0, 0, 0, 1]);
    let server = ServerIdentity { mac, ip: Ipv4Addr::new(10, 0, 0, 254) };
    ControllerConfig {
        node: NodeConfig {
            incarnation: Incarnation { node: NodeId(1000), number: 3 },
            mac,
            keys: [0; 32].into(),
            seed: 1,
            timers: Timers::default(),
            server,
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
        router: RouterKind::default(),
        layers: 2,
        policy: Policy::default(),
        by_source: Default::default(),
        backups: true,
        dhcpv6: None,
        uplinks: Vec::new(),
        vlans: Default::default(),
        bonds: Vec::new(),
    }
}

pub fn mac(host: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, host])
}

pub fn ip(host: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, host))
}

/// A controller, and the routes that its switches have.
pub struct World {
    pub controller: Controller,
    /// Node, port and peer of every link that is up, from both ends.
    links: BTreeMap<(u64, u16), (u64, u16)>,
    incarnations: BTreeMap<u64, (u64, u64)>,
    /// Route memories: node, port, destination.
    pub tables: BTreeMap<(u64, u16, MacAddr), Route>,
    /// Backups that switches hold: node, port, destination.
    pub backups: BTreeMap<(u64, u16, MacAddr), (RoutePath, RoutePath)>,
    pub out: Effects,
    /// Numbers of requests for acknowledgements.
    pub awaited: Vec<u64>,
    targets: Vec<ArpTarget>,
    /// Hosts that switches are to ask for after a restart.
    asked: Vec<(u64, u16, MacAddr)>,
    /// The interval at which each switch is to report what it sends, in milliseconds.
    pub measured: BTreeMap<u64, u32>,
    pub now: Time,
}

impl World {
    fn new() -> World {
        World::with(RouterKind::default())
    }

    pub fn with(router: RouterKind) -> World {
        World::with_router(router.build(1, 1))
    }

    pub fn with_router(router: Box<dyn Router>) -> World {
        let mut controller = Controller::with_router(&config(), HOPS_MAX, router);
        let peer = Some((NodeId(1), PortNo(CONTROLLER_PORT)));
        controller.attached(PortNo(0), peer);
        World {
            controller,
            links: BTreeMap::new(),
            incarnations: BTreeMap::new(),
            tables: BTreeMap::new(),
            backups: BTreeMap::new(),
            out: Vec::new(),
            awaited: Vec::new(),
            targets: Vec::new(),
            asked: Vec::new(),
            measured: BTreeMap::new(),
            now: Time::ZERO,
        }
    }

    pub fn incarnation(&mut self, node: u64) -> Incarnation {
        let incarnation = self.incarnations.entry(node).or_insert((1, 0)).0;
        Incarnation { node: NodeId(node), number: incarnation }
    }

    pub fn link(&mut self, a: (u64, u16), b: (u64, u16)) {
        self.links.insert(a, b);
        self.links.insert(b, a);
        self.hello(a.0);
        self.hello(b.0);
    }

    pub fn cut(&mut self, a: (u64, u16)) {
        if let Some(b) = self.links.remove(&a) {
            self.links.remove(&b);
            self.hello(a.0);
            self.hello(b.0);
        }
    }

    fn hello(&mut self, node: u64) {
        let from = self.incarnation(node);
        let version = self.incarnations.get_mut(&node).unwrap();
        version.1 += 1;
        let version = version.1;
        let ports = self.links.iter().filter(|((from, _), _)| *from == node);
        let ports = ports
            .map(|(&(_, port), &(peer, there))| PortState {
                port: PortNo(port),
                peer: Peer::Axon { node: NodeId(peer), port: PortNo(there), role: Role::Switch },
            })
            .collect();
        let hello = ControllerHello { version, nonce: 0, ports };
        let reverse = Hops::from([0, PortNo::CONTROL.0]);
        self.controller.controller_hello(self.now, from, reverse, hello, &mut self.out);
        self.carry_out();
    }

    /// A switch starts again: its tables are empty and its neighbours have not noticed yet.
    pub fn restart(&mut self, node: u64) {
        let incarnation = self.incarnations.entry(node).or_insert((1, 0));
        *incarnation = (incarnation.0 + 1, 0);
        self.tables.retain(|(at, ..), _| *at != node);
        self.hello(node);
    }

    pub fn seen(&mut self, node: u64, port: u16, host: u8) {
        let from = self.incarnation(node);
        let item = Item::HostSeen { port: PortNo(port), mac: mac(host), ips: vec![ip(host)] };
        self.controller.item(self.now, from, (VlanId::NONE, item), &mut self.out);
        self.carry_out();
    }

    fn gone(&mut self, node: u64, port: u16, host: u8) {
        let from = self.incarnation(node);
        let item = Item::HostGone { port: PortNo(port), mac: mac(host) };
        self.controller.item(self.now, from, (VlanId::NONE, item), &mut self.out);
        self.carry_out();
    }

    pub fn ask(&mut self, node: u64, port: u16, host: u8, target: Target) -> Option<ArpTarget> {
        let from = self.incarnation(node);
        let request = ArpRequest {
            id: 5,
            port: PortNo(port),
            source_mac: mac(host),
            source_ip: Some(ip(host)),
            target,
            hint: None,
        };
        self.targets.clear();
        self.controller.arp_request(self.now, from, request, &mut self.out);
        self.carry_out();
        self.targets.pop()
    }

    /// A switch says that one of its ports has sent so many bytes in a second.
    pub fn load(&mut self, node: u64, port: u16, bytes: u64) {
        let from = self.incarnation(node);
        let ports = vec![PortBytes { port: PortNo(port), bytes }];
        let item = Item::PortLoad { over_us: 1_000_000, ports };
        self.controller.item(self.now, from, (VlanId::NONE, item), &mut self.out);
        self.carry_out();
    }

    pub fn wait(&mut self) {
        let mut times = 0;
        while let Some(deadline) = self.controller.deadline() {
            times += 1;
            assert!(times < 1_000, "rounds must come to an end");
            self.now = self.now.max(deadline);
            self.controller.timeout(self.now, &mut self.out);
            self.carry_out();
        }
    }

    /// Does what effects ask, as switches would.
    pub fn carry_out(&mut self) {
        for (_, effect) in std::mem::take(&mut self.out) {
            match effect {
                Effect::Command { to, item: Item::SetRoute { port, destination, route, .. } } => {
                    self.tables.insert((to.0, port.0, destination), route);
                }
                Effect::Command { to, item: Item::RemoveRoute { port, destination, .. } } => {
                    let old = self.tables.remove(&(to.0, port.0, destination));
                    assert!(old.is_some(), "only what is there is removed");
                }
                Effect::AwaitAcknowledged { number, .. } => self.awaited.push(number),
                Effect::Routed { to, message: Message::ArpTarget(m), .. } => {
                    let (source, target) = (m.source_switch.node.0, to.node.0);
                    let back = (target, m.target_port.0, m.source_mac);
                    self.tables.insert(back, m.to_source.clone());
                    let there = (source, m.source_port.0, m.target_mac);
                    self.tables.insert(there, m.to_target.clone());
                    self.targets.push(m);
                }
                Effect::Command { to, item: Item::AskHost { port, mac, .. } } => {
                    self.asked.push((to.0, port.0, mac));
                }
                Effect::Command { to, item: Item::AskLoad { every_ms } } => {
                    self.measured.insert(to.0, every_ms);
                }
                Effect::Command { to, item: item @ Item::SetBackup { .. } } => {
                    self.set_backup(to.0, item);
                }
                Effect::Routed {
                    message: Message::ControllerHelloAck(_) | Message::Seek(_),
                    ..
                } => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// Returns the node and port at which a frame of `node` ends on this route.
    pub fn follow(&self, node: u64, hops: &[PortNo]) -> Option<(u64, PortNo)> {
        let (last, links) = hops.split_last()?;
        let step = |at: u64, hop: &PortNo| Some(self.links.get(&(at, hop.0))?.0);
        let end = links.iter().try_fold(node, step)?;
        Some((end, *last))
    }

    /// Every registered route ends at its host, and the tables hold just those.
    pub fn check(&self) {
        let mut registered = BTreeMap::new();
        let (graph, hosts) = (self.controller.graph(), self.controller.hosts());
        for (_, route) in self.controller.flows().iter() {
            let node = graph.switch(route.at.switch).incarnation.node.0;
            let host = hosts.get(route.destination).expect("routes lead to hosts that are there");
            let end = self.follow(node, &route.to_install().hops);
            let there = graph.switch(host.place().switch).incarnation.node.0;
            assert_eq!(end, Some((there, host.place().port)), "a route ends at its host");
            assert!(!route.users().is_empty(), "a route has a user");
            for &user in route.users() {
                assert_eq!(hosts.get(user).map(|user| user.place()), Some(route.at));
            }
            registered.insert((node, route.at.port.0, host.mac), route.to_install());
        }
        assert_eq!(self.tables, registered);
    }
}

/// Switches 1 to 4 in a ring, port 1 clockwise, port 2 counter-clockwise; host n on n's p9.
pub fn ring() -> World {
    ring_of(World::new())
}

pub fn ring_with(router: Box<dyn Router>) -> World {
    ring_of(World::with_router(router))
}

fn ring_of(mut world: World) -> World {
    for node in 1..=4 {
        world.link((node, 1), (node % 4 + 1, 2));
    }
    for node in 1..=4 {
        world.seen(node, 9, node as u8);
    }
    world
}

#[test]
fn a_request_gets_routes_both_ways_and_asking_again_changes_nothing() {
    let mut world = ring();
    let first = world.ask(1, 9, 1, Target::Ip(ip(2))).unwrap();
    assert_eq!((&first.to_target, &first.to_source), (&Route::from([1, 9]), &Route::from([2, 9])));
    assert_eq!(first.answer_by, Hops::from([2, PortNo::CONTROL.0]));
    assert_eq!((first.target_mac, first.target_ip, first.id), (mac(2), Some(ip(2)), 5));
    assert_eq!(world.ask(1, 9, 1, Target::Ip(ip(2))), Some(first.clone()));
    let by_mac = world.ask(1, 9, 1, Target::Mac(mac(2))).unwrap();
    assert_eq!(by_mac, first);
    world.check();
}

/// Lets time pass in which these switches go on sending their state every three seconds.
fn pass(world: &mut World, seconds: u64, heard: &[u64]) {
    let end = world.now + Span::from_secs(seconds);
    while world.now < end {
        world.now += Span::from_secs(3);
        let due = world.controller.deadline().is_some_and(|at| at <= world.now);
        if due {
            world.controller.timeout(world.now, &mut world.out);
            world.carry_out();
        }
        heard.iter().for_each(|&node| world.hello(node));
    }
}

#[test]
fn the_hosts_of_a_dead_switch_are_forgotten_and_their_addresses_are_free() {
    let mut world = ring();
    world.ask(1, 9, 1, Target::Ip(ip(3))).unwrap();
    pass(&mut world, 60, &[1, 2, 4]);
    assert!(world.controller.hosts().by_ip(ip(3)).is_some(), "it may be back soon");
    pass(&mut world, 30, &[1, 2, 4]);
    assert!(world.controller.hosts().by_mac(mac(3)).is_none());
    assert!(world.controller.hosts().by_ip(ip(3)).is_none());
    assert_eq!(world.controller.hosts().len(), 3, "of live switches, however silent they are");
    assert!(world.controller.flows().is_empty());
    assert_eq!(world.controller.counters().hosts_aged, 1);
    world.check();
    world.seen(3, 9, 3);
    assert!(world.ask(1, 9, 1, Target::Ip(ip(3))).is_some(), "it was not dead");
    world.check();
}

#[test]
fn a_route_that_its_switch_has_removed_is_set_up_anew_when_it_is_asked_for() {
    let mut world = ring();
    let first = world.ask(1, 9, 1, Target::Ip(ip(2))).unwrap();
    let from = world.incarnation(1);
    let removed = |world: &mut World, stamp| {
        let (port, destination) = (PortNo(9), mac(2));
        let item = Item::RemoveRoute { port, destination, source: None, stamp };
        world.controller.item(world.now, from, (VlanId::NONE, item), &mut world.out);
        assert!(world.out.is_empty(), "the switch knows");
    };
    let late = Stamp { number: first.stamp.number + 9, ..first.stamp };
    removed(&mut world, late);
    assert_eq!(world.controller.flows().iter().count(), 2, "another route than that one");
    let number = |world: &World| {
        let routes = world.controller.flows().iter().map(|(_, route)| route);
        let number = routes.filter(|route| route.at.port == PortNo(9)).map(|route| route.number);
        number.min().unwrap()
    };
    let stamp = Stamp { number: number(&world), ..first.stamp };
    removed(&mut world, stamp);
    assert_eq!(world.controller.flows().iter().count(), 1);
    assert_eq!(world.controller.counters().routes_aged, 1);
    world.tables.remove(&(1, 9, mac(2)));
    world.check();
    let again = world.ask(1, 9, 1, Target::Ip(ip(2))).unwrap();
    assert!(again.stamp > first.stamp, "so that its switch takes it");
    world.check();
}

#[test]
fn a_controller_that_was_cut_off_itself_forgets_nobody() {
    let mut world = ring();
    world.ask(1, 9, 1, Target::Ip(ip(3))).unwrap();
    pass(&mut world, 600, &[]);
    for node in [1, 2, 4] {
        pass(&mut world, 3, &[node]);
    }
    pass(&mut world, 40, &[1, 2, 4]);
    assert_eq!(world.controller.hosts().len(), 4);
    pass(&mut world, 60, &[1, 2, 4]);
    assert_eq!(world.controller.hosts().len(), 3, "from then on its silence counts");
    world.check();
}

#[test]
fn hosts_of_one_switch_meet_there() {
    let mut world = ring();
    world.seen(1, 8, 7);
    let target = world.ask(1, 9, 1, Target::Ip(ip(7))).unwrap();
    assert_eq!((target.to_target, target.to_source), (Route::from([8]), Route::from([9])));
    assert_eq!(target.answer_by, Hops::to_control());
}

#[test]
fn nobody_answers_for_the_unknown_or_for_the_asker() {
    let mut world = ring();
    assert_eq!(world.ask(1, 9, 1, Target::Ip(ip(77))), None);
    assert_eq!(world.ask(1, 9, 1, Target::Ip(ip(1))), None);
    assert_eq!(world.ask(2, 9, 1, Target::Ip(ip(3))), None, "host 1 is elsewhere");
    let counters = world.controller.counters();
    let counted = (counters.arp_unknown_target, counters.arp_self, counters.arp_misplaced);
    assert_eq!(counted, (1, 1, 1));
    assert!(world.controller.flows().is_empty());
}

#[test]
fn a_cut_ring_link_moves_its_routes_at_once_and_they_return_when_it_heals() {
    let mut world = ring();
    let before = world.ask(1, 9, 1, Target::Ip(ip(2))).unwrap();
    world.cut((1, 1));
    world.check();
    assert_eq!(world.tables[&(1, 9, mac(2))], Route::from([2, 2, 2, 9]));
    let after = world.ask(1, 9, 1, Target::Ip(ip(2))).unwrap();
    assert!(after.stamp > before.stamp);
    world.link((1, 1), (2, 2));
    assert_eq!(world.tables[&(1, 9, mac(2))], Route::from([2, 2, 2, 9]), "not at once");
    world.wait();
    assert_eq!(world.tables[&(1, 9, mac(2))], Route::from([1, 9]));
    world.check();
}

#[test]
fn without_a_path_routes_are_removed_also_from_a_switch_that_was_cut_off() {
    let mut world = ring();
    world.ask(1, 9, 1, Target::Ip(ip(3))).unwrap();
    world.cut((3, 1));
    world.cut((3, 2));
    assert!(world.controller.flows().is_empty());
    world.check();
    assert_eq!(world.ask(1, 9, 1, Target::Ip(ip(3))), None);
    world.link((3, 1), (4, 2));
    assert!(world.ask(1, 9, 1, Target::Ip(ip(3))).is_some());
    world.check();
}

#[test]
fn a_host_that_moves_is_followed_and_one_that_dies_leaves_nothing() {
    let mut world = ring();
    world.ask(1, 9, 1, Target::Ip(ip(2))).unwrap();
    world.ask(4, 9, 4, Target::Ip(ip(2))).unwrap();
    world.seen(3, 6, 2);
    world.check();
    let (end, port) = world.follow(1, &world.tables[&(1, 9, mac(2))].hops).unwrap();
    assert_eq!((end, port), (3, PortNo(6)));
    assert_eq!(world.asked, [(2, 9, mac(2))], "its old switch is to make sure");
    world.seen(2, 9, 2);
    world.seen(3, 6, 2);
    assert_eq!(world.asked.len(), 1, "but not again and again");
    world.check();
    world.gone(2, 9, 2);
    assert_eq!(world.controller.flows().len(), 2, "the old place's word does not count");
    world.gone(3, 6, 2);
    assert!(world.tables.is_empty() && world.controller.flows().is_empty());
}

#[test]
fn an_address_that_changes_hands_cuts_off_its_old_owner() {
    let mut world = ring();
    world.ask(1, 9, 1, Target::Ip(ip(2))).unwrap();
    // Switch 1 would go on answering for the address with the MAC of host 2.
    let item = Item::HostSeen { port: PortNo(9), mac: mac(3), ips: vec![ip(2)] };
    let from = world.incarnation(3);
    let (now, out) = (world.now, &mut world.out);
    world.controller.item(now, from, (VlanId::NONE, item), out);
    // Host 2 is asked and says nothing.
    for _ in 0..3 {
        world.carry_out();
        assert!(world.tables.contains_key(&(1, 9, mac(2))));
        world.now += Span::from_millis(100);
        world.controller.timeout(world.now, &mut world.out);
    }
    world.carry_out();
    assert!(!world.tables.contains_key(&(1, 9, mac(2))));
    let target = world.ask(1, 9, 1, Target::Ip(ip(2))).unwrap();
    assert_eq!(target.target_mac, mac(3));
    world.check();
}

#[test]
fn a_reserved_address_is_not_taken_by_whoever_says_so() {
    let mut config = config();
    config.dhcp.reservations.insert(mac(2), Ipv4Addr::new(10, 0, 0, 2));
    let mut controller = Controller::new(&config, HOPS_MAX);
    let from = Incarnation { node: NodeId(1), number: 1 };
    for host in [3, 2, 3] {
        let item = Item::HostSeen { port: PortNo(host), mac: mac(host as u8), ips: vec![ip(2)] };
        controller.item(Time::ZERO, from, (VlanId::NONE, item), &mut Vec::new());
    }
    let owner = controller.hosts().by_ip(ip(2)).and_then(|host| controller.hosts().get(host));
    assert_eq!(owner.map(|host| host.mac), Some(mac(2)));
    assert_eq!(controller.counters().ip_refused, 2);
}

#[test]
fn hosts_behind_one_port_share_a_route_until_the_last_of_them_goes() {
    let mut world = ring();
    world.seen(1, 9, 11);
    world.ask(1, 9, 1, Target::Ip(ip(3))).unwrap();
    world.ask(1, 9, 11, Target::Ip(ip(3))).unwrap();
    world.gone(1, 9, 11);
    assert!(world.tables.contains_key(&(1, 9, mac(3))));
    world.check();
    world.gone(1, 9, 1);
    assert!(world.tables.is_empty());
}

/// A ring with routes between hosts 1, 2 and 3 in which switch 2 has just started anew.
fn reborn() -> World {
    let mut world = ring();
    world.ask(1, 9, 1, Target::Ip(ip(2))).unwrap();
    world.ask(2, 9, 2, Target::Ip(ip(3))).unwrap();
    world.ask(1, 9, 1, Target::Ip(ip(3))).unwrap();
    world.restart(2);
    world.check();
    world
}

#[test]
fn routes_over_a_switch_that_starts_anew_and_to_its_hosts_stay_and_its_own_are_forgotten() {
    let mut world = reborn();
    assert_eq!(world.asked, [(2, 9, mac(2))], "a host that only listens must be asked for");
    let routes: Vec<_> = world.tables.keys().map(|&(node, _, to)| (node, to)).collect();
    assert_eq!(routes, [(1, mac(2)), (1, mac(3)), (3, mac(1)), (3, mac(2))]);
    assert_eq!(world.controller.counters().routes_moved, 0);
    world.seen(2, 9, 2);
    world.now += Span::from_secs(60);
    world.controller.timeout(world.now, &mut world.out);
    world.carry_out();
    assert_eq!(world.tables.len(), 4, "its host is there");
    world.check();
    let old = Incarnation { node: NodeId(2), number: 1 };
    let item = Item::HostGone { port: PortNo(9), mac: mac(2) };
    world.controller.item(Time::ZERO, old, (VlanId::NONE, item), &mut Vec::new());
    assert_eq!(world.controller.counters().stale_incarnation, 1);
    assert_eq!(world.controller.graph().incarnation_of(NodeId(2)).unwrap().number, 2);
}

#[test]
fn hosts_that_a_new_incarnation_of_a_switch_does_not_report_are_forgotten_with_their_routes() {
    let mut world = reborn();
    world.now += Span::from_secs(4);
    world.controller.timeout(world.now, &mut world.out);
    world.carry_out();
    assert_eq!(world.tables.len(), 4);
    world.now += Span::from_secs(1);
    world.controller.timeout(world.now, &mut world.out);
    world.carry_out();
    assert_eq!(world.tables.len(), 2, "those between hosts 1 and 3 stand");
    assert_eq!(world.ask(1, 9, 1, Target::Ip(ip(2))), None);
    world.seen(2, 9, 2);
    assert!(world.ask(1, 9, 1, Target::Ip(ip(2))).is_some());
    world.check();
}

#[test]
fn a_host_that_has_left_a_switch_while_it_started_anew_is_where_it_is_reported() {
    let mut world = reborn();
    world.seen(4, 9, 2);
    assert_eq!(world.tables[&(1, 9, mac(2))], Route::from([2, 9]));
    world.now += Span::from_secs(60);
    world.controller.timeout(world.now, &mut world.out);
    world.carry_out();
    assert_eq!(world.tables[&(1, 9, mac(2))], Route::from([2, 9]));
    world.check();
}

#[test]
fn an_old_version_is_acknowledged_by_its_own_path_and_changes_nothing() {
    let mut world = ring();
    let hello = ControllerHello { version: 1, nonce: 99, ports: Vec::new() };
    let mut out = Vec::new();
    let reverse = Hops::from([0, 7, PortNo::CONTROL.0]);
    let incarnation = world.incarnation(1);
    world.controller.controller_hello(Time::ZERO, incarnation, reverse.clone(), hello, &mut out);
    let [(_, Effect::Routed { hops, to, message: Message::ControllerHelloAck(ack) })] = &out[..]
    else {
        panic!("{out:?}");
    };
    assert_eq!((hops, *to, ack.version, ack.nonce), (&reverse, incarnation, 1, 99));
    assert_eq!(world.controller.path_to(NodeId(3)).map(|hops| hops.len()), Some(4));
}

#[test]
fn before_the_graph_knows_a_way_the_last_hello_is_the_way() {
    let mut world = World::new();
    world.hello(5);
    assert_eq!(world.controller.path_to(NodeId(5)), Some(Hops::from([0, PortNo::CONTROL.0])));
    assert_eq!(world.controller.path_to(NodeId(6)), None);
}

#[test]
fn equal_paths_are_all_used() {
    let mut world = World::new();
    // Two leaves and four spines: four paths between the leaves.
    for spine in 0..4 {
        world.link((1, spine), (10 + u64::from(spine), 0));
        world.link((2, spine), (10 + u64::from(spine), 1));
    }
    let mut used = BTreeMap::<PortNo, u32>::new();
    world.seen(2, 9, 250);
    for host in 0..200_u8 {
        world.seen(1, 10 + u16::from(host), host);
        let target = world.ask(1, 10 + u16::from(host), host, Target::Ip(ip(250))).unwrap();
        *used.entry(target.to_target.hops[0]).or_default() += 1;
    }
    assert_eq!(used.len(), 4);
    assert!(used.values().all(|&count| (30..=70).contains(&count)), "{used:?}");
    world.check();
}

/// Something that happens to a world of six switches and five hosts.
#[derive(Clone, Copy, Debug)]
enum Happening {
    Link(u8, u8),
    Cut(u8, u8),
    Restart(u8),
    Connect(u8, u8),
    Disconnect(u8),
    Ask(u8, u8),
    Load(u8, u8, u32),
    Wait,
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        6 => (0..6_u8, 0..6_u8).prop_map(|(a, b)| Happening::Link(a, b)),
        3 => (0..6_u8, 0..6_u8).prop_map(|(a, b)| Happening::Cut(a, b)),
        1 => (0..6_u8).prop_map(Happening::Restart),
        4 => (0..5_u8, 0..12_u8).prop_map(|(host, place)| Happening::Connect(host, place)),
        1 => (0..5_u8).prop_map(Happening::Disconnect),
        8 => (0..5_u8, 0..5_u8).prop_map(|(a, b)| Happening::Ask(a, b)),
        2 => (0..6_u8, 0..6_u8, any::<u32>()).prop_map(|(a, b, n)| Happening::Load(a, b, n)),
        1 => Just(Happening::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn whatever_happens_tables_and_registry_agree_and_routes_lead_home(
        router in prop::sample::select(RouterKind::ALL.to_vec()),
        happenings in prop::collection::vec(happening(), 0..120),
    ) {
        let mut world = World::with(router);
        // Where each host is connected, and which places still claim it.
        let mut places = BTreeMap::<u8, (u64, u16)>::new();
        let mut claims = BTreeSet::<(u8, (u64, u16))>::new();
        for happening in happenings {
            match happening {
                Happening::Link(a, b) if a != b => {
                    world.link((u64::from(a) + 1, b.into()), (u64::from(b) + 1, a.into()));
                }
                Happening::Cut(a, b) => world.cut((u64::from(a) + 1, b.into())),
                Happening::Restart(node) => {
                    let node = u64::from(node) + 1;
                    claims.retain(|(_, (at, _))| *at != node);
                    places.retain(|_, (at, _)| *at != node);
                    world.restart(node);
                }
                Happening::Connect(host, place) => {
                    let place = (u64::from(place % 6) + 1, 100 + u16::from(place / 6));
                    places.insert(host, place);
                    claims.insert((host, place));
                    world.seen(place.0, place.1, host);
                }
                Happening::Disconnect(host) => {
                    places.remove(&host);
                    // The claims are withdrawn in no particular order of age.
                    for &(_, (node, port)) in claims.iter().filter(|(who, _)| *who == host) {
                        world.gone(node, port, host);
                    }
                    claims.retain(|(who, _)| *who != host);
                }
                Happening::Ask(a, b) => {
                    if let Some(&(node, port)) = places.get(&a) {
                        world.ask(node, port, a, Target::Mac(mac(b)));
                    }
                }
                Happening::Load(at, port, bytes) => {
                    world.load(u64::from(at) + 1, port.into(), bytes.into());
                }
                Happening::Wait => world.wait(),
                Happening::Link(..) => {}
            }
            world.check();
        }
    }
}
