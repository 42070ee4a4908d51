//! Observation of a host's TCP beside the stack: retransmitted segments, which the stack does not
//! report, and losses, which it does not repair by itself.
//!
//! The watch keeps the highest sequence number sent on each connection. A segment with payload that
//! begins below it is a retransmission.

use super::tcp_recovery::TcpRecovery;
use super::tcp_segment::{Segment, is_before};
use crate::host::nic::Nic;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Local port, target address and target port.
type Connection = (u16, Ipv4Addr, u16);

/// TCP watch of one host.
#[derive(Debug)]
pub(crate) struct TcpWatch {
    next: BTreeMap<Connection, u32>,
    recovery: Option<TcpRecovery>,
}

impl Default for TcpWatch {
    /// Returns a watch with recovery by selective acknowledgments.
    fn default() -> TcpWatch {
        TcpWatch { next: BTreeMap::new(), recovery: Some(TcpRecovery::default()) }
    }
}

impl TcpWatch {
    /// Disables recovery, so that only the stack repairs losses.
    pub(crate) fn without_recovery(&mut self) {
        self.recovery = None;
    }

    /// Examines a frame that is sent. Returns the connection's local port if it is a
    /// retransmission.
    pub(crate) fn sent(&mut self, frame: &[u8]) -> Option<u16> {
        let segment = Segment::parse(frame)?;
        if let Some(recovery) = &mut self.recovery {
            recovery.sent(&segment, frame);
        }
        let connection = (segment.from.1, segment.to.0, segment.to.1);
        let Some(next) = self.next.get_mut(&connection) else {
            self.next.insert(connection, segment.end());
            return None;
        };
        let again = segment.bytes > 0 && is_before(segment.sequence, *next);
        // A SYN begins a new connection with its own numbers.
        if is_before(*next, segment.end()) || segment.syn {
            *next = segment.end();
        }
        again.then_some(connection.0)
    }

    /// Examines a received frame, and passes lost segments to the NIC again. Returns whether to
    /// hide the frame from the stack.
    pub(crate) fn received(&mut self, frame: &[u8], nic: &mut Nic) -> bool {
        let Some(recovery) = &mut self.recovery else { return false };
        let Some(segment) = Segment::parse(frame) else { return false };
        let verdict = recovery.received(&segment, frame);
        verdict.again.into_iter().for_each(|frame| nic.queue(frame));
        verdict.hide
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(sequence: u32, bytes: u16, flags: u8) -> Vec<u8> {
        let mut frame = vec![0; 54 + usize::from(bytes)];
        frame[12..15].copy_from_slice(&[8, 0, 0x45]);
        frame[16..18].copy_from_slice(&(40 + bytes).to_be_bytes());
        frame[23] = 6;
        frame[34..36].copy_from_slice(&9u16.to_be_bytes());
        frame[38..42].copy_from_slice(&sequence.to_be_bytes());
        (frame[46], frame[47]) = (0x50, flags);
        frame
    }

    #[test]
    fn only_payload_that_was_sent_before_counts() {
        let mut watch = TcpWatch::default();
        let start = u32::MAX - 500;
        let mut sent = |offset: u32, bytes, flags| {
            watch.sent(&segment(start.wrapping_add(offset), bytes, flags))
        };
        assert_eq!(sent(0, 0, 2), None, "SYN");
        assert_eq!(sent(1, 400, 0), None);
        assert_eq!(sent(401, 400, 0), None, "over the end of the numbers");
        assert_eq!(sent(801, 0, 0), None, "an acknowledgement alone");
        assert_eq!(sent(401, 400, 0), Some(9));
        assert_eq!(sent(801, 400, 0), None);
        assert_eq!(watch.sent(&[0; 60]), None);
    }
}
