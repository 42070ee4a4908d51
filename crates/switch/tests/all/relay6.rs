//! Requests of DHCPv6 clients on their way to a server that is a host, and its answers.

use crate::client::mac;
use crate::controller;
use crate::kept::{Kept, keep};
use crate::one_switch::{self, SWITCH};
use axon_controller::Controller;
use axon_controller::Effect;
use axon_controller::config::{ControllerConfig, Dhcpv6Relay};
use axon_node::Stored;
use axon_wire::dhcpv6::{self, Datagram, Relayed, kind, option};
use axon_wire::message::{HostFrame, Item, Message};
use axon_wire::vlan::VlanId;
use axon_wire::{MacAddr, PortNo, Span, Time, nd};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// The port of the server, and the server: host 9.
const AT: u16 = 3;
const LINK: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, 1);

fn ip(last: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, last)
}

fn local(host: u8) -> (MacAddr, Ipv6Addr) {
    (mac(host), nd::link_local(mac(host)))
}

/// A relay for host 9, and so many addresses at each port.
fn config(per_port: usize) -> ControllerConfig {
    let mut config = controller::config();
    config.dhcp.leases_per_port_max = per_port;
    let names = BTreeMap::from([(SWITCH.node, "s1".into())]);
    let (mac, ip) = local(9);
    let at = (SWITCH.node, PortNo(AT));
    config.dhcpv6 = Some(Dhcpv6Relay { ip, mac, at, link: LINK, names });
    config
}

/// One switch with hosts at all its ports.
struct World {
    controller: Controller,
    own: (MacAddr, Ipv6Addr),
    now: Time,
}

impl World {
    fn new() -> World {
        World::with(64)
    }

    /// With so many addresses at each port.
    fn with(per_port: usize) -> World {
        let config = config(per_port);
        let own = (config.node.server.mac, nd::link_local(config.node.server.mac));
        let controller = Controller::new(&config, 16);
        let mut world = World { controller, own, now: Time::ZERO };
        world.meet();
        world
    }

    fn meet(&mut self) {
        let (reverse, hello) = (one_switch::reverse(), one_switch::hello());
        self.controller.controller_hello(self.now, SWITCH, reverse, hello, &mut Vec::new());
    }

    /// A host's frame; returns the frames that go to ports.
    fn frame(&mut self, port: u16, frame: Vec<u8>) -> Vec<(u16, Vec<u8>)> {
        let (mut out, port) = (Vec::new(), PortNo(port));
        self.controller.dhcp_relay(self.now, SWITCH, HostFrame { port, frame }, &mut out);
        let to_port = |effect| match effect {
            (_, Effect::Routed { message: Message::HostFrame(m), .. }) => Some((m.port.0, m.frame)),
            _ => None,
        };
        out.into_iter().filter_map(to_port).collect()
    }

    /// A host whose number is that of its port asks; what the server gets.
    fn ask(&mut self, host: u8, message: &[u8]) -> Option<Vec<u8>> {
        let ports = (dhcpv6::CLIENT_PORT, dhcpv6::SERVER_PORT);
        let frame = dhcpv6::frame(local(host), dhcpv6::all_servers(), ports, message);
        let sent = self.frame(host.into(), frame);
        let (port, frame) = sent.into_iter().next()?;
        assert_eq!((port, MacAddr::destination_of(&frame)), (AT, Some(mac(9))));
        Some(Datagram::parse(&frame).unwrap().message.to_vec())
    }

    /// The server answers what it got with this message within a relay reply.
    fn answer(&mut self, got: &[u8], message: &[u8]) -> Vec<(u16, Vec<u8>)> {
        let got = Relayed::parse(got).unwrap();
        self.reply(&Relayed { kind: kind::RELAY_REPLY, message, ..got }, local(9), AT)
    }

