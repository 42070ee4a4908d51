//! LACP state of a bond's port.

use axon_wire::lacp::Partner;
use axon_wire::message::MemberState;

/// LACP state of a bond's port, as reported by its switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// Key of the bond.
    pub key: u16,
    /// LACP state.
    pub state: MemberState,
    /// LACP partner, if any was received.
    pub partner: Option<Partner>,
    /// True if the controller has selected the port.
    pub selected: bool,
}

impl Member {
    /// Returns whether hosts' frames are dropped at the port.
    pub fn is_blocked(&self) -> bool {
        match self.state {
            MemberState::Down
            | MemberState::Expired
            | MemberState::Detached
            | MemberState::Attached => true,
            MemberState::Individual | MemberState::Collecting | MemberState::Distributing => false,
        }
    }
}
