//! Conversations with the address service, its replies read as a client reads them.

use axon_control::config::{DhcpConfig, ServerIdentity};
use axon_control::controller::dhcp::{DhcpServer, LeaseState};
use axon_control::controller::hosts::{HostTable, Learned, Place};
use axon_control::controller::topology::SwitchIndex;
use axon_wire::priority::Priority;
use axon_wire::vlan::VlanTag;
use axon_wire::{MacAddr, PortNo, Span, Time};
use proptest::prelude::*;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::*;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 254);
const SERVER_MAC: MacAddr = MacAddr([2, 255, 0, 0, 0, 1]);
const NONE: Ipv4Addr = Ipv4Addr::UNSPECIFIED;

fn ip(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, last)
}

fn mac(last: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, last])
}

struct World {
    server: DhcpServer,
    hosts: HostTable,
    now: Time,
}

impl World {
    /// A pool from .10 to .12; host 9 has .200 reserved.
    fn new() -> World {
        let config = DhcpConfig {
            prefix_len: 24,
            pool_first: ip(10),
            pool_last: ip(12),
            lease: Span::from_secs(800),
            reservations: BTreeMap::from([(mac(9), ip(200))]),
            router: Some(ip(253)),
            dns: vec![ip(53), ip(54), ip(55), ip(56)],
        };
        World {
            server: DhcpServer::new(ServerIdentity { mac: SERVER_MAC, ip: SERVER }, &config),
            hosts: HostTable::new(SERVER_MAC, IpAddr::V4(SERVER)),
            now: Time::ZERO,
        }
    }

    fn say(&mut self, client: &Client) -> Option<Reply> {
        self.hear(client.mac, &client.frame())
    }

    fn hear(&mut self, mac: MacAddr, frame: &[u8]) -> Option<Reply> {
        let place = Place { switch: SwitchIndex(0), port: PortNo(u16::from(mac.0[5])) };
        let served = self.server.serve(self.now, place, frame, &self.hosts)?;
        served.reply.map(|frame| Reply::parse(&frame))
    }
}

#[derive(Clone)]
struct Client {
    mac: MacAddr,
    kind: DhcpMessageType,
    ciaddr: Ipv4Addr,
    requested: Option<Ipv4Addr>,
    server: Option<Ipv4Addr>,
    broadcast: bool,
    client_id: &'static [u8],
}

fn client(host: u8, kind: DhcpMessageType) -> Client {
    Client {
        mac: mac(host),
        kind,
        ciaddr: NONE,
        requested: None,
        server: None,
        broadcast: false,
        client_id: &[],
    }
}

