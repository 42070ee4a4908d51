//! Adaptive quanta, which give classes of short frames their share although the scheduler charges
//! each frame for its gap and preamble.

use super::class_set::ClassSet;
use super::config::{Larger, QUANTUM_BYTES_MAX, Weights};
use super::drr::Drr;
use axon_wire::priority::PRIORITIES;
use axon_wire::{Span, Time, TrafficClass};

/// Upper limits of the size bins of paper 002 §6.3, in bytes with FCS: up to 68, 69 to 128, 129 to
/// 256, 257 to 512, 513 to 1024. A sixth bin counts larger frames.
pub const SIZE_BINS: [u32; 5] = [68, 128, 256, 512, 1024];
/// Unit of [`awc_weight`]: hundred-millionths, in which both formulas are exact.
pub const AWC_ONE: u64 = 100_000_000;
/// Limit in bytes between formulas 6.1 and 6.2.
const PIVOT_BYTES: u32 = 146;
/// The largest debt of a byte-fair class, in windows of its share.
const DEBT_WINDOWS_MAX: i128 = 8;
/// Fractional bits of a cost per byte.
const RATIO_BITS: u32 = 32;
/// Fractional bits of the bytes per unit of base.
const PART_BITS: u32 = 24;

/// Returns the weight of a queue of frames of this size (FCS included) relative to one of maximum
/// frames, in units of 1/[`AWC_ONE`]: `2.276 - 0.008 x` up to 146 bytes (paper 002 formula 6.1),
/// `1.106 - 0.00008555 x` above (6.2), and 0 where that is negative.
pub const fn awc_weight(frame_bytes: u32) -> u64 {
    let x = frame_bytes as u64;
    if frame_bytes <= PIVOT_BYTES {
        227_600_000 - 800_000 * x
    } else {
        110_600_000_u64.saturating_sub(8555 * x)
    }
}

/// Counters of a class in this window.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    /// Frames by size; the last bin is for frames larger than [`SIZE_BINS`].
    frames: [u64; SIZE_BINS.len() + 1],
    /// Sum of the sizes.
    bytes: u64,
    /// Sum of the costs charged.
    cost: u64,
}

impl Tally {
    /// Returns the sum of algorithm 1: each bin's weight by its fraction of the frames, in units of
    /// 1/[`AWC_ONE`], as numerator and denominator.
    ///
    /// A bin's frames count as frames of its largest size: those are the sizes for which the paper
    /// has measured weights. `None` if there were no frames.
    fn awc_weight(&self, larger: Larger) -> Option<(u128, u128)> {
        let largest = match larger {
            Larger::One => AWC_ONE,
            Larger::Formula { frame_bytes } => awc_weight(u32::from(frame_bytes)),
        };
        let weights = SIZE_BINS.map(awc_weight).into_iter().chain([largest]);
        let weighed = weights.zip(self.frames);
        let sum = weighed.map(|(weight, frames)| u128::from(weight) * u128::from(frames)).sum();
        let frames = self.frames.iter().map(|&frames| u128::from(frames)).sum();
        (frames > 0).then_some((sum, frames))
    }
}

/// Recomputes the quanta at the end of each window.
///
/// *DRR-AWC* (paper 002 algorithm 1) counts the frames of each class by size for a window. Then a
/// class's quantum is its configured one (the paper's maximum frame size) times the average weight
/// of its frames. The weights are fitted to one switch; so classes get equal bytes as far as this
/// switch charges for frames as that one did, and as far as sizes are close to the upper limits of
/// the bins. A class without frames keeps its quantum.
///
/// *Byte-fair* needs no formula, since it counts both bytes and costs. In the long run DRR gives
/// class `i` a cost in proportion to its quantum, so it sends `quantum * bytes / cost`. With
/// `quantum = base * cost / bytes` over the last window, all send in proportion to their bases at
/// once if the mix of sizes does not change. The remaining error (a changed mix; quanta in whole
/// bytes; a window ending within a round) is a debt in bytes, kept from window to window while a
/// class always has a frame and is not paused, and repaid in the next one: the ratios give the
/// bytes `target` that the class will be due there, and its quantum is scaled by `(target + debt) /
/// target`. So debts do not persist: if the ratio of cost to bytes was `1 + d` times the next one,
/// the debt is `d` parts of a window. Debts do not accumulate for any sizes; over `n` windows
/// shares are off by some `d / n`, and by only a few frames while the mix is constant. A class
/// gains or loses at most half a window's share in one window, so a large debt takes several; debt
/// above [`DEBT_WINDOWS_MAX`] is cancelled. A class that was empty or paused has no debt and no
/// claim.
#[derive(Clone, Debug)]
pub(super) struct Adapt {
    rule: Weights,
    window_ends: Option<Time>,
    /// Configured quanta.
    base: [u32; PRIORITIES],
    /// Classes with a guaranteed share.
    members: ClassSet,
    tallies: [Tally; PRIORITIES],
    /// Bytes by which each class has received too little; negative for too much.
    debts: [i64; PRIORITIES],
    /// Classes that were ready whenever a frame was chosen in this window.
    steady: ClassSet,
}

