//! User-defined lookup keys (UDLK, paper 004 §3.3.2 and §4.1; SAI calls them UDF).
//!
//! A key consists of bytes of the frame, by their offset from the destination MAC, and metadata.
//! The parser of a chip does not extract single bytes: it takes up to four blocks of four bytes.
//! Blocks are aligned to the network header of an untagged frame, so block `b` is bytes `4b - 2` to
//! `4b + 1`: the paper's own examples (B22-25, B30-33, B34-41) are whole blocks. A byte beyond the
//! end of the frame reads as zero.

use crate::frame_type::FrameType;
use alloc::vec::Vec;
use axon_wire::PortNo;
use serde::{Deserialize, Serialize};

/// Maximum number of blocks of a key.
pub const BLOCKS_MAX: usize = 4;
/// Bytes of a block.
const BLOCK: usize = 4;
/// Offset of the first block before the frame, in bytes.
const BEFORE: usize = 2;
/// Bytes of the frame that keys can use.
pub const REACH_BYTES: usize = 128;
/// Bytes of a key in a lookup: four blocks and metadata, in whole words.
pub const KEY_BYTES: usize = BLOCKS_MAX * BLOCK + 4;

/// Key in a lookup: its fields in order, as in values and masks of entries; zero behind them.
pub type KeyBytes = [u8; KEY_BYTES];

/// Number of a lookup key, used by entries of the TCAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UdlkId(pub u8);

impl UdlkId {
    /// Number of keys of a switch, over all frame types.
    pub const COUNT: usize = 16;
}

impl core::fmt::Display for UdlkId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

/// Field of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Field {
    /// The number of the ingress port, 2 bytes in network order.
    Ingress,
    /// The priority of the frame (IEEE 802.1Q clause 6.9), 1 byte: 0 to 7.
    Priority,
    /// Bytes `first` to `last` of the frame, counted from 0; `last` is at most 127.
    Bytes {
        /// The first byte.
        first: u8,
        /// The last byte.
        last: u8,
    },
}

impl Field {
    /// Returns the bytes of the field in an entry's value and mask.
    pub const fn len(self) -> usize {
        match self {
            Field::Ingress => 2,
            Field::Priority => 1,
            Field::Bytes { first, last } => (last as usize + 1).saturating_sub(first as usize),
        }
    }

    /// Returns the range of frame bytes; `None` for metadata.
    fn range(&self) -> Option<core::ops::RangeInclusive<u8>> {
        match *self {
            Field::Bytes { first, last } => Some(first..=last),
            Field::Ingress | Field::Priority => None,
        }
    }

    /// Returns whether the field is empty, which no valid field is.
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }
}

/// User-defined lookup key. Values and masks of entries have its fields in their order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Udlk {
    /// The only frame type with this key; all types without one.
    #[serde(default)]
    pub frame_type: Option<FrameType>,
    /// The fields, in the order of values and masks.
    pub fields: Vec<Field>,
}

/// Errors in a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum KeyError {
    /// The key has no field.
    #[error("the key has no field")]
    Empty,
    /// The range ends before it begins.
    #[error("B{first}-{last} ends before it begins")]
    Reversed {
        /// First byte.
        first: u8,
        /// Last byte.
        last: u8,
    },
    /// The byte is beyond the reach of the parser.
    #[error("byte {0} is out of reach: a key ends at byte {end}", end = REACH_BYTES - 1)]
    Beyond(u8),
    /// The key uses too many blocks.
    #[error("it touches {0} blocks of four bytes (block b is bytes 4b-2 to 4b+1); at most four")]
    Blocks(usize),
    /// The key contains a byte or a piece of metadata twice.
    #[error("it has the same byte twice")]
    Repeated,
}

/// Key in the form that the parser extracts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Extractor {
    /// Frame byte by position in the key; arbitrary for metadata.
    bytes: Vec<u8>,
    /// Position of the ingress port in the key.
    ingress_at: Option<u8>,
    /// Position of the priority in the key.
    priority_at: Option<u8>,
}

impl Udlk {
    /// Returns the key of these fields, for frames of all types.
    pub fn new(fields: impl Into<Vec<Field>>) -> Udlk {
        Udlk { frame_type: None, fields: fields.into() }
    }

    /// Returns the key of these fields, for frames of one type.
    pub fn of(frame_type: FrameType, fields: impl Into<Vec<Field>>) -> Udlk {
        Udlk { frame_type: Some(frame_type), fields: fields.into() }
    }

    /// Returns the bytes of value and mask of its entries.
    pub fn value_bytes(&self) -> usize {
        self.fields.iter().map(|field| field.len()).sum()
    }

    /// Checks the key.
    ///
    /// # Errors
    /// The reason for which the parser cannot extract it.
    pub fn check(&self) -> Result<(), KeyError> {
        Extractor::new(self).map(|_| ())
    }
}

