//! Search of the controller for unknown hosts: at the edges, and within its rates.

use crate::controller::{HOPS_MAX, config};
use axon_controller::Controller;
use axon_controller::{Effect, Effects};
use axon_node::Note;
use axon_wire::message::{
    ArpRequest, ControllerHello, Item, Message, Peer, PortState, Role, Seek, Target,
};
use axon_wire::vlan::VlanId;
use axon_wire::{Hops, Incarnation, MacAddr, NodeId, PortNo, Span, Time};
use std::net::{IpAddr, Ipv4Addr};

/// The ports of hosts at switches 1 and 3; switch 2, between them, has none.
const HOSTS: [u16; 2] = [8, 9];
/// The controller hangs on this port of switch 1.
const CONTROLLER: u16 = 99;

/// Three switches in a line; host 1 is at port 8 of switch 1, and it is known.
struct Scene {
    controller: Controller,
    now: Time,
    out: Effects,
    id: u32,
}

const fn incarnation(node: u64) -> Incarnation {
    Incarnation { node: NodeId(node), number: 1 }
}

const fn mac(host: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, host])
}

/// An address of the subnet, 10.0.0.0/24.
const fn ip(host: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, host))
}

/// Address number `n` of many that nobody has, in 10.0.0.0/16.
fn unused(n: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from(0x0a00_4000 + n))
}

impl Scene {
    fn new() -> Scene {
        Scene::with_prefix(24)
    }

    /// The same with a subnet of another size.
    fn with_prefix(prefix_len: u8) -> Scene {
        let mut config = config();
        config.dhcp.prefix_len = prefix_len;
        let controller = Controller::new(&config, HOPS_MAX);
        let mut scene = Scene { controller, now: Time::ZERO, out: Vec::new(), id: 0 };
        scene.controller.attached(PortNo(0), Some((NodeId(1), PortNo(CONTROLLER))));
        for node in 1..=3 {
            let hosts = if node == 2 { &[][..] } else { &HOSTS };
            scene.hello(node, 1, hosts);
        }
        scene.seen(1, 8, 1);
        scene.out.clear();
        scene
    }

    /// A switch reports its ports: its links, and hosts at these.
    fn hello(&mut self, node: u64, version: u64, hosts: &[u16]) {
        let peers = [node - 1, node + 1].into_iter().filter(|peer| (1..=3).contains(peer));
        // Port n leads to switch n.
        let switch = |peer: u64| Peer::Axon {
            node: NodeId(peer),
            port: PortNo(node as u16),
            role: Role::Switch,
        };
        let links = peers.map(|peer| PortState { port: PortNo(peer as u16), peer: switch(peer) });
        let hosts = hosts.iter().map(|&port| PortState { port: PortNo(port), peer: Peer::Host });
        let ports = links.chain(hosts).collect();
        let hello = ControllerHello { version, nonce: 0, ports };
        let reverse = Hops::from([0, PortNo::CONTROL.0]);
        let (now, from) = (self.now, incarnation(node));
        self.controller.controller_hello(now, from, reverse, hello, &mut self.out);
    }

    fn seen(&mut self, node: u64, port: u16, host: u8) {
        let item = Item::HostSeen { port: PortNo(port), mac: mac(host), ips: vec![ip(host)] };
        self.controller.item(self.now, incarnation(node), (VlanId::NONE, item), &mut self.out);
    }

    /// Host 1 looks for a target.
    fn ask(&mut self, target: Target, hint: Option<IpAddr>) {
        self.ask_from(8, target, hint);
    }

    /// The same as if it were at another port.
    fn ask_from(&mut self, port: u16, target: Target, hint: Option<IpAddr>) {
        self.id += 1;
        let host = if port == 8 { 1 } else { port as u8 };
        let m = ArpRequest {
            id: self.id,
            port: PortNo(port),
            source_mac: mac(host),
            source_ip: Some(ip(host)),
            target,
            hint,
        };
        self.controller.arp_request(self.now, incarnation(1), m, &mut self.out);
    }

    /// Returns the seeks since the last call: switch, address, route.
    fn sought(&mut self) -> Vec<(u64, Seek, Hops)> {
        let seek = |(_, effect): (VlanId, Effect)| match effect {
            Effect::Routed { to, message: Message::Seek(m), hops } => Some((to.node.0, m, hops)),
            _ => None,
        };
        self.out.drain(..).filter_map(seek).collect()
    }

