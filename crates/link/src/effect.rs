//! Requests of the link layer to its node.

use crate::member::Member;
use axon_node::{Note, PortKind, Refusal};
use axon_wire::message::{LinkDown, LinkEnd, Message};
use axon_wire::{Hops, Incarnation, PortNo};

/// Request of the link layer: discovery, uplink, LACP, settings of ports. The node seals messages,
/// builds frames and passes them to the plane.
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
    /// Make this port a host port or an Axon port.
    PortKind {
        /// The port.
        port: PortNo,
        /// The new kind.
        kind: PortKind,
    },
    /// The link to the switch at this port is lost.
    LinkLost {
        /// The port.
        port: PortNo,
        /// The far end of the link.
        far: LinkEnd,
    },
    /// A neighbour has passed on a link-down message.
    LinkDown {
        /// The port of the neighbour.
        ingress: PortNo,
        /// The link that is down, and the remaining hop count.
        news: LinkDown,
    },
    /// The LACP state of a bond port has changed.
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
    /// Report this note to the operator.
    Note(Note),
}
