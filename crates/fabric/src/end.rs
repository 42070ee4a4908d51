//! An end of a cable at a switch.

use axon_wire::PortNo;

/// One end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct End {
    /// The switch, by index.
    pub switch: usize,
    /// Its port.
    pub port: PortNo,
}
