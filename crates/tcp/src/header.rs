//! The TCP header on the wire (RFC 9293 §3.1), its options and its checksum.

use crate::segment::{Flags, Options, Segment, Seq};
use core::net::Ipv4Addr;

/// Length of a header without options, in bytes.
const HEADER_BYTES: usize = 20;
/// IP protocol number of TCP.
const PROTOCOL: u32 = 6;

const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;

/// Source address and port, then destination address and port.
pub type Ends = ((Ipv4Addr, u16), (Ipv4Addr, u16));

/// Bytes at the end of a payload that repeat one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Filled {
    /// Repeated byte.
    byte: u8,
    /// Number of bytes.
    count: u32,
}

/// Returns the length of the options in bytes, a multiple of four.
pub(crate) fn option_bytes(options: &Options) -> usize {
    let blocks = options.sacks.as_slice().len();
    let sacks = if blocks > 0 { 4 + 8 * blocks } else { 0 };
    let permitted = if options.sack_permitted { 4 } else { 0 };
    let (mss, scale) = (options.mss.map_or(0, |_| 4), options.scale.map_or(0, |_| 4));
    mss + scale + permitted + sacks
}

/// Returns the length of a segment's header in bytes.
pub fn header_bytes(segment: &Segment) -> usize {
    HEADER_BYTES + option_bytes(&segment.options)
}

/// Writes a segment's header to the first [`header_bytes`] bytes of `stored`. The first bytes of
/// the payload follow it there, and `byte` repeats in the others. Writes nothing if `stored` is
/// shorter than the header.
pub fn emit(segment: &Segment, ends: Ends, byte: u8, stored: &mut [u8]) {
    let length = header_bytes(segment);
    let Some(header) = stored.get_mut(..length) else { return };
    let (fixed, mut rest) = header.split_at_mut(HEADER_BYTES);
    fixed.fill(0);
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        fixed[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    put(&ends.0.1.to_be_bytes());
    put(&ends.1.1.to_be_bytes());
    put(&segment.seq.0.to_be_bytes());
    put(&segment.ack.0.to_be_bytes());
    put(&[(length as u8 / 4) << 4, segment.flags.0]);
    put(&segment.window.to_be_bytes());
    let mut option = |bytes: &[u8]| {
        let (here, after) = core::mem::take(&mut rest).split_at_mut(bytes.len());
        here.copy_from_slice(bytes);
        rest = after;
    };
    let Options { mss, scale, sack_permitted, sacks } = &segment.options;
    if let Some(mss) = mss {
        let [high, low] = mss.to_be_bytes();
        option(&[MSS, 4, high, low]);
    }
    if let Some(scale) = scale {
        option(&[NOP, SCALE, 3, *scale]);
    }
    if *sack_permitted {
        option(&[NOP, NOP, SACK_PERMITTED, 2]);
    }
    if !sacks.is_empty() {
        option(&[NOP, NOP, SACK, 2 + 8 * sacks.as_slice().len() as u8]);
    }
    for (from, to) in sacks.as_slice() {
        option(&from.0.to_be_bytes());
        option(&to.0.to_be_bytes());
    }
    let (all, here) = (length + segment.bytes as usize, stored.len());
    let filled = Filled { byte, count: all.saturating_sub(here) as u32 };
    let sum = checksum(ends, &stored[..all.min(here)], filled);
    stored[16..18].copy_from_slice(&sum.to_be_bytes());
}

/// Parses a header. `bytes` is the length of header and payload according to the IP header. Returns
/// the source and destination ports and the segment, without its ECN mark, or `None` if the header
/// is malformed. The checksum is not verified.
pub fn parse(header: &[u8], bytes: usize) -> Option<((u16, u16), Segment)> {
    let fixed: &[u8; HEADER_BYTES] = header.first_chunk()?;
    let length = usize::from(fixed[12] >> 4) * 4;
    let options = parse_options(header.get(HEADER_BYTES..length)?);
    let pair = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
    let word = |at: usize| (u32::from(pair(at)) << 16) | u32::from(pair(at + 2));
    let segment = Segment {
        seq: Seq(word(4)),
        ack: Seq(word(8)),
        flags: Flags(fixed[13]),
        window: pair(14),
        options,
        bytes: u32::try_from(bytes.checked_sub(length)?).ok()?,
        mark: Default::default(),
    };
    Some(((pair(0), pair(2)), segment))
}

/// Parses the options. Unknown and malformed options are skipped.
fn parse_options(mut rest: &[u8]) -> Options {
    let mut options = Options::default();
    while let [kind, after @ ..] = rest {
        if *kind == NOP {
            rest = after;
            continue;
        }
        let Some(&length) = after.first().filter(|_| *kind != END) else { break };
        let Some(value) = rest.get(2..usize::from(length)) else { break };
        match (*kind, value) {
            (MSS, &[high, low]) => options.mss = Some(u16::from_be_bytes([high, low])),
            (SCALE, &[scale]) => options.scale = Some(scale),
            (SACK_PERMITTED, []) => options.sack_permitted = true,
            (SACK, blocks) => {
                for block in blocks.chunks_exact(8) {
                    let word = |at: usize| {
                        u32::from_be_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]])
                    };
                    options.sacks.push((Seq(word(0)), Seq(word(4))));
                }
            }
            _ => {}
        }
        rest = &rest[usize::from(length)..];
    }
    options
}

