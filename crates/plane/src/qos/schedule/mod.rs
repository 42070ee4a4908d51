//! Transmission selection of an egress port: choice of the next traffic class (IEEE 802.1Q clause
//! 8.6.8).
//!
//! Strict classes are served first, the one with the highest number before the others. The rest of
//! the bandwidth goes to the sharing classes: by ETS percentages or plain quanta (both by deficit
//! round robin), or by weighted fair queueing as the reference. The selection is work-conserving:
//! whenever a class is ready, one is chosen, and unused bandwidth goes to the other classes in
//! proportion to their weights.
//!
//! No frames are held here: the owner of the queues supplies the non-empty classes and the lengths
//! of their first frames.

mod class_set;
mod config;
mod drr;
mod weights;
mod wfq;

use alloc::boxed::Box;
use axon_wire::priority::PRIORITIES;
use axon_wire::{Time, TrafficClass};
use drr::Drr;
use weights::Adapt;
use wfq::Wfq;

pub use class_set::ClassSet;
pub use config::{
    Algorithm, FrameCost, Larger, QUANTUM_BYTES_MAX, ScheduleConfig, ScheduleFault, WFQ_WEIGHT_MAX,
    Weights,
};
pub use weights::{AWC_ONE, SIZE_BINS, awc_weight};

/// Quantum of one percent, in bytes. All ETS classes together send four maximum frames in a round,
/// which interleaves them finely and is 0.05 % of 10 ms at 10 Gb/s.
const ETS_PERCENT_BYTES: u32 = 64;
/// Quantum of an ETS class with 0 percent beside others of its kind, in bytes.
const ETS_SPARE_BYTES: u32 = 1600;

/// Transmission selection of one egress port.
#[derive(Clone, Debug)]
pub struct Schedule {
    strict: ClassSet,
    /// Classes with a guaranteed share of the bandwidth that strict ones leave.
    sharing: ClassSet,
    /// Classes served from the remainder: ETS with 0 percent.
    spare: ClassSet,
    cost: FrameCost,
    share: Share,
    adapt: Option<Box<Adapt>>,
}

#[derive(Clone, Debug)]
enum Share {
    Drr(Drr),
    Wfq(Wfq),
}

impl Schedule {
    /// Returns a schedule in which no class has sent anything yet.
    ///
    /// # Errors
    /// A fault in the configuration.
    pub fn new(config: &ScheduleConfig) -> Result<Schedule, ScheduleFault> {
        config.check()?;
        let [mut strict, mut sharing, mut spare] = [ClassSet::EMPTY; 3];
        // Weights of nonexistent classes are not used.
        let mut weights = [1; PRIORITIES];
        let mut is_wfq = false;
        for (class, &algorithm) in TrafficClass::ALL.into_iter().zip(&config.classes) {
            let (set, weight) = match algorithm {
                Algorithm::Strict => (&mut strict, 1),
                Algorithm::Ets { percent: 0 } => (&mut spare, ETS_SPARE_BYTES),
                Algorithm::Ets { percent } => {
                    (&mut sharing, u32::from(percent) * ETS_PERCENT_BYTES)
                }
                Algorithm::Drr { quantum_bytes } => (&mut sharing, quantum_bytes),
                Algorithm::Wfq { weight } => (&mut sharing, weight),
            };
            set.insert(class);
            weights[class.index()] = weight;
            is_wfq |= matches!(algorithm, Algorithm::Wfq { .. });
        }
        let share = match is_wfq {
            true => Share::Wfq(Wfq::new(weights)),
            false => Share::Drr(Drr::new(weights)),
        };
        let adapt = Adapt::new(config.weights, weights, sharing).map(Box::new);
        Ok(Schedule { strict, sharing, spare, cost: config.cost, share, adapt })
    }

