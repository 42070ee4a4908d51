//! With any faults of the link, all bytes arrive once and both ends close.

use crate::link::{Link, Pair};
use axon_tcp::{Algorithm, Config, Connection, FILL, Socket};
use axon_wire::{Rate, Span};
use proptest::prelude::*;

fn algorithm() -> impl Strategy<Value = Algorithm> {
    prop_oneof![
        Just(Algorithm::None),
        Just(Algorithm::Reno),
        Just(Algorithm::Cubic),
        Just(Algorithm::Dctcp)
    ]
}

fn config() -> impl Strategy<Value = Config> {
    let buffers = (500u32..300_000, 500u32..300_000);
    let flags = (any::<bool>(), prop::bool::weighted(0.8), any::<bool>());
    let times = (prop_oneof![Just(None), (1u64..50).prop_map(Some)], 1u64..300);
    (algorithm(), buffers, flags, times, 200u16..9000).prop_map(
        |(congestion, (send_buffer, receive_buffer), (ecn, sack, nagle), (delay, rto), mss)| {
            Config {
                mss,
                send_buffer,
                receive_buffer,
                congestion,
                ecn,
                sack,
                nagle,
                ack_delay: delay.map(Span::from_millis),
                rto_initial: Span::from_millis(100),
                rto_min: Span::from_millis(rto),
                rto_max: Span::from_secs(3),
                retries: 100,
                time_wait: Span::from_secs(200),
                ..Config::default()
            }
        },
    )
}

fn link() -> impl Strategy<Value = Link> {
    let faults = (0u32..250, 0u32..100, 0u32..300, 1u64..20_000);
    let queue = prop_oneof![Just(u64::MAX), 20_000u64..200_000];
    (1u64..2000, 1u64..20_000, queue, 0u64..50_000, faults).prop_map(
        |(mbps, delay, queue, mark_above, (lost, doubled, held, hold))| Link {
            rate: Rate::mbps(mbps),
            delay: Span::from_micros(delay),
            queue,
            mark_above,
            lost,
            doubled,
            held,
            hold: Span::from_micros(hold),
        },
    )
}

/// Returns a stream of this length in which one run in `of` has content.
fn stream(seed: u64, bytes: u64, of: u32) -> Vec<u8> {
    let mut random = oorandom::Rand32::new(seed);
    let mut stream = Vec::new();
    while stream.len() < bytes as usize {
        let run = random.rand_range(1..3000);
        let has_content = random.rand_range(0..of) == 0;
        let byte = |_| if has_content { random.rand_u32() as u8 } else { FILL };
        stream.extend((0..run).map(byte));
    }
    stream.truncate(bytes as usize);
    stream
}

/// Sends one stream one way and another the other, as buffers permit.
fn transfer(configs: [Config; 2], link: Link, seed: u64, streams: &[Vec<u8>; 2]) -> Pair {
    let mut pair = Pair::new(configs, link, seed);
    (pair.closing, pair.kept) = (false, Some(Default::default()));
    let (mut left, mut steps) = (streams.each_ref().map(|stream| &stream[..]), 0u32);
    loop {
        for (index, left) in left.iter_mut().enumerate() {
            let Some(end) = &mut pair.ends[index] else { continue };
            let count = end.write(left, left.len() as u64);
            *left = &left[count as usize..];
            if left.is_empty() && (index == 0 || end.connection.is_finished()) {
                end.connection.close();
            }
            assert!(end.connection.stats().window <= 1 << 30);
        }
        steps += 1;
        assert!(steps < 1_000_000, "no end at {:?}: {:#?}", pair.now, pair.ends);
        if !pair.step() {
            return pair;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn all_bytes_arrive_as_they_were_sent_and_both_ends_close(
        configs in [config(), config()],
        link in link(),
        seed in any::<u64>(),
        there in 0u64..400_000,
        back in prop_oneof![Just(0u64), 0u64..50_000],
    ) {
        let streams = [stream(seed, there, 4), stream(!seed, back, 2)];
        let pair = transfer(configs, link, seed, &streams);
        let [to_client, to_server] = pair.kept.as_ref().unwrap();
        prop_assert!((to_server, to_client) == (&streams[0], &streams[1]), "other bytes");
        let [Some(client), Some(server)] = pair.ends else { panic!("never opened") };
        let left = [&client, &server].map(|end| end.memory() - end.connection.memory());
        prop_assert_eq!(left, [size_of::<Socket>() - size_of::<Connection>(); 2]);
        let (client, server) = (client.connection, server.connection);
        prop_assert_eq!((server.received(), client.received()), (there, back));
        prop_assert_eq!((client.acknowledged(), server.acknowledged()), (there, back));
        prop_assert!(client.is_closed() && server.is_closed());
        prop_assert_eq!((client.failure(), server.failure()), (None, None));
    }
}

#[test]
fn the_same_seed_sends_the_same_segments() {
    let link = Link { lost: 30, held: 100, hold: Span::from_millis(1), ..crate::link::CLEAN };
    let streams = [stream(1, 1_000_000, 4), stream(2, 1000, 2)];
    let run = || transfer([Config::default(); 2], link, 7, &streams).trace;
    assert_eq!(run(), run());
}

#[test]
fn a_slow_reader_gets_every_byte_and_what_it_has_not_read_fills_the_window() {
    let config = Config { mss: 1000, receive_buffer: 10_000, ..Config::default() };
    let mut pair = Pair::established([config; 2], crate::link::CLEAN);
    pair.reading = false;
    let sent = stream(3, 60_000, 3);
    assert_eq!(pair.ends[0].as_mut().unwrap().write(&sent, 70_000), 70_000);
    let mut got = Vec::new();
    while got.len() < 70_000 {
        pair.run_for(Span::from_millis(400));
        let server = pair.ends[1].as_mut().unwrap();
        assert!(server.unread() <= 10_000 && server.memory() < 20_000);
        let wanted = server.unread() - server.unread() / 4;
        assert_eq!(server.read(wanted, &mut got), wanted);
    }
    assert!(got[..60_000] == sent && got[60_000..].iter().all(|&byte| byte == FILL));
    assert_eq!(pair.ends[1].as_mut().unwrap().skip(9), (0, 0));
}

#[test]
fn bytes_that_differ_are_counted_and_a_closed_stream_takes_no_more() {
    let mut pair = Pair::established([Config::default(); 2], crate::link::CLEAN);
    pair.reading = false;
    let client = pair.ends[0].as_mut().unwrap();
    assert_eq!(client.write(&[1, FILL, 2], 2000), 2000);
    client.connection.close();
    assert_eq!(client.write(&[3], 1), 0);
    pair.run_for(Span::from_millis(100));
    let server = pair.ends[1].as_mut().unwrap();
    assert_eq!((server.skip(2), server.skip(5000), server.unread()), ((2, 1), (1998, 1), 0));
}
