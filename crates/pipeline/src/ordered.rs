//! Assignment of TCAM indexes to entries with priorities.
//!
//! The TCAM has one order: the highest matching index wins. Priorities shared by several entries
//! define that order only if entries of one priority never match the same frame, or have the same
//! action. [`arrange`] checks this and refuses entries without a defined order.

use crate::change::Change;
use crate::frame_type::FrameType;
use crate::key::{Field, REACH_BYTES, Udlk, UdlkId};
use crate::tables::TcamEntry;
use alloc::vec::Vec;

/// A TCAM entry with its priority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranked {
    /// The priority; of two entries that match, the one with the higher priority wins.
    pub priority: u32,
    /// The entry.
    pub entry: TcamEntry,
}

/// Range of TCAM indexes of one program or one purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The first index.
    pub first: u16,
    /// Number of indexes, from the first on: at most `65,536 - first`.
    pub count: u32,
}

/// Errors in the order of entries. Entries are identified by their positions in the list, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// More entries than indexes.
    #[error("{needed} entries do not fit a window of {size} indexes")]
    Full {
        /// Number of entries.
        needed: usize,
        /// Number of indexes.
        size: u32,
    },
    /// The window ends beyond the highest index.
    #[error("a window of {count} indexes from {first} ends beyond index 65535")]
    Window {
        /// The first index.
        first: u16,
        /// Number of indexes.
        count: u32,
    },
    /// The key of an entry is not among those given, or its value or mask does not fit it.
    #[error("entry {position}: value and mask do not fit its key, or there is no udlk {udlk}")]
    NoSuchKey {
        /// Position of the entry.
        position: usize,
        /// Key of the entry.
        udlk: UdlkId,
    },
    /// Overlapping entries whose order is undefined.
    #[error(
        "entries {first} and {second} have the same priority {priority}, match the same frames and \
         do different things with them: give one a higher priority"
    )]
    Undefined {
        /// Position of one entry.
        first: usize,
        /// Position of the other entry, which is higher.
        second: usize,
        /// The priority of both.
        priority: u32,
    },
}

/// Returns the changes after which the window contains exactly these entries, in the order of their
/// priorities: from its first index on, the lowest priority first; entries of one priority in their
/// order here. `keys` are the lookup keys of the entries.
///
/// # Errors
/// The first two entries whose order is undefined; entries that do not fit the window or their key.
pub fn arrange(
    entries: &[Ranked],
    keys: &[(UdlkId, Udlk)],
    window: Window,
) -> Result<Vec<Change>, OrderError> {
    let Window { first, count } = window;
    if u32::from(first) + count.min(1 << 16) > 1 << 16 || count > 1 << 16 {
        return Err(OrderError::Window { first, count });
    }
    if entries.len() > count as usize {
        return Err(OrderError::Full { needed: entries.len(), size: count });
    }
    let mut sorted: Vec<(usize, &Ranked, &Udlk)> = Vec::with_capacity(entries.len());
    for (position, ranked) in (1..).zip(entries) {
        let TcamEntry { udlk, value, mask, .. } = &ranked.entry;
        let key = keys.iter().find(|(id, key)| {
            id == udlk && key.value_bytes() == value.len() && value.len() == mask.len()
        });
        let (_, key) = key.ok_or(OrderError::NoSuchKey { position, udlk: *udlk })?;
        sorted.push((position, ranked, key));
    }
    sorted.sort_by_key(|(_, ranked, _)| ranked.priority);
    for equal in sorted.chunk_by(|one, other| one.1.priority == other.1.priority) {
        for (place, &(second, one, key)) in equal.iter().enumerate() {
            let conflicts = |&&(_, other, other_key): &&(usize, &Ranked, &Udlk)| {
                one.entry.action != other.entry.action
                    && overlap((&one.entry, key), (&other.entry, other_key))
            };
            if let Some(&(first, ..)) = equal[..place].iter().find(conflicts) {
                return Err(OrderError::Undefined { first, second, priority: one.priority });
            }
        }
    }
    let all = sorted.into_iter().map(|(_, ranked, _)| Some(ranked.entry.clone()));
    let all = all.chain(core::iter::repeat(None));
    let indexes = (0..count).map(|offset| (u32::from(first) + offset) as u16);
    Ok(indexes.zip(all).map(|(index, entry)| Change::Tcam(index, entry)).collect())
}

