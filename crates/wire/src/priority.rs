//! Priorities, sets of them, and traffic classes: eight of each.
//!
//! A priority belongs to a frame (IEEE 802.1Q clause 6.9: three bits, the PCP of a tag). A port's
//! table maps priorities to traffic classes (clause 8.6.6), and each class has a queue. Priority
//! and traffic class are distinct types, so that they cannot be mixed up.

use core::fmt;
use serde::{Deserialize, Serialize};

/// Number of priorities, and maximum number of traffic classes of a port.
pub const PRIORITIES: usize = 8;

/// Priority of a frame, 0 to 7 (IEEE 802.1Q clause 6.9); 0 for untagged frames.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(try_from = "u8", into = "u8")]
pub struct Priority(u8);

/// Traffic class of a port, 0 to 7 (IEEE 802.1Q clause 8.6.6). Among strict classes the higher
/// number is served first.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(try_from = "u8", into = "u8")]
pub struct TrafficClass(u8);

/// Error: a number that is neither a priority nor a traffic class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}, where 0 to 7 was expected")]
pub struct NotInRange(pub u8);

/// Set of priorities: bit n is priority n, as on the wire (PFC's enable vector, the bitmaps of
/// DCBX).
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PrioritySet(u8);

impl Priority {
    /// The priority of untagged frames.
    pub const ZERO: Priority = Priority(0);
    /// The highest priority, recommended for network control.
    pub const MAX: Priority = Priority(7);
    /// All priorities, in ascending order.
    pub const ALL: [Priority; PRIORITIES] = {
        let mut all = [Priority(0); PRIORITIES];
        let mut index = 0;
        while index < PRIORITIES {
            all[index] = Priority(index as u8);
            index += 1;
        }
        all
    };

    /// Returns priority `value`, or `None` if it is above 7.
    pub const fn new(value: u8) -> Option<Priority> {
        if value < PRIORITIES as u8 { Some(Priority(value)) } else { None }
    }

    /// Returns the priority in the low three bits of `bits`. The other bits are ignored.
    pub const fn from_low_bits(bits: u8) -> Priority {
        Priority(bits & 7)
    }

    /// Returns the number, 0 to 7.
    pub const fn value(self) -> u8 {
        self.0
    }

    /// Returns the number as an index into an array of eight.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl TrafficClass {
    /// The lowest class.
    pub const ZERO: TrafficClass = TrafficClass(0);
    /// The highest class.
    pub const MAX: TrafficClass = TrafficClass(7);
    /// All traffic classes, in ascending order.
    pub const ALL: [TrafficClass; PRIORITIES] = {
        let mut all = [TrafficClass(0); PRIORITIES];
        let mut index = 0;
        while index < PRIORITIES {
            all[index] = TrafficClass(index as u8);
            index += 1;
        }
        all
    };

    /// Returns traffic class `value`, or `None` if it is above 7.
    pub const fn new(value: u8) -> Option<TrafficClass> {
        if value < PRIORITIES as u8 { Some(TrafficClass(value)) } else { None }
    }

    /// Returns the number, 0 to 7.
    pub const fn value(self) -> u8 {
        self.0
    }

    /// Returns the number as an index into an array of eight.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl PrioritySet {
    /// The empty set.
    pub const EMPTY: PrioritySet = PrioritySet(0);
    /// All eight priorities.
    pub const ALL: PrioritySet = PrioritySet(0xff);

    /// Returns the set that contains priority n if bit n of `bits` is set.
    pub const fn from_bits(bits: u8) -> PrioritySet {
        PrioritySet(bits)
    }

    /// Returns the set that contains only `priority`.
    pub const fn only(priority: Priority) -> PrioritySet {
        PrioritySet(1 << priority.0)
    }

    /// Returns the set as bits: bit n is set if it contains priority n.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Returns whether `priority` is in the set.
    pub const fn contains(self, priority: Priority) -> bool {
        self.0 >> priority.0 & 1 == 1
    }

