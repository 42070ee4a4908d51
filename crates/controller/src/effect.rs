//! Requests of a controller to its node.

use alloc::vec::Vec;
use axon_node::{Note, StoreChange};
use axon_wire::message::{Item, Message};
use axon_wire::vlan::VlanId;
use axon_wire::{Hops, Incarnation, NodeId};

/// Request of a controller. The node seals messages and passes them to the plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Seal `message` and send it by a source route from this control plane.
    Routed {
        /// The route; its last hop is [`PortNo::CONTROL`](axon_wire::PortNo::CONTROL).
        hops: Hops,
        /// The incarnation that may open it.
        to: Incarnation,
        /// The message.
        message: Message,
    },
    /// Put this item on the reliable stream to a switch.
    Command {
        /// The destination switch.
        to: NodeId,
        /// The item to deliver.
        item: Item,
    },
    /// Call `Controller::acknowledged` with `number` once every switch with links has acknowledged
    /// all commands so far. Replaces an earlier request.
    AwaitAcknowledged {
        /// The controller's number for this request.
        number: u64,
    },
    /// Store this change for the next incarnation.
    Store(StoreChange),
    /// Report this note to the operator.
    Note(Note),
}

/// Requests of a controller, each with the VLAN of the hosts that it is about.
pub type Effects = Vec<(VlanId, Effect)>;

/// Makes a call whose requests are not about hosts.
pub(crate) fn of_fabric<R>(out: &mut Effects, call: impl FnOnce(&mut Vec<Effect>) -> R) -> R {
    let mut own = Vec::new();
    let result = call(&mut own);
    out.extend(own.into_iter().map(|effect| (VlanId::NONE, effect)));
    result
}
