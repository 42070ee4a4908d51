//! Masquerading at the edge as a whole.

use crate::effect::Effect;
use crate::flows::ROUTE_LOOK;
use crate::route_installs::CORRECT_PAUSE;
use crate::testing::*;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_node::Drop;
use axon_wire::link::ETHERNET_BYTES;
use axon_wire::masquerade::index_of;
use axon_wire::message::{ArpReply, ArpTarget, Message, Target};
use axon_wire::nd::{self, Nd};
use axon_wire::{MacAddr, PortNo, Route, Span, host_frame};
use core::net::{IpAddr, Ipv6Addr};
use proptest::prelude::*;

const P: PortNo = PortNo(0);

/// Sets up a route for host 1's request for host `to`; returns the MAC address that it is given.
fn ask(bench: &mut Bench, to: u8, number: u64) -> Option<MacAddr> {
    let effects = bench.frame(0, &arp_request(1, to));
    let is_request = |effect: &Effect| matches!(effect, Effect::ToController(_));
    let effects = match effects.iter().any(is_request) {
        false => effects,
        true => {
            let request = asked(&effects);
            let (target_mac, target_ip) = (mac(to), Some(ip(to).into()));
            let to_target = Route::from([3, u16::from(to)]);
            let answer = answer_to(request, number);
            bench.reply(ArpReply { target_mac, target_ip, to_target, ..answer })
        }
    };
    shown(&effects).pop().filter(|(for_ip, _)| *for_ip == ip(to)).map(|(_, mac)| mac)
}

/// Returns the addresses that hosts are given in these effects, by ARP.
fn shown(effects: &[Effect]) -> Vec<(core::net::Ipv4Addr, MacAddr)> {
    let arps = arps(effects).into_iter();
    let others = arps.filter(|(_, arp)| arp.sender_ip != SERVER.ip);
    others.map(|(_, arp)| (arp.sender_ip, arp.sender_mac)).collect()
}

/// One place in the table, which host 8 has, and four indexes.
fn full() -> Bench {
    let mut bench = Bench::masquerading(1, 4);
    bench.host(0, 1);
    assert_eq!(ask(&mut bench, 8, 1), Some(mac(8)), "there was room");
    bench
}

fn send(bench: &mut Bench, to: MacAddr) -> Option<MacAddr> {
    let before = bench.sent.len();
    bench.frame(0, &udp_frame(to, mac(1), 0));
    bench.sent.get(before).and_then(|(_, _, frame)| MacAddr::destination_of(frame))
}

#[test]
fn with_a_full_table_a_host_is_given_an_index_which_leads_to_the_true_address() {
    let mut bench = full();
    let given = ask(&mut bench, 9, 2).unwrap();
    assert!(index_of(given).is_some());
    let route = Route::from([3, 9]);
    assert_eq!(bench.tables.memory.get(&(P, given)), Some(&(mac(9), route)));
    assert_eq!((bench.places(0), bench.placed(0, 9)), (1, None));
    assert_eq!(bench.edge.counters().macs_masqueraded, 1);
    let again = host_frame::request(mac(1), ip(1), given, ip(9));
    let effects = bench.frame(0, &again);
    assert_eq!(shown(&effects), [(ip(9), given)], "a refresh by unicast");
}

#[test]
fn a_target_is_asked_from_the_address_that_it_is_given_for_the_source() {
    let mut bench = full();
    let effects = bench.target(looked_for(2));
    let [(for_ip, given)] = shown(&effects)[..] else { panic!("{effects:?}") };
    assert!(for_ip == ip(9) && index_of(given).is_some());
    assert!(bench.tables.memory.is_empty(), "reserved, not valid");
    bench.frame(0, &host_frame::reply(mac(1), ip(1), given, ip(9)));
    assert_eq!(bench.tables.memory.get(&(P, given)).map(|(to, _)| *to), Some(mac(9)));
    // Host 9 has host 1's own address and verifies it: the answer is forwarded.
    let reply = host_frame::reply(mac(1), ip(1), mac(9), ip(9));
    bench.frame(0, &reply);
    assert_eq!(bench.sent, [(P, Route::from([3, 6]), reply)]);
}

