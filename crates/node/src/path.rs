//! A path as its directed links: what the controller computes and the prover judges.

use axon_wire::PortNo;

/// A switch, by its place in the list of switches of one graph, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SwitchIndex(pub u32);

impl SwitchIndex {
    /// As an index into a list of switches.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One directed link of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Step {
    /// The switch that the link leaves.
    pub switch: SwitchIndex,
    /// The port that it leaves by.
    pub egress: PortNo,
}
