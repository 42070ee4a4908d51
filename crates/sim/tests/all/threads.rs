//! One world on one thread and on several: equal traces, to the last byte of their text.

use crate::common::{self, Builder, HEARTBEAT, Page, ring};
use axon_fabric::model::{Device, Fault, FaultKind};
use axon_sim::apps::{Plan, TcpOptions, TcpPlan, UdpPlan};
use axon_sim::{Setup, World};
use axon_wire::{Span, Time};

/// A ring with noise and faults, under UDP and TCP.
fn troubled(device: Device) -> Builder {
    let mut builder = ring(5, 2, true);
    builder.loss(2000);
    builder.fabric.device = device;
    for link in &mut builder.fabric.links {
        link.wire.bit_errors_per_1e15 = 1_000_000_000;
    }
    let at = |millis: u64| Span::from_millis(3000 + millis);
    builder.fabric.faults = vec![
        Fault { at: at(20), what: FaultKind::LinkDown(1) },
        Fault { at: at(60), what: FaultKind::LinkUp(1) },
        Fault { at: at(80), what: FaultKind::SwitchDown(3) },
        Fault { at: at(120), what: FaultKind::SwitchUp(3) },
        Fault { at: at(150), what: FaultKind::LinkSilent(0) },
    ];
    builder
}

/// Result of a run: the hash, events, packet-hops and the text of the trace.
fn run(builder: &Builder, seed: u64, threads: usize) -> (u64, u64, u64, String) {
    let page = Page::default();
    let trace: Option<Box<dyn std::io::Write>> = Some(Box::new(page.clone()));
    let mut world = World::begin(&builder.fabric, Setup { seed, trace, ..Setup::default() });
    assert_eq!(world.engine_mut().set_threads(threads), threads);
    world.run_until(common::BOOT);
    let hosts = builder.fabric.hosts.len();
    for host in 0..hosts {
        let target = world.address((host + 3) % hosts).expect("fixed");
        world.with_host(host, |node, now| {
            node.start(Plan::UdpSink { port: 9 }, now);
            node.start(Plan::TcpSink { port: 10, options: TcpOptions::default() }, now);
            let (payload, interval) = (600, Span::from_micros(40));
            node.start(Plan::Udp(UdpPlan { target, port: 9, payload, interval, count: 500 }), now);
        });
        if host % 3 == 0 {
            world.with_host(host, |node, now| node.start(Plan::Tcp(tcp(target)), now));
        }
    }
    world.run_for(Span::from_millis(60));
    // The number of threads may change during the run.
    world.engine_mut().set_threads(threads.max(2) - 1);
    world.run_for(HEARTBEAT);
    world.engine_mut().set_threads(threads);
    world.run_for(Span::from_millis(150));
    world.engine().check_conservation().unwrap();
    let text = String::from_utf8(page.0.borrow().clone()).unwrap();
    let engine = world.engine();
    (engine.trace_hash(), engine.events(), engine.packet_hops(), text)
}

fn tcp(target: std::net::Ipv4Addr) -> TcpPlan {
    TcpPlan { target, port: 10, bytes: Some(200_000), options: TcpOptions::default() }
}

#[test]
fn a_world_is_the_same_on_any_number_of_threads() {
    for (seed, device) in [(1, Device::ideal()), (2, Device::axon_netfpga())] {
        let builder = troubled(device);
        let one = run(&builder, seed, 1);
        assert!(one.2 > 10_000, "{} packet-hops", one.2);
        for threads in [2, 3, 4, 8] {
            let more = run(&builder, seed, threads);
            let lines = one.3.lines().zip(more.3.lines());
            let differ = lines.enumerate().find(|(_, (a, b))| a != b);
            assert_eq!(differ, None, "seed {seed}, {threads} threads");
            assert!(one == more, "seed {seed}, {threads} threads");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_world_twice_on_two_threads() {
    let builder = troubled(Device::ideal());
    let first = run(&builder, 7, 2);
    assert!(first == run(&builder, 7, 2));
    assert_ne!(first.0, run(&builder, 8, 2).0);
}

#[test]
fn links_that_take_no_time_cannot_be_run_apart() {
    let mut builder = ring(3, 1, true);
    for link in &mut builder.fabric.links {
        link.wire.latency = Span::ZERO;
    }
    // Where a frame is stored, its length on the wire is enough lookahead.
    let mut world = World::new(&builder.fabric, 1);
    assert_eq!(world.engine_mut().set_threads(2), 2);
    let head = Device { from_switch: Vec::new(), from_host: None, ..Device::axon_netfpga() };
    builder.fabric.device = head;
    let mut world = World::new(&builder.fabric, 1);
    assert_eq!(world.engine_mut().set_threads(2), 1);
    world.run_until(Time::ZERO + Span::from_millis(10));
}
