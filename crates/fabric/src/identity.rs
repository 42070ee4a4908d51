//! MAC addresses and identities of nodes, derived from their kind and their number.

use axon_wire::{MacAddr, NodeId};

/// Source MAC of the fabric's messages to hosts; no port has it.
pub const SERVER_MAC: MacAddr = MacAddr([0x02, b'a', b'x', b'o', b'n', 0x01]);
/// MAC address of the controller.
pub const CONTROLLER_MAC: MacAddr = MacAddr([0x02, b'c', 0, 0, 0, 1]);
/// Identity of the controller; switches count from 1 and never reach it.
pub const CONTROLLER_ID: NodeId = NodeId(1 << 32);

/// Returns a locally administered MAC (IEEE 802 clause 8.2.2): the kind of node, then its number.
const fn mac(kind: u8, index: usize) -> MacAddr {
    let [a, b, c, d] = (index as u32 + 1).to_be_bytes();
    MacAddr([0x02, kind, a, b, c, d])
}

/// Returns the MAC of a switch by index: `02:73:` and its number in four bytes.
pub const fn switch_mac(index: usize) -> MacAddr {
    mac(b's', index)
}

/// Returns the default MAC of a host by index: `02:68:` and its number.
pub const fn host_mac(index: usize) -> MacAddr {
    mac(b'h', index)
}

/// Returns the default MAC of an agent by index: `02:61:` and its number.
pub(crate) const fn agent_mac(index: usize) -> MacAddr {
    mac(b'a', index)
}

/// Returns the identity of a switch by index.
pub const fn switch_id(index: usize) -> NodeId {
    NodeId(index as u64 + 1)
}
