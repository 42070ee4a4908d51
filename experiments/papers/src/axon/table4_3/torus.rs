//! Decision of the controller alone, on a torus of 1,000 switches with 10,000 hosts.

use crate::axon::planned::Planned;
use anyhow::{Context, Result};
use axon_controller::router::RouterKind;
use nix::time::{ClockId, clock_gettime};
use oorandom::Rand64;
use std::collections::BTreeSet;
use std::path::Path;

const FABRIC: &str = "name: torus\n\
    topology: { torus: { rows: 25, cols: 40, hosts_per_switch: 10 } }\n\
    dhcp: { subnet: 10.0.0.0/8 }\n\
    failover: { backup: false }\n";

/// Set-ups before the clock starts.
const WARM_UP: usize = 1000;
/// Number of separately timed parts, as other load on the machine evicts caches.
const PARTS: usize = 20;

/// Set-ups per second of CPU time on one core.
#[derive(Clone, Copy, Debug)]
pub struct Decisions {
    /// Rate in the best twentieth of the run.
    pub best: f64,
    /// Rate over the whole run.
    pub mean: f64,
}

/// Measures set-ups per second of CPU time on one core: an Axon-ARP request answered, both routes
/// chosen, indexed by link and encoded into messages. Different pairs, with the switches' distances
/// already computed.
///
/// # Errors
/// The fabric cannot be built, or a request is not answered.
pub(crate) fn decisions_per_second(seed: u64, count: usize) -> Result<Decisions> {
    let fabric = axon_fabric::parse(Path::new("torus.yaml"), FABRIC).context("the torus")?;
    let mut planned = Planned::new(&fabric, RouterKind::default().build(seed, 1), seed);
    let hosts = fabric.hosts.len() as u64;
    let mut dice = Rand64::new(u128::from(seed));
    let mut seen = BTreeSet::new();
    let mut host = || dice.rand_range(0..hosts) as usize;
    let pairs = std::iter::repeat_with(|| (host(), host()));
    let pairs = pairs.filter(|&(a, b)| a != b && seen.insert((a.min(b), a.max(b))));
    let pairs: Vec<(usize, usize)> = pairs.take(count + WARM_UP).collect();
    let (warm, timed) = pairs.split_at(WARM_UP);
    planned.ask(warm)?;
    let mut rates = Vec::new();
    for part in timed.chunks(count.div_ceil(PARTS).max(1)) {
        let started = core_seconds()?;
        planned.ask(part)?;
        rates.push(part.len() as f64 / (core_seconds()? - started));
    }
    let best = rates.iter().copied().fold(0.0, f64::max);
    let mean = rates.len() as f64 / rates.iter().map(|rate| 1.0 / rate).sum::<f64>();
    Ok(Decisions { best, mean })
}

/// Returns the CPU time of this thread, which excludes other load on the machine.
fn core_seconds() -> Result<f64> {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).context("the clock of a thread")?;
    Ok(time.tv_sec() as f64 + time.tv_nsec() as f64 * 1e-9)
}
