//! Tests of learning.

use super::super::testing::*;
use super::*;
use crate::config::PortPolicy;
use alloc::vec::Vec;
use axon_node::{Drop, PortKind};
use axon_wire::Span;
use axon_wire::host_frame;
use axon_wire::message::Item;
use axon_wire::{Incarnation, Route};
use core::net::Ipv4Addr;

fn reports(effects: &[Effect]) -> Vec<Item> {
    let report = |effect: &Effect| match effect {
        Effect::Report(item) => Some(item.clone()),
        _ => None,
    };
    effects.iter().filter_map(report).collect()
}

fn seen(port: u16, n: u8, with_ip: bool) -> Item {
    let ips = with_ip.then(|| ip(n).into()).into_iter().collect();
    Item::HostSeen { port: PortNo(port), mac: mac(n), ips }
}

fn gone(port: u16, n: u8) -> Item {
    Item::HostGone { port: PortNo(port), mac: mac(n) }
}

#[test]
fn after_a_long_time_without_the_controller_all_hosts_are_reported_again() {
    let mut bench = Bench::new();
    bench.host(0, 1);
    bench.host(1, 2);
    bench.controller(None);
    // Probes are answered meanwhile.
    let pass = |bench: &mut Bench, seconds: u64| {
        for _ in 0..seconds {
            bench.pass(Span::from_secs(1));
            bench.host(0, 1);
        }
    };
    pass(&mut bench, 10);
    assert_eq!(reports(&bench.controller(Some(CONTROLLER))), [], "nothing has changed");
    bench.controller(None);
    pass(&mut bench, 40);
    let expected = [seen(0, 1, true), gone(1, 2)];
    assert_eq!(reports(&bench.controller(Some(CONTROLLER))), expected);
    assert_eq!(reports(&bench.controller(Some(CONTROLLER))), []);
}

#[test]
fn a_host_is_learned_from_any_frame_and_its_address_from_arp() {
    let mut bench = Bench::new();
    let effects = bench.frame(0, &udp_frame(mac(9), mac(1), 0));
    assert_eq!(effects[0], Effect::Note(Note::HostUp { port: PortNo(0), mac: mac(1) }));
    assert_eq!(reports(&effects), [seen(0, 1, false)]);
    assert_eq!(reports(&bench.host(0, 1)), [seen(0, 1, true)]);
    assert_eq!(bench.host(0, 1), [], "nothing new, and nobody answers a gratuitous ARP");
}

#[test]
fn an_uplink_has_room_for_many_and_the_longest_silent_gives_its_place_up() {
    let mut config = Bench::config(1000, 4);
    config.ports = [PortPolicy { uplink: true, ..PortPolicy::default() }].into();
    let mut bench = Bench::on(TestDevice::new(8), config);
    let from = |number: u16| {
        let [a, b] = number.to_be_bytes();
        udp_frame(mac(9), MacAddr([2, 7, 0, 0, a, b]), 0)
    };
    for number in 0..1_000 {
        bench.frame(0, &from(number));
    }
    assert_eq!(bench.edge.plain().parts().hosts().count_on(PortNo(0)), 1_000);
    bench.frame(0, &from(1_000));
    assert_eq!(bench.edge.counters().hosts_refused, 1, "none of them was silent for long");
    let silence = bench.edge.plain_mut().settings().host_probe
        * u64::from(bench.edge.plain_mut().settings().host_probes_max + 1);
    bench.pass(silence + Span::from_secs(1));
    bench.frame(0, &from(0));
    bench.frame(0, &from(1_000));
    let is_there = |number: u16| {
        let [a, b] = number.to_be_bytes();
        bench.edge.plain().parts().hosts().is_on(MacAddr([2, 7, 0, 0, a, b]), PortNo(0))
    };
    assert_eq!([0, 1, 2, 1_000].map(is_there), [true, false, true, true]);
}

