//! Lines of a plot over time, from samples.
//!
//! Samples are grouped in bins, long enough for several frames where there is time. The rate of a
//! bin is the number of its bytes, never more than its link carries in that time ([`spread`]), and
//! is drawn at the middle of the bin. A bin without any sample is a gap.

use axon_plot::rates::{Counted, spread};
use axon_wire::Time;
use std::ops::Range;

/// Approximate number of points of a line.
const STEPS: usize = 100;
/// Approximate number of points of a line where the run is short.
const STEPS_MIN: usize = 20;
/// Minimum bytes that the slowest link in the plot carries in each bin: several frames, so that a
/// single one is no spike.
const BIN_BYTES_MIN: u64 = 16 * 1538;

/// One line: a counter, or a level, at every sample.
pub struct Line {
    /// Name in the legend.
    pub name: String,
    /// Rate of its link; zero if it is not known.
    pub rate_bps: u64,
    /// Time at which its counter counts a frame.
    pub counted: Counted,
    /// Bytes by sample; `None` where there is no counter.
    pub bytes: Vec<Option<u64>>,
}

impl Line {
    /// Returns the maximum level.
    pub(crate) fn most(&self) -> u64 {
        self.bytes.iter().flatten().max().copied().unwrap_or(0)
    }

    /// Returns the number of bytes counted during the samples.
    pub(crate) fn all(&self) -> u64 {
        let first = self.bytes.first().copied().flatten().unwrap_or(0);
        self.known(self.bytes.len() - 1).saturating_sub(first)
    }

    /// Returns the value of the counter at a sample; in a gap, the last one before it.
    fn known(&self, at: usize) -> u64 {
        self.bytes[..=at].iter().rev().flatten().next().copied().unwrap_or(0)
    }

    /// Returns the samples of a bin, without that at its start; `None` if there are none.
    fn seen(&self, bin: &Range<usize>) -> Option<impl Iterator<Item = u64>> {
        let mut seen = self.bytes[bin.start + 1..=bin.end].iter().copied().flatten().peekable();
        seen.peek().is_some().then_some(seen)
    }

    /// Returns megabits per second in each bin.
    pub(crate) fn rates(&self, times: &[Time], bins: &[Range<usize>]) -> Vec<(f64, f64)> {
        let counted = |bin: &Range<usize>| {
            let last = self.seen(bin)?.last()?;
            Some(last.checked_sub(self.known(bin.start))? as f64)
        };
        let mut bytes: Vec<Option<f64>> = bins.iter().map(counted).collect();
        let millis: Vec<f64> =
            bins.iter().map(|bin| since(times, bin.end) - since(times, bin.start)).collect();
        if self.rate_bps > 0 {
            let most = |millis: &f64| self.rate_bps as f64 * millis / 8e3;
            let most: Vec<f64> = millis.iter().map(most).collect();
            spread(&mut bytes, &most, self.counted);
        }
        let rate = |(bytes, millis): (Option<f64>, f64)| {
            bytes.map_or(f64::NAN, |bytes| bytes * 8.0 / 1e3 / millis)
        };
        let rates = bytes.into_iter().zip(millis).map(rate);
        bins.iter().map(|bin| middle(times, bin)).zip(rates).collect()
    }

    /// Returns the maximum level in each bin.
    pub(crate) fn levels(&self, times: &[Time], bins: &[Range<usize>]) -> Vec<(f64, f64)> {
        let level =
            |bin| self.seen(bin).and_then(Iterator::max).map_or(f64::NAN, |most| most as f64);
        bins.iter().map(|bin| (middle(times, bin), level(bin))).collect()
    }
}

/// Returns the first and the last sample of each bin, up to `active`, the last sample of interest,
/// or a little later. A bin is long enough for several frames on the slowest of the lines' links,
/// if the run is; the remainder after the last bin belongs to it.
pub(crate) fn bins(times: &[Time], active: usize, lines: &[Line]) -> Vec<Range<usize>> {
    let last = times.len() - 1;
    let slowest = lines.iter().map(|line| line.rate_bps).filter(|&rate| rate > 0).min();
    let interval = times[1].since(times[0]).as_nanos().max(1);
    let nanos = slowest.map_or(0, |rate| BIN_BYTES_MIN * 8_000_000_000 / rate);
    let frames = nanos.div_ceil(interval) as usize;
    let step = (active / STEPS).max(frames.min(active / STEPS_MIN)).clamp(1, last);
    let count = active.div_ceil(step).clamp(1, last / step);
    let end =
        |bin: usize| if bin + 1 == count { active.max(count * step) } else { (bin + 1) * step };
    (0..count).map(|bin| bin * step..end(bin)).collect()
}

