//! Common parts of the experiments of chapter 7: three sources at 10 Gb/s before one port, and the
//! queue of 100 frames with its watermarks (002 §7.3).

use super::bins::{Bins, mean_and_sd};
use axon_plane::dcb::{DcbConfig, QueueOrder};
use axon_plane::shared_buffer::{MemoryConfig, PriorityGroupLimits, QueueLimits, Share};
use axon_plane::targeted::{Choice, Targeting, Watermarks};
use axon_sim::bare::{OVERHEAD_BYTES, Phase, Plan, Seen, Sink, Source};
use axon_wire::mac_control::Quanta;
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet};
use axon_wire::{Bytes, MacAddr, PortNo, Rate, Span, Time};

/// Rate of all links.
pub(crate) const RATE: Rate = Rate::gbps(10);
/// Full frame without FCS in bytes, as queued.
pub(crate) const FRAME_BYTES: u64 = 1_514;
/// Time of a full frame on the wire, overhead included.
pub(crate) const FRAME_TIME: Span = Span::from_ticks(123_040);
/// Equation 7.3: frames in flight from one source when XOFF is sent, in full frames.
pub(crate) const FRAMES_IN_FLIGHT: u64 = 11;
/// One-way latency: those 11 frames less the two that had begun and the flow control frame itself.
pub(crate) const LATENCY: Span = Span::from_nanos(5_503);
/// Queue size in full frames.
pub(crate) const QUEUE_FRAMES: u64 = 100;
/// HW: above it there is room for the frames in flight of three sources.
pub(crate) const HIGH_FRAMES: u64 = QUEUE_FRAMES - 3 * FRAMES_IN_FLIGHT;
/// TW = N * F (equation 7.1) with N = 3; the distance up to HW is 3 F as well, within a frame.
pub(crate) const TARGET_FRAMES: u64 = 3 * FRAMES_IN_FLIGHT;
/// LW: frames that the port sends between XON and the first frame after it.
pub(crate) const LOW_FRAMES: u64 = FRAMES_IN_FLIGHT;
/// Interval of a quarter of line rate: a frame in each four frame times.
pub(crate) const QUARTER: Span = Span::from_ticks(4 * FRAME_TIME.ticks());
/// Width of the bins of throughput: ten frames of a quarter of line rate, 49.2 us, so that a steady
/// stream has equal bins, and variation comes from the stream.
pub(crate) const BIN: Span = Span::from_ticks(10 * QUARTER.ticks());
/// Narrow bins, 12.3 us, a quarter of [`BIN`]: bins of a steady stream differ, though it does not.
pub(crate) const NARROW_BIN: Span = Span::from_ticks(10 * FRAME_TIME.ticks());

/// Time in which the judged aggressor sends at line rate, in ms.
pub(crate) const BUSY_MS: (u64, u64) = (4, 24);
const SEEDS: u64 = 10;

/// Returns the lossless priority of these worlds.
pub(crate) fn priority() -> Priority {
    Priority::from_low_bits(3)
}

/// Returns a switch with one FIFO for each port, with or without watermarks.
pub(crate) fn switch(ports: u16, number: u8, marks: Option<Watermarks>) -> DcbConfig {
    // Room for all queues at their longest, so that only the watermarks act.
    let room = Bytes(QUEUE_FRAMES * FRAME_BYTES * u64::from(ports));
    let group = PriorityGroupLimits {
        reserved: Bytes(0),
        share: Share::Static(room),
        headroom: Bytes(0),
        xon_offset: Bytes(0),
    };
    let queue =
        QueueLimits { reserved: Bytes(0), share: Share::Static(Bytes(QUEUE_FRAMES * FRAME_BYTES)) };
    let lossless = marks.map_or(PrioritySet::EMPTY, |_| PrioritySet::only(priority()));
    DcbConfig {
        memory: MemoryConfig {
            lossless,
            lossless_pool: room,
            lossy_pool: room,
            groups: vec![[group; PRIORITIES]; usize::from(ports)],
            queues: [queue; PRIORITIES],
        },
        pfc: lossless,
        pfc_quanta: Quanta::MAX,
        watermarks: marks,
        order: QueueOrder::Arrival,
        ..DcbConfig::lossy(vec![RATE; usize::from(ports)], MacAddr([2, 0, 0, 0, 1, number]))
    }
}

