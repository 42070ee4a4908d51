//! Requests of the parts of a control plane to their node.

use crate::member::Member;
use alloc::vec::Vec;
use axon_node::{Note, Refusal, RouteChange, RouteKey, RouteTicket, StoreChange};
use axon_wire::message::{Item, LinkDown, LinkEnd, Message};
use axon_wire::vlan::VlanId;
use axon_wire::{Hops, Incarnation, NodeId, PortNo, Route};

/// A request of a part of the control plane. The node seals messages, builds frames and hands them
/// to the plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Seal `message` and send it to the other end of a link, as a link frame.
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
    /// Seal an echo and send it by a source route that leads back to `port`.
    Echo {
        /// The port that it leaves by, and has to come back by.
        port: PortNo,
        /// The route; its last hop is [`PortNo::CONTROL`], here.
        hops: Hops,
        /// The number that it carries.
        number: u64,
    },
    /// Seal `message` and send it to the controller by the verified path. Without one it is
    /// dropped.
    ToController(Message),
    /// Switch: put this on the reliable stream to the controller.
    Report(Item),
    /// Controller: put this on the reliable stream to a switch.
    Command {
        /// The switch to send it to.
        to: NodeId,
        /// The item that must arrive.
        item: Item,
    },
    /// Controller: call [`Controller::acknowledged`](crate::controller::Controller::acknowledged)
    /// with this number as soon as every switch with links has acknowledged all commands up to now.
    /// It replaces an earlier request.
    AwaitAcknowledged {
        /// The VLAN whose controller waits; none for that of hosts in no VLAN.
        vlan: VlanId,
        /// Which request this is, of that controller.
        number: u64,
    },
    /// Send a plain Ethernet frame out of a host port.
    Host {
        /// The host port.
        port: PortNo,
        /// The frame without FCS.
        frame: Vec<u8>,
    },
    /// Send the frames that wait for this route by it, in their order.
    Release {
        /// The host port where they came in.
        ingress: PortNo,
        /// Their key.
        key: RouteKey,
        /// The route to send them by.
        route: Route,
    },
    /// Drop the frames that wait for this route, as [`Drop::NoRoute`](axon_node::Drop::NoRoute).
    Abandon {
        /// The host port where they came in.
        ingress: PortNo,
        /// Their key.
        key: RouteKey,
    },
    /// Copy the frames that wait for a list of this group to whom it is for, in their order.
    Spread {
        /// The host port where they came in.
        ingress: PortNo,
        /// Their key, whose destination is a group's.
        key: RouteKey,
    },
    /// Ask the data plane for a change of a route table.
    Route {
        /// The ticket that its answer carries.
        ticket: RouteTicket,
        /// The change.
        change: RouteChange,
    },
    /// Re-synchronise the data plane, which owes too many answers.
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
        /// The other end.
        far: LinkEnd,
    },
    /// Switch: a neighbour has passed on that a link is down.
    LinkDown {
        /// The port that the neighbour is at.
        ingress: PortNo,
        /// Which link, and how far the news may go.
        news: LinkDown,
    },
    /// Switch: LACP says this of a port of a bond now.
    Member {
        /// The port.
        port: PortNo,
        /// What it says.
        member: Member,
    },
    /// Count a refused message.
    Refuse {
        /// The ingress port.
        port: PortNo,
        /// The reason for the refusal.
        refusal: Refusal,
    },
    /// Controller: keep this for the next incarnation.
    Store(StoreChange),
    /// Report this note to the operator.
    Note(Note),
}
