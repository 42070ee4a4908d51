//! Undoes offloads: restores removed tags and completes checksums.
//!
//! Inside a host, a frame may be incomplete, because a device is expected to finish it. Here, the
//! frame leaves the host's kernel for good, so it is completed at this edge.

/// Missing checksum, as in `struct virtio_net_hdr`. The sum covers the frame from byte `start` to
/// the end, and is stored at `start + offset`. The field already holds the sum of the
/// pseudo-header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartialChecksum {
    /// Offset of the first byte in the sum, from the start of the frame.
    pub start: usize,
    /// Offset of the checksum field from `start`.
    pub offset: usize,
}

/// Completes a checksum in place. Returns false if it does not lie inside the frame.
///
/// The checksum is the ones' complement sum of all 16-bit words (RFC 1071), for any protocol. A
/// result of zero is sent as all ones, because zero would mean "none" for UDP (RFC 768), and for
/// TCP both are equal.
pub fn complete_checksum(frame: &mut [u8], partial: PartialChecksum) -> bool {
    let Some(summed) = frame.get_mut(partial.start..) else {
        return false;
    };
    if partial.offset + 2 > summed.len() {
        return false;
    }
    let words = summed.chunks_exact(2);
    let odd = words.remainder().first().map_or(0, |byte| u64::from(*byte) << 8);
    let mut sum = words.map(|word| u64::from(u16::from_be_bytes([word[0], word[1]]))).sum::<u64>();
    sum += odd;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    let checksum = match !(sum as u16) {
        0 => 0xffff,
        checksum => checksum,
    };
    summed[partial.offset..partial.offset + 2].copy_from_slice(&checksum.to_be_bytes());
    true
}

/// Appends `frame` to `store`, and restores the tag that the kernel removed, at offset 12.
///
/// The kernel removes anything that looks like a tag, even from an Axon packet whose hops happen to
/// read 0x8100. The bytes are therefore restored on every port.
pub(crate) fn append_with_tag(store: &mut Vec<u8>, frame: &[u8], tag: Option<[u8; 4]>) {
    match (tag, frame.split_at_checked(12)) {
        (Some(tag), Some((addresses, rest))) => {
            store.extend_from_slice(addresses);
            store.extend_from_slice(&tag);
            store.extend_from_slice(rest);
        }
        _ => store.extend_from_slice(frame),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the ones' complement sum of `bytes`, which is all ones over a completed range.
    fn folded(bytes: &[u8]) -> u16 {
        let sum = bytes
            .chunks(2)
            .map(|word| u32::from(word[0]) << 8 | word.get(1).map_or(0, |byte| u32::from(*byte)));
        let sum = sum.sum::<u32>();
        (sum & 0xffff) as u16 + (sum >> 16) as u16
    }

    #[test]
    fn a_completed_checksum_verifies_for_even_and_odd_lengths() {
        for length in [20, 21] {
            let mut frame: Vec<u8> = (0..length).collect();
            frame[10..12].copy_from_slice(&[0x12, 0x34]);
            let pseudo = 0x1234;
            assert!(complete_checksum(&mut frame, PartialChecksum { start: 4, offset: 6 }));
            let rest = u32::from(folded(&frame[4..])) + pseudo;
            assert_eq!((rest & 0xffff) + (rest >> 16), 0xffff);
        }
    }

    #[test]
    fn a_sum_of_zero_is_sent_as_all_ones() {
        let mut frame = [0xff, 0xff, 0, 0];
        assert!(complete_checksum(&mut frame, PartialChecksum { start: 0, offset: 2 }));
        assert_eq!(frame, [0xff, 0xff, 0xff, 0xff]);
    }

    #[test]
    fn a_checksum_outside_the_frame_is_refused() {
        let mut frame = [0; 10];
        for (start, offset) in [(11, 0), (9, 0), (4, 5), (usize::MAX, 0)] {
            assert!(!complete_checksum(&mut frame, PartialChecksum { start, offset }));
        }
    }

    #[test]
    fn the_tag_goes_back_exactly_where_it_was() {
        let mut store = vec![7];
        append_with_tag(&mut store, &[1; 14], Some([0x81, 0, 0x20, 5]));
        assert_eq!(store[1..], [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0x81, 0, 0x20, 5, 1, 1]);
        store.clear();
        append_with_tag(&mut store, &[1; 5], Some([0x81, 0, 0, 5]));
        assert_eq!(store, [1; 5]);
    }
}
