//! Size classes of blocks: four for each doubling, so that at most a fifth of a block is unused.

use std::alloc::Layout;

/// Alignment of blocks in bytes.
pub const ALIGN: usize = 16;
/// Maximum alignment; blocks of a larger alignment than [`ALIGN`] begin at multiples of their size.
pub const ALIGN_MAX: usize = 1 << 16;
/// Number of size classes.
pub const CLASSES: usize = 2 * AT_LEAST_ALIGNED;

/// Classes without a larger alignment, which precede those with one.
const AT_LEAST_ALIGNED: usize = 4 * usize::BITS as usize;

/// Size class of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// Number of the class, below [`CLASSES`].
    pub number: usize,
    /// Block size in bytes.
    pub bytes: usize,
    /// Block alignment in bytes.
    pub align: usize,
}

impl Class {
    /// Returns the smallest class that fits the layout; `None` if none does.
    pub fn of(layout: Layout) -> Option<Class> {
        let bytes = layout.size().max(layout.align()).max(ALIGN);
        if bytes > isize::MAX as usize / 2 || layout.align() > ALIGN_MAX {
            return None;
        }
        if layout.align() > ALIGN {
            let bytes = bytes.next_power_of_two();
            let number = AT_LEAST_ALIGNED + number(bytes);
            return Some(Class { number, bytes, align: bytes.min(ALIGN_MAX) });
        }
        let step = ((1 << bytes.ilog2()) / 4).max(ALIGN);
        let bytes = bytes.next_multiple_of(step);
        Some(Class { number: number(bytes), bytes, align: ALIGN })
    }
}

/// Numbers the sizes that are a power of two, and one to three quarters more.
fn number(bytes: usize) -> usize {
    let doubling = bytes.ilog2() as usize;
    4 * doubling + ((bytes >> (doubling - 2)) & 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(size: usize, align: usize) -> Option<Class> {
        Class::of(Layout::from_size_align(size, align).expect("a layout"))
    }

    #[test]
    fn every_size_fits_its_class_and_no_two_classes_have_one_number() {
        let mut sizes = std::collections::BTreeMap::new();
        for size in 1..100_000 {
            let class = class(size, 8).expect("a class");
            assert!(
                class.bytes >= size && class.bytes.is_multiple_of(ALIGN) && class.number < CLASSES
            );
            assert!(size <= 64 || (class.bytes - size) * 5 <= class.bytes, "{size}: {class:?}");
            let known = *sizes.entry(class.number).or_insert(class.bytes);
            assert_eq!(known, class.bytes, "of one number");
        }
        let bytes: Vec<usize> = sizes.values().copied().take(9).collect();
        assert_eq!(bytes, [16, 32, 48, 64, 80, 96, 112, 128, 160]);
    }

    #[test]
    fn a_larger_alignment_is_a_power_of_two_and_one_beyond_all_is_refused() {
        let aligned = class(100, 64).expect("a class");
        assert_eq!((aligned.bytes, aligned.align), (128, 128));
        assert_ne!(aligned.number, class(128, 8).expect("a class").number);
        assert_eq!(class(1, 4096).map(|class| class.align), Some(4096));
        assert_eq!(class(1 << 20, 32).map(|class| class.align), Some(ALIGN_MAX));
        assert_eq!(class(1, 1 << 17), None);
        assert_eq!(class(isize::MAX as usize - 100, 1), None);
    }
}