#[test]
fn neighbours_of_ipv6_are_given_one_too() {
    let mut bench = full();
    let ip6 = |n| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, n);
    let request = asked(&bench.frame(0, &nd::solicitation((mac(1), ip6(1)), None, ip6(9))));
    let target_ip = Some(IpAddr::V6(ip6(9)));
    let effects = bench.reply(ArpReply { target_ip, ..answer_to(request, 2) });
    let read = |effect: &Effect| match effect {
        Effect::Host { frame, .. } => nd::parse(&frame[ETHERNET_BYTES..]).flatten(),
        _ => None,
    };
    let given = bench.edge.masquerade_of(P, mac(9)).unwrap();
    let answers: Vec<Nd> = effects.iter().filter_map(read).collect();
    assert_eq!(answers, [Nd::Advertisement { target: ip6(9), target_mac: Some(given) }]);
}

#[test]
fn a_host_that_uses_the_true_address_is_served_and_corrected_once_a_second() {
    let mut bench = full();
    let given = ask(&mut bench, 9, 2).unwrap();
    let frame = udp_frame(mac(9), mac(1), 0);
    assert_eq!(shown(&bench.frame(0, &frame)), [(ip(9), given)]);
    assert_eq!(shown(&bench.frame(0, &frame)), []);
    bench.pass(CORRECT_PAUSE);
    assert_eq!(shown(&bench.frame(0, &frame)), [(ip(9), given)]);
    assert_eq!(bench.sent.len(), 3);
    assert!(bench.sent.iter().all(|(_, _, sent)| *sent == frame));
    assert_eq!(bench.edge.counters().macs_corrected, 2);
}

#[test]
fn an_address_that_is_over_leads_nowhere_and_its_sender_gets_the_present_one() {
    let mut bench = full();
    let given = ask(&mut bench, 9, 2).unwrap();
    bench.remove_route(0, 9, 3);
    assert_eq!((bench.tables.memory.len(), bench.edge.counters().macs_masqueraded), (0, 0));
    let request = asked(&bench.frame(0, &udp_frame(given, mac(1), 0)));
    assert_eq!(request.target, Target::Ip(ip(9).into()));
    assert_eq!(bench.last_drop(), Some(Drop::NoRoute));
    let effects = bench.reply(answer_to(request, 4));
    assert_eq!(shown(&effects), [(ip(9), given)], "nobody has had its index since");
    // Other destinations get it eventually, with a different address.
    bench.remove_route(0, 9, 5);
    for (to, number) in [(4, 6), (5, 7), (6, 8), (7, 9)] {
        assert!(ask(&mut bench, to, number).is_some_and(|mac| mac != given));
    }
    assert_eq!(send(&mut bench, given), None);
}

#[test]
fn a_destination_that_moves_keeps_the_address_that_stands_for_it() {
    let mut bench = full();
    let given = ask(&mut bench, 9, 2).unwrap();
    bench.set_route(0, 9, 3, 2);
    assert_eq!(bench.tables.memory.get(&(P, given)), Some(&(mac(9), Route::from([2]))));
    assert_eq!(ask(&mut bench, 9, 4), Some(given));
}

#[test]
fn a_device_that_refuses_leaves_the_frames_to_software_with_their_true_address() {
    let mut bench = full();
    bench.tables.late = Some(Vec::new());
    let given = ask(&mut bench, 9, 2).unwrap();
    assert_eq!(send(&mut bench, given), Some(mac(9)), "not answered yet");
    bench.tables.refuses = 1;
    bench.answer_late();
    bench.answer_late();
    bench.tables.late = None;
    bench.pass(Span::from_secs(2));
    assert_eq!(ask(&mut bench, 9, 3), Some(given));
    assert_eq!(bench.tables.memory.get(&(P, given)).map(|(to, _)| *to), Some(mac(9)));
}

#[test]
fn without_an_index_left_software_forwards_and_the_true_address_is_given() {
    let mut bench = Bench::masquerading(1, 1);
    bench.host(0, 1);
    let given: Vec<_> = (7..10).map(|to| ask(&mut bench, to, to.into()).unwrap()).collect();
    assert_eq!((given[0], given[2]), (mac(7), mac(9)));
    assert!(index_of(given[1]).is_some());
    assert_eq!(send(&mut bench, mac(9)), Some(mac(9)));
}

#[test]
fn routes_age_by_their_use_under_the_address_that_is_given() {
    let mut bench = full();
    let given = ask(&mut bench, 9, 2).unwrap();
    bench.now += ROUTE_LOOK;
    let idle = bench.edge.age(bench.now, |_, address| address == given.into());
    assert_eq!(idle, [(P, mac(8).into())], "the other is in use");
    bench.remove_idle(&idle);
    assert_eq!(ask(&mut bench, 7, 3), Some(mac(7)), "there is room in the table again");
    assert_eq!(ask(&mut bench, 9, 4), Some(given));
}

