//! Deficit round robin among the sharing classes.

use super::class_set::ClassSet;
use axon_wire::TrafficClass;
use axon_wire::priority::PRIORITIES;

/// Deficit round robin (Shreedhar and Varghese, SIGCOMM 1995).
///
/// The scheduler serves the classes that have frames in rounds, in cyclic order. At its start in a
/// round, a class's deficit grows by its quantum. It sends while its next frame costs no more than
/// the deficit, which shrinks by the cost of each sent frame. Then the next class is served, and
/// the rest of the deficit, less than a frame, is kept for the next round. A class that was empty
/// begins with none.
///
/// So between two classes that always have frames, the service divided by the weight (the quantum
/// over the smallest quantum `q`) never differs by more than `q` and one frame of each, over any
/// interval.
///
/// The published form keeps a list of non-empty classes, to which one that fills is appended. Eight
/// classes fit a bitmap, in which the next one is found in an instruction or two; so they are
/// served in the order of their numbers, not in that of their filling.
///
/// Quanta may be smaller than a frame, which interleaves classes more finely. Many rounds may then
/// pass before any class may send; they are not iterated one by one, but all rounds in which no
/// class can send are granted at once.
///
/// A paused class is skipped. It keeps of its deficit what a class may keep between rounds, less
/// than a frame; so after the pause it sends no more than in any round.
#[derive(Clone, Debug)]
pub(super) struct Drr {
    quanta: [u32; PRIORITIES],
    /// Deficits, at most a quantum and a frame, which is below 2^26.
    deficits: [u32; PRIORITIES],
    /// The class currently served.
    turn: TrafficClass,
    /// Classes that were empty since they were last served: their deficits do not count.
    fresh: ClassSet,
}

impl Drr {
    pub(crate) const fn new(quanta: [u32; PRIORITIES]) -> Drr {
        let deficits = [0; PRIORITIES];
        Drr { quanta, deficits, turn: TrafficClass::MAX, fresh: ClassSet::ALL }
    }

    #[cfg(test)]
    pub(crate) const fn quanta(&self) -> &[u32; PRIORITIES] {
        &self.quanta
    }

    pub(crate) const fn set_quantum(&mut self, class: TrafficClass, quantum: u32) {
        self.quanta[class.index()] = quantum;
    }

    /// Records the classes that are empty now.
    #[inline]
    pub(crate) const fn note_empty(&mut self, empty: ClassSet) {
        self.fresh = self.fresh.union(empty);
    }

    /// Returns the class of the next frame among the ready classes, of which there must be one.
    #[inline]
    pub(crate) fn next(
        &mut self,
        ready: ClassSet,
        cost: impl Fn(TrafficClass) -> u32,
    ) -> TrafficClass {
        let going_on = ready.difference(self.fresh).contains(self.turn);
        if going_on && cost(self.turn) <= self.deficits[self.turn.index()] {
            return self.turn;
        }
        loop {
            if let Some(class) = self.round(ready, &cost) {
                return class;
            }
            self.skip_rounds(ready, &cost);
        }
    }

    /// Serves the classes in turn until one can send.
    #[inline]
    fn round(
        &mut self,
        ready: ClassSet,
        cost: &impl Fn(TrafficClass) -> u32,
    ) -> Option<TrafficClass> {
        for _ in 0..ready.len() {
            let class = ready.after(self.turn);
            let cost = cost(class);
            // The rest of a round cut short by a pause may exceed what a class may keep.
            let kept = match self.fresh.contains(class) {
                true => 0,
                false => self.deficits[class.index()].min(cost - 1),
            };
            self.fresh.remove(class);
            self.turn = class;
            self.deficits[class.index()] = kept + self.quanta[class.index()];
            if cost <= self.deficits[class.index()] {
                return Some(class);
            }
        }
        None
    }

    /// Grants all rounds at once in which surely no class can send; after that, one more round lets
    /// a class send.
    #[cold]
    fn skip_rounds(&mut self, ready: ClassSet, cost: &impl Fn(TrafficClass) -> u32) {
        let rounds = |class: TrafficClass| {
            let missing = cost(class).saturating_sub(self.deficits[class.index()]);
            missing.saturating_sub(1) / self.quanta[class.index()]
        };
        let skipped = ready.iter().map(rounds).min().unwrap_or(0);
        for class in ready.iter() {
            self.deficits[class.index()] += skipped * self.quanta[class.index()];
        }
    }

