//! A switch whose owner fills the controller with what it reports and requests, and a host that
//! does so by its port: the others have as much room as before.

use crate::controller::{HOPS_MAX, config};
use axon_controller::Controller;
use axon_controller::bounds::{
    HOSTS_PER_PORT_MAX, HOSTS_PER_SWITCH_MAX, INHERITED_PER_SWITCH_MAX,
    ROUTES_PER_PORT_AND_PEER_MAX, ROUTES_PER_PORT_MAX, ROUTES_PER_SWITCH_AND_PEER_MAX,
    ROUTES_PER_SWITCH_MAX,
};
use axon_controller::{Effect, Effects};
use axon_node::{Note, StoreChange, Stored};
use axon_wire::message::{
    ArpRequest, ControllerHello, Item, Message, Peer, PortState, Role, Stamp, Target,
};
use axon_wire::vlan::VlanId;
use axon_wire::{Hops, Incarnation, MacAddr, NodeId, PortNo, Route, Span, Time};
use std::net::{IpAddr, Ipv4Addr};

/// The ports of hosts.
const HOST: u16 = 9;
/// Switch 1 is the owned one; 2 and 3 are at its ports 2 and 3, and beside each other.
const OWNED: u64 = 1;
/// Subject of a note if the owned switch as a whole exceeds a bound.
const WHOLE: (NodeId, Option<PortNo>) = (NodeId(OWNED), None);

