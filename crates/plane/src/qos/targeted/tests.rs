use super::*;
use axon_wire::priority::{Priority, TrafficClass};

const FRAME: u64 = 1_000;
const LOSSLESS: PrioritySet = PrioritySet::only(Priority::ZERO);
const STOP: Span = Span::from_micros(100);

fn owner(ingress: u16) -> Owner {
    let (ingress, egress) = (PortNo(ingress), PortNo(9));
    Owner { ingress, priority: Priority::ZERO, egress, class: TrafficClass::ZERO }
}

fn watermarks(low: Option<u64>, choice: Option<Choice>) -> Watermarks {
    Watermarks {
        low: low.map(|frames| Bytes(frames * FRAME)),
        targeting: choice.map(|choice| Targeting { target: Bytes(10 * FRAME), choice }),
        high: Bytes(20 * FRAME),
        bytes_max: Bytes(30 * FRAME),
    }
}

fn queues(low: Option<u64>, choice: Option<Choice>) -> Queues {
    Queues::new(watermarks(low, choice), 10)
}

/// Returns the requests to the senders, by port.
fn requests(queues: &mut Queues) -> Vec<(u16, RequestKind)> {
    let requests = core::iter::from_fn(|| queues.next_request());
    let mut requests: Vec<_> = requests.map(|request| (request.port.0, request.kind)).collect();
    requests.sort_by_key(|request| request.0);
    requests
}

fn come(queues: &mut Queues, ingresses: &[u16]) -> Vec<(u16, RequestKind)> {
    for &ingress in ingresses {
        queues.arrived(Time::ZERO, (owner(ingress), LOSSLESS), FRAME, STOP);
    }
    requests(queues)
}

fn go(queues: &mut Queues, ingresses: &[u16]) -> Vec<(u16, RequestKind)> {
    ingresses.iter().for_each(|&ingress| queues.left(owner(ingress), FRAME));
    requests(queues)
}

#[test]
fn all_that_have_frames_stop_at_the_high_mark_and_go_on_at_the_low_one() {
    let mut queues = queues(Some(5), None);
    assert_eq!(come(&mut queues, &[1; 19]), []);
    assert_eq!(come(&mut queues, &[3]), [(1, RequestKind::Xoff), (3, RequestKind::Xoff)]);
    assert_eq!(come(&mut queues, &[1, 3, 3]), [], "they know");
    assert_eq!(come(&mut queues, &[4]), [(4, RequestKind::Xoff)], "one that joins now");
    assert_eq!(go(&mut queues, &[1; 18]), []);
    let all = [(1, RequestKind::Xon), (3, RequestKind::Xon), (4, RequestKind::Xon)];
    assert_eq!(go(&mut queues, &[1]), all);
    assert_eq!(go(&mut queues, &[1, 3]), []);
}

#[test]
fn without_a_low_watermark_a_pause_ends_with_its_time_and_is_requested_anew() {
    let mut queues = queues(None, None);
    assert_eq!(come(&mut queues, &[1; 20]), [(1, RequestKind::XoffOnce)]);
    assert_eq!(go(&mut queues, &[1; 20]), []);
    let mut fill = |at: Time| {
        (0..20).for_each(|_| queues.arrived(at, (owner(1), LOSSLESS), FRAME, STOP));
        let requested = requests(&mut queues);
        go(&mut queues, &[1; 20]);
        requested
    };
    assert_eq!(fill(Time::from_nanos(99_999)), [], "it is paused yet");
    assert_eq!(fill(Time::from_nanos(100_000)), [(1, RequestKind::XoffOnce)]);
}

#[test]
fn a_frame_beyond_the_longest_queue_has_no_room() {
    let mut queues = queues(Some(5), None);
    come(&mut queues, &[1; 29]);
    assert!(queues.has_room(owner(2), FRAME) && !queues.has_room(owner(2), FRAME + 1));
}