    fn reply(
        &mut self,
        reply: &Relayed<'_>,
        from: (MacAddr, Ipv6Addr),
        port: u16,
    ) -> Vec<(u16, Vec<u8>)> {
        let ports = (dhcpv6::SERVER_PORT, dhcpv6::SERVER_PORT);
        self.frame(port, dhcpv6::frame(from, self.own, ports, &reply.emit()))
    }

    /// A host gets an address for so many seconds.
    fn lease(&mut self, host: u8, address: Ipv6Addr, seconds: u32) -> usize {
        let got = self.ask(host, &asking(kind::REQUEST, host, &[address])).unwrap();
        self.answer(&got, &giving(kind::REPLY, host, &[(address, seconds)])).len()
    }

    /// Whose an address is.
    fn owner(&self, address: Ipv6Addr) -> Option<MacAddr> {
        let hosts = self.controller.hosts();
        Some(hosts.get(hosts.by_ip(address.into())?)?.mac)
    }

    fn seen(&mut self, host: u8, address: Ipv6Addr) {
        let port = PortNo(host.into());
        let seen = Item::HostSeen { port, mac: mac(host), ips: vec![address.into()] };
        self.controller.item(self.now, SWITCH, (VlanId::NONE, seen), &mut Vec::new());
    }

    /// Half a second goes by, in which nobody answers for an address.
    fn pass(&mut self) {
        for _ in 0..5 {
            self.now += Span::from_millis(100);
            self.controller.timeout(self.now, &mut Vec::new());
        }
    }

    /// The next incarnation has what this one has kept, and this server.
    fn restart(&mut self, config: &ControllerConfig) {
        let mut out = Vec::new();
        self.controller.keep(&mut out);
        let mut kept = Kept::new();
        keep(&mut kept, &mut out.into_iter().map(|(_, effect)| effect).collect());
        let stored: Vec<Stored> = kept.into_values().collect();
        self.controller = Controller::new(config, 16);
        self.controller.restore(self.now, &stored, &mut Vec::new());
    }

    fn counters(&self) -> axon_node::telemetry::DhcpCounters {
        self.controller.dhcp().counters()
    }
}

/// A message of or to a host with these addresses and the seconds that each is valid for.
fn giving(kind: u8, host: u8, addresses: &[(Ipv6Addr, u32)]) -> Vec<u8> {
    let mut ia = vec![0; 12];
    for (address, valid) in addresses {
        let mut one = address.octets().to_vec();
        one.extend([0; 4]);
        one.extend(valid.to_be_bytes());
        dhcpv6::push(&mut ia, option::IA_ADDRESS, &one);
    }
    let mut options = Vec::new();
    dhcpv6::push(&mut options, option::CLIENT_ID, &dhcpv6::duid(mac(host)));
    dhcpv6::push(&mut options, option::SERVER_ID, &dhcpv6::duid(mac(9)));
    dhcpv6::push(&mut options, option::UNICAST, &local(9).1.octets());
    dhcpv6::push(&mut options, option::IA_NA, &ia);
    dhcpv6::Message { kind, transaction: 0x77, options: &options }.emit()
}

fn asking(kind: u8, host: u8, addresses: &[Ipv6Addr]) -> Vec<u8> {
    let addresses: Vec<_> = addresses.iter().map(|&address| (address, 0)).collect();
    giving(kind, host, &addresses)
}

