//! TCP streams by congestion control, through switches that mark.

use crate::common::{self, assert_sound};
use axon_node::Dataplane;
use axon_sim::World;
use axon_sim::apps::{Congestion, Plan, TcpOptions, TcpPlan};
use axon_wire::{Bytes, Span, Time};

const PORT: u16 = 5001;

/// Two hosts send to a third for 200 ms; returns received bytes, marked frames, and retransmitted
/// segments.
fn run(congestion: Congestion) -> (u64, u64, u64) {
    let mut world = World::new(
        &common::fabric(
            "name: marks\ntopology: { line: { switches: 2, hosts_per_switch: 2 } }\n\
             links: { rate: 1Gbps }\n\
             dcb:\n  classes:\n  \
             - { priorities: [0, 1, 2, 3, 4, 5, 6], ets: 100, \
             ecn: { threshold: 30kB, non_ect: pass } }\n  - { priorities: [7] }\n",
        ),
        1,
    );
    assert!(world.run_until_true(Time::ZERO + Span::from_secs(10), World::is_ready));
    common::await_addresses(&mut world);
    let options = TcpOptions { congestion, buffer_bytes: 1 << 20, ..TcpOptions::default() };
    let sink = world
        .with_host(3, |host, now| host.start(Plan::TcpSink { port: PORT, options }, now))
        .unwrap();
    let target = world.address(3).unwrap();
    let senders = [0, 2].map(|from| {
        let plan = TcpPlan { target, port: PORT, bytes: None, options };
        (from, world.with_host(from, |host, now| host.start(Plan::Tcp(plan), now)).unwrap())
    });
    world.run_for(Span::from_millis(200));
    let stats = |world: &World, (host, id)| world.flow_stats(host, id).unwrap().clone();
    let again = senders.map(|sender| stats(&world, sender).retransmits).iter().sum();
    let received = stats(&world, (3, sink)).received;
    assert_eq!(received.wrong_bytes, 0);
    let switches = (0..2).map(|index| world.switch(index).expect("power").plane().counters());
    let marked = switches.map(|counters| counters.total().ecn_marked).sum();
    assert_sound(&world);
    (received.bytes.0, marked, again)
}

#[test]
fn dctcp_fills_the_link_by_marks_and_without_a_loss() {
    let (bytes, marked, again) = run(Congestion::Dctcp);
    // 1 Gb/s for 200 ms, by payload: 1460 of 1541 bytes and so.
    let most = Bytes(25_000_000).0 / 1541 * 1460;
    assert!(bytes > most / 100 * 90, "{bytes} of {most}");
    assert!(marked > 100 && again == 0, "{marked} marked, {again} again");
}

#[test]
fn cubic_and_reno_are_not_marked() {
    for congestion in [Congestion::Cubic, Congestion::Reno] {
        let (bytes, marked, _) = run(congestion);
        assert!(bytes > 20_000_000 && marked == 0, "{congestion:?}: {bytes}, {marked} marked");
    }
}

#[test]
fn a_stream_gets_its_share_beside_datagrams_that_are_always_there() {
    let text = "name: beside\ntopology: { line: { switches: 2, hosts_per_switch: 1 } }\n\
                links: { rate: 1Gbps }\ntraffic:\n  \
                - { udp: { payload: 1400 }, from: h1, to: h2, stop: 100ms }\n  \
                - { tcp: { bytes: 300kB }, from: h1, to: h2 }\n";
    let report = axon_sim::run(&common::fabric(text), axon_sim::Options::default());
    // Datagrams alone fill the link.
    let [datagrams, stream] = &report.flows[..] else { panic!("two flows") };
    assert_eq!(stream.received_bytes, 300_000, "{stream:?}");
    assert!(stream.last_ns < Some(100_000_000 + report.boot_ns), "{stream:?}");
    assert!(datagrams.received_bytes > 5_000_000, "{datagrams:?}");
}
