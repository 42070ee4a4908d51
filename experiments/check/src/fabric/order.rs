//! Partial-order reduction: some steps are explored in one order only.
//!
//! Some steps are taken at once when enabled, and the alternatives are explored later. The argument
//! is that of persistent sets (Godefroid, Partial-Order Methods for the Verification of Concurrent
//! Systems, 1996):
//!
//! - Whatever else may happen before such a step can be exchanged with it: the state after both is
//!   the same. So each way to a state in which nothing is left to deliver has one of the same steps
//!   with this one first. All these states are visited, and each way without further faults leads
//!   to one of them: from all of them the hosts have to reach each other.
//! - Each invariant concerns one node: a table, a backup, a holder. A node takes the same steps in
//!   the same order on both ways, so it comes to the same states.
//!
//! These steps are taken at once, if no link fails and no node restarts any more:
//!
//! - A switch introduces itself to a new controller, if it sees no further carrier loss. That
//!   reads and writes state that nothing else does: the version of its ports, and the awaited
//!   answer. No answer in flight is one to it.
//! - A quiet switch takes the controller's answer, or loses it with a failed link; and it takes the
//!   commands on its stream. Nothing but these concerns its edge: a step elsewhere puts commands
//!   at the end of the stream and takes reports from the start of the other, these do the reverse.
//!
//! That a quiet switch stays quiet is checked: a step after which it is not violates a property.

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
    /// Returns the step to take at once, if there is one, where these switches are quiet.
    pub(super) fn first(&self, left: Budget, quiet: &[bool]) -> Option<First> {
        if [left.cuts, left.restarts, left.controllers] != [0; 3] || self.fault == Fault::OpensAll {
            return None;
        }
        let mut packets = self.flight.different();
        let comes_first = |packet: &Packet| match packet {
            Packet::News { at } => self.switch(*at).trial != Some(self.running) && self.sees(*at),
            // An answer that the switch does not wait for is moot.
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

    /// Returns whether nothing can reach the edge of a switch but the controller's answer and
    /// commands:
    ///
    /// - nothing fails, restarts or sends requests any more, and no time passes;
    /// - it knows each failed link, so that notifications have no effect, and has noticed the
    ///   carrier losses;
    /// - no frame of a host to another and no message of a set-up is in flight.
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
            // The link is one that the switch knows.
            Packet::Link { message, .. } => !matches!(message, Message::LinkDown(_)),
        }
    }

    /// Returns whether a quiet switch has no own message to handle before those of the controller.
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
