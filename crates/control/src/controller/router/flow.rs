//! What a router knows of a flow, and the hash that spreads flows over equal paths.

use crate::controller::topology::SwitchIndex;
use axon_wire::{MacAddr, NodeId, PortNo};

/// What a router knows of a flow: the frames that one host port sends to one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The switch it enters by.
    pub from: SwitchIndex,
    /// The switch it leaves by.
    pub to: SwitchIndex,
    /// Its [`flow_hash`].
    pub hash: u64,
    /// The host it leads to, by its index in the host table.
    pub towards: u32,
}

/// The hash of the frames that one port of a switch sends to one host: they share one place
/// in its route memory, so they share a path.
pub fn flow_hash(node: NodeId, port: PortNo, destination: MacAddr) -> u64 {
    let mut word = [0; 8];
    word[..6].copy_from_slice(&destination.0);
    mix(mix(node.0 ^ (u64::from(port.0) << 48)) ^ u64::from_le_bytes(word))
}

/// The same for the frames of one host behind a port, where hosts have routes of their own.
pub(in crate::controller) fn pair_hash(of_port: u64, source: MacAddr) -> u64 {
    let mut word = [0; 8];
    word[2..].copy_from_slice(&source.0);
    mix(of_port ^ u64::from_le_bytes(word))
}

/// The finaliser of splitmix64 (Steele et al., OOPSLA 2014): every bit of the result
/// depends on every bit of the argument.
pub(super) fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}
