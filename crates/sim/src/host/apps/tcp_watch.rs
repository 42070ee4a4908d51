//! Finds segments that are sent again, which the stack does not report.
//!
//! For each connection it remembers the highest sequence number that was sent. A segment with
//! payload that begins below it is sent again (RFC 9293 clause 3.4: numbers are compared
//! modulo 2^32).

use axon_wire::vlan;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Local port, target and its port.
type Connection = (u16, Ipv4Addr, u16);

/// The watch of one host.
#[derive(Debug, Default)]
pub(crate) struct TcpWatch {
    next: BTreeMap<Connection, u32>,
}

impl TcpWatch {
    /// Looks at a frame that leaves; the local port of a connection that sends again.
    pub(crate) fn sent(&mut self, frame: &[u8]) -> Option<u16> {
        let (connection, sequence, bytes, syn) = parse(frame)?;
        let end = sequence.wrapping_add(bytes);
        let Some(next) = self.next.get_mut(&connection) else {
            self.next.insert(connection, end);
            return None;
        };
        let behind = |a: u32, b: u32| (a.wrapping_sub(b) as i32) < 0;
        let again = bytes > 0 && behind(sequence, *next);
        // A SYN begins a new connection, with numbers of its own.
        if behind(*next, end) || syn {
            *next = end;
        }
        again.then_some(connection.0)
    }
}

/// Connection, sequence number, payload and SYN flag of a TCP segment in an Ethernet frame,
/// tagged or not.
fn parse(frame: &[u8]) -> Option<(Connection, u32, u32, bool)> {
    const TCP: u8 = 6;
    const ETHERTYPE_AT: usize = 12;
    let (_, at) = vlan::ethertype_of(frame)?;
    let head = frame[at - ETHERTYPE_AT..].first_chunk::<54>()?;
    if head[12..15] != [0x08, 0x00, 0x45] || head[23] != TCP {
        return None;
    }
    let word = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let target = Ipv4Addr::new(head[30], head[31], head[32], head[33]);
    let sequence = u32::from_be_bytes([head[38], head[39], head[40], head[41]]);
    let header_bytes = 20 + u32::from(head[46] >> 4) * 4;
    let bytes = u32::from(word(16)).saturating_sub(header_bytes);
    Some(((word(34), target, word(36)), sequence, bytes, head[47] & 2 != 0))
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
