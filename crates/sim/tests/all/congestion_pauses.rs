//! Pauses by switches that only wait for their hosts: their duration, and its bound.

use axon_controller::router::Step;
use axon_controller::topology::SwitchIndex;
use axon_fabric::assemble::switch_config;
use axon_fabric::dcb::draining;
use axon_node::Note;
use axon_plane::dcb::DcbConfig;
use axon_plane::watchdog::{StormAction, WatchdogConfig};
use axon_prove::{Dependencies, Draining, congestion_pauses};
use axon_sim::bare::{Phase, Plan, Sink, Source};
use axon_wire::{PortNo, Priority, Rate, Span, Time};

use crate::common::fabric;

/// Length of a frame, without FCS.
const FRAME_BYTES: usize = 1_514;
const END: Time = Time::from_nanos(4_000_000);
/// Hosts are at the first ports of a switch, and its link is at the next one.
const LINK: PortNo = PortNo(4);

/// Two switches with four hosts each; priorities 3 and 4 are lossless and hold up to 400 kB each.
fn text(classes: &str) -> String {
    format!(
        "name: a\ntopology: {{line: {{switches: 2, hosts_per_switch: 4}}}}\n\
         links: {{rate: 10Gbps, latency: 500ns}}\ndcb:\n  \
         buffers: {{lossless_pool: 8MB, lossless_share: 400kB}}\n  {classes}  \
         - {{priorities: [0, 1, 2, 5, 6], ets: 10}}\n  - {{priorities: [7]}}\n"
    )
}

/// Draining of the buffer towards the second switch, the longest pause that congestion causes
/// there, and the configurations of the switches.
fn known(text: &str) -> (Draining, Span, [DcbConfig; 2]) {
    let fabric = fabric(text);
    let from = fabric.links[0].a;
    assert_eq!((from.switch, from.port), (0, LINK));
    let mut dependencies = Dependencies::default();
    let step = Step { switch: SwitchIndex(0), egress: LINK };
    dependencies.add(0, Priority::ZERO, [step]);
    let draining = draining(&fabric, fabric.dcb.as_deref().unwrap());
    let pauses = congestion_pauses(&dependencies, &draining).unwrap();
    let config = |index| *switch_config(&fabric, index, 1, 7).plane.dcb.unwrap();
    (draining(pauses[0].buffer), pauses[0].longest, [0, 1].map(config))
}

/// A source that sends as fast as it may, between two times in microseconds.
fn source(at: (usize, u16), priority: u8, (from, until): (u64, u64)) -> Source {
    let [from, until] = [from, until].map(|micros| Time::from_nanos(1_000 * micros));
    let route = [LINK, PortNo(0)];
    Source {
        at: (at.0, PortNo(at.1)),
        route: route[at.0..].to_vec(),
        priority: Priority::new(priority).unwrap(),
        frame_bytes: FRAME_BYTES,
        phases: vec![Phase { from, until, interval: Span::ZERO }],
    }
}

/// True if the first switch, with this detection time, takes the pauses of the second for a storm:
/// a host of the second is sent priority 3, then 4, while the three others there send to it too.
fn is_storm(detection: Span, switches: &[DcbConfig; 2], until: u64) -> bool {
    let watchdog = WatchdogConfig {
        detection,
        paused_percent: 100,
        action: StormAction::Drop,
        restoration: Span::from_micros(100),
    };
    let mut sources: Vec<Source> = (1..4).map(|port| source((1, port), 3, (100, 4_000))).collect();
    sources.extend([source((0, 0), 3, (100, until)), source((0, 1), 4, (until, 4_000))]);
    let watched = DcbConfig { watchdog: Some(watchdog), ..switches[0].clone() };
    let plan = Plan {
        switches: vec![watched, switches[1].clone()],
        links: vec![[(0, LINK), (1, LINK)]],
        sources,
        sinks: vec![Sink::quiet((1, PortNo(0)))],
        reaction: None,
        rate: Rate::gbps(10),
        latency: Span::from_nanos(500),
    };
    let seen = plan.run(END, 1);
    let storms = seen.notes.iter().filter(|(_, _, note)| matches!(note, Note::PauseStorm { .. }));
    let storms = storms.inspect(|(_, switch, _)| assert_eq!(*switch, 0)).count();
    assert_eq!(storms == 0, seen.all_lost() == 0, "{:?}", seen.lost);
    storms > 0
}

/// Time to drain `bytes` of one priority group at this many bits per second.
fn alone(bytes: u64, rate: u64) -> Span {
    Span::from_nanos(bytes * 8 * 1_000_000_000 / rate)
}

#[test]
fn a_layer_that_waits_behind_another_towards_a_host_is_paused_until_that_has_gone() {
    let classes = "layers: [[3, 4]]\n  classes:\n  - {priorities: [3], ets: 45, lossless: true}\n  \
                   - {priorities: [4], ets: 45, lossless: true}\n";
    let (known, bound, mut switches) = known(&text(classes));
    // As at ports with hosts, both priorities share one class here.
    switches[1].prio_tc[4] = switches[1].prio_tc[3];
    let alone = alone(known.bytes.0, known.to_hosts.unwrap().promised / known.ingress_ports);
    assert!(alone < Span::from_micros(100) && Span::from_millis(2) < bound, "{bound:?}");
    assert!(is_storm(Span::from_micros(700), &switches, 600), "longer than {alone:?}");
    assert!(!is_storm(bound, &switches, 600));
}

#[test]
fn a_priority_that_waits_behind_another_of_its_class_is_paused_until_that_has_gone() {
    let classes = "classes:\n  - {priorities: [3, 4], ets: 90, lossless: true}\n";
    let (known, bound, switches) = known(&text(classes));
    // All bytes that the other priority may hold count: without them there is the headroom and the
    // room to be freed.
    let own = known.bytes.0 - 400_000;
    let half = alone(own, known.to_hosts.unwrap().promised / known.ingress_ports / 2);
    assert!(half < Span::from_micros(150) && Span::from_millis(1) < bound, "{bound:?}");
    // The first is paused just before its share is full, so that the class keeps sending.
    assert!(is_storm(Span::from_micros(700), &switches, 500), "longer than {half:?}");
    assert!(!is_storm(bound, &switches, 500));
}
