//! Reservations by MAC and by client identifier, addresses of tenants, and the options of a lease.

use crate::client::*;
use axon_controller::config::DhcpConfig;
use axon_controller::dhcp::{DhcpServer, LeaseState};
use axon_controller::hosts::Place;
use axon_controller::topology::SwitchIndex;
use axon_link::config::ServerIdentity;
use axon_wire::{PortNo, Span, Time};
use smoltcp::wire::DhcpMessageType::{Ack, Discover, Nak};
use smoltcp::wire::DhcpPacket;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// The reader of replies here takes identifiers of seven bytes only.
const PRINTER: &[u8] = &[1, 2, 0, 0, 0, 0, 0x50];

/// A pool from .10 to .14; .200 is host 9's and .201 the printer's.
fn server() -> DhcpServer {
    let config = DhcpConfig {
        prefix_len: 24,
        pool_first: ip(10),
        pool_last: ip(14),
        lease: Span::from_secs(800),
        leases_per_port_max: 8,
        reservations: BTreeMap::from([(mac(9), ip(200))]),
        router: None,
        dns: Vec::new(),
        domain: Some("lab.example".into()),
        mtu: Some(1400),
        clients: BTreeMap::from([(PRINTER.to_vec(), ip(201))]),
        relay: None,
    };
    DhcpServer::new(ServerIdentity { mac: SERVER_MAC, ip: SERVER }, &config)
}

fn port(host: u8) -> Place {
    Place { switch: SwitchIndex(0), port: PortNo(host.into()) }
}

/// The frame that a client gets, each at a port of its own.
fn frame(server: &mut DhcpServer, now: Time, client: &Client) -> Option<Vec<u8>> {
    let request = server.read(&client.frame())?;
    server.serve(now, port(client.mac.0[5]), true, &request).reply
}

fn say(server: &mut DhcpServer, now: Time, client: &Client) -> Option<Reply> {
    frame(server, now, client).map(|frame| Reply::parse(&frame))
}

fn printer(client: Client) -> Client {
    Client { client_id: PRINTER, ..client }
}

/// Returns the address that a client is offered and requests.
fn lease(server: &mut DhcpServer, now: Time, host: u8, id: &'static [u8]) -> Ipv4Addr {
    let with_id = |client: Client| Client { client_id: id, ..client };
    let offered = say(server, now, &with_id(client(host, Discover))).unwrap().yiaddr;
    let ack = say(server, now, &with_id(selecting(host, offered))).unwrap();
    assert_eq!((ack.kind, ack.yiaddr), (Ack, offered));
    offered
}

#[test]
fn a_client_identifier_has_its_address_whatever_the_mac() {
    let (mut server, now) = (server(), Time::ZERO);
    assert_eq!(lease(&mut server, now, 1, PRINTER), ip(201));
    assert_eq!(say(&mut server, now, &printer(renewing(1, ip(201)))).unwrap().kind, Ack);
    assert_eq!(say(&mut server, now, &printer(reboot(1, ip(201)))).unwrap().kind, Ack);
    // Nobody else, with another identifier, by ARP or by name.
    assert_eq!(say(&mut server, now, &selecting(2, ip(201))).unwrap().kind, Nak);
    assert!(!server.claim(now, mac(2), port(2), ip(201)));
    assert!(server.claim(now, mac(1), port(1), ip(201)), "its own, by lease");
    // A MAC that has a reservation keeps it without the identifier.
    assert_eq!(lease(&mut server, now, 9, b""), ip(200));
}

#[test]
fn of_two_hosts_with_one_identifier_the_first_keeps_the_address_until_it_is_gone() {
    let (mut server, mut now) = (server(), Time::ZERO);
    assert_eq!(lease(&mut server, now, 1, PRINTER), ip(201));
    let second = lease(&mut server, now, 2, PRINTER);
    assert!((ip(10)..=ip(14)).contains(&second), "{second}");
    assert_eq!(say(&mut server, now, &printer(reboot(3, ip(201)))).unwrap().kind, Nak);
    // The printer gets another NIC.
    server.shown(now, mac(1), None, &[ip(201).into()]);
    now += Span::from_secs(20);
    assert_eq!(lease(&mut server, now, 3, PRINTER), ip(201));
    let of_printer = server.lease(ip(201)).unwrap();
    assert_eq!((of_printer.holder.mac, of_printer.state), (mac(3), LeaseState::Bound));
}

#[test]
fn addresses_of_tenants_are_leased_to_nobody() {
    let mut server = server();
    server.withhold([ip(11), ip(12)].into_iter());
    let given: Vec<_> = (1..=3).map(|host| lease(&mut server, Time::ZERO, host, b"")).collect();
    assert!(given.iter().all(|given| ![ip(11), ip(12)].contains(given)), "{given:?}");
    assert_eq!(say(&mut server, Time::ZERO, &client(4, Discover)), None, "the pool is empty");
    assert_eq!(say(&mut server, Time::ZERO, &selecting(4, ip(11))).unwrap().kind, Nak);
}

#[test]
fn a_lease_comes_with_domain_and_mtu() {
    let mut server = server();
    let frame = frame(&mut server, Time::ZERO, &client(1, Discover)).unwrap();
    let packet = DhcpPacket::new_checked(&frame[42..]).unwrap();
    let option = |kind| packet.options().find(|option| option.kind == kind).unwrap().data.to_vec();
    assert_eq!((option(15), option(26)), (b"lab.example".to_vec(), vec![5, 0x78]));
}
