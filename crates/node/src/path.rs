//! Paths as directed links, computed by the controller and checked by the prover.

use axon_wire::PortNo;

/// Index of a switch in the list of switches of one graph, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SwitchIndex(pub u32);

impl SwitchIndex {
    /// Returns the index as `usize`.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One directed link of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Step {
    /// The switch at the start of the link.
    pub switch: SwitchIndex,
    /// The egress port of that switch.
    pub egress: PortNo,
}
