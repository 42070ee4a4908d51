//! Throughput in equal bins, and its variation.

use axon_sim::bare::Passed;
use axon_wire::{Bytes, Rate, Span, Time};

/// Consecutive bins of equal width.
#[derive(Clone, Copy, Debug)]
pub struct Bins {
    /// Start of the first bin.
    pub from: Time,
    /// Width of each bin.
    pub width: Span,
    /// Number of bins with values.
    pub count: usize,
}

impl Bins {
    /// Returns the bins of this width that fit between two times.
    pub(crate) fn between(from: Time, until: Time, width: Span) -> Bins {
        let count = (until.since(from).ticks() / width.ticks()) as usize;
        Bins { from, width, count }
    }

    /// Returns the throughput on a wire of this rate in each bin in Gb/s, overhead included. A
    /// frame across a boundary is shared between both bins.
    pub(crate) fn throughput(&self, passed: &[Passed], rate: Rate) -> Vec<f64> {
        let mut ticks = vec![0u64; self.count];
        let width = self.width.ticks();
        for &(at, bytes) in passed {
            let end = at + rate.time_for(Bytes(bytes));
            if end <= self.from {
                continue;
            }
            let mut start = at.max(self.from).since(self.from).ticks();
            let end = end.since(self.from).ticks();
            while start < end {
                let bin = start / width;
                let Some(taken) = ticks.get_mut(bin as usize) else { break };
                let next = end.min((bin + 1) * width);
                *taken += next - start;
                start = next;
            }
        }
        let gbps = rate.bits_per_second() as f64 / 1e9;
        ticks.into_iter().map(|taken| gbps * taken as f64 / width as f64).collect()
    }

    /// Returns the points of a plot: the middle of each bin in ms, and its figure.
    pub(crate) fn points(&self, figures: &[f64]) -> Vec<(f64, f64)> {
        let middle = |index: usize| {
            let at =
                self.from + self.width * index as u64 + Span::from_ticks(self.width.ticks() / 2);
            at.as_nanos() as f64 / 1e6
        };
        figures.iter().enumerate().map(|(index, &figure)| (middle(index), figure)).collect()
    }
}

/// Returns mean and standard deviation (of the whole, not of a sample).
pub(crate) fn mean_and_sd(figures: &[f64]) -> (f64, f64) {
    let count = figures.len().max(1) as f64;
    let mean = figures.iter().sum::<f64>() / count;
    let variance = figures.iter().map(|figure| (figure - mean).powi(2)).sum::<f64>() / count;
    (mean, variance.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_shared_between_the_bins_that_it_passes_in() {
        let rate = Rate::gbps(10);
        let at = Time::from_nanos;
        let bins = Bins::between(at(1_000), at(4_500), Span::from_nanos(1_000));
        assert_eq!(bins.count, 3);
        // 1,250 bytes take 1,000 ns.
        let passed = [(at(500), 1_250), (at(2_750), 1_250), (at(3_900), 1_250), (at(9_000), 1_250)];
        assert_eq!(bins.throughput(&passed, rate), [5.0, 2.5, 8.5]);
        assert_eq!(bins.points(&[5.0])[0], (0.0015, 5.0));
    }

    #[test]
    fn mean_and_deviation_are_of_the_whole() {
        assert_eq!(mean_and_sd(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]), (5.0, 2.0));
    }
}
