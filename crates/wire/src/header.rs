//! The Axon header (paper 001 figure 2, thesis 000 figure 3.1).
//!
//! ```text
//!  bits   4     16             12               12           3          1       n*w      m*w
//!       +------+---------------+----------------+-----------+----------+-------+--------+--------+
//!       | type | header length | forward hops n | reverse m | priority | spare | n hops | m hops |
//!       +------+---------------+----------------+-----------+----------+-------+--------+--------+
//! ```
//!
//! With hops of 8 or 16 bits the hops begin at byte 6. With hops of 4 bits (the thesis) the
//! first hop takes the place of the priority and the spare bit, so every such packet has
//! priority 0, and the header is padded with zero bits to a whole byte. Header length counts
//! bytes, padding included.
//!
//! The priority is the packet's own (IEEE 802.1Q clause 6.9), independent of its payload. The
//! papers leave these four bits spare and zero. Since zero is the priority of an untagged frame,
//! nodes without priorities and packets without a priority produce the same header.
//!
//! A hop moves from the forward list to the reverse list without changing the length: the
//! forward hops shift up by one, and the ingress port takes the last forward place, which
//! becomes the first reverse place. Reverse hops never move.
//!
//! Type 0 is never assigned: the first byte of the link-local multicast addresses (0x01)
//! would read as type 0, so MAC control, LLDP and discovery frames stay recognisable on a
//! port that otherwise carries Axon packets.

use crate::addr::PortNo;
pub use crate::constants::length::HOPS_MAX;
use crate::constants::length::{HEADER_FIXED as FIXED_BYTES, HEADER_FIXED_BITS_OF_FOUR};
use crate::constants::packet_type;
use crate::hops::Hops;
use crate::priority::Priority;
use serde::{Deserialize, Serialize};

/// Width of a hop on the wire; one choice for a whole fabric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum HopWidth {
    /// 4 bits, as in the thesis's prototype: ports 0 to 14.
    Four,
    /// 8 bits, as in paper 001: ports 0 to 254.
    #[default]
    Eight,
    /// 16 bits: ports 0 to 65,534.
    Sixteen,
}

impl HopWidth {
    /// Returns the bits of one hop: 4, 8 or 16.
    pub const fn bits(self) -> usize {
        match self {
            HopWidth::Four => 4,
            HopWidth::Eight => 8,
            HopWidth::Sixteen => 16,
        }
    }

    /// Returns the maximum number of ports of a switch: every hop value except the one for the
    /// control plane.
    pub const fn ports_max(self) -> usize {
        (1 << self.bits()) - 1
    }

    /// Returns the hop value of `port` on the wire.
    const fn encode(self, port: PortNo) -> u16 {
        port.0 & ((1u32 << self.bits()) - 1) as u16
    }

    /// Returns the port of hop value `hop`.
    const fn decode(self, hop: u16) -> PortNo {
        if hop as usize == self.ports_max() { PortNo::CONTROL } else { PortNo(hop) }
    }

    /// Returns whether a hop of this width can represent `port`.
    pub const fn can_name(self, port: PortNo) -> bool {
        port.0 == PortNo::CONTROL.0 || (port.0 as usize) < self.ports_max()
    }

    /// Returns the bit offset of hop number `index`, forward hops first.
    const fn bit_offset(self, index: usize) -> usize {
        let first = match self {
            HopWidth::Four => HEADER_FIXED_BITS_OF_FOUR,
            _ => 8 * FIXED_BYTES,
        };
        first + index * self.bits()
    }

    /// Returns the bytes of a header with `hops` hops in total, forward and reverse.
    pub const fn header_bytes(self, hops: usize) -> usize {
        let bytes = self.bit_offset(hops).div_ceil(8);
        if bytes < FIXED_BYTES { FIXED_BYTES } else { bytes }
    }

    /// Returns the number of hops, forward and reverse, that fit into a header of at most `bytes`
    /// bytes.
    #[inline]
    pub const fn hops_in(self, bytes: usize) -> usize {
        (8 * bytes).saturating_sub(self.bit_offset(0)) / self.bits()
    }

