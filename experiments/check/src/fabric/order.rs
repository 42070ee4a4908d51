//! Partial-order reduction: some steps are explored in one order only.
//!
//! Some steps are taken at once when they are enabled, and the alternatives are explored later. The
//! argument is the one for persistent sets (Godefroid, Partial-Order Methods for the Verification
//! of Concurrent Systems, 1996):
//!
//! - Any other step that may happen before such a step can be exchanged with it, because the state
//!   after both is the same. So for each path to a state in which nothing is left to deliver, there
//!   is a path with the same steps that begins with this one. All these states are visited, and
//!   each path without further faults leads to one of them. From all of them, the hosts must reach
//!   each other.
//! - Each invariant concerns a single node, namely a table, a backup or a holder. A node takes the
//!   same steps in the same order on both paths, so it goes through the same states.
//!
//! The following steps are taken at once if no link fails and no node restarts any more:
//!
//! - A switch introduces itself to a new controller, if it will detect no further carrier loss.
//!   This step reads and writes state that no other step uses, namely the version of the switch's
//!   ports and the awaited answer. No answer in flight belongs to this introduction.
//! - A quiet switch takes the controller's answer, or loses it with a failed link, and it takes the
//!   commands on its stream. Nothing else concerns its edge. A step elsewhere appends commands to
//!   the end of one stream and takes reports from the start of the other, and these steps do the
//!   reverse.
//!
//! It is checked that a quiet switch stays quiet. A step after which it is not quiet violates a
//! property.

use super::packet::Packet;
use super::wiring::{self, mac};
use super::world::{Fault, World};
use crate::budget::Budget;
use axon_wire::NodeId;
use axon_wire::message::Message;

/// Step that is taken at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum First {
    /// Arrival of the packet at this index, or its loss with a failed link.
    Packet(usize),
    /// Receipt of the next command by a switch.
    Command(usize),
}

impl World {
    /// Returns the step that is to be taken at once, if there is one, given that these switches are
    /// quiet.
    pub(super) fn first(&self, left: Budget, quiet: &[bool]) -> Option<First> {
        if [left.cuts, left.restarts, left.controllers] != [0; 3] || self.fault == Fault::OpensAll {
            return None;
        }
        let mut packets = self.flight.different();
        let comes_first = |packet: &Packet| match packet {
            Packet::News { at } => self.switch(*at).trial != Some(self.running) && self.sees(*at),
            // An answer for which the switch does not wait is moot.
            Packet::Routed { at, message: Message::ControllerHelloAck(_), .. } => {
                self.takes_from_controller(*at, quiet) && !self.has_news(*at)
            }
            _ => false,
        };
        if let Some((place, _)) = packets.find(|(_, packet)| comes_first(packet)) {
            return Some(First::Packet(place));
        }
        let takes = |&switch: &usize| {
            let node = wiring::node_id(switch);
            self.has_command(switch) && self.takes_from_controller(node, quiet)
        };
        (0..self.switches.len()).find(takes).map(First::Command)
    }

    /// Returns whether only the controller's answer and commands can reach the edge of a switch.
    /// This requires the following:
    ///
    /// - nothing fails, restarts or sends requests any more, and no time passes;
    /// - the switch knows each failed link, so that notifications have no effect, and it has
    ///   noticed the carrier losses;
    /// - no frame from one host to another and no set-up message is in flight.
    pub(super) fn is_quiet(&self, switch: usize, left: Budget) -> bool {
        let Budget { asks, ticks, cuts, restarts, controllers, losses: _, duplicates: _ } = left;
        let node = wiring::node_id(switch);
        [asks, ticks, cuts, restarts, controllers] == [0; 5]
            && self.fault != Fault::OpensAll
            && self.sees(node)
            && !self.flight.iter().any(|packet| self.may_reach(packet, node))
            && (self.cut.iter())
                .all(|&link| self.switch(node).edge.knows_down(self.now, self.wiring.links[link]))
    }

    /// Returns whether a packet elsewhere, or its consequences, may concern the edge of this
    /// switch.
    fn may_reach(&self, packet: &Packet, node: NodeId) -> bool {
        match packet {
            Packet::Carrier { .. } | Packet::News { .. } => false,
            Packet::Host { at, frame } => {
                let is_to = |host| frame.starts_with(&mac(host).0);
                at.node != node && (0..self.wiring.hosts()).any(is_to)
            }
            Packet::Up { message, .. } => !matches!(message, Message::ControllerHello(_)),
            Packet::Routed { message, .. } => !matches!(message, Message::ControllerHelloAck(_)),
            // The switch already knows this link to be down.
            Packet::Link { message, .. } => !matches!(message, Message::LinkDown(_)),
        }
    }

    /// Returns whether a quiet switch has no message of its own to handle before those from the
    /// controller.
    fn takes_from_controller(&self, node: NodeId, quiet: &[bool]) -> bool {
        let is_own = |packet: &Packet| matches!(packet, Packet::Host { at, .. } if at.node == node);
        quiet[wiring::place_of(node)] && !self.flight.iter().any(is_own)
    }

    /// Returns whether a switch has noticed all its carrier losses.
    fn sees(&self, node: NodeId) -> bool {
        let is_of = |packet: &Packet| matches!(packet, Packet::Carrier { at } if at.node == node);
        !self.flight.iter().any(is_of)
    }

    /// Returns whether a switch is about to introduce itself.
    fn has_news(&self, node: NodeId) -> bool {
        let is_of = |packet: &Packet| matches!(packet, Packet::News { at } if *at == node);
        self.flight.iter().any(is_of)
    }
}
