//! LACP in a node: frames in and out on bond ports, and updates of the edge.

use super::chassis::Chassis;
use alloc::vec::Vec;
use axon_link::effect::Effect;
use axon_link::lacp::LacpPort;
use axon_node::Dataplane;
use axon_wire::lacp::{Lacpdu, Partner};
use axon_wire::{FrameBuf, PortNo, Time};

impl<D: Dataplane, E: From<Effect>> Chassis<D, E> {
    /// Handles a port that has become a host port with carrier, or has stopped being one.
    pub(crate) fn lacp_link(&mut self, now: Time, port: PortNo, up: bool) {
        if let Some(member) = self.lacp.ports.get_mut(&port) {
            member.is_host = up;
        }
        let up = up && self.lacp.serves;
        self.with_lacp(now, port, |lacp| lacp.link(now, up));
    }

    /// Updates LACP after the switch may have got its first neighbour, or lost its last one.
    pub(crate) fn lacp_serve(&mut self, now: Time) {
        let serves = self.discovery.neighbours().next().is_some();
        if self.lacp.ports.is_empty() || serves == self.lacp.serves {
            return;
        }
        self.lacp.serves = serves;
        let ports = self.lacp.ports.iter().map(|(&port, member)| (port, member.is_host));
        let ports: Vec<(PortNo, bool)> = ports.collect();
        for (port, is_host) in ports {
            self.with_lacp(now, port, |lacp| lacp.link(now, is_host && serves));
        }
    }

    /// Handles a frame of a slow protocol; returns whether LACP runs on the port and the frame is
    /// valid.
    pub(crate) fn receive_lacp(&mut self, now: Time, port: PortNo, frame: &[u8]) -> bool {
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

    /// Applies the controller's selection for a bond port with this partner.
    pub(crate) fn lacp_select(
        &mut self,
        now: Time,
        port: PortNo,
        partner: Partner,
        selected: bool,
    ) {
        self.with_lacp(now, port, |lacp| {
            if lacp.partner().and_then(Partner::of) == Some(partner) {
                lacp.select(now, selected);
            }
        });
    }

    /// Handles expired timers.
    pub(crate) fn lacp_timeout(&mut self, now: Time) {
        if self.lacp.deadline().is_none_or(|at| at > now) {
            return;
        }
        let ports = self.lacp.ports.iter();
        let due = ports.filter(|(_, port)| port.lacp.deadline().is_some_and(|at| at <= now));
        let due: Vec<PortNo> = due.map(|(&port, _)| port).collect();
        for port in due {
            self.with_lacp(now, port, |lacp| lacp.timeout(now));
        }
    }

    /// Runs `work` on a port, sends its LACPDUs, and reports changes to the edge.
    fn with_lacp(&mut self, now: Time, number: PortNo, work: impl FnOnce(&mut LacpPort)) {
        let Some(port) = self.lacp.ports.get_mut(&number) else { return };
        work(&mut port.lacp);
        let pdu = port.lacp.transmit(now);
        let member = port.member();
        if member != port.shown {
            port.shown = member;
            self.effects.push(Effect::Member { port: number, member }.into());
        }
        if let Some(pdu) = pdu {
            self.lacp.counts[0] += 1;
            let frame = FrameBuf::with_headroom(0, &pdu.emit(self.lacp.mac));
            self.plane.send(now, number, frame, &mut self.actions);
        }
    }
}
