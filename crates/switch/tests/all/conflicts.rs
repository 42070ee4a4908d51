//! Address conflicts: the first holder of an address keeps it as long as it answers.

use crate::controller::{HOPS_MAX, config, ip, mac};
use axon_controller::Controller;
use axon_controller::config::ControllerConfig;
use axon_controller::{Effect, Effects};
use axon_node::telemetry::ConflictingHost;
use axon_node::{HostPair, Note, PolicyChange};
use axon_wire::message::{
    ArpRequest, ArpTarget, ControllerHello, Item, Message, Peer, PortState, Role, Seek, Target,
};
use axon_wire::vlan::VlanId;
use axon_wire::{Hops, Incarnation, MacAddr, NodeId, PortNo, Span, Time};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};

/// The controller hangs on this port of switch 1.
const CONTROLLER: u16 = 99;
/// An address outside of the pool, as floating ones are.
const FLOATING: u8 = 50;

/// Two switches with host ports 5 to 9. Host n has address n: 1 and 3 are at switch 1, ports 5
/// and 6; 2 and 4 at switch 2, ports 5 and 6.
struct Scene {
    controller: Controller,
    now: Time,
    out: Effects,
    /// Hosts that answer for addresses.
    has: BTreeSet<(u8, IpAddr)>,
    /// Seeks since the last look: time in milliseconds, switch, address.
    asked: Vec<(u64, u64, Seek)>,
    notes: Vec<Note>,
    targets: Vec<ArpTarget>,
}

/// The switch and port of a host.
const fn at(host: u8) -> (u64, u16) {
    match host {
        1 => (1, 5),
        3 => (1, 6),
        2 => (2, 5),
        _ => (2, 6),
    }
}

const fn incarnation(node: u64) -> Incarnation {
    Incarnation { node: NodeId(node), number: 1 }
}

impl Scene {
    fn new() -> Scene {
        Scene::with(&config())
    }

    fn with(config: &ControllerConfig) -> Scene {
        let mut scene = Scene {
            controller: Controller::new(config, HOPS_MAX),
            now: Time::ZERO,
            out: Vec::new(),
            has: BTreeSet::new(),
            asked: Vec::new(),
            notes: Vec::new(),
            targets: Vec::new(),
        };
        scene.controller.attached(PortNo(0), Some((NodeId(1), PortNo(CONTROLLER))));
        for node in 1..=2 {
            let peer = Peer::Axon { node: NodeId(3 - node), port: PortNo(1), role: Role::Switch };
            let hosts = (5..=9).map(|port| PortState { port: PortNo(port), peer: Peer::Host });
            let ports = [PortState { port: PortNo(1), peer }].into_iter().chain(hosts).collect();
            let hello = ControllerHello { version: 1, nonce: 0, ports };
            let reverse = Hops::from([0, PortNo::CONTROL.0]);
            let out = &mut scene.out;
            scene.controller.controller_hello(Time::ZERO, incarnation(node), reverse, hello, out);
        }
        for host in 1..=4 {
            scene.says(host, ip(host));
        }
        scene.pass(20_000);
        scene.asked.clear();
        scene
    }

    /// A host speaks for an address, and its edge reports that.
    fn says(&mut self, host: u8, ip: IpAddr) {
        self.seen_at(at(host), mac(host), ip);
        self.carry_out();
    }

    fn seen_at(&mut self, (node, port): (u64, u16), mac: MacAddr, ip: IpAddr) {
        let item = Item::HostSeen { port: PortNo(port), mac, ips: vec![ip] };
        self.controller.item(self.now, incarnation(node), (VlanId::NONE, item), &mut self.out);
    }

    fn gone(&mut self, host: u8) {
        let (node, port) = at(host);
        let item = Item::HostGone { port: PortNo(port), mac: mac(host) };
        self.controller.item(self.now, incarnation(node), (VlanId::NONE, item), &mut self.out);
        self.carry_out();
    }

    /// A host asks for a target in the name of an address; what its edge is to ask.
    fn asks(&mut self, host: u8, own: IpAddr, target: Target) -> Option<ArpTarget> {
        let (node, port) = at(host);
        let (source_mac, source_ip) = (mac(host), Some(own));
        let m = ArpRequest { id: 7, port: PortNo(port), source_mac, source_ip, target, hint: None };
        self.targets.clear();
        self.controller.arp_request(self.now, incarnation(node), m, &mut self.out);
        self.carry_out();
        self.targets.pop()
    }