/// Returns the middle of a bin, in milliseconds since the first sample.
fn middle(times: &[Time], bin: &Range<usize>) -> f64 {
    (since(times, bin.start) + since(times, bin.end)) / 2.0
}

/// Returns milliseconds since the first sample, which is when traffic began.
fn since(times: &[Time], at: usize) -> f64 {
    times[at].since(times[0]).as_nanos() as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    const GBPS: u64 = 1_000_000_000;

    fn line(counted: Counted, bytes: Vec<Option<u64>>) -> Line {
        Line { name: "a".into(), rate_bps: GBPS, counted, bytes }
    }

    fn times(count: u64, micros: u64) -> Vec<Time> {
        (0..count).map(|at| Time::from_nanos(5_000_000 + at * micros * 1_000)).collect()
    }

    /// Consecutive frames of 1,538 bytes on a link of 1 Gb/s, each 12.304 us long; with samples
    /// each microsecond, those at the end of a bin are counted in it as a whole.
    #[test]
    fn no_bin_has_more_than_its_link_carries_however_its_edges_lie() {
        let times = times(2_000, 1);
        for (counted, early) in [(Counted::AtStart, 1), (Counted::AtEnd, 0)] {
            let at = |micros: u64| Some((micros * 1_000 / 12_304 + early) * 1_538);
            let line = line(counted, (0..2_000).map(at).collect());
            let bins = bins(&times, 1_999, std::slice::from_ref(&line));
            let rates = line.rates(&times, &bins);
            let most = rates.iter().map(|rate| rate.1).fold(0.0, f64::max);
            assert!(most <= 1_000.0 + 1e-9, "{most} Mb/s on a link of 1 Gb/s");
            let mean = rates.iter().map(|rate| rate.1).sum::<f64>() / rates.len() as f64;
            assert!(mean > 980.0, "{mean}: nothing is cut off but at the ends");
        }
    }

    #[test]
    fn a_stream_that_gets_what_was_held_back_is_not_above_the_line_rate() {
        let times = times(1_001, 10);
        // Nothing for 4 ms after a loss, then everything at once.
        let bytes = |at: u64| match at {
            0..200 => at * 1_200,
            200..600 => 200 * 1_200,
            _ => at * 1_200,
        };
        let line = line(Counted::AtEnd, (0..1_001).map(|at| Some(bytes(at))).collect());
        let rates = line.rates(&times, &bins(&times, 1_000, std::slice::from_ref(&line)));
        assert!(rates.iter().all(|rate| rate.1 <= 1_000.0 + 1e-9), "{rates:?}");
        // 4 ms, of which the link needs 3.84 ms for the delayed bytes.
        assert!(rates.iter().any(|rate| rate.1 < 500.0), "what is left of it is seen: {rates:?}");
    }

    #[test]
    fn what_has_not_begun_is_a_gap_and_what_gets_nothing_a_zero() {
        let times = times(1_000, 100);
        let bytes = |at: u64| match at {
            0..300 | 900.. => None,
            300..600 => Some(0),
            _ => Some((at - 599) * 1_000),
        };
        let line = line(Counted::AtEnd, (0..1_000).map(bytes).collect());
        let bins = bins(&times, 999, std::slice::from_ref(&line));
        for points in [line.rates(&times, &bins), line.levels(&times, &bins)] {
            let at = |millis: f64| points.iter().find(|point| point.0 > millis).unwrap().1;
            assert!(at(10.0).is_nan() && at(95.0).is_nan(), "{points:?}");
            assert_eq!(at(45.0), 0.0);
            assert!(at(75.0) > 0.0);
        }
    }

    #[test]
    fn bins_follow_each_other_to_the_end_and_are_not_shorter_than_some_frames() {
        let slow = line(Counted::AtEnd, Vec::new());
        for (count, micros) in [(2, 1), (3, 100), (120, 1), (999, 7), (2_000, 1), (2_000, 1_000)] {
            let (times, last) = (times(count, micros), count as usize - 1);
            for active in [1, last / 3, last].into_iter().filter(|&at| at > 0) {
                let bins = bins(&times, active, std::slice::from_ref(&slow));
                assert_eq!(bins[0].start, 0);
                assert!(bins.windows(2).all(|pair| pair[0].end == pair[1].start), "{bins:?}");
                let end = bins[bins.len() - 1].end;
                assert!((active..=last).contains(&end), "{active}: {bins:?} of {last}");
                let long = |bin: &Range<usize>| (bin.end - bin.start) as u64 * micros >= 196;
                assert!(bins.iter().all(long) || bins.len() <= 2 * STEPS_MIN, "{bins:?}");
            }
        }
    }
}