    /// Charges a sent frame of this cost to its class.
    #[inline]
    pub(crate) const fn sent(&mut self, class: TrafficClass, cost: u32) {
        self.deficits[class.index()] = self.deficits[class.index()].saturating_sub(cost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    /// The paper's algorithm, one class at a time, on queues of frame costs.
    struct Slow {
        queues: [VecDeque<u32>; PRIORITIES],
        quanta: [u32; PRIORITIES],
        deficits: [u64; PRIORITIES],
        turn: usize,
        in_turn: bool,
    }

    impl Slow {
        fn next(&mut self) -> Option<TrafficClass> {
            if self.queues.iter().all(VecDeque::is_empty) {
                return None;
            }
            loop {
                match self.queues[self.turn].front() {
                    None => self.deficits[self.turn] = 0,
                    Some(&cost) if self.in_turn && u64::from(cost) <= self.deficits[self.turn] => {
                        return TrafficClass::new(self.turn as u8);
                    }
                    Some(_) => {}
                }
                self.turn = (self.turn + 1) % PRIORITIES;
                self.deficits[self.turn] += u64::from(self.quanta[self.turn]);
                self.in_turn = true;
            }
        }

        fn send(&mut self, class: TrafficClass) {
            let class = class.index();
            let cost = self.queues[class].pop_front().unwrap();
            self.deficits[class] -= u64::from(cost);
            if self.queues[class].is_empty() {
                self.deficits[class] = 0;
                self.in_turn = self.turn != class;
            }
        }
    }

    fn waiting(queues: &[VecDeque<u32>; PRIORITIES]) -> ClassSet {
        TrafficClass::ALL.into_iter().filter(|class| !queues[class.index()].is_empty()).collect()
    }

    #[test]
    fn the_example_of_the_paper_comes_out() {
        // Costs 200, 750, 20 with a quantum of 500: 200 in the first round; 750 and 20 in the
        // second with a deficit of 800.
        let mut drr = Drr::new([500; PRIORITIES]);
        let mut queues = [const { VecDeque::new() }; PRIORITIES];
        queues[0].extend([200, 750, 20]);
        queues[1].extend([500; 3]);
        let mut order = Vec::new();
        loop {
            let ready = waiting(&queues);
            drr.note_empty(ClassSet::ALL.difference(ready));
            if ready.is_empty() {
                break;
            }
            let class = drr.next(ready, |class| queues[class.index()][0]);
            let cost = queues[class.index()].pop_front().unwrap();
            drr.sent(class, cost);
            order.push((class.value(), cost));
        }
        assert_eq!(order, [(0, 200), (1, 500), (0, 750), (0, 20), (1, 500), (1, 500)]);
    }

    #[test]
    fn a_class_paused_in_a_round_sends_no_more_than_in_a_round_after_the_pause() {
        let mut drr = Drr::new([1000; PRIORITIES]);
        let [first, second] = [TrafficClass::ALL[0], TrafficClass::ALL[1]];
        let both = ClassSet::from_bits(3);
        let cost = |_: TrafficClass| 100;
        for pauses in 0..50 {
            // Class 0 starts a round and is paused within it.
            while drr.next(both, cost) != first {
                drr.sent(second, 100);
            }
            drr.sent(first, 100);
            for _ in 0..pauses {
                assert_eq!(drr.next(ClassSet::from_bits(2), cost), second);
                drr.sent(second, 100);
            }
            while drr.next(both, cost) == second {
                drr.sent(second, 100);
            }
            let mut at_once = 0;
            while drr.next(both, cost) == first {
                drr.sent(first, 100);
                at_once += 100;
            }
            assert!(at_once < 1000 + 100, "{at_once} after {pauses} frames of the other");
        }
    }

    #[test]
    fn a_class_that_was_empty_has_saved_nothing() {
        let mut drr = Drr::new([1500; PRIORITIES]);
        let [first, second] = [TrafficClass::ALL[0], TrafficClass::ALL[1]];
        let both = ClassSet::from_bits(3);
        // Class 0 has 1500 and sends 100; then it is empty for a moment.
        assert_eq!(drr.next(both, |_| 100), first);
        drr.sent(first, 100);
        drr.note_empty(ClassSet::from_bits(1));
        assert_eq!(
            drr.next(both, |_| 1501),
            second,
            "it begins behind the other, without its 1400"
        );
    }

    #[test]
    fn a_deficit_that_is_just_enough_lets_a_frame_go() {
        // Both need three rounds for a frame, so class 0 goes first, and then they alternate;
        // with a round too many class 0 would keep 500 and soon be a frame ahead.
        let mut drr = Drr::new([500; PRIORITIES]);
        let both = ClassSet::from_bits(3);
        for frame in 0..20 {
            let class = drr.next(both, |_| 1500);
            assert_eq!(class.index(), frame % 2);
            assert_eq!(drr.deficits[class.index()], 1500);
            drr.sent(class, 1500);
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Fill(usize, Vec<u32>),
        Send(u8),
    }

    fn any_step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..PRIORITIES, prop::collection::vec(1..9100u32, 1..8))
                .prop_map(|(class, costs)| Step::Fill(class, costs)),
            (1..20u8).prop_map(Step::Send),
        ]
    }

