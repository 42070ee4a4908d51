//! TCP and UDP checksums in captures taken inside a host.
//!
//! A host with default offloads leaves the checksum to its NIC. The field then holds the sum of the
//! pseudo-header, uncomplemented. Between hosts on one machine, it is never finished, because no
//! wire can damage the frame. A frame with any other sum has been damaged.

/// State of the checksum in a captured frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// The checksum is valid.
    Right,
    /// The field holds the sum of the pseudo-header, and the rest is left to a NIC.
    LeftToNic,
    /// The checksum is invalid.
    Wrong,
    /// The checksum cannot be checked, because the protocol is another one, the packet is a
    /// fragment, or the capture has truncated it.
    Unknown,
}

/// Protocol numbers for IPv4, TCP and UDP, and the positions of their checksums.
const IPV4: [u8; 2] = [0x08, 0x00];
const TCP: (u8, usize) = (6, 16);
const UDP: (u8, usize) = (17, 6);
const ETHERNET_BYTES: usize = 14;

/// Checks an Ethernet frame, which may be truncated.
pub(crate) fn judge(frame: &[u8]) -> Checksum {
    read(frame).unwrap_or(Checksum::Unknown)
}

fn read(frame: &[u8]) -> Option<Checksum> {
    if frame.get(12..14)? != IPV4 {
        return None;
    }
    let packet = &frame[ETHERNET_BYTES..];
    let word = |at: usize| Some(u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?]));
    let header = usize::from(packet.first()? & 0xf) * 4;
    let (total, fragment) = (usize::from(word(2)?), word(6)?);
    let is_fragment = fragment & 0x3fff != 0;
    let (protocol, at) =
        [TCP, UDP].into_iter().find(|(protocol, _)| packet.get(9) == Some(protocol))?;
    if is_fragment {
        return None;
    }
    let segment_bytes = total.checked_sub(header)?;
    let found = word(header + at)?;
    if protocol == UDP.0 && found == 0 {
        return Some(Checksum::Right);
    }
    let length = (segment_bytes as u16).to_be_bytes();
    let pseudo = sum(packet.get(12..20)?) + u64::from(protocol) + sum(&length);
    if is_same(fold(pseudo), found) {
        return Some(Checksum::LeftToNic);
    }
    let segment = packet.get(header..total)?;
    let is_right = is_same(fold(pseudo + sum(segment)), 0xffff);
    Some(if is_right { Checksum::Right } else { Checksum::Wrong })
}

/// Returns the sum of all 16-bit words. An odd last byte is the upper half of a word (RFC 1071).
fn sum(bytes: &[u8]) -> u64 {
    let word = |pair: &[u8]| u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u64::from(*low));
    bytes.chunks(2).map(word).sum()
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Ones' complement has two representations of zero.
fn is_same(a: u16, b: u16) -> bool {
    a == b || a.wrapping_add(b) == 0xffff && (a == 0 || b == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a UDP frame from 10.0.0.1 to 10.0.0.2, with ports 1 and 2 and the payload `hey`.
    fn frame(checksum: u16) -> Vec<u8> {
        let mut frame = vec![2; 12];
        frame.extend(IPV4);
        frame.extend([0x45, 0, 0, 31, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([0, 1, 0, 2, 0, 11]);
        frame.extend(checksum.to_be_bytes());
        frame.extend(b"hey");
        // Padding up to the shortest frame is not part of the packet.
        frame.resize(60, 9);
        frame
    }

    /// Sum of the addresses 0x0a00 + 1 + 0x0a00 + 2, protocol 17, and length 11.
    const PSEUDO: u16 = 0x0a00 + 1 + 0x0a00 + 2 + 17 + 11;
    /// Checksum over `PSEUDO`, ports 1 and 2, the length again, `he` and `y`.
    const RIGHT: u16 = !(PSEUDO + 1 + 2 + 11 + 0x6865 + 0x7900);

    #[test]
    fn a_checksum_is_right_or_left_to_a_nic_or_wrong() {
        assert_eq!(judge(&frame(RIGHT)), Checksum::Right);
        assert_eq!(judge(&frame(PSEUDO)), Checksum::LeftToNic);
        assert_eq!(judge(&frame(0)), Checksum::Right, "UDP may have none");
        for wrong in [RIGHT ^ 1, PSEUDO + 1, !PSEUDO, 0xffff] {
            assert_eq!(judge(&frame(wrong)), Checksum::Wrong, "{wrong:#06x}");
        }
        let mut damaged = frame(RIGHT);
        damaged[43] ^= 0x40;
        assert_eq!(judge(&damaged), Checksum::Wrong);
    }

    #[test]
    fn a_frame_that_is_cut_short_shows_only_whether_its_checksum_was_left_to_a_nic() {
        assert_eq!(judge(&frame(RIGHT)[..44]), Checksum::Unknown);
        assert_eq!(judge(&frame(PSEUDO)[..44]), Checksum::LeftToNic);
        for short in 0..42 {
            assert_eq!(judge(&frame(RIGHT)[..short]), Checksum::Unknown, "{short}");
        }
    }

    #[test]
    fn other_protocols_and_fragments_have_none_to_judge() {
        for (at, value) in [(13, 6), (23, 1), (20, 0x20), (21, 1)] {
            let mut other = frame(RIGHT);
            other[at] = value;
            assert_eq!(judge(&other), Checksum::Unknown, "byte {at}");
        }
    }
}