#[test]
fn a_hosts_own_address_of_this_form_is_never_given_nor_taken_for_a_given_one() {
    let mut bench = full();
    let given = ask(&mut bench, 9, 2).unwrap();
    // A host of this port turns out to have it.
    let frame = host_frame::request(given, ip(2), MacAddr::BROADCAST, ip(2));
    let effects = bench.frame(0, &frame);
    let other = bench.edge.masquerade_of(P, mac(9)).unwrap();
    assert!(other != given && shown(&effects) == [(ip(9), other)], "{effects:?}");
    assert!(!bench.tables.memory.contains_key(&(P, given)));
}

#[test]
fn a_remote_hosts_own_address_of_this_form_means_that_host_and_no_other() {
    let mut bench = full();
    let given = ask(&mut bench, 9, 2).unwrap();
    // Host 7 turns out to have the masqueraded address of host 9.
    let request = asked(&bench.frame(0, &arp_request(1, 7)));
    let target_ip = Some(ip(7).into());
    let answer = ArpReply { target_mac: given, target_ip, ..answer_to(request, 3) };
    let effects = bench.reply(answer.clone());
    let present = |bench: &Bench, of| bench.edge.masquerade_of(P, of).unwrap();
    let (of_9, of_7) = (present(&bench, mac(9)), present(&bench, given));
    assert!(of_9 != of_7 && ![of_9, of_7].contains(&given));
    assert_eq!(shown(&effects), [(ip(9), of_9), (ip(7), of_7)]);
    for (address, of) in [(of_9, mac(9)), (of_7, given)] {
        assert_eq!(bench.tables.memory.get(&(P, address)).map(|(to, _)| *to), Some(of));
    }
    assert_eq!(send(&mut bench, given), Some(given), "its own address works, too");
    // With room it is in the table under its own address, which is given for no other destination.
    let mut bench = Bench::masquerading(1, 4);
    bench.host(0, 1);
    let request = asked(&bench.frame(0, &arp_request(1, 9)));
    bench.reply(ArpReply { target_mac: given, ..answer_to(request, 1) });
    assert!(bench.tables.route((P, given.into())).is_some());
    assert!(ask(&mut bench, 8, 2).is_some_and(|mac| mac != given));
    // A remote host that queries for one here has the address of another.
    let other = present(&bench, mac(8));
    bench.target(ArpTarget { source_mac: other, ..looked_for(3) });
    assert!(present(&bench, mac(8)) != other && present(&bench, other) != other);
}

#[test]
fn an_address_that_was_never_given_gets_no_route_and_others_ports_have_their_own() {
    let mut bench = full();
    let given = ask(&mut bench, 9, 2).unwrap();
    bench.host(1, 2);
    for forged in [given, axon_wire::masquerade::address(0, 1)] {
        bench.frame(1, &udp_frame(forged, mac(2), 0));
        assert!(bench.sent.is_empty(), "{forged}");
    }
}

#[test]
fn a_host_that_still_has_an_address_from_before_a_restart_is_sent_the_present_one() {
    let mut bench = full();
    let stale = axon_wire::masquerade::address(2, 0x12_3456);
    let mut frame = udp_frame(stale, mac(1), 0);
    frame[14..18].copy_from_slice(&[0x45, 0, 0, 46]);
    frame[30..34].copy_from_slice(&ip(9).octets());
    let effects = bench.frame(0, &frame);
    let request = effects.iter().find_map(|effect| match effect {
        Effect::ToController(Message::ArpRequest(request)) => Some(*request),
        _ => None,
    });
    let request = request.expect("its IP address is looked for");
    assert_eq!(request.target, Target::Ip(ip(9).into()));
    let present = shown(&bench.reply(answer_to(request, 2)));
    assert_eq!(present, [(ip(9), bench.edge.masquerade_of(P, mac(9)).unwrap())]);
    assert!(bench.sent.is_empty(), "nobody gets the frame");
}

#[derive(Clone, Debug)]
enum Event {
    Ask(u8),
    Set(u8),
    Remove(u8),
    /// A frame to an address given at any time.
    Send(usize),
    Age(u8),
    Refuse,
    /// A host of the port has an address that was given.
    Own(usize),
    Pass,
}

