//! Packets in flight between nodes and hosts.

use axon_wire::message::{LinkEnd, Message};
use axon_wire::{Incarnation, NodeId};

/// Message, frame of a host, or event that a node has yet to detect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    /// Message from a switch to the controller.
    Up {
        /// Incarnation that has sealed the message.
        from: Incarnation,
        /// Incarnation that can open the message.
        to: Incarnation,
        /// Message from the switch.
        message: Message,
    },
    /// Message by a route to the control plane of a switch. It may already have passed a link
    /// before that link failed.
    Routed {
        /// Switch at the end of the route.
        at: NodeId,
        /// Links on the route.
        over: Vec<usize>,
        /// Incarnation that has sealed the message.
        from: Incarnation,
        /// Incarnation that can open the message.
        to: Incarnation,
        /// Message for the switch.
        message: Message,
    },
    /// Message over a single link.
    Link {
        /// Port at which it arrives.
        to: LinkEnd,
        /// Link that it crosses.
        over: usize,
        /// Incarnation that can open the message.
        seal: Incarnation,
        /// Message for the neighbour.
        message: Message,
    },
    /// Frame from a host.
    Host {
        /// Port of the host.
        at: LinkEnd,
        /// Frame that the host has sent.
        frame: Vec<u8>,
    },
    /// Loss of the carrier at a port.
    Carrier {
        /// Port that has lost its carrier.
        at: LinkEnd,
    },
    /// New incarnation of the controller, or of this switch. The switch introduces itself after it.
    News {
        /// Switch that will introduce itself.
        at: NodeId,
    },
}

impl Packet {
    /// Returns the kind of the packet, in words for a reader.
    pub fn kind(&self) -> &'static str {
        match self {
            Packet::Carrier { .. } => "no carrier",
            Packet::News { .. } => "news of the controller",
            Packet::Host { .. } => "frame of a host",
            Packet::Up { message, .. }
            | Packet::Routed { message, .. }
            | Packet::Link { message, .. } => kind(message),
        }
    }

    /// Returns whether the packet is on one of these links, so that it may be lost with the link.
    pub(crate) fn is_over(&self, links: &std::collections::BTreeSet<usize>) -> bool {
        match self {
            Packet::Routed { over, .. } => over.iter().any(|link| links.contains(link)),
            Packet::Link { over, .. } => links.contains(over),
            _ => false,
        }
    }

    /// Returns whether the packet can be lost or duplicated. Local events cannot. Introductions are
    /// repeated until they are answered (`uplink.rs`), so they can only be late.
    pub(crate) fn is_fragile(&self) -> bool {
        match self {
            Packet::Carrier { .. } | Packet::News { .. } => false,
            Packet::Host { .. } => true,
            Packet::Up { message, .. }
            | Packet::Routed { message, .. }
            | Packet::Link { message, .. } => {
                !matches!(message, Message::ControllerHello(_) | Message::ControllerHelloAck(_))
            }
        }
    }
}

fn kind(message: &Message) -> &'static str {
    match message {
        Message::ControllerHello(_) => "ControllerHello",
        Message::ControllerHelloAck(_) => "ControllerHelloAck",
        Message::ArpRequest(_) => "ArpRequest",
        Message::ArpTarget(_) => "ArpTarget",
        Message::ArpReply(_) => "ArpReply",
        Message::Seek(_) => "Seek",
        Message::LinkDown(_) => "LinkDown",
        Message::HostFrame(_) => "HostFrame",
        _ => "another message",
    }
}
