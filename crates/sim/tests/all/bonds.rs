//! Hosts with bonds over the data planes: ports of one or two switches are one location, and the
//! traffic when one of them, or its switch, fails.

use crate::common::{self, Builder, assert_sound, assert_whole, boot_on, end, fabric};
use axon_fabric::model::{Bond, End, Fabric, FaultKind};
use axon_link::lacp::Mux;
use axon_sim::apps::{AppId, Plan, TcpOptions, TcpPlan, UdpPlan};
use axon_sim::links::{LinkChange, WireEnd};
use axon_sim::{DataplaneKind, PingPlan, World};
use axon_wire::message::MemberState;
use axon_wire::{PortNo, Span};

/// The host with the bond.
const BONDED: usize = 0;

/// Each scenario of this file as a test on each data plane that answers at once.
macro_rules! on_each_dataplane {
    ($($scenario:ident,)*) => {
        mod software {
            $(#[test] fn $scenario() { super::$scenario(super::DataplaneKind::Software); })*
        }
        mod reference {
            $(#[test] fn $scenario() { super::$scenario(super::DataplaneKind::Reference); })*
        }
        mod pipeline {
            $(#[test] fn $scenario() { super::$scenario(super::DataplaneKind::Pipeline); })*
        }
    };
}

on_each_dataplane! {
    a_bond_to_two_switches_comes_up_and_everybody_reaches_it,
    each_port_and_each_switch_may_fail_and_come_back,
}

#[test]
fn a_data_plane_that_refuses_or_answers_late_carries_a_bond_too() {
    let mut world = boot_on(&two_switches(3), DataplaneKind::Refusing);
    await_members(&mut world, &[Mux::Distributing; 2]);
    assert_whole(&mut world);
    let link = world.layout().bond_link(BONDED, 0);
    world.engine_mut().change_link(link, LinkChange::Cut(true));
    world.run_for(Span::from_secs(2));
    assert_eq!(common::unreached(&mut world, &[(0, 1), (1, 0)], 30), []);
}

/// Four switches in a ring; h1 has a bond to s1 and s2, and `others` more hosts are at s3 and s4.
fn two_switches(others: usize) -> Builder {
    let mut builder = Builder::new(4);
    for switch in 0..4 {
        builder.link(switch, (switch + 1) % 4);
    }
    // Not at a switch that fails in this test.
    builder.fabric.controller.at = builder.free_port(2);
    builder.host(0, true);
    let first = end(0, builder.fabric.hosts[BONDED].port.0);
    let members = vec![first, builder.free_port(1)];
    for other in 0..others {
        builder.host(2 + other % 2, true);
    }
    builder.fabric.bonds =
        vec![Bond { name: "h1".into(), host: Some(BONDED), members, active: true }];
    builder
}

fn muxes(world: &World) -> Vec<Option<Mux>> {
    let host = world.host(BONDED).expect("it runs");
    (0..2).map(|port| host.bond_state(PortNo(port))).collect()
}

fn await_members(world: &mut World, wanted: &[Mux]) {
    let wanted: Vec<Option<Mux>> = wanted.iter().copied().map(Some).collect();
    let limit = world.now() + Span::from_secs(10);
    let came = world.run_until_true(limit, |world| muxes(world) == wanted);
    assert!(came, "{:?}, {:?}", muxes(world), members(world));
}

/// State of the bond's ports at the controller.
fn members(world: &World) -> Vec<(MemberState, bool)> {
    let bonds = world.controller().expect("it runs").controller().bonds_telemetry();
    bonds[0].members.iter().map(|member| (member.state, member.mismatch)).collect()
}

/// Number of routes to the host with the bond that end at each of its ports.
fn routes_by_port(world: &World) -> Vec<usize> {
    let controller = world.controller().expect("it runs").controller();
    let mac = world.host(BONDED).expect("it runs").mac();
    let host = controller.hosts().by_mac(mac).expect("it is known");
    let routes = controller.flows().towards(host);
    let exits = routes.iter().map(|&route| controller.flows().get(route).unwrap().exit);
    let node = |place: axon_controller::hosts::Place| {
        controller.graph().switch(place.switch).incarnation.node.0
    };
    let exits: Vec<u64> = exits.map(node).collect();
    let of = |switch: usize| {
        let id = axon_fabric::assemble::switch_id(switch).0;
        exits.iter().filter(|&&exit| exit == id).count()
    };
    (0..2).map(of).collect()
}

fn a_bond_to_two_switches_comes_up_and_everybody_reaches_it(plane: DataplaneKind) {
    let mut world = boot_on(&two_switches(4), plane);
    await_members(&mut world, &[Mux::Distributing; 2]);
    assert_eq!(members(&world), [(MemberState::Distributing, false); 2]);
    assert_whole(&mut world);
    assert_eq!(routes_by_port(&world), [2, 2], "the links have equally many");
    let counters = world.controller().unwrap().controller().counters();
    assert_eq!((counters.bond_mismatches, counters.arp_misplaced), (0, 0));
    let misdelivered = (0..5).map(|host| world.host(host).unwrap().misdelivered());
    assert_eq!(misdelivered.sum::<u64>(), 0);
}

/// Flows: two other hosts to the host with the bond, and from it to one of them.
const FLOWS: [(usize, usize, u16); 3] = [(1, BONDED, 7000), (2, BONDED, 7001), (BONDED, 1, 7002)];

/// Starts a connection with this many bytes along each flow; returns the senders.
fn start_tcp(world: &mut World, number: u16, bytes: Option<u64>) -> Vec<(usize, AppId)> {
    let options = TcpOptions::default();
    let flows = FLOWS.map(|(from, to, port)| (from, to, port + 10 * (1 + number)));
    let start = |(from, to, port)| {
        let target = world.address(to).expect("an address");
        let plan = TcpPlan { target, port, bytes, options };
        world.with_host(to, |host, now| host.start(Plan::TcpSink { port, options }, now));
        (from, world.with_host(from, |host, now| host.start(Plan::Tcp(plan), now)).unwrap())
    };
    flows.map(start).to_vec()
}

/// Starts a stream of datagrams along each flow; returns the receivers.
fn start_datagrams(world: &mut World, interval: Span) -> Vec<(usize, AppId)> {
    let start = |(from, to, port)| {
        let target = world.address(to).expect("an address");
        let plan = UdpPlan { target, port, payload: 100, interval, count: 1_000_000 };
        let sink =
            world.with_host(to, |host, now| host.start(Plan::UdpSink { port }, now)).unwrap();
        world.with_host(from, |host, now| host.start(Plan::Udp(plan), now));
        (to, sink)
    };
    FLOWS.map(start).to_vec()
}

/// Received datagrams, and those received after one that was sent later.
fn received(world: &World, sinks: &[(usize, AppId)]) -> (u64, u64) {
    let of = |&(host, id): &(usize, AppId)| world.flow_stats(host, id).unwrap().received.clone();
    let all = sinks.iter().map(of);
    all.fold((0, 0), |(packets, late), one| (packets + one.packets, late + one.reordered))
}

fn each_port_and_each_switch_may_fail_and_come_back(plane: DataplaneKind) {
    let mut world = boot_on(&two_switches(2), plane);
    await_members(&mut world, &[Mux::Distributing; 2]);
    assert_whole(&mut world);
    let sinks = start_datagrams(&mut world, Span::from_micros(500));
    let target = world.address(BONDED).unwrap();
    for failure in 0..4 {
        let number = failure % 2;
        assert_eq!(routes_by_port(&world), [1, 1], "one of them is on what fails");
        let plan = PingPlan::steady(target, Span::from_micros(200), 20_000);
        let pings = [1, 2].map(|from| world.ping(from, plan).unwrap());
        let senders = start_tcp(&mut world, failure as u16, Some(20_000_000));
        world.run_for(Span::from_millis(100));
        let fail = |world: &mut World, fails: bool| match failure < 2 {
            true => {
                let link = world.layout().bond_link(BONDED, number);
                world.engine_mut().change_link(link, LinkChange::Cut(fails));
            }
            false if fails => world.inject(FaultKind::SwitchDown(number)),
            false => world.inject(FaultKind::SwitchUp(number)),
        };
        fail(&mut world, true);
        world.run_for(Span::from_secs(2));
        let at_loss = pings.map(|ping| world.ping_stats(ping).unwrap().gap_max);
        for &(host, id) in &senders {
            let stats = world.flow_stats(host, id).unwrap();
            assert!(stats.done.is_some() && stats.failed == 0, "failure {failure}: {stats:?}");
        }
        let before = received(&world, &sinks);
        fail(&mut world, false);
        world.run_for(Span::from_secs(4));
        await_members(&mut world, &[Mux::Distributing; 2]);
        let stats = pings.map(|ping| world.ping_stats(ping).unwrap());
        let lost = stats.each_ref().map(|stats| stats.sent - stats.received);
        println!("{} failure {failure}: gaps {at_loss:?}, lost {lost:?}", plane.name());
        assert!(at_loss.iter().all(|&gap| gap < Span::from_millis(5)), "{at_loss:?}");
        let after = received(&world, &sinks);
        // 2,000 datagrams a second in each of three flows: none is lost when the port is back.
        assert!(after.0 - before.0 >= 3 * 2_000 * 4 - 3, "{before:?} {after:?}");
        assert_eq!(after.1, 0, "in order");
    }
    assert_eq!(routes_by_port(&world), [1, 1]);
    assert_whole(&mut world);
}

#[test]
fn under_load_a_port_that_is_back_loses_nothing_and_moves_each_route_once() {
    let mut world = boot_on(&two_switches(2), DataplaneKind::Software);
    await_members(&mut world, &[Mux::Distributing; 2]);
    assert_whole(&mut world);
    let interval = Span::from_micros(100);
    let sinks = start_datagrams(&mut world, interval);
    start_tcp(&mut world, 0, None);
    world.run_for(Span::from_millis(200));
    let link = world.layout().bond_link(BONDED, 0);
    world.engine_mut().change_link(link, LinkChange::Cut(true));
    world.run_for(Span::from_millis(500));
    let counters = |world: &World| world.controller().unwrap().controller().counters().bond_moves;
    let (before, moves) = (received(&world, &sinks), counters(&world));
    world.engine_mut().change_link(link, LinkChange::Cut(false));
    world.run_for(Span::from_millis(2_500));
    let (after, moved) = (received(&world, &sinks), counters(&world) - moves);
    println!("under load: {before:?}, then {after:?}, {moved} moves");
    assert_eq!((moved, routes_by_port(&world)), (1, vec![1, 1]));
    let sent = 3 * (Span::from_millis(2_500).ticks() / interval.ticks());
    assert!(after.0 - before.0 >= sent - 3, "of {sent}");
    // Datagrams on the new path overtake those queued on the old: 256 KiB of two connections at
    // most, which take 2 ms.
    assert!(after.1 <= 20, "{} out of order", after.1);
}

#[test]
fn a_bond_carries_more_than_one_link_to_the_host_and_from_it() {
    let mut world = boot_on(&two_switches(8), DataplaneKind::Software);
    await_members(&mut world, &[Mux::Distributing; 2]);
    assert_whole(&mut world);
    let (options, span) = (TcpOptions::default(), Span::from_millis(500));
    let mut rates = Vec::new();
    for inward in [true, false] {
        let mut apps = Vec::new();
        for number in 0..16 {
            let other = 1 + number % 8;
            let (from, to) = if inward { (other, BONDED) } else { (BONDED, other) };
            let port = 8000 + number as u16;
            let target = world.address(to).unwrap();
            let plan = TcpPlan { target, port, bytes: None, options };
            let sink =
                world.with_host(to, |host, now| host.start(Plan::TcpSink { port, options }, now));
            let source = world.with_host(from, |host, now| host.start(Plan::Tcp(plan), now));
            apps.push((from, source.unwrap(), to, sink.unwrap()));
        }
        let received = |world: &World| -> u64 {
            let of = |&(_, _, to, sink): &(usize, AppId, usize, AppId)| {
                world.flow_stats(to, sink).unwrap().received.bytes.0
            };
            apps.iter().map(of).sum()
        };
        world.run_for(Span::from_millis(200));
        let before = received(&world);
        world.run_for(span);
        // Hundredths of the capacity of a link in that time.
        rates.push((received(&world) - before) * 8 * 100 / (span.as_millis() * 1_000_000));
        for &(from, source, ..) in &apps {
            world.with_host(from, |host, now| host.stop(source, now));
        }
        world.run_for(Span::from_millis(500));
    }
    println!("to the host {} hundredths of a link's rate, from it {}", rates[0], rates[1]);
    assert!(rates[0] > 170 && rates[1] > 130, "{rates:?}");
    assert_sound(&world);
}

/// Two switches, and hosts with bonds that are cabled as `text` describes.
fn listed(text: &str) -> Fabric {
    fabric(&format!(
        "name: a\ntopology:\n  listed:\n    switches: [s1, s2]\n    hosts: {{h1: {{at: s1-p0, ip: \
         10.0.0.11}}, h2: {{at: s1-p1, ip: 10.0.0.12}}, h3: {{at: s2-p1, ip: 10.0.0.13}}}}\n    \
         links: [[s1-p8, s2-p8], [s1-p9, s2-p9]]\n{text}"
    ))
}

#[test]
fn two_ports_of_one_switch_are_a_bond_too() {
    let fabric = listed("bonds: [{host: h1, ports: [s1-p0, s1-p5]}]");
    let mut world = boot_on(&Builder { fabric }, DataplaneKind::Software);
    await_members(&mut world, &[Mux::Distributing; 2]);
    assert_whole(&mut world);
    for member in [0, 1] {
        let link = world.layout().bond_link(BONDED, member);
        world.engine_mut().change_link(link, LinkChange::Cut(true));
        world.run_for(Span::from_millis(20));
        assert_eq!(common::unreached(&mut world, &[(0, 2), (2, 0), (1, 0)], 3), [], "{member}");
        world.engine_mut().change_link(link, LinkChange::Cut(false));
        await_members(&mut world, &[Mux::Distributing; 2]);
    }
    assert_whole(&mut world);
}

#[test]
fn a_host_without_lacp_is_at_a_port_of_a_bond_as_at_any_other() {
    let mut fabric = listed("");
    let ports = vec![end(0, 0), end(1, 5)];
    fabric.bonds = vec![Bond { name: "s1-p0".into(), host: None, members: ports, active: true }];
    let mut world = World::new(&fabric, 1);
    world.run_until(axon_wire::Time::ZERO + Span::from_secs(8));
    assert_eq!(members(&world), [(MemberState::Individual, false), (MemberState::Down, false)]);
    assert_whole(&mut world);
}

/// Moves the cable of a port of a host's bond to another port of a switch.
fn replug(world: &mut World, host: usize, to: End) {
    let near = WireEnd { station: world.layout().host_station(host), port: PortNo(1) };
    let far = WireEnd { station: to.switch, port: to.port };
    let link = world.layout().bond_link(host, 1);
    world.engine_mut().reconnect(link, near, far);
}

/// Exchanges the second cables of two hosts, by way of a free port.
fn exchange(world: &mut World, (a, to_a): (usize, End), (b, to_b): (usize, End)) {
    replug(world, a, end(1, 3));
    replug(world, b, to_b);
    replug(world, a, to_a);
}

#[test]
fn a_port_that_leads_to_another_host_is_not_used_and_said_until_the_cables_are_right() {
    let fabric =
        listed("bonds: [{host: h1, ports: [s1-p0, s2-p5]}, {host: h3, ports: [s2-p1, s1-p5]}]");
    let mut world = World::new(&fabric, 1);
    let (h1, h3) = (0, 2);
    exchange(&mut world, (h1, end(1, 5)), (h3, end(0, 5)));
    exchange(&mut world, (h1, end(0, 5)), (h3, end(1, 5)));
    world.run_for(Span::from_secs(8));
    for bond in world.controller().unwrap().controller().bonds_telemetry() {
        let used = bond.members.iter().map(|member| member.state == MemberState::Distributing);
        assert_eq!(used.collect::<Vec<_>>(), [true, false], "{bond:?}");
        let refused = bond.members.iter().map(|member| member.mismatch);
        assert_eq!(refused.collect::<Vec<_>>(), [false, true], "{bond:?}");
    }
    let counters = world.controller().unwrap().controller().counters();
    assert!(counters.bond_mismatches >= 2, "{}", counters.bond_mismatches);
    for host in [h1, h3] {
        let state = |port| world.host(host).unwrap().bond_state(PortNo(port));
        assert_eq!([state(0), state(1)], [Some(Mux::Distributing), Some(Mux::Detached)]);
    }
    assert_whole(&mut world);
    exchange(&mut world, (h1, end(1, 5)), (h3, end(0, 5)));
    await_members(&mut world, &[Mux::Distributing; 2]);
    let bonds = world.controller().unwrap().controller().bonds_telemetry();
    assert!(bonds.iter().flat_map(|bond| &bond.members).all(|member| !member.mismatch));
    assert_whole(&mut world);
}

#[test]
fn a_link_that_is_lost_without_its_carrier_is_left_after_the_time_out_of_lacp() {
    let mut world = boot_on(&two_switches(2), DataplaneKind::Software);
    await_members(&mut world, &[Mux::Distributing; 2]);
    assert_whole(&mut world);
    let target = world.address(BONDED).unwrap();
    let pings = [1, 2].map(|from| {
        world.ping(from, PingPlan::steady(target, Span::from_millis(1), 8_000)).unwrap()
    });
    world.run_for(Span::from_millis(100));
    let link = world.layout().bond_link(BONDED, 0);
    world.engine_mut().change_link(link, LinkChange::Silent([true; 2]));
    // Long enough for LACP to expire the partner.
    world.run_for(Span::from_secs(8));
    world.engine_mut().change_link(link, LinkChange::Silent([false; 2]));
    let gaps = pings.map(|ping| world.ping_stats(ping).unwrap().gap_max);
    println!("without a sign: {gaps:?}");
    // The last LACPDU arrived up to a second before the loss, and three must be missed.
    assert!(gaps.iter().all(|&gap| gap < Span::from_millis(3_100)), "{gaps:?}");
    assert!(gaps.iter().any(|&gap| gap > Span::from_millis(1_900)), "one was on it: {gaps:?}");
    await_members(&mut world, &[Mux::Distributing; 2]);
    assert_whole(&mut world);
}
