//! Statistics of a flow, in integers.

use axon_wire::{Bytes, Rate, Span, Time};

/// Bits of a value that a histogram keeps: each power of two has 64 steps.
const STEP_BITS: u32 = 6;
const STEPS: usize = 1 << STEP_BITS;

/// Histogram of time spans, with steps that grow with the span.
///
/// A span below 128 ticks has its own step. Above, each power of two is divided into 64 equal
/// steps, so a quantile is at most 1/64 (1.6 %) above the true one. Minimum, maximum and mean are
/// exact.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Counts of the steps from `first` to the last non-empty one.
    counts: Vec<u32>,
    /// First step of the power of two of the minimum.
    first: usize,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

impl Histogram {
    /// Adds one span.
    pub(crate) fn add(&mut self, span: Span) {
        let ticks = span.ticks();
        let step = step_of(ticks);
        if !(self.first..self.first + self.counts.len()).contains(&step) {
            self.make_room(step, step);
        }
        let count = &mut self.counts[step - self.first];
        *count = count.saturating_add(1);
        self.min = if self.count == 0 { ticks } else { self.min.min(ticks) };
        self.max = self.max.max(ticks);
        self.count += 1;
        self.sum += u128::from(ticks);
    }

    /// Extends the counts to include these steps.
    #[cold]
    fn make_room(&mut self, first: usize, last: usize) {
        let first = first / STEPS * STEPS;
        if self.counts.is_empty() {
            self.first = first;
        }
        if first < self.first {
            let missing = self.first - first;
            self.counts.splice(..0, std::iter::repeat_n(0, missing));
            self.first = first;
        }
        let length = self.counts.len().max(last + 1 - self.first);
        self.counts.resize(length, 0);
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Histogram) {
        if other.count == 0 {
            return;
        }
        self.make_room(other.first, other.first + other.counts.len() - 1);
        let mine = &mut self.counts[other.first - self.first..];
        for (mine, theirs) in mine.iter_mut().zip(&other.counts) {
            *mine = mine.saturating_add(*theirs);
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.sum += other.sum;
    }

    /// Returns the number of spans.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the sum of all spans, in ticks of 10 ps.
    pub fn sum_ticks(&self) -> u128 {
        self.sum
    }

    /// Returns the minimum.
    pub fn min(&self) -> Option<Span> {
        (self.count > 0).then_some(Span::from_ticks(self.min))
    }

    /// Returns the maximum.
    pub fn max(&self) -> Option<Span> {
        (self.count > 0).then_some(Span::from_ticks(self.max))
    }

    /// Returns the mean, rounded down to a tick.
    pub fn mean(&self) -> Option<Span> {
        let mean = self.sum.checked_div(u128::from(self.count))?;
        Some(Span::from_ticks(mean as u64))
    }

    /// Returns the span that `per_mille` of a thousand do not exceed: 500 is the median.
    pub fn quantile(&self, per_mille: u32) -> Option<Span> {
        if self.count == 0 {
            return None;
        }
        let wanted = (u128::from(self.count) * u128::from(per_mille)).div_ceil(1000).max(1);
        let mut seen = 0;
        for (step, &count) in (self.first..).zip(&self.counts) {
            seen += u128::from(count);
            if seen >= wanted {
                return Some(Span::from_ticks(top_of(step).clamp(self.min, self.max)));
            }
        }
        self.max()
    }
}

/// Returns the step of a number of ticks.
fn step_of(ticks: u64) -> usize {
    let bits = u64::BITS - ticks.leading_zeros();
    if bits <= STEP_BITS + 1 {
        return ticks as usize;
    }
    let shift = bits - STEP_BITS - 1;
    // The leading bit is set, so the mantissa lies in 64..128.
    let mantissa = (ticks >> shift) as usize;
    shift as usize * STEPS + mantissa
}

/// Returns the largest number of ticks of a step.
fn top_of(step: usize) -> u64 {
    if step < 2 * STEPS {
        return step as u64;
    }
    let shift = step / STEPS - 1;
    let mantissa = (step - shift * STEPS) as u128;
    let top = ((mantissa + 1) << shift) - 1;
    u64::try_from(top).unwrap_or(u64::MAX)
}

/// Statistics of the receiving end of a flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Number of datagrams, replayed frames, or reads from a byte stream.
    pub packets: u64,
    /// Payload bytes; frame bytes of a replay.
    pub bytes: Bytes,
    /// Time of the first arrival.
    pub first: Option<Time>,
    /// Time of the last arrival.
    pub last: Option<Time>,
    /// Number of datagrams that arrived after one sent later.
    pub reordered: u64,
    /// Number of bytes that differ from those sent; nonzero only through a bug.
    pub wrong_bytes: u64,
    /// One-way latency of datagrams with room for a time stamp (16 bytes).
    pub latency: Histogram,
    /// Number of the next datagram in order.
    pub(crate) next: u64,
}