/// Returns whether a frame can match both entries: their keys have a frame type in common, and bits
/// compared by both have the same value. Keys beyond the end of a short frame read zeros, which is
/// not considered here.
fn overlap((one, key): (&TcamEntry, &Udlk), (other, other_key): (&TcamEntry, &Udlk)) -> bool {
    if one.udlk == other.udlk {
        let bytes = one.value.iter().zip(&one.mask).zip(other.value.iter().zip(&other.mask));
        return { bytes }.all(|((a, am), (b, bm))| (a ^ b) & am & bm == 0);
    }
    let meets = |of: FrameType| {
        [key, other_key].iter().all(|key| key.frame_type.is_none_or(|only| only == of))
    };
    if !FrameType::ALL.into_iter().any(meets) {
        return false;
    }
    let (mut values, mut masks) = ([0; SOURCES], [0; SOURCES]);
    for (source, (&value, &mask)) in sources(key).zip(one.value.iter().zip(&one.mask)) {
        (values[source], masks[source]) = (value, mask);
    }
    let others = sources(other_key).zip(other.value.iter().zip(&other.mask));
    { others }.all(|(source, (value, mask))| (values[source] ^ value) & masks[source] & mask == 0)
}

/// Number of bytes that keys can contain: those of the frame, the ingress port, the priority.
const SOURCES: usize = REACH_BYTES + 3;

