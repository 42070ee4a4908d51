//! Reads frames out of a capture: pcap or pcapng, Ethernet only.
//!
//! pcap (draft-ietf-opsawg-pcap): a header of 24 bytes whose first four tell the byte order
//! and whether times count micro- or nanoseconds; then records with a header of 16 bytes.
//! pcapng (draft-ietf-opsawg-pcapng): blocks of a type, a length, a body and the length again.
//! A section header tells the byte order; interface descriptions tell link type and unit of
//! time; enhanced and simple packet blocks hold frames. Blocks of other types are passed over.

use axon_wire::Span;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
const OPTION_END: u16 = 0;
const OPTION_IF_TSRESOL: u16 = 9;
/// LINKTYPE_ETHERNET.
const ETHERNET: u32 = 1;
/// The longest record that is believed.
const FRAME_BYTES_MAX: usize = 256 << 10;

/// A frame of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedFrame {
    /// When it was seen, after the first of the capture. A clock that ran back counts as one
    /// that stood still.
    pub at: Span,
    /// What was kept of it, without FCS.
    pub bytes: Vec<u8>,
    /// How long it was on the wire, in bytes.
    pub wire_bytes: usize,
}

/// Why a capture cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CaptureError {
    /// Neither pcap nor pcapng.
    #[error("it is neither a pcap nor a pcapng file")]
    NotACapture,
    /// The frames are not Ethernet.
    #[error("its frames are of link type {0}, not Ethernet (1)")]
    LinkType(u32),
    /// A record or block contradicts itself.
    #[error("the record at byte {0} is broken")]
    Broken(usize),
}

/// Reads all frames. A record that the end of the file cuts off is left out, as a capture
/// that was broken off has one.
///
/// # Errors
/// If it is no capture, not one of Ethernet, or broken.
pub fn read(bytes: &[u8]) -> Result<Vec<CapturedFrame>, CaptureError> {
    let magic = bytes.first_chunk::<4>().ok_or(CaptureError::NotACapture)?;
    let frames = match (u32::from_le_bytes(*magic), u32::from_be_bytes(*magic)) {
        (0xa1b2_c3d4, _) => pcap(Reader { bytes, big: false }, 1000)?,
        (0xa1b2_3c4d, _) => pcap(Reader { bytes, big: false }, 1)?,
        (_, 0xa1b2_c3d4) => pcap(Reader { bytes, big: true }, 1000)?,
        (_, 0xa1b2_3c4d) => pcap(Reader { bytes, big: true }, 1)?,
        (SECTION_HEADER, _) => pcapng(bytes)?,
        _ => return Err(CaptureError::NotACapture),
    };
    let Some(&(first, ..)) = frames.first() else {
        return Ok(Vec::new());
    };
    let mut latest = Span::ZERO;
    let frames = frames.into_iter().map(|(nanos, bytes, wire_bytes)| {
        latest = latest.max(Span::from_nanos(nanos.saturating_sub(first)));
        CapturedFrame { at: latest, bytes: bytes.to_vec(), wire_bytes }
    });
    Ok(frames.collect())
}

/// Nanoseconds, bytes kept and length of a frame.
type Record<'a> = (u64, &'a [u8], usize);

/// Numbers in the file's byte order.
#[derive(Clone, Copy)]
struct Reader<'a> {
    bytes: &'a [u8],
    big: bool,
}

impl<'a> Reader<'a> {
    fn u32(self, at: usize) -> Option<u32> {
        let word = *self.bytes.get(at..)?.first_chunk()?;
        Some(if self.big { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) })
    }

    fn u16(self, at: usize) -> Option<u16> {
        let word = *self.bytes.get(at..)?.first_chunk()?;
        Some(if self.big { u16::from_be_bytes(word) } else { u16::from_le_bytes(word) })
    }

    fn slice(self, at: usize, length: usize) -> Option<&'a [u8]> {
        self.bytes.get(at..)?.get(..length)
    }
}

