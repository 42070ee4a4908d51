//! Strangers at other ports who want the address of a host, and who want all addresses.
//!
//! The controller and the edges are the real ones. The victims answer ARP and renew their leases;
//! else they are silent. Strangers know everything but the victims' port.

use crate::client::*;
use crate::stations::{At, Net, dhcp, place};
use axon_wire::host_frame::{self, Kind};
use axon_wire::{MacAddr, Span, Time};
use proptest::prelude::*;
use smoltcp::wire::{ArpOperation, DhcpMessageType};
use std::collections::{BTreeSet, VecDeque};
use std::net::Ipv4Addr;

/// A host with a lease, at an edge where a stranger is too.
const LEASED: At = (0, 0);
/// A host with an address of the pool and no lease, at the other edge, where another stranger is.
const FIXED: At = (1, 0);
const FIXED_IP: u8 = 20;
const STRANGERS: [At; 2] = [(0, 1), (1, 1)];
/// Switch and port of an ordinary client that requests an address.
const NEWCOMER: At = (1, 2);
const ID: &[u8] = &[1, 2, 0, 0, 0, 0, 1];

/// Action of a stranger.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// A gratuitous ARP, or its own answer to whoever asks.
    Announce,
    Discover,
    /// After an offer, after a restart, or as a renewal.
    Select,
    Reboot,
    Renew,
    Release,
    Decline,
    /// Its carrier goes and comes back.
    Flap,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// By one of the strangers, as which host, for which address, with the victim's client
    /// identifier or its own.
    Stranger { who: usize, act: Act, host: u8, address: u8, known_id: bool },
    /// Milliseconds pass.
    Wait(u64),
    /// A new host asks for an address, and takes what it gets.
    Newcomer(u8),
    /// The host with the lease loses its cable for so many milliseconds.
    CableOut(u64),
}

struct Scene {
    net: Net,
    /// True if the strangers answer the queries for a victim.
    answering: bool,
    /// The address of the host with the lease.
    leased: Ipv4Addr,
    renew_at: Time,
}

fn hosts() -> [(At, MacAddr); 2] {
    [(LEASED, mac(1)), (FIXED, mac(2))]
}

impl Scene {
    fn new(answering: bool) -> Scene {
        let mut net = Net::new(dhcp((ip(10), ip(21)), 4));
        let me = Client { client_id: ID, ..client(1, DhcpMessageType::Discover) };
        let reply = |net: &mut Net, client: &Client| {
            net.send(LEASED, &client.frame());
            Reply::parse(&net.received.pop_back().unwrap().1)
        };
        let leased = reply(&mut net, &me).yiaddr;
        let ack = reply(&mut net, &Client { client_id: ID, ..selecting(1, leased) });
        assert_eq!(ack.kind, DhcpMessageType::Ack);
        net.send(FIXED, &announcement(mac(2), ip(FIXED_IP)));
        net.received.clear();
        let renew_at = net.now + Span::from_secs(300);
        let scene = Scene { net, answering, leased, renew_at };
        scene.check();
        scene
    }

    fn wait(&mut self, span: Span) {
        let end = self.net.now + span;
        loop {
            self.listen();
            if self.net.now >= self.renew_at {
                self.renew();
            }
            let next = self.net.deadline().map_or(end, |next| next.min(end)).min(self.renew_at);
            if self.net.now >= end {
                return;
            }
            self.net.go_on_to(next.max(self.net.now));
        }
    }

    /// The host with the lease renews it, as often as it takes.
    fn renew(&mut self) {
        self.renew_at = self.net.now + Span::from_secs(300);
        for _ in 0..20 {
            self.listen();
            let renewal = Client { client_id: ID, ..renewing(1, self.leased) };
            self.net.send(LEASED, &renewal.frame());
            let replies: Vec<_> = self.net.received.drain(..).collect();
            let reply = replies.iter().rev().find_map(|(at, frame)| reply_to(*at, LEASED, frame));
            if let Some(reply) = reply {
                assert_eq!((reply.kind, reply.yiaddr), (DhcpMessageType::Ack, self.leased));
                return;
            }
            self.net.received.extend(replies);
            let pause = self.net.now + Span::from_millis(250);
            while let Some(next) = self.net.deadline().filter(|&next| next < pause) {
                self.net.go_on_to(next);
                self.listen();
            }
            self.net.go_on_to(pause);
        }
        panic!("nobody answers a renewal");
    }