impl Client {
    fn frame(&self) -> Vec<u8> {
        let options = [DhcpOption { kind: 61, data: self.client_id }];
        let repr = DhcpRepr {
            message_type: self.kind,
            transaction_id: 0x1234_5678,
            secs: 3,
            client_hardware_address: EthernetAddress(self.mac.0),
            client_ip: self.ciaddr,
            your_ip: NONE,
            server_ip: NONE,
            router: None,
            subnet_mask: None,
            relay_agent_ip: NONE,
            broadcast: self.broadcast,
            requested_ip: self.requested,
            client_identifier: None,
            server_identifier: self.server,
            parameter_request_list: Some(&[1, 3, 6]),
            dns_servers: None,
            max_size: None,
            lease_duration: None,
            renew_duration: None,
            rebind_duration: None,
            additional_options: if self.client_id.is_empty() { &[] } else { &options },
        };
        let ip = Ipv4Repr {
            src_addr: self.ciaddr,
            dst_addr: Ipv4Addr::BROADCAST,
            next_header: IpProtocol::Udp,
            payload_len: 8 + repr.buffer_len(),
            hop_limit: 64,
        };
        let mut frame = vec![0; 34 + ip.payload_len];
        let ethernet = EthernetRepr {
            src_addr: EthernetAddress(self.mac.0),
            dst_addr: EthernetAddress::BROADCAST,
            ethertype: EthernetProtocol::Ipv4,
        };
        let checksums = ChecksumCapabilities::default();
        ethernet.emit(&mut EthernetFrame::new_unchecked(&mut frame[..]));
        ip.emit(&mut Ipv4Packet::new_unchecked(&mut frame[14..]), &checksums);
        UdpRepr { src_port: 68, dst_port: 67 }.emit(
            &mut UdpPacket::new_unchecked(&mut frame[34..]),
            &ip.src_addr.into(),
            &ip.dst_addr.into(),
            repr.buffer_len(),
            |payload| repr.emit(&mut DhcpPacket::new_unchecked(payload)).unwrap(),
            &checksums,
        );
        frame
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Reply {
    kind: DhcpMessageType,
    to: (MacAddr, Ipv4Addr),
    yiaddr: Ipv4Addr,
    seconds: (Option<u32>, Option<u32>, Option<u32>),
    mask: Option<Ipv4Addr>,
    router: Option<Ipv4Addr>,
    client_id: Option<Vec<u8>>,
    dns: Vec<u8>,
}

impl Reply {
    /// Every length and checksum is verified on the way.
    fn parse(frame: &[u8]) -> Reply {
        assert!(frame.len() >= 60);
        let ethernet = EthernetFrame::new_checked(frame).unwrap();
        assert_eq!(ethernet.src_addr().0, SERVER_MAC.0);
        let ip = Ipv4Packet::new_checked(ethernet.payload()).unwrap();
        let checksums = ChecksumCapabilities::default();
        let ip_repr = Ipv4Repr::parse(&ip, &checksums).unwrap();
        assert_eq!(ip_repr.src_addr, SERVER);
        assert_eq!(usize::from(ip.total_len()) + 14, frame.len());
        let udp = UdpPacket::new_checked(ip.payload()).unwrap();
        let ends = (ip.src_addr().into(), ip.dst_addr().into());
        let udp_repr = UdpRepr::parse(&udp, &ends.0, &ends.1, &checksums).unwrap();
        assert_ne!(udp.checksum(), 0);
        assert_eq!((udp_repr.src_port, udp_repr.dst_port), (67, 68));
        let payload = udp.payload();
        assert!((300..=548).contains(&payload.len()));
        let packet = DhcpPacket::new_checked(payload).unwrap();
        let repr = DhcpRepr::parse(&packet).unwrap();
        assert_eq!((repr.transaction_id, repr.server_identifier), (0x1234_5678, Some(SERVER)));
        let option = |kind| packet.options().find(|option| option.kind == kind);
        Reply {
            kind: repr.message_type,
            to: (MacAddr(ethernet.dst_addr().0), ip.dst_addr()),
            yiaddr: repr.your_ip,
            seconds: (repr.lease_duration, repr.renew_duration, repr.rebind_duration),
            mask: repr.subnet_mask,
            router: repr.router,
            client_id: option(61).map(|option| option.data.to_vec()),
            dns: option(6).map_or(Vec::new(), |option| option.data.to_vec()),
        }
    }
}

use DhcpMessageType::{Ack, Decline, Discover, Inform, Nak, Offer, Release, Request};

fn selecting(host: u8, address: Ipv4Addr) -> Client {
    Client { requested: Some(address), server: Some(SERVER), ..client(host, Request) }
}

fn reboot(host: u8, address: Ipv4Addr) -> Client {
    Client { requested: Some(address), ..client(host, Request) }
}

fn renewing(host: u8, address: Ipv4Addr) -> Client {
    Client { ciaddr: address, ..client(host, Request) }
}

#[test]
fn a_host_gets_an_address_and_all_that_comes_with_it() {
    let mut world = World::new();
    let id: &[u8] = &[255, 1, 2, 3, 4, 5, 6, 7, 8, 9];
    let offer = world.say(&Client { client_id: id, ..client(1, Discover) }).unwrap();
    assert_eq!((offer.kind, offer.yiaddr, offer.to), (Offer, ip(10), (mac(1), ip(10))));
    assert_eq!(offer.seconds, (Some(800), Some(400), Some(700)));
    assert_eq!((offer.mask, offer.router), (Some(Ipv4Addr::new(255, 255, 255, 0)), Some(ip(253))));
    assert_eq!(offer.client_id.as_deref(), Some(id));
    assert_eq!(offer.dns.len(), 16);
    let ack = world.say(&selecting(1, ip(10))).unwrap();
    assert_eq!((ack.kind, ack.yiaddr), (Ack, ip(10)));
    let (_, lease) = world.server.leases().next().unwrap();
    assert_eq!((lease.mac, lease.state), (mac(1), LeaseState::Bound));
}

#[test]
fn a_request_with_a_priority_tag_is_answered_and_one_of_a_vlan_is_not() {
    for (vid, kind) in [(0, Some(Offer)), (1, None)] {
        let mut world = World::new();
        let plain = client(1, Discover).frame();
        let tag = VlanTag { vid, ..VlanTag::of_priority(Priority::MAX) };
        let frame = [&plain[..12], &tag.emit(), &plain[12..]].concat();
        assert_eq!(world.hear(mac(1), &frame).map(|reply| reply.kind), kind);
        assert_eq!(world.server.counters().malformed, u64::from(kind.is_none()));
    }
}

#[test]
fn who_hears_broadcast_only_is_answered_by_broadcast_and_a_renewal_by_unicast() {
    let mut world = World::new();
    let deaf = Client { broadcast: true, ..client(1, Discover) };
    let everybody = (MacAddr::BROADCAST, Ipv4Addr::BROADCAST);
    assert_eq!(world.say(&deaf).unwrap().to, everybody);
    world.say(&selecting(1, ip(10))).unwrap();
    world.now += Span::from_secs(400);
    let ack = world.say(&renewing(1, ip(10))).unwrap();
    assert_eq!((ack.kind, ack.to), (Ack, (mac(1), ip(10))));
    world.now += Span::from_secs(700);
    let other = world.say(&Client { requested: Some(ip(10)), ..client(2, Discover) }).unwrap();
    assert_eq!(other.yiaddr, ip(11), "the renewed lease still stands");
}

#[test]
fn a_server_without_memory_confirms_what_is_free_and_refuses_what_is_not() {
    let mut world = World::new();
    assert_eq!(world.say(&renewing(1, ip(12))).unwrap().kind, Ack);
    assert_eq!(world.say(&reboot(2, ip(11))).unwrap().kind, Ack);
    let nak = world.say(&reboot(3, ip(11))).unwrap();
    assert_eq!((nak.kind, nak.yiaddr, nak.mask), (Nak, NONE, None));
    assert_eq!(nak.to, (MacAddr::BROADCAST, Ipv4Addr::BROADCAST));
    assert_eq!(world.say(&reboot(3, Ipv4Addr::new(192, 168, 0, 3))).unwrap().kind, Nak);
    assert_eq!(world.say(&reboot(3, ip(77))), None, "in the subnet, but not the server's");
    assert_eq!(world.say(&reboot(3, SERVER)).unwrap().kind, Nak);
    assert_eq!(world.say(&reboot(2, ip(10))).unwrap().kind, Nak, "it has another address");
}

#[test]
fn reserved_addresses_are_their_hosts_and_nobody_elses() {
    let mut world = World::new();
    assert_eq!(world.say(&client(9, Discover)).unwrap().yiaddr, ip(200));
    assert_eq!(world.say(&selecting(9, ip(200))).unwrap().kind, Ack);
    assert_eq!(world.say(&selecting(9, ip(10))).unwrap().kind, Nak);
    assert_eq!(world.say(&reboot(1, ip(200))).unwrap().kind, Nak);
}

#[test]
fn an_address_that_the_host_table_shows_in_use_is_not_offered() {
    let mut world = World::new();
    let place = Place { switch: SwitchIndex(3), port: PortNo(3) };
    let Learned::Here(host) = world.hosts.report(place, mac(50)) else { panic!() };
    world.hosts.own(host, IpAddr::V4(ip(10)));
    assert_eq!(world.say(&client(1, Discover)).unwrap().yiaddr, ip(11));
    assert_eq!(world.say(&reboot(1, ip(10))).unwrap().kind, Nak);
    assert_eq!(world.say(&renewing(50, ip(10))).unwrap().kind, Ack, "it is its own");
}

#[test]
fn an_empty_pool_is_silent_and_released_or_declined_addresses_are_what_they_are() {
    let mut world = World::new();
    for host in 1..=3 {
        let address = world.say(&client(host, Discover)).unwrap().yiaddr;
        world.say(&selecting(host, address)).unwrap();
    }
    assert_eq!(world.say(&client(4, Discover)), None);
    assert_eq!(world.server.counters().exhausted, 1);
    let release = Client { ciaddr: ip(11), server: Some(SERVER), ..client(2, Release) };
    assert_eq!(world.say(&release), None);
    assert_eq!(world.say(&client(4, Discover)).unwrap().yiaddr, ip(11));
    let decline = Client { kind: Decline, ..selecting(4, ip(11)) };
    assert_eq!(world.say(&decline), None);
    assert_eq!(world.say(&client(4, Discover)), None, "quarantined");
    world.now += Span::from_secs(600);
    assert_eq!(world.say(&client(4, Discover)).unwrap().yiaddr, ip(11));
}

#[test]
fn another_servers_client_is_left_alone_and_inform_gives_no_address() {
    let mut world = World::new();
    world.say(&client(1, Discover)).unwrap();
    let other = Client { server: Some(ip(99)), ..selecting(1, ip(10)) };
    assert_eq!(world.say(&other), None);
    let free = world.server.leases().all(|(_, lease)| lease.state == LeaseState::Free);
    assert!(free);
    let inform = world.say(&Client { ciaddr: ip(77), ..client(1, Inform) }).unwrap();
    assert_eq!((inform.kind, inform.yiaddr, inform.to), (Ack, NONE, (mac(1), ip(77))));
    assert_eq!(inform.seconds, (None, None, None));
}

#[test]
fn nobody_asks_in_anothers_name() {
    let mut world = World::new();
    let mut frame = client(1, Discover).frame();
    frame[11] = 7;
    let place = Place { switch: SwitchIndex(0), port: PortNo(0) };
    assert_eq!(world.server.serve(Time::ZERO, place, &frame, &world.hosts), None);
    assert_eq!(world.server.counters().malformed, 1);
}

proptest! {
    #[test]
    fn hostile_bytes_are_no_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        flips in prop::collection::vec((0..400_usize, any::<u8>()), 0..6),
        kind in 0..10_u8,
        length in 0..420_usize,
    ) {
        let mut world = World::new();
        let place = Place { switch: SwitchIndex(0), port: PortNo(0) };
        world.server.serve(Time::ZERO, place, &bytes, &world.hosts);
        // A lawful frame with a few bytes changed, its UDP checksum off so that the
        // changes are seen.
        let mut frame = selecting(1, ip(10)).frame();
        frame[40..42].fill(0);
        for (at, byte) in flips {
            let at = 34 + at % (frame.len() - 34);
            frame[at] = byte;
        }
        let at = frame.windows(3).position(|window| window[..2] == [53, 1]);
        if let Some(at) = at {
            frame[at + 2] = kind;
        }
        frame.truncate(length);
        let served = world.server.serve(Time::ZERO, place, &frame, &world.hosts);
        if let Some(reply) = served.and_then(|served| served.reply) {
            let ethernet = EthernetFrame::new_checked(&reply[..]).unwrap();
            let ip = Ipv4Packet::new_checked(ethernet.payload()).unwrap();
            let udp = UdpPacket::new_checked(ip.payload()).unwrap();
            DhcpRepr::parse(&DhcpPacket::new_checked(udp.payload()).unwrap()).ok();
        }
    }
}