    #[inline(always)]
    fn get(self, bytes: &[u8], index: usize) -> PortNo {
        let bit = self.bit_offset(index);
        let at = bit / 8;
        self.decode(match self {
            HopWidth::Four if bit.is_multiple_of(8) => u16::from(bytes[at] >> 4),
            HopWidth::Four => u16::from(bytes[at] & 0xf),
            HopWidth::Eight => u16::from(bytes[at]),
            HopWidth::Sixteen => u16::from_be_bytes([bytes[at], bytes[at + 1]]),
        })
    }

    fn set(self, bytes: &mut [u8], index: usize, port: PortNo) {
        let bit = self.bit_offset(index);
        let at = bit / 8;
        let hop = self.encode(port);
        match self {
            HopWidth::Four if bit.is_multiple_of(8) => {
                bytes[at] = (bytes[at] & 0x0f) | (hop as u8) << 4;
            }
            HopWidth::Four => bytes[at] = (bytes[at] & 0xf0) | hop as u8,
            HopWidth::Eight => bytes[at] = hop as u8,
            HopWidth::Sixteen => bytes[at..at + 2].copy_from_slice(&hop.to_be_bytes()),
        }
    }
}

/// Payload type of an Axon packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum PacketType {
    /// An Ethernet frame between hosts.
    Ethernet = packet_type::ETHERNET,
    /// A sealed message between control planes.
    Control = packet_type::CONTROL,
    /// A probe that gathers timestamps (thesis §3.2.2).
    Probe = packet_type::PROBE,
    /// A packet that could not be forwarded, sent to the control plane.
    Error = packet_type::ERROR,
    /// A congestion message, sent to the edge that the packet came from.
    Congestion = packet_type::CONGESTION,
}

impl PacketType {
    /// All packet types, by number.
    pub const ALL: [PacketType; 5] = [
        PacketType::Ethernet,
        PacketType::Control,
        PacketType::Probe,
        PacketType::Error,
        PacketType::Congestion,
    ];

    const fn from_bits(bits: u8) -> Option<PacketType> {
        match bits {
            packet_type::ETHERNET => Some(PacketType::Ethernet),
            packet_type::CONTROL => Some(PacketType::Control),
            packet_type::PROBE => Some(PacketType::Probe),
            packet_type::ERROR => Some(PacketType::Error),
            packet_type::CONGESTION => Some(PacketType::Congestion),
            _ => None,
        }
    }
}

/// Errors in parsing or writing an Axon header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// Fewer bytes than the fixed part, or than the header length states.
    #[error("truncated: the frame is shorter than its header")]
    Truncated,
    /// The header length disagrees with the hop counts.
    #[error("the header length disagrees with the hop counts")]
    Length,
    /// Type 0 or an unassigned type.
    #[error("unknown packet type")]
    Type,
    /// More hops than 12 bits can count, or a port that the hop width cannot represent.
    #[error("the route does not fit the header")]
    Unrepresentable,
}

/// Returns whether a frame on an Axon port starts with an Axon header (any type but 0) rather than
/// with a link-local Ethernet address.
#[inline]
pub fn is_axon(frame: &[u8]) -> bool {
    frame.first().is_some_and(|byte| byte >> 4 != 0)
}

/// The fixed part of a checked Axon header: everything but the hops.
///
/// It borrows nothing, so one parse serves both reading and rewriting the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderFields {
    /// The payload type.
    pub packet_type: PacketType,
    /// The packet's priority; 0 with hops of 4 bits, which have no priority field.
    pub priority: Priority,
    /// Bytes of the header, padding included.
    pub header_bytes: usize,
    /// Number of remaining forward hops: 0 to [`HOPS_MAX`].
    pub forward_count: usize,
    /// Number of hops taken: 0 to [`HOPS_MAX`].
    pub reverse_count: usize,
}