    /// Stations take what has come for them. Victims answer queries for their address.
    fn listen(&mut self) {
        while let Some((at, frame)) = self.net.received.pop_front() {
            self.check_reply(at, &frame);
            let Kind::Arp(arp) = host_frame::classify(&frame) else { continue };
            if arp.operation != ArpOperation::Request {
                continue;
            }
            let asked = MacAddr::destination_of(&frame).unwrap();
            let own = [(LEASED, mac(1), self.leased), (FIXED, mac(2), ip(FIXED_IP))];
            let victim = own.contains(&(at, asked, arp.target_ip));
            if victim || STRANGERS.contains(&at) && self.answering {
                let answer = host_frame::reply(asked, arp.target_ip, arp.sender_mac, arp.sender_ip);
                self.net.send(at, &answer);
            }
        }
    }

    /// Nobody but its host is given an address, and no host is refused its own.
    fn check_reply(&self, at: At, frame: &[u8]) {
        let Some(reply) = reply_to(at, at, frame) else { return };
        let to = reply.chaddr;
        if reply.yiaddr == self.leased {
            assert_eq!(to, mac(1), "another host is given a leased address: {reply:?}");
        }
        if reply.yiaddr == ip(FIXED_IP) {
            assert_eq!(to, mac(2), "another host is given an address in use: {reply:?}");
        }
        if at == LEASED {
            assert_ne!(reply.kind, DhcpMessageType::Nak, "a host is refused its own address");
        }
    }

    fn check(&self) {
        let held = self.net.held();
        for (address, (_, owner)) in [self.leased, ip(FIXED_IP)].into_iter().zip(hosts()) {
            assert_eq!(held.get(&address), Some(&owner), "the lease table gives {address} away");
            let found = self.net.owner(address).map(|(mac, _)| mac);
            assert!(found.is_none_or(|mac| mac == owner), "{address} leads to {found:?}");
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Wait(millis) => self.wait(Span::from_millis(millis)),
            Step::CableOut(millis) => {
                self.net.carrier(LEASED, false);
                let end = self.net.now + Span::from_millis(millis);
                while let Some(next) = self.net.deadline().filter(|&next| next < end) {
                    self.net.go_on_to(next);
                    self.listen();
                }
                self.net.go_on_to(end);
                self.net.carrier(LEASED, true);
                self.renew();
            }
            Step::Newcomer(number) => self.newcomer(MacAddr([2, 0, 0, 0, 9, number])),
            Step::Stranger { who, act, host, address, known_id } => {
                self.stranger(STRANGERS[who], act, host, ip(address), known_id);
            }
        }
        self.listen();
        self.check();
    }

    fn newcomer(&mut self, mac: MacAddr) {
        let discover = Client { mac, ..client(0, DhcpMessageType::Discover) };
        self.net.send(NEWCOMER, &discover.frame());
        let offer = self.net.received.iter().rev().find_map(|(at, f)| reply_to(*at, NEWCOMER, f));
        self.listen();
        if let Some(offer) = offer {
            let select = Client { mac, ..selecting(0, offer.yiaddr) };
            self.net.send(NEWCOMER, &select.frame());
        }
    }

    fn stranger(&mut self, at: At, act: Act, host: u8, address: Ipv4Addr, known_id: bool) {
        let client_id: &[u8] = if known_id { ID } else { &[] };
        let asking = match act {
            Act::Flap => {
                self.net.carrier(at, false);
                self.net.carrier(at, true);
                return;
            }
            Act::Announce => return self.net.send(at, &announcement(mac(host), address)),
            Act::Discover => {
                Client { requested: Some(address), ..client(host, DhcpMessageType::Discover) }
            }
            Act::Select => selecting(host, address),
            Act::Reboot => reboot(host, address),
            Act::Renew => renewing(host, address),
            Act::Release => {
                let release = client(host, DhcpMessageType::Release);
                Client { ciaddr: address, server: Some(SERVER), ..release }
            }
            Act::Decline => Client { kind: DhcpMessageType::Decline, ..selecting(host, address) },
        };
        self.net.send(at, &Client { client_id, ..asking }.frame());
    }
}

/// A reply of the DHCP server that came out of this port.
fn reply_to(at: At, wanted: At, frame: &[u8]) -> Option<Reply> {
    let is_dhcp = at == wanted && !matches!(host_frame::classify(frame), Kind::Arp(_));
    is_dhcp.then(|| Reply::parse(frame))
}

