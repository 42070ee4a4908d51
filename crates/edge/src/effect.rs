//! Requests of an edge to its node.

use alloc::vec::Vec;
use axon_node::{Note, RouteChange, RouteKey, RouteTicket};
use axon_wire::message::{Item, LinkEnd, Message};
use axon_wire::vlan::VlanId;
use axon_wire::{Hops, Incarnation, PortNo, Route};

/// Request of an edge, about hosts of its VLAN. The node seals messages, builds frames and passes
/// them to the plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Seal `message` and send it by a source route from this control plane.
    Routed {
        /// The route; its last hop is [`PortNo::CONTROL`].
        hops: Hops,
        /// The incarnation that may open it.
        to: Incarnation,
        /// The message.
        message: Message,
    },
    /// Seal `message` and send it to the controller along the verified path. Dropped if there is
    /// none.
    ToController(Message),
    /// Put this item on the reliable stream to the controller.
    Report(Item),
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
    /// The link to the switch at this port is lost.
    LinkLost {
        /// The port.
        port: PortNo,
        /// The far end of the link.
        far: LinkEnd,
    },
    /// Report this note to the operator.
    Note(Note),
}

impl From<(VlanId, Effect)> for Effect {
    /// Returns the request alone, where a fabric has no VLANs.
    fn from((_, effect): (VlanId, Effect)) -> Effect {
        effect
    }
}
