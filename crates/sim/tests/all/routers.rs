//! Routers: hosts reach each other with each router, and a moved route reorders no more than
//! documented.

use crate::common::{Builder, assert_sound, assert_whole, boot, mac, ring, unreached};
use axon_controller::router::{RouterKind, Step};
use axon_fabric::model::FaultKind;
use axon_sim::World;
use axon_sim::apps::{Plan, UdpPlan};
use axon_wire::Span;

const PORT: u16 = 5001;

/// Plan of a steady stream of datagrams of 1,000 bytes.
fn plan(world: &World, to: usize, interval: Span, count: u64) -> UdpPlan {
    let target = world.address(to).expect("it has an address");
    UdpPlan { target, port: PORT, payload: 1_000, interval, count }
}

/// Links of the controller's route from one host to another.
fn route(world: &World, from: usize, to: usize) -> Vec<Step> {
    let controller = world.controller().expect("it runs").controller();
    let index = |host| controller.hosts().by_mac(mac(host)).expect("it is known");
    let source = controller.hosts().get(index(from)).expect("it is known");
    let route = controller.flows().find(source.place(), index(to)).expect("there is a route");
    controller.flows().get(route).expect("it was just found").steps().collect()
}

#[test]
fn whichever_router_there_is_every_pair_talks_through_a_cut_and_a_new_controller() {
    for kind in RouterKind::ALL {
        println!("{}", kind.name());
        let mut builder = ring(4, 1, true);
        builder.link(0, 2);
        builder.fabric.controller.router = kind;
        let mut world = boot(&builder);
        assert_whole(&mut world);
        world.inject(FaultKind::LinkDown(0));
        world.run_for(Span::from_millis(100));
        assert_whole(&mut world);
        world.inject(FaultKind::ControllerDown);
        world.run_for(Span::from_millis(100));
        world.inject(FaultKind::ControllerUp);
        world.run_for(Span::from_secs(1));
        world.inject(FaultKind::LinkUp(0));
        world.run_for(Span::from_secs(1));
        assert_whole(&mut world);
    }
}

#[test]
fn a_route_that_moves_reorders_for_no_longer_than_its_paths_differ() {
    let mut builder = ring(5, 1, true);
    let latency = Span::from_micros(200);
    builder.fabric.links.iter_mut().for_each(|link| link.wire.latency = latency);
    let mut world = boot(&builder);
    world.inject(FaultKind::LinkDown(0));
    world.run_for(Span::from_millis(200));
    assert_whole(&mut world);
    assert_eq!(route(&world, 0, 1).len(), 4, "the long way round");
    let sink = world
        .with_host(1, |host, now| host.start(Plan::UdpSink { port: PORT }, now))
        .expect("it has power");
    // A datagram every 20 us for a second; the link comes back after 200 ms.
    let interval = Span::from_micros(20);
    let count = 50_000;
    let plan = plan(&world, 1, interval, count);
    let source =
        world.with_host(0, |host, now| host.start(Plan::Udp(plan), now)).expect("it has power");
    world.run_for(Span::from_millis(200));
    world.inject(FaultKind::LinkUp(0));
    world.run_for(Span::from_millis(1_500));
    assert_eq!(route(&world, 0, 1).len(), 1, "the short way again");
    assert_eq!(world.flow_stats(0, source).expect("it runs").sent_packets, count);
    let received = &world.flow_stats(1, sink).expect("it runs").received;
    assert_eq!(received.packets, count, "a move loses nothing");
    // Three links more, each with its latency and a frame of at most 1,100 bytes at 1 Gb/s.
    let difference = (latency + Span::from_nanos(8 * 1_100)) * 3;
    let most = difference.ticks() / interval.ticks() + 1;
    println!("{} of at most {most} reordered", received.reordered);
    assert!((1..=most).contains(&received.reordered), "{} of {most}", received.reordered);
    assert_sound(&world);
}
#[test]
fn measured_load_moves_two_heavy_flows_apart() {
    // Two switches with a cable between them, and a path around it over a third.
    let mut builder = Builder::new(3);
    for (a, b) in [(0, 1), (0, 2), (2, 1)] {
        builder.link(a, b);
    }
    for switch in [0, 1] {
        (0..4).for_each(|_| {
            builder.host(switch, true);
        });
    }
    builder.fabric.controller.router = RouterKind::CongestionAware;
    let mut world = boot(&builder);
    let pairs: Vec<(usize, usize)> = (0..4).map(|host| (host, host + 4)).collect();
    assert!(unreached(&mut world, &pairs, 10).is_empty());
    world.run_for(Span::from_secs(2));
    // Of four flows over two paths, two share one.
    let ways: Vec<Vec<Step>> = pairs.iter().map(|&(from, to)| route(&world, from, to)).collect();
    let mut heavy = (0..4).flat_map(|a| (0..a).map(move |b| (a, b)));
    let (a, b) = heavy.find(|&(a, b)| ways[a] == ways[b]).expect("two share a way");
    // Each sends 800 Mb/s: together they exceed the link.
    for host in [a, b] {
        let plan = plan(&world, host + 4, Span::from_micros(10), 200_000);
        world
            .with_host(host + 4, |host, now| host.start(Plan::UdpSink { port: PORT }, now))
            .expect("it has power");
        world.with_host(host, |host, now| host.start(Plan::Udp(plan), now)).expect("it has power");
    }
    world.run_for(Span::from_millis(1_500));
    let (one, other) = (route(&world, a, a + 4), route(&world, b, b + 4));
    assert!(one.iter().all(|step| !other.contains(step)), "{one:?} {other:?}");
    assert_sound(&world);
}