/// Returns the complement of the one's complement sum of pseudo header, header and payload (RFC
/// 9293 §3.1).
fn checksum(ends: Ends, stored: &[u8], filled: Filled) -> u16 {
    let pair = |high: u8, low: u8| u64::from(u16::from_be_bytes([high, low]));
    let Filled { byte, mut count } = filled;
    let mut sum = u64::from(PROTOCOL) + stored.len() as u64 + u64::from(count);
    for ip in [ends.0.0, ends.1.0] {
        let [a, b, c, d] = ip.octets();
        sum += pair(a, b) + pair(c, d);
    }
    for word in stored.chunks(2) {
        let next = if count > 0 { byte } else { 0 };
        sum += pair(word[0], word.get(1).copied().unwrap_or(next));
    }
    // An odd byte has the first of the others beside it.
    count = count.saturating_sub(stored.len() as u32 % 2);
    sum += u64::from(count / 2) * pair(byte, byte) + u64::from(count % 2) * pair(byte, 0);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Sacks;

    /// Maximum header length, in bytes.
    const HEADER_BYTES_MAX: usize = 60;
    const ENDS: Ends = ((Ipv4Addr::new(10, 0, 0, 1), 49152), (Ipv4Addr::new(10, 0, 0, 2), 80));

    /// Returns whether the checksum of a header and its payload is correct: of the stored bytes and
    /// those behind them.
    fn verify(ends: Ends, stored: &[u8], filled: Filled) -> bool {
        checksum(ends, stored, filled) == 0
    }

    fn full() -> Segment {
        let mut sacks = Sacks::default();
        sacks.push((Seq(100), Seq(200)));
        sacks.push((Seq(u32::MAX), Seq(5)));
        Segment {
            seq: Seq(0x0102_0304),
            ack: Seq(0xfffe_fdfc),
            flags: Flags::SYN | Flags::ACK | Flags::ECE,
            window: 0xabcd,
            options: Options { mss: Some(1460), scale: Some(7), sack_permitted: true, sacks },
            bytes: 1001,
            mark: Default::default(),
        }
    }

    #[test]
    fn what_is_written_is_read_and_its_checksum_fits() {
        for bytes in [0, 1, 1001, 8960] {
            let segment = Segment { bytes, ..full() };
            let mut room = [0xee; HEADER_BYTES_MAX];
            let length = header_bytes(&segment);
            assert_eq!(length, 20 + 4 + 4 + 4 + 20);
            emit(&segment, ENDS, 0x61, &mut room[..length]);
            let header = &room[..length];
            assert_eq!(parse(header, length + bytes as usize), Some(((49152, 80), segment)));
            let payload = Filled { byte: 0x61, count: bytes };
            assert!(verify(ENDS, header, payload));
            assert!(bytes == 0 || !verify(ENDS, header, Filled { byte: 0x62, ..payload }));
            assert_eq!(room[length], 0xee, "nothing behind it");
        }
    }

    #[test]
    fn the_sum_of_a_described_payload_is_that_of_a_stored_one() {
        let segment = Segment { bytes: 7, ..Segment::default() };
        let mut whole = [0x61; 27];
        whole[20..24].copy_from_slice(&[1, 2, 3, 4]);
        emit(&segment, ENDS, 0x61, &mut whole);
        assert!(verify(ENDS, &whole, Filled::default()));
        for stored in 24..27 {
            let mut room = whole;
            emit(&segment, ENDS, 0x61, &mut room[..stored]);
            let filled = Filled { byte: 0x61, count: 27 - stored as u32 };
            assert!(room == whole && verify(ENDS, &room[..stored], filled), "{stored}");
        }
    }

    #[test]
    fn malformed_headers_are_none_and_malformed_options_are_left_out() {
        let mut room = [0; HEADER_BYTES_MAX];
        emit(&full(), ENDS, 0, &mut room);
        let length = header_bytes(&full());
        assert!((0..length).all(|cut| parse(&room[..cut], 2000).is_none()));
        assert!(parse(&room, length - 1).is_none());
        let mut short = room;
        short[12] = 4 << 4;
        assert!(parse(&short, 2000).is_none());
        for length in [0, 1, 40, 255] {
            let options = parse_options(&[MSS, length, 1, 2]);
            assert_eq!(options, Options::default(), "{length}");
        }
        assert_eq!(parse_options(&[NOP, END, MSS, 4, 1, 2]).mss, None);
        assert_eq!(parse_options(&[77, 3, 0, MSS, 4, 1, 2]).mss, Some(258));
        emit(&full(), ENDS, 0, &mut [0; 10]);
    }
}
