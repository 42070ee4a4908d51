//! Weighted fair queueing among the sharing classes: the reference.

use super::class_set::ClassSet;
use axon_wire::TrafficClass;
use axon_wire::priority::PRIORITIES;

/// Fractional bits of a virtual time, in addition to the division by the weight.
const FRACTION_BITS: u32 = 32;

/// Self-clocked fair queueing (Golestani, INFOCOM 1994): weighted fair queueing whose virtual time
/// is taken from the frame on the wire.
///
/// Each class's next frame has a virtual finish time: the finish of the class's previous frame, or
/// the virtual time if that is later and the class was not ready, plus its cost divided by the
/// class's weight. The frame with the earliest finish is sent next, the lowest class's among
/// equals, and the virtual time becomes its finish.
///
/// All times are kept relative to the virtual time, so they stay small. A paused class is treated
/// as an empty one: it has no claim for the lost time.
#[derive(Clone, Debug)]
pub(super) struct Wfq {
    weights: [u32; PRIORITIES],
    /// Finish of each class's last frame, minus the virtual time: within a longest frame's `cost <<
    /// FRACTION_BITS` of it.
    ends: [i64; PRIORITIES],
    /// Classes that were not ready since they were last considered.
    fresh: ClassSet,
}

impl Wfq {
    pub(crate) const fn new(weights: [u32; PRIORITIES]) -> Wfq {
        Wfq { weights, ends: [0; PRIORITIES], fresh: ClassSet::ALL }
    }

    /// Records the classes that are empty or paused now.
    pub(crate) const fn note_idle(&mut self, idle: ClassSet) {
        self.fresh = self.fresh.union(idle);
    }

    /// Returns the class of the next frame among the ready classes, of which there must be one.
    pub(crate) fn next(
        &mut self,
        ready: ClassSet,
        cost: impl Fn(TrafficClass) -> u32,
    ) -> TrafficClass {
        for class in ready.intersection(self.fresh).iter() {
            self.ends[class.index()] = self.ends[class.index()].max(0);
        }
        self.fresh = self.fresh.difference(ready);
        let finish =
            |&class: &TrafficClass| self.ends[class.index()] + self.span(class, cost(class));
        ready.iter().min_by_key(finish).unwrap_or_default()
    }

    /// Charges a sent frame of this cost to its class.
    pub(crate) fn sent(&mut self, class: TrafficClass, cost: u32) {
        self.ends[class.index()] += self.span(class, cost);
        let now = self.ends[class.index()];
        for end in &mut self.ends {
            // A class that is not ready falls behind; it starts afresh when it is ready again.
            *end = (*end - now).max(-(1 << 60));
        }
    }

    /// Returns a cost in virtual time.
    fn span(&self, class: TrafficClass, cost: u32) -> i64 {
        (i64::from(cost) << FRACTION_BITS) / i64::from(self.weights[class.index()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn order(wfq: &mut Wfq, ready: u8, costs: [u32; PRIORITIES], frames: usize) -> Vec<u8> {
        let next = |_| {
            let class = wfq.next(ClassSet::from_bits(ready), |class| costs[class.index()]);
            wfq.sent(class, costs[class.index()]);
            class.value()
        };
        (0..frames).map(next).collect()
    }

    #[test]
    fn frames_go_in_the_order_of_their_virtual_finish() {
        let mut wfq = Wfq::new([2, 1, 1, 1, 1, 1, 1, 1]);
        // Finishes of class 0: 50, 100, 150, 200; of class 1: 100, 200; ties to class 0.
        assert_eq!(order(&mut wfq, 3, [100; PRIORITIES], 6), [0, 0, 1, 0, 0, 1]);
    }

    #[test]
    fn a_class_that_was_not_ready_has_no_claim_for_that_time() {
        let mut wfq = Wfq::new([1; PRIORITIES]);
        order(&mut wfq, 3, [100; PRIORITIES], 10);
        wfq.note_idle(ClassSet::from_bits(2));
        order(&mut wfq, 1, [100; PRIORITIES], 1000);
        let after = order(&mut wfq, 3, [100; PRIORITIES], 10);
        assert_eq!(after.iter().filter(|&&class| class == 1).count(), 5, "{after:?}");
    }

    proptest! {
        /// Golestani's bound: a longest frame of each, divided by their weights.
        #[test]
        fn service_is_in_proportion_within_a_frame_of_each(
            weights in prop::array::uniform2(1..100u32),
            costs in prop::collection::vec(prop::array::uniform2(64..9216u32), 1..40),
        ) {
            let mut wfq = Wfq::new([weights[0], weights[1], 1, 1, 1, 1, 1, 1]);
            let mut served = [0u64; 2];
            let mut count = [0; 2];
            let (mut least, mut most) = (0i128, 0i128);
            for _ in 0..1000 {
                let head = |class: TrafficClass| {
                    costs[count[class.index()] % costs.len()][class.index()]
                };
                let class = wfq.next(ClassSet::from_bits(3), head);
                let cost = head(class);
                wfq.sent(class, cost);
                let class = class.index();
                count[class] += 1;
                served[class] += u64::from(cost);
                let scaled =
                    |of: usize, by: usize| i128::from(served[of]) * i128::from(weights[by]);
                least = least.min(scaled(0, 1) - scaled(1, 0));
                most = most.max(scaled(0, 1) - scaled(1, 0));
            }
            let longest = |class: usize| costs.iter().map(|cost| cost[class]).max().unwrap();
            let bound = u64::from(longest(0)) * u64::from(weights[1])
                + u64::from(longest(1)) * u64::from(weights[0]);
            // Virtual times are truncated to 2^-32 of a byte.
            prop_assert!(most - least <= i128::from(bound) + 1);
        }
    }
}
