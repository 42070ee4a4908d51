//! What is on its way between nodes and hosts.

use axon_wire::message::{LinkEnd, Message};
use axon_wire::{Incarnation, NodeId};

/// A message, a frame of a host, or news that a node does not have yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    /// From a switch to the controller.
    Up {
        /// Who sealed it.
        from: Incarnation,
        /// Who can open it.
        to: Incarnation,
        /// The message.
        message: Message,
    },
    /// By a route to the control plane of a switch. It may have passed a link before that failed.
    Routed {
        /// The switch where the route ends.
        at: NodeId,
        /// The links on the way.
        over: Vec<usize>,
        /// Who sealed it.
        from: Incarnation,
        /// Who can open it.
        to: Incarnation,
        /// The message.
        message: Message,
    },
    /// Over one link.
    Link {
        /// The port where it arrives.
        to: LinkEnd,
        /// The link.
        over: usize,
        /// Who can open it.
        seal: Incarnation,
        /// The message.
        message: Message,
    },
    /// A frame of a host.
    Host {
        /// Its port.
        at: LinkEnd,
        /// The frame.
        frame: Vec<u8>,
    },
    /// The carrier at a port has gone.
    Carrier {
        /// The port.
        at: LinkEnd,
    },
    /// There is a new incarnation of the controller, or of this switch: the switch introduces
    /// itself.
    News {
        /// The switch.
        at: NodeId,
    },
}

impl Packet {
    /// What it is, for a reader.
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

    /// Whether it is over one of these links, so that it may be lost with it.
    pub fn is_over(&self, links: &std::collections::BTreeSet<usize>) -> bool {
        match self {
            Packet::Routed { over, .. } => over.iter().any(|link| links.contains(link)),
            Packet::Link { over, .. } => links.contains(over),
            _ => false,
        }
    }

    /// Whether it can be lost or doubled. What a node sees by itself cannot; what introduces a
    /// switch is repeated until it is answered (`uplink.rs`), so it is late at the most.
    pub fn is_fragile(&self) -> bool {
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
