//! Congestion control over a bottleneck.

use crate::link::{CLEAN, Link, Pair};
use axon_tcp::{Algorithm, Config, Flags, Mark};
use axon_wire::{Rate, Span};

fn config(congestion: Algorithm) -> Config {
    Config {
        congestion,
        send_buffer: 1 << 22,
        receive_buffer: 1 << 22,
        ack_delay: Some(Span::from_millis(1)),
        ..Config::default()
    }
}

/// 100 Mb/s, a round trip of 10 ms: 125,000 bytes.
const BOTTLENECK: Link =
    Link { rate: Rate::mbps(100), delay: Span::from_millis(5), queue: 125_000, ..CLEAN };

/// Returns the used share of the link from the second second to the sixth, per mille.
fn used(congestion: Algorithm, link: Link) -> (u64, Pair) {
    let mut pair = Pair::established([config(congestion); 2], link);
    pair.client().write(1 << 40);
    pair.run_for(Span::from_secs(1));
    let before = pair.server().received();
    pair.run_for(Span::from_secs(5));
    let bytes = pair.server().received() - before;
    let most = link.rate.bytes_in(Span::from_secs(5)).0 * 1460 / 1518;
    (bytes * 1000 / most, pair)
}

#[test]
fn with_a_queue_of_a_round_trip_the_link_is_full() {
    for congestion in [Algorithm::Reno, Algorithm::Cubic] {
        let (share, mut pair) = used(congestion, BOTTLENECK);
        let stats = pair.client().stats();
        assert!(share > 950, "{congestion:?}: {share} {stats:?}");
        assert_eq!(stats.timeouts, 0, "{congestion:?}: {stats:?}");
        assert!(stats.recoveries >= 1 && pair.dropped > 0, "{congestion:?}: {stats:?}");
        assert!(stats.retransmits <= pair.dropped + 2, "{} {stats:?}", pair.dropped);
    }
}

#[test]
fn cubic_reaches_farther_than_reno_where_round_trips_are_long() {
    let link = Link { delay: Span::from_millis(50), queue: 400_000, lost: 0, ..BOTTLENECK };
    let (reno, _) = used(Algorithm::Reno, link);
    let (cubic, _) = used(Algorithm::Cubic, link);
    assert!(cubic > reno, "{cubic} and {reno}");
}

#[test]
fn dctcp_keeps_the_queue_at_the_threshold_and_the_link_full() {
    // K = 40,000 bytes, a third of the bandwidth-delay product (RFC 8257 §3.1: more than 1/7).
    let link = Link { mark_above: 40_000, queue: 1_000_000, ..BOTTLENECK };
    let (share, mut pair) = used(Algorithm::Dctcp, link);
    let stats = pair.client().stats();
    assert!(share > 970, "{share} {stats:?}");
    assert_eq!((pair.dropped, stats.retransmits, stats.timeouts), (0, 0, 0), "{stats:?}");
    let alpha = stats.alpha.unwrap();
    assert!(alpha > 0 && alpha < (1 << 20) / 3, "{alpha}");
    assert!(stats.window < 125_000 + 60_000, "{stats:?}");
}

#[test]
fn classic_ecn_halves_without_a_loss_and_says_so() {
    let link = Link { mark_above: 60_000, queue: 1_000_000, ..BOTTLENECK };
    let configs = [Config { ecn: true, ..config(Algorithm::Reno) }; 2];
    let mut pair = Pair::established(configs, link);
    pair.client().write(1 << 40);
    pair.run_for(Span::from_secs(4));
    let stats = pair.client().stats();
    assert!(stats.reductions >= 2 && pair.dropped == 0, "{stats:?}");
    let cwr = pair.trace.iter().filter(|(_, from, s)| *from == 0 && s.flags.has(Flags::CWR));
    // The SYN, and one segment of each reduction.
    let counted = cwr.count() as u32;
    assert!(counted.abs_diff(stats.reductions + 1) <= 1, "{counted} {stats:?}");
}

#[test]
fn ecn_is_agreed_upon_by_both_or_not_used() {
    for (client, server) in [(true, true), (true, false), (false, true)] {
        let of = |ecn| Config { ecn, ..config(Algorithm::Reno) };
        let mut pair = Pair::established([of(client), of(server)], CLEAN);
        pair.client().write(1000);
        pair.pump();
        let capable = pair.data()[0].1.mark == Mark::Capable;
        assert_eq!(capable, client && server);
        let syn = [pair.trace[0].2.flags, pair.trace[1].2.flags];
        assert_eq!(syn[0].has(Flags::ECE) && syn[0].has(Flags::CWR), client);
        assert_eq!((syn[1].has(Flags::ECE), syn[1].has(Flags::CWR)), (client && server, false));
    }
}

/// RFC 8257 §3.2: a change of CE marking is acknowledged at once, with the state before it.
#[test]
fn a_dctcp_receiver_reports_every_run_of_marks() {
    let mut pair = Pair::established([config(Algorithm::Dctcp); 2], CLEAN);
    let now = pair.now;
    pair.client().write(10 * 1460);
    let mut server = pair.ends[1].take().unwrap().connection;
    let mut answers = Vec::new();
    for marked in [false, false, false, true, true, false, true] {
        let mut segment = pair.client().poll_transmit(now).unwrap();
        assert_eq!(segment.mark, Mark::Capable);
        if marked {
            segment.mark = Mark::Experienced;
        }
        server.on_segment(now, &segment);
        server.read(u64::MAX);
        while let Some(answer) = server.poll_transmit(now) {
            answers.push((answer.ack.since(pair_first()) / 1460, answer.flags.has(Flags::ECE)));
        }
    }
    // Two unmarked; the third alone before the first mark; marks at once; the unmarked one in
    // between.
    assert_eq!(
        answers,
        [(2, false), (3, false), (4, true), (5, true), (6, false), (7, true)][..]
            .to_vec()
            .into_iter()
            .collect::<Vec<_>>()
    );
}