#[test]
fn a_client_is_served_by_the_host_that_is_the_server_and_its_address_is_bound() {
    let mut world = World::new();
    let solicit = asking(kind::SOLICIT, 1, &[]);
    let got = world.ask(1, &solicit).unwrap();
    let forward = Relayed::parse(&got).unwrap();
    assert_eq!((forward.kind, forward.hops, forward.link), (kind::RELAY_FORWARD, 0, LINK));
    assert_eq!((forward.peer, forward.interface), (local(1).1, &b"s1-p1"[..]));
    assert_eq!(forward.message, solicit);
    let sent = world.answer(&got, &giving(kind::ADVERTISE, 1, &[(ip(30), 60)]));
    let [(1, frame)] = &sent[..] else { panic!("{sent:?}") };
    let datagram = Datagram::parse(frame).unwrap();
    assert_eq!((datagram.to, datagram.to_port), (local(1).1, dhcpv6::CLIENT_PORT));
    let offer = dhcpv6::Message::parse(datagram.message).unwrap();
    assert_eq!((offer.kind, offer.transaction), (kind::ADVERTISE, 0x77));
    assert_eq!(dhcpv6::find(offer.options, option::UNICAST), None, "not past the relay");
    assert_eq!(world.owner(ip(30)), None, "an offer is no lease");
    assert_eq!(world.lease(1, ip(30), 60), 1);
    assert_eq!(world.owner(ip(30)), Some(mac(1)));
    // It stays with that host until it runs out.
    world.seen(2, ip(30));
    world.pass();
    assert_eq!(world.owner(ip(30)), Some(mac(1)), "though it does not answer for it");
    world.now += Span::from_secs(61);
    world.seen(2, ip(30));
    assert_eq!(world.owner(ip(30)), Some(mac(1)), "it is asked");
    world.pass();
    assert_eq!(world.owner(ip(30)), Some(mac(2)), "and silent");
}

#[test]
fn renewals_and_questions_go_to_the_server_and_what_is_given_back_is_free() {
    let mut world = World::new();
    world.lease(1, ip(30), 60);
    for asked in [kind::RENEW, kind::REBIND, kind::CONFIRM, kind::INFORMATION_REQUEST] {
        world.now += Span::from_secs(50);
        let got = world.ask(1, &asking(asked, 1, &[ip(30)])).unwrap();
        let sent = world.answer(&got, &giving(kind::REPLY, 1, &[(ip(30), 300)]));
        assert_eq!(sent.len(), 1, "kind {asked}");
    }
    world.seen(2, ip(30));
    assert_eq!(world.owner(ip(30)), Some(mac(1)), "after 200 s");
    // Another host can neither release it nor decline it.
    for given_up in [kind::RELEASE, kind::DECLINE] {
        assert_eq!(world.ask(2, &asking(given_up, 2, &[ip(30)])), None);
    }
    assert_eq!((world.owner(ip(30)), world.counters().misplaced), (Some(mac(1)), 2));
    assert!(world.ask(1, &asking(kind::RELEASE, 1, &[ip(30)])).is_some());
    assert_eq!(world.owner(ip(30)), Some(mac(2)), "which has claimed it");
    // The server takes an address back.
    world.lease(1, ip(31), 60);
    let got = world.ask(1, &asking(kind::RENEW, 1, &[ip(31)])).unwrap();
    assert_eq!(world.answer(&got, &giving(kind::REPLY, 1, &[(ip(31), 0)])).len(), 1);
    assert_eq!(world.owner(ip(31)), None);
}

#[test]
fn an_address_of_another_host_is_not_given_and_one_in_use_is_not_bound() {
    let mut world = World::new();
    world.lease(1, ip(30), 60);
    // Host 2 shows the identifier of host 1, and the server believes it.
    let got = world.ask(2, &asking(kind::REQUEST, 1, &[ip(30)])).unwrap();
    assert_eq!(world.answer(&got, &giving(kind::REPLY, 1, &[(ip(30), 60)])), []);
    assert_eq!((world.owner(ip(30)), world.counters().relay_conflicts), (Some(mac(1)), 1));
    // Host 4 has an address that nobody has given it: the client finds that out by itself.
    world.seen(4, ip(40));
    assert_eq!(world.lease(2, ip(40), 60), 1);
    assert_eq!((world.owner(ip(40)), world.counters().relay_conflicts), (Some(mac(4)), 2));
    assert!(world.ask(2, &asking(kind::DECLINE, 2, &[ip(40)])).is_some());
    assert_eq!(world.owner(ip(40)), Some(mac(4)));
}

