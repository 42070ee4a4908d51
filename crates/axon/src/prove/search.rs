//! Worst case that the simulator finds, for comparison with the computed bound.
//!
//! One switch, three ports. The peer of the first sends the longest frames of a lossless priority,
//! at full rate, to the second, whose peer keeps it paused. A third keeps the port to the first
//! busy with the longest frames of another priority, so that XOFF has to wait. The shares are
//! empty, so the first frame triggers XOFF. The start time of each sender is drawn at random, many
//! times; the result is the largest number of bytes that ever waits.

use axon_fabric::dcb::frame_bytes;
use axon_plane::dcb::DcbConfig;
use axon_plane::shared_buffer::Share;
use axon_prove::headroom::Headroom;
use axon_sim::bare::{Phase, Plan, Sink, Source, Storm};
use axon_wire::priority::{Priority, PrioritySet};
use axon_wire::{Bytes, MacAddr, PortNo, Span, Time};

/// Runs for each kind of port, unless the amount in flight on its cable requires fewer.
const RUNS: u64 = 200;
/// Maximum number of frames in flight in all runs of a kind of port together.
const FRAMES: u64 = 200_000;
/// Buffer size that never fills.
const PLENTY: Bytes = Bytes(1 << 40);
/// Delay of the first sender in frames, so that the others have begun.
const LATE: u64 = 8;

/// Result of the search for a kind of port.
#[derive(Clone, Copy, Debug, Default)]
pub struct Searched {
    /// Number of runs; zero if the cable holds too much for a single one.
    pub runs: u64,
    /// Maximum headroom that any run used.
    pub most: Bytes,
}

/// Returns the number of runs for a port like this.
pub(super) fn runs(formula: &Headroom) -> u64 {
    let in_flight = formula.bytes().0 / frame_bytes(formula).0 + LATE;
    (FRAMES / in_flight).min(RUNS)
}

/// Searches the worst case of a port like this; `on_run` is called after each run.
pub(super) fn search(formula: &Headroom, seed: u64, mut on_run: impl FnMut()) -> Searched {
    let mut random = oorandom::Rand64::new(u128::from(seed));
    let frame = formula.rate.time_for(Bytes(frame_bytes(formula).0 + 24));
    let mut drawn = || Span::from_ticks(random.rand_range(0..frame.ticks().max(1)));
    let runs = runs(formula);
    let most = (0..runs).map(|run| {
        let late = frame * LATE;
        let plan = plan(formula, (Time::ZERO + late + drawn(), Time::ZERO + drawn()));
        // The first frame arrives, XOFF returns, and then the frames in flight arrive.
        let end = Time::ZERO + late + plan.latency * 3 + frame * 8;
        let queued = plan.run(end, run).queued_bytes_max[0];
        on_run();
        queued
    });
    Searched { most: Bytes(most.max().unwrap_or(0)), runs }
}

fn plan(formula: &Headroom, (first, third): (Time, Time)) -> Plan {
    let lossless = Priority::MAX;
    let mut switch = DcbConfig::lossy(vec![formula.rate; 3], MacAddr([2, 0, 0, 0, 0, 1]));
    switch.pfc = PrioritySet::only(lossless);
    switch.memory.lossless = switch.pfc;
    switch.memory.lossy_pool = PLENTY;
    for port in &mut switch.memory.groups {
        let group = &mut port[lossless.index()];
        (group.share, group.headroom) = (Share::Static(Bytes(0)), PLENTY);
    }
    let source = |port, to, priority, from| Source {
        at: (0, PortNo(port)),
        route: vec![PortNo(to)],
        priority,
        frame_bytes: frame_bytes(formula).0 as usize,
        phases: vec![Phase { from, until: Time::MAX, interval: Span::ZERO }],
    };
    let storm =
        Some(Storm { priority: lossless, from: Time::ZERO, until: Time::MAX, breaks: None });
    // The delays of the ends and the reaction count as additional length of the cable.
    let inside = formula.rate.time_for(Bytes(formula.interface_bits / 8));
    let around = (formula.cable + inside) * 2 + formula.reaction;
    Plan {
        switches: vec![switch],
        links: Vec::new(),
        sources: vec![source(0, 1, lossless, first), source(2, 0, Priority::ZERO, third)],
        sinks: vec![Sink { at: (0, PortNo(1)), storm }],
        reaction: None,
        rate: formula.rate,
        latency: Span::from_ticks(around.ticks() / 2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_fabric::dcb::needed;
    use axon_wire::Rate;

    #[test]
    fn the_worst_case_found_is_within_a_frame_of_the_bound_and_never_above_it() {
        for (gigabits, cable, frame) in [(10, 500, 1522), (25, 10, 1522), (100, 5_000, 9_022)] {
            let formula = Headroom {
                rate: Rate::gbps(gigabits),
                slowest: Rate::gbps(gigabits),
                cable: Span::from_nanos(cable),
                port_frame: Bytes(frame),
                lossless_frame: Bytes(frame),
                interface_bits: 2_000,
                reaction: Span::from_nanos(600),
            };
            let (most, bound) = (search(&formula, 1, || ()).most.0, needed(&formula).0);
            assert!(most <= bound, "{most} of {bound}: {formula:?}");
            assert!(most + frame > bound, "{most} of {bound}: {formula:?}");
        }
    }

    #[test]
    fn a_cable_that_holds_too_much_is_not_searched() {
        let formula = Headroom {
            rate: Rate::gbps(800),
            slowest: Rate::gbps(800),
            cable: Span::from_secs(10),
            port_frame: Bytes(1_522),
            lossless_frame: Bytes(1_522),
            interface_bits: 0,
            reaction: Span::ZERO,
        };
        assert_eq!(search(&formula, 1, || ()).runs, 0);
    }
}
