//! Validity checks of Ethernet frames.

use axon_node::Drop;
use axon_wire::cn;
use axon_wire::host_frame::{Kind, classify};
use axon_wire::link::ETHERNET_BYTES;

/// Returns the reason why `frame` is not an Ethernet frame that a host may send or receive: it has
/// no header, or more than `bytes_max` bytes without FCS, tag and CN-TAG. `None` if it is valid.
#[inline]
pub fn fault(frame: &[u8], bytes_max: usize) -> Option<Drop> {
    fault_of((frame, frame.len()), bytes_max)
}

/// Checks a frame like [`fault`], given its first bytes and its length.
#[inline]
pub(crate) fn fault_of((frame, length): (&[u8], usize), bytes_max: usize) -> Option<Drop> {
    if length < ETHERNET_BYTES {
        return Some(Drop::Malformed);
    }
    let fits = length <= bytes_max || length <= bytes_max + cn::tag_bytes(frame);
    (!fits).then_some(Drop::Oversized)
}

/// Returns whether a frame is ARP, or a neighbour solicitation or advertisement.
pub(crate) fn is_resolution(frame: &[u8]) -> bool {
    matches!(classify(frame), Kind::Arp(_) | Kind::BadArp | Kind::Nd(_) | Kind::BadNd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_may_come_on_top_of_the_longest_frame() {
        let frame = |bytes: usize, ethertype: [u8; 2]| {
            let mut frame = alloc::vec![0; bytes];
            frame[12..14].copy_from_slice(&ethertype);
            fault(&frame, 1514)
        };
        assert_eq!(fault(&[0; 13], 1514), Some(Drop::Malformed));
        assert_eq!(frame(1514, [8, 0]), None);
        assert_eq!(frame(1515, [8, 0]), Some(Drop::Oversized));
        assert_eq!(frame(1518, [0x81, 0]), None);
        assert_eq!(frame(1519, [0x81, 0]), Some(Drop::Oversized));
        assert_eq!(frame(1518, [0x22, 0xe9]), None);
        assert_eq!(frame(1519, [0x22, 0xe9]), Some(Drop::Oversized));
    }
}