/// Returns the compared source byte of each byte of an entry's value.
fn sources(key: &Udlk) -> impl Iterator<Item = usize> {
    key.fields.iter().flat_map(|field| match *field {
        Field::Ingress => REACH_BYTES..REACH_BYTES + 2,
        Field::Priority => REACH_BYTES + 2..REACH_BYTES + 3,
        Field::Bytes { first, last } => {
            let end = (usize::from(last) + 1).min(REACH_BYTES);
            usize::from(first).min(end)..end
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expand::Pattern;
    use crate::{Action, Target};
    use axon_wire::PortNo;
    use proptest::prelude::*;

    const IP: UdlkId = UdlkId(0);
    const PORT_AND_IP: UdlkId = UdlkId(1);
    const ARP: UdlkId = UdlkId(2);

    fn keys() -> [(UdlkId, Udlk); 3] {
        let two = Field::Bytes { first: 30, last: 31 };
        [
            (IP, Udlk::of(FrameType::Ipv4, [two])),
            (PORT_AND_IP, Udlk::new([Field::Ingress, Field::Bytes { first: 31, last: 31 }])),
            (ARP, Udlk::of(FrameType::Arp, [two])),
        ]
    }

    fn ranked(priority: u32, udlk: UdlkId, value: &[u8], mask: &[u8], port: u16) -> Ranked {
        let pattern = Pattern { value: value.to_vec(), mask: mask.to_vec() };
        let action = Action::from(Target::Port(PortNo(port)));
        Ranked { priority, entry: pattern.entry(udlk, action) }
    }

    const WINDOW: Window = Window { first: 100, count: 4 };

    #[test]
    fn higher_priorities_get_higher_indexes_and_the_rest_of_the_window_is_emptied() {
        let all = [
            ranked(9, IP, &[10, 1], &[255, 255], 1),
            ranked(1, IP, &[0, 0], &[0, 0], 2),
            ranked(5, IP, &[10, 0], &[255, 0], 3),
        ];
        let entry = |of: usize| Some(all[of].entry.clone());
        let expected = [
            Change::Tcam(100, entry(1)),
            Change::Tcam(101, entry(2)),
            Change::Tcam(102, entry(0)),
            Change::Tcam(103, None),
        ];
        assert_eq!(arrange(&all, &keys(), WINDOW).unwrap(), expected);
    }

    #[test]
    fn overlapping_entries_of_one_priority_are_refused_unless_they_do_the_same() {
        let narrow = ranked(5, IP, &[10, 1], &[255, 255], 1);
        let wide = ranked(5, IP, &[10, 0], &[255, 0], 2);
        let apart = ranked(5, IP, &[11, 0], &[255, 0], 2);
        let both = [apart, narrow.clone(), wide.clone()];
        let undefined = OrderError::Undefined { first: 2, second: 3, priority: 5 };
        assert_eq!(arrange(&both, &keys(), WINDOW), Err(undefined));
        let same = Ranked { priority: 5, entry: TcamEntry { ..narrow.entry.clone() } };
        let wide = TcamEntry { action: narrow.entry.action.clone(), ..wide.entry };
        assert!(arrange(&[same, Ranked { priority: 5, entry: wide }], &keys(), WINDOW).is_ok());
    }

    #[test]
    fn entries_of_two_keys_overlap_if_no_bit_that_both_look_at_keeps_them_apart() {
        let ip = ranked(5, IP, &[10, 1], &[255, 255], 1);
        let order = |other| arrange(&[ip.clone(), other], &keys(), WINDOW);
        let undefined = Err(OrderError::Undefined { first: 1, second: 2, priority: 5 });
        assert_eq!(order(ranked(5, PORT_AND_IP, &[0, 7, 1], &[255, 255, 255], 2)), undefined);
        assert!(order(ranked(5, PORT_AND_IP, &[0, 7, 2], &[255, 255, 255], 2)).is_ok());
        assert!(order(ranked(6, PORT_AND_IP, &[0, 7, 1], &[255, 255, 255], 2)).is_ok());
        assert!(order(ranked(5, ARP, &[10, 1], &[255, 255], 2)).is_ok(), "no frame is both");
    }

    #[test]
    fn what_does_not_fit_the_window_or_its_key_is_refused() {
        let one = ranked(1, IP, &[10, 1], &[255, 255], 1);
        let window =
            |first, count| arrange(core::slice::from_ref(&one), &keys(), Window { first, count });
        assert_eq!(window(0, 0), Err(OrderError::Full { needed: 1, size: 0 }));
        assert_eq!(window(65_535, 2), Err(OrderError::Window { first: 65_535, count: 2 }));
        assert_eq!(window(65_535, 1).map(|changes| changes.len()), Ok(1));
        let odd = ranked(1, IP, &[10], &[255], 1);
        let refused = Err(OrderError::NoSuchKey { position: 2, udlk: IP });
        assert_eq!(arrange(&[one, odd], &keys(), WINDOW), refused);
    }

    proptest! {
        #[test]
        fn what_is_accepted_has_one_meaning_whatever_the_order_of_equal_priorities(
            parts in proptest::collection::vec((0_u32..3, 0_u8..4, 0_u8..4, 0_u16..2), 0..6),
            byte in 0_u8..4,
        ) {
            let entry = |&(priority, value, mask, port): &(u32, u8, u8, u16)| {
                ranked(priority, IP, &[10, value & mask], &[255, mask], port)
            };
            let all: Vec<Ranked> = parts.iter().map(entry).collect();
            let reversed: Vec<Ranked> = all.iter().rev().cloned().collect();
            let window = Window { first: 0, count: 8 };
            let winner = |changes: Vec<Change>| {
                changes.into_iter().rev().find_map(|change| match change {
                    Change::Tcam(_, Some(entry)) => {
                        let hit = entry.value[1] == byte & entry.mask[1];
                        hit.then_some(entry.action)
                    }
                    _ => None,
                })
            };
            let one = arrange(&all, &keys(), window).map(winner);
            let other = arrange(&reversed, &keys(), window).map(winner);
            prop_assert_eq!(one.is_ok(), other.is_ok());
            if let (Ok(one), Ok(other)) = (one, other) {
                prop_assert_eq!(one, other);
            }
        }
    }
}
