//! Fate of packets that find their buffer full: each of the three options of thesis 000 §3.2.1, end
//! to end.
//!
//! Two hosts behind s1 send 40 datagrams each to two behind s2, all of them as fast as their own
//! links permit: twice the rate of the link between the switches. Half of them cross it while they
//! arrive; the others need buffers.

use crate::common::{assert_sound, boot, line};
use axon_fabric::model::{App, OnFull, Traffic};
use axon_node::{Dataplane, Drop, Note};
use axon_sim::World;
use axon_sim::results::FlowReport;
use axon_wire::priority::Priority;
use axon_wire::{Bytes, PortNo, Rate, Span};

/// Datagrams of each sender.
const COUNT: u64 = 40;
/// Buffer at each output for each input: five full frames.
const QUEUE: Bytes = Bytes(8 * 1024);

/// Runs both flows to their end.
fn congested(on_full: OnFull, nack_queue: Bytes) -> (World, Vec<FlowReport>) {
    let mut builder = line(2, 2, true);
    let fabric = &mut builder.fabric;
    (fabric.on_full, fabric.nack_queue) = (on_full, nack_queue);
    let hosts = fabric.hosts.iter_mut().map(|host| &mut host.wire);
    for wire in hosts.chain([&mut fabric.links[0].wire, &mut fabric.controller.wire]) {
        wire.queue = QUEUE;
    }
    fabric.links[0].wire.rate = Rate::mbps(500);
    let interval = Span::from_nanos(12_304);
    fabric.traffic = vec![Traffic {
        name: "burst".to_owned(),
        start: Span::ZERO,
        stop: None,
        hosts: (0..4).collect(),
        flows: vec![(0, 2), (1, 3)],
        priority: Priority::ZERO,
        app: App::Udp { payload: 1472, interval, count: Some(COUNT) },
    }];
    let mut world = boot(&builder);
    world.start_traffic();
    world.run_for(Span::from_millis(20));
    assert_sound(&world);
    let report = world.flows().report();
    assert_eq!(report.iter().map(|flow| flow.sent_packets).sum::<u64>(), 2 * COUNT);
    (world, report)
}

fn received(report: &[FlowReport]) -> u64 {
    report.iter().map(|flow| flow.received_packets).sum()
}

/// Counts of the two ports with senders: packets dropped for lack of room, packets kept, congestion
/// messages, PAUSE frames.
fn counted(world: &World) -> [u64; 4] {
    let counters = world.switch(0).unwrap().plane().counters();
    let mut sum = [0; 4];
    for host in &world.fabric().hosts[..2] {
        let port = counters.port(host.port);
        let full = port.dropped(Drop::QueueFull);
        for (sum, count) in
            sum.iter_mut().zip([full, port.nacks, port.congestion_messages, port.pauses])
        {
            *sum += count;
        }
    }
    sum
}

/// Switches that received congestion messages, each with the sender's port named in it.
fn notified(world: &World) -> Vec<(usize, PortNo)> {
    let notes = world.engine().notes().iter();
    notes
        .filter_map(|(_, station, note)| match note {
            Note::Congested { port, .. } => Some((*station, *port)),
            _ => None,
        })
        .collect()
}

#[test]
fn without_more_what_does_not_fit_is_dropped_and_nobody_is_notified() {
    let (world, report) = congested(OnFull::Drop, QUEUE);
    let [dropped, nacks, messages, pauses] = counted(&world);
    assert!(dropped > 0);
    assert_eq!(received(&report) + dropped, 2 * COUNT);
    assert_eq!([nacks, messages, pauses], [0; 3]);
    assert_eq!(notified(&world), []);
}

#[test]
fn refused_packets_are_kept_and_none_that_fits_is_lost() {
    let (world, report) = congested(OnFull::Nack, Bytes(1 << 20));
    let [dropped, nacks, ..] = counted(&world);
    assert!(nacks > 0, "the output was full");
    assert_eq!((dropped, received(&report)), (0, 2 * COUNT));
    assert!(report.iter().all(|flow| flow.reordered == 0), "they keep their order");
}

#[test]
fn what_the_queue_for_refused_packets_cannot_hold_is_dropped() {
    let (world, report) = congested(OnFull::Nack, QUEUE);
    let [dropped, nacks, ..] = counted(&world);
    assert!(nacks > 0 && dropped > 0, "{nacks} kept, {dropped} dropped");
    assert_eq!(received(&report) + dropped, 2 * COUNT);
    let (_, plain) = congested(OnFull::Drop, QUEUE);
    assert!(received(&report) > received(&plain), "the second queue holds some");
}

#[test]
fn a_full_output_makes_the_edge_pause_the_hosts_that_sent() {
    let (world, report) = congested(OnFull::CongestionMessage, QUEUE);
    let [dropped, nacks, messages, pauses] = counted(&world);
    assert_eq!((received(&report) + dropped, nacks), (2 * COUNT, 0));
    assert!(messages > 0 && messages <= dropped, "{messages} messages for {dropped} drops");
    let notified = notified(&world);
    let count = notified.len() as u64;
    assert_eq!((count, pauses), (messages, messages), "each is received and acted on");
    let senders: Vec<PortNo> = world.fabric().hosts[..2].iter().map(|host| host.port).collect();
    let is_sender = |&(switch, port): &(usize, PortNo)| switch == 0 && senders.contains(&port);
    assert!(notified.iter().all(is_sender), "{notified:?}");
}
