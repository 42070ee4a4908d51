//! Handling of messages from the controller and from other edges.

use super::SwitchNode;
use crate::chassis::Chassis;
use crate::static_mode::is_for_nobody;
use alloc::vec::Vec;
use axon_link::seal::Opened;
use axon_node::{Action, Dataplane, Refusal};
use axon_wire::message::{Item, Message};
use axon_wire::vlan::VlanId;
use axon_wire::{Hops, Incarnation, PortNo, Time};

impl<D: Dataplane> SwitchNode<D> {
    /// Sends a message to a switch or a controller. Source and target host may be on one switch: a
    /// message to itself is not sealed.
    pub(super) fn routed(
        &mut self,
        now: Time,
        hops: &Hops,
        (to, (vlan, message)): (Incarnation, (VlanId, Message)),
        out: &mut Vec<Action>,
    ) {
        if to == self.chassis.incarnation {
            let opened = Opened { from: to, vlan, message, addressed: true };
            if let Err(refusal) = self.message(now, opened) {
                self.chassis.refuse(PortNo::CONTROL, refusal, out);
            }
        } else if !is_for_nobody(to, &message) {
            self.chassis.send_routed(now, hops, to, (vlan, &message));
        }
    }

    /// Handles an opened message.
    pub(crate) fn message(&mut self, now: Time, opened: Opened) -> Result<(), Refusal> {
        let own = self.alone.is_some() && opened.from == self.chassis.incarnation;
        let Chassis { plane, effects, .. } = &mut self.chassis;
        let ours = own || self.upstream.uplink().controller() == Some(opened.from);
        let vlan = opened.vlan;
        match opened.message {
            Message::ControllerHelloAck(_) if own => {}
            Message::ArpReply(reply) if own => {
                let reply = (vlan, Message::ArpReply(reply));
                self.edge.message(now, reply, plane, effects).ok_or(Refusal::Misplaced)?;
            }
            Message::ControllerHelloAck(ack) => {
                self.upstream.acknowledged(now, opened.from, ack, effects);
            }
            Message::ArpReply(reply) => {
                let controller = self.upstream.uplink().controller();
                self.chassis.accept_grant(controller, (vlan, &reply))?;
                let Chassis { plane, effects, .. } = &mut self.chassis;
                let reply = (vlan, Message::ArpReply(reply));
                self.edge.message(now, reply, plane, effects).ok_or(Refusal::Misplaced)?;
            }
            message @ (Message::ArpTarget(_) | Message::Seek(_) | Message::HostFrame(_))
                if ours =>
            {
                let message = (vlan, message);
                self.edge.message(now, message, plane, effects).ok_or(Refusal::Misplaced)?;
            }
            Message::Segment(segment) if ours => {
                let (mut chosen, mut is_known) = (Vec::new(), true);
                for item in self.upstream.receive(now, segment)? {
                    match item {
                        Item::AskLoad { every_ms } => {
                            self.upstream.ask_load(now, every_ms, plane);
                        }
                        Item::SelectMember { port, partner, selected } => {
                            chosen.push((port, partner, selected));
                        }
                        item => {
                            let to = (now, vlan);
                            let done =
                                self.edge.with(to, plane, effects, |mut call| call.item(item));
                            is_known &= done.is_some();
                        }
                    }
                }
                for (port, partner, selected) in chosen {
                    self.chassis.lacp_select(now, port, partner, selected);
                }
                // The stream acknowledges it all the same, so that the controller goes on.
                return if is_known { Ok(()) } else { Err(Refusal::Misplaced) };
            }
            Message::ArpTarget(_)
            | Message::HostFrame(_)
            | Message::Seek(_)
            | Message::Segment(_) => return Err(Refusal::Unexpected),
            _ => return Err(Refusal::Misplaced),
        }
        Ok(())
    }
}
