//! Equality of the pipeline and the reference interpreter.

use crate::twins::{Draw, Seen, Twins};
use axon_node::Drop;
use axon_pipeline::TableName;

/// Number of table configurations. Each keeps changing while frames arrive.
const CONFIGURATIONS: u64 = 1000;
const STEPS: u64 = 240;

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn byte(&mut self) -> u8 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed >> 56) as u8
    }
}

/// Prints the seed of a failure.
struct Seed(u64);

impl std::ops::Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}", self.0);
        }
    }
}

fn run(number: u64) -> Seen {
    let seed = Seed(number);
    let mut random = Random(seed.0 << 32);
    let mut bytes = || Some(random.byte());
    let mut draw = Draw(&mut bytes);
    let mut twins = Twins::new(&mut draw, 48).expect("random bytes do not end");
    for _ in 0..STEPS {
        twins.step(&mut draw).expect("random bytes do not end");
    }
    twins.finish()
}

fn add<K: Ord>(
    to: &mut std::collections::BTreeMap<K, u64>,
    from: std::collections::BTreeMap<K, u64>,
) {
    from.into_iter().for_each(|(key, count)| *to.entry(key).or_default() += count);
}

#[test]
fn the_pipeline_equals_the_reference_on_random_frames_and_a_hundred_thousand_transactions() {
    let mut all = Seen::default();
    for number in 0..CONFIGURATIONS {
        let seen = run(number);
        all.frames += seen.frames;
        all.committed += seen.committed;
        all.sent += seen.sent;
        all.to_cpu += seen.to_cpu;
        add(&mut all.refused, seen.refused);
        add(&mut all.dropped, seen.dropped);
        add(&mut all.met, seen.met);
    }
    println!(
        "{} frames, {} sent, {} to the control program, {} transactions; met {:?}, dropped {:?}, \
         refused {:?}",
        all.frames, all.sent, all.to_cpu, all.committed, all.met, all.dropped, all.refused
    );
    assert!(all.frames >= 200_000, "{}", all.frames);
    let refused: u64 = all.refused.values().sum();
    assert!(all.committed + refused >= 100_000, "{} and {refused}", all.committed);
    assert!(refused * 10 >= all.committed * 4, "{refused} of {} and these", all.committed);
    // The cases cover all kinds.
    for table in
        [TableName::Tcam, TableName::Mpls, TableName::Ipv4, TableName::Mac, TableName::Prefix]
    {
        assert!(all.met[&Some(table)] > 2000, "{table}: {:?}", all.met);
    }
    for reason in [
        Drop::Malformed,
        Drop::BadFcs,
        Drop::Oversized,
        Drop::PortDown,
        Drop::NoSuchPort,
        Drop::NoHeadroom,
        Drop::PuntLimit,
        Drop::MacControl,
        Drop::NoRoute,
        Drop::Filtered,
        Drop::Denied,
        Drop::TtlExpired,
    ] {
        assert!(all.dropped.get(&reason).is_some_and(|&count| count > 20), "{}", reason.name());
    }
    for reason in [
        "Key",
        "TooManyKeys",
        "NoSuchNumber",
        "Full",
        "NoSuchUdlk",
        "NoSuchInterface",
        "NoSuchGroup",
        "NoSuchTunnel",
        "NoSuchPort",
        "ValueBytes",
        "ValueOutsideMask",
        "InUse",
        "Contradiction",
        "Prefix",
        "Label",
        "Dscp",
        "Tunnel",
        "Route",
        "TwiceInGroup",
        "TooManyModifications",
        "Tables",
    ] {
        assert!(all.refused.get(reason).is_some_and(|&count| count > 3), "{reason}");
    }
}
