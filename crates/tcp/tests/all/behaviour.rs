//! Behaviour of a connection that the RFCs demand, one test each.

use crate::link::{CLEAN, FIRST, Link, Pair};
use axon_tcp::{Config, Connection, Failure, Flags, Segment, Seq, State};
use axon_wire::{Span, Time};

const PLAIN: [Config; 2] = [DEFAULT, DEFAULT];
const DEFAULT: Config = Config {
    mss: 1000,
    send_buffer: 1 << 20,
    receive_buffer: 1 << 20,
    congestion: axon_tcp::Algorithm::Reno,
    ecn: false,
    sack: true,
    nagle: false,
    ack_delay: Some(Span::from_millis(40)),
    rto_initial: Span::from_secs(1),
    rto_min: Span::from_millis(200),
    rto_max: Span::from_secs(120),
    probe_min: Span::from_millis(2),
    retries: 15,
    time_wait: Span::from_secs(60),
};

#[test]
fn three_segments_open_and_the_options_are_agreed_upon() {
    let pair = Pair::established(PLAIN, CLEAN);
    let of = |index: usize| pair.trace[index].2;
    assert_eq!((of(0).flags, of(1).flags), (Flags::SYN, Flags::SYN | Flags::ACK));
    assert_eq!((of(0).options.mss, of(1).options.mss), (Some(1000), Some(1000)));
    assert_eq!((of(0).options.scale, of(1).options.scale), (Some(5), Some(5)), "2^20 >> 5");
    assert!(of(0).options.sack_permitted && of(1).options.sack_permitted);
    assert_eq!((of(1).ack, of(2).ack), (FIRST[0] + 1, FIRST[1] + 1));
    assert_eq!(of(2).window, 1 << 15);
    assert_eq!(pair.trace.len(), 3);
}

#[test]
fn a_syn_is_sent_again_after_1_3_and_7_seconds_and_given_up() {
    let config = Config { retries: 3, ..DEFAULT };
    let mut pair = Pair::new([config; 2], CLEAN, 1);
    pair.drop_if = Box::new(|_, _, _| true);
    pair.run();
    let seconds: Vec<u64> =
        pair.trace.iter().map(|(at, ..)| at.as_nanos() / 1_000_000_000).collect();
    assert_eq!(seconds, [0, 1, 3, 7]);
    assert_eq!(pair.client().failure(), Some(Failure::TimedOut));
    assert_eq!(pair.now, Time::ZERO + Span::from_secs(15));
}

#[test]
fn after_a_lost_syn_the_window_begins_with_one_segment() {
    let mut pair = Pair::new(PLAIN, CLEAN, 1);
    pair.drop_if = Box::new(|_, _, number| number == 1);
    pair.client().write(100_000);
    pair.run_until(|pair| !pair.data().is_empty());
    assert_eq!(pair.client().stats().window, 1000, "RFC 5681 3.1");
}

#[test]
fn both_may_open_at_once() {
    let mut ends = FIRST.map(|first| Connection::open(Time::ZERO, DEFAULT, first));
    let mut wire: Vec<(usize, Segment)> = Vec::new();
    for _ in 0..6 {
        for (index, end) in ends.iter_mut().enumerate() {
            while let Some(segment) = end.poll_transmit(Time::ZERO) {
                wire.push((1 - index, segment));
            }
        }
        for (to, segment) in wire.drain(..) {
            ends[to].on_segment(Time::ZERO, &segment);
        }
    }
    assert!(ends.iter().all(|end| end.state() == State::Established), "{ends:?}");
}

#[test]
fn a_closed_port_refuses() {
    let mut client = Connection::open(Time::ZERO, DEFAULT, Seq(7));
    let syn = client.poll_transmit(Time::ZERO).unwrap();
    let reset = Connection::refuse(&syn).unwrap();
    assert_eq!((reset.ack, reset.flags), (Seq(8), Flags::RST | Flags::ACK));
    client.on_segment(Time::ZERO, &reset);
    assert_eq!((client.is_closed(), client.failure()), (true, Some(Failure::Refused)));
    assert_eq!(Connection::refuse(&reset), None);
}

#[test]
fn ten_segments_leave_at_first_and_every_second_is_acknowledged() {
    let mut pair = Pair::established(PLAIN, CLEAN);
    pair.client().write(100_000);
    pair.pump();
    assert_eq!(pair.data().len(), 10, "RFC 6928");
    pair.run_for(Span::from_micros(150));
    let acks = pair.trace.iter().filter(|(_, from, _)| *from == 1).count();
    assert_eq!(acks, 1 + 5);
}

#[test]
fn a_single_segment_is_acknowledged_after_the_delay() {
    let mut pair = Pair::established(PLAIN, CLEAN);
    pair.client().write(1000);
    let sent = pair.now;
    pair.run_until(|pair| pair.ends[0].as_ref().unwrap().connection.acknowledged() == 1000);
    let millis = pair.now.since(sent).as_millis();
    assert_eq!(millis, 40, "ack_delay");
    assert_eq!(pair.client().stats().probes, 0, "the probe waits for the delay");
}

