//! Noise on the machine, measured by a counting loop on all CPUs while no part of the run is
//! active.
//!
//! A loop that had to wait for its CPU, as reported by the kernel, shared that CPU. A loop that did
//! not wait but took longer than the best loop in the run had a slower CPU.

use crate::statistics::median;
use nix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::time::Instant;

/// Number of iterations of the loop. They take some tens of milliseconds.
const COUNT: u64 = 20_000_000;

/// Times of the loops in a run.
#[derive(Clone, Debug, Default)]
pub struct Calibration {
    loops: Vec<Counted>,
}

/// Time of one loop.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    /// Wall time in seconds.
    wall: f64,
    /// CPU time in seconds.
    cpu: f64,
}

impl Calibration {
    /// Runs the loop on every CPU that this process may use. The slowest loop counts.
    pub fn run(&mut self) {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let slowest = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..cpus).map(|_| scope.spawn(count)).collect();
            let loops = threads.into_iter().filter_map(|thread| thread.join().ok());
            loops.max_by(|a, b| a.wall.total_cmp(&b.wall))
        });
        self.loops.extend(slowest);
    }

    /// Returns the median time of all loops in multiples of a loop that has a CPU to itself, or
    /// `None` before the first loop.
    pub(crate) fn slowdown(&self) -> Option<f64> {
        let best = self.loops.iter().map(|one| one.cpu).min_by(f64::total_cmp)?;
        let times: Vec<f64> = self.loops.iter().map(|one| one.wall / best).collect();
        median(&times)
    }
}

fn count() -> Counted {
    let (start, cpu) = (Instant::now(), cpu_seconds());
    let mut state = 1u64;
    for _ in 0..COUNT {
        state = black_box(state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1));
    }
    Counted { wall: start.elapsed().as_secs_f64(), cpu: cpu_seconds() - cpu }
}

/// Returns the CPU time that this thread has used, in seconds.
fn cpu_seconds() -> f64 {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)
        .map_or(0.0, |time| time.tv_sec() as f64 + time.tv_nsec() as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_that_waited_for_its_cpu_is_slow_even_if_it_is_the_only_one() {
        assert_eq!(Calibration::default().slowdown(), None);
        let loops = vec![Counted { wall: 0.2, cpu: 0.1 }];
        assert_eq!(Calibration { loops }.slowdown(), Some(2.0));
    }

    #[test]
    fn the_slowdown_is_that_of_the_middle_against_the_best() {
        let of = [0.15, 0.1, 0.4].map(|wall| Counted { wall, cpu: wall });
        let slowdown = Calibration { loops: of.into() }.slowdown().unwrap();
        assert!((slowdown - 1.5).abs() < 1e-9, "{slowdown}");
    }
}