impl Extractor {
    pub(crate) fn new(udlk: &Udlk) -> Result<Extractor, KeyError> {
        if udlk.fields.is_empty() {
            return Err(KeyError::Empty);
        }
        let mut extractor = Extractor { bytes: Vec::new(), ingress_at: None, priority_at: None };
        let mut is_repeated = false;
        for field in &udlk.fields {
            let at = extractor.bytes.len() as u8;
            match *field {
                Field::Bytes { first, last } => {
                    if last < first {
                        return Err(KeyError::Reversed { first, last });
                    }
                    if usize::from(last) >= REACH_BYTES {
                        return Err(KeyError::Beyond(last));
                    }
                    extractor.bytes.extend(first..=last);
                    continue;
                }
                Field::Ingress => is_repeated |= extractor.ingress_at.replace(at).is_some(),
                Field::Priority => is_repeated |= extractor.priority_at.replace(at).is_some(),
            }
            extractor.bytes.extend(core::iter::repeat_n(0, field.len()));
        }
        let mut bytes: Vec<u8> = udlk.fields.iter().filter_map(Field::range).flatten().collect();
        bytes.sort_unstable();
        let mut blocks: Vec<u8> = bytes.iter().copied().map(block_of).collect();
        blocks.dedup();
        if blocks.len() > BLOCKS_MAX {
            return Err(KeyError::Blocks(blocks.len()));
        }
        is_repeated |= bytes.windows(2).any(|two| two[0] == two[1]);
        if is_repeated { Err(KeyError::Repeated) } else { Ok(extractor) }
    }

    /// Returns the bytes of the key, and of value and mask of an entry.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the key of a frame.
    #[inline]
    pub(crate) fn extract(&self, frame: &[u8], ingress: PortNo, priority: u8) -> KeyBytes {
        let mut key = [0; KEY_BYTES];
        for (byte, &at) in key.iter_mut().zip(&self.bytes) {
            *byte = frame.get(usize::from(at)).copied().unwrap_or(0);
        }
        if let Some(at) = self.ingress_at {
            let place = key.get_mut(usize::from(at)..).and_then(|rest| rest.first_chunk_mut());
            if let Some(place) = place {
                *place = ingress.0.to_be_bytes();
            }
        }
        if let Some(place) = self.priority_at.and_then(|at| key.get_mut(usize::from(at))) {
            *place = priority;
        }
        key
    }
}

/// Returns the block of a byte of the frame.
const fn block_of(byte: u8) -> u8 {
    ((byte as usize + BEFORE) / BLOCK) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(first: u8, last: u8) -> Field {
        Field::Bytes { first, last }
    }

    fn frame() -> Vec<u8> {
        (0..200).collect()
    }

    #[test]
    fn the_keys_of_the_paper_fit_four_blocks() {
        let routing = Extractor::new(&Udlk::new([bytes(22, 25), bytes(34, 41)])).unwrap();
        let key = routing.extract(&frame(), PortNo(3), 5);
        assert_eq!(key[..12], [22, 23, 24, 25, 34, 35, 36, 37, 38, 39, 40, 41]);
        assert_eq!(key[12..], [0; 8], "no metadata was asked for");
        let filter = Udlk::new([Field::Ingress, bytes(30, 33), bytes(42, 45)]);
        let filter = Extractor::new(&filter).unwrap();
        let key = filter.extract(&frame(), PortNo(0x103), 5);
        assert_eq!(key[..10], [1, 3, 30, 31, 32, 33, 42, 43, 44, 45], "fields in their order");
        assert_eq!(key[10..], [0; 10], "the priority was not asked for");
        let backwards = Udlk::new([bytes(34, 35), Field::Priority, bytes(22, 23), Field::Ingress]);
        let key = Extractor::new(&backwards).unwrap().extract(&frame(), PortNo(0x103), 5);
        assert_eq!(key[..8], [34, 35, 5, 22, 23, 1, 3, 0]);
    }

    #[test]
    fn the_longest_key_has_four_blocks_and_all_metadata() {
        let all = Udlk::new([bytes(2, 17), Field::Ingress, Field::Priority]);
        let key = Extractor::new(&all).unwrap().extract(&frame(), PortNo(0x103), 5);
        assert_eq!(key[..16], (2..18).collect::<Vec<u8>>());
        assert_eq!(key[16..], [1, 3, 5, 0]);
    }

    #[test]
    fn bytes_beyond_the_end_of_a_frame_read_as_zero() {
        let key = Extractor::new(&Udlk::new([bytes(10, 21)])).unwrap();
        let all: Vec<u8> = (10..22).collect();
        for length in 0..30_usize {
            let read = key.extract(&frame()[..length], PortNo(0), 0);
            let there = length.clamp(10, 22) - 10;
            assert_eq!(read[..there], all[..there], "{length}");
            assert_eq!(read[there..], [0; KEY_BYTES][there..], "{length}");
        }
    }

    #[test]
    fn what_no_parser_extracts_is_refused() {
        let error = |fields: &[Field]| Extractor::new(&Udlk::new(fields)).unwrap_err();
        assert_eq!(error(&[]), KeyError::Empty);
        assert_eq!(error(&[bytes(5, 4)]), KeyError::Reversed { first: 5, last: 4 });
        assert_eq!(error(&[bytes(120, 128)]), KeyError::Beyond(128));
        assert_eq!(error(&[bytes(0, 16)]), KeyError::Blocks(5));
        assert_eq!(error(&[bytes(4, 6), bytes(6, 7)]), KeyError::Repeated);
        assert_eq!(error(&[Field::Ingress, Field::Ingress]), KeyError::Repeated);
        assert!(Udlk::new([bytes(126, 127)]).check().is_ok(), "the last block is cut short");
    }
}
