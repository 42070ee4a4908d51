//! Blocks of pcapng files.
//!
//! A section header gives the byte order of the blocks that follow, interface descriptions give
//! link type and time unit, and three kinds of packet blocks hold frames. Blocks of other types are
//! skipped. The crate `pcap-file` parses fields. Options are parsed here, because the crate refuses
//! a valid list without an end mark, and any option that it cannot parse, even if it is not needed.

use super::error::wrong;
use super::frame::{Direction, FRAME_BYTES_MAX, LinkType, NAME_BYTES_MAX};
use byteorder_slice::{BigEndian, ByteOrder, LittleEndian};
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionBlock;
use pcap_file::pcapng::blocks::packet::PacketBlock;
use pcap_file::pcapng::blocks::section_header::SectionHeaderBlock;
use pcap_file::pcapng::blocks::simple_packet::SimplePacketBlock;
use pcap_file::pcapng::blocks::{
    ENHANCED_PACKET_BLOCK, INTERFACE_DESCRIPTION_BLOCK, PACKET_BLOCK, SECTION_HEADER_BLOCK,
    SIMPLE_PACKET_BLOCK,
};
use pcap_file::pcapng::{PcapNgBlock, RawBlock};
use std::ops::Range;

/// Length of the shortest block, which is also the number of bytes needed to determine a block's
/// length: type, length, and either the byte order of a section or the length again.
pub(super) const BLOCK_BYTES_MIN: usize = 12;
/// Maximum number of interfaces in a section, since each takes memory until the section ends.
const INTERFACES_MAX: usize = 1 << 16;
const BIG_ENDIAN_MAGIC: [u8; 4] = [0x1a, 0x2b, 0x3c, 0x4d];
/// Length of Ethernet's FCS.
const FCS_BYTES: usize = 4;
/// Bytes before the options in each kind of block that has any. For packets, the data is not
/// included.
const SECTION_BYTES: usize = 16;
const INTERFACE_BYTES: usize = 8;
const PACKET_BYTES: usize = 20;
const OPTION_END: u16 = 0;
const OPTION_IF_NAME: u16 = 2;
const OPTION_IF_TSRESOL: u16 = 9;
const OPTION_IF_FCSLEN: u16 = 13;
const OPTION_IF_TSOFFSET: u16 = 14;
const OPTION_EPB_FLAGS: u16 = 2;
/// Length of the FCS in `epb_flags`; 0 if the interface's holds.
const FLAGS_FCS: u32 = 0xf << 5;

/// Frame, as found in a record or block of the file.
pub(super) struct Packet {
    /// Interface within the section; `None` in a pcap file.
    pub(super) interface: Option<usize>,
    pub(super) link_type: LinkType,
    /// Nanoseconds since 1970; `None` in a simple packet block.
    pub(super) unix_nanos: Option<u64>,
    pub(super) direction: Option<Direction>,
    pub(super) wire_bytes: usize,
    /// Range of the captured bytes within the record.
    pub(super) bytes: Range<usize>,
}

impl Packet {
    /// Returns the packet without its FCS, if the file declares one. Ethernet's always has 4 bytes,
    /// so the declared length, for which writers use different units, does not matter. Other link
    /// types keep theirs.
    pub(super) fn without_fcs(mut self, has_fcs: bool) -> Packet {
        if has_fcs && self.link_type == LinkType::ETHERNET {
            self.wire_bytes = self.wire_bytes.saturating_sub(FCS_BYTES);
            self.bytes.end = self.bytes.end.min(self.bytes.start + self.wire_bytes);
        }
        self
    }
}

/// Section of a pcapng file, which is the context for its later blocks.
#[derive(Default)]
pub(super) struct Section {
    big_endian: bool,
    interfaces: Vec<Interface>,
}

/// Interface description.
struct Interface {
    name: Option<String>,
    link_type: LinkType,
    /// True if frames end with their FCS (`if_fcslen`).
    has_fcs: bool,
    /// Maximum number of bytes kept of each frame; 0 for no limit.
    snap_bytes: u32,
    /// `if_tsresol`: a negative power of ten, or of two with the highest bit set.
    resolution: u8,
    /// `if_tsoffset`: seconds to add.
    offset_seconds: i64,
}

