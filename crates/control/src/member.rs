//! A port of a bond, as LACP at a switch has it.

use axon_wire::lacp::Partner;
use axon_wire::message::MemberState;

/// What is known of a port of a bond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// The key of the bond.
    pub key: u16,
    /// Its state.
    pub state: MemberState,
    /// Whom it leads to, if LACP has shown it.
    pub partner: Option<Partner>,
    /// Whether it is selected.
    pub selected: bool,
}

impl Member {
    /// Whether frames of hosts end at the port.
    pub(crate) fn is_blocked(&self) -> bool {
        match self.state {
            MemberState::Down
            | MemberState::Expired
            | MemberState::Detached
            | MemberState::Attached => true,
            MemberState::Individual | MemberState::Collecting | MemberState::Distributing => false,
        }
    }
}
