//! Priorities of one port: the traffic class of each, and the peer's view of it.

use axon_wire::priority::{PRIORITIES, Priority, PrioritySet, TrafficClass};

/// Map of the priorities of one port.
#[derive(Clone, Debug)]
pub(crate) struct ClassMap {
    prio_tc: [TrafficClass; PRIORITIES],
    /// The peer's view of each priority: hosts see no layers.
    known_as: [Priority; PRIORITIES],
}

impl ClassMap {
    /// Returns the map of a port to another switch, which sees every priority.
    pub(crate) fn new(prio_tc: [TrafficClass; PRIORITIES]) -> ClassMap {
        ClassMap { prio_tc, known_as: Priority::ALL }
    }

    /// Sets the traffic class of each priority as the peer knows it.
    pub(crate) fn set_prio_tc(&mut self, prio_tc: [TrafficClass; PRIORITIES]) {
        self.prio_tc = prio_tc;
    }

    /// Sets the peer's view of each priority; returns the former one.
    pub(crate) fn set_known_as(
        &mut self,
        known_as: [Priority; PRIORITIES],
    ) -> [Priority; PRIORITIES] {
        core::mem::replace(&mut self.known_as, known_as)
    }

    /// Returns the peer's view of a priority.
    #[inline]
    pub(crate) fn known(&self, priority: Priority) -> Priority {
        self.known_as[priority.index()]
    }

    /// Returns the priorities that the peer sees as this one: they are paused together.
    pub(crate) fn known_as(&self, known: Priority) -> impl Iterator<Item = Priority> + use<> {
        let known_as = self.known_as;
        Priority::ALL.into_iter().filter(move |of| known_as[of.index()] == known)
    }

    /// Returns these priorities and all that the peer sees as one of them, since they fill the same
    /// priority group.
    pub(crate) fn with_equals(&self, priorities: PrioritySet) -> PrioritySet {
        let known: PrioritySet = priorities.iter().map(|of| self.known(of)).collect();
        Priority::ALL.into_iter().filter(|&of| known.contains(self.known(of))).collect()
    }

    /// Returns the class of a priority.
    #[inline]
    pub(crate) fn class_of(&self, priority: Priority) -> TrafficClass {
        self.prio_tc[self.known(priority).index()]
    }

    /// Returns those of `priorities` that are in this class.
    pub(crate) fn in_class(&self, class: TrafficClass, priorities: PrioritySet) -> PrioritySet {
        priorities.iter().filter(|&priority| self.class_of(priority) == class).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_of_a_priority_have_its_class_and_are_paused_with_it() {
        let all = Priority::ALL;
        let mut map = ClassMap::new(TrafficClass::ALL);
        let mut known_as = all;
        known_as[5] = all[3];
        assert_eq!(map.set_known_as(known_as), all);
        let [class_3, class_5] = [3, 5].map(|number| TrafficClass::ALL[number]);
        assert_eq!((map.known(all[5]), map.class_of(all[5])), (all[3], class_3));
        let both: PrioritySet = [all[3], all[5]].into_iter().collect();
        assert_eq!(map.known_as(all[3]).collect::<PrioritySet>(), both);
        assert_eq!(map.with_equals(PrioritySet::only(all[5])), both);
        assert_eq!(map.in_class(class_3, PrioritySet::ALL), both);
        assert!(map.in_class(class_5, PrioritySet::ALL).is_empty());
    }
}