    /// Adds `priority`.
    pub const fn insert(&mut self, priority: Priority) {
        self.0 |= 1 << priority.0;
    }

    /// Removes `priority`.
    pub const fn remove(&mut self, priority: Priority) {
        self.0 &= !(1 << priority.0);
    }

    /// Returns the priorities in this set, in `other`, or in both.
    pub const fn union(self, other: PrioritySet) -> PrioritySet {
        PrioritySet(self.0 | other.0)
    }

    /// Returns the priorities in both sets.
    pub const fn intersection(self, other: PrioritySet) -> PrioritySet {
        PrioritySet(self.0 & other.0)
    }

    /// Returns the priorities in this set but not in `other`.
    pub const fn difference(self, other: PrioritySet) -> PrioritySet {
        PrioritySet(self.0 & !other.0)
    }

    /// Returns whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the number of priorities in the set, 0 to 8.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Iterates over the priorities in ascending order.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = Priority> {
        Priority::ALL.into_iter().filter(move |&priority| self.contains(priority))
    }
}

impl FromIterator<Priority> for PrioritySet {
    fn from_iter<I: IntoIterator<Item = Priority>>(priorities: I) -> PrioritySet {
        let mut set = PrioritySet::EMPTY;
        for priority in priorities {
            set.insert(priority);
        }
        set
    }
}

impl TryFrom<u8> for Priority {
    type Error = NotInRange;
    fn try_from(value: u8) -> Result<Priority, NotInRange> {
        Priority::new(value).ok_or(NotInRange(value))
    }
}

impl From<Priority> for u8 {
    fn from(priority: Priority) -> u8 {
        priority.0
    }
}

impl TryFrom<u8> for TrafficClass {
    type Error = NotInRange;
    fn try_from(value: u8) -> Result<TrafficClass, NotInRange> {
        TrafficClass::new(value).ok_or(NotInRange(value))
    }
}

impl From<TrafficClass> for u8 {
    fn from(class: TrafficClass) -> u8 {
        class.0
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for TrafficClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for PrioritySet {
    /// Formats the set as `3,4` or `none`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("none");
        }
        for (index, priority) in self.iter().enumerate() {
            write!(f, "{}{priority}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl fmt::Debug for PrioritySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    #[test]
    fn there_are_eight_priorities_and_eight_classes() {
        for value in 0..=u8::MAX {
            let priority = Priority::new(value);
            assert_eq!(priority.is_some(), value < 8);
            assert_eq!(TrafficClass::new(value).is_some(), value < 8);
            assert_eq!(Priority::try_from(value).ok(), priority);
            assert_eq!(Priority::from_low_bits(value).value(), value % 8);
        }
        for (index, priority) in Priority::ALL.into_iter().enumerate() {
            assert_eq!((priority.index(), TrafficClass::ALL[index].index()), (index, index));
        }
    }

    #[test]
    fn a_set_holds_what_was_put_in_and_not_taken_out() {
        for bits in 0..=u8::MAX {
            let set = PrioritySet::from_bits(bits);
            assert_eq!(set.iter().collect::<PrioritySet>(), set);
            assert_eq!(set.len(), set.iter().count());
            for priority in Priority::ALL {
                let (mut with, mut without) = (set, set);
                with.insert(priority);
                without.remove(priority);
                assert!(with.contains(priority) && !without.contains(priority));
                assert_eq!(with.difference(without), PrioritySet::only(priority));
                assert_eq!(with.intersection(without), without);
                assert_eq!(without.union(PrioritySet::only(priority)), with);
            }
        }
    }

    #[test]
    fn a_set_is_written_as_a_list() {
        assert_eq!(PrioritySet::from_bits(0x18).to_string(), "3,4");
        assert_eq!(PrioritySet::EMPTY.to_string(), "none");
        let values: Vec<u8> = PrioritySet::from_bits(0x81).iter().map(Priority::value).collect();
        assert_eq!(values, [0, 7]);
    }
}
