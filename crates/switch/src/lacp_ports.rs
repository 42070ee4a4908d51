//! LACP state of the switch ports that belong to bonds.

use alloc::collections::BTreeMap;
use axon_edge::config::PortPolicy;
use axon_link::lacp::{LacpPort, Mux, Receive};
use axon_link::member::Member;
use axon_wire::lacp::Partner;
use axon_wire::message::MemberState;
use axon_wire::{MacAddr, PortNo, Time};

/// LACP state of all switch ports that belong to bonds.
#[derive(Clone, Debug)]
pub(super) struct LacpPorts {
    /// Source address of LACPDUs.
    pub mac: MacAddr,
    /// Ports that belong to bonds.
    pub ports: BTreeMap<PortNo, Port>,
    /// True if this switch has neighbours. Without any, LACP is down on all of its ports, so that
    /// hosts use their other ports.
    pub serves: bool,
    /// LACPDUs sent, received, and malformed.
    pub counts: [u64; 3],
}

/// LACP state of one port.
#[derive(Clone, Debug)]
pub(super) struct Port {
    key: u16,
    /// LACP state machine.
    pub lacp: LacpPort,
    /// True if the port is a host port with carrier.
    pub is_host: bool,
    /// Member state last reported to the edge.
    pub shown: Member,
}

impl LacpPorts {
    /// Creates the bond ports, without carrier, of a switch with MAC address `mac`.
    pub(crate) fn new(policies: &[PortPolicy], mac: MacAddr) -> LacpPorts {
        let ports = (0..).map(PortNo).zip(policies).filter_map(|(number, policy)| {
            let config = policy.bond?;
            let (key, lacp) = (config.key, LacpPort::new(config));
            let shown = Member { key, ..Member::default() };
            Some((number, Port { key, lacp, is_host: false, shown }))
        });
        LacpPorts { mac, ports: ports.collect(), serves: false, counts: [0; 3] }
    }

    /// Returns when a port is due next.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.ports.values().filter_map(|port| port.lacp.deadline()).min()
    }
}

impl Port {
    /// Returns the member state to report to the edge.
    pub(crate) fn member(&self) -> Member {
        let partner = self.lacp.partner();
        let state = match (self.lacp.receive_state(), self.lacp.mux_state()) {
            (Receive::Disabled, _) => MemberState::Down,
            (Receive::Defaulted, _) => MemberState::Individual,
            (Receive::Expired, _) if partner.is_none() => MemberState::Expired,
            (_, Mux::Detached) => MemberState::Detached,
            (_, Mux::Attached) => MemberState::Attached,
            (_, Mux::Collecting) => MemberState::Collecting,
            (_, Mux::Distributing) => MemberState::Distributing,
        };
        let (key, selected) = (self.key, self.lacp.is_selected());
        Member { key, state, partner: partner.and_then(Partner::of), selected }
    }
}
