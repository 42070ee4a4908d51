//! Flow control by watermarks and with targeting, frame by frame: nothing is lost, the wire is
//! never idle, and our own targeting does not pause a source that sends no more than its share.

use axon_plane::dcb::{DcbConfig, QueueOrder};
use axon_plane::shared_buffer::{MemoryConfig, PriorityGroupLimits, QueueLimits, Share};
use axon_plane::targeted::{Choice, Targeting, Watermarks};
use axon_sim::bare::{OVERHEAD_BYTES, Phase, Plan, Seen, Sink, Source};
use axon_wire::mac_control::Quanta;
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet};
use axon_wire::{Bytes, MacAddr, PortNo, Rate, Span, Time};
use oorandom::Rand64;

const RATE: Rate = Rate::gbps(10);
/// Length of the longest frame, without FCS.
const FRAME_BYTES_MAX: u64 = 1_514;
const START: Time = Time::from_nanos(10_000);
const END: Time = Time::from_nanos(2_000_000);

/// Bytes still received from one source after XOFF is sent to it: the round trip, the flow control
/// frame, the frame that it has just begun, and the frame that its port is sending now.
fn in_flight(latency: Span) -> u64 {
    let frame = FRAME_BYTES_MAX + OVERHEAD_BYTES;
    2 * latency.ticks() / RATE.time_for(Bytes(1)).ticks() + 2 * frame + 60 + OVERHEAD_BYTES
}

fn switch(ports: u16, (watermarks, order): (Watermarks, QueueOrder)) -> DcbConfig {
    let group = PriorityGroupLimits {
        reserved: Bytes(0),
        share: Share::Static(Bytes(1 << 30)),
        headroom: Bytes(0),
        xon_offset: Bytes(0),
    };
    let queue = QueueLimits { reserved: Bytes(0), share: Share::Dynamic { shift: 0 } };
    let lossless = PrioritySet::only(Priority::MAX);
    DcbConfig {
        memory: MemoryConfig {
            lossless,
            lossless_pool: Bytes(1 << 30),
            lossy_pool: Bytes(0),
            groups: vec![[group; PRIORITIES]; usize::from(ports)],
            queues: [queue; PRIORITIES],
        },
        pfc: lossless,
        pfc_quanta: Quanta::MAX,
        watermarks: Some(watermarks),
        order,
        ..DcbConfig::lossy(vec![RATE; usize::from(ports)], MacAddr([2, 0, 0, 0, 1, 0]))
    }
}

/// Runs sources with these frames and intervals to one port.
fn run(
    loads: &[(u64, Span)],
    choice: Option<Choice>,
    (order, latency, seed): (QueueOrder, Span, u64),
) -> Seen {
    let sources = loads.len() as u64;
    let part = in_flight(latency);
    let watermarks = Watermarks {
        low: Some(Bytes(part)),
        targeting: choice.map(|choice| Targeting { target: Bytes(3 * part), choice }),
        high: Bytes((3 + sources) * part),
        bytes_max: Bytes((3 + 2 * sources) * part),
    };
    let out = PortNo(loads.len() as u16);
    let source = |(port, &(bytes, interval)): (usize, &(u64, Span))| Source {
        at: (0, PortNo(port as u16)),
        route: vec![out],
        priority: Priority::MAX,
        frame_bytes: bytes as usize,
        phases: vec![Phase { from: START, until: END, interval }],
    };
    let plan = Plan {
        switches: vec![switch(out.0 + 1, (watermarks, order))],
        links: Vec::new(),
        sources: loads.iter().enumerate().map(source).collect(),
        sinks: vec![Sink::quiet((0, out))],
        reaction: None,
        rate: RATE,
        latency,
    };
    plan.run(END, seed)
}

/// Utilisation of the wire to the sink from its first frame on, per mille.
fn used(seen: &Seen) -> u64 {
    let passed = &seen.sinks[0];
    let sum: u64 = passed.iter().map(|(_, bytes)| bytes).sum();
    1_000 * RATE.time_for(Bytes(sum)).ticks() / END.since(passed[0].0).ticks()
}

fn choices(seed: u64) -> [Option<Choice>; 5] {
    let sampled = |interval| Some(Choice::Sampled { seed, interval: Bytes(interval) });
    [
        None,
        sampled(0),
        sampled(20 * FRAME_BYTES_MAX),
        Some(Choice::FairBandwidth),
        Some(Choice::MaxMin),
    ]
}

#[test]
fn whoever_is_chosen_nothing_is_lost_and_the_wire_is_never_idle() {
    for seed in 1..=12 {
        let mut random = Rand64::new(seed.into());
        let latency = Span::from_nanos(random.rand_range(10..6_000));
        let sources = random.rand_range(2..6);
        let mut loads: Vec<(u64, Span)> = (0..sources)
            .map(|_| (random.rand_range(60..FRAME_BYTES_MAX + 1), Span::ZERO))
            .collect();
        // One of them sends no more than a tenth of the wire.
        loads[0].1 =
            Span::from_ticks(RATE.time_for(Bytes(loads[0].0 + OVERHEAD_BYTES)).ticks() * 10);
        let order = [QueueOrder::Arrival, QueueOrder::ByIngress][seed as usize % 2];
        for choice in choices(seed) {
            let seen = run(&loads, choice, (order, latency, seed));
            assert_eq!(seen.all_lost(), 0, "seed {seed}, {choice:?}: {:?}", seen.lost);
            assert!(used(&seen) >= 990, "seed {seed}, {choice:?}: {}", used(&seen));
        }
    }
}

#[test]
fn max_min_never_stops_who_sends_less_than_its_share_however_short_its_frames() {
    for (victim_bytes, seed) in [(60, 1), (300, 2), (FRAME_BYTES_MAX, 3)] {
        let frame_time = RATE.time_for(Bytes(victim_bytes + OVERHEAD_BYTES));
        // A fifth of the wire, where a third is its share.
        let victim = (victim_bytes, Span::from_ticks(5 * frame_time.ticks()));
        let aggressor = (FRAME_BYTES_MAX, Span::ZERO);
        let loads = [victim, aggressor, aggressor];
        let how = (QueueOrder::Arrival, Span::from_nanos(3_000), seed);
        let seen = run(&loads, Some(Choice::MaxMin), how);
        let stops: Vec<usize> = seen.xoffs[0].iter().map(Vec::len).collect();
        assert_eq!(stops[0], 0, "seed {seed}");
        assert!(stops[1] > 10 && stops[2] > 10, "seed {seed}: {stops:?}");
        assert_eq!(seen.all_lost(), 0);
        assert!(used(&seen) >= 990, "seed {seed}");
        let bytes =
            |source: usize| seen.sources[source].iter().map(|(_, bytes)| bytes).sum::<u64>();
        let apart = bytes(1).abs_diff(bytes(2));
        assert!(apart * 20 < bytes(1), "seed {seed}: aggressors share alike, {apart} apart");
    }
}
