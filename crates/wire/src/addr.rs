//! Addresses: MAC addresses, node identities and incarnations, port numbers.

use crate::constants::address::{LINK_LOCAL_COUNT, LINK_LOCAL_PREFIX};
use core::fmt;
use serde::{Deserialize, Serialize};

/// A 48-bit Ethernet address.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    /// ff:ff:ff:ff:ff:ff.
    pub const BROADCAST: MacAddr = MacAddr([0xff; 6]);

    /// The group bit (IEEE 802 clause 8.2): multicast and broadcast.
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// An address that one station can have: neither group nor all zero.
    pub fn is_unicast(self) -> bool {
        !self.is_multicast() && self.0 != [0; 6]
    }

    /// The reserved block 01-80-C2-00-00-00 to 0F, which no bridge forwards
    /// (IEEE 802.1Q clause 8.6.3): MAC control, LLDP, our discovery.
    pub fn is_link_local(self) -> bool {
        self.0[..5] == LINK_LOCAL_PREFIX && self.0[5] < LINK_LOCAL_COUNT
    }

    /// The destination (bytes 0 to 5) of an Ethernet frame, if it has one.
    pub fn destination_of(frame: &[u8]) -> Option<MacAddr> {
        frame.first_chunk().copied().map(MacAddr)
    }

    /// The source (bytes 6 to 11) of an Ethernet frame, if it has one.
    pub fn source_of(frame: &[u8]) -> Option<MacAddr> {
        frame.get(6..).and_then(<[u8]>::first_chunk).copied().map(MacAddr)
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The unique identity of a switch or controller; it outlives restarts.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct NodeId(pub u64);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// One incarnation of a node, from start to stop. A later one has a greater `number`.
///
/// Every sealed message is from one incarnation to one incarnation, so nothing recorded in one can
/// be replayed into another.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Incarnation {
    /// The node.
    pub node: NodeId,
    /// Counts its starts, each greater than all before; 0 is never used.
    pub number: u64,
}

/// A port of a switch, counted from zero. It is also the hop that names it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct PortNo(pub u16);

impl PortNo {
    /// The control plane, whatever the hop width: on the wire a hop of all ones.
    pub const CONTROL: PortNo = PortNo(u16::MAX);

    /// As an index into a list of ports.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for PortNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            PortNo::CONTROL => f.write_str("cpu"),
            PortNo(number) => write!(f, "p{number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn kinds_of_addresses_are_recognised() {
        assert!(MacAddr::BROADCAST.is_multicast());
        assert!(!MacAddr([0; 6]).is_unicast());
        assert!(MacAddr([1, 0x80, 0xc2, 0, 0, 0x0e]).is_link_local());
        assert!(!MacAddr([1, 0x80, 0xc2, 0, 0, 0x10]).is_link_local());
    }

    #[test]
    fn a_short_frame_has_no_source() {
        assert_eq!(MacAddr::source_of(&[0; 11]), None);
        assert_eq!(MacAddr::source_of(&[2; 12]), Some(MacAddr([2; 6])));
    }

    #[test]
    fn ports_print_as_in_the_fabric_file() {
        assert_eq!(format!("{} {}", PortNo(3), PortNo::CONTROL), "p3 cpu");
    }
}
