//! With any faults of the link, all bytes arrive once and both ends close.

use crate::link::{Link, Pair};
use axon_tcp::{Algorithm, Config};
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

/// Sends `there` bytes one way and `back` bytes the other, as buffers permit.
fn transfer(configs: [Config; 2], link: Link, seed: u64, bytes: [u64; 2]) -> Pair {
    let mut pair = Pair::new(configs, link, seed);
    pair.closing = false;
    let (mut left, mut steps) = (bytes, 0u32);
    loop {
        for (index, left) in left.iter_mut().enumerate() {
            let Some(end) = &mut pair.ends[index] else { continue };
            let now = end.room().min(*left);
            end.write(now);
            *left -= now;
            if *left == 0 && (index == 0 || end.is_finished()) {
                end.close();
            }
            assert!(end.stats().window <= 1 << 30);
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
    fn all_bytes_arrive_once_and_both_ends_close(
        configs in [config(), config()],
        link in link(),
        seed in any::<u64>(),
        there in 0u64..400_000,
        back in prop_oneof![Just(0u64), 0u64..50_000],
    ) {
        let pair = transfer(configs, link, seed, [there, back]);
        let [Some(client), Some(server)] = &pair.ends else { panic!("never opened") };
        prop_assert_eq!((server.received(), client.received()), (there, back));
        prop_assert_eq!((client.acknowledged(), server.acknowledged()), (there, back));
        prop_assert!(client.is_closed() && server.is_closed());
        prop_assert_eq!((client.failure(), server.failure()), (None, None));
    }
}

#[test]
fn the_same_seed_sends_the_same_segments() {
    let link = Link { lost: 30, held: 100, hold: Span::from_millis(1), ..crate::link::CLEAN };
    let run = || transfer([Config::default(); 2], link, 7, [1_000_000, 1000]).trace;
    assert_eq!(run(), run());
}
