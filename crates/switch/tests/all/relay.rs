//! Requests of DHCP clients on their way to a server that is a host, and its answers.

use crate::client::{self, Client, NONE, Reply, SERVER, SERVER_MAC, ip, mac, selecting};
use crate::controller;
use crate::one_switch::{self, SWITCH};
use axon_controller::Controller;
use axon_controller::Effect;
use axon_controller::config::{RelayConfig, UplinkConfig};
use axon_controller::dhcp::LeaseState;
use axon_wire::message::{HostFrame, Item, Message};
use axon_wire::vlan::VlanId;
use axon_wire::{MacAddr, PortNo, Time};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::*;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// The port of the server, and the server: host 9.
const AT: PortNo = PortNo(3);

/// One switch with hosts at all its ports.
struct World {
    controller: Controller,
    now: Time,
}

impl World {
    fn new() -> World {
        World::with(64)
    }

    /// With so many addresses at each port.
    fn with(per_port: usize) -> World {
        let mut config = controller::config();
        config.dhcp.leases_per_port_max = per_port;
        let names = BTreeMap::from([(SWITCH.node, "s1".into())]);
        config.dhcp.relay =
            Some(RelayConfig { ip: ip(9), mac: mac(9), at: (SWITCH.node, AT), names });
        let mut controller = Controller::new(&config, 16);
        let (reverse, hello) = (one_switch::reverse(), one_switch::hello());
        controller.controller_hello(Time::ZERO, SWITCH, reverse, hello, &mut Vec::new());
        World { controller, now: Time::ZERO }
    }

    /// A host's DHCP frame; returns the frames that go to ports.
    fn frame(&mut self, port: u16, frame: Vec<u8>) -> Vec<(u16, Vec<u8>)> {
        let (mut out, port) = (Vec::new(), PortNo(port));
        self.controller.dhcp_relay(self.now, SWITCH, HostFrame { port, frame }, &mut out);
        let to_port = |effect| match effect {
            (_, Effect::Routed { message: Message::HostFrame(m), .. }) => Some((m.port.0, m.frame)),
            _ => None,
        };
        out.into_iter().filter_map(to_port).collect()
    }

    /// Returns what the server receives of a client's message at port 1.
    fn ask(&mut self, client: &Client) -> Vec<u8> {
        let sent = self.frame(1, client.frame());
        let [(port, frame)] = &sent[..] else { panic!("{sent:?}") };
        assert_eq!((*port, MacAddr::destination_of(frame)), (AT.0, Some(mac(9))));
        frame.clone()
    }

    fn counters(&self) -> axon_node::telemetry::DhcpCounters {
        self.controller.dhcp().counters()
    }
}

/// The server's answer to what it got: an address for a minute.
fn answer(got: &[u8], from: (MacAddr, Ipv4Addr), kind: u8, address: Ipv4Addr) -> Vec<u8> {
    let mut message = got[42..].to_vec();
    message[0] = 2;
    message[16..20].copy_from_slice(&address.octets());
    let kind_at = 240 + message[240..].windows(2).position(|at| at == [53, 1]).unwrap() + 2;
    message[kind_at] = kind;
    let server = [54, 4, 10, 0, 0, 9, 51, 4, 0, 0, 0, 60];
    message.splice(kind_at + 1..kind_at + 1, server);
    datagram(from, &message)
}

fn datagram(from: (MacAddr, Ipv4Addr), message: &[u8]) -> Vec<u8> {
    let ipv4 = Ipv4Repr {
        src_addr: from.1,
        dst_addr: SERVER,
        next_header: IpProtocol::Udp,
        payload_len: 8 + message.len(),
        hop_limit: 64,
    };
    let ethernet = EthernetRepr {
        src_addr: EthernetAddress(from.0.0),
        dst_addr: EthernetAddress(SERVER_MAC.0),
        ethertype: EthernetProtocol::Ipv4,
    };
    let mut frame = vec![0; 34 + ipv4.payload_len];
    let checksums = ChecksumCapabilities::default();
    ethernet.emit(&mut EthernetFrame::new_unchecked(&mut frame[..]));
    ipv4.emit(&mut Ipv4Packet::new_unchecked(&mut frame[14..]), &checksums);
    UdpRepr { src_port: 67, dst_port: 67 }.emit(
        &mut UdpPacket::new_unchecked(&mut frame[34..]),
        &from.1.into(),
        &SERVER.into(),
        message.len(),
        |payload| payload.copy_from_slice(message),
        &checksums,
    );
    frame
}

