//! Records of pcap files. The first four bytes of the file define the byte order and whether times
//! are in micro- or nanoseconds.

use super::block::Packet;
use super::error::wrong;
use super::frame::LinkType;
use byteorder_slice::{BigEndian, ByteOrder, LittleEndian};
use pcap_file::pcap::PcapParser;
use pcap_file::{Endianness, PcapError, TsResolution};

/// Length of the file header in bytes.
pub(super) const HEADER_BYTES: usize = 24;
/// Length of a record header in bytes.
pub(super) const RECORD_HEADER_BYTES: usize = 16;

/// Flag beside the link type: the length of the FCS is known.
const FCS_IS_KNOWN: u32 = 1 << 26;
/// Length of the FCS beside the link type, in words of 16 bits.
const FCS_WORDS: u32 = 0xf << 28;

/// Context for the records of a pcap file, from its header.
pub(super) struct Legacy {
    parser: PcapParser,
    link_type: LinkType,
    has_fcs: bool,
}

impl Legacy {
    /// Parses the header of a file, which has [`HEADER_BYTES`] bytes.
    pub(super) fn new(header: &[u8]) -> Result<Legacy, PcapError> {
        let (_, parser) = PcapParser::new(header)?;
        // Above the 16 bits of the link type are flags (draft-ietf-opsawg-pcap section 4).
        let field = u32::from(parser.header().datalink);
        let has_fcs = field & FCS_IS_KNOWN != 0 && field & FCS_WORDS != 0;
        Ok(Legacy { parser, link_type: LinkType(field as u16), has_fcs })
    }

    /// Returns the length of a record's data as claimed by its header, or `None` if `head` is
    /// shorter than a header.
    pub(super) fn claimed_bytes(&self, head: &[u8]) -> u32 {
        let length = head.get(8..12).unwrap_or(&[0; 4]);
        match self.parser.header().endianness {
            Endianness::Big => BigEndian::read_u32(length),
            Endianness::Little => LittleEndian::read_u32(length),
        }
    }

    /// Parses a complete record. Uses the crate's raw form, because the checked one refuses a frame
    /// that was longer on the wire than the snap length.
    pub(super) fn packet(&self, record: &[u8]) -> Result<Packet, String> {
        let (_, raw) = self.parser.next_raw_packet(record).map_err(wrong)?;
        let unit = match self.parser.header().ts_resolution {
            TsResolution::MicroSecond => 1_000,
            TsResolution::NanoSecond => 1,
        };
        let kept = raw.data.len();
        let packet = Packet {
            interface: None,
            link_type: self.link_type,
            unix_nanos: Some(u64::from(raw.ts_sec) * 1_000_000_000 + u64::from(raw.ts_frac) * unit),
            direction: None,
            wire_bytes: (raw.orig_len as usize).max(kept),
            bytes: RECORD_HEADER_BYTES..RECORD_HEADER_BYTES + kept,
        };
        Ok(packet.without_fcs(self.has_fcs))
    }
}
