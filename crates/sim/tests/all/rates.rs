//! A link that becomes slower or faster while frames of a lossless class are in flight.

use crate::common;
use axon_fabric::model::Fabric;
use axon_node::Drop;
use axon_sim::World;
use axon_wire::{Rate, Span, Time};

/// Both hosts of the first switch, and one of the second, send as fast as they can over the link
/// that changes; it changes for the second time `back` after the start of traffic. Lossy frames in
/// the other direction delay flow control frames.
fn fabric(back: Span) -> Fabric {
    let back = back.as_nanos();
    let text = format!(
        "name: rates\ntopology: {{ line: {{ switches: 3, hosts_per_switch: 2 }} }}\n\
         links: {{ rate: 10Gbps, latency: 500ns }}\ndcb:\n  classes:\n  \
         - {{ priorities: [0, 1, 2, 4, 5, 6], ets: 50 }}\n  \
         - {{ priorities: [3], lossless: true, ets: 50 }}\n  - {{ priorities: [7] }}\n  \
         buffers: {{ lossless_share: 8kB, reaction: 0s }}\ntraffic:\n\
         - {{ udp: {{}}, from: h1, to: h5, priority: 3 }}\n\
         - {{ udp: {{}}, from: h2, to: h6, priority: 3 }}\n\
         - {{ udp: {{}}, from: h3, to: h5, priority: 3 }}\n\
         - {{ udp: {{}}, from: h6, to: h1 }}\nfaults:\n\
         - {{ after_start: 500us, rate: 1Gbps, between: [s2, s3] }}\n\
         - {{ after_start: {back}ns, rate: 10Gbps, between: [s2, s3] }}\n"
    );
    common::fabric(&text)
}

fn started(fabric: &Fabric, seed: u64) -> World {
    let mut world = World::new(fabric, seed);
    let limit = Time::ZERO + Span::from_secs(10);
    assert!(world.run_until_true(limit, World::is_ready), "seed {seed}: {:?}", world.unready());
    world.start_traffic();
    for fault in &fabric.faults_after_start {
        world.plan(world.now() + fault.at, fault.what);
    }
    world
}

/// Lost lossless frames: those without headroom, and all datagrams of the lossless entries that
/// were dropped for any reason.
fn lost(world: &World) -> u64 {
    world.engine().check_conservation().unwrap();
    let flows = world.flows().report();
    let lossless = flows.iter().take(3).map(|flow| flow.lost_packets.unwrap());
    lossless.sum::<u64>() + world.engine().accounts().dropped[Drop::HeadroomFull as usize]
}

/// Bytes of payload received by the lossless entries.
fn come(world: &World) -> u64 {
    world.flows().report().iter().take(3).map(|flow| flow.received_bytes).sum()
}

#[test]
fn a_link_that_becomes_ten_times_slower_stops_its_senders_and_loses_nothing() {
    let mut world = started(&fabric(Span::from_millis(3)), 1);
    world.run_for(Span::from_micros(1_000));
    let mut rates = Vec::new();
    for _ in 0..2 {
        let before = come(&world);
        world.run_for(Span::from_millis(1));
        rates.push((come(&world) - before) * 8 / 1_000);
    }
    world.run_for(Span::from_micros(100));
    let before = come(&world);
    world.run_for(Span::from_millis(1));
    rates.push((come(&world) - before) * 8 / 1_000);
    // In Mb/s: of 1,500 bytes of a packet 1,472 are payload, and it takes 1,558 on the wire.
    assert!((920..=960).contains(&rates[0]) && (920..=960).contains(&rates[1]), "{rates:?}");
    assert!(rates[2] > 9_000, "it is as fast as before: {rates:?}");
    assert_eq!(lost(&world), 0);
}

#[test]
fn a_link_that_becomes_faster_in_the_middle_of_a_frame_finds_the_headroom_that_it_needs() {
    let mut hops = 0;
    for seed in 0..40 {
        let fabric = fabric(Span::from_micros(900) + Span::from_nanos(311 * seed));
        let mut world = started(&fabric, seed);
        // Frames from the link find their egress paused, and pause the link in turn.
        world.with_host(4, |node, _| node.rx_ring_mut().set_rate(Some(Rate::mbps(200)))).unwrap();
        let before = world.engine().packet_hops();
        world.run_for(Span::from_micros(1_200));
        hops += world.engine().packet_hops() - before;
        assert_eq!(lost(&world), 0, "seed {seed}");
    }
    assert!(hops > 40_000, "{hops} hops: too little to say anything");
}