const OFFER: u8 = 2;
const ACK: u8 = 5;

fn discover() -> Client {
    client::client(1, DhcpMessageType::Discover)
}

#[test]
fn a_client_is_served_by_the_host_that_is_the_server_and_its_address_is_learned() {
    let mut world = World::new();
    let from = (mac(9), ip(9));
    let got = world.ask(&discover());
    let packet = DhcpPacket::new_checked(&got[42..]).unwrap();
    assert_eq!((packet.relay_agent_ip(), packet.hops()), (SERVER, 1));
    let information = packet.options().find(|option| option.kind == 82).unwrap();
    assert_eq!(information.data, b"\x01\x05s1-p1\x02\x02s1");

    let offered = world.frame(AT.0, answer(&got, from, OFFER, ip(30)));
    let [(1, frame)] = &offered[..] else { panic!("{offered:?}") };
    let offer = Reply::parse(frame);
    assert_eq!((offer.kind, offer.yiaddr), (DhcpMessageType::Offer, ip(30)));
    assert!(world.controller.dhcp().lease(ip(30)).is_none(), "an offer is none");

    // The client names the relay as its server; the server is named itself.
    let got = world.ask(&selecting(1, ip(30)));
    let packet = DhcpPacket::new_checked(&got[42..]).unwrap();
    let named = packet.options().find(|option| option.kind == 54).unwrap();
    assert_eq!(named.data, ip(9).octets());
    let acked = world.frame(AT.0, answer(&got, from, ACK, ip(30)));
    let [(1, frame)] = &acked[..] else { panic!("{acked:?}") };
    assert_eq!(Reply::parse(frame).kind, DhcpMessageType::Ack);
    let lease = world.controller.dhcp().lease(ip(30)).unwrap();
    assert_eq!((lease.holder.mac, lease.state), (mac(1), LeaseState::Bound));
    assert!(world.controller.hosts().by_ip(ip(30).into()).is_some());
    let again = world.frame(AT.0, answer(&got, from, ACK, ip(30)));
    assert_eq!((again.len(), world.counters().relay_unmatched), (0, 1), "answered already");
}

#[test]
fn answers_of_others_are_refused_and_counted() {
    let mut world = World::new();
    let got = world.ask(&discover());
    let other = (mac(8), ip(8));
    assert_eq!(world.frame(2, answer(&got, other, OFFER, ip(30))), []);
    assert_eq!(world.frame(2, answer(&got, (mac(8), ip(9)), OFFER, ip(30))), []);
    assert_eq!(world.counters().relay_refused, 2);
    // The server's own, so that its port is known; then another port uses its MAC.
    assert_eq!(world.frame(AT.0, answer(&got, (mac(9), ip(9)), OFFER, ip(30))).len(), 1);
    assert_eq!(world.frame(2, answer(&got, (mac(9), ip(9)), OFFER, ip(31))), []);
    assert_eq!(world.counters().relay_refused, 3);
}

