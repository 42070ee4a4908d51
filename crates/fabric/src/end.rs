//! An end of a cable at a switch.

use axon_wire::PortNo;

/// One end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct End {
    /// Index of the switch.
    pub switch: usize,
    /// Port of the switch.
    pub port: PortNo,
}
