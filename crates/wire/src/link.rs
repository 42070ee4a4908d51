//! Frames between the two ends of one link: discovery and heartbeats.
//!
//! They are plain Ethernet on every port, so a port whose peer is unknown or is a host carries only
//! plain Ethernet. The destination is the nearest-bridge address 01-80-C2-00-00-0E (IEEE 802.1Q
//! table 8-3), which no bridge forwards and no host listens to, and the EtherType is 0x88B5, local
//! experimental 1 (IEEE 802 clause 9.2.3).

use crate::addr::MacAddr;
pub use crate::constants::address::NEAREST_BRIDGE as DESTINATION;
pub use crate::constants::ethertype::LINK as ETHERTYPE;
use crate::constants::length::ETHERNET_ADDRESSES;
pub use crate::constants::length::ETHERNET_HEADER as ETHERNET_BYTES;
pub use crate::constants::length::FRAME_MIN as FRAME_BYTES_MIN;
use alloc::vec::Vec;

/// Returns the link frame that carries `payload`, padded to the Ethernet minimum.
pub fn emit(source: MacAddr, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(FRAME_BYTES_MIN.max(ETHERNET_BYTES + payload.len()));
    frame.extend_from_slice(&DESTINATION.0);
    frame.extend_from_slice(&source.0);
    frame.extend_from_slice(&ETHERTYPE.to_be_bytes());
    frame.extend_from_slice(payload);
    if frame.len() < FRAME_BYTES_MIN {
        frame.resize(FRAME_BYTES_MIN, 0);
    }
    frame
}

/// Returns the payload of a link frame, padding included, or `None` for any other frame.
pub fn parse(frame: &[u8]) -> Option<&[u8]> {
    let ours = MacAddr::destination_of(frame)? == DESTINATION
        && frame.get(ETHERNET_ADDRESSES..ETHERNET_BYTES)? == ETHERTYPE.to_be_bytes();
    ours.then(|| &frame[ETHERNET_BYTES..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_frame_is_padded_and_recognised() {
        let frame = emit(MacAddr([2; 6]), b"hello");
        assert_eq!(frame.len(), FRAME_BYTES_MIN);
        assert!(parse(&frame).unwrap().starts_with(b"hello"));
        assert_eq!(parse(&frame[..13]), None);
        assert!(!crate::header::is_axon(&frame));
    }
}