/// Returns the watermarks, with or without a low one, with or without targeting.
pub(crate) fn marks(has_low: bool, choice: Option<Choice>) -> Watermarks {
    let frames = |count: u64| Bytes(count * FRAME_BYTES);
    Watermarks {
        low: has_low.then_some(frames(LOW_FRAMES)),
        targeting: choice.map(|choice| Targeting { target: frames(TARGET_FRAMES), choice }),
        high: frames(HIGH_FRAMES),
        bytes_max: frames(QUEUE_FRAMES),
    }
}

/// Returns all ways to choose the sources to pause, with their names.
pub fn choices(seed: u64) -> [(&'static str, Option<Choice>); 5] {
    let sampled = |frames| Some(Choice::Sampled { seed, interval: Bytes(frames * FRAME_BYTES) });
    [
        ("HW-LW", None),
        ("random sampling, every frame", sampled(0)),
        ("random sampling", sampled(TARGET_FRAMES)),
        ("fair bandwidth", Some(Choice::FairBandwidth)),
        ("max-min (ours)", Some(Choice::MaxMin)),
    ]
}

/// Returns whether the choice is an interpretation selected for its result: random sampling that
/// does not draw with every frame, as the algorithm of appendix A does.
pub(crate) fn is_chosen(choice: Option<Choice>) -> bool {
    matches!(choice, Some(Choice::Sampled { interval, .. }) if interval > Bytes(0))
}

/// Returns the seeds of the runs: ten for a random choice, else one.
pub(crate) fn seeds(choice: Option<Choice>, seed: u64) -> std::ops::Range<u64> {
    let is_drawn = matches!(choice, Some(Choice::Sampled { .. }));
    seed..seed + if is_drawn { SEEDS } else { 1 }
}

/// Returns a time of a world in ms.
pub(crate) fn at_ms(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

/// Returns a source at port `port` of switch 0 that sends frames of `frame_bytes` bytes out of port
/// 3.
pub(crate) fn source(port: u16, frame_bytes: u64, phases: Vec<Phase>) -> Source {
    Source {
        at: (0, PortNo(port)),
        route: vec![PortNo(3)],
        priority: priority(),
        frame_bytes: frame_bytes as usize,
        phases,
    }
}

/// Three sources before one port.
pub(crate) fn three_into_one(marks: Option<Watermarks>, sources: Vec<Source>) -> Plan {
    Plan {
        switches: vec![switch(4, 0, marks)],
        links: Vec::new(),
        sources,
        sinks: vec![Sink::quiet((0, PortNo(3)))],
        reaction: None,
        rate: RATE,
        latency: LATENCY,
    }
}

/// Returns the victims, with frames of `victim_bytes` bytes, and the aggressor with full ones (002
/// §7.4).
pub(crate) fn victims_and_aggressor(until: Time, victim_bytes: u64) -> Vec<Source> {
    let frame_time = RATE.time_for(Bytes(victim_bytes + OVERHEAD_BYTES));
    let victim = Phase { from: at_ms(1), until, interval: frame_time * 4 };
    let before = Phase { from: at_ms(1), until: at_ms(3), interval: QUARTER };
    let aggressor = Phase { from: at_ms(4), until, interval: Span::ZERO };
    vec![
        source(0, victim_bytes, vec![victim]),
        source(1, victim_bytes, vec![victim]),
        source(2, FRAME_BYTES, vec![before, aggressor]),
    ]
}

/// Use of a wire between two times.
pub struct Use {
    /// Mean rate in Gb/s.
    pub mean: f64,
    /// Standard deviation over bins in Gb/s.
    pub sd: f64,
}

/// Returns the wire use of each source and of the first sink, in bins of this width.
pub(crate) fn used(seen: &Seen, (from, until): (Time, Time), bin: Span) -> (Vec<Use>, Use) {
    let bins = Bins::between(from, until, bin);
    let of = |passed: &Vec<_>| {
        let (mean, sd) = mean_and_sd(&bins.throughput(passed, RATE));
        Use { mean, sd }
    };
    (seen.sources.iter().map(of).collect(), of(&seen.sinks[0]))
}
