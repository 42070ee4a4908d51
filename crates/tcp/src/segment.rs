//! A segment and its sequence numbers (RFC 9293 §3.1, §3.4).

use core::fmt;
use core::ops::{Add, BitOr, Sub};

/// Sequence number modulo 2^32. A number less than 2^31 ahead is after.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Seq(pub u32);

impl Seq {
    /// Returns whether this number is before `other`.
    pub(crate) fn is_before(self, other: Seq) -> bool {
        (self.0.wrapping_sub(other.0) as i32) < 0
    }

    /// Returns whether this number is after `other`.
    pub(crate) fn is_after(self, other: Seq) -> bool {
        other.is_before(self)
    }

    /// Returns the distance from `earlier` to this number.
    pub fn since(self, earlier: Seq) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }

    /// Returns the later of the two.
    pub(crate) fn max(self, other: Seq) -> Seq {
        if self.is_before(other) { other } else { self }
    }

    /// Returns the earlier of the two.
    pub(crate) fn min(self, other: Seq) -> Seq {
        if self.is_before(other) { self } else { other }
    }
}

impl fmt::Debug for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl Add<u32> for Seq {
    type Output = Seq;
    fn add(self, bytes: u32) -> Seq {
        Seq(self.0.wrapping_add(bytes))
    }
}

impl Sub<u32> for Seq {
    type Output = Seq;
    fn sub(self, bytes: u32) -> Seq {
        Seq(self.0.wrapping_sub(bytes))
    }
}

/// Control bits of a segment, as on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Flags = Flags(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Flags = Flags(0x02);
    /// Reset the connection.
    pub const RST: Flags = Flags(0x04);
    /// Push function.
    pub const PSH: Flags = Flags(0x08);
    /// The acknowledgement number is valid.
    pub const ACK: Flags = Flags(0x10);
    /// ECN echo: congestion was experienced (RFC 3168 §6.1).
    pub const ECE: Flags = Flags(0x40);
    /// Congestion window reduced (RFC 3168 §6.1).
    pub const CWR: Flags = Flags(0x80);

    /// Returns whether any of `flags` is set.
    pub fn has(self, flags: Flags) -> bool {
        self.0 & flags.0 != 0
    }
}

impl BitOr for Flags {
    type Output = Flags;
    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

/// ECN field of the packet that carries a segment (RFC 3168 §5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mark {
    /// Not ECN-capable.
    #[default]
    None,
    /// ECN-capable: ECT(0).
    Capable,
    /// Congestion experienced.
    Experienced,
}

/// SACK blocks beyond the acknowledgement (RFC 2018 §3): start and end of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sacks {
    blocks: [(Seq, Seq); Sacks::MAX],
    count: u8,
}

impl Sacks {
    /// Maximum number of blocks in a segment without timestamps.
    pub(crate) const MAX: usize = 4;

    /// Adds a block. A block that does not fit is dropped.
    pub fn push(&mut self, block: (Seq, Seq)) {
        if let Some(free) = self.blocks.get_mut(usize::from(self.count)) {
            *free = block;
            self.count += 1;
        }
    }

    /// Returns the blocks.
    pub(crate) fn as_slice(&self) -> &[(Seq, Seq)] {
        self.blocks.get(..usize::from(self.count)).unwrap_or(&[])
    }

    /// Returns whether there are no blocks.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// Options of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Maximum segment size that the sender accepts, in bytes (RFC 9293 §3.7.1).
    pub mss: Option<u16>,
    /// Window scale shift, in bits (RFC 7323 §2).
    pub scale: Option<u8>,
    /// True if the sender accepts selective acknowledgements (RFC 2018 §2).
    pub sack_permitted: bool,
    /// Blocks that arrived out of order or twice.
    pub sacks: Sacks,
}

/// Segment without its ports. The payload is a byte count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Number of the first byte, or of the SYN.
    pub seq: Seq,
    /// Next number expected; valid with [`Flags::ACK`].
    pub ack: Seq,
    /// Control bits.
    pub flags: Flags,
    /// Window as on the wire, unscaled.
    pub window: u16,
    /// Options.
    pub options: Options,
    /// Bytes of payload.
    pub bytes: u32,
    /// ECN field of the packet.
    pub mark: Mark,
}

impl Segment {
    /// Returns the count of numbers that the segment occupies: payload, SYN and FIN (SEG.LEN of RFC
    /// 9293 §3.4).
    pub(crate) fn length(&self) -> u32 {
        let controls =
            u32::from(self.flags.has(Flags::SYN)) + u32::from(self.flags.has(Flags::FIN));
        self.bytes.saturating_add(controls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_wrap() {
        let (last, first) = (Seq(u32::MAX), Seq(0));
        assert!(last.is_before(first) && first.is_after(last) && !first.is_before(first));
        assert_eq!((last + 11, first - 1, first.since(last)), (Seq(10), last, 1));
        assert_eq!((last.max(first), last.min(first)), (first, last));
    }

    #[test]
    fn controls_take_a_number_each() {
        let flags = Flags::SYN | Flags::FIN | Flags::ACK;
        assert_eq!(Segment { bytes: 5, flags, ..Segment::default() }.length(), 7);
    }

    #[test]
    fn four_blocks_fit() {
        let mut sacks = Sacks::default();
        assert!(sacks.is_empty());
        (0..9).for_each(|n| sacks.push((Seq(n), Seq(n + 1))));
        assert_eq!(sacks.as_slice().len(), 4);
    }
}
