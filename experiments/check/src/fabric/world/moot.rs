//! Removal of those messages in flight that have no future effect, so that otherwise equal states
//! become one state.
//!
//! Each of these messages could arrive at any later time without an effect. Its removal corresponds
//! to one of the possible orders, and all other orders end in the same states.
//!
//! - Messages sealed for an incarnation that has ended, because nothing opens them. Likewise,
//!   messages from an incarnation of a switch if the controller knows a later one.
//! - The answer to a Hello that is not the last one from its switch, or an answer from a controller
//!   that the switch has met already.
//! - Notifications about a link that the switch already knows to be down, while no time passes.

use super::wiring;
use super::{Fault, World};
use crate::fabric::packet::Packet;
use axon_wire::message::Message;

impl World {
    /// Removes messages that have no effect. `timeless` is true if no time passes before everything
    /// in flight has arrived.
    pub(crate) fn forget_moot(&mut self, timeless: bool) {
        if self.fault == Fault::OpensAll {
            return;
        }
        let mut flight = std::mem::take(&mut self.flight);
        flight.retain(|packet| !is_moot(self, packet, timeless));
        self.flight = flight;
    }
}

fn is_moot(world: &World, packet: &Packet, timeless: bool) -> bool {
    match packet {
        Packet::Up { from, to, .. } => {
            let known = world.head.known(from.node);
            *to != world.head.running() || known.is_some_and(|known| known.number > from.number)
        }
        Packet::Routed { at, from, to, message, .. } => {
            let switch = &world.switches[wiring::place_of(*at)];
            *to != switch.incarnation
                || matches!(message, Message::ControllerHelloAck(ack)
                    if ack.version != switch.version
                        || switch.trial != Some(*from)
                        || switch.controller == Some(*from))
        }
        Packet::Link { to, seal, message, .. } => {
            let switch = &world.switches[wiring::place_of(to.node)];
            let knows = |message: &Message| match message {
                Message::LinkDown(news) => switch.edge.knows_down(world.now, news.ends),
                _ => false,
            };
            *seal != switch.incarnation
                || switch.lost.contains(&to.port)
                || timeless && knows(message)
        }
        Packet::Host { .. } | Packet::Carrier { .. } | Packet::News { .. } => false,
    }
}
