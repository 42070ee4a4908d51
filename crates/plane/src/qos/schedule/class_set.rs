//! Set of traffic classes as a bitmap.

use axon_wire::TrafficClass;
use axon_wire::priority::PRIORITIES;

/// Set of traffic classes: bit `n` is class `n`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClassSet(u8);

impl ClassSet {
    /// The empty set.
    pub const EMPTY: ClassSet = ClassSet(0);
    /// All eight classes.
    pub(crate) const ALL: ClassSet = ClassSet(u8::MAX);

    /// Returns the set that contains class `n` if bit `n` of `bits` is set.
    pub const fn from_bits(bits: u8) -> ClassSet {
        ClassSet(bits)
    }

    /// Returns the set of this one class.
    pub(crate) const fn only(class: TrafficClass) -> ClassSet {
        ClassSet(1 << class.value())
    }

    /// Returns whether `class` is in the set.
    pub const fn contains(self, class: TrafficClass) -> bool {
        self.0 & ClassSet::only(class).0 != 0
    }

    /// Adds `class`.
    pub const fn insert(&mut self, class: TrafficClass) {
        self.0 |= ClassSet::only(class).0;
    }

    /// Removes `class`.
    pub(crate) const fn remove(&mut self, class: TrafficClass) {
        self.0 &= !ClassSet::only(class).0;
    }

    /// Returns the classes in this set, in `other`, or in both.
    pub(crate) const fn union(self, other: ClassSet) -> ClassSet {
        ClassSet(self.0 | other.0)
    }

    /// Returns the classes in both sets.
    pub const fn intersection(self, other: ClassSet) -> ClassSet {
        ClassSet(self.0 & other.0)
    }

    /// Returns the classes in this set but not in `other`.
    pub const fn difference(self, other: ClassSet) -> ClassSet {
        ClassSet(self.0 & !other.0)
    }

    /// Returns whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the number of classes in the set, 0 to 8.
    pub(crate) const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Returns the highest class in the set.
    pub const fn highest(self) -> Option<TrafficClass> {
        match self.0.checked_ilog2() {
            Some(value) => TrafficClass::new(value as u8),
            None => None,
        }
    }

    /// Returns the next class after `class` in cyclic order, where class 0 follows class 7; `class`
    /// itself comes last. The set must not be empty.
    pub(super) const fn after(self, class: TrafficClass) -> TrafficClass {
        let start = class.value() as u32 + 1;
        let ahead = self.0.rotate_right(start).trailing_zeros();
        TrafficClass::ALL[(start + ahead) as usize % PRIORITIES]
    }

    /// Iterates over the classes in ascending order.
    pub(crate) fn iter(self) -> impl Iterator<Item = TrafficClass> {
        let mut left = self.0;
        core::iter::from_fn(move || {
            let value = left.trailing_zeros();
            left &= left.wrapping_sub(1);
            TrafficClass::new(value as u8)
        })
    }
}

impl FromIterator<TrafficClass> for ClassSet {
    fn from_iter<I: IntoIterator<Item = TrafficClass>>(classes: I) -> ClassSet {
        let mut set = ClassSet::EMPTY;
        for class in classes {
            set.insert(class);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_put_in_and_not_taken_out() {
        for bits in 0..=u8::MAX {
            let set = ClassSet::from_bits(bits);
            assert_eq!(set.iter().collect::<ClassSet>(), set);
            assert_eq!((set.len(), set.highest()), (set.iter().count(), set.iter().last()));
            for class in TrafficClass::ALL {
                let (mut with, mut without) = (set, set);
                with.insert(class);
                without.remove(class);
                assert!(with.contains(class) && !without.contains(class));
                assert_eq!(with.difference(without), ClassSet::only(class));
                assert_eq!(with.intersection(without), without);
                assert_eq!(without.union(ClassSet::only(class)), with);
            }
        }
    }

    #[test]
    fn the_next_class_is_found_around_the_end() {
        for bits in 1..=u8::MAX {
            let set = ClassSet::from_bits(bits);
            for class in TrafficClass::ALL {
                let mut ahead = TrafficClass::ALL.into_iter().cycle().skip(class.index() + 1);
                assert_eq!(Some(set.after(class)), ahead.find(|&at| set.contains(at)));
            }
        }
    }
}
