//! A switch whose owner fills the controller with what it reports and requests: the others have as
//! much room as before.

use crate::controller::{HOPS_MAX, config};
use axon_control::controller::Controller;
use axon_control::controller::bounds::{HOSTS_PER_SWITCH_MAX, ROUTES_PER_SWITCH_MAX};
use axon_control::effect::Effect;
use axon_node::{Note, StoreChange, Stored};
use axon_wire::message::{
    ArpRequest, ControllerHello, Item, Message, Peer, PortState, Role, Stamp, Target,
};
use axon_wire::{Hops, Incarnation, MacAddr, NodeId, PortNo, Route, Span, Time};
use std::net::{IpAddr, Ipv4Addr};

/// The ports of hosts.
const HOST: u16 = 9;
/// Switch 1 is the owned one; 2 and 3 are at its ports 2 and 3, and beside each other.
const OWNED: u64 = 1;

struct Scene {
    controller: Controller,
    now: Time,
    out: Vec<Effect>,
}

fn mac(number: u32) -> MacAddr {
    let [a, b, c, d] = number.to_be_bytes();
    MacAddr([2, 0, a, b, c, d])
}

fn ip(number: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from(0xac10_0000 + number))
}

const fn incarnation(node: u64) -> Incarnation {
    Incarnation { node: NodeId(node), number: 1 }
}

impl Scene {
    /// Three switches in a triangle; hosts 2 and 3, and 22 and 33, at switches 2 and 3.
    fn new() -> Scene {
        let controller = Controller::new(&config(), HOPS_MAX);
        let mut scene = Scene { controller, now: Time::ZERO, out: Vec::new() };
        scene.controller.attached(PortNo(0), Some((NodeId(2), PortNo(99))));
        for node in 1..=3 {
            let others = (1..=3).filter(|&other| other != node);
            let state = |other: u64| {
                let (peer, there) = (NodeId(other), PortNo(node as u16));
                let peer = Peer::Axon { node: peer, port: there, role: Role::Switch };
                PortState { port: PortNo(other as u16), peer }
            };
            let hello =
                ControllerHello { version: 1, nonce: 0, ports: others.map(state).collect() };
            let reverse = Hops::from([0, PortNo::CONTROL.0]);
            let (now, out) = (scene.now, &mut scene.out);
            scene.controller.controller_hello(now, incarnation(node), reverse, hello, out);
        }
        for node in [2, 3] {
            scene.seen(node, HOST, node as u32);
            scene.seen(node, HOST, node as u32 * 11);
        }
        scene
    }

    fn item(&mut self, node: u64, item: Item) {
        self.controller.item(self.now, incarnation(node), item, &mut self.out);
    }

    fn seen(&mut self, node: u64, port: u16, host: u32) {
        let (port, mac, ip) = (PortNo(port), mac(host), Some(ip(host)));
        self.item(node, Item::HostSeen { port, mac, ip });
    }

    /// Whether a request of one host for another, at these switches, is answered.
    fn ask(&mut self, node: u64, host: u32, target: u32) -> bool {
        self.out.clear();
        let target = Target::Mac(mac(target));
        let (port, source_mac) = (PortNo(HOST), mac(host));
        let request = ArpRequest { id: 1, port, source_mac, source_ip: None, target };
        self.controller.arp_request(self.now, incarnation(node), request, &mut self.out);
        let answer = |effect: &Effect| {
            matches!(effect, Effect::Routed { message: Message::ArpTarget(_), .. })
        };
        self.out.iter().any(answer)
    }

    /// How many things were refused, and which switches notes have named since the last call.
    fn refused(&mut self) -> (u64, Vec<NodeId>) {
        let note = |effect: &Effect| match effect {
            Effect::Note(Note::SwitchOverBound { node }) => Some(*node),
            _ => None,
        };
        let noted = self.out.drain(..).collect::<Vec<_>>();
        (self.controller.counters().over_bound, noted.iter().filter_map(note).collect())
    }

    /// New hosts at the other switches are learned, and reach each other and the old ones.
    fn others_are_served(&mut self, new: u32) {
        self.seen(2, HOST, new);
        self.seen(3, HOST, new + 1);
        assert!(self.ask(2, new, new + 1) && self.ask(3, new + 1, 2) && self.ask(2, 22, 33));
    }
}

