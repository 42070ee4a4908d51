//! Conversations with the address service, its replies read as a client reads them.

use crate::client::*;
use axon_controller::config::DhcpConfig;
use axon_controller::dhcp::{DhcpServer, Due, LeaseState};
use axon_controller::hosts::Place;
use axon_controller::topology::SwitchIndex;
use axon_link::config::ServerIdentity;
use axon_wire::priority::Priority;
use axon_wire::vlan::VlanTag;
use axon_wire::{MacAddr, PortNo, Span, Time};
use proptest::prelude::*;
use smoltcp::wire::*;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

struct World {
    server: DhcpServer,
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
            leases_per_port_max: 2,
            reservations: BTreeMap::from([(mac(9), ip(200))]),
            router: Some(ip(253)),
            dns: vec![ip(53), ip(54), ip(55), ip(56)],
            domain: None,
            mtu: None,
            clients: BTreeMap::new(),
            relay: None,
        };
        World {
            server: DhcpServer::new(ServerIdentity { mac: SERVER_MAC, ip: SERVER }, &config),
            now: Time::ZERO,
        }
    }

    /// Each host has a port of its own.
    fn say(&mut self, client: &Client) -> Option<Reply> {
        self.say_at(port(client.mac.0[5].into()), client)
    }

    fn say_at(&mut self, place: Place, client: &Client) -> Option<Reply> {
        self.receive_at(place, &client.frame())
    }

    fn receive_at(&mut self, place: Place, frame: &[u8]) -> Option<Reply> {
        let request = self.server.read(frame)?;
        let served = self.server.serve(self.now, place, true, &request);
        served.reply.map(|frame| Reply::parse(&frame))
    }

    /// A client asks for an address and takes what it is offered.
    fn lease(&mut self, host: u8) -> Option<Ipv4Addr> {
        let address = self.say(&client(host, Discover))?.yiaddr;
        assert_eq!(self.say(&selecting(host, address)).unwrap().kind, Ack);
        Some(address)
    }

    /// The host table shows a host at this port, or nowhere.
    fn shown(&mut self, host: u8, at: Option<Place>) {
        self.server.shown(self.now, mac(host), at, &[]);
    }

    fn state(&self, address: Ipv4Addr) -> LeaseState {
        self.server.leases().find(|(ip, _)| *ip == address).unwrap().1.state
    }
}

fn port(number: u16) -> Place {
    Place { switch: SwitchIndex(0), port: PortNo(number) }
}

fn release(host: u8, address: Ipv4Addr) -> Client {
    Client { ciaddr: address, server: Some(SERVER), ..client(host, Release) }
}

fn decline(host: u8, address: Ipv4Addr) -> Client {
    Client { kind: Decline, ..selecting(host, address) }
}

use DhcpMessageType::{Ack, Decline, Discover, Inform, Nak, Offer, Release};

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
    assert_eq!((lease.holder.mac, lease.state), (mac(1), LeaseState::Bound));
}

#[test]
fn a_request_with_a_priority_tag_is_answered_and_one_of_a_vlan_is_not() {
    for (vid, kind) in [(0, Some(Offer)), (1, None)] {
        let mut world = World::new();
        let plain = client(1, Discover).frame();
        let tag = VlanTag { vid, ..VlanTag::of_priority(Priority::MAX) };
        let frame = [&plain[..12], &tag.emit(), &plain[12..]].concat();
        assert_eq!(world.receive_at(port(1), &frame).map(|reply| reply.kind), kind);
        assert_eq!(world.server.counters().malformed, u64::from(kind.is_none()));
    }
}