    /// Returns the class whose first frame is to be sent now, or `None` if none may send.
    ///
    /// `waiting` are the classes that have a frame, `paused` those that must not send (PFC);
    /// `head_bytes` returns the length of a waiting class's first frame, and may be called several
    /// times. Classes that are not configured are never chosen.
    ///
    /// Call it whenever the wire is free, even when nothing is queued: a class that is empty at
    /// that time starts afresh, while one that is only paused keeps less than a frame.
    #[inline]
    pub fn next(
        &mut self,
        waiting: ClassSet,
        paused: ClassSet,
        head_bytes: impl Fn(TrafficClass) -> u32,
    ) -> Option<TrafficClass> {
        let ready = waiting.difference(paused);
        if let Some(adapt) = &mut self.adapt {
            adapt.note_ready(ready);
        }
        match &mut self.share {
            Share::Drr(drr) => drr.note_empty(ClassSet::ALL.difference(waiting)),
            Share::Wfq(wfq) => wfq.note_idle(ClassSet::ALL.difference(ready)),
        }
        if let Some(class) = ready.intersection(self.strict).highest() {
            return Some(class);
        }
        let mut sharing = ready.intersection(self.sharing);
        if sharing.is_empty() {
            sharing = ready.intersection(self.spare);
            if sharing.is_empty() {
                return None;
            }
        }
        let cost = |class| self.cost.of(head_bytes(class));
        Some(match &mut self.share {
            Share::Drr(drr) => drr.next(sharing, cost),
            Share::Wfq(wfq) => wfq.next(sharing, cost),
        })
    }

    /// Charges a sent frame of this many bytes to its class, if that is a sharing class.
    #[inline]
    pub fn sent(&mut self, class: TrafficClass, bytes: u32) {
        if !self.sharing.union(self.spare).contains(class) {
            return;
        }
        let cost = self.cost.of(bytes);
        match &mut self.share {
            Share::Drr(drr) => drr.sent(class, cost),
            Share::Wfq(wfq) => wfq.sent(class, cost),
        }
        if let Some(adapt) = &mut self.adapt {
            adapt.count(class, bytes, cost);
        }
    }

    /// Recomputes the weights if a window of [`Weights`] has ended. The first call begins the first
    /// window. Early and repeated calls are harmless; a late one ends a longer window.
    pub fn adapt(&mut self, now: Time) {
        if let (Some(adapt), Share::Drr(drr)) = (&mut self.adapt, &mut self.share) {
            adapt.run(now, drr);
        }
    }

    /// Returns the time of the next call of [`Schedule::adapt`]; `None` before its first call, and
    /// for fixed weights.
    pub fn deadline(&self) -> Option<Time> {
        self.adapt.as_ref().and_then(|adapt| adapt.deadline())
    }

