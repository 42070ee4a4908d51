//! Handling of messages from the controller and from other edges.

use super::SwitchNode;
use crate::chassis::Chassis;
use alloc::vec::Vec;
use axon_link::seal::Opened;
use axon_node::{Dataplane, Refusal};
use axon_wire::Time;
use axon_wire::message::{Item, Message};

impl<D: Dataplane> SwitchNode<D> {
    /// Handles an opened message.
    pub(crate) fn message(&mut self, now: Time, opened: Opened) -> Result<(), Refusal> {
        let own = self.alone.is_some() && opened.from == self.chassis.incarnation;
        let Chassis { plane, effects, .. } = &mut self.chassis;
        let ours = own || self.uplink.controller() == Some(opened.from);
        let (vlan, message) = opened.message.open();
        match message.ok_or(Refusal::Malformed)? {
            Message::ControllerHelloAck(_) if own => {}
            Message::ArpReply(reply) if own => {
                let reply = (vlan, Message::ArpReply(reply));
                self.edge.message(now, reply, plane, effects).ok_or(Refusal::Misplaced)?;
            }
            Message::ControllerHelloAck(ack) => {
                self.uplink.acknowledged(now, opened.from, ack, effects);
            }
            Message::ArpReply(reply) => {
                self.chassis.accept_grant(self.uplink.controller(), (vlan, &reply))?;
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
                let stream = self.stream.as_mut().ok_or(Refusal::Unexpected)?;
                let mut chosen = Vec::new();
                for item in stream.receive(now, segment) {
                    match item {
                        Item::AskLoad { every_ms } => {
                            let sent = |port| plane.sent_bytes(port);
                            self.loads.ask(now, every_ms, (plane.count(), sent));
                        }
                        Item::SelectMember { port, partner, selected } => {
                            chosen.push((port, partner, selected));
                        }
                        item => self.edge.item(now, item, plane, effects),
                    }
                }
                for (port, partner, selected) in chosen {
                    self.chassis.lacp_select(now, port, partner, selected);
                }
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