fn pcap(reader: Reader<'_>, nanos_per_unit: u64) -> Result<Vec<Record<'_>>, CaptureError> {
    let link_type = reader.u32(20).ok_or(CaptureError::NotACapture)? & 0x0fff_ffff;
    if link_type != ETHERNET {
        return Err(CaptureError::LinkType(link_type));
    }
    let mut frames = Vec::new();
    let mut at = 24;
    while let (Some(seconds), Some(part), Some(kept), Some(length)) =
        (reader.u32(at), reader.u32(at + 4), reader.u32(at + 8), reader.u32(at + 12))
    {
        let kept = kept as usize;
        if kept > FRAME_BYTES_MAX {
            return Err(CaptureError::Broken(at));
        }
        let Some(bytes) = reader.slice(at + 16, kept) else {
            break;
        };
        let nanos = u64::from(seconds) * 1_000_000_000 + u64::from(part) * nanos_per_unit;
        frames.push((nanos, bytes, (length as usize).max(kept)));
        at += 16 + kept;
    }
    Ok(frames)
}

/// What an interface description says.
struct Interface {
    link_type: u32,
    /// `if_tsresol`: negative power of ten, or of two with the highest bit set.
    resolution: u8,
}

impl Interface {
    fn nanos(&self, units: u64) -> u64 {
        let power = u32::from(self.resolution & 0x7f);
        let base: u128 = if self.resolution & 0x80 == 0 { 10 } else { 2 };
        let per_second = base.checked_pow(power).unwrap_or(u128::MAX);
        u64::try_from(u128::from(units) * 1_000_000_000 / per_second).unwrap_or(u64::MAX)
    }
}

fn pcapng(bytes: &[u8]) -> Result<Vec<Record<'_>>, CaptureError> {
    let mut reader = Reader { bytes, big: false };
    let mut interfaces: Vec<Interface> = Vec::new();
    let mut frames: Vec<Record<'_>> = Vec::new();
    let mut at = 0;
    while at + 12 <= bytes.len() {
        if reader.u32(at) == Some(SECTION_HEADER) {
            // The byte order of this section, by its magic number.
            reader.big = bytes.get(at + 8..at + 12) == Some(&[0x1a, 0x2b, 0x3c, 0x4d]);
            interfaces.clear();
        }
        let broken = CaptureError::Broken(at);
        let (Some(kind), Some(length)) = (reader.u32(at), reader.u32(at + 4)) else { break };
        let length = length as usize;
        if length < 12 || !length.is_multiple_of(4) {
            return Err(broken);
        }
        let Some(body) = reader.slice(at + 8, length - 12) else { break };
        let body = Reader { bytes: body, big: reader.big };
        match kind {
            INTERFACE_DESCRIPTION => interfaces.push(interface(body).ok_or(broken)?),
            ENHANCED_PACKET => frames.push(enhanced(body, &interfaces).ok_or(broken)??),
            SIMPLE_PACKET => {
                let wire_bytes = body.u32(0).ok_or(broken.clone())? as usize;
                let kept = wire_bytes.min(body.bytes.len() - 4);
                let nanos = frames.last().map_or(0, |last| last.0);
                frames.push((nanos, body.slice(4, kept).ok_or(broken)?, wire_bytes));
            }
            _ => {}
        }
        at += length;
    }
    Ok(frames)
}

fn interface(body: Reader<'_>) -> Option<Interface> {
    let mut interface = Interface { link_type: u32::from(body.u16(0)?), resolution: 6 };
    let mut at = 8;
    while let (Some(code), Some(length)) = (body.u16(at), body.u16(at + 2)) {
        if code == OPTION_END {
            break;
        }
        if code == OPTION_IF_TSRESOL {
            interface.resolution = *body.bytes.get(at + 4)?;
        }
        at += 4 + usize::from(length).next_multiple_of(4);
    }
    Some(interface)
}

