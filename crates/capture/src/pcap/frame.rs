//! A frame in a capture, its link type and its direction.

use axon_wire::header;

/// The longest frame that is read, in bytes, as in Wireshark.
pub const FRAME_BYTES_MAX: usize = 256 << 10;
/// The longest name of an interface, in bytes.
pub(super) const NAME_BYTES_MAX: usize = 255;

/// What the bytes of a frame begin with: a number of the registry of link types
/// (draft-ietf-opsawg-pcaplinktype).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkType(pub u16);

impl LinkType {
    /// LINKTYPE_ETHERNET: an Ethernet frame without preamble.
    pub const ETHERNET: LinkType = LinkType(1);
    /// LINKTYPE_RAW: an IPv4 or IPv6 packet without a layer 2.
    pub const RAW: LinkType = LinkType(101);
    /// LINKTYPE_USER0: an Axon packet, from the first byte of its header.
    pub const AXON: LinkType = LinkType(147);
    /// LINKTYPE_IPV4: an IPv4 packet without a layer 2.
    pub const IPV4: LinkType = LinkType(228);
    /// LINKTYPE_IPV6: an IPv6 packet without a layer 2.
    pub const IPV6: LinkType = LinkType(229);

    /// The link type of a frame on a link between two Axon nodes, which carries Axon packets
    /// and the Ethernet frames of link control.
    pub fn between_switches(frame: &[u8]) -> LinkType {
        if header::is_axon(frame) { LinkType::AXON } else { LinkType::ETHERNET }
    }
}

/// Which way a frame crossed its port: the direction bits of `epb_flags`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Direction {
    /// Into the port.
    Inbound = 1,
    /// Out of the port.
    Outbound = 2,
}

impl Direction {
    /// The direction in a word of `epb_flags`, if it has one.
    pub(super) fn of_flags(flags: u32) -> Option<Direction> {
        match flags & 3 {
            1 => Some(Direction::Inbound),
            2 => Some(Direction::Outbound),
            _ => None,
        }
    }
}

/// A frame that a [`Reader`](super::Reader) found in a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its number in the file, counted from 1 as Wireshark does.
    pub number: u64,
    /// Where its record or block begins, in bytes from the beginning of the file.
    pub offset: u64,
    /// When it was captured, in nanoseconds since 1970-01-01 00:00:00 UTC; rounded down, and
    /// at most `u64::MAX`. A simple packet block has no time: then that of the frame before.
    pub unix_nanos: u64,
    /// What its bytes begin with.
    pub link_type: LinkType,
    /// Name of the interface it was captured at (`if_name`), if the file has one. Of a longer
    /// name the first 255 bytes.
    pub name: Option<&'a str>,
    /// Which way it went, if the file has it.
    pub direction: Option<Direction>,
    /// Its length on the wire in bytes, as the file claims it: never less than what was kept,
    /// and up to 4 GiB.
    pub wire_bytes: usize,
    /// The bytes that were kept: at most [`FRAME_BYTES_MAX`](super::FRAME_BYTES_MAX).
    pub bytes: &'a [u8],
}