impl HeaderFields {
    /// Checks the header at the start of `bytes`.
    ///
    /// # Errors
    /// Truncation, an unknown type, or a length that disagrees with the hop counts.
    #[inline]
    pub fn parse(bytes: &[u8], width: HopWidth) -> Result<HeaderFields, HeaderError> {
        let [a, b, counts @ ..]: [u8; FIXED_BYTES] =
            *bytes.first_chunk().ok_or(HeaderError::Truncated)?;
        let packet_type = PacketType::from_bits(a >> 4).ok_or(HeaderError::Type)?;
        let counts = u32::from_be_bytes(counts) as usize;
        let header_bytes = usize::from(a & 0xf) << 12 | usize::from(b) << 4 | counts >> 28;
        let forward_count = counts >> 16 & HOPS_MAX;
        let reverse_count = counts >> 4 & HOPS_MAX;
        if header_bytes != width.header_bytes(forward_count + reverse_count) {
            return Err(HeaderError::Length);
        }
        if header_bytes > bytes.len() {
            return Err(HeaderError::Truncated);
        }
        // The spare bit next to the priority is ignored.
        let priority = match width {
            HopWidth::Four => Priority::ZERO,
            _ => Priority::from_low_bits((counts >> 1) as u8),
        };
        Ok(HeaderFields { packet_type, priority, header_bytes, forward_count, reverse_count })
    }

    /// Returns the egress port if hops remain. `bytes` must be those that were parsed.
    #[inline(always)]
    pub fn next_hop(&self, bytes: &[u8], width: HopWidth) -> Option<PortNo> {
        (self.forward_count > 0).then(|| width.get(bytes, 0))
    }

    /// Returns these fields with another priority and writes it to the header at the start of
    /// `bytes`. With hops of 4 bits there is no priority field, and nothing is changed.
    #[inline]
    #[must_use]
    pub fn with_priority(
        self,
        bytes: &mut [u8],
        width: HopWidth,
        priority: Priority,
    ) -> HeaderFields {
        if width == HopWidth::Four {
            return self;
        }
        set_priority(bytes, width, priority);
        HeaderFields { priority, ..self }
    }

    /// Pops the next forward hop and pushes `ingress` on the reverse list of the header at the
    /// start of `bytes`, which are those that were parsed. Without a forward hop, or with
    /// [`HOPS_MAX`] reverse hops, nothing is changed.
    #[inline(always)]
    pub fn advance(&self, bytes: &mut [u8], width: HopWidth, ingress: PortNo) {
        let (forward, reverse) = (self.forward_count, self.reverse_count);
        if forward == 0 || reverse == HOPS_MAX {
            return;
        }
        // Masks and shifts become constants if the width is constant at the caller.
        let done = match width {
            HopWidth::Four => advance_word(bytes, HopWidth::Four, forward, ingress),
            HopWidth::Eight => advance_word(bytes, HopWidth::Eight, forward, ingress),
            HopWidth::Sixteen => advance_word(bytes, HopWidth::Sixteen, forward, ingress),
        };
        if !done {
            advance_bytes(bytes, width, forward, ingress);
            set_counts(bytes, forward - 1, reverse + 1);
        }
    }
}

/// A checked Axon header and its payload.
#[derive(Clone, Copy, Debug)]
pub struct HeaderView<'a> {
    bytes: &'a [u8],
    width: HopWidth,
    fields: HeaderFields,
}

impl<'a> HeaderView<'a> {
    /// Checks the header at the start of `bytes`.
    ///
    /// # Errors
    /// Truncation, an unknown type, or a length that disagrees with the hop counts.
    #[inline]
    pub fn parse(bytes: &'a [u8], width: HopWidth) -> Result<HeaderView<'a>, HeaderError> {
        HeaderFields::parse(bytes, width).map(|fields| HeaderView { bytes, width, fields })
    }

    /// Returns the fixed part of the header.
    pub const fn fields(&self) -> HeaderFields {
        self.fields
    }

    /// Returns the payload type.
    pub const fn packet_type(&self) -> PacketType {
        self.fields.packet_type
    }

    /// Returns the bytes of the header, padding included.
    pub const fn header_bytes(&self) -> usize {
        self.fields.header_bytes
    }

    /// Returns the number of remaining forward hops.
    pub const fn forward_count(&self) -> usize {
        self.fields.forward_count
    }

    /// Returns the number of hops taken.
    pub const fn reverse_count(&self) -> usize {
        self.fields.reverse_count
    }

    /// Returns the packet's priority; 0 with hops of 4 bits, which have no priority field. The
    /// spare bit next to it is ignored.
    #[inline]
    pub const fn priority(&self) -> Priority {
        self.fields.priority
    }

    /// Returns the egress port if hops remain.
    #[inline]
    #[cfg(test)]
    pub(crate) fn next_hop(&self) -> Option<PortNo> {
        self.fields.next_hop(self.bytes, self.width)
    }

    /// Returns the remaining forward hops, next first.
    pub fn forward(&self) -> Hops {
        (0..self.fields.forward_count).map(|index| self.width.get(self.bytes, index)).collect()
    }

    /// Returns the reverse hops, nearest first: a forward route to the sender of the packet.
    pub fn reverse(&self) -> Hops {
        let HeaderFields { forward_count: first, reverse_count: count, .. } = self.fields;
        (first..first + count).map(|index| self.width.get(self.bytes, index)).collect()
    }

    /// Returns the payload.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[self.fields.header_bytes..]
    }
}