#[test]
fn fair_bandwidth_stops_who_has_more_than_an_even_part_of_the_frames() {
    let mut queues = queues(Some(5), Some(Choice::FairBandwidth));
    assert_eq!(come(&mut queues, &[1, 1, 2, 1, 1, 2, 1, 1, 3]), []);
    assert_eq!(come(&mut queues, &[1]), [(1, RequestKind::Xoff)]);
    assert_eq!(come(&mut queues, &[2, 2]), [], "four of twelve are an even part");
    assert_eq!(come(&mut queues, &[2, 2]), [(2, RequestKind::Xoff)]);
}

#[test]
fn a_sample_stops_one_source_at_the_mark_and_with_every_frame_or_interval_above_it() {
    for (interval, expected) in [(0, 2), (9, 0)] {
        let interval = Bytes(interval * FRAME);
        let mut queues = queues(Some(5), Some(Choice::Sampled { seed: 3, interval }));
        assert_eq!(come(&mut queues, &[1, 2, 3, 1, 2, 3, 1, 2, 3]), []);
        assert_eq!(come(&mut queues, &[1]).len(), 1);
        let more = come(&mut queues, &[1, 2, 3, 1, 2, 3, 1, 2, 3]).len();
        assert_eq!(more, expected, "seed 3");
        assert_eq!(come(&mut queues, &[1]).len() + more, 2, "the high mark stops the others");
    }
}

#[test]
fn a_source_that_was_drawn_goes_on_when_its_time_is_over_also_if_the_queue_never_sinks() {
    let sampled = Choice::Sampled { seed: 3, interval: Bytes(100 * FRAME) };
    let mut queues = queues(Some(5), Some(sampled));
    let drawn = come(&mut queues, &[1, 2, 3, 1, 2, 3, 1, 2, 3, 1])[0].0;
    let mut one_comes_and_one_goes = |nanos| {
        queues.arrived(Time::from_nanos(nanos), (owner(1), LOSSLESS), FRAME, STOP);
        go(&mut queues, &[1])
    };
    assert_eq!(one_comes_and_one_goes(99_999), []);
    let over = one_comes_and_one_goes(100_000);
    assert!(over.contains(&(drawn, RequestKind::Xon)), "{drawn}: {over:?}");
}

#[test]
fn max_min_stops_who_is_above_its_share_until_that_is_worked_off() {
    let mut queues = queues(Some(4), Some(Choice::MaxMin));
    // Two of source 1 for each of source 2, and two leave: 1 is above its share, 2 is not.
    for _ in 0..7 {
        assert_eq!(come(&mut queues, &[1, 1, 2]), []);
        assert_eq!(go(&mut queues, &[1, 2]), []);
    }
    assert_eq!(come(&mut queues, &[2, 2, 2]), [], "at the mark, but not above its share");
    assert_eq!(come(&mut queues, &[1]), [(1, RequestKind::Xoff)]);
    assert_eq!(come(&mut queues, &[2]), []);
    // Now the others' frames leave first; only the excess of source 1 counts.
    let mut after = 0;
    while go(&mut queues, &[1]).is_empty() {
        after += 1;
        assert!(after <= 8, "never let go");
    }
    assert!(queues.queues[9][0].backlogs.of(1) <= 4 * FRAME);
}

#[test]
fn whoever_was_stopped_goes_on_when_the_queues_of_a_port_begin_anew() {
    let mut queues = queues(Some(5), None);
    come(&mut queues, &[1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3]);
    queues.clear(PortNo(9));
    assert_eq!(requests(&mut queues), [(1, RequestKind::Xon), (3, RequestKind::Xon)]);
    assert_eq!(come(&mut queues, &[1; 19]), [], "it was empty");
}

#[test]
fn watermarks_must_rise() {
    let good = watermarks(Some(5), Some(Choice::FairBandwidth));
    assert_eq!(good.check(), Ok(()));
    for bad in [
        Watermarks { low: Some(Bytes(10 * FRAME)), ..good },
        Watermarks { high: Bytes(10 * FRAME), ..good },
        Watermarks { bytes_max: Bytes(20 * FRAME), ..good },
        Watermarks { low: Some(Bytes(20 * FRAME)), targeting: None, ..good },
    ] {
        assert_eq!(bad.check(), Err(WatermarkFault::Order), "{bad:?}");
    }
}