#[test]
fn only_the_servers_own_answers_to_what_was_asked_reach_a_client() {
    let mut world = World::new();
    let got = world.ask(1, &asking(kind::REQUEST, 1, &[ip(30)])).unwrap();
    let reply = giving(kind::REPLY, 1, &[(ip(30), 60)]);
    let sound =
        Relayed { kind: kind::RELAY_REPLY, message: &reply, ..Relayed::parse(&got).unwrap() };
    // Other hosts, the server's MAC or address alone, and the server's at another port.
    let others = [(local(8), 2), ((mac(9), local(8).1), 2), ((mac(8), local(9).1), 2)];
    for (from, port) in others {
        assert_eq!(world.reply(&sound, from, port), []);
    }
    assert_eq!(world.counters().relay_refused, 3);
    // A message for another link, client, port or exchange; one within another; a wrong kind.
    let nested = Relayed { message: &sound.emit(), ..sound }.emit();
    let other = dhcpv6::Message { transaction: 9, ..dhcpv6::Message::parse(&reply).unwrap() };
    let other = other.emit();
    let wrong = asking(kind::REQUEST, 1, &[ip(30)]);
    let reconfigure = giving(10, 1, &[]);
    for bad in [
        Relayed { link: ip(99), ..sound },
        Relayed { hops: 1, ..sound },
        Relayed { peer: local(2).1, ..sound },
        Relayed { interface: b"s1-p2", ..sound },
        Relayed { kind: kind::RELAY_FORWARD, ..sound },
        Relayed { message: &nested, ..sound },
        Relayed { message: &other, ..sound },
        Relayed { message: &wrong, ..sound },
        Relayed { message: &reconfigure, ..sound },
        Relayed { message: b"", ..sound },
    ] {
        let got = world.ask(1, &asking(kind::REQUEST, 1, &[ip(30)])).unwrap();
        assert!(Relayed::parse(&got).is_some());
        assert_eq!(world.reply(&bad, local(9), AT), [], "{bad:?}");
        assert_eq!(world.owner(ip(30)), None);
    }
    assert_eq!(world.counters().relay_unmatched, 10);
    world.ask(1, &asking(kind::REQUEST, 1, &[ip(30)])).unwrap();
    assert_eq!(world.reply(&sound, local(9), AT).len(), 1, "the one that is right");
    assert_eq!(world.reply(&sound, local(9), AT), [], "once");
}

#[test]
fn long_options_torn_messages_and_nested_relays_of_hosts_do_not_go_on() {
    let mut world = World::new();
    let mut long = asking(kind::SOLICIT, 1, &[]);
    dhcpv6::push(&mut long, 16, &[7; 1_390]);
    assert_eq!(world.ask(1, &long), None, "longer than a frame with its relay header");
    let mut torn = asking(kind::SOLICIT, 1, &[]);
    torn.extend([0, 16, 0xff, 0xff, 1]);
    assert_eq!(world.ask(1, &torn), None);
    let message = asking(kind::SOLICIT, 1, &[]);
    let (link, peer) = (LINK, local(1).1);
    let forward = Relayed {
        kind: kind::RELAY_FORWARD,
        hops: 0,
        link,
        peer,
        interface: b"s1-p7",
        message: &message,
    };
    assert_eq!(world.ask(1, &forward.emit()), None);
    let counters = world.counters();
    assert_eq!((counters.relay_limited, counters.malformed, counters.relay_refused), (1, 1, 1));
}