/// Pops the next forward hop of a checked header and pushes `ingress` on the reverse list.
///
/// `bytes` must have passed [`HeaderView::parse`] with the same `width`, have a forward hop
/// left, and have fewer than [`HOPS_MAX`] reverse hops. Otherwise nothing is changed.
#[inline]
pub fn advance(bytes: &mut [u8], width: HopWidth, ingress: PortNo) {
    let Ok(fields) = HeaderFields::parse(bytes, width) else { return };
    fields.advance(bytes, width, ingress);
}

/// Performs [`advance`] for a route whose forward hops lie within 64 bits, as nearly all do. One
/// 64-bit word is shifted by a hop under a mask, and both counts change in one addition. Returns
/// whether the route was short enough.
#[inline(always)]
fn advance_word(bytes: &mut [u8], width: HopWidth, forward: usize, ingress: PortNo) -> bool {
    // The word starts at a whole byte, which with 4-bit hops is 4 bits before the first hop.
    let at = width.bit_offset(0) / 8;
    let skip = width.bit_offset(0) % 8;
    let span = forward * width.bits();
    if skip + span > 64 {
        return false;
    }
    let Some(&hops) = bytes.get(at..).and_then(<[u8]>::first_chunk) else { return false };
    let Some(&counts) = bytes.get(2..).and_then(<[u8]>::first_chunk) else { return false };
    let counts = u32::from_be_bytes(counts) - (1 << 16) + (1 << 4);
    let hops = u64::from_be_bytes(hops);
    let mask = (u64::MAX << (64 - span)) >> skip;
    let shifted = (hops & mask) << width.bits() & mask;
    let pushed = u64::from(width.encode(ingress)) << (64 - skip - span);
    let mut word = hops & !mask | shifted | pushed;
    if skip > 0 {
        // The last four bits of the reverse count are in this word too.
        word = word & (u64::MAX >> skip) | u64::from(counts >> 4) << (64 - skip);
    }
    bytes[2..6].copy_from_slice(&counts.to_be_bytes());
    bytes[at..at + 8].copy_from_slice(&word.to_be_bytes());
    true
}

/// Moves the hops for [`advance`], for routes of any length. Does not change the counts.
#[cold]
fn advance_bytes(bytes: &mut [u8], width: HopWidth, forward: usize, ingress: PortNo) {
    if width == HopWidth::Four {
        for index in 1..forward {
            let hop = width.get(bytes, index);
            width.set(bytes, index - 1, hop);
        }
    } else {
        let hop_bytes = width.bits() / 8;
        bytes.copy_within(FIXED_BYTES + hop_bytes..FIXED_BYTES + forward * hop_bytes, FIXED_BYTES);
    }
    width.set(bytes, forward - 1, ingress);
}

/// Rewrites the type of a checked header.
pub fn set_type(bytes: &mut [u8], packet_type: PacketType) {
    if let Some(first) = bytes.first_mut() {
        *first = (*first & 0x0f) | (packet_type as u8) << 4;
    }
}

/// Rewrites the priority of a checked header. With hops of 4 bits there is no priority field, and
/// nothing is changed.
#[inline]
pub fn set_priority(bytes: &mut [u8], width: HopWidth, priority: Priority) {
    let Some(byte) = bytes.get_mut(FIXED_BYTES - 1) else { return };
    if width != HopWidth::Four {
        *byte = *byte & 0xf1 | priority.value() << 1;
    }
}