    /// The requests that are answered now: the target, and the request's number.
    fn answered(&mut self) -> Vec<(MacAddr, u32)> {
        let target = |(_, effect): (VlanId, Effect)| match effect {
            Effect::Routed { message: Message::ArpTarget(m), .. } => Some((m.target_mac, m.id)),
            _ => None,
        };
        self.out.drain(..).filter_map(target).collect()
    }

    fn pass(&mut self, millis: u64) {
        self.now += Span::from_millis(millis);
    }
}

#[test]
fn a_switch_that_gets_its_first_host_port_is_asked_for_what_requests_wait_for() {
    let mut scene = Scene::new();
    scene.ask(Target::Ip(ip(7)), None);
    assert!(scene.sought().iter().all(|(node, ..)| *node != 2), "it has no hosts");
    scene.now += Span::from_millis(300);
    scene.hello(2, 2, &[5]);
    let asked: Vec<_> = scene.sought().into_iter().map(|(node, seek, _)| (node, seek)).collect();
    assert_eq!(asked, [(2, Seek { ip: ip(7), except: None })]);
    scene.hello(2, 3, &[5, 6]);
    assert_eq!(scene.sought(), [], "it asks new ports of its own");
    // Nobody waits any more.
    scene.hello(2, 4, &[]);
    scene.now += Span::from_secs(2);
    scene.hello(2, 5, &[5]);
    assert_eq!(scene.sought(), []);
}

#[test]
fn a_request_that_has_waited_takes_no_address_back_that_is_anothers_by_now() {
    let mut scene = Scene::new();
    scene.ask(Target::Ip(ip(7)), None);
    // Host 5 claims the address of host 1 meanwhile, which does not answer for it.
    let item = Item::HostSeen { port: PortNo(8), mac: mac(5), ips: vec![ip(1)] };
    scene.controller.item(scene.now, incarnation(3), (VlanId::NONE, item), &mut scene.out);
    for _ in 0..3 {
        scene.pass(100);
        scene.controller.timeout(scene.now, &mut scene.out);
    }
    scene.out.clear();
    scene.seen(3, 9, 7);
    assert_eq!(scene.answered(), [(mac(7), 1)], "host 1 is there, and is answered");
    scene.ask_from(9, Target::Ip(ip(1)), None);
    assert_eq!(scene.answered(), [(mac(5), 2)]);
}

#[test]
fn an_unknown_address_is_sought_at_each_edge_and_the_waiting_request_is_answered_at_once() {
    let mut scene = Scene::new();
    scene.ask(Target::Ip(ip(7)), None);
    let control = PortNo::CONTROL.0;
    let expected = [
        (1, Seek { ip: ip(7), except: Some(PortNo(8)) }, Hops::from([0, control])),
        (3, Seek { ip: ip(7), except: None }, Hops::from([0, 2, 3, control])),
    ];
    assert_eq!(scene.sought(), expected, "by source routes; switch 2 has no hosts");
    scene.ask_from(9, Target::Ip(ip(7)), None);
    assert_eq!(scene.sought(), [], "a second port waits for the same answer");
    scene.seen(3, 9, 7);
    let mut answered = scene.answered();
    answered.sort_unstable();
    assert_eq!(answered, [(mac(7), 1), (mac(7), 2)]);
    assert_eq!(scene.controller.counters().seeks_found, 1);
    scene.ask(Target::Ip(ip(7)), None);
    assert_eq!(scene.answered(), [(mac(7), 3)], "it is known now");
}

#[test]
fn an_address_is_asked_for_three_times_a_second_apart_and_then_counts_as_unused() {
    let mut scene = Scene::new();
    let mut rounds = Vec::new();
    for step in 0..120 {
        scene.ask(Target::Ip(ip(7)), None);
        if !scene.sought().is_empty() {
            rounds.push(step * 100);
        }
        scene.pass(100);
    }
    assert_eq!(rounds, [0, 1_000, 2_000, 7_000, 8_000, 9_000], "in milliseconds");
    let counters = scene.controller.counters();
    assert_eq!((counters.seeks, counters.seeks_limited, counters.seeks_found), (6, 0, 0));
    assert_eq!(counters.arp_unknown_target, 120);
    scene.pass(60_000);
    scene.ask(Target::Ip(ip(7)), None);
    assert_eq!(scene.sought().len(), 2, "forgotten, and asked for anew");
}

