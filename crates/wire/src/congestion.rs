//! Congestion messages (thesis 000 §3.2.1). A switch whose output has no room for a packet reports
//! this to the edge that the packet came from.
//!
//! The message is an Axon packet of type Congestion. Its route is the reverse list of the refused
//! packet, except that it ends at the control plane of the first switch, not at the host port
//! behind it. The message contains that port.
//!
//! ```text
//!  bytes  1         1       2        2           4              6            6       6
//!       +---------+-------+--------+-----------+--------------+------------+-------+-------+---
//!       | version | spare | egress | host port | queued bytes | switch MAC | to    | from  | 0
//!       +---------+-------+--------+-----------+--------------+------------+-------+-------+---
//! ```
//!
//! All fields are big-endian. Padding extends the packet to the Ethernet minimum. Like the frame
//! that it reports, the message is not sealed, because its only effect is a short pause of a host.

use crate::addr::{MacAddr, PortNo};
pub use crate::constants::length::CONGESTION as MESSAGE_BYTES;
use crate::constants::length::CONGESTION_PADDED as PADDED_BYTES;
pub use crate::constants::version::CONGESTION as VERSION;
use crate::units::Bytes;
use alloc::vec::Vec;

/// Report to the edge that an output is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Congestion {
    /// The egress port that had no room.
    pub egress: PortNo,
    /// The edge port at which the packet entered, on the switch that receives the message.
    pub host_port: PortNo,
    /// Bytes queued at that egress port, from all ingress ports; at most 4 GiB.
    pub queued: Bytes,
    /// The MAC address of the congested switch.
    pub switch: MacAddr,
    /// The destination of the refused frame.
    pub destination: MacAddr,
    /// The source of the refused frame.
    pub source: MacAddr,
}

/// Errors in parsing a congestion message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CongestionError {
    /// The message is incomplete.
    #[error("truncated: a congestion message has {MESSAGE_BYTES} bytes")]
    Truncated,
    /// Another version of the format.
    #[error("version {0}, where {VERSION} was expected")]
    Version(u8),
}

impl Congestion {
    /// Parses the message at the start of `bytes`. The bytes after it are padding.
    ///
    /// # Errors
    /// Truncation, or another version.
    pub fn parse(bytes: &[u8]) -> Result<Congestion, CongestionError> {
        let head: &[u8; MESSAGE_BYTES] = bytes.first_chunk().ok_or(CongestionError::Truncated)?;
        let [version, _, e, g, h, p, q, u, d, b, rest @ ..] = *head;
        if version != VERSION {
            return Err(CongestionError::Version(version));
        }
        let mac = |at: usize| {
            let mut mac = [0; 6];
            mac.copy_from_slice(&rest[at..at + 6]);
            MacAddr(mac)
        };
        Ok(Congestion {
            egress: PortNo(u16::from_be_bytes([e, g])),
            host_port: PortNo(u16::from_be_bytes([h, p])),
            queued: Bytes(u64::from(u32::from_be_bytes([q, u, d, b]))),
            switch: mac(0),
            destination: mac(6),
            source: mac(12),
        })
    }

    /// Returns the bytes of the message, padded.
    pub fn emit(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(PADDED_BYTES);
        bytes.extend_from_slice(&[VERSION, 0]);
        bytes.extend_from_slice(&self.egress.0.to_be_bytes());
        bytes.extend_from_slice(&self.host_port.0.to_be_bytes());
        let queued = u32::try_from(self.queued.0).unwrap_or(u32::MAX);
        bytes.extend_from_slice(&queued.to_be_bytes());
        for mac in [self.switch, self.destination, self.source] {
            bytes.extend_from_slice(&mac.0);
        }
        bytes.resize(PADDED_BYTES, 0);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> Congestion {
        Congestion {
            egress: PortNo(3),
            host_port: PortNo(700),
            queued: Bytes(131_072),
            switch: MacAddr([2, 1, 1, 1, 1, 1]),
            destination: MacAddr([2, 2, 2, 2, 2, 2]),
            source: MacAddr([2, 3, 3, 3, 3, 3]),
        }
    }

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let bytes = message().emit();
        assert!(bytes.len() + 6 >= 60, "no padding by the wire");
        assert_eq!(Congestion::parse(&bytes), Ok(message()));
        assert_eq!(Congestion::parse(&bytes[..MESSAGE_BYTES]), Ok(message()));
        let huge = Congestion { queued: Bytes(1 << 40), ..message() };
        let read = Congestion::parse(&huge.emit()).unwrap();
        assert_eq!(read.queued, Bytes(u64::from(u32::MAX)));
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let mut bytes = message().emit();
        for length in 0..MESSAGE_BYTES {
            assert_eq!(Congestion::parse(&bytes[..length]), Err(CongestionError::Truncated));
        }
        bytes[0] = 9;
        assert_eq!(Congestion::parse(&bytes), Err(CongestionError::Version(9)));
    }
}