#[test]
fn who_receives_broadcast_only_is_answered_by_broadcast_and_a_renewal_by_unicast() {
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
fn an_address_that_a_host_uses_without_a_lease_is_not_offered() {
    let mut world = World::new();
    assert!(world.server.claim(world.now, mac(50), port(50), ip(10)));
    assert!(!world.server.claim(world.now, mac(51), port(51), ip(10)), "from another port");
    assert_eq!(world.say(&client(1, Discover)).unwrap().yiaddr, ip(11));
    assert_eq!(world.say(&reboot(1, ip(10))).unwrap().kind, Nak);
    assert_eq!(world.say(&renewing(50, ip(10))).unwrap().kind, Ack, "it is its own");
    assert_eq!(world.state(ip(10)), LeaseState::Bound);
}

#[test]
fn an_address_without_a_lease_passes_on_when_its_host_has_been_gone_for_ten_seconds() {
    let mut world = World::new();
    assert!(world.server.claim(world.now, mac(50), port(50), ip(10)));
    assert!(!world.server.claim(world.now, mac(51), port(51), ip(10)));
    world.server.shown(world.now, mac(50), None, &[ip(10).into()]);
    let due = world.server.deadline().unwrap();
    assert_eq!(due, world.now + Span::from_secs(10));
    assert_eq!(world.server.take_due(due - Span::from_nanos(1)), Due::default());
    assert_eq!(world.server.take_due(due).free, [(ip(10), mac(51))]);
    assert!(world.server.claim(due, mac(51), port(51), ip(10)));
    assert_eq!(world.server.deadline(), None);
}

#[test]
fn a_lease_that_runs_out_stays_with_a_host_that_is_there_and_not_with_one_that_is_gone() {
    let mut world = World::new();
    assert_eq!((world.lease(1), world.lease(2)), (Some(ip(10)), Some(ip(11))));
    world.now += Span::from_secs(790);
    world.shown(2, None);
    world.now += Span::from_secs(10);
    assert_eq!(world.say(&client(3, Discover)).unwrap().yiaddr, ip(12));
    assert_eq!((world.state(ip(10)), world.state(ip(11))), (LeaseState::InUse, LeaseState::Free));
    assert_eq!(world.say(&reboot(3, ip(10))).unwrap().kind, Nak);
    assert_eq!(world.say(&renewing(1, ip(10))).unwrap().kind, Ack);
    assert_eq!(world.state(ip(10)), LeaseState::Bound);
}

#[test]
fn an_empty_pool_is_silent_and_released_or_declined_addresses_are_what_they_are() {
    let mut world = World::new();
    for host in 1..=3 {
        world.lease(host).unwrap();
    }
    assert_eq!(world.say(&client(4, Discover)), None);
    assert_eq!(world.server.counters().exhausted, 1);
    assert_eq!(world.say(&release(2, ip(11))), None);
    assert_eq!(world.say(&client(4, Discover)).unwrap().yiaddr, ip(11));
    assert_eq!(world.say(&decline(4, ip(11))), None);
    assert_eq!(world.say(&client(4, Discover)), None, "quarantined");
    world.now += Span::from_secs(600);
    assert_eq!(world.say(&client(4, Discover)).unwrap().yiaddr, ip(11));
}

#[test]
fn only_the_port_and_the_client_that_hold_an_address_give_it_back() {
    let mut world = World::new();
    let id: &[u8] = &[1, 2, 0, 0, 0, 0, 1];
    let own = |client: Client| Client { client_id: id, ..client };
    world.say(&own(client(1, Discover))).unwrap();
    world.say(&own(selecting(1, ip(10)))).unwrap();
    let mut refused = 0;
    for give_back in [release(1, ip(10)), decline(1, ip(10))] {
        world.say_at(port(7), &own(give_back.clone()));
        world.say(&give_back);
        world.say(&Client { client_id: &[9], ..give_back.clone() });
        world.say(&Client { mac: mac(2), ..own(give_back) });
        refused += 4;
        assert_eq!(world.state(ip(10)), LeaseState::Bound);
        assert_eq!(world.server.counters().misplaced, refused);
    }
    world.say(&own(release(1, ip(10))));
    assert_eq!(world.state(ip(10)), LeaseState::Free);
}

#[test]
fn a_client_that_declines_what_it_uses_without_a_lease_keeps_its_lease() {
    let mut world = World::new();
    world.lease(1);
    assert!(world.server.claim(world.now, mac(1), port(1), ip(11)));
    world.say(&decline(1, ip(11)));
    assert_eq!((world.state(ip(10)), world.state(ip(11))), (LeaseState::Bound, LeaseState::InUse));
}

#[test]
fn a_renewal_at_another_port_moves_no_lease_and_a_host_that_stays_there_does() {
    let mut world = World::new();
    world.lease(1);
    world.shown(1, Some(port(7)));
    assert_eq!(world.say_at(port(7), &renewing(1, ip(10))).unwrap().kind, Ack);
    world.say_at(port(7), &release(1, ip(10)));
    assert_eq!(world.state(ip(10)), LeaseState::Bound, "it was at its own port just now");
    world.now += Span::from_secs(9);
    world.shown(1, Some(port(1)));
    world.now += Span::from_secs(1);
    world.say(&release(1, ip(10)));
    assert_eq!(world.state(ip(10)), LeaseState::Bound, "so soon after its MAC was elsewhere");
    world.shown(1, Some(port(7)));
    world.now += Span::from_secs(10);
    assert_eq!(world.server.take_due(world.now).queries, [(port(1), mac(1), ip(10))]);
    world.now += Span::from_secs(10);
    world.say(&release(1, ip(10)));
    assert_eq!(world.state(ip(10)), LeaseState::Bound, "the lease has moved along");
    world.say_at(port(7), &release(1, ip(10)));
    assert_eq!(world.state(ip(10)), LeaseState::Free);
}

#[test]
fn a_client_that_the_host_table_shows_elsewhere_gets_nothing_new() {
    let mut world = World::new();
    let mut elsewhere = |client: &Client| {
        let request = world.server.read(&client.frame()).unwrap();
        world.server.serve(world.now, port(7), false, &request).reply
    };
    assert_eq!(elsewhere(&client(1, Discover)), None);
    assert_eq!(elsewhere(&reboot(1, ip(11))), None);
    assert_eq!(elsewhere(&reboot(9, ip(200))), None);
    assert_eq!((world.server.counters().misplaced, world.server.leases().count()), (3, 0));
}

#[test]
fn a_port_holds_a_bounded_number_of_leases_and_those_of_hosts_that_are_gone_go_first() {
    let mut world = World::new();
    let at_one = |world: &mut World, host| {
        let offer = world.say_at(port(1), &client(host, Discover))?;
        Some(world.say_at(port(1), &selecting(host, offer.yiaddr)).unwrap().yiaddr)
    };
    assert_eq!((at_one(&mut world, 1), at_one(&mut world, 2)), (Some(ip(10)), Some(ip(11))));
    assert_eq!(at_one(&mut world, 3), None);
    assert_eq!(world.say_at(port(1), &reboot(3, ip(12))), None, "nor without an offer");
    assert!(!world.server.claim(world.now, mac(3), port(1), ip(12)), "nor without a lease");
    assert_eq!(world.server.counters().port_full, 2);
    world.shown(2, None);
    assert_eq!(at_one(&mut world, 3), None, "its host may be back in a moment");
    world.now += Span::from_secs(10);
    assert_eq!(at_one(&mut world, 3), Some(ip(12)));
    assert_eq!(world.state(ip(11)), LeaseState::Free);
    assert_eq!(world.server.counters().reclaimed, 1);
}

#[test]
fn an_empty_pool_reclaims_the_lease_whose_host_has_been_gone_longest() {
    let mut world = World::new();
    for host in 1..=3 {
        world.lease(host).unwrap();
    }
    world.shown(2, None);
    world.now += Span::from_secs(30);
    world.shown(1, None);
    world.now += Span::from_secs(29);
    assert_eq!(world.lease(4), None, "a host that restarts finds its lease");
    world.now += Span::from_secs(1);
    assert_eq!(world.lease(4), Some(ip(11)));
    assert_eq!(world.lease(5), None);
    world.shown(1, Some(port(1)));
    world.now += Span::from_secs(100);
    assert_eq!(world.lease(5), None, "all hosts are there");
    assert_eq!(world.say(&renewing(1, ip(10))).unwrap().kind, Ack);
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
    assert_eq!(world.server.read(&frame), None);
    assert_eq!(world.server.counters().malformed, 1);
}

proptest! {
    #[test]
    fn hostile_bytes_are_answered_within_the_pool_or_not_at_all(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        flips in prop::collection::vec((0..400_usize, any::<u8>()), 0..6),
        kind in 0..10_u8,
        length in 0..420_usize,
    ) {
        let mut world = World::new();
        let mut serve = |frame: &[u8]| {
            let request = world.server.read(frame)?;
            world.server.serve(Time::ZERO, port(0), true, &request).reply
        };
        prop_assert_eq!(serve(&bytes), None, "no checksum fits");
        // A lawful frame with a few bytes changed, its UDP checksum off so that the
        // changes are seen.
        let mut frame = selecting(1, ip(10)).frame();
        frame[40..42].fill(0);
        for (at, byte) in flips {
            let at = 34 + at % (frame.len() - 34);
            frame[at] = byte;
        }
        // An answer is known by its transaction.
        frame[46..50].copy_from_slice(&0x1234_5678_u32.to_be_bytes());
        let at = frame.windows(3).position(|window| window[..2] == [53, 1]);
        if let Some(at) = at {
            frame[at + 2] = kind;
        }
        frame.truncate(length);
        if let Some(reply) = serve(&frame) {
            let reply = Reply::parse(&reply);
            let given = [ip(10), ip(11), ip(12), ip(200)].contains(&reply.yiaddr);
            let no_address = matches!(reply.kind, Nak | Ack) && reply.yiaddr == NONE;
            prop_assert!(given || no_address, "{:?} {}", reply.kind, reply.yiaddr);
        }
        prop_assert!(world.server.leases().count() <= 4);
    }
}
