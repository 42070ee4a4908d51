//! Forwarding, queueing and copying of hosts' frames; for groups, see `edge/senders.rs`.

use super::SwitchNode;
use crate::chassis::Chassis;
use alloc::vec::Vec;
use axon_edge::Outcome;
use axon_node::{Action, Dataplane, Drop, RouteKey};
use axon_wire::vlan::VlanId;
use axon_wire::{FrameBuf, MacAddr, PortNo, Time};

impl<D: Dataplane> SwitchNode<D> {
    /// Forwards a host's frame, queues it for its route, copies it, or drops it.
    pub(super) fn carry_out(
        &mut self,
        now: Time,
        (port, vlan): (PortNo, VlanId),
        frame: FrameBuf,
        outcome: Result<Outcome, Drop>,
        out: &mut Vec<Action>,
    ) {
        let Chassis { plane, actions, .. } = &mut self.chassis;
        let mut frame = frame;
        let (reason, frame) = match outcome {
            Ok(Outcome::Readdress(route, destination)) => {
                if let Some(place) = frame.bytes_mut().first_chunk_mut() {
                    *place = destination.0;
                }
                return plane.forward(now, port, &route, frame, actions);
            }
            Ok(Outcome::Served) => (Drop::Consumed, frame),
            Ok(Outcome::Forward(route)) => return plane.forward(now, port, &route, frame, actions),
            Ok(Outcome::Wait(destination)) => {
                // Frames to a group wait for its list, others for a route of their source.
                let source = MacAddr::source_of(frame.bytes());
                let source = source.filter(|_| !destination.is_multicast());
                let key = RouteKey { vlan, destination, source };
                let host_ports = (0..plane.count()).filter(|&n| plane.is_host(PortNo(n))).count();
                match self.waiting.push(port, key, frame, host_ports) {
                    Ok(()) => return,
                    Err(frame) => (Drop::NoRoute, frame),
                }
            }
            Ok(Outcome::Copies(outcomes)) => {
                for outcome in outcomes {
                    self.chassis.plane.count_copy(port);
                    let copy = FrameBuf::with_headroom(FrameBuf::HEADROOM, frame.bytes());
                    self.carry_out(now, (port, vlan), copy, Ok(outcome), out);
                }
                (Drop::Consumed, frame)
            }
            Err(reason) => (reason, frame),
        };
        out.push(self.chassis.ended(port, reason, frame));
    }

    /// Copies the frames that waited for a list of their group.
    pub(super) fn spread(
        &mut self,
        now: Time,
        (port, key): (PortNo, RouteKey),
        out: &mut Vec<Action>,
    ) {
        for frame in self.waiting.take(port, key) {
            let Chassis { plane, effects, .. } = &mut self.chassis;
            let from = (now, port, key.vlan);
            let outcome = self.edge.waited_for_list(from, frame.bytes(), plane, effects);
            self.carry_out(now, (port, key.vlan), frame, outcome, out);
        }
    }
}
