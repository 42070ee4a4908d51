//! Properties of a station, set before anything is connected or with its power.

use crate::link::timing::Timing;
use axon_wire::HopWidth;

/// Properties of a station.
#[derive(Debug, Default)]
pub(crate) struct Profile {
    pub(crate) name: String,
    /// True if the NIC drops frames with a bad FCS.
    pub(crate) checks_fcs: bool,
    /// True if a switch pipeline treats the station's frames as a host's.
    pub(crate) host: bool,
    pub(crate) timing: Timing,
    /// Width of a hop in frame headers, in bits.
    pub(crate) hop_width: HopWidth,
}