#[test]
fn hosts_that_one_switch_makes_up_leave_room_for_those_of_others() {
    let mut scene = Scene::new();
    let flood = HOSTS_PER_SWITCH_MAX as u32 + 5_000;
    for host in 0..flood {
        scene.seen(OWNED, host as u16, 1_000_000 + host);
    }
    assert_eq!(scene.controller.hosts().len(), HOSTS_PER_SWITCH_MAX + 4);
    assert_eq!(scene.refused(), (5_000, vec![NodeId(OWNED)]), "one note for all of them");
    // What it keeps in the store has the same bound.
    scene.controller.keep(&mut scene.out);
    let is_host =
        |effect: &Effect| matches!(effect, Effect::Store(StoreChange::Put(Stored::Host(_))));
    assert_eq!(scene.out.iter().filter(|effect| is_host(effect)).count(), HOSTS_PER_SWITCH_MAX + 4);
    // By request it has no more either, nor by a claim of a host that is elsewhere.
    assert!(!scene.ask(OWNED, 9_999_999, 2));
    scene.seen(OWNED, HOST, 2);
    assert_eq!(scene.controller.counters().over_bound, 5_002);
    scene.others_are_served(500);
    // It may have others in their place.
    let gone = Item::HostGone { port: PortNo(0), mac: mac(1_000_000) };
    scene.item(OWNED, gone);
    scene.seen(OWNED, HOST, 7);
    assert!(scene.ask(2, 2, 7) && scene.ask(OWNED, 7, 3));
    assert_eq!(scene.controller.counters().over_bound, 5_002);
    scene.now += Span::from_secs(60);
    scene.seen(OWNED, HOST, 8);
    assert_eq!(scene.refused(), (5_003, vec![NodeId(OWNED)]));
}

#[test]
fn routes_that_one_switch_requests_leave_room_for_those_of_others() {
    let mut scene = Scene::new();
    let (sources, targets) = (2_200, 60);
    for target in 0..targets {
        scene.seen(2, HOST, 3_000 + target);
    }
    for source in 0..sources {
        scene.seen(OWNED, HOST, 1_000_000 + source);
    }
    let mut answered = 0;
    for source in 0..sources {
        // Each at a port of its own.
        scene.out.clear();
        scene.seen(OWNED, 100 + source as u16, 1_000_000 + source);
        for target in 0..targets {
            let target = Target::Mac(mac(3_000 + target));
            let (port, source_mac) = (PortNo(100 + source as u16), mac(1_000_000 + source));
            let request = ArpRequest { id: 1, port, source_mac, source_ip: None, target };
            let before = scene.controller.counters().arp_answered;
            scene.controller.arp_request(scene.now, incarnation(OWNED), request, &mut scene.out);
            answered += scene.controller.counters().arp_answered - before;
        }
    }
    let routes = scene.controller.flows().len();
    assert!((ROUTES_PER_SWITCH_MAX - 1..=ROUTES_PER_SWITCH_MAX).contains(&routes), "{routes}");
    assert_eq!(answered + scene.controller.counters().over_bound, u64::from(sources * targets));
    scene.others_are_served(500);
    assert!(scene.ask(2, 3_000, 33), "also those that the owned switch has asked for");
    // Routes that are gone make room.
    scene.item(OWNED, Item::HostGone { port: PortNo(HOST), mac: mac(1_000_000) });
    scene.item(OWNED, Item::HostGone { port: PortNo(100), mac: mac(1_000_000) });
    scene.seen(OWNED, HOST, 7);
    assert!(scene.ask(OWNED, 7, 3));
}

#[test]
fn routes_that_one_switch_says_it_has_leave_room_for_those_of_others() {
    let mut scene = Scene::new();
    let inherited = |node: u64, port: u16, to: u32, hops: &[u16]| {
        let (port, destination) = (PortNo(port), mac(to));
        let hops = Hops(hops.iter().copied().map(PortNo).collect());
        let stamp = Stamp { epoch: 2, number: 1 };
        let route = Route { hops, ..Route::from([0]) };
        (node, Item::SetRoute { port, destination, stamp, route })
    };
    let flood = ROUTES_PER_SWITCH_MAX as u32 + 5_000;
    for to in 0..flood {
        let (node, item) = inherited(OWNED, to as u16, 1_000_000 + to, &[2, HOST]);
        scene.item(node, item);
    }
    assert_eq!(scene.controller.restored().routes_pending, ROUTES_PER_SWITCH_MAX as u64);
    assert_eq!(scene.refused(), (5_000, vec![NodeId(OWNED)]));
    let (node, item) = inherited(2, HOST, 3, &[3, HOST]);
    scene.item(node, item);
    assert_eq!(scene.controller.restored().routes_pending, ROUTES_PER_SWITCH_MAX as u64 + 1);
    scene.others_are_served(500);
    while let Some(next) =
        scene.controller.deadline().filter(|next| *next <= Time::ZERO + Span::from_secs(1))
    {
        scene.now = scene.now.max(next);
        scene.controller.timeout(scene.now, &mut scene.out);
    }
    assert_eq!(scene.controller.restored().routes_kept, 1, "that of switch 2");
}