#[test]
fn a_dhcp_acknowledgement_teaches_the_address() {
    use smoltcp::wire::{DhcpMessageType, DhcpPacket, DhcpRepr, EthernetAddress};
    let mut bench = Bench::new();
    bench.frame(0, &udp_frame(mac(9), mac(1), 0));
    let dhcp = DhcpRepr {
        message_type: DhcpMessageType::Ack,
        transaction_id: 1,
        secs: 0,
        client_hardware_address: EthernetAddress(mac(1).0),
        client_ip: Ipv4Addr::UNSPECIFIED,
        your_ip: ip(1),
        server_ip: Ipv4Addr::UNSPECIFIED,
        router: None,
        subnet_mask: None,
        relay_agent_ip: Ipv4Addr::UNSPECIFIED,
        broadcast: false,
        requested_ip: None,
        client_identifier: None,
        server_identifier: Some(SERVER.ip),
        parameter_request_list: None,
        dns_servers: None,
        max_size: None,
        lease_duration: Some(60),
        renew_duration: None,
        rebind_duration: None,
        additional_options: &[],
    };
    let mut payload = alloc::vec![0; dhcp.buffer_len()];
    dhcp.emit(&mut DhcpPacket::new_unchecked(&mut payload)).unwrap();
    let frame = dhcp_frame(mac(1), SERVER.mac, (67, 68), &payload);
    let effects = bench.send_to_host(0, frame.clone());
    assert_eq!(reports(&effects), [seen(0, 1, true)]);
    assert_eq!(effects.last(), Some(&Effect::Host { port: PortNo(0), frame: frame.clone() }));
    assert_eq!(bench.send_to_host(3, frame), [], "port 3 has no hosts");
}

#[test]
fn the_fabrics_own_and_group_addresses_are_never_learned() {
    let mut bench = Bench::new();
    let own = MacAddr([2, 0xee, 0, 0, 0, 1]);
    for source in [SERVER.mac, own, MacAddr::BROADCAST, MacAddr([0; 6])] {
        assert_eq!(bench.frame(0, &udp_frame(mac(9), source, 0)), []);
        assert!(bench.last_drop().is_some(), "{source}");
    }
    assert_eq!(bench.edge.plain().hosts().count(), 0);
    let mut claims_server = host_frame::request(mac(1), SERVER.ip, MacAddr::BROADCAST, ip(9));
    bench.frame(0, &claims_server);
    assert_eq!(bench.last_drop(), Some(Drop::Refused));
    claims_server[22..28].copy_from_slice(&mac(5).0);
    bench.frame(0, &claims_server);
    assert!(bench.edge.plain().hosts().next().unwrap().1.ips.is_empty());
}

#[test]
fn a_host_that_answers_its_probes_stays() {
    let mut bench = Bench::new();
    bench.host(0, 1);
    for _ in 0..10 {
        let probes = arps(&bench.pass(Span::from_secs(5)));
        let [(PortNo(0), arp)] = probes[..] else { panic!("one probe, not {probes:?}") };
        assert_eq!((arp.sender_mac, arp.sender_ip), (SERVER.mac, SERVER.ip));
        assert_eq!(arp.target_ip, ip(1));
        bench.frame(0, &host_frame::reply(mac(1), ip(1), SERVER.mac, SERVER.ip));
    }
    assert_eq!(bench.edge.plain().hosts().count(), 1);
}

#[test]
fn a_dead_host_takes_its_flows_along() {
    let mut bench = Bench::new();
    bench.host(0, 1);
    bench.set_route(0, 9, 1, 3);
    let effects = bench.pass(Span::from_secs(20));
    assert_eq!(arps(&effects).len(), 3, "three probes");
    assert_eq!(reports(&effects), [gone(0, 1)]);
    let (port, destination) = (PortNo(0), mac(9));
    assert!(effects.contains(&Effect::Note(Note::RouteRemoved { port, destination })));
    assert!(effects.contains(&Effect::Note(Note::HostDown { port, mac: mac(1) })));
    assert!(bench.is_empty());
    assert_eq!(bench.edge.plain().flows().count(), 0);
    bench.set_route(0, 9, 2, 3);
    assert!(bench.is_empty(), "a port without hosts has no routes");
}

#[test]
fn a_dead_host_leaves_the_routes_of_its_neighbour() {
    let mut bench = Bench::new();
    bench.host(0, 1);
    bench.frame(0, &udp_frame(mac(9), mac(2), 0));
    bench.set_route(0, 9, 1, 3);
    assert_eq!(reports(&bench.pass(Span::from_secs(60))), [gone(0, 1)]);
    assert_eq!(bench.placed(0, 9), Some(Route::from([3])));
    let left: Vec<_> = bench.edge.plain().hosts().map(|(mac, _)| mac).collect();
    assert_eq!(left, [mac(2)], "without an address it cannot be asked");
}