struct Scene {
    controller: Controller,
    now: Time,
    out: Effects,
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
        self.controller.item(self.now, incarnation(node), (VlanId::NONE, item), &mut self.out);
    }

    fn seen(&mut self, node: u64, port: u16, host: u32) {
        let (port, mac, ips) = (PortNo(port), mac(host), vec![ip(host)]);
        self.item(node, Item::HostSeen { port, mac, ips });
    }

    /// True if a request of one host for another, at these switches, is answered.
    fn ask(&mut self, node: u64, host: u32, target: u32) -> bool {
        self.out.clear();
        self.asks((node, HOST), host, target)
    }

    /// The same for a host at this port; the effects so far stay.
    fn asks(&mut self, (node, port): (u64, u16), host: u32, target: u32) -> bool {
        let begin = self.out.len();
        let target = Target::Mac(mac(target));
        let (port, source_mac) = (PortNo(port), mac(host));
        let request = ArpRequest { id: 1, port, source_mac, source_ip: None, target, hint: None };
        self.controller.arp_request(self.now, incarnation(node), request, &mut self.out);
        let answer = |(_, effect): &(VlanId, Effect)| {
            matches!(effect, Effect::Routed { message: Message::ArpTarget(_), .. })
        };
        self.out[begin..].iter().any(answer)
    }

    /// A switch reports a route of an earlier incarnation of the controller.
    fn inherits(&mut self, (node, port): (u64, u16), to: u32, hops: &[u16]) {
        let (port, destination) = (PortNo(port), mac(to));
        let hops = Hops(hops.iter().copied().map(PortNo).collect());
        let stamp = Stamp { epoch: 2, number: 1 };
        let route = Route { hops, ..Route::from([0]) };
        self.item(node, Item::SetRoute { port, destination, source: None, stamp, route });
    }

    /// Time passes for as long as something is due in the first second.
    fn wait(&mut self) {
        let end = Time::ZERO + Span::from_secs(1);
        while let Some(next) = self.controller.deadline().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.controller.timeout(self.now, &mut self.out);
        }
    }

    /// Returns the number of routes that the controller removed since the effects were cleared.
    fn removed(&self) -> usize {
        let removal = |(_, effect): &&(VlanId, Effect)| {
            matches!(effect, Effect::Command { item: Item::RemoveRoute { .. }, .. })
        };
        self.out.iter().filter(removal).count()
    }

    /// Returns the number of refusals, and the switches and ports that notes have named since the
    /// last call.
    fn refused(&mut self) -> (u64, Vec<(NodeId, Option<PortNo>)>) {
        let note = |(_, effect): &(VlanId, Effect)| match effect {
            Effect::Note(Note::SwitchOverBound { node, port }) => Some((*node, *port)),
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
    assert_eq!(scene.refused(), (5_000, vec![WHOLE]), "one note for all of them");
    // What it keeps in the store has the same bound.
    scene.controller.keep(&mut scene.out);
    let is_host =
        |effect: &Effect| matches!(effect, Effect::Store(StoreChange::Put(Stored::Host(_))));
    assert_eq!(
        scene.out.iter().filter(|(_, effect)| is_host(effect)).count(),
        HOSTS_PER_SWITCH_MAX + 4
    );
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
    assert_eq!(scene.refused(), (5_003, vec![WHOLE]));
}

#[test]
fn routes_that_one_switch_requests_leave_room_for_those_of_others() {
    let mut scene = Scene::new();
    let (sources, targets) = (2_200, 60);
    for target in 0..targets {
        scene.seen(2 + u64::from(target % 2), HOST, 3_000 + target);
    }
    let mut answered = 0;
    for source in 0..sources {
        // Each at a port of its own.
        scene.out.clear();
        let at = (OWNED, 100 + source as u16);
        scene.seen(at.0, at.1, 1_000_000 + source);
        for target in 0..targets {
            answered += u64::from(scene.asks(at, 1_000_000 + source, 3_000 + target));
        }
    }
    let routes = scene.controller.flows().len();
    assert!((ROUTES_PER_SWITCH_MAX - 1..=ROUTES_PER_SWITCH_MAX).contains(&routes), "{routes}");
    assert_eq!(answered + scene.controller.counters().over_bound, u64::from(sources * targets));
    scene.others_are_served(500);
    assert!(scene.ask(2, 3_000, 33), "also those that the owned switch has asked for");
    // Routes that are gone make room.
    scene.item(OWNED, Item::HostGone { port: PortNo(100), mac: mac(1_000_000) });
    scene.seen(OWNED, HOST, 7);
    assert!(scene.ask(OWNED, 7, 3));
}

#[test]
fn routes_that_one_switch_says_it_has_leave_room_for_those_of_others() {
    let mut scene = Scene::new();
    let flood = INHERITED_PER_SWITCH_MAX as u32 + 5_000;
    for to in 0..flood {
        scene.inherits((OWNED, to as u16), 1_000_000 + to, &[2, HOST]);
    }
    let most = INHERITED_PER_SWITCH_MAX as u64;
    assert_eq!(scene.controller.restored().routes_pending, most);
    assert_eq!(scene.removed(), 0, "the surplus stays where it is");
    assert_eq!(scene.refused(), (5_000, vec![WHOLE]));
    scene.inherits((2, HOST), 3, &[3, HOST]);
    assert_eq!(scene.controller.restored().routes_pending, most + 1);
    scene.others_are_served(500);
    scene.seen(OWNED, HOST, 7);
    assert!(scene.ask(OWNED, 7, 3), "nor do they take room from requests");
    scene.wait();
    assert_eq!(scene.controller.restored().routes_kept, 1, "that of switch 2");
}

#[test]
fn a_switch_whose_tables_are_full_keeps_its_routes_and_its_room_when_the_controller_comes_back() {
    let mut scene = Scene::new();
    // 40 ports, each with a full table; four ports of switch 2 have the destinations.
    let (ports, table) = (40, 4_096);
    let at = |to: u32| 100 + (to / HOSTS_PER_PORT_MAX as u32) as u16;
    for to in 0..table {
        scene.seen(2, at(to), 3_000 + to);
    }
    for port in 0..ports {
        scene.seen(OWNED, 200 + port, 9_000 + u32::from(port));
        for to in 0..table {
            scene.inherits((OWNED, 200 + port), 3_000 + to, &[2, at(to)]);
        }
    }
    scene.wait();
    let restored = scene.controller.restored();
    let all = u64::from(ports) * u64::from(table);
    assert!(all > ROUTES_PER_SWITCH_MAX as u64);
    let counts = [restored.routes_kept, restored.routes_moved, restored.routes_removed];
    assert_eq!((counts, restored.routes_pending), ([all, 0, 0], 0));
    assert!(scene.asks((OWNED, 200), 9_000, 3), "and there is room for new ones");
    assert_eq!(scene.refused(), (0, Vec::new()));
}

#[test]
fn hosts_that_one_port_makes_up_leave_room_for_those_of_its_switch() {
    let mut scene = Scene::new();
    let flood = HOSTS_PER_PORT_MAX as u32 + 300;
    for host in 0..flood {
        scene.seen(OWNED, HOST, 1_000_000 + host);
    }
    let port = (NodeId(OWNED), Some(PortNo(HOST)));
    assert_eq!(scene.refused(), (300, vec![port]), "the note names the port");
    assert_eq!(scene.controller.hosts().len(), HOSTS_PER_PORT_MAX + 4);
    assert!(!scene.ask(OWNED, 9_999_999, 2), "nor by request");
    assert_eq!(scene.controller.counters().over_bound, 301);
    scene.seen(OWNED, HOST + 1, 7);
    assert!(scene.asks((OWNED, HOST + 1), 7, 3) && scene.ask(OWNED, 1_000_000, 3));
    scene.item(OWNED, Item::HostGone { port: PortNo(HOST), mac: mac(1_000_001) });
    scene.seen(OWNED, HOST, 8);
    assert_eq!(scene.controller.counters().over_bound, 301, "it may have others in their place");
}

#[test]
fn routes_back_to_the_many_addresses_of_one_port_leave_room_for_its_switch_and_for_others() {
    let mut scene = Scene::new();
    // One route there to each target, and one back from each of their ports to every source.
    let (sources, targets) = (1_000, 20);
    for target in 0..targets {
        // Half of them at each other switch, with which no port uses up its account.
        scene.seen(2 + u64::from(target % 2), 100 + target as u16, 3_000 + target);
    }
    let mut answered = 0;
    for source in 0..sources {
        scene.seen(OWNED, HOST, 1_000_000 + source);
        for target in 0..targets {
            answered += u64::from(scene.asks((OWNED, HOST), 1_000_000 + source, 3_000 + target));
        }
    }
    let routes = scene.controller.flows().len();
    assert_eq!(routes, ROUTES_PER_PORT_MAX, "no more than the bound of its port");
    let asked = u64::from(sources * targets);
    assert_eq!(scene.refused(), (asked - answered, vec![(NodeId(OWNED), Some(PortNo(HOST)))]));
    // They are not counted where they are, but where the requests came from.
    let index = |node| scene.controller.graph().index_of(NodeId(node)).unwrap();
    let flows = scene.controller.flows();
    assert_eq!([1, 2].map(|node| flows.requested_by(index(node))), [routes, 0]);
    assert!(scene.ask(OWNED, 1_000_000, 3_000), "what stands is answered");
    assert!(!scene.ask(OWNED, 1_000_000 + sources - 1, 33));
    scene.seen(OWNED, HOST + 1, 7);
    assert!(scene.asks((OWNED, HOST + 1), 7, 3), "the other ports of its switch have room");
    scene.others_are_served(500);
    assert!(scene.asks((2, 100), 3_000, 33), "and so have the ports that it sent to");
    // Routes that are gone make room.
    scene.item(OWNED, Item::HostGone { port: PortNo(HOST), mac: mac(1_000_000) });
    assert!(scene.ask(OWNED, 1_000_001, 33));
}

#[test]
fn hosts_that_a_switch_makes_up_and_others_answer_leave_those_room_for_the_rest() {
    let mut scene = Scene::new();
    // Each of them "sends" to host 2, whose answer has to find a route. None is ever removed: the
    // switch that they are at does not say that they have gone.
    let made_up = 5_000;
    let mut answered = 0;
    for host in 0..made_up {
        scene.seen(OWNED, 100 + host as u16, 1_000_000 + host);
        answered += usize::from(scene.asks((2, HOST), 2, 1_000_000 + host));
    }
    assert_eq!(2 * answered, ROUTES_PER_PORT_AND_PEER_MAX, "a route there and one back for each");
    let refused = (made_up as usize - answered) as u64;
    let asker = (NodeId(2), Some(PortNo(HOST)));
    assert_eq!(scene.refused(), (refused, vec![WHOLE, asker]), "whoever it was is one of them");
    scene.seen(3, HOST, 7);
    assert!(scene.ask(2, 2, 7) && scene.ask(2, 2, 3) && scene.ask(2, 2, 22));
    scene.others_are_served(500);
}

#[test]
fn what_all_ports_of_a_switch_request_of_one_other_leaves_them_room_for_the_rest() {
    let mut scene = Scene::new();
    let (made_up, ports) = (3_000, 17);
    for host in 0..made_up {
        scene.seen(OWNED, 100 + host as u16, 1_000_000 + host);
    }
    for port in 0..ports {
        scene.seen(2, 100 + port as u16, 3_000 + port);
        for host in 0..made_up {
            scene.out.clear();
            scene.asks((2, 100 + port as u16), 3_000 + port, 1_000_000 + host);
        }
    }
    let switch = scene.controller.graph().index_of(NodeId(2)).unwrap();
    let requested = scene.controller.flows().requested_by(switch);
    assert_eq!(requested, ROUTES_PER_SWITCH_AND_PEER_MAX);
    assert!(scene.ask(2, 2, 3), "each of them is within the share of its port");
}
