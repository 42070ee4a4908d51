//! Whether the machine was quiet: a loop that does nothing but count, on all CPUs at once.
//!
//! A loop that takes longer than at its best has shared its CPU. The first of each thread sets what
//! a loop is; what counts later is its best time of the run.

use crate::statistics::median;
use std::hint::black_box;
use std::time::Instant;

/// Turns of the loop: some tens of milliseconds.
const TURNS: u64 = 20_000_000;

/// What loops have taken so far.
#[derive(Clone, Debug, Default)]
pub struct Calibration {
    /// In seconds: the slowest thread of each.
    times: Vec<f64>,
}

impl Calibration {
    /// Runs the loop once more, on every CPU that this process may use.
    pub fn run(&mut self) {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let slowest = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..cpus).map(|_| scope.spawn(turns)).collect();
            let times = threads.into_iter().filter_map(|thread| thread.join().ok());
            times.fold(0.0, f64::max)
        });
        self.times.push(slowest);
    }

    /// The median of all loops in multiples of the best; `None` before the first.
    pub fn slowdown(&self) -> Option<f64> {
        let best = self.times.iter().copied().min_by(f64::total_cmp)?;
        Some(median(&self.times)? / best)
    }
}

fn turns() -> f64 {
    let start = Instant::now();
    let mut state = 1u64;
    for _ in 0..TURNS {
        state = black_box(state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1));
    }
    start.elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowdown_is_that_of_the_middle_against_the_best() {
        assert_eq!(Calibration::default().slowdown(), None);
        let calibration = Calibration { times: vec![0.2, 0.1, 0.4] };
        assert_eq!(calibration.slowdown(), Some(2.0));
    }
}