#[test]
fn the_end_that_closes_first_waits() {
    let mut pair = Pair::established(PLAIN, CLEAN);
    pair.client().write(5000);
    pair.client().close();
    pair.run_until(|pair| pair.ends[0].as_ref().unwrap().connection.state() == State::TimeWait);
    let waits = pair.now;
    pair.run();
    assert_eq!(pair.now.since(waits), Span::from_secs(60));
    assert_eq!((pair.server().received(), pair.server().failure()), (5000, None));
    let last = pair.data().last().unwrap().1;
    assert_eq!(
        last.flags,
        Flags::FIN | Flags::PSH | Flags::ACK,
        "the FIN rides on the last segment"
    );
}

#[test]
fn one_way_may_stay_open_after_the_other_has_closed() {
    let mut pair = Pair::established(PLAIN, CLEAN);
    pair.client().close();
    pair.reading = false;
    pair.run_for(Span::from_millis(10));
    assert_eq!((pair.client().state(), pair.server().state()), (State::FinWait2, State::CloseWait));
    pair.ends[1].as_mut().unwrap().connection.write(3000);
    pair.run_for(Span::from_millis(100));
    assert_eq!(pair.client().received(), 3000);
}

#[test]
fn a_reset_counts_with_the_exact_number_only() {
    let mut pair = Pair::established(PLAIN, CLEAN);
    let now = pair.now;
    let reset = |seq| Segment { seq, flags: Flags::RST, ..Segment::default() };
    let client = pair.client();
    client.on_segment(now, &reset(FIRST[1]));
    assert_eq!((client.state(), client.poll_transmit(now)), (State::Established, None));
    client.on_segment(now, &reset(FIRST[1] + 50));
    assert_eq!(client.state(), State::Established);
    let challenge = client.poll_transmit(now).unwrap();
    assert_eq!((challenge.flags, challenge.ack), (Flags::ACK, FIRST[1] + 1), "RFC 5961 3.2");
    client.on_segment(now, &reset(FIRST[1] + 1));
    assert_eq!((client.is_closed(), client.failure()), (true, Some(Failure::Reset)));
}

#[test]
fn an_end_that_breaks_off_resets_the_other() {
    let mut pair = Pair::established(PLAIN, CLEAN);
    pair.client().abort();
    pair.run();
    assert_eq!(pair.client().failure(), Some(Failure::Aborted));
    assert_eq!(pair.server().failure(), Some(Failure::Reset));
}

#[test]
fn a_loss_in_the_middle_is_mended_in_a_round_trip_and_once() {
    let mut pair = Pair::established(PLAIN, CLEAN);
    pair.client().write(30_000);
    let start = pair.now;
    pair.drop_if = Box::new(|from, segment, number| {
        from == 0 && segment.seq == FIRST[0] + 3001 && number < 15
    });
    pair.run_until(|pair| pair.server().received() == 30_000);
    let stats = pair.client().stats();
    assert_eq!((stats.retransmits, stats.recoveries, stats.timeouts), (1, 1, 0));
    assert!(pair.now.since(start) < Span::from_millis(2), "{:?}", pair.now.since(start));
    let sacks = |segment: &Segment| !segment.options.sacks.is_empty();
    assert!(pair.trace.iter().filter(|(.., segment)| sacks(segment)).count() >= 6);
}

#[test]
fn several_losses_of_a_window_halve_it_once() {
    let mut pair = Pair::established(PLAIN, CLEAN);
    pair.client().write(200_000);
    let lost = [3, 5, 6, 9, 12].map(|n| FIRST[0] + 1 + n * 1000);
    let mut dropped = Vec::new();
    pair.drop_if = Box::new(move |from, segment, _| {
        let first = from == 0 && lost.contains(&segment.seq) && !dropped.contains(&segment.seq);
        dropped.extend(first.then_some(segment.seq));
        first
    });
    pair.run_until(|pair| pair.server().received() == 200_000);
    let stats = pair.client().stats();
    assert_eq!((stats.retransmits, stats.timeouts), (5, 0));
    assert!(stats.recoveries <= 2, "{stats:?}");
}

#[test]
fn what_is_sent_again_and_lost_again_is_mended_without_a_timeout() {
    let mut pair = Pair::established(PLAIN, CLEAN);
    pair.client().write(300_000);
    let mut times = 0;
    pair.drop_if = Box::new(move |from, segment, _| {
        let it = from == 0 && segment.seq == FIRST[0] + 5001;
        times += u32::from(it);
        it && times <= 3
    });
    pair.run_until(|pair| pair.server().received() == 300_000);
    let stats = pair.client().stats();
    assert_eq!((stats.retransmits, stats.timeouts), (3, 0), "RFC 8985: by time, not by count");
}

#[test]
fn reordering_within_a_quarter_of_a_round_trip_sends_nothing_again() {
    let link =
        Link { held: 200, hold: Span::from_micros(20), delay: Span::from_micros(100), ..CLEAN };
    let mut pair = Pair::established(PLAIN, link);
    pair.client().write(2_000_000);
    pair.run_until(|pair| pair.server().received() == 2_000_000);
    let stats = pair.client().stats();
    // Until reordering has been detected, three arrivals out of order count as a loss.
    assert!(stats.retransmits <= 3, "{stats:?}");
    assert!(stats.recoveries <= 1, "{stats:?}");
}