fn set_counts(bytes: &mut [u8], forward: usize, reverse: usize) {
    bytes[2] = (bytes[2] & 0xf0) | (forward >> 8) as u8;
    bytes[3] = forward as u8;
    bytes[4] = (reverse >> 4) as u8;
    bytes[5] = (bytes[5] & 0x0f) | ((reverse & 0xf) << 4) as u8;
}

/// Writes a header with these hops and priority 0 at the start of `out` and returns its length in
/// bytes. [`set_priority`] sets another priority. Every bit of those bytes is written, regardless
/// of the previous content of `out`.
///
/// # Errors
/// `Unrepresentable` if a port or a count does not fit, and `Truncated` if `out` is too short.
pub fn emit(
    out: &mut [u8],
    width: HopWidth,
    packet_type: PacketType,
    forward: &[PortNo],
    reverse: &[PortNo],
) -> Result<usize, HeaderError> {
    let fits = forward.len() <= HOPS_MAX
        && reverse.len() <= HOPS_MAX
        && forward.iter().chain(reverse).all(|&port| width.can_name(port));
    let length = width.header_bytes(forward.len() + reverse.len());
    if !fits || length > usize::from(u16::MAX) {
        return Err(HeaderError::Unrepresentable);
    }
    let out = out.get_mut(..length).ok_or(HeaderError::Truncated)?;
    out.fill(0);
    out[0] = (packet_type as u8) << 4 | (length >> 12) as u8;
    out[1] = (length >> 4) as u8;
    out[2] = ((length & 0xf) << 4) as u8;
    set_counts(out, forward.len(), reverse.len());
    for (index, &port) in forward.iter().chain(reverse).enumerate() {
        width.set(out, index, port);
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const WIDTHS: [HopWidth; 3] = [HopWidth::Four, HopWidth::Eight, HopWidth::Sixteen];

    #[test]
    fn emit_and_parse_agree_on_a_dirty_buffer() {
        for width in WIDTHS {
            for (n, m) in [(0, 0), (1, 0), (0, 1), (3, 2), (2, 3), (5, 5)] {
                let forward: Hops = (0..n).map(PortNo).collect();
                let reverse: Hops = (0..m).map(|hop| PortNo(hop + 7)).collect();
                let mut dirty = vec![0xa5; 64];
                let length =
                    emit(&mut dirty, width, PacketType::Control, &forward, &reverse).unwrap();
                let view = HeaderView::parse(&dirty, width).unwrap();
                assert_eq!(view.header_bytes(), length);
                assert_eq!(view.packet_type(), PacketType::Control);
                assert_eq!((view.forward(), view.reverse()), (forward, reverse));
            }
        }
    }

    #[test]
    fn a_header_holds_as_many_hops_as_it_says() {
        for width in WIDTHS {
            for bytes in 6..200 {
                let hops = width.hops_in(bytes);
                assert!(width.header_bytes(hops) <= bytes && width.header_bytes(hops + 1) > bytes);
            }
        }
    }

    #[test]
    fn a_hop_moves_from_the_forward_to_the_reverse_list() {
        for width in WIDTHS {
            let mut bytes = vec![0x5a; 40];
            let reverse = Hops::from([9, PortNo::CONTROL.0]);
            emit(&mut bytes, width, PacketType::Ethernet, &Hops::from([1, 2, 3]), &reverse)
                .unwrap();
            advance(&mut bytes, width, PortNo(7));
            let view = HeaderView::parse(&bytes, width).unwrap();
            assert_eq!(view.forward(), Hops::from([2, 3]));
            assert_eq!(view.reverse(), Hops::from([7, 9, PortNo::CONTROL.0]));
        }
    }

    #[test]
    fn short_and_long_routes_advance_alike() {
        for width in WIDTHS {
            for (n, m, spare) in (1..40).flat_map(|n| [(n, 0, 0), (n, 3, 1), (n, 20, 9)]) {
                let forward: Hops = (0..n).map(|hop| PortNo(hop % 13)).collect();
                let reverse: Hops = (0..m).map(|hop| PortNo(14 - hop % 15)).collect();
                let length = width.header_bytes(forward.len() + reverse.len());
                let mut bytes = vec![0xc3; length + spare];
                emit(&mut bytes, width, PacketType::Probe, &forward, &reverse).unwrap();
                advance(&mut bytes, width, PortNo::CONTROL);
                let mut expected = vec![0xc3; length + spare];
                let taken = reverse.after(PortNo::CONTROL);
                emit(&mut expected, width, PacketType::Probe, &forward[1..], &taken).unwrap();
                assert_eq!(bytes, expected, "{width:?}: {n} forward, {m} reverse hops");
            }
        }
    }

    #[test]
    fn the_reverse_list_at_the_end_is_the_way_back() {
        for width in WIDTHS {
            let mut bytes = vec![0; 40];
            emit(&mut bytes, width, PacketType::Control, &Hops::from([4, 5, 6]), &[]).unwrap();
            for ingress in [PortNo::CONTROL, PortNo(1), PortNo(2)] {
                advance(&mut bytes, width, ingress);
            }
            let view = HeaderView::parse(&bytes, width).unwrap();
            assert_eq!(view.next_hop(), None);
            assert_eq!(view.reverse(), Hops::from([2, 1, PortNo::CONTROL.0]));
        }
    }

    #[test]
    fn a_priority_stays_with_the_packet_and_touches_nothing_else() {
        for width in WIDTHS {
            for (n, m) in [(1, 0), (3, 2), (20, 9)] {
                let (forward, reverse) = (Hops(vec![PortNo(5); n]), Hops(vec![PortNo(6); m]));
                let mut plain = vec![0xa5; 80];
                emit(&mut plain, width, PacketType::Ethernet, &forward, &reverse).unwrap();
                assert_eq!(HeaderView::parse(&plain, width).unwrap().priority(), Priority::ZERO);
                for priority in Priority::ALL {
                    let mut bytes = plain.clone();
                    set_priority(&mut bytes, width, Priority::MAX);
                    set_priority(&mut bytes, width, priority);
                    advance(&mut bytes, width, PortNo(7));
                    let view = HeaderView::parse(&bytes, width).unwrap();
                    let kept = width != HopWidth::Four;
                    assert_eq!(view.priority(), if kept { priority } else { Priority::ZERO });
                    assert_eq!(view.reverse(), reverse.after(PortNo(7)));
                    let mut expected = plain.clone();
                    advance(&mut expected, width, PortNo(7));
                    set_priority(&mut bytes, width, Priority::ZERO);
                    assert_eq!(bytes, expected);
                }
            }
        }
    }

    #[test]
    fn nibble_hops_follow_the_thesis() {
        // 44 bits and one hop fill six bytes; two hops need four bits of padding.
        let mut bytes = vec![0xff; 7];
        let one = emit(&mut bytes, HopWidth::Four, PacketType::Ethernet, &[PortNo(3)], &[]);
        assert_eq!((one, bytes[5]), (Ok(6), 0x03));
        let two = emit(
            &mut bytes,
            HopWidth::Four,
            PacketType::Ethernet,
            &[PortNo(3)],
            &[PortNo::CONTROL],
        );
        assert_eq!((two, bytes[5], bytes[6]), (Ok(7), 0x13, 0xf0));
    }

    #[test]
    fn what_is_not_a_header_is_refused() {
        let parse = |bytes: &[u8]| HeaderView::parse(bytes, HopWidth::Eight).map(|_| ());
        assert_eq!(parse(&[0x10; 5]), Err(HeaderError::Truncated));
        assert_eq!(parse(&[0x01, 0x80, 0xc2, 0, 0, 0x0e]), Err(HeaderError::Type));
        assert_eq!(parse(&[0x10, 0, 0x70, 0, 0, 0]), Err(HeaderError::Length));
        assert_eq!(parse(&[0x10, 0, 0x70, 1, 0, 0]), Err(HeaderError::Truncated));
        let mut out = [0; 64];
        let route = [PortNo(15)];
        assert_eq!(
            emit(&mut out, HopWidth::Four, PacketType::Ethernet, &route, &[]),
            Err(HeaderError::Unrepresentable)
        );
    }
}
