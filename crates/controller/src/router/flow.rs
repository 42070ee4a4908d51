//! Flow as input to a router, and the hash that spreads flows over equal paths.

use crate::topology::SwitchIndex;
use axon_wire::{MacAddr, NodeId, PortNo};

/// Flow as input to a router: the frames that one host port sends to one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Ingress switch.
    pub from: SwitchIndex,
    /// Egress switch.
    pub to: SwitchIndex,
    /// Hash of the flow, see [`flow_hash`].
    pub hash: u64,
    /// Number of the destination host, which no host of another VLAN has.
    pub towards: u64,
}

/// Returns the hash for the frames that one port of a switch sends to one host. They share a table
/// entry, so they share a path.
pub fn flow_hash(node: NodeId, port: PortNo, destination: MacAddr) -> u64 {
    let mut word = [0; 8];
    word[..6].copy_from_slice(&destination.0);
    mix(mix(node.0 ^ (u64::from(port.0) << 48)) ^ u64::from_le_bytes(word))
}

/// Returns the hash for the frames from one host behind a port, where hosts have their own routes.
pub(crate) fn pair_hash(of_port: u64, source: MacAddr) -> u64 {
    let mut word = [0; 8];
    word[2..].copy_from_slice(&source.0);
    mix(of_port ^ u64::from_le_bytes(word))
}

/// Finaliser of splitmix64 (Steele et al., OOPSLA 2014). Every bit of the result depends on every
/// bit of the argument.
pub(super) fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}
