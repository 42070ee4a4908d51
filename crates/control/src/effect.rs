//! What the parts of a control plane ask of the node that holds them.

use alloc::vec::Vec;
use axon_node::{Note, Refusal};
use axon_wire::message::{Item, Message};
use axon_wire::{Hops, Life, NodeId, PortNo, Route};

/// One wish. The node seals messages, builds frames and hands them to the plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Seal `message` and send it to the other end of a link, as a link frame.
    Link {
        /// The link.
        port: PortNo,
        /// For this life only; `None` for whoever is there (Hello).
        to: Option<Life>,
        /// What to say.
        message: Message,
    },
    /// Seal `message` and send it by a source route from this control plane.
    Routed {
        /// Ends in [`PortNo::CONTROL`].
        hops: Hops,
        /// For this life only.
        to: Life,
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
    /// Send a host's frame on its way by `route`: the slow path.
    Forward {
        /// The host port that it came in by.
        ingress: PortNo,
        /// The route.
        route: Route,
        /// The Ethernet frame.
        frame: Vec<u8>,
    },
    /// A frame that waited here ends here.
    Drop {
        /// The port it came in by.
        ingress: PortNo,
        /// Why.
        reason: axon_node::Drop,
        /// The Ethernet frame.
        frame: Vec<u8>,
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
