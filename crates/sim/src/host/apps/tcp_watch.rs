//! Finds segments that are sent again, which the stack does not report.
//!
//! For each connection it remembers the highest sequence number that was sent. A segment with
//! payload that begins below it is sent again (RFC 9293 clause 3.4: numbers are compared
//! modulo 2^32).

use axon_wire::vlan;
use smoltcp::wire::{
    EthernetProtocol, IPV4_HEADER_LEN, IpProtocol, Ipv4Packet, TCP_HEADER_LEN, TcpPacket,
};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// IPv4 and TCP headers without options, in bytes.
const HEADER_BYTES: usize = IPV4_HEADER_LEN + TCP_HEADER_LEN;

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
    let (ethertype, at) = vlan::ethertype_of(frame)?;
    let head: &[u8; HEADER_BYTES] = frame[at + 2..].first_chunk()?;
    let (ip, tcp) = head.split_at(IPV4_HEADER_LEN);
    let (ip, tcp) = (Ipv4Packet::new_unchecked(ip), TcpPacket::new_unchecked(tcp));
    let is_ip = EthernetProtocol::from(ethertype) == EthernetProtocol::Ipv4 && ip.version() == 4;
    let plain = is_ip && usize::from(ip.header_len()) == IPV4_HEADER_LEN;
    if !plain || ip.next_header() != IpProtocol::Tcp {
        return None;
    }
    let header_bytes = u16::from(ip.header_len()) + u16::from(tcp.header_len());
    let bytes = ip.total_len().saturating_sub(header_bytes);
    let connection = (tcp.src_port(), ip.dst_addr(), tcp.dst_port());
    Some((connection, tcp.seq_number().0 as u32, u32::from(bytes), tcp.syn()))
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