fn enhanced<'a>(
    body: Reader<'a>,
    interfaces: &[Interface],
) -> Option<Result<Record<'a>, CaptureError>> {
    let interface = interfaces.get(body.u32(0)? as usize)?;
    if interface.link_type != ETHERNET {
        return Some(Err(CaptureError::LinkType(interface.link_type)));
    }
    let units = u64::from(body.u32(4)?) << 32 | u64::from(body.u32(8)?);
    let kept = body.u32(12)? as usize;
    let bytes = body.slice(20, kept)?;
    Some(Ok((interface.nanos(units), bytes, (body.u32(16)? as usize).max(kept))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pcap file with these frames: seconds, part, bytes.
    fn pcap_file(big: bool, magic: u32, frames: &[(u32, u32, &[u8])]) -> Vec<u8> {
        let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
        let mut file = word(magic).to_vec();
        file.extend([0; 16]);
        file.extend(word(ETHERNET));
        for (seconds, part, bytes) in frames {
            for value in [*seconds, *part, bytes.len() as u32, bytes.len() as u32 + 4] {
                file.extend(word(value));
            }
            file.extend(*bytes);
        }
        file
    }

    fn block(kind: u32, body: &[u8]) -> Vec<u8> {
        let length = (12 + body.len().next_multiple_of(4)) as u32;
        let mut block = [kind.to_le_bytes(), length.to_le_bytes()].concat();
        block.extend(body);
        block.resize(length as usize - 4, 0);
        block.extend(length.to_le_bytes());
        block
    }

    fn pcapng_file(link_type: u16, resolution: u8) -> Vec<u8> {
        let mut file = block(SECTION_HEADER, &[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0]);
        let mut description = vec![0; 8];
        description[..2].copy_from_slice(&link_type.to_le_bytes());
        description.extend([2, 0, 1, 0, b'x', 0, 0, 0, 9, 0, 1, 0, resolution, 0, 0, 0]);
        file.extend(block(INTERFACE_DESCRIPTION, &description));
        file.extend(block(99, &[1, 2, 3]));
        for (units, bytes) in [(1_000_000u64, [7u8; 61]), (1_000_250, [8; 61])] {
            let mut body = vec![0; 4];
            body.extend(((units >> 32) as u32).to_le_bytes());
            body.extend((units as u32).to_le_bytes());
            body.extend([61u32.to_le_bytes(), 1514u32.to_le_bytes()].concat());
            body.extend(bytes);
            file.extend(block(ENHANCED_PACKET, &body));
        }
        file
    }

    #[test]
    fn pcap_is_read_in_both_byte_orders_and_both_units() {
        let frames: [(u32, u32, &[u8]); 2] = [(10, 999_999, &[1; 60]), (11, 2, &[2; 70])];
        for (big, magic, after) in [
            (false, 0xa1b2_c3d4, 3_000),
            (true, 0xa1b2_c3d4, 3_000),
            (true, 0xa1b2_3c4d, 999_000_003),
        ] {
            let mut file = pcap_file(big, magic, &frames);
            let read_all = read(&file).unwrap();
            assert_eq!(read_all[0].at, Span::ZERO);
            assert_eq!(read_all[1].at, Span::from_nanos(after));
            assert_eq!((&read_all[1].bytes[..], read_all[1].wire_bytes), (&[2; 70][..], 74));
            file.truncate(file.len() - 1);
            assert_eq!(read(&file).unwrap().len(), 1, "the one cut off is left out");
        }
    }

    #[test]
    fn pcapng_is_read_with_its_unit_of_time() {
        for (resolution, nanos) in [(6, 250_000), (9, 250), (0x94, 238_418)] {
            let frames = read(&pcapng_file(1, resolution)).unwrap();
            assert_eq!(frames.len(), 2);
            assert_eq!((&frames[1].bytes[..], frames[1].wire_bytes), (&[8; 61][..], 1514));
            let apart = frames[1].at.as_nanos();
            assert!(apart.abs_diff(nanos) <= 1, "{resolution}: {apart}");
        }
    }

    #[test]
    fn what_is_no_capture_is_refused_and_nothing_panics() {
        assert_eq!(read(b"GIF89a"), Err(CaptureError::NotACapture));
        assert_eq!(read(b""), Err(CaptureError::NotACapture));
        assert_eq!(read(&pcapng_file(147, 6)), Err(CaptureError::LinkType(147)));
        let whole = pcapng_file(1, 6);
        let mut random = oorandom::Rand64::new(5);
        for cut in 0..whole.len() {
            let _ = read(&whole[..cut]);
            let mut altered = whole.clone();
            altered[cut] = random.rand_u64() as u8;
            let _ = read(&altered);
        }
    }
}