    /// Carries questions to the hosts, and their answers back.
    fn carry_out(&mut self) {
        while !self.out.is_empty() {
            for (_, effect) in std::mem::take(&mut self.out) {
                match effect {
                    Effect::Routed { to, message: Message::Seek(m), .. } => {
                        let millis = self.now.since(Time::ZERO).as_millis();
                        self.asked.push((millis, to.node.0, m));
                        let is_asked = |&&(host, ip): &&(u8, IpAddr)| {
                            let (node, port) = at(host);
                            node == to.node.0 && ip == m.ip && m.except != Some(PortNo(port))
                        };
                        let answers: Vec<_> = self.has.iter().filter(is_asked).copied().collect();
                        for (host, ip) in answers {
                            self.seen_at(at(host), mac(host), ip);
                        }
                    }
                    Effect::Routed { message: Message::ArpTarget(m), .. } => self.targets.push(m),
                    Effect::Note(note) => self.notes.push(note),
                    _ => {}
                }
            }
        }
    }

    /// Time goes by; timers run when they are due.
    fn pass(&mut self, millis: u64) {
        let end = self.now + Span::from_millis(millis);
        while let Some(next) = self.controller.deadline().filter(|&next| next <= end) {
            self.now = self.now.max(next);
            self.controller.timeout(self.now, &mut self.out);
            self.carry_out();
        }
        self.now = end;
    }

    fn owner(&self, ip: IpAddr) -> Option<MacAddr> {
        let hosts = self.controller.hosts();
        Some(hosts.get(hosts.by_ip(ip)?)?.mac)
    }

    /// The hosts of the conflict that stands, if there is one: holder and claimant.
    fn conflict(&self) -> Option<[MacAddr; 2]> {
        let mut all = self.controller.ip_conflicts();
        let one = all.next().map(|one| [one.holder.mac, one.claimant.mac]);
        assert!(all.next().is_none());
        one
    }

    /// Returns the seeks since the last call: time in milliseconds, switch.
    fn asked(&mut self) -> Vec<(u64, u64)> {
        self.asked.drain(..).map(|(at, node, _)| (at, node)).collect()
    }

    /// Host 1 has the floating address, and so has host 2.
    fn in_conflict() -> Scene {
        let mut scene = Scene::new();
        scene.has.extend([(1, ip(FLOATING)), (2, ip(FLOATING))]);
        scene.says(1, ip(FLOATING));
        scene.says(2, ip(FLOATING));
        scene
    }
}

#[test]
fn the_first_holder_keeps_an_address_while_it_answers_and_both_are_named() {
    let mut scene = Scene::in_conflict();
    scene.pass(5_000);
    assert_eq!(scene.owner(ip(FLOATING)), Some(mac(1)));
    let end = |host| {
        let (node, port) = at(host);
        (NodeId(node), PortNo(port), mac(host))
    };
    let (holder, claimant) = (end(1), end(2));
    let note = Note::IpConflict { ip: ip(FLOATING), holder, claimant };
    assert_eq!(scene.notes, [note], "once");
    let listed = scene.controller.ip_conflicts().next().unwrap();
    let host = |(switch, port, mac)| ConflictingHost { mac, switch, port };
    assert_eq!((listed.holder, listed.claimant), (host(holder), host(claimant)));
    let counters = scene.controller.counters();
    assert_eq!((counters.ip_conflicts, counters.ip_refused), (1, 0));
    let (first, except) = (scene.asked[0], Some(PortNo(5)));
    assert_eq!(first, (20_000, 1, Seek { ip: ip(FLOATING), except: None }), "no more than that");
    assert_eq!(scene.asked[1], (20_100, 2, Seek { ip: ip(FLOATING), except }), "for its next word");
    assert_eq!(scene.asked.len(), 2);
}

#[test]
fn the_claimant_is_not_asked_unless_it_is_at_the_holders_port() {
    let mut scene = Scene::new();
    scene.says(1, ip(FLOATING));
    scene.says(3, ip(FLOATING));
    let seek = |except| Seek { ip: ip(FLOATING), except };
    assert_eq!(scene.asked[0].2, seek(Some(PortNo(6))));
    scene.says(1, ip(51));
    scene.asked.clear();
    scene.seen_at(at(1), mac(9), ip(51));
    scene.carry_out();
    assert_eq!(scene.asked[0].2, Seek { ip: ip(51), except: None });
}

