//! A host that floods its switch with PFC frames blocks its own queue; with the watchdog, nothing
//! else.

use axon_node::{Drop, Note};
use axon_plane::dcb::DcbConfig;
use axon_plane::shared_buffer::{MemoryConfig, PriorityGroupLimits, QueueLimits, Share};
use axon_plane::watchdog::{StormAction, WatchdogConfig};
use axon_sim::bare::{Phase, Plan, Seen, Sink, Source, Storm};
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet};
use axon_wire::{Bytes, MacAddr, PortNo, Rate, Span, Time, TrafficClass};

const RATE: Rate = Rate::gbps(10);
const LATENCY: Span = Span::from_nanos(500);
/// Length of a frame, without FCS.
const FRAME_BYTES: u64 = 1_514;
/// Intervals of frames: 5 Gb/s to the host that storms, 4 Gb/s to the other.
const INTERVALS: [Span; 2] = [Span::from_nanos(2_461), Span::from_nanos(3_076)];
/// The storm; its last pause lasts for 3,355 us more.
const STORM: (Time, Time) = (Time::from_nanos(1_000_000), Time::from_nanos(2_000_000));
const CALM: Time = Time::from_nanos(5_356_000);
const DETECTION: Span = Span::from_micros(200);
const RESTORATION: Span = Span::from_micros(100);
const END: Time = Time::from_nanos(8_000_000);

fn priority() -> Priority {
    Priority::new(3).unwrap()
}

fn switch(number: u8, watchdog: Option<WatchdogConfig>) -> DcbConfig {
    let group = PriorityGroupLimits {
        reserved: Bytes(0),
        share: Share::Static(Bytes(50_000)),
        headroom: Bytes(20_000),
        xon_offset: Bytes(2 * FRAME_BYTES),
    };
    let queue = QueueLimits { reserved: Bytes(0), share: Share::Dynamic { shift: 0 } };
    let lossless = PrioritySet::only(priority());
    DcbConfig {
        memory: MemoryConfig {
            lossless,
            lossless_pool: Bytes(1 << 20),
            lossy_pool: Bytes(1 << 20),
            groups: vec![[group; PRIORITIES]; 3],
            queues: [queue; PRIORITIES],
        },
        pfc: lossless,
        watchdog,
        ..DcbConfig::lossy(vec![RATE; 3], MacAddr([2, 0, 0, 0, 1, number]))
    }
}

fn run(action: Option<StormAction>) -> Seen {
    storm(action.map(|action| (action, 100)), None)
}

/// Two sources at one switch; behind a second one, the host that storms and another. The watchdog
/// acts when a queue was paused for this part of its detection time, in percent; the storm breaks
/// for a moment at this interval.
fn storm(watchdog: Option<(StormAction, u8)>, breaks: Option<Span>) -> Seen {
    let watchdog = watchdog.map(|(action, paused_percent)| WatchdogConfig {
        detection: DETECTION,
        paused_percent,
        action,
        restoration: RESTORATION,
    });
    let source = |index: u16| Source {
        at: (0, PortNo(index)),
        route: vec![PortNo(2), PortNo(1 + index)],
        priority: priority(),
        frame_bytes: FRAME_BYTES as usize,
        phases: vec![Phase {
            from: Time::from_nanos(100_000),
            until: Time::from_nanos(7_000_000),
            interval: INTERVALS[usize::from(index)],
        }],
    };
    let (from, until) = STORM;
    let storm = Storm { priority: priority(), from, until, breaks };
    let storms = Sink { at: (1, PortNo(1)), storm: Some(storm) };
    let plan = Plan {
        switches: vec![switch(0, watchdog), switch(1, watchdog)],
        links: vec![[(0, PortNo(2)), (1, PortNo(0))]],
        sources: (0..2).map(source).collect(),
        sinks: vec![storms, Sink::quiet((1, PortNo(2)))],
        reaction: None,
        rate: RATE,
        latency: LATENCY,
    };
    plan.run(END, 1)
}

/// Number of frames received by a sink between two times.
fn come(seen: &Seen, sink: usize, from: Time, until: Time) -> usize {
    seen.sinks[sink].iter().filter(|(at, _)| (from..until).contains(at)).count()
}