impl Interface {
    /// Converts a time in the interface's unit to nanoseconds since 1970.
    fn nanos(&self, units: u64) -> u64 {
        let power = u32::from(self.resolution & 0x7f);
        let base: u128 = if self.resolution & 0x80 == 0 { 10 } else { 2 };
        let per_second = base.checked_pow(power).unwrap_or(u128::MAX);
        let nanos = u128::from(units) * 1_000_000_000 / per_second;
        let nanos = i128::try_from(nanos).unwrap_or(i128::MAX);
        let offset = i128::from(self.offset_seconds) * 1_000_000_000;
        nanos.saturating_add(offset).clamp(0, i128::from(u64::MAX)) as u64
    }
}

impl Section {
    /// Returns the length of a block as claimed by its first [`BLOCK_BYTES_MIN`] bytes, or `None`
    /// if `head` is shorter.
    pub(super) fn claimed_bytes(&self, head: &[u8]) -> u32 {
        let Some([k0, k1, k2, k3, a, b, c, d, magic @ ..]) = head.first_chunk::<12>() else {
            return 0;
        };
        // The type of a section header reads the same in both byte orders.
        let section = u32::from_be_bytes([*k0, *k1, *k2, *k3]) == SECTION_HEADER_BLOCK;
        let big_endian = if section { *magic == BIG_ENDIAN_MAGIC } else { self.big_endian };
        let length = [*a, *b, *c, *d];
        if big_endian { u32::from_be_bytes(length) } else { u32::from_le_bytes(length) }
    }

    /// Processes the next complete block. If it is a packet block, returns its frame.
    pub(super) fn block(&mut self, block: &[u8]) -> Result<Option<Packet>, String> {
        let packet = if self.big_endian {
            self.block_in::<BigEndian>(block)?
        } else {
            self.block_in::<LittleEndian>(block)?
        };
        match packet.as_ref().map_or(0, |packet| packet.bytes.len()) {
            0..=FRAME_BYTES_MAX => Ok(packet),
            kept => Err(format!("a frame of {kept} bytes; expected at most {FRAME_BYTES_MAX}")),
        }
    }

    /// Returns the name of an interface.
    pub(super) fn name(&self, interface: usize) -> Option<&str> {
        self.interfaces.get(interface)?.name.as_deref()
    }

    fn block_in<B: ByteOrder>(&mut self, block: &[u8]) -> Result<Option<Packet>, String> {
        let (_, raw) = RawBlock::from_slice::<B>(block).map_err(wrong)?;
        let body = &raw.body[..];
        match raw.type_ {
            SECTION_HEADER_BLOCK => self.section::<B>(body)?,
            INTERFACE_DESCRIPTION_BLOCK => self.interface::<B>(body)?,
            ENHANCED_PACKET_BLOCK => return self.enhanced::<B>(body).map(Some),
            SIMPLE_PACKET_BLOCK => return self.simple::<B>(body).map(Some),
            PACKET_BLOCK => return self.obsolete::<B>(body).map(Some),
            _ => {}
        }
        Ok(None)
    }

    fn section<B: ByteOrder>(&mut self, body: &[u8]) -> Result<(), String> {
        let (fields, _) = split(body, SECTION_BYTES);
        let (_, section) = SectionHeaderBlock::from_slice::<B>(fields).map_err(wrong)?;
        if section.major_version != 1 {
            let version = section.major_version;
            return Err(format!("a section of pcapng version {version}; expected version 1"));
        }
        *self = Section { big_endian: section.endianness.is_big(), interfaces: Vec::new() };
        Ok(())
    }

    fn interface<B: ByteOrder>(&mut self, body: &[u8]) -> Result<(), String> {
        if self.interfaces.len() >= INTERFACES_MAX {
            return Err(format!("one more interface; expected at most {INTERFACES_MAX}"));
        }
        let (fields, options) = split(body, INTERFACE_BYTES);
        let (_, fields) = InterfaceDescriptionBlock::from_slice::<B>(fields).map_err(wrong)?;
        let name = option::<B>(options, OPTION_IF_NAME);
        let resolution = option::<B>(options, OPTION_IF_TSRESOL).and_then(<[u8]>::first);
        let offset = option::<B>(options, OPTION_IF_TSOFFSET).filter(|value| value.len() == 8);
        let fcs = option::<B>(options, OPTION_IF_FCSLEN).and_then(<[u8]>::first);
        self.interfaces.push(Interface {
            name: name.map(|name| split(name, NAME_BYTES_MAX).0).map(text),
            link_type: LinkType(u32::from(fields.linktype) as u16),
            has_fcs: fcs.is_some_and(|&length| length > 0),
            snap_bytes: fields.snaplen,
            resolution: resolution.copied().unwrap_or(6),
            offset_seconds: offset.map_or(0, B::read_i64),
        });
        Ok(())
    }

