//! A controller that is killed at any moment and comes back with its store: no address is given to
//! a second client.

use crate::client::*;
use crate::stations::{At, Net, PORTS, dhcp};
use axon_node::{StoreKey, Stored, StoredLease, StoredState};
use axon_wire::host_frame::{self, Kind};
use axon_wire::{MacAddr, PortNo, Span, Time};
use proptest::prelude::*;
use smoltcp::wire::{ArpOperation, DhcpMessageType};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Duration of a lease.
const LEASE: Span = Span::from_secs(600);
const STATIONS: usize = 2 * PORTS as usize;

/// A DHCP client, alone at its port.
#[derive(Clone, Copy, Debug)]
struct Station {
    at: At,
    host: u8,
    /// Its address, and until when.
    lease: Option<(Ipv4Addr, Time)>,
    offered: Option<Ipv4Addr>,
    plugged: bool,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A station asks for an address and takes what it gets.
    Ask(usize),
    /// The same, but the controller is killed after so many messages of the first or second frame.
    AskAndKill(usize, bool, usize),
    Renew(usize),
    Release(usize),
    /// A station finds that another uses its address.
    Decline(usize),
    /// A station loses its cable, or has it again and uses its lease without a word to the server.
    Cable(usize),
    /// Seconds pass.
    Wait(u64),
    Kill,
    /// An edge finds the controller, if it has not yet.
    Find(usize),
}

struct Scene {
    net: Net,
    stations: Vec<Station>,
    found: [bool; 2],
}

impl Scene {
    /// The MACs of all stations point to the same address: a server without memory would give it
    /// to any of them.
    fn new() -> Scene {
        let station = |number: usize| Station {
            at: (number / usize::from(PORTS), number as u16 % PORTS),
            host: 1 + 10 * number as u8,
            lease: None,
            offered: None,
            plugged: true,
        };
        Scene {
            net: Net::new(dhcp((ip(10), ip(19)), 16)),
            stations: (0..STATIONS).map(station).collect(),
            found: [true; 2],
        }
    }

    fn say(&mut self, number: usize, client: &Client) {
        let Station { at, plugged, .. } = self.stations[number];
        if plugged {
            self.net.send(at, &client.frame());
            self.listen();
        }
    }

    /// Stations take what has come for them, and answer queries for their address.
    fn listen(&mut self) {
        while let Some((at, frame)) = self.net.received.pop_front() {
            let now = self.net.now;
            let station = self.stations.iter_mut().find(|station| station.at == at).unwrap();
            if !station.plugged {
                continue;
            }
            match host_frame::classify(&frame) {
                Kind::Arp(arp) => {
                    let own = station.lease.is_some_and(|(ip, _)| ip == arp.target_ip);
                    if own && arp.operation == ArpOperation::Request {
                        let (mac, ip) = (mac(station.host), arp.target_ip);
                        let answer = host_frame::reply(mac, ip, arp.sender_mac, arp.sender_ip);
                        self.net.send(at, &answer);
                    }
                }
                _ => {
                    let reply = Reply::parse(&frame);
                    assert_eq!(reply.chaddr, mac(station.host));
                    match reply.kind {
                        DhcpMessageType::Offer => station.offered = Some(reply.yiaddr),
                        DhcpMessageType::Ack => station.lease = Some((reply.yiaddr, now + LEASE)),
                        _ => station.lease = None,
                    }
                }
            }
        }
    }

