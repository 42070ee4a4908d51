//! The handshake by which the two nodes of a link become neighbours (paper 001 §4.2.1).

use crate::addr::PortNo;
use crate::header::HopWidth;
use serde::{Deserialize, Serialize};

/// The kind of a node in discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// Forwards.
    Switch,
    /// Knows the graph; never a transit hop.
    Controller,
}

/// The first message on a link (paper 001 §4.2.1), to any node at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The sender's port on this link.
    pub port: PortNo,
    /// What the sender is.
    pub role: Role,
    /// The sender's hop width; ends that differ do not become neighbours.
    pub hop_width: HopWidth,
    /// A random number that only an answer of now can return.
    pub challenge: u64,
}

/// The answer to a [`Hello`], to its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HelloReply {
    /// The sender's port on this link.
    pub port: PortNo,
    /// What the sender is.
    pub role: Role,
    /// The sender's hop width.
    pub hop_width: HopWidth,
    /// The challenge of the Hello.
    pub echo: u64,
    /// The sender's own challenge.
    pub challenge: u64,
}

/// Ends the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HelloConfirm {
    /// The challenge of the reply.
    pub echo: u64,
}
