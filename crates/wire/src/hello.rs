//! Handshake by which the two nodes of a link become neighbours (paper 001 §4.2.1).

use crate::addr::PortNo;
use crate::header::HopWidth;
use serde::{Deserialize, Serialize};

/// Role of a node in discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// A switch, which forwards packets.
    Switch,
    /// A controller, which has the topology and is never a transit hop.
    Controller,
}

/// The first message on a link (paper 001 §4.2.1), to any node at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The sender's port on this link.
    pub port: PortNo,
    /// The sender's role.
    pub role: Role,
    /// The sender's hop width; ends with different widths do not become neighbours.
    pub hop_width: HopWidth,
    /// Random challenge, which the answer returns to prove that it is not a replay.
    pub challenge: u64,
}

/// The answer to a [`Hello`], to its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HelloReply {
    /// The sender's port on this link.
    pub port: PortNo,
    /// The sender's role.
    pub role: Role,
    /// The sender's hop width.
    pub hop_width: HopWidth,
    /// The challenge of the Hello.
    pub echo: u64,
    /// The sender's own challenge.
    pub challenge: u64,
}

/// The last message of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HelloConfirm {
    /// The challenge of the reply.
    pub echo: u64,
}