    fn kill(&mut self) {
        self.net.restart();
        self.found = [false; 2];
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Ask(number) => {
                let host = self.stations[number].host;
                self.stations[number].offered = None;
                self.say(number, &client(host, DhcpMessageType::Discover));
                if let Some(offered) = self.stations[number].offered {
                    self.say(number, &selecting(host, offered));
                }
            }
            Step::AskAndKill(number, second, messages) => {
                let Station { host, at, plugged, .. } = self.stations[number];
                self.stations[number].offered = None;
                let mut frame = client(host, DhcpMessageType::Discover);
                if second {
                    self.say(number, &frame);
                    let Some(offered) = self.stations[number].offered else { return };
                    frame = selecting(host, offered);
                }
                if plugged {
                    self.net.send_and_kill(at, &frame.frame(), messages);
                    self.found = [false; 2];
                    self.listen();
                }
            }
            Step::Renew(number) => {
                if let Station { host, lease: Some((ip, _)), .. } = self.stations[number] {
                    self.say(number, &renewing(host, ip));
                }
            }
            Step::Release(number) => {
                let Station { host, lease: Some((ip, _)), plugged: true, .. } =
                    self.stations[number]
                else {
                    return;
                };
                self.stations[number].lease = None;
                let release = client(host, DhcpMessageType::Release);
                self.say(number, &Client { ciaddr: ip, server: Some(SERVER), ..release });
            }
            Step::Decline(number) => {
                let Station { host, lease: Some((ip, _)), plugged: true, .. } =
                    self.stations[number]
                else {
                    return;
                };
                self.stations[number].lease = None;
                let decline = client(host, DhcpMessageType::Decline);
                let (requested, server) = (Some(ip), Some(SERVER));
                self.say(number, &Client { requested, server, ..decline });
            }
            Step::Cable(number) => {
                let station = &mut self.stations[number];
                station.plugged = !station.plugged;
                let (at, plugged) = (station.at, station.plugged);
                self.net.carrier(at, plugged);
                self.listen();
            }
            Step::Wait(seconds) => self.wait(Span::from_secs(seconds)),
            Step::Kill => self.kill(),
            Step::Find(edge) => {
                if !std::mem::replace(&mut self.found[edge], true) {
                    self.net.find(edge);
                    self.listen();
                }
            }
        }
    }

    fn wait(&mut self, span: Span) {
        let end = self.net.now + span;
        while self.net.now < end {
            let next = self.net.deadline().map_or(end, |next| next.min(end));
            self.net.go_on_to(next.max(self.net.now));
            self.listen();
        }
    }

    /// No two stations have one address.
    fn check(&mut self) -> Result<(), String> {
        let now = self.net.now;
        let mut holders: BTreeMap<Ipv4Addr, u8> = BTreeMap::new();
        for station in &mut self.stations {
            station.lease = station.lease.filter(|(_, until)| now < *until);
            let Some((ip, _)) = station.lease else { continue };
            if let Some(other) = holders.insert(ip, station.host) {
                return Err(format!("{ip} is that of host {other} and of host {}", station.host));
            }
        }
        Ok(())
    }
}