#[test]
fn a_silent_holder_loses_the_address_after_three_questions_and_not_before() {
    let mut scene = Scene::new();
    scene.says(1, ip(FLOATING));
    assert!(scene.asks(4, ip(4), Target::Ip(ip(FLOATING))).is_some());
    let before = scene.controller.flows().len();
    scene.says(2, ip(FLOATING));
    scene.pass(299);
    assert_eq!(scene.owner(ip(FLOATING)), Some(mac(1)));
    assert_eq!(scene.controller.flows().len(), before);
    scene.pass(1);
    assert_eq!(scene.owner(ip(FLOATING)), Some(mac(2)));
    assert!(scene.controller.flows().len() < before, "edges do not answer for it any more");
    let target = scene.asks(4, ip(4), Target::Ip(ip(FLOATING))).unwrap();
    assert_eq!(target.target_mac, mac(2));
    assert_eq!(scene.asked(), [(20_000, 1), (20_100, 1), (20_200, 1)]);
    assert_eq!(scene.conflict(), None);
    assert_eq!(scene.controller.counters().ip_conflicts, 0);
    // It was only slow: the other one is the first holder now.
    scene.has.extend([(1, ip(FLOATING)), (2, ip(FLOATING))]);
    scene.says(1, ip(FLOATING));
    scene.pass(1_000);
    assert_eq!(scene.owner(ip(FLOATING)), Some(mac(2)));
    assert_eq!(scene.conflict(), Some([mac(2), mac(1)]));
}

#[test]
fn the_claimant_has_the_address_at_once_when_its_holder_leaves_and_none_if_it_has_left_itself() {
    let mut scene = Scene::in_conflict();
    scene.pass(500);
    scene.has.remove(&(1, ip(FLOATING)));
    scene.gone(1);
    assert_eq!((scene.owner(ip(FLOATING)), scene.conflict()), (Some(mac(2)), None));
    // The other way round.
    scene.says(1, ip(1));
    scene.says(1, ip(FLOATING));
    scene.pass(500);
    assert_eq!(scene.conflict(), Some([mac(2), mac(1)]));
    scene.gone(1);
    assert_eq!((scene.owner(ip(FLOATING)), scene.conflict()), (Some(mac(2)), None));
    scene.gone(2);
    assert_eq!(scene.owner(ip(FLOATING)), None);
}

#[test]
fn a_failover_during_a_conflict_works_and_repeated_claims_ask_once_a_second() {
    let mut scene = Scene::in_conflict();
    scene.asked.clear();
    for _ in 0..100 {
        scene.pass(100);
        scene.says(2, ip(FLOATING));
    }
    let at: Vec<u64> =
        scene.asked().into_iter().filter(|(_, node)| *node == 1).map(|(at, _)| at).collect();
    assert!((9..=10).contains(&at.len()), "{at:?}");
    assert!(at.windows(2).all(|pair| pair[1] - pair[0] >= 1_000), "{at:?}");
    assert_eq!(scene.owner(ip(FLOATING)), Some(mac(1)));
    assert_eq!((scene.notes.len(), scene.controller.counters().ip_conflicts), (1, 1), "as before");
    // Host 1 gives the address up without a word, and host 2 announces it.
    scene.has.remove(&(1, ip(FLOATING)));
    scene.pass(300);
    scene.says(2, ip(FLOATING));
    scene.pass(1_300);
    assert_eq!((scene.owner(ip(FLOATING)), scene.conflict()), (Some(mac(2)), None));
}

#[test]
fn a_conflict_ends_when_one_of_the_two_gives_the_address_up_without_a_word() {
    for gives_up in [1, 2] {
        let mut scene = Scene::in_conflict();
        scene.pass(25_000);
        assert_eq!(scene.conflict(), Some([mac(1), mac(2)]), "both use it");
        scene.has.remove(&(gives_up, ip(FLOATING)));
        scene.pass(11_000);
        let keeps = 3 - gives_up;
        assert_eq!((scene.owner(ip(FLOATING)), scene.conflict()), (Some(mac(keeps)), None));
        scene.asked.clear();
        scene.pass(60_000);
        assert_eq!(scene.asked(), [], "nobody is asked any more");
    }
}

#[test]
fn a_request_in_the_name_of_anothers_address_is_not_passed_on() {
    let mut scene = Scene::in_conflict();
    scene.pass(500);
    assert!(scene.asks(2, ip(FLOATING), Target::Ip(ip(4))).is_none());
    assert_eq!(scene.controller.counters().arp_not_owner, 1);
    // Its own address is another matter, and frames may be of that.
    let own = scene.asks(2, ip(2), Target::Ip(ip(4))).unwrap();
    assert_eq!(own.source_ip, Some(ip(2)));
    let frame = scene.asks(2, ip(FLOATING), Target::Mac(mac(3))).unwrap();
    assert_eq!(frame.source_ip, None);
    let holder = scene.asks(1, ip(FLOATING), Target::Ip(ip(4))).unwrap();
    assert_eq!(holder.source_ip, Some(ip(FLOATING)));
    // A host without another address gets no routes by frames either.
    scene.seen_at((2, 7), mac(9), ip(FLOATING));
    let m = ArpRequest {
        id: 8,
        port: PortNo(7),
        source_mac: mac(9),
        source_ip: Some(ip(FLOATING)),
        target: Target::Mac(mac(3)),
        hint: None,
    };
    scene.targets.clear();
    scene.controller.arp_request(scene.now, incarnation(2), m, &mut scene.out);
    scene.carry_out();
    assert!(scene.targets.is_empty());
}