    proptest! {
        /// The order is, frame by frame, that of the paper's algorithm, which iterates over the
        /// rounds one by one.
        #[test]
        fn the_order_is_that_of_the_published_algorithm(
            quanta in prop::array::uniform8(1..4000u32),
            steps in prop::collection::vec(any_step(), 1..60),
        ) {
            let mut drr = Drr::new(quanta);
            let mut slow = Slow {
                queues: Default::default(),
                quanta,
                deficits: [0; PRIORITIES],
                turn: PRIORITIES - 1,
                in_turn: false,
            };
            for step in steps {
                match step {
                    Step::Fill(class, costs) => slow.queues[class].extend(costs),
                    Step::Send(count) => for _ in 0..count {
                        let ready = waiting(&slow.queues);
                        drr.note_empty(ClassSet::ALL.difference(ready));
                        let Some(expected) = slow.next() else { break };
                        let class = drr.next(ready, |class| slow.queues[class.index()][0]);
                        prop_assert_eq!(class, expected);
                        drr.sent(class, slow.queues[class.index()][0]);
                        slow.send(class);
                        drr.note_empty(ClassSet::ALL.difference(waiting(&slow.queues)));
                    }
                }
            }
        }

        /// Between any two times, two classes that are always ready are served in proportion within
        /// a smallest quantum and a frame of each, divided by their weights.
        #[test]
        fn service_is_in_proportion_within_the_published_bound(
            quanta in prop::array::uniform2(1..3000u32),
            costs in prop::collection::vec(prop::array::uniform2(64..9216u32), 1..40),
        ) {
            let mut drr = Drr::new([quanta[0], quanta[1], 1, 1, 1, 1, 1, 1]);
            let mut served = [0u64; 2];
            let mut count = [0; 2];
            // Cross-multiplied by both quanta, to compare whole numbers.
            let mut least_apart = 0i128;
            let mut most_apart = 0i128;
            for _ in 0..2000 {
                let head = |class: TrafficClass| {
                    costs[count[class.index()] % costs.len()][class.index()]
                };
                let class = drr.next(ClassSet::from_bits(3), head);
                let cost = head(class);
                drr.sent(class, cost);
                let class = class.index();
                count[class] += 1;
                served[class] += u64::from(cost);
                let scaled = |of: usize, by: usize| i128::from(served[of]) * i128::from(quanta[by]);
                let apart = scaled(0, 1) - scaled(1, 0);
                least_apart = least_apart.min(apart);
                most_apart = most_apart.max(apart);
            }
            let longest = |class: usize| costs.iter().map(|cost| cost[class]).max().unwrap();
            let bound = u64::from(quanta[0]) * u64::from(quanta[1])
                + u64::from(longest(0)) * u64::from(quanta[1])
                + u64::from(longest(1)) * u64::from(quanta[0]);
            prop_assert!(most_apart - least_apart <= i128::from(bound));
        }
    }
}