fn step() -> impl Strategy<Value = Step> {
    let station = 0..STATIONS;
    prop_oneof![
        4 => station.clone().prop_map(Step::Ask),
        3 => (station.clone(), any::<bool>(), 0..8usize)
            .prop_map(|(station, second, after)| Step::AskAndKill(station, second, after)),
        2 => station.clone().prop_map(Step::Renew),
        1 => station.clone().prop_map(Step::Release),
        1 => station.clone().prop_map(Step::Decline),
        3 => station.prop_map(Step::Cable),
        2 => (1..400u64).prop_map(Step::Wait),
        1 => Just(Step::Kill),
        6 => (0..2usize).prop_map(Step::Find),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_lease_is_given_twice_however_often_the_controller_is_killed(
        steps in prop::collection::vec(step(), 0..80),
    ) {
        let mut scene = Scene::new();
        for step in steps {
            scene.take(step);
            prop_assert_eq!(scene.check(), Ok(()), "after {:?}", step);
        }
    }
}

fn restored(net: &Net) -> (u64, u64, u64) {
    let restored = net.controller.restored();
    (restored.hosts, restored.hosts_provisional, restored.leases)
}

#[test]
fn hosts_and_leases_come_back_and_are_provisional_until_their_switch_is_heard() {
    let mut scene = Scene::new();
    (0..STATIONS).for_each(|number| scene.take(Step::Ask(number)));
    let held = scene.net.held();
    assert_eq!(held.len(), STATIONS);
    scene.take(Step::Kill);
    assert_eq!((restored(&scene.net), scene.net.held()), ((8, 8, 8), held.clone()));
    assert_eq!(scene.net.controller.graph().switches().filter(|(_, s)| s.was_heard()).count(), 0);
    scene.take(Step::Find(1));
    assert_eq!(restored(&scene.net), (8, 4, 8), "those of the other edge");
    scene.take(Step::Find(0));
    assert_eq!(restored(&scene.net), (8, 0, 8));
    // Each is where it was, whatever index its switch has now.
    for station in &scene.stations {
        let hosts = scene.net.controller.hosts();
        let place = hosts.get(hosts.by_mac(mac(station.host)).unwrap()).unwrap().place();
        let node = scene.net.controller.graph().switch(place.switch).incarnation.node.0;
        assert_eq!((node as usize - 1, place.port), (station.at.0, PortNo(station.at.1)));
    }
    assert_eq!(scene.net.held(), held);
}

#[test]
fn a_host_that_is_not_reported_again_is_queried_and_forgotten_and_keeps_its_lease() {
    let mut scene = Scene::new();
    (0..2).for_each(|number| scene.take(Step::Ask(number)));
    scene.take(Step::Kill);
    // Its port loses its carrier unseen by any node.
    scene.take(Step::Cable(1));
    (0..2).for_each(|edge| scene.take(Step::Find(edge)));
    assert_eq!(restored(&scene.net), (2, 1, 2));
    scene.take(Step::Wait(6));
    assert_eq!(restored(&scene.net), (2, 0, 2));
    assert_eq!(scene.net.controller.hosts().len(), 1);
    assert!(!scene.net.store.contains_key(&StoreKey::Host(mac(11))));
    let held = scene.net.held();
    let (address, _) = scene.stations[1].lease.unwrap();
    assert_eq!(held.get(&address), Some(&mac(11)));
    scene.take(Step::Kill);
    assert_eq!(scene.net.held(), held, "and in the next incarnation too");
}

#[test]
fn a_lease_from_the_store_goes_before_an_address_that_its_host_had_once() {
    let mut scene = Scene::new();
    scene.take(Step::Ask(0));
    let address = ip(15);
    let mut entries: Vec<Stored> = scene.net.store.values().cloned().collect();
    for entry in &mut entries {
        match entry {
            Stored::Lease(lease) => lease.ip = address,
            Stored::Host(host) => host.ips = vec![address.into()],
            other => unreachable!("only hosts and leases are kept here: {other:?}"),
        }
    }
    // It had a lower and a higher one once: entries are restored in order.
    let held = entries.iter().find_map(|entry| match entry {
        Stored::Lease(lease) => Some(lease.clone()),
        _ => None,
    });
    for once in [ip(10), ip(19)] {
        let state = StoredState::Free;
        let free = StoredLease { ip: once, state, until: Time::ZERO, ..held.clone().unwrap() };
        entries.push(Stored::Lease(free));
    }
    scene.net.store = entries.into_iter().map(|entry| (entry.key(), entry)).collect();
    scene.take(Step::Kill);
    assert_eq!(scene.net.controller.restored().leases, 3);
    let owner = mac(scene.stations[0].host);
    assert_eq!(scene.net.controller.dhcp().address_of(owner), Some(address));
}

#[test]
fn a_lease_that_ran_out_meanwhile_stands_for_a_minute() {
    let mut scene = Scene::new();
    scene.take(Step::Ask(0));
    let (address, until) = scene.stations[0].lease.unwrap();
    scene.take(Step::Cable(0));
    scene.net.now = until + Span::from_secs(1);
    scene.take(Step::Kill);
    (0..2).for_each(|edge| scene.take(Step::Find(edge)));
    scene.take(Step::Wait(59));
    scene.take(Step::Ask(1));
    let other = scene.stations[1].lease.map(|(ip, _)| ip);
    assert!(other.is_some() && other != Some(address), "{other:?}");
    scene.take(Step::Release(1));
    scene.take(Step::Wait(2));
    let state =
        scene.net.controller.dhcp().leases().find(|(ip, _)| *ip == address).unwrap().1.state;
    assert_eq!(state, axon_controller::dhcp::LeaseState::Free);
}

#[test]
fn what_does_not_fit_the_configuration_any_more_is_given_up() {
    let mut scene = Scene::new();
    scene.take(Step::Ask(0));
    let mut entries: Vec<Stored> = scene.net.store.values().cloned().collect();
    let foreign = Ipv4Addr::new(192, 168, 0, 7);
    for entry in &mut entries {
        if let Stored::Lease(lease) = entry {
            (lease.ip, lease.state) = (foreign, StoredState::InUse);
        }
        if let Stored::Host(host) = entry {
            host.mac = MacAddr::BROADCAST;
        }
    }
    scene.net.store = entries.into_iter().map(|entry| (entry.key(), entry)).collect();
    scene.take(Step::Kill);
    let restored = scene.net.controller.restored();
    assert_eq!((restored.hosts, restored.leases, restored.refused), (0, 0, 2));
    assert!(scene.net.store.is_empty(), "{:?}", scene.net.store);
}