/// Frames received by the other host between two times, in percent of those sent to it.
fn percent_for_the_other(seen: &Seen, from: Time, until: Time) -> u64 {
    let meant = until.since(from).ticks() / INTERVALS[1].ticks();
    100 * come(seen, 1, from, until) as u64 / meant
}

#[test]
fn without_a_watchdog_a_storm_at_one_host_stops_what_is_for_another() {
    let seen = run(None);
    let at = Time::from_nanos;
    assert_eq!(percent_for_the_other(&seen, at(200_000), STORM.0), 100);
    assert_eq!(come(&seen, 1, at(1_200_000), CALM), 0);
    assert_eq!(seen.all_lost(), 0);
}

#[test]
fn dropping_a_storm_costs_only_the_frames_of_the_host_that_storms() {
    let seen = run(Some(StormAction::Drop));
    let detected = STORM.0 + DETECTION + Span::from_micros(20);
    assert!(percent_for_the_other(&seen, detected, CALM) >= 99);
    assert_eq!(come(&seen, 0, detected, CALM), 0, "it has stopped its own queue");
    let watchdog = seen.lost[&Drop::Watchdog];
    assert_eq!(watchdog, seen.all_lost());
    assert_eq!(seen.sinks[1].len(), seen.sources[1].len(), "nothing of the other's is lost");
    assert_eq!(seen.sinks[0].len() as u64 + watchdog, seen.sources[0].len() as u64);
    let restored = CALM + RESTORATION;
    let again = come(&seen, 0, restored + Span::from_micros(20), Time::from_nanos(7_000_000));
    assert!(again > 500, "its frames come again: {again}");
    storms_are_noted_once(&seen);
}

#[test]
fn forwarding_into_a_storm_loses_nothing() {
    let seen = run(Some(StormAction::Forward));
    let detected = STORM.0 + DETECTION + Span::from_micros(20);
    assert!(percent_for_the_other(&seen, detected, CALM) >= 99);
    assert_eq!(seen.all_lost(), 0);
    for sink in 0..2 {
        assert_eq!(seen.sinks[sink].len(), seen.sources[sink].len());
    }
    storms_are_noted_once(&seen);
}

#[test]
fn a_storm_that_lets_a_frame_go_now_and_then_is_found_by_the_share_of_time_that_it_stops() {
    // Paused for all but some 70 ns of each 50 us.
    let breaks = Some(Span::from_micros(50));
    let evaded = storm(Some((StormAction::Drop, 100)), breaks);
    let at = Time::from_nanos;
    let passed = come(&evaded, 0, at(1_200_000), STORM.1);
    assert!((14..=18).contains(&passed), "a frame in 50 us: {passed}");
    assert!(percent_for_the_other(&evaded, at(1_400_000), STORM.1) <= 10);
    assert!(evaded.notes[0].0 > STORM.1, "no storm is seen before its last stop, which runs on");
    let found = storm(Some((StormAction::Drop, 95)), breaks);
    let detected = STORM.0 + DETECTION + Span::from_micros(20);
    assert!(percent_for_the_other(&found, detected, CALM) >= 99);
    assert_eq!(found.sinks[1].len(), found.sources[1].len(), "nothing of the other's is lost");
    assert_eq!(found.lost.keys().collect::<Vec<_>>(), [&Drop::Watchdog]);
    storms_are_noted_once(&found);
}

fn storms_are_noted_once(seen: &Seen) {
    let (port, class) = (PortNo(1), TrafficClass::new(3).unwrap());
    let notes: Vec<_> = seen.notes.iter().map(|&(_, switch, note)| (switch, note)).collect();
    let expected =
        [(1, Note::PauseStorm { port, class }), (1, Note::PauseStormOver { port, class })];
    assert_eq!(notes, expected);
    let (begins, ends) = (seen.notes[0].0, seen.notes[1].0);
    // From the first frame queued by the first pause, and from the end of the last pause.
    let late = Span::from_micros(10);
    assert!((STORM.0 + DETECTION..STORM.0 + DETECTION + late).contains(&begins), "{begins:?}");
    let restored = CALM + RESTORATION;
    assert!(ends < restored + late && ends + late > restored, "{ends:?}");
}