#[test]
fn an_address_of_another_host_is_refused_to_the_client_and_declined_to_the_server() {
    let mut world = World::new();
    let (now, mut out) = (world.now, Vec::new());
    let seen = Item::HostSeen { port: PortNo(4), mac: mac(4), ips: vec![ip(30).into()] };
    world.controller.item(now, SWITCH, (VlanId::NONE, seen), &mut out);
    let taken = Item::HostSeen { port: PortNo(4), mac: mac(4), ips: vec![ip(110).into()] };
    world.controller.item(now, SWITCH, (VlanId::NONE, taken), &mut out);
    let got = world.ask(&selecting(1, ip(110)));
    let sent = world.frame(AT.0, answer(&got, (mac(9), ip(9)), ACK, ip(110)));
    let [(1, nak), (3, declined)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(Reply::parse(nak).kind, DhcpMessageType::Nak);
    let packet = DhcpPacket::new_checked(&declined[42..]).unwrap();
    let option = |kind| packet.options().find(|option| option.kind == kind).unwrap().data.to_vec();
    assert_eq!((option(53), option(50)), (vec![4], ip(110).octets().to_vec()));
    assert_eq!(packet.client_hardware_address().0, mac(1).0);
    assert_eq!(world.counters().relay_conflicts, 1);
}

#[test]
fn a_release_reaches_the_server_from_its_client_only() {
    let mut world = World::new();
    let got = world.ask(&selecting(1, ip(110)));
    assert_eq!(world.frame(AT.0, answer(&got, (mac(9), ip(9)), ACK, ip(110))).len(), 1);
    let release = |host| Client {
        ciaddr: ip(110),
        server: Some(SERVER),
        ..client::client(host, DhcpMessageType::Release)
    };
    assert_eq!(world.frame(2, release(2).frame()), []);
    assert_eq!(world.controller.dhcp().lease(ip(110)).unwrap().state, LeaseState::Bound);
    world.ask(&release(1));
    assert_eq!(world.controller.dhcp().lease(ip(110)).unwrap().state, LeaseState::Free);
    assert_eq!((world.counters().released, world.counters().misplaced), (1, 1));
}

#[test]
fn a_port_that_asks_without_end_has_few_requests_outstanding() {
    let mut world = World::new();
    let mut sent = 0;
    for number in 0..200_u32 {
        let mut frame = discover().frame();
        // Another transaction each; the checksum of UDP is left out.
        frame[46..50].copy_from_slice(&number.to_be_bytes());
        frame[40..42].fill(0);
        sent += world.frame(1, frame).len();
    }
    assert_eq!((sent, world.counters().relay_limited), (16, 184));
    assert_eq!(world.frame(2, client::client(2, DhcpMessageType::Discover).frame()).len(), 1);
}

/// The kind and the requested or own address of a message to the server.
fn sent_of(frame: &[u8]) -> (u8, Ipv4Addr) {
    let packet = DhcpPacket::new_checked(&frame[42..]).unwrap();
    let option = |kind| packet.options().find(|option| option.kind == kind);
    let requested = option(50).map(|option| <[u8; 4]>::try_from(option.data).unwrap().into());
    (option(53).unwrap().data[0], requested.unwrap_or(packet.client_ip()))
}

#[test]
fn a_port_that_is_full_declines_nothing_and_gives_what_it_cannot_have_back() {
    let mut world = World::with(1);
    let from = (mac(9), ip(9));
    let two = client::client(2, DhcpMessageType::Discover);
    // Both ask before either has an address, which is outside of the fabric's pool.
    let requests = [world.ask(&selecting(1, ip(30))), world.ask(&selecting(2, ip(31)))];
    assert_eq!(world.frame(AT.0, answer(&requests[0], from, ACK, ip(30))).len(), 1);
    let sent = world.frame(AT.0, answer(&requests[1], from, ACK, ip(31)));
    let [(1, nak), (3, released)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(Reply::parse(nak).kind, DhcpMessageType::Nak);
    assert_eq!(sent_of(released), (7, ip(31)), "a release");
    assert!(world.controller.dhcp().lease(ip(31)).is_none());
    assert_eq!((world.counters().port_full, world.counters().relay_conflicts), (1, 0));
    // Now that it is full the server is not even asked.
    for again in [two, selecting(2, ip(31)), client::reboot(2, ip(31))] {
        assert_eq!(world.frame(1, again.frame()), []);
    }
    assert_eq!(world.counters().port_full, 4);
    world.ask(&client::renewing(1, ip(30)));
}

#[test]
fn an_address_outside_of_the_pool_is_not_taken_from_the_host_that_uses_it() {
    let mut world = World::new();
    let (now, mut out) = (world.now, Vec::new());
    let seen = Item::HostSeen { port: PortNo(4), mac: mac(4), ips: vec![ip(30).into()] };
    world.controller.item(now, SWITCH, (VlanId::NONE, seen), &mut out);
    let user = world.controller.hosts().by_ip(ip(30).into());
    let got = world.ask(&selecting(1, ip(30)));
    let sent = world.frame(AT.0, answer(&got, (mac(9), ip(9)), ACK, ip(30)));
    let [(1, nak), (3, declined)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(Reply::parse(nak).kind, DhcpMessageType::Nak);
    assert_eq!(sent_of(declined), (4, ip(30)), "a decline");
    assert_eq!(world.controller.hosts().by_ip(ip(30).into()), user);
}

#[test]
fn who_shows_anothers_identifier_costs_it_no_address() {
    let mut world = World::new();
    let from = (mac(9), ip(9));
    let got = world.ask(&selecting(1, ip(110)));
    world.frame(AT.0, answer(&got, from, ACK, ip(110)));
    // The server takes host 2, at port 2, for host 1.
    let sent = world.frame(2, selecting(2, ip(110)).frame());
    let [(3, got)] = &sent[..] else { panic!("{sent:?}") };
    let sent = world.frame(AT.0, answer(got, from, ACK, ip(110)));
    let [(2, nak)] = &sent[..] else { panic!("nothing is declined: {sent:?}") };
    assert_eq!(Reply::parse(nak).kind, DhcpMessageType::Nak);
    assert_eq!(world.controller.dhcp().lease(ip(110)).unwrap().holder.mac, mac(1));
}

#[test]
fn information_renewal_and_rebinding_go_to_the_server_and_come_back_to_the_hosts_address() {
    let mut world = World::new();
    let from = (mac(9), ip(9));
    let got = world.ask(&selecting(1, ip(110)));
    world.frame(AT.0, answer(&got, from, ACK, ip(110)));
    let inform = Client { ciaddr: ip(110), ..client::client(1, DhcpMessageType::Inform) };
    let renew = Client { server: None, ..client::renewing(1, ip(110)) };
    for (asks, given) in [(inform, NONE), (renew, ip(110))] {
        let got = world.ask(&asks);
        let sent = world.frame(AT.0, answer(&got, from, ACK, given));
        let [(1, frame)] = &sent[..] else { panic!("{sent:?}") };
        let reply = Reply::parse(frame);
        assert_eq!((reply.kind, reply.to), (DhcpMessageType::Ack, (mac(1), ip(110))));
        assert_eq!(world.controller.dhcp().lease(ip(110)).unwrap().state, LeaseState::Bound);
    }
    let decline = Client { kind: DhcpMessageType::Decline, ..selecting(1, ip(110)) };
    let got = world.ask(&decline);
    assert_eq!(sent_of(&got), (4, ip(110)));
    assert_eq!(world.controller.dhcp().lease(ip(110)).unwrap().state, LeaseState::Declined);
}

#[test]
fn the_address_of_a_gateway_is_at_its_uplink_and_nowhere_else() {
    let mut config = controller::config();
    let gateway = ip(110);
    config.uplinks = vec![UplinkConfig { at: (SWITCH.node, PortNo(5)), gateway }];
    let mut controller = Controller::new(&config, 16);
    let mut seen = |host: u8| {
        let port = PortNo(host.into());
        let item = Item::HostSeen { port, mac: mac(host), ips: vec![gateway.into()] };
        controller.item(Time::ZERO, SWITCH, (VlanId::NONE, item), &mut Vec::new());
        let owner = controller.hosts().by_ip(gateway.into());
        owner.and_then(|owner| controller.hosts().get(owner)).map(|host| host.mac)
    };
    assert_eq!(seen(4), None, "an impostor");
    assert_eq!(seen(5), Some(mac(5)));
    assert_eq!(seen(4), Some(mac(5)));
    assert_eq!(controller.counters().ip_refused, 2);
    // It is in the pool, and nobody is offered it.
    let mut asks = client::client(1, DhcpMessageType::Discover);
    asks.requested = Some(gateway);
    let (mut out, frame) = (Vec::new(), asks.frame());
    let (reverse, hello) = (one_switch::reverse(), one_switch::hello());
    controller.controller_hello(Time::ZERO, SWITCH, reverse, hello, &mut out);
    controller.dhcp_relay(Time::ZERO, SWITCH, HostFrame { port: PortNo(1), frame }, &mut out);
    let offered = out.iter().find_map(|effect| match effect {
        (_, Effect::Routed { message: Message::HostFrame(m), .. }) => Some(Reply::parse(&m.frame)),
        _ => None,
    });
    let offered = offered.expect("an offer").yiaddr;
    assert!(offered != gateway && !offered.is_unspecified(), "{offered}");
}