#[test]
fn a_lost_tail_is_probed_after_two_round_trips() {
    let config = Config { probe_min: Span::ZERO, ..DEFAULT };
    let mut pair = Pair::established([config; 2], CLEAN);
    pair.client().write(10_000);
    let lost = FIRST[0] + 9001;
    pair.drop_if =
        Box::new(move |from, segment, number| from == 0 && segment.seq == lost && number < 15);
    let start = pair.now;
    pair.run_until(|pair| pair.server().received() == 10_000);
    let stats = pair.client().stats();
    assert_eq!((stats.probes, stats.timeouts, stats.retransmits), (1, 0, 1));
    assert!(pair.now.since(start) < Span::from_millis(42), "{:?}", pair.now.since(start));
    // The repair of a loss counts as congestion: RFC 8985 7.4.2.
    pair.client().write(1000);
    pair.run_for(Span::from_millis(100));
    assert_eq!(pair.client().stats().reductions, 1);
}

#[test]
fn without_probes_a_lost_tail_takes_the_timeout_and_the_timeout_doubles() {
    let config = Config { sack: false, ..DEFAULT };
    let mut pair = Pair::established([config; 2], CLEAN);
    pair.client().write(1000);
    let start = pair.now;
    pair.drop_if =
        Box::new(move |from, segment, number| from == 0 && segment.bytes > 0 && number < 6);
    pair.run_until(|pair| pair.server().received() == 1000);
    let data = pair.data();
    let millis: Vec<u64> = data.iter().map(|(at, _)| at.since(start).as_millis()).collect();
    assert_eq!(millis, [0, 200, 600], "RFC 6298 2.4 with Linux's 200 ms, 5.5");
    assert_eq!(pair.client().stats().timeouts, 2);
}

#[test]
fn a_peer_that_vanishes_is_given_up() {
    let config = Config { retries: 4, ..DEFAULT };
    let mut pair = Pair::established([config; 2], CLEAN);
    pair.client().write(1000);
    pair.drop_if = Box::new(|_, _, _| true);
    pair.run_until(|pair| pair.ends[0].as_ref().unwrap().connection.is_closed());
    assert_eq!(pair.client().failure(), Some(Failure::TimedOut));
}

#[test]
fn a_closed_window_is_probed_until_it_opens() {
    let config = Config { receive_buffer: 4000, ..DEFAULT };
    let mut pair = Pair::established([DEFAULT, config], CLEAN);
    pair.reading = false;
    pair.client().write(20_000);
    pair.run_for(Span::from_secs(30));
    assert_eq!((pair.server().received(), pair.client().queued()), (4000, 16_000));
    assert_eq!(pair.client().failure(), None);
    let probes = pair.trace.iter().filter(|(at, from, segment)| {
        *from == 0 && segment.bytes == 0 && *at > Time::ZERO + Span::from_millis(100)
    });
    let millis: Vec<u64> = probes.map(|(at, ..)| at.since(Time::ZERO).as_millis()).collect();
    assert!(millis.len() >= 6 && millis[1] - millis[0] >= 390, "doubling: {millis:?}");
    pair.reading = true;
    let end = pair.now + Span::from_secs(60);
    pair.run_until(|pair| pair.server().received() == 20_000 || pair.now > end);
    assert_eq!(pair.server().received(), 20_000);
}

#[test]
fn small_windows_are_not_filled_with_small_segments() {
    let config = Config { receive_buffer: 1500, ..DEFAULT };
    let mut pair = Pair::established([DEFAULT, config], CLEAN);
    pair.client().write(15_000);
    pair.run_until(|pair| pair.server().received() == 15_000);
    assert!(pair.data().len() <= 20, "{}", pair.data().len());
}

#[test]
fn nagle_waits_with_a_small_segment() {
    for (nagle, segments) in [(true, 1), (false, 2)] {
        let config = Config { nagle, ..DEFAULT };
        let mut pair = Pair::established([config; 2], CLEAN);
        pair.client().write(10);
        pair.pump();
        pair.client().write(10);
        pair.pump();
        assert_eq!(pair.data().len(), segments);
    }
}

#[test]
fn an_end_without_reordering_takes_less_than_a_kibibyte() {
    let mut pair = Pair::established(PLAIN, CLEAN);
    pair.client().write(10_000_000);
    let mut most = 0;
    for _ in 0..2000 {
        pair.step();
        most = most.max(pair.server().memory());
    }
    assert!(most < 1024, "{most} bytes at the receiver");
    let idle = Pair::established(PLAIN, CLEAN).client().memory();
    assert!(idle < 1024, "{idle} bytes at the sender");
}

#[test]
fn an_end_takes_less_than_a_kilobyte() {
    let bytes = size_of::<axon_tcp::Connection>();
    assert!(bytes < 900, "{bytes}");
}