#[test]
fn a_request_that_its_switch_has_given_up_is_not_answered_late() {
    let mut scene = Scene::new();
    scene.ask(Target::Ip(ip(7)), None);
    scene.pass(1_000);
    scene.out.clear();
    scene.seen(3, 9, 7);
    assert_eq!(scene.answered(), []);
}

#[test]
fn a_frame_for_an_unknown_mac_has_its_ip_address_sought() {
    let mut scene = Scene::new();
    scene.ask(Target::Mac(mac(7)), None);
    assert_eq!(scene.sought(), [], "nothing to ask for");
    scene.ask(Target::Mac(mac(7)), Some(ip(1)));
    assert_eq!(scene.sought(), [], "that one is at another MAC");
    scene.ask(Target::Mac(mac(7)), Some(ip(7)));
    assert_eq!(scene.sought().len(), 2);
    scene.seen(3, 9, 7);
    assert_eq!(scene.answered(), [(mac(7), 3)]);
    // Somebody else has the address: the frame's MAC stays unknown, and nobody is asked again.
    scene.ask(Target::Mac(mac(66)), Some(ip(8)));
    assert_eq!(scene.sought().len(), 2);
    scene.seen(3, 9, 8);
    assert_eq!(scene.answered(), []);
}

#[test]
fn only_addresses_that_a_host_of_the_subnet_can_have_are_sought() {
    let mut scene = Scene::new();
    let strange = [[10, 0, 1, 7], [10, 0, 0, 0], [10, 0, 0, 255], [10, 0, 0, 254], [8, 8, 8, 8]];
    for octets in strange {
        scene.ask(Target::Ip(IpAddr::V4(octets.into())), None);
        scene.ask(Target::Mac(mac(7)), Some(IpAddr::V4(octets.into())));
    }
    for group in ["ff02::1", "::", "::1"] {
        scene.ask(Target::Ip(group.parse().unwrap()), None);
    }
    assert_eq!(scene.sought(), []);
    assert_eq!(scene.controller.counters().seeks, 0);
}

#[test]
fn a_scan_is_held_to_the_rate_of_its_port_and_takes_nothing_from_another() {
    let mut scene = Scene::with_prefix(16);
    let mut rounds = 0;
    let mut notes = Vec::new();
    for n in 0..1_000 {
        scene.ask(Target::Ip(unused(n)), None);
        for (_, effect) in std::mem::take(&mut scene.out) {
            match effect {
                Effect::Routed { message: Message::Seek(_), to, .. } if to.node == NodeId(3) => {
                    rounds += 1;
                }
                Effect::Note(note) => notes.push(note),
                _ => {}
            }
        }
        scene.pass(1);
    }
    assert_eq!(rounds, 64 + 9, "a burst, and ten a second");
    let noted = notes.iter().map(|note| match note {
        Note::Scan { node: NodeId(1), port: PortNo(8), targets, .. } => *targets,
        other => panic!("{other:?}"),
    });
    assert_eq!(noted.collect::<Vec<u32>>(), [64, 256]);
    let counters = scene.controller.counters();
    assert_eq!((counters.seeks, counters.seeks_limited), (73, 927));
    scene.ask_from(9, Target::Ip(unused(2_000)), None);
    assert_eq!(scene.sought().len(), 2, "another port has its own rate");
}

/// Every port of these switches asks for 100 addresses, one after another for 1.8 s; returns how
/// many rounds come of it.
fn rounds_of_many_ports(switches: &[u64]) -> usize {
    let mut scene = Scene::with_prefix(16);
    let mut rounds = 0;
    for port in 10..100u16 {
        for &node in switches {
            for number in 0..100 {
                let n = (u32::from(port) * 4 + node as u32) * 100 + number;
                let m = ArpRequest {
                    id: n,
                    port: PortNo(port),
                    source_mac: MacAddr([2, 1, 0, 0, node as u8, port as u8]),
                    source_ip: None,
                    target: Target::Ip(unused(n)),
                    hint: None,
                };
                scene.controller.arp_request(scene.now, incarnation(node), m, &mut scene.out);
            }
        }
        rounds += scene.sought().len() / 2;
        scene.pass(20);
    }
    rounds
}

#[test]
fn many_ports_together_are_held_to_the_rate_of_their_switch_and_of_the_fabric() {
    let of_switch = 256 + 90;
    assert!((256..=of_switch).contains(&rounds_of_many_ports(&[1])));
    let of_all = rounds_of_many_ports(&[1, 2, 3]);
    assert!((512..=512 + 180).contains(&of_all), "{of_all} rounds in 1.8 s");
}