impl Adapt {
    /// Returns `None` for fixed quanta.
    pub(crate) fn new(rule: Weights, base: [u32; PRIORITIES], members: ClassSet) -> Option<Adapt> {
        let tallies = [Tally::default(); PRIORITIES];
        let (debts, steady) = ([0; PRIORITIES], ClassSet::ALL);
        let adapt = Adapt { rule, window_ends: None, base, members, tallies, debts, steady };
        (rule != Weights::Fixed).then_some(adapt)
    }

    const fn window(&self) -> Span {
        match self.rule {
            Weights::Fixed => Span::ZERO,
            Weights::Awc { window, .. } | Weights::ByteFair { window, .. } => window,
        }
    }

    /// Returns the end of the window; `None` before the first.
    pub(crate) const fn deadline(&self) -> Option<Time> {
        self.window_ends
    }

    /// Records the classes that are ready now.
    pub(crate) const fn note_ready(&mut self, ready: ClassSet) {
        self.steady = self.steady.intersection(ready);
    }

    /// Counts a sent frame of a class.
    pub(crate) fn count(&mut self, class: TrafficClass, bytes: u32, cost: u32) {
        let tally = &mut self.tallies[class.index()];
        let size = match self.rule {
            Weights::Fixed => bytes,
            Weights::Awc { size_added_bytes: added, .. }
            | Weights::ByteFair { size_added_bytes: added, .. } => {
                bytes.saturating_add(u32::from(added))
            }
        };
        let bin = SIZE_BINS.iter().position(|&end| size <= end).unwrap_or(SIZE_BINS.len());
        tally.frames[bin] += 1;
        tally.bytes += u64::from(size);
        tally.cost += u64::from(cost);
    }

    /// Sets the quanta if the window has ended, and begins the next one. The first call begins the
    /// first.
    pub fn run(&mut self, now: Time, drr: &mut Drr) {
        if self.window_ends.is_some_and(|ends| now < ends) {
            return;
        }
        if self.window_ends.is_some() {
            match self.rule {
                Weights::Fixed => {}
                Weights::Awc { larger, .. } => self.set_by_sizes(larger, drr),
                Weights::ByteFair { .. } => self.set_by_bytes(drr),
            }
        }
        self.window_ends = Some(now + self.window());
        self.tallies = [Tally::default(); PRIORITIES];
        self.steady = ClassSet::ALL;
    }

    fn set_by_sizes(&self, larger: Larger, drr: &mut Drr) {
        for class in self.members.iter() {
            if let Some((sum, frames)) = self.tallies[class.index()].awc_weight(larger) {
                let base = u128::from(self.base[class.index()]);
                drr.set_quantum(class, rounded(base * sum, frames * u128::from(AWC_ONE)));
            }
        }
    }

    fn set_by_bytes(&mut self, drr: &mut Drr) {
        let had_frames = |&class: &TrafficClass| self.tallies[class.index()].bytes > 0;
        let counted: ClassSet = self.members.iter().filter(had_frames).collect();
        let steady = counted.intersection(self.steady);
        self.settle(steady);
        // Bytes of a class with a base of 1, if all got their due share and no debts were repaid,
        // in units of 2^-PART_BITS.
        let costs: i128 = steady.iter().map(|class| self.cost(class)).sum();
        let weighed: i128 = steady.iter().map(|class| self.base(class) * self.ratio(class)).sum();
        let part = (costs << (RATIO_BITS + PART_BITS)) / weighed.max(1);
        let repaid = |class| {
            let most = (part * self.base(class) / 2) >> PART_BITS;
            i128::from(self.debts[TrafficClass::index(class)]).clamp(-most, most)
        };
        // Repayment takes its part of the window, too.
        let repaying: i128 = steady.iter().map(|class| repaid(class) * self.ratio(class)).sum();
        let costs = (costs << RATIO_BITS) - repaying;
        let part = (costs << PART_BITS) / weighed.max(1);
        for class in counted.iter() {
            let target = ((part * self.base(class)) >> PART_BITS).max(1);
            let (due, target) = match steady.contains(class) {
                true => (target + repaid(class), target),
                false => (1, 1),
            };
            let quantum = self.base(class) * self.ratio(class) * due;
            drr.set_quantum(class, rounded(quantum as u128, (target << RATIO_BITS) as u128));
        }
    }

