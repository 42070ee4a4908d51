//! Segments that no correct TCP sends.

use crate::link::{CLEAN, FIRST, Pair};
use axon_tcp::{
    Algorithm, Config, Connection, Flags, Mark, Options, Sacks, Segment, Seq, Socket, parse,
};
use axon_wire::{Contents, Span, Time};
use proptest::collection::vec;
use proptest::prelude::*;

/// Draws a sequence number near those in use, or any.
fn seq() -> impl Strategy<Value = Seq> {
    let near = |base: Seq| (-70_000i32..70_000).prop_map(move |by| base + by as u32);
    prop_oneof![near(FIRST[0]), near(FIRST[1]), any::<u32>().prop_map(Seq)]
}

fn segment() -> impl Strategy<Value = Segment> {
    let bytes = prop_oneof![Just(0u32), 0u32..3000, any::<u32>()];
    let options =
        (any::<Option<u16>>(), any::<Option<u8>>(), any::<bool>(), vec((seq(), seq()), 0..5));
    let mark = prop_oneof![Just(Mark::None), Just(Mark::Capable), Just(Mark::Experienced)];
    let flags = prop_oneof![Just(Flags::ACK.0), any::<u8>()];
    (seq(), seq(), flags, any::<u16>(), bytes, options, mark).prop_map(
        |(seq, ack, flags, window, bytes, options, mark)| {
            let (mss, scale, sack_permitted, blocks) = options;
            let mut sacks = Sacks::default();
            blocks.into_iter().for_each(|block| sacks.push(block));
            let options = Options { mss, scale, sack_permitted, sacks };
            Segment { seq, ack, flags: Flags(flags), window, options, bytes, mark }
        },
    )
}

#[derive(Clone, Debug)]
enum Act {
    Segment(Segment),
    Wait(u64),
    Write(u64),
    Close,
    Read,
    Abort,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        12 => segment().prop_map(Act::Segment),
        3 => (0u64..3_000_000_000).prop_map(Act::Wait),
        2 => (0u64..100_000).prop_map(Act::Write),
        1 => Just(Act::Close),
        2 => Just(Act::Read),
        1 => prop::bool::weighted(0.05)
            .prop_map(|abort| if abort { Act::Abort } else { Act::Read }),
    ]
}

fn perform(end: &mut Connection, mut now: Time, acts: &[Act]) -> Result<(), TestCaseError> {
    for act in acts {
        match act {
            Act::Segment(segment) => drop(end.on_segment(now, segment)),
            Act::Wait(nanos) => now += Span::from_nanos(*nanos),
            Act::Write(bytes) => drop(end.write(*bytes)),
            Act::Close => drop(end.close()),
            Act::Read => drop(end.read(u64::MAX)),
            Act::Abort => end.abort(),
        }
        let mut burst = 0;
        while end.poll_transmit(now).is_some() {
            burst += 1;
            prop_assert!(burst < 50_000, "a burst without end");
        }
        prop_assert!(end.deadline().is_none_or(|at| at > now), "due again at once: {:?}", end);
        prop_assert!(end.memory() < 40_000, "{} bytes", end.memory());
        prop_assert!(end.stats().window <= 1 << 30);
    }
    Ok(())
}

/// Draws the place of a segment, counted from the next byte expected.
fn place() -> impl Strategy<Value = i32> {
    prop_oneof![3 => Just(0), 1 => -20_000i32..0, 2 => 0i32..120_000]
}

/// Draws the number of bytes that an application reads, mostly none.
fn read() -> impl Strategy<Value = u64> {
    prop_oneof![8 => Just(0u64), 1 => 0u64..4000, 1 => Just(u64::MAX)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_segments_are_no_panic_and_no_endless_burst(
        which in 0..4,
        algorithm in 0..3usize,
        acts in vec(act(), 1..60),
    ) {
        let congestion = [Algorithm::Reno, Algorithm::Cubic, Algorithm::Dctcp][algorithm];
        let config = Config { congestion, ecn: true, retries: 3, ..Config::default() };
        let (mut end, now) = match which {
            0 => (Connection::open(Time::ZERO, config, FIRST[0]), Time::ZERO),
            1 => {
                let syn = Segment { seq: FIRST[1], flags: Flags::SYN, ..Segment::default() };
                (Connection::accept(Time::ZERO, config, FIRST[0], &syn).unwrap(), Time::ZERO)
            }
            which => {
                let mut pair = Pair::established([config; 2], CLEAN);
                pair.client().write(50_000);
                if which == 3 {
                    pair.client().close();
                }
                pair.pump();
                let now = pair.now;
                (pair.ends[0].take().unwrap().connection, now)
            }
        };
        perform(&mut end, now, &acts)?;
    }

    /// Content in segments anywhere around the window of an end that reads at times.
    #[test]
    fn content_is_kept_within_the_window(
        scaled: bool,
        buffer in 3_000u32..100_000,
        acts in vec((place(), 1u32..3000, any::<bool>(), read()), 1..300),
    ) {
        let config = Config { receive_buffer: buffer, ..Config::default() };
        let scale = scaled.then_some(7);
        let options = Options { scale, sack_permitted: true, ..Options::default() };
        let syn = Segment { seq: FIRST[1], flags: Flags::SYN, options, ..Segment::default() };
        let accepted = Connection::accept(Time::ZERO, config, FIRST[0], &syn).unwrap();
        let mut end = Socket::new(accepted);
        while end.connection.poll_transmit(Time::ZERO).is_some() {}
        for (by, bytes, short, count) in acts {
            let bytes = if short { 1 } else { bytes };
            let seq = FIRST[1] + 1 + end.connection.received() as u32 + by as u32;
            let ack = FIRST[0] + 1;
            let segment = Segment { seq, ack, flags: Flags::ACK, bytes, ..Segment::default() };
            let payload = vec![1; bytes as usize];
            end.on_segment(Time::ZERO, &segment, Contents::from(&payload[..]));
            while end.connection.poll_transmit(Time::ZERO).is_some() {}
            let kept = end.memory() - end.connection.memory();
            // A window that is rounded up to the scale, the last span read in part, and what spans
            // need beside their bytes: vectors that grow have up to twice their length.
            let most = 2 * (buffer as usize + 128 + 4096) + 32 * 2048 + size_of::<Socket>();
            prop_assert!(kept <= most, "{kept} of {most} bytes");
            let mut read = Vec::new();
            let count = end.read(count, &mut read);
            prop_assert!(read.len() as u64 == count && read.iter().all(|&byte| byte == 1));
        }
    }

    #[test]
    fn random_bytes_are_no_panic(bytes in vec(any::<u8>(), 0..80), length in 0usize..2000) {
        let _ = parse(&bytes, length);
    }

    #[test]
    fn any_syn_is_answered_or_refused(syn in segment()) {
        let _ = Connection::refuse(&syn);
        let end = Connection::accept(Time::ZERO, Config::default(), FIRST[0], &syn);
        if let Some(mut end) = end {
            let answer = end.poll_transmit(Time::ZERO).unwrap();
            prop_assert_eq!(answer.ack, syn.seq + 1);
        }
    }
}
