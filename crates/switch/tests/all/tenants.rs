//! The policy in a controller: which requests it answers, and which routes it takes back.

use crate::controller::{HOPS_MAX, config};
use axon_controller::Controller;
use axon_controller::config::ControllerConfig;
use axon_controller::policy::{Group, Policy};
use axon_controller::router::RouterKind;
use axon_controller::{Effect, Effects};
use axon_node::{HostPair, Note, PolicyChange, Stored, StoredHost, Subject};
use axon_wire::message::{
    ArpRequest, ControllerHello, Item, Message, Peer, PortState, Role, Stamp, Target,
};
use axon_wire::vlan::VlanId;
use axon_wire::{Hops, Incarnation, MacAddr, NodeId, PortNo, Route, Span, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

/// A port: the switch and the port.
pub type At = (u64, u16);

pub const RED: Group = Group::Tenant(0);
pub const BLUE: Group = Group::Tenant(1);

pub fn mac(host: u16) -> MacAddr {
    let [a, b] = host.to_be_bytes();
    MacAddr([2, 0, 0, 0, a, b])
}

pub fn ip(host: u16) -> IpAddr {
    let [a, b] = host.to_be_bytes();
    IpAddr::V4(Ipv4Addr::new(10, 1, a, b))
}

pub fn incarnation(node: u64) -> Incarnation {
    Incarnation { node: NodeId(node), number: 1 }
}

/// Hosts 1 to 9 are red, 11 to 19 blue, 21 to 29 shared.
pub fn policy() -> Policy {
    let mut policy = Policy::default();
    policy.add_tenant("red");
    policy.add_tenant("blue");
    for (first, group) in [(1, RED), (11, BLUE), (21, Group::Shared)] {
        (first..first + 9).for_each(|host| policy.put(Subject::Mac(mac(host)), group));
    }
    policy
}

/// A controller and switches 1 and 2 with a link, and the routes that they have.
pub struct Scene {
    pub controller: Controller,
    /// For all hosts at a port.
    pub routes: BTreeSet<(At, MacAddr)>,
    /// For one host at a port: the port, the host, the destination.
    pub pairs: BTreeSet<(At, MacAddr, MacAddr)>,
    /// The commands about routes, in order: whether one is set.
    pub commands: Vec<(bool, At, Option<MacAddr>, MacAddr)>,
    /// The paths of routes that came by command or request.
    pub paths: BTreeMap<(At, Option<MacAddr>, MacAddr), Route>,
    notes: Vec<Note>,
    pub now: Time,
}

impl Scene {
    pub fn new(policy: Policy) -> Scene {
        Scene::with(policy, RouterKind::default(), &[])
    }

    pub fn with(policy: Policy, router: RouterKind, stored: &[Stored]) -> Scene {
        let config = ControllerConfig { policy, router, ..config() };
        Scene::of(&config, stored, &[((1, 0), (2, 0))])
    }

    /// With these links between switches.
    pub fn of(config: &ControllerConfig, stored: &[Stored], links: &[(At, At)]) -> Scene {
        let mut controller = Controller::new(config, HOPS_MAX);
        let mut out = Vec::new();
        controller.restore(Time::ZERO, stored, &mut out);
        controller.attached(PortNo(0), Some((NodeId(1), PortNo(200))));
        let mut scene = Scene {
            controller,
            routes: BTreeSet::new(),
            pairs: BTreeSet::new(),
            commands: Vec::new(),
            paths: BTreeMap::new(),
            notes: Vec::new(),
            now: Time::ZERO,
        };
        let ends = links.iter().flat_map(|&(a, b)| [(a, b), (b, a)]);
        let mut ports: BTreeMap<u64, Vec<PortState>> = BTreeMap::new();
        for ((node, port), (other, other_port)) in ends {
            let port_there = PortNo(other_port);
            let peer = Peer::Axon { node: NodeId(other), port: port_there, role: Role::Switch };
            ports.entry(node).or_default().push(PortState { port: PortNo(port), peer });
        }
        for (node, ports) in ports {
            let hello = ControllerHello { version: 1, nonce: 0, ports };
            let reverse = Hops::from([0, PortNo::CONTROL.0]);
            scene.call(|controller, now, out| {
                controller.controller_hello(now, incarnation(node), reverse, hello, out);
            });
        }
        scene
    }

    pub fn call<T>(&mut self, call: impl FnOnce(&mut Controller, Time, &mut Effects) -> T) -> T {
        let mut out = Vec::new();
        let result = call(&mut self.controller, self.now, &mut out);
        for (_, effect) in out {
            match effect {
                Effect::Routed { to, message: Message::ArpTarget(m), .. } => {
                    let at = (m.source_switch.node.0, m.source_port.0);
                    let there = m.target_by_pair.then_some(m.source_mac);
                    self.enter(at, there, m.target_mac, m.to_target);
                    let back = m.source_by_pair.then_some(m.target_mac);
                    self.enter((to.node.0, m.target_port.0), back, m.source_mac, m.to_source);
                }
                Effect::Command {
                    to,
                    item: Item::SetRoute { port, destination, source, route, .. },
                } => {
                    self.commands.push((true, (to.0, port.0), source, destination));
                    self.enter((to.0, port.0), source, destination, route);
                }
                Effect::Command {
                    to,
                    item: Item::RemoveRoute { port, destination, source, .. },
                } => {
                    let at = (to.0, port.0);
                    self.commands.push((false, at, source, destination));
                    self.paths.remove(&(at, source, destination));
                    match source {
                        None => self.routes.remove(&(at, destination)),
                        Some(source) => self.pairs.remove(&(at, source, destination)),
                    };
                }
                Effect::Note(note) => self.notes.push(note),
                _ => {}
            }
        }
        result
    }

    fn enter(&mut self, at: At, source: Option<MacAddr>, to: MacAddr, path: Route) {
        self.paths.insert((at, source, to), path);
        match source {
            None => self.routes.insert((at, to)),
            Some(source) => self.pairs.insert((at, source, to)),
        };
    }

    pub fn item(&mut self, node: u64, item: Item) {
        self.call(|controller, now, out| {
            controller.item(now, incarnation(node), (VlanId::NONE, item), out)
        });
    }

    pub fn seen(&mut self, (node, port): At, host: u16) {
        self.seen_with(node, port, host, ip(host));
    }

    fn seen_with(&mut self, node: u64, port: u16, host: u16, ip: IpAddr) {
        self.item(node, Item::HostSeen { port: PortNo(port), mac: mac(host), ips: vec![ip] });
    }

    pub fn gone(&mut self, (node, port): At, host: u16) {
        self.item(node, Item::HostGone { port: PortNo(port), mac: mac(host) });
    }

    /// Says whether routes are there after a request.
    pub fn ask(&mut self, (node, port): At, host: u16, target: Target) -> bool {
        let answered = self.controller.counters().arp_answered;
        let request = ArpRequest {
            id: 1,
            port: PortNo(port),
            source_mac: mac(host),
            source_ip: None,
            target,
            hint: None,
        };
        self.call(|controller, now, out| {
            controller.arp_request(now, incarnation(node), request, out);
        });
        self.controller.counters().arp_answered > answered
    }

    /// The ports with a route to a host, for all at the port.
    pub fn routes_to(&self, host: u16) -> Vec<At> {
        self.routes.iter().filter(|(_, to)| *to == mac(host)).map(|&(at, _)| at).collect()
    }

    /// By MAC and by address, which have to be one.
    pub fn reaches(&mut self, at: At, host: u16, target: u16) -> bool {
        let by_mac = self.ask(at, host, Target::Mac(mac(target)));
        assert_eq!(self.ask(at, host, Target::Ip(ip(target))), by_mac);
        by_mac
    }
}

#[test]
fn a_request_across_tenants_is_denied_by_address_and_by_mac() {
    let mut scene = Scene::new(policy());
    for (at, host) in [((1, 1), 1), ((2, 2), 2), ((2, 3), 11), ((1, 4), 21)] {
        scene.seen(at, host);
    }
    assert!(scene.reaches((1, 1), 1, 2) && scene.reaches((1, 1), 1, 21));
    assert!(scene.reaches((2, 3), 11, 21) && !scene.reaches((1, 1), 1, 11));
    assert!(!scene.reaches((2, 3), 11, 2));
    assert_eq!(scene.controller.counters().arp_denied, 4);
    assert_eq!(scene.routes.len(), 6);
}

#[test]
fn a_host_of_another_tenant_at_a_port_takes_the_routes_of_both_ends_along() {
    let mut scene = Scene::new(policy());
    for (at, host) in [((1, 1), 1), ((2, 2), 2), ((2, 3), 11)] {
        scene.seen(at, host);
    }
    assert!(scene.reaches((1, 1), 1, 2));
    scene.seen((2, 2), 12);
    assert_eq!(scene.routes, BTreeSet::new());
    assert!(!scene.reaches((1, 1), 1, 2), "the port of host 2 is blue too");
    assert!(!scene.reaches((2, 2), 12, 11) && !scene.reaches((2, 2), 2, 1));
    scene.gone((2, 2), 12);
    assert!(scene.reaches((1, 1), 1, 2));
    // Host 11 comes and goes on; its newer claim is withdrawn, so it is there again.
    scene.seen((2, 2), 11);
    scene.seen((2, 3), 11);
    assert!(scene.reaches((1, 1), 1, 2));
    scene.gone((2, 3), 11);
    assert_eq!(scene.routes, BTreeSet::new());
}

#[test]
fn who_uses_the_mac_of_a_host_of_another_tenant_gets_none_of_its_frames() {
    let mut scene = Scene::new(policy());
    for (at, host) in [((1, 1), 1), ((2, 2), 2), ((2, 3), 11), ((1, 5), 12)] {
        scene.seen(at, host);
    }
    assert!(scene.reaches((2, 2), 2, 1) && scene.reaches((2, 3), 11, 12));
    // Host 11 sends as host 1: routes to host 1 would lead to it.
    scene.seen((2, 3), 1);
    assert_eq!(scene.routes, BTreeSet::new());
    assert!(!scene.reaches((2, 2), 2, 1) && !scene.reaches((2, 3), 11, 2));
    // The true one answers.
    scene.seen((1, 1), 1);
    assert!(scene.reaches((2, 2), 2, 1));
    let mut pinned = policy();
    pinned.pin(mac(1), (NodeId(1), PortNo(1)));
    let mut scene = Scene::new(pinned);
    scene.seen((1, 1), 1);
    scene.seen((2, 2), 2);
    assert!(scene.reaches((2, 2), 2, 1));
    scene.seen((2, 3), 1);
    scene.seen((1, 1), 12);
    assert!(
        !scene.ask((2, 3), 1, Target::Mac(mac(2))) && !scene.ask((1, 1), 12, Target::Ip(ip(2)))
    );
    assert!(scene.reaches((2, 2), 2, 1), "it is where it was");
    assert_eq!(scene.controller.counters().hosts_misplaced, 3);
    let node = NodeId(2);
    let noted = Note::HostMisplaced { node, port: PortNo(3), mac: mac(1) };
    assert!(scene.notes.contains(&noted), "{:?}", scene.notes);
}

#[test]
fn an_address_stays_with_a_host_that_the_claimant_may_not_reach() {
    let mut policy = policy();
    policy.reserve(ip(100), RED);
    let mut scene = Scene::new(policy);
    let owner = |scene: &Scene, host| {
        let hosts = scene.controller.hosts();
        Some(hosts.get(hosts.by_ip(ip(host))?)?.mac)
    };
    for (at, host) in [((1, 1), 1), ((2, 2), 2), ((2, 3), 11)] {
        scene.seen(at, host);
    }
    scene.seen_with(2, 3, 11, ip(1));
    assert_eq!(owner(&scene, 1), Some(mac(1)));
    scene.seen_with(2, 2, 2, ip(1));
    assert_eq!(owner(&scene, 1), Some(mac(1)), "within a tenant it is asked");
    for _ in 0..3 {
        scene.now += Span::from_millis(100);
        scene.call(|controller, now, out| controller.timeout(now, out));
    }
    assert_eq!(owner(&scene, 1), Some(mac(2)), "and loses an address that it does not answer for");
    scene.seen_with(2, 3, 11, ip(100));
    assert_eq!(owner(&scene, 100), None);
    scene.seen_with(1, 1, 1, ip(100));
    assert_eq!(owner(&scene, 100), Some(mac(1)));
    assert_eq!(scene.controller.counters().ip_refused, 2);
}

#[test]
fn a_change_removes_routes_at_both_edges_and_is_in_the_store() {
    let mut scene = Scene::with(policy(), RouterKind::HederaFirstFit, &[]);
    for (at, host) in [((1, 1), 1), ((2, 2), 2), ((2, 4), 3)] {
        scene.seen(at, host);
    }
    assert!(scene.reaches((1, 1), 1, 2) && scene.reaches((1, 1), 1, 3));
    let change = PolicyChange::Pair(HostPair::of(mac(1), mac(2)), false);
    let done =
        scene.call(|controller, now, out| controller.change_policy(now, change, out)).unwrap();
    assert_eq!((done.routes_removed, done.switches), (2, vec![NodeId(1), NodeId(2)]));
    let left = [((1, 1), mac(3)), ((2, 4), mac(1))];
    assert_eq!(scene.routes, BTreeSet::from(left));
    // Rounds look at all routes.
    for _ in 0..100 {
        scene.now += Span::from_secs(1);
        scene.call(|controller, now, out| controller.timeout(now, out));
    }
    assert_eq!(scene.routes, BTreeSet::from(left));
    assert!(!scene.reaches((2, 2), 2, 1));
    let quarantine = PolicyChange::Quarantine(Subject::Port(NodeId(1), PortNo(1)), true);
    let done =
        scene.call(|controller, now, out| controller.change_policy(now, quarantine, out)).unwrap();
    assert_eq!((done.routes_removed, scene.routes.len()), (2, 0));
    assert!(!scene.reaches((1, 1), 1, 3) && scene.reaches((2, 2), 2, 3));
}

#[test]
fn the_next_controller_takes_over_no_route_that_its_policy_forbids() {
    let host = |host, node, port| {
        let (switch, port) = (NodeId(node), PortNo(port));
        Stored::Host(StoredHost { mac: mac(host), switch, port, ips: vec![ip(host)] })
    };
    let pair = Stored::Pair(HostPair::of(mac(1), mac(2)), false);
    let stored = [host(1, 1, 1), host(2, 2, 2), host(3, 2, 4), pair];
    let mut scene = Scene::with(policy(), RouterKind::default(), &stored);
    for (at, host) in [((1, 1), 1), ((2, 2), 2), ((2, 4), 3)] {
        scene.seen(at, host);
    }
    let stamp = Stamp { epoch: 1, number: 7 };
    for (host, exit) in [(2, 2), (3, 4)] {
        scene.routes.insert(((1, 1), mac(host)));
        let (port, destination) = (PortNo(1), mac(host));
        let route = Route::from([0, exit]);
        scene.item(1, Item::SetRoute { port, destination, source: None, stamp, route });
    }
    assert_eq!(scene.routes, BTreeSet::from([((1, 1), mac(3))]), "at once");
    while scene.controller.restored().routes_pending > 0 {
        scene.now = scene.controller.deadline().unwrap();
        scene.call(|controller, now, out| controller.timeout(now, out));
    }
    assert_eq!(scene.routes, BTreeSet::from([((1, 1), mac(3))]));
    let restored = scene.controller.restored();
    assert_eq!((restored.routes_kept, restored.routes_removed), (1, 1));
}

#[test]
fn who_requests_many_that_are_not_there_or_not_for_it_is_noted() {
    let mut scene = Scene::new(policy());
    for (at, host) in [((1, 1), 1), ((2, 3), 11)] {
        scene.seen(at, host);
    }
    for _ in 0..1_000 {
        assert!(!scene.reaches((1, 1), 1, 11));
    }
    assert_eq!(scene.notes, [], "one and the same");
    for host in 1_000..1_062 {
        assert!(!scene.ask((1, 1), 1, Target::Ip(ip(host))));
    }
    let noted = Note::Scan { node: NodeId(1), port: PortNo(1), mac: mac(1), targets: 64 };
    assert_eq!(scene.notes, [noted]);
    assert_eq!(scene.controller.counters().scans, 1);
}