    /// Adds the errors of this window to the debts, and clears those of classes that were not
    /// steady.
    fn settle(&mut self, steady: ClassSet) {
        let bases: i128 = steady.iter().map(|class| self.base(class)).sum();
        let bytes = |class| i128::from(self.tallies[TrafficClass::index(class)].bytes);
        let debt = |class| i128::from(self.debts[TrafficClass::index(class)]);
        let earned: i128 = steady.iter().map(|class| bytes(class) - debt(class)).sum();
        let mut debts = [0; PRIORITIES];
        for class in steady.iter() {
            let due = earned * self.base(class) / bases;
            let most = due.max(0) * DEBT_WINDOWS_MAX;
            debts[class.index()] = (due - bytes(class) + debt(class)).clamp(-most, most) as i64;
        }
        self.debts = debts;
    }

    fn base(&self, class: TrafficClass) -> i128 {
        i128::from(self.base[class.index()])
    }

    fn cost(&self, class: TrafficClass) -> i128 {
        i128::from(self.tallies[class.index()].cost)
    }

    /// Returns the cost per byte of the class's frames, in 2^-RATIO_BITS. There must be some.
    fn ratio(&self, class: TrafficClass) -> i128 {
        (self.cost(class) << RATIO_BITS) / i128::from(self.tallies[class.index()].bytes)
    }
}