fn event() -> impl Strategy<Value = Event> {
    let host = 3..12u8;
    prop_oneof![
        6 => host.clone().prop_map(Event::Ask),
        1 => host.clone().prop_map(Event::Set),
        3 => host.clone().prop_map(Event::Remove),
        4 => (0..64usize).prop_map(Event::Send),
        1 => host.prop_map(Event::Age),
        1 => Just(Event::Refuse),
        1 => (0..64usize).prop_map(Event::Own),
        1 => Just(Event::Pass),
    ]
}

/// All addresses given at any time, with their destinations: the caches of hosts that expire
/// nothing.
struct Caches {
    bench: Bench,
    given: BTreeMap<MacAddr, u8>,
    /// Addresses that hosts of the port use as their own.
    own: Vec<MacAddr>,
}

impl Caches {
    fn see(&mut self, effects: &[Effect]) {
        for (for_ip, mac) in shown(effects) {
            let host = for_ip.octets()[3];
            assert!(!self.own.contains(&mac), "{mac} is a host's own");
            assert_eq!(*self.given.entry(mac).or_insert(host), host, "{mac} for two hosts");
        }
    }

    fn pick(&self, number: usize) -> Option<MacAddr> {
        let of_form: Vec<_> = self.given.keys().filter(|mac| index_of(**mac).is_some()).collect();
        of_form.get(number % of_form.len().max(1)).map(|mac| **mac)
    }

    fn happen(&mut self, event: Event, number: u64) {
        match event {
            Event::Ask(to) => {
                if let Some(mac) = ask(&mut self.bench, to, number) {
                    let host = *self.given.entry(mac).or_insert(to);
                    assert_eq!(host, to, "{mac} for two hosts");
                    assert!(!self.own.contains(&mac));
                }
            }
            Event::Set(to) => {
                let effects = self.bench.set_route(0, to, number, 4);
                self.see(&effects);
            }
            Event::Remove(to) => drop(self.bench.remove_route(0, to, number)),
            Event::Send(which) => {
                let Some(to) = self.pick(which).filter(|mac| !self.own.contains(mac)) else {
                    return;
                };
                let before = self.bench.sent.len();
                let effects = self.bench.frame(0, &udp_frame(to, mac(1), 0));
                self.see(&effects);
                if let Some((_, _, frame)) = self.bench.sent.get(before) {
                    let came = MacAddr::destination_of(frame);
                    assert_eq!(came, Some(mac(self.given[&to])), "another host has it");
                }
            }
            Event::Age(in_use) => {
                // Host 1 sends often enough to stay.
                for _ in 0..30 {
                    self.bench.pass(Span::from_secs(10));
                    self.bench.host(0, 1);
                }
                let key = self.bench.edge.masquerade_of(P, mac(in_use)).unwrap_or(mac(in_use));
                let now = self.bench.now;
                let idle = self.bench.edge.age(now, |_, address| address == key.into());
                let flow = self
                    .bench
                    .edge
                    .plain()
                    .parts()
                    .routes()
                    .installer()
                    .flows()
                    .get((P, mac(in_use).into()));
                let by_software = flow.is_some_and(|flow| !flow.is_placed());
                assert!(by_software || !idle.contains(&(P, mac(in_use).into())), "it is in use");
                self.bench.remove_idle(&idle);
            }
            Event::Refuse => self.bench.tables.refuses = 1,
            Event::Own(which) => {
                let Some(taken) = self.pick(which).filter(|_| self.own.len() < 3) else {
                    return;
                };
                self.own.push(taken);
                let own_ip = ip(200 + self.own.len() as u8);
                let frame = host_frame::request(taken, own_ip, MacAddr::BROADCAST, own_ip);
                let effects = self.bench.frame(0, &frame);
                self.see(&effects);
            }
            Event::Pass => drop(self.bench.pass(Span::from_secs(1))),
        }
    }

    fn check(&self) {
        for ((_, mac_given), (to, _)) in &self.bench.tables.memory {
            assert!(!self.own.contains(mac_given), "a host has {mac_given}");
            if let Some(&host) = self.given.get(mac_given) {
                assert_eq!(*to, mac(host), "{mac_given} leads to another");
            }
        }
    }
}

proptest! {
    #[test]
    fn a_cache_that_forgets_nothing_never_leads_to_another_host(
        (entries, indexes) in (1..3usize, 0..5usize),
        events in prop::collection::vec(event(), 0..60),
    ) {
        let bench = Bench::masquerading(entries, indexes);
        let mut caches = Caches { bench, given: BTreeMap::new(), own: Vec::new() };
        caches.bench.host(0, 1);
        for (number, event) in (1..).zip(events) {
            caches.happen(event, number);
            caches.check();
        }
    }
}
