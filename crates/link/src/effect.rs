//! Requests from the parts of a control plane to their node.

use crate::member::Member;
use alloc::vec::Vec;
use axon_node::{Note, Refusal, RouteChange, RouteKey, RouteTicket, StoreChange};
use axon_wire::message::{Item, LinkDown, LinkEnd, Message};
use axon_wire::vlan::VlanId;
use axon_wire::{Hops, Incarnation, NodeId, PortNo, Route};

/// Request from a part of the control plane. The node seals messages, builds frames and passes them
/// to the plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Seal `message` and send it to the other end of a link in a link frame.
    Link {
        /// The local port of the link.
        port: PortNo,
        /// The incarnation that may open it; `None` for any node at the other end (Hello).
        to: Option<Incarnation>,
        /// The message.
        message: Message,
    },
    /// Seal `message` and send it by a source route from this control plane.
    Routed {
        /// The route; its last hop is [`PortNo::CONTROL`].
        hops: Hops,
        /// The incarnation that may open it.
        to: Incarnation,
        /// The message.
        message: Message,
    },
    /// Seal an echo and send it along a source route that leads back to `port`.
    Echo {
        /// The port it leaves and must return on.
        port: PortNo,
        /// The route; its last hop is this node's [`PortNo::CONTROL`].
        hops: Hops,
        /// The sequence number in the echo.
        number: u64,
    },
    /// Seal `message` and send it to the controller along the verified path. Dropped if there is
    /// none.
    ToController(Message),
    /// Switch: put this item on the reliable stream to the controller.
    Report(Item),
    /// Controller: put this item on the reliable stream to a switch.
    Command {
        /// The destination switch.
        to: NodeId,
        /// The item to deliver.
        item: Item,
    },
    /// Controller: call its `acknowledged` with `number` once every switch with links has
    /// acknowledged all commands so far. Replaces an earlier request.
    AwaitAcknowledged {
        /// The VLAN of the controller; `VlanId::NONE` for the controller of untagged hosts.
        vlan: VlanId,
        /// The controller's number for this request.
        number: u64,
    },
    /// Send a plain Ethernet frame out of a host port.
    Host {
        /// The host port.
        port: PortNo,
        /// The frame without FCS.
        frame: Vec<u8>,
    },
    /// Forward the queued frames of this key along this route, in order.
    Release {
        /// The host port where the frames arrived.
        ingress: PortNo,
        /// The frames' route key.
        key: RouteKey,
        /// The route to forward them along.
        route: Route,
    },
    /// Drop the queued frames of this key, as [`Drop::NoRoute`](axon_node::Drop::NoRoute).
    Abandon {
        /// The host port where the frames arrived.
        ingress: PortNo,
        /// The frames' route key.
        key: RouteKey,
    },
    /// Copy the queued frames of this group to its members, in order.
    Spread {
        /// The host port where the frames arrived.
        ingress: PortNo,
        /// The frames' route key; its destination is a group address.
        key: RouteKey,
    },
    /// Request a change of a route table from the data plane.
    Route {
        /// The ticket that the answer carries.
        ticket: RouteTicket,
        /// The change.
        change: RouteChange,
    },
    /// Resynchronise the data plane, which has too many answers outstanding.
    Resynchronise,
    /// Make this port a host port or an Axon port.
    PortKind {
        /// The port.
        port: PortNo,
        /// The new kind.
        kind: axon_node::PortKind,
    },
    /// Switch: the link to the switch at this port is lost.
    LinkLost {
        /// The port.
        port: PortNo,
        /// The far end of the link.
        far: LinkEnd,
    },
    /// Switch: a neighbour has passed on a link-down message.
    LinkDown {
        /// The port of the neighbour.
        ingress: PortNo,
        /// The link that is down, and the remaining hop count.
        news: LinkDown,
    },
    /// Switch: the LACP state of a bond port has changed.
    Member {
        /// The port.
        port: PortNo,
        /// The new LACP state.
        member: Member,
    },
    /// Count a refused message.
    Refuse {
        /// The ingress port.
        port: PortNo,
        /// The reason for the refusal.
        refusal: Refusal,
    },
    /// Controller: store this change for the next incarnation.
    Store(StoreChange),
    /// Report this note to the operator.
    Note(Note),
}