#[test]
fn a_moved_host_leaves_its_old_port_with_its_flows() {
    let mut bench = Bench::new();
    bench.host(0, 1);
    bench.set_route(0, 9, 1, 3);
    bench.frame(0, &arp_request(1, 8));
    bench.pass(Span::from_secs(1));
    let effects = bench.host(1, 1);
    assert_eq!(reports(&effects), [gone(0, 1), seen(1, 1, false), seen(1, 1, true)]);
    assert!(bench.is_empty());
    assert_eq!(bench.edge.plain().setups(), 0);
    assert_eq!(reports(&bench.host(0, 1)), [], "it cannot be on two ports at once");
    assert_eq!(bench.edge.counters().hosts_refused, 1);
}

#[test]
fn a_port_that_goes_takes_hosts_flows_and_waiting_frames_along() {
    for kind in [None, Some(PortKind::Axon), Some(PortKind::Unknown)] {
        let mut bench = Bench::new();
        bench.host(0, 1);
        bench.set_route(0, 9, 1, 3);
        bench.frame(0, &arp_request(1, 7));
        let frame = udp_frame(mac(8), mac(1), 0);
        bench.frame(0, &frame);
        bench.target(axon_wire::message::ArpTarget { source_mac: mac(6), ..looked_for(2) });
        let effects = bench.port(0, kind);
        assert_eq!(reports(&effects), [gone(0, 1)]);
        assert_eq!(bench.dropped, [(PortNo(0), Drop::NoRoute, frame.clone())]);
        assert!(bench.is_empty());
        assert_eq!((bench.edge.plain().setups(), bench.waiting_bytes()), (0, 0));
        assert_eq!(bench.frame(0, &frame), []);
        assert_eq!(bench.last_drop(), Some(Drop::Refused));
    }
}

#[test]
fn a_new_controller_incarnation_gets_all_hosts_and_open_requests() {
    let mut bench = Bench::new();
    bench.host(0, 1);
    bench.host(1, 2);
    let open = asked(&bench.frame(0, &arp_request(1, 7)));
    let incarnation = Incarnation { number: 6, ..CONTROLLER };
    let effects = bench.controller(Some(incarnation));
    assert_eq!(reports(&effects), [seen(0, 1, true), seen(1, 2, true)]);
    assert_eq!(asked(&effects), open, "it is asked what the old one did not answer");
}

#[test]
fn what_changes_without_a_controller_is_reported_when_it_is_back() {
    let mut bench = Bench::new();
    bench.host(0, 1);
    bench.host(1, 2);
    bench.set_route(1, 9, 1, 3);
    assert_eq!(bench.controller(None), []);
    bench.port(0, None);
    assert_eq!(reports(&bench.host(2, 3)), []);
    assert_eq!(
        reports(&bench.controller(Some(CONTROLLER))),
        [gone(0, 1), seen(2, 3, true)],
        "only what has changed"
    );
    assert_eq!(bench.placed(1, 9), Some(Route::from([3])), "flows have gone on");
    assert_eq!(bench.controller(Some(CONTROLLER)), []);
}

#[test]
fn a_full_port_makes_room_only_in_place_of_a_long_silent_host_without_address() {
    let mut bench = Bench::with(8, 1000, 2);
    bench.host(0, 1);
    bench.frame(0, &udp_frame(mac(9), mac(2), 0));
    assert_eq!(bench.host(0, 3), []);
    assert_eq!(bench.last_drop(), Some(Drop::Refused));
    for _ in 0..6 {
        bench.pass(Span::from_secs(4));
        bench.host(0, 1);
    }
    let effects = bench.host(0, 3);
    assert_eq!(reports(&effects), [gone(0, 2), seen(0, 3, false), seen(0, 3, true)]);
}

#[test]
fn probes_of_hosts_that_came_together_are_spread() {
    let mut bench = Bench::with(8, 1000, 100);
    for n in 1..=100 {
        bench.host(0, n);
    }
    for _ in 0..50 {
        assert!(arps(&bench.pass(Span::from_millis(50))).is_empty());
    }
    let most = (0..50).map(|_| arps(&bench.pass(Span::from_millis(50))).len()).max();
    assert!(most < Some(10), "{most:?} probes in 50 ms");
}