    fn enhanced<B: ByteOrder>(&self, body: &[u8]) -> Result<Packet, String> {
        let (fields, options) = packet_fields::<B>(body);
        let (_, fields) = EnhancedPacketBlock::from_slice::<B>(fields).map_err(wrong)?;
        let flags = option::<B>(options, OPTION_EPB_FLAGS).filter(|value| value.len() == 4);
        // The crate treats any unit as nanoseconds, so this value is the number of units.
        let units = fields.timestamp.as_nanos() as u64;
        let lengths = (fields.data.len(), fields.original_len);
        let flags = flags.map_or(0, B::read_u32);
        let packet = self.packet(fields.interface_id, units, lengths)?;
        let packet = Packet { direction: Direction::of_flags(flags), ..packet };
        let has_fcs = flags & FLAGS_FCS != 0 || self.described(fields.interface_id)?.has_fcs;
        Ok(packet.without_fcs(has_fcs))
    }

    /// Parses a packet block of the obsolete type, which enhanced packet blocks have replaced.
    fn obsolete<B: ByteOrder>(&self, body: &[u8]) -> Result<Packet, String> {
        let (fields, _) = packet_fields::<B>(body);
        let (_, fields) = PacketBlock::from_slice::<B>(fields).map_err(wrong)?;
        // Two words, the higher one first, but the crate reads one long word.
        let units = fields.timestamp;
        let units = if self.big_endian { units } else { units.rotate_left(32) };
        let lengths = (fields.data.len(), fields.original_len);
        let packet = self.packet(fields.interface_id.into(), units, lengths)?;
        let has_fcs = self.described(fields.interface_id.into())?.has_fcs;
        Ok(packet.without_fcs(has_fcs))
    }

    fn simple<B: ByteOrder>(&self, body: &[u8]) -> Result<Packet, String> {
        let (_, fields) = SimplePacketBlock::from_slice::<B>(body).map_err(wrong)?;
        let interface = self.described(0)?;
        let wire_bytes = fields.original_len as usize;
        let snap_bytes = match interface.snap_bytes {
            0 => usize::MAX,
            bytes => bytes as usize,
        };
        // The bytes after the frame are padding.
        let kept = fields.data.len().min(wire_bytes).min(snap_bytes);
        let packet = Packet {
            interface: Some(0),
            link_type: interface.link_type,
            unix_nanos: None,
            direction: None,
            wire_bytes,
            bytes: 12..12 + kept,
        };
        Ok(packet.without_fcs(interface.has_fcs))
    }

    /// Returns a frame at an interface, with its captured and wire lengths.
    fn packet(&self, id: u32, units: u64, (kept, wire): (usize, u32)) -> Result<Packet, String> {
        let interface = self.described(id)?;
        Ok(Packet {
            interface: Some(id as usize),
            link_type: interface.link_type,
            unix_nanos: Some(interface.nanos(units)),
            direction: None,
            wire_bytes: (wire as usize).max(kept),
            bytes: 8 + PACKET_BYTES..8 + PACKET_BYTES + kept,
        })
    }

    fn described(&self, id: u32) -> Result<&Interface, String> {
        let known = self.interfaces.len();
        let missing = || format!("a frame of interface {id}, of which {known} are described");
        self.interfaces.get(id as usize).ok_or_else(missing)
    }
}

/// Splits a packet block into its fields with the frame, and its options.
fn packet_fields<B: ByteOrder>(body: &[u8]) -> (&[u8], &[u8]) {
    let kept = body.get(12..16).map_or(0, B::read_u32);
    let kept = usize::try_from(kept).unwrap_or(usize::MAX).min(body.len());
    split(body, PACKET_BYTES + kept.next_multiple_of(4))
}

/// Splits off the first `bytes` bytes, or all bytes if there are fewer.
fn split(all: &[u8], bytes: usize) -> (&[u8], &[u8]) {
    all.split_at(bytes.min(all.len()))
}

/// Returns the value of the first option with this code in an option list.
fn option<B: ByteOrder>(mut list: &[u8], code: u16) -> Option<&[u8]> {
    while list.len() >= 4 {
        let (found, bytes) = (B::read_u16(list), usize::from(B::read_u16(&list[2..])));
        if found == OPTION_END {
            break;
        }
        let value = list.get(4..4 + bytes)?;
        if found == code {
            return Some(value);
        }
        list = list.get(4 + bytes.next_multiple_of(4)..)?;
    }
    None
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
