//! A captured frame, its link type and its direction.

use axon_wire::header;

/// Maximum length of a frame that is read, in bytes. It is the same as in Wireshark.
pub const FRAME_BYTES_MAX: usize = 256 << 10;
/// Maximum length of an interface name, in bytes.
pub(super) const NAME_BYTES_MAX: usize = 255;

/// Link type of a frame: a number from the registry of link types (draft-ietf-opsawg-pcaplinktype).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkType(pub u16);

impl LinkType {
    /// LINKTYPE_ETHERNET: an Ethernet frame without preamble.
    pub const ETHERNET: LinkType = LinkType(1);
    /// LINKTYPE_RAW: an IPv4 or IPv6 packet without a layer 2 header.
    pub const RAW: LinkType = LinkType(101);
    /// LINKTYPE_USER0: an Axon packet, from the first byte of its header.
    pub const AXON: LinkType = LinkType(147);
    /// LINKTYPE_IPV4: an IPv4 packet without a layer 2 header.
    pub const IPV4: LinkType = LinkType(228);
    /// LINKTYPE_IPV6: an IPv6 packet without a layer 2 header.
    pub const IPV6: LinkType = LinkType(229);

    /// Returns the link type of a frame on a link between two Axon nodes, which carries Axon
    /// packets and the Ethernet frames of link control.
    pub fn between_switches(frame: &[u8]) -> LinkType {
        if header::is_axon(frame) { LinkType::AXON } else { LinkType::ETHERNET }
    }
}

/// Direction of a frame at its port, as in the direction bits of `epb_flags`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Direction {
    /// Into the port.
    Inbound = 1,
    /// Out of the port.
    Outbound = 2,
}

impl Direction {
    /// Returns the direction given by a word of `epb_flags`, if any.
    pub(super) fn of_flags(flags: u32) -> Option<Direction> {
        match flags & 3 {
            1 => Some(Direction::Inbound),
            2 => Some(Direction::Outbound),
            _ => None,
        }
    }
}

/// Frame read from a capture by a [`Reader`](super::Reader).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Number of the frame in the file, from 1 as in Wireshark.
    pub number: u64,
    /// Offset of the frame's record or block in the file, in bytes.
    pub offset: u64,
    /// Capture time in nanoseconds since 1970-01-01 00:00:00 UTC, rounded down, at most `u64::MAX`.
    /// A simple packet block has no time, so its frame gets that of the previous one.
    pub unix_nanos: u64,
    /// Link type of the captured bytes.
    pub link_type: LinkType,
    /// Name of the interface at which the frame was captured (`if_name`), if the file gives one.
    /// Truncated to 255 bytes.
    pub name: Option<&'a str>,
    /// Direction, if the file gives one.
    pub direction: Option<Direction>,
    /// Length on the wire in bytes, as claimed by the file. It is never less than the captured
    /// length, and at most 4 GiB.
    pub wire_bytes: usize,
    /// Captured bytes: at most [`FRAME_BYTES_MAX`](super::FRAME_BYTES_MAX).
    pub bytes: &'a [u8],
}
