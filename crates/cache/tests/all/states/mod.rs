//! Ten million random operations on the payload caches of seven correct and faulty agents, compared
//! with a plain model (paper 003, section 3).
//!
//! There are two independent checkers. The model predicts the result of every operation and the
//! value of every counter. The fates of the payloads show that none is ever sent stale, sent twice
//! without having been kept, sent to another agent, or lost. `AXON_CACHE_SEED` runs one seed alone.

mod agent;
mod fates;
mod model;
mod payload;
mod world;

use axon_cache::CacheCounters;
use world::World;

/// Number of worlds, which run one after the other with caches of various sizes.
const RUNS: u64 = 400;
/// Number of operations in each world.
const STEPS: u64 = 25_000;
const SEED: u64 = 0x0003_0003;

/// Guard that prints the seed of a run that fails.
struct Run {
    seed: u64,
    step: u64,
}

impl Drop for Run {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("operation {} with AXON_CACHE_SEED={}", self.step, self.seed);
        }
    }
}

fn run(seed: u64, sum: &mut [(&'static str, u64)]) {
    let mut run = Run { seed, step: 0 };
    let mut world = World::new(seed);
    for step in 0..STEPS {
        run.step = step;
        world.step();
    }
    for (counters, passed) in world.finish() {
        for (total, (_, count)) in sum.iter_mut().zip(named(&counters, passed)) {
            total.1 += count;
        }
    }
}

/// Returns the event counters by name.
fn named(counters: &CacheCounters, passed: u64) -> [(&'static str, u64); 17] {
    [
        ("passed", passed),
        ("received", counters.received),
        ("brought", counters.brought),
        ("hits", counters.hits),
        ("misses", counters.misses),
        ("own", counters.own),
        ("sent_for_good", counters.sent_for_good),
        ("stale", counters.stale),
        ("forged", counters.forged),
        ("in_transfer", counters.in_transfer),
        ("released", counters.released),
        ("replaced", counters.replaced),
        ("expired", counters.expired),
        ("reset", counters.reset),
        ("evicted", counters.evicted),
        ("full", counters.full),
        ("send_full", counters.send_full),
    ]
}

#[test]
fn no_payload_is_sent_stale_or_twice_or_to_another_agent_or_lost() {
    let mut sum = named(&CacheCounters::default(), 0);
    if let Some(seed) = std::env::var("AXON_CACHE_SEED").ok().and_then(|seed| seed.parse().ok()) {
        run(seed, &mut sum);
        return;
    }
    for number in 0..RUNS {
        run(SEED + number, &mut sum);
    }
    println!("{} operations: {sum:?}", RUNS * STEPS);
    // If an event never occurs, its check proves nothing.
    for (name, count) in sum {
        assert!(count >= 10_000, "{name}: {count} times only in {} operations", RUNS * STEPS);
    }
}