fn announcement(mac: MacAddr, ip: Ipv4Addr) -> Vec<u8> {
    host_frame::request(mac, ip, MacAddr::BROADCAST, ip)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let act = prop_oneof![
        4 => Just(Act::Announce),
        2 => Just(Act::Discover),
        2 => Just(Act::Select),
        2 => Just(Act::Reboot),
        2 => Just(Act::Renew),
        4 => Just(Act::Release),
        2 => Just(Act::Decline),
        2 => Just(Act::Flap),
    ];
    // Hosts 1 and 2 are the victims; 3 and 4 are the stranger's own.
    let host = prop_oneof![4 => Just(1_u8), 2 => Just(2_u8), 2 => 3..5_u8];
    // 10 is what the first client is given.
    let address = prop_oneof![4 => Just(10_u8), 2 => Just(FIXED_IP), 1 => 11..22_u8];
    let stranger = (0..2_usize, act, host, address, any::<bool>()).prop_map(
        |(who, act, host, address, known_id)| Step::Stranger { who, act, host, address, known_id },
    );
    let wait = prop_oneof![Just(5), Just(120), Just(250), Just(1_100), Just(11_000), Just(70_000)];
    let step = prop_oneof![
        12 => stranger,
        6 => wait.prop_map(Step::Wait),
        1 => (0..6_u8).prop_map(Step::Newcomer),
        1 => (100..5_000_u64).prop_map(Step::CableOut),
    ];
    prop::collection::vec(step, 1..60)
}

proptest! {
    #[test]
    fn no_order_of_strangers_frames_takes_an_address_from_a_host_that_uses_it(
        answering in any::<bool>(),
        steps in steps(),
    ) {
        let mut scene = Scene::new(answering);
        for step in steps {
            scene.step(step);
        }
        // Once the strangers are silent, the hosts are found where they are.
        scene.answering = false;
        scene.wait(Span::from_secs(15));
        for (address, (at, owner)) in [scene.leased, ip(FIXED_IP)].into_iter().zip(hosts()) {
            prop_assert_eq!(scene.net.owner(address), Some((owner, place(at))));
        }
    }
}

#[test]
fn a_release_from_another_port_frees_nothing_even_while_the_mac_is_shown_there() {
    for stranger in STRANGERS {
        let mut scene = Scene::new(false);
        let release = Act::Release;
        let address = scene.leased;
        scene.stranger(stranger, release, 1, address, true);
        scene.check();
        scene.stranger(stranger, Act::Announce, 1, address, true);
        scene.stranger(stranger, release, 1, address, true);
        scene.check();
        scene.stranger(stranger, Act::Announce, 3, address, true);
        scene.check();
        scene.wait(Span::from_secs(5));
        assert_eq!(scene.net.owner(address), Some((mac(1), place(LEASED))));
    }
}

/// Bounds the addresses of a /24 that one port can get.
#[test]
fn one_port_cannot_exhaust_a_subnet_however_it_flaps_and_however_many_macs_it_invents() {
    let (per_port, stranger) = (62, STRANGERS[0]);
    let mut net = Net::new(dhcp((ip(2), ip(250)), per_port));
    let mut most = 0;
    for round in 0..40_u8 {
        for number in 0..64_u8 {
            let mac = MacAddr([2, 0, 0, 1, round, number]);
            let mut say = |client: Client| {
                net.received.clear();
                net.send(stranger, &Client { mac, ..client }.frame());
                let replies = core::mem::take(&mut net.received);
                replies.iter().find_map(|(at, frame)| reply_to(*at, stranger, frame))
            };
            let offer = say(client(0, DhcpMessageType::Discover));
            if let Some(offer) = offer {
                match number % 4 {
                    0 => {}
                    1 => drop(say(Client {
                        kind: DhcpMessageType::Decline,
                        ..selecting(0, offer.yiaddr)
                    })),
                    _ => drop(say(selecting(0, offer.yiaddr))),
                }
            }
            say(reboot(0, ip(2 + number.wrapping_mul(3) % 248)));
            // Eight addresses for each MAC by ARP.
            for address in 0..8 {
                let claimed =
                    ip(2 + (round.wrapping_mul(37) ^ number.wrapping_mul(8) ^ address) % 248);
                net.send(stranger, &announcement(mac, claimed));
                net.now += Span::from_millis(201);
            }
        }
        most = most.max(net.held().len());
        net.carrier(stranger, false);
        net.go_on_to(net.now + Span::from_secs(u64::from(round % 3) * 9));
        net.carrier(stranger, true);
    }
    assert!(most <= per_port, "{most} addresses at one port");
    assert!(most > 40, "the stranger tries: {most}");
    // All other hosts of the subnet get an address.
    let others: BTreeSet<Ipv4Addr> = (0..170_u8)
        .map(|number| {
            let mac = MacAddr([2, 0, 0, 2, 0, number]);
            // At three ports of 62 each.
            let at = [(0, 2), (0, 3), NEWCOMER][usize::from(number) % 3];
            net.received = VecDeque::new();
            let discover = Client { mac, ..client(0, DhcpMessageType::Discover) };
            net.send(at, &discover.frame());
            let offer = net.received.iter().find_map(|(to, f)| reply_to(*to, at, f));
            let offer = offer.unwrap_or_else(|| panic!("no address for host {number}"));
            net.send(at, &Client { mac, ..selecting(0, offer.yiaddr) }.frame());
            offer.yiaddr
        })
        .collect();
    assert_eq!(others.len(), 170);
}