impl Received {
    /// Counts an arrival.
    pub(crate) fn count(&mut self, now: Time, bytes: usize) {
        self.packets += 1;
        self.bytes += Bytes(bytes as u64);
        self.first.get_or_insert(now);
        self.last = Some(now);
    }

    /// Adds the statistics of another sink.
    pub fn merge(&mut self, other: &Received) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.first = self.first.into_iter().chain(other.first).min();
        self.last = self.last.max(other.last);
        self.reordered += other.reordered;
        self.wrong_bytes += other.wrong_bytes;
        self.latency.merge(&other.latency);
    }
}

/// Returns bytes per span as a rate, or `None` if the rate or the span is zero.
pub fn rate(bytes: Bytes, span: Span) -> Option<Rate> {
    let ticks = u128::from(span.ticks());
    let bits = u128::from(bytes.0) * 8 * u128::from(Span::from_secs(1).ticks());
    Rate::from_bits_per_second(u64::try_from(bits.checked_div(ticks)?).ok()?)
}

/// Statistics of an application at its own end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowStats {
    /// Datagrams sent, or writes to a byte stream.
    pub sent_packets: u64,
    /// Payload bytes sent; of a byte stream, passed to the stack.
    pub sent_bytes: Bytes,
    /// Retransmitted segments of a byte stream.
    pub retransmits: u64,
    /// Time of the first transmission.
    pub first_sent: Option<Time>,
    /// Time of the last transmission.
    pub last_sent: Option<Time>,
    /// Data received by the application: answers, or all arrivals at a sink.
    pub received: Received,
    /// Completed transfers, requests, transactions or rounds.
    pub completed: u64,
    /// Failed requests and connections.
    pub failed: u64,
    /// Duration of each completed item.
    pub times: Histogram,
    /// Time at which all work was complete.
    pub done: Option<Time>,
    /// Statistics of a file service's transactions.
    pub files: Option<FileStats>,
}

impl FlowStats {
    pub(crate) fn count_sent(&mut self, now: Time, bytes: usize) {
        self.sent_packets += 1;
        self.sent_bytes += Bytes(bytes as u64);
        self.first_sent.get_or_insert(now);
        self.last_sent = Some(now);
    }
}

/// Statistics of a file service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileStats {
    /// Files created, by transactions and before them.
    pub created: u64,
    /// Files deleted.
    pub deleted: u64,
    /// Files read.
    pub reads: u64,
    /// Files appended to.
    pub appends: u64,
    /// Bytes of files read.
    pub read_bytes: Bytes,
    /// Bytes of files written.
    pub written_bytes: Bytes,
    /// Start time of the transactions, after the pool was created.
    pub began: Option<Time>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_lies_in_its_step_and_steps_are_narrow() {
        let mut previous = 0;
        for ticks in (0..200_000u64).chain((40..64).map(|bit| (1 << bit) + 12_345)) {
            let step = step_of(ticks);
            assert!(step >= previous, "{ticks}");
            previous = step;
            let top = top_of(step);
            assert!(
                top >= ticks && top - ticks <= ticks / 64,
                "{ticks}: step {step} ends at {top}"
            );
            assert_eq!(step_of(top), step, "{ticks}");
        }
        assert_eq!(top_of(step_of(u64::MAX)), u64::MAX);
    }

    #[test]
    fn quantiles_are_those_of_the_sorted_list_to_within_a_step() {
        let mut histogram = Histogram::default();
        let mut all: Vec<u64> = (0..1000).map(|n| n * n * 37 + 5).collect();
        all.iter().rev().for_each(|&ticks| histogram.add(Span::from_ticks(ticks)));
        all.sort_unstable();
        for per_mille in [1, 250, 500, 990, 999, 1000] {
            let exact = all[per_mille as usize - 1];
            let found = histogram.quantile(per_mille).unwrap().ticks();
            assert!(found >= exact && found - exact <= exact / 64, "{per_mille}: {found}, {exact}");
        }
        assert_eq!(histogram.min(), Some(Span::from_ticks(5)));
        assert_eq!(histogram.max(), Some(Span::from_ticks(all[999])));
        let mean = all.iter().sum::<u64>() / 1000;
        assert_eq!(histogram.mean(), Some(Span::from_ticks(mean)));
        let mut twice = histogram.clone();
        twice.merge(&histogram);
        assert_eq!((twice.count(), twice.mean()), (2000, histogram.mean()));
        assert_eq!(Histogram::default().quantile(500), None);
    }

    #[test]
    fn goodput_is_bytes_over_time() {
        assert_eq!(rate(Bytes(125_000_000), Span::from_secs(1)), Some(Rate::gbps(1)));
        assert_eq!(rate(Bytes(1), Span::ZERO), None);
        assert_eq!(rate(Bytes(0), Span::from_secs(1)), None);
    }
}