#[test]
fn an_address_that_is_refused_is_not_shown_to_others() {
    let mut config = config();
    let std::net::IpAddr::V4(reserved) = ip(60) else { unreachable!() };
    config.dhcp.reservations.insert(mac(1), reserved);
    let mut scene = Scene::with(&config);
    let target = scene.asks(2, ip(60), Target::Ip(ip(4))).unwrap();
    assert_eq!(target.source_ip, None, "nobody has it, and host 2 may not");
    scene.has.insert((1, ip(60)));
    scene.says(1, ip(60));
    assert!(scene.asks(2, ip(60), Target::Ip(ip(3))).is_none());
    assert_eq!(scene.owner(ip(60)), Some(mac(1)));
    assert_eq!(scene.conflict(), Some([mac(1), mac(2)]), "host 1 answers");
    assert_eq!(scene.controller.counters().ip_refused, 2);
    // Its silence gives nobody what is reserved for it.
    scene.has.clear();
    scene.pass(2_000);
    scene.says(2, ip(60));
    scene.pass(2_000);
    assert_eq!((scene.owner(ip(60)), scene.conflict()), (Some(mac(1)), None));
    // It has a right to its own address whoever has it.
    scene.gone(1);
    scene.says(1, ip(60));
    assert_eq!(scene.owner(ip(60)), Some(mac(1)));
}

#[test]
fn hosts_that_may_not_reach_each_other_any_more_have_no_conflict() {
    let mut scene = Scene::in_conflict();
    scene.pass(500);
    let change = PolicyChange::Pair(HostPair::of(mac(1), mac(2)), false);
    scene.controller.change_policy(scene.now, change, &mut scene.out).unwrap();
    assert_eq!((scene.conflict(), scene.owner(ip(FLOATING))), (None, Some(mac(1))));
    scene.pass(500);
    scene.asked.clear();
    scene.says(2, ip(FLOATING));
    scene.pass(5_000);
    assert_eq!((scene.asked(), scene.controller.counters().ip_refused), (vec![], 1));
}

#[test]
fn conflicts_of_ipv6_addresses_are_the_same() {
    let address: IpAddr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 7).into();
    let mut scene = Scene::new();
    scene.has.extend([(1, address), (2, address)]);
    scene.says(1, address);
    scene.says(2, address);
    scene.pass(500);
    assert_eq!((scene.owner(address), scene.conflict()), (Some(mac(1)), Some([mac(1), mac(2)])));
    assert!(scene.asks(2, address, Target::Ip(ip(4))).is_none());
    scene.has.remove(&(1, address));
    scene.pass(600);
    scene.says(2, address);
    scene.pass(300);
    assert_eq!((scene.owner(address), scene.conflict()), (Some(mac(2)), None));
}

#[test]
fn a_flood_of_claims_makes_others_receive_little() {
    let mut scene = Scene::new();
    let address = |n: u32| IpAddr::V4(std::net::Ipv4Addr::from(0x0a00_1000 + n));
    // 250 hosts with 16 addresses each, at ports of their own switch.
    let owner = |n: u32| MacAddr([2, 1, 0, 0, 0, (n / 16) as u8]);
    for n in 0..4_000 {
        scene.seen_at((1, 7), owner(n), address(n));
    }
    scene.carry_out();
    scene.asked.clear();
    for second in 0..20 {
        for n in 0..4_000 {
            let claimant = MacAddr([2, 2, 0, 0, 0, (n / 16 % 64) as u8]);
            scene.seen_at((2, 8), claimant, address((n + second) % 4_000));
            // All of them are there.
            while let Some(effect) = scene.out.pop() {
                if let (_, Effect::Routed { to, message: Message::Seek(m), .. }) = effect {
                    scene.asked.push((0, to.node.0, m));
                    let IpAddr::V4(ip) = m.ip else { unreachable!() };
                    let n = u32::from(ip) - 0x0a00_1000;
                    if to.node.0 == 1 {
                        scene.seen_at((1, 7), owner(n), m.ip);
                    }
                }
            }
        }
        scene.now += Span::from_secs(1);
        scene.controller.timeout(scene.now, &mut scene.out);
    }
    let asked = scene.asked.len();
    assert!((64..600).contains(&asked), "{asked} questions in 20 s for 80,000 claims");
    let counters = scene.controller.counters();
    assert!(counters.ip_refused > 70_000, "{counters:?}");
    assert!(scene.controller.ip_conflicts().count() <= 64);
    for n in 0..4_000 {
        assert_eq!(scene.owner(address(n)), Some(owner(n)));
    }
}