/// Returns the quotient rounded to the nearest valid quantum.
fn rounded(numerator: u128, denominator: u128) -> u32 {
    let nearest = (numerator + denominator / 2) / denominator;
    nearest.clamp(1, u128::from(QUANTUM_BYTES_MAX)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Span = Span::from_secs(60);

    fn awc(larger: Larger) -> (Adapt, Drr) {
        let base = [1522; PRIORITIES];
        let rule = Weights::Awc { window: MINUTE, size_added_bytes: 0, larger };
        let mut adapt = Adapt::new(rule, base, ClassSet::ALL).unwrap();
        let mut drr = Drr::new(base);
        adapt.run(Time::ZERO, &mut drr);
        (adapt, drr)
    }

    #[test]
    fn the_formulas_are_those_of_the_paper() {
        let weights = SIZE_BINS.map(awc_weight);
        assert_eq!(weights, [173_200_000, 125_200_000, 108_409_920, 106_219_840, 101_839_680]);
        assert_eq!((awc_weight(146), awc_weight(147)), (110_800_000, 109_342_415));
        assert_eq!(
            (awc_weight(0), awc_weight(1522), awc_weight(u32::MAX)),
            (227_600_000, 97_579_290, 0)
        );
    }

    #[test]
    fn a_window_of_frames_gives_the_weight_of_their_sizes() {
        let (mut adapt, mut drr) = awc(Larger::One);
        for (class, sizes) in
            [&[68][..], &[68, 256], &[60, 69, 128, 257, 513], &[1522, 9000, 68, 1025]]
                .iter()
                .enumerate()
        {
            sizes.iter().for_each(|&size| adapt.count(TrafficClass::ALL[class], size, size));
        }
        adapt.run(Time::ZERO + Span::from_millis(59_999), &mut drr);
        assert_eq!(drr.quanta(), &[1522; PRIORITIES], "the minute is not over");
        adapt.run(Time::ZERO + MINUTE, &mut drr);
        // 1522 times 1.732; 1.4080496; (1.732 + 2 * 1.252 + 1.0621984 + 1.0183968) / 5; 1.183.
        assert_eq!(drr.quanta(), &[2636, 2143, 1923, 1801, 1522, 1522, 1522, 1522]);
        // Counters are reset, and a class without frames keeps its weight.
        adapt.count(TrafficClass::ALL[1], 1024, 1024);
        adapt.run(Time::ZERO + MINUTE * 2, &mut drr);
        assert_eq!(drr.quanta()[..3], [2636, 1550, 1923]);
    }

    #[test]
    fn larger_frames_may_follow_the_formula_instead() {
        let (mut adapt, mut drr) = awc(Larger::Formula { frame_bytes: 1522 });
        adapt.count(TrafficClass::ALL[0], 5000, 5000);
        adapt.run(Time::ZERO + MINUTE, &mut drr);
        assert_eq!(drr.quanta()[0], 1485, "1522 times 0.9757929");
    }

    #[test]
    fn sizes_are_those_with_the_fcs() {
        let rule = Weights::Awc { window: MINUTE, size_added_bytes: 4, larger: Larger::One };
        let mut adapt = Adapt::new(rule, [1522; PRIORITIES], ClassSet::ALL).unwrap();
        let mut drr = Drr::new([1522; PRIORITIES]);
        adapt.run(Time::ZERO, &mut drr);
        adapt.count(TrafficClass::ALL[0], 64, 88);
        adapt.count(TrafficClass::ALL[1], 65, 89);
        adapt.run(Time::ZERO + MINUTE, &mut drr);
        assert_eq!(drr.quanta()[..2], [2636, 1906]);
    }

    fn byte_fair() -> (Adapt, Drr) {
        let base = [1000; PRIORITIES];
        let rule = Weights::ByteFair { window: Span::from_millis(5), size_added_bytes: 0 };
        let mut adapt = Adapt::new(rule, base, ClassSet::from_bits(7)).unwrap();
        let mut drr = Drr::new(base);
        adapt.run(Time::ZERO, &mut drr);
        (adapt, drr)
    }

    #[test]
    fn what_a_class_got_too_little_it_gets_in_the_next_window() {
        let (mut adapt, mut drr) = byte_fair();
        adapt.note_ready(ClassSet::from_bits(0b011));
        // Class 0 got 800 bytes for a cost of 1000, class 1 got 1000; class 2 was not always ready.
        (0..8).for_each(|_| adapt.count(TrafficClass::ALL[0], 100, 125));
        (0..2).for_each(|_| adapt.count(TrafficClass::ALL[1], 500, 500));
        adapt.count(TrafficClass::ALL[2], 100, 150);
        adapt.run(Time::from_nanos(5_000_000), &mut drr);
        // Each was due 900. The next window, of a cost of 2000 too, has room for 877 each and
        // the 100 that class 0 has from class 1: 977 * 1.25 + 777 = 1998.
        assert_eq!(drr.quanta()[..4], [1393, 886, 1500, 1000]);
        assert_eq!(adapt.debts[..3], [100, -100, 0]);
        // They send that; now there are no debts.
        (0..10).for_each(|_| adapt.count(TrafficClass::ALL[0], 100, 125));
        (0..2).for_each(|_| adapt.count(TrafficClass::ALL[1], 400, 400));
        adapt.run(Time::from_nanos(10_000_000), &mut drr);
        assert_eq!(drr.quanta()[..4], [1250, 1000, 1500, 1000]);
        assert_eq!(adapt.debts[..3], [0, 0, 0]);
    }

    #[test]
    fn a_class_that_was_paused_has_no_claim() {
        let (mut adapt, mut drr) = byte_fair();
        adapt.count(TrafficClass::ALL[0], 100, 100);
        adapt.count(TrafficClass::ALL[1], 900, 900);
        adapt.run(Time::from_nanos(5_000_000), &mut drr);
        assert_eq!(adapt.debts[..2], [400, -400]);
        assert_eq!(drr.quanta()[..2], [1500, 500], "no more than half a window at once");
        adapt.note_ready(ClassSet::from_bits(0b10));
        adapt.count(TrafficClass::ALL[1], 900, 900);
        adapt.run(Time::from_nanos(10_000_000), &mut drr);
        assert_eq!(adapt.debts[..2], [0, 0]);
        assert_eq!(drr.quanta()[1], 1000);
        // In a window without a pause it has a claim again.
        adapt.count(TrafficClass::ALL[0], 100, 100);
        adapt.count(TrafficClass::ALL[1], 300, 300);
        adapt.run(Time::from_nanos(15_000_000), &mut drr);
        assert_eq!(adapt.debts[..2], [100, -100]);
    }
}
