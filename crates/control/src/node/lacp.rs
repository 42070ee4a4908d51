//! LACP in a whole node: frames in and out at the ports that belong to bonds, and what follows for
//! the edge.

use super::chassis::Chassis;
use crate::config::PortPolicy;
use crate::effect::Effect;
use crate::member::Member;
use alloc::collections::BTreeMap;
use axon_lacp::{LacpPort, Mux, Receive};
use axon_node::Dataplane;
use axon_wire::lacp::{Lacpdu, Partner};
use axon_wire::message::MemberState;
use axon_wire::{Frame, MacAddr, PortNo, Time};

/// LACP at all ports of a switch that belong to bonds.
#[derive(Clone, Debug)]
pub(super) struct LacpPorts {
    mac: MacAddr,
    ports: BTreeMap<PortNo, Port>,
    /// LACPDUs that were sent, received, and that could not be read.
    pub counts: [u64; 3],
}

#[derive(Clone, Debug)]
struct Port {
    key: u16,
    lacp: LacpPort,
    /// What the edge was shown last.
    shown: Member,
}

impl LacpPorts {
    /// Ports without carrier of a switch with MAC address `mac`.
    pub fn new(policies: &[PortPolicy], mac: MacAddr) -> LacpPorts {
        let ports = (0..).map(PortNo).zip(policies).filter_map(|(number, policy)| {
            let config = policy.bond?;
            let (key, lacp) = (config.key, LacpPort::new(config));
            Some((number, Port { key, lacp, shown: Member { key, ..Member::default() } }))
        });
        LacpPorts { mac, ports: ports.collect(), counts: [0; 3] }
    }

    /// When a port has something to do.
    pub fn deadline(&self) -> Option<Time> {
        self.ports.values().filter_map(|port| port.lacp.deadline()).min()
    }
}

impl Port {
    fn member(&self) -> Member {
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

impl<B: Frame, D: Dataplane<B>> Chassis<B, D> {
    /// The carrier of a port has come or gone.
    pub fn lacp_link(&mut self, now: Time, port: PortNo, up: bool) {
        self.with_lacp(now, port, |lacp| lacp.link(now, up));
    }

    /// A frame of a slow protocol has come; says whether there is anybody to read it, and whether
    /// it could be read.
    pub fn receive_lacp(&mut self, now: Time, port: PortNo, frame: &[u8]) -> bool {
        if !self.lacp.ports.contains_key(&port) {
            return false;
        }
        let Ok(pdu) = Lacpdu::parse(frame) else {
            self.lacp.counts[2] += 1;
            return false;
        };
        self.lacp.counts[1] += 1;
        self.with_lacp(now, port, |lacp| lacp.receive(now, &pdu));
        true
    }

    /// The controller says whether a port with this partner is one of its bond.
    pub fn lacp_select(&mut self, now: Time, port: PortNo, partner: Partner, selected: bool) {
        self.with_lacp(now, port, |lacp| {
            if lacp.partner().and_then(Partner::of) == Some(partner) {
                lacp.select(now, selected);
            }
        });
    }

    /// Does what is due.
    pub fn lacp_timeout(&mut self, now: Time) {
        if self.lacp.deadline().is_none_or(|at| at > now) {
            return;
        }
        let ports = self.lacp.ports.iter();
        let due = ports.filter(|(_, port)| port.lacp.deadline().is_some_and(|at| at <= now));
        let due: alloc::vec::Vec<PortNo> = due.map(|(&port, _)| port).collect();
        for port in due {
            self.with_lacp(now, port, |lacp| lacp.timeout(now));
        }
    }

    /// Runs `work` on a port, sends what is to be sent, and shows the edge what has changed.
    fn with_lacp(&mut self, now: Time, number: PortNo, work: impl FnOnce(&mut LacpPort)) {
        let Some(port) = self.lacp.ports.get_mut(&number) else { return };
        work(&mut port.lacp);
        let pdu = port.lacp.transmit(now);
        let member = port.member();
        if member != port.shown {
            port.shown = member;
            self.effects.push(Effect::Member { port: number, member });
        }
        if let Some(pdu) = pdu {
            self.lacp.counts[0] += 1;
            let frame = B::with_headroom(0, &pdu.emit(self.lacp.mac));
            self.plane.send(now, number, frame, &mut self.actions);
        }
    }
}
