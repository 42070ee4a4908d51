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

use super::{Fault, World};
use crate::budget::Budget;
use crate::fabric::packet::Packet;
use crate::fabric::switch::Switch;
use crate::fabric::wiring::{self, mac};
use axon_wire::NodeId;
use axon_wire::message::Message;

/// Step that is taken at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum First {
    /// Arrival of the packet at this index, or its loss with a failed link.
    Packet(usize),
    /// Receipt of the next command by a switch.
    Command(usize),
}

/// Returns the step that is to be taken at once, if there is one, given that these switches are
/// quiet.
pub(crate) fn first(world: &World, left: Budget, quiet: &[bool]) -> Option<First> {
    if [left.cuts, left.restarts, left.controllers] != [0; 3] || world.fault == Fault::OpensAll {
        return None;
    }
    let mut packets = world.flight.different();
    let comes_first = |packet: &Packet| match packet {
        Packet::News { at } => {
            switch_at(world, *at).trial != Some(world.head.running()) && sees(world, *at)
        }
        // An answer for which the switch does not wait is moot.
        Packet::Routed { at, message: Message::ControllerHelloAck(_), .. } => {
            takes_from_controller(world, *at, quiet) && !has_news(world, *at)
        }
        _ => false,
    };
    if let Some((place, _)) = packets.find(|(_, packet)| comes_first(packet)) {
        return Some(First::Packet(place));
    }
    let takes = |&switch: &usize| {
        let node = wiring::node_id(switch);
        world.has_command(switch) && takes_from_controller(world, node, quiet)
    };
    (0..world.switches.len()).find(takes).map(First::Command)
}

/// Returns whether only the controller's answer and commands can reach the edge of a switch.
/// This requires the following:
///
/// - nothing fails, restarts or sends requests any more, and no time passes;
/// - the switch knows each failed link, so that notifications have no effect, and it has
///   noticed the carrier losses;
/// - no frame from one host to another and no set-up message is in flight.
pub(crate) fn is_quiet(world: &World, switch: usize, left: Budget) -> bool {
    let Budget { asks, ticks, cuts, restarts, controllers, losses: _, duplicates: _ } = left;
    let node = wiring::node_id(switch);
    [asks, ticks, cuts, restarts, controllers] == [0; 5]
        && world.fault != Fault::OpensAll
        && sees(world, node)
        && !world.flight.iter().any(|packet| may_reach(world, packet, node))
        && (world.cut().iter()).all(|&link| {
            switch_at(world, node).edge.knows_down(world.now, world.wiring().links[link])
        })
}

/// Returns whether a packet elsewhere, or its consequences, may concern the edge of this
/// switch.
fn may_reach(world: &World, packet: &Packet, node: NodeId) -> bool {
    match packet {
        Packet::Carrier { .. } | Packet::News { .. } => false,
        Packet::Host { at, frame } => {
            let is_to = |host| frame.starts_with(&mac(host).0);
            at.node != node && (0..world.wiring().hosts()).any(is_to)
        }
        Packet::Up { message, .. } => !matches!(message, Message::ControllerHello(_)),
        Packet::Routed { message, .. } => !matches!(message, Message::ControllerHelloAck(_)),
        // The switch already knows this link to be down.
        Packet::Link { message, .. } => !matches!(message, Message::LinkDown(_)),
    }
}

/// Returns whether a quiet switch has no message of its own to handle before those from the
/// controller.
fn takes_from_controller(world: &World, node: NodeId, quiet: &[bool]) -> bool {
    let is_own = |packet: &Packet| matches!(packet, Packet::Host { at, .. } if at.node == node);
    quiet[wiring::place_of(node)] && !world.flight.iter().any(is_own)
}

/// Returns whether a switch has noticed all its carrier losses.
fn sees(world: &World, node: NodeId) -> bool {
    let is_of = |packet: &Packet| matches!(packet, Packet::Carrier { at } if at.node == node);
    !world.flight.iter().any(is_of)
}

/// Returns whether a switch is about to introduce itself.
fn has_news(world: &World, node: NodeId) -> bool {
    let is_of = |packet: &Packet| matches!(packet, Packet::News { at } if *at == node);
    world.flight.iter().any(is_of)
}

/// Returns a switch, given its node ID.
fn switch_at(world: &World, node: NodeId) -> &Switch {
    &world.switches[wiring::place_of(node)]
}