#[test]
fn a_port_has_few_requests_outstanding_and_few_addresses() {
    let mut world = World::with(1);
    let mut sent = 0;
    for number in 0..200 {
        let message = asking(kind::SOLICIT, 1, &[]);
        let message =
            dhcpv6::Message { transaction: number, ..dhcpv6::Message::parse(&message).unwrap() };
        sent += usize::from(world.ask(1, &message.emit()).is_some());
    }
    assert_eq!((sent, world.counters().relay_limited), (16, 184));
    world.now += Span::from_secs(20);
    // Two hosts of a port ask before either has an address.
    let requests = [1, 2].map(|host| asking(kind::REQUEST, host, &[ip(30 + u16::from(host))]));
    let ports = (dhcpv6::CLIENT_PORT, dhcpv6::SERVER_PORT);
    let got: Vec<Vec<u8>> = [1_u8, 2]
        .iter()
        .zip(&requests)
        .map(|(&host, message)| {
            let frame = dhcpv6::frame(local(host), dhcpv6::all_servers(), ports, message);
            let sent = world.frame(1, frame);
            Datagram::parse(&sent[0].1).unwrap().message.to_vec()
        })
        .collect();
    assert_eq!(world.answer(&got[0], &giving(kind::REPLY, 1, &[(ip(31), 60)])).len(), 1);
    let sent = world.answer(&got[1], &giving(kind::REPLY, 2, &[(ip(32), 60)]));
    let [(AT, frame)] = &sent[..] else { panic!("{sent:?}") };
    let forward = Relayed::parse(Datagram::parse(frame).unwrap().message).unwrap();
    let release = dhcpv6::Message::parse(forward.message).unwrap();
    assert_eq!((release.kind, release.addresses()), (kind::RELEASE, Some(vec![(ip(32), 60)])));
    assert_eq!((world.owner(ip(32)), world.counters().port_full), (None, 1));
    let frame = dhcpv6::frame(local(2), dhcpv6::all_servers(), ports, &requests[1]);
    assert_eq!(world.frame(1, frame), [], "the server is not even asked now");
}

#[test]
fn the_next_incarnation_knows_whose_addresses_are_until_they_run_out() {
    let mut world = World::new();
    world.lease(1, ip(30), 300);
    world.seen(1, ip(30));
    world.lease(2, ip(31), 20);
    world.lease(2, ip(32), 300);
    assert!(world.ask(2, &asking(kind::RELEASE, 2, &[ip(32)])).is_some());
    world.now += Span::from_secs(100);
    world.restart(&config(64));
    let restored = world.controller.restored();
    assert_eq!((restored.leases, restored.refused), (2, 0), "one of them has run out");
    world.meet();
    world.seen(4, ip(31));
    assert_eq!(world.owner(ip(31)), None, "it stands for a minute more");
    // Neither who says that it has the address nor whoever the server gives it to has it.
    world.seen(4, ip(30));
    assert_eq!(world.owner(ip(30)), Some(mac(1)));
    assert_eq!(world.lease(2, ip(30), 300), 0);
    assert_eq!((world.owner(ip(30)), world.counters().relay_conflicts), (Some(mac(1)), 1));
    assert_eq!(world.lease(2, ip(31), 60), 1);
    // It ends when it was to end.
    world.now += Span::from_secs(200);
    world.seen(4, ip(30));
    world.pass();
    assert_eq!(world.owner(ip(30)), Some(mac(4)));
    // What a renewal says is kept, too.
    world.lease(1, ip(33), 60);
    world.seen(1, ip(33));
    let got = world.ask(1, &asking(kind::RENEW, 1, &[ip(33)])).unwrap();
    world.answer(&got, &giving(kind::REPLY, 1, &[(ip(33), 600)]));
    world.now += Span::from_secs(500);
    world.restart(&config(64));
    world.meet();
    world.seen(4, ip(33));
    assert_eq!(world.owner(ip(33)), Some(mac(1)));
}

#[test]
fn leases_of_a_relay_that_is_not_there_any_more_are_given_up() {
    let mut world = World::new();
    world.lease(1, ip(30), 300);
    world.restart(&ControllerConfig { dhcpv6: None, ..config(64) });
    let restored = world.controller.restored();
    assert_eq!((restored.leases, restored.refused), (0, 1));
}