    /// Returns the current quantum of a class in bytes; `None` if it has none.
    #[cfg(test)]
    pub(crate) fn quantum_bytes(&self, class: TrafficClass) -> Option<u32> {
        match &self.share {
            Share::Drr(drr) if self.sharing.union(self.spare).contains(class) => {
                Some(drr.quanta()[class.index()])
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn ets(percent: u8) -> Algorithm {
        Algorithm::Ets { percent }
    }

    /// Returns the classes of the next `frames` frames of 1000 bytes, while `ready` always are.
    fn order(schedule: &mut Schedule, ready: u8, frames: usize) -> Vec<u8> {
        let mut next = || {
            let class = schedule.next(ClassSet::from_bits(ready), ClassSet::EMPTY, |_| 1000)?;
            schedule.sent(class, 1000);
            Some(class.value())
        };
        (0..frames).map_while(|_| next()).collect()
    }

    #[test]
    fn strict_classes_send_first_and_the_highest_before_the_others() {
        let config = ScheduleConfig::of([Algorithm::Strict, ets(100), Algorithm::Strict]);
        let mut schedule = Schedule::new(&config).unwrap();
        assert_eq!(order(&mut schedule, 0b111, 3), [2, 2, 2]);
        assert_eq!(order(&mut schedule, 0b011, 2), [0, 0]);
        assert_eq!(order(&mut schedule, 0b010, 2), [1, 1]);
    }

    #[test]
    fn classes_without_a_percentage_get_what_others_leave_in_equal_shares() {
        let mut schedule = Schedule::new(&ScheduleConfig::of([ets(0), ets(100), ets(0)])).unwrap();
        assert_eq!(order(&mut schedule, 0b111, 4), [1; 4]);
        let shared = order(&mut schedule, 0b101, 1600);
        let of_first = shared.iter().filter(|&&class| class == 0).count();
        assert!((799..=801).contains(&of_first), "{of_first}");
    }

    #[test]
    fn paused_and_unknown_classes_are_never_chosen() {
        let mut schedule = Schedule::new(&ScheduleConfig::of([ets(50), ets(50)])).unwrap();
        let waiting = ClassSet::ALL;
        for paused in 0..=u8::MAX {
            let chosen = schedule.next(waiting, ClassSet::from_bits(paused), |_| 1000);
            assert_eq!(chosen.is_some(), paused & 3 != 3);
            if let Some(class) = chosen {
                assert!(class.value() < 2 && paused & 1 << class.value() == 0);
                schedule.sent(class, 1000);
            }
        }
        schedule.sent(TrafficClass::MAX, 1000);
        assert_eq!(order(&mut schedule, 0, 1), []);
    }

    #[test]
    fn a_class_that_is_only_paused_keeps_what_is_less_than_a_frame() {
        let half = Algorithm::Drr { quantum_bytes: 500 };
        let config = ScheduleConfig { cost: FrameCost::FRAME, ..ScheduleConfig::of([half; 2]) };
        let next = |schedule: &mut Schedule, waiting: u8, paused: u8| {
            let [waiting, paused] = [waiting, paused].map(ClassSet::from_bits);
            let class = schedule.next(waiting, paused, |class| [800, 500][class.index()]).unwrap();
            schedule.sent(class, [800, 500][class.index()]);
            class.value()
        };
        // Class 0 gets 500 of the 800 that it needs, and class 1 sends. The next round is enough
        // for class 0 if it was paused meanwhile, but not if it was empty.
        for (waiting, paused, after) in [(0b11, 0b01, 0), (0b10, 0, 1)] {
            let mut schedule = Schedule::new(&config).unwrap();
            assert_eq!(next(&mut schedule, 0b11, 0), 1);
            assert_eq!(next(&mut schedule, waiting, paused), 1);
            assert_eq!(next(&mut schedule, 0b11, 0), after);
        }
    }

    #[test]
    fn a_paused_class_has_no_claim_in_fair_queueing_either() {
        let config = ScheduleConfig::of([Algorithm::Wfq { weight: 1 }; 2]);
        let mut schedule = Schedule::new(&config).unwrap();
        order(&mut schedule, 0b11, 10);
        for _ in 0..1000 {
            let (all, paused) = (ClassSet::from_bits(0b11), ClassSet::from_bits(0b10));
            assert_eq!(schedule.next(all, paused, |_| 1000), Some(TrafficClass::ZERO));
            schedule.sent(TrafficClass::ZERO, 1000);
        }
        let after = order(&mut schedule, 0b11, 10);
        assert_eq!(after.iter().filter(|&&class| class == 1).count(), 5, "{after:?}");
    }

    #[test]
    fn only_classes_with_a_quantum_show_one() {
        let schedule = Schedule::new(&ScheduleConfig::of([Algorithm::Strict, ets(100)])).unwrap();
        let quanta = [0, 1, 2].map(|class| schedule.quantum_bytes(TrafficClass::ALL[class]));
        assert_eq!(quanta, [None, Some(6400), None]);
        assert_eq!(schedule.deadline(), None);
        let wfq = ScheduleConfig::of([Algorithm::Wfq { weight: 1 }]);
        assert_eq!(Schedule::new(&wfq).unwrap().quantum_bytes(TrafficClass::ZERO), None);
    }
}
