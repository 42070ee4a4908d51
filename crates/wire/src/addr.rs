//! Addresses: MAC addresses, node identities and incarnations, port numbers.

use crate::constants::address::{LINK_LOCAL_COUNT, LINK_LOCAL_PREFIX};
use core::fmt;
use serde::{Deserialize, Serialize};

/// A 48-bit Ethernet address.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    /// The broadcast address, ff:ff:ff:ff:ff:ff.
    pub const BROADCAST: MacAddr = MacAddr([0xff; 6]);

    /// Returns whether the group bit is set (IEEE 802 clause 8.2): multicast or broadcast.
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// Returns whether the address can be that of a single station: neither a group address nor all
    /// zeros.
    pub fn is_unicast(self) -> bool {
        !self.is_multicast() && self.0 != [0; 6]
    }

    /// Returns whether the address is in the reserved block 01-80-C2-00-00-00 to 0F, which no
    /// bridge forwards (IEEE 802.1Q clause 8.6.3): MAC control, LLDP, Axon's discovery.
    pub fn is_link_local(self) -> bool {
        self.0[..5] == LINK_LOCAL_PREFIX && self.0[5] < LINK_LOCAL_COUNT
    }

    /// Returns the destination (bytes 0 to 5) of an Ethernet frame, or `None` if the frame is too
    /// short.
    pub fn destination_of(frame: &[u8]) -> Option<MacAddr> {
        frame.first_chunk().copied().map(MacAddr)
    }

    /// Returns the source (bytes 6 to 11) of an Ethernet frame, or `None` if the frame is too
    /// short.
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

/// Unique identity of a switch or controller, kept across restarts.
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
/// Every sealed message is from one incarnation to one incarnation, so a message recorded in one
/// cannot be replayed into another.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Incarnation {
    /// The node.
    pub node: NodeId,
    /// Start count of the node, greater than at all earlier starts; 0 is never used.
    pub number: u64,
}

/// Port number of a switch, counted from zero, and the hop that selects the port.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct PortNo(pub u16);

impl PortNo {
    /// The control plane, for every hop width; a hop of all ones on the wire.
    pub const CONTROL: PortNo = PortNo(u16::MAX);

    /// Returns the port number as an index into a list of ports.
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