fn pair_first() -> axon_tcp::Seq {
    crate::link::FIRST[0] + 1
}

#[test]
fn after_a_pause_the_window_begins_anew() {
    let mut pair = Pair::established([config(Algorithm::Reno); 2], BOTTLENECK);
    pair.client().write(1_000_000);
    pair.run_for(Span::from_secs(2));
    let before = pair.client().stats().window;
    pair.client().write(1_000_000);
    let sent = pair.data().len();
    pair.pump();
    assert!(before > 20_000);
    assert_eq!(pair.data().len() - sent, 10, "RFC 5681 4.1");
}

/// 20 Mb/s, a round trip of 10 ms, and a queue that takes 80 ms to drain.
const DEEP: Link = Link { rate: Rate::mbps(20), queue: 200_000, ..BOTTLENECK };

#[test]
fn hystart_takes_most_of_the_overshoot_of_slow_start() {
    let [reno, cubic] = [Algorithm::Reno, Algorithm::Cubic].map(|congestion| {
        let mut pair = Pair::established([config(congestion); 2], DEEP);
        pair.client().write(1 << 40);
        pair.run_for(Span::from_millis(1500));
        pair.dropped
    });
    assert!(reno > 100 && cubic < reno / 3, "{cubic} and {reno}");
}

#[test]
fn after_a_timeout_the_first_segment_leaves_whatever_else_is_in_flight() {
    let mut pair = Pair::established([config(Algorithm::Reno); 2], BOTTLENECK);
    pair.client().write(1460);
    pair.run_for(Span::from_millis(100));
    pair.drop_if = Box::new(|_, _, _| true);
    let first = crate::link::FIRST[0] + 1 + 1460;
    pair.client().write(5 * 1460);
    pair.run_for(Span::from_millis(220));
    assert_eq!(pair.client().stats().timeouts, 0);
    pair.client().write(5 * 1460);
    pair.run_for(Span::from_millis(20));
    assert_eq!(pair.client().stats().timeouts, 1);
    let sent = pair.data().iter().filter(|(_, segment)| segment.seq == first).count();
    assert_eq!(sent, 2);
}

#[test]
fn what_is_sent_again_is_not_markable_but_for_dctcp() {
    for (congestion, ecn, mark) in
        [(Algorithm::Reno, true, Mark::None), (Algorithm::Dctcp, false, Mark::Capable)]
    {
        let configs = [Config { ecn, ..config(congestion) }; 2];
        let mut pair = Pair::established(configs, BOTTLENECK);
        pair.client().write(10 * 1460);
        let lost = crate::link::FIRST[0] + 1;
        let mut once = false;
        pair.drop_if = Box::new(move |from, segment, _| {
            from == 0 && segment.seq == lost && !std::mem::replace(&mut once, true)
        });
        pair.run_for(Span::from_millis(500));
        let sent = pair.trace.iter().filter(|(_, from, s)| *from == 0 && s.bytes > 0);
        let marks: Vec<Mark> = sent.filter(|(.., s)| s.seq == lost).map(|(.., s)| s.mark).collect();
        assert_eq!(marks, [Mark::Capable, mark], "{congestion:?}");
    }
}

#[test]
fn without_sack_a_partial_acknowledgement_lets_no_burst_leave() {
    for lost in [&[10, 40][..], &[10, 40, 70]] {
        let configs = [Config { sack: false, ..config(Algorithm::Reno) }; 2];
        let mut pair = Pair::established(configs, Link { queue: u64::MAX, ..BOTTLENECK });
        pair.client().write(1 << 40);
        pair.run_for(Span::from_millis(60));
        let next = pair.data().last().unwrap().1.seq;
        let mut to_lose: Vec<_> = lost.iter().map(|segments| next + segments * 1460).collect();
        pair.drop_if = Box::new(move |from, segment, _| {
            let at = to_lose.iter().position(|&seq| from == 0 && seq == segment.seq);
            at.map(|at| to_lose.remove(at)).is_some()
        });
        pair.run_for(Span::from_millis(300));
        assert_eq!((pair.client().stats().recoveries, pair.dropped), (1, lost.len() as u64));
        let data = pair.data();
        let again = |segments: u32| {
            let seq = next + segments * 1460;
            let times = data.iter().filter(|(_, segment)| segment.seq == seq);
            times.map(|&(at, _)| at).max().unwrap()
        };
        // From the first retransmission until the data after the last one can be acknowledged.
        let (from, to) = (again(10), again(*lost.last().unwrap()) + BOTTLENECK.delay);
        let recovery = data.iter().map(|&(at, _)| at).filter(|&at| at > from && at < to);
        let times: Vec<_> = recovery.collect();
        let burst = times.chunk_by(|one, other| one == other).map(<[_]>::len).max();
        assert!(burst.is_some_and(|burst| burst <= 4), "{lost:?}: {burst:?} of {}", times.len());
    }
}
