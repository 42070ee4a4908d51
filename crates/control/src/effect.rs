//! What the parts of a control plane ask of the node that holds them.

use alloc::vec::Vec;
use axon_node::{Note, Refusal, RouteChange, RouteTicket};
use axon_wire::message::{Item, Message};
use axon_wire::{Hops, Incarnation, MacAddr, NodeId, PortNo, Route};

/// One request. The node seals messages, builds frames and hands them to the plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Seal `message` and send it to the other end of a link, as a link frame.
    Link {
        /// The link.
        port: PortNo,
        /// For this incarnation only; `None` for whoever is there (Hello).
        to: Option<Incarnation>,
        /// What to say.
        message: Message,
    },
    /// Seal `message` and send it by a source route from this control plane.
    Routed {
        /// Ends in [`PortNo::CONTROL`].
        hops: Hops,
        /// For this incarnation only.
        to: Incarnation,
        /// What to say.
        message: Message,
    },
    /// Seal `message` and send it to the controller by the verified path; lost without one.
    ToController(Message),
    /// Switch: put this on the reliable stream to the controller.
    Report(Item),
    /// Controller: put this on the reliable stream to a switch.
    Command {
        /// The switch.
        to: NodeId,
        /// What must arrive.
        item: Item,
    },
    /// Send a plain Ethernet frame out of a host port.
    Host {
        /// The port.
        port: PortNo,
        /// The frame, no FCS.
        frame: Vec<u8>,
    },
    /// The frames that wait for this route go by it, in their order.
    Release {
        /// The host port that they came in by.
        ingress: PortNo,
        /// Where they go.
        destination: MacAddr,
        /// The route.
        route: Route,
    },
    /// The frames that wait for this route end here, as [`Drop::NoRoute`](axon_node::Drop::NoRoute).
    Abandon {
        /// The host port that they came in by.
        ingress: PortNo,
        /// Where they would have gone.
        destination: MacAddr,
    },
    /// Ask the data plane for a change of a route table.
    Route {
        /// Comes back in its answer.
        ticket: RouteTicket,
        /// What is to change.
        change: RouteChange,
    },
    /// Make this port a host port or an Axon port.
    PortKind {
        /// The port.
        port: PortNo,
        /// What it is now.
        kind: axon_node::PortKind,
    },
    /// A message was refused; the node counts it.
    Refuse {
        /// Where it came in.
        port: PortNo,
        /// Why.
        refusal: Refusal,
    },
    /// Tell the operator.
    Note(Note),
}
