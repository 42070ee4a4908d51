//! Kinds of ports.

use serde::{Deserialize, Serialize};

/// Kind of a port, by its peer.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum PortKind {
    /// Not known yet, or not any more (paper 001 §4.2.1: uninitialised): only link-local Ethernet
    /// is accepted, everything else is dropped as `port_unknown`. So an Axon packet is never taken
    /// for a host's frame, nor a host's frame for an Axon packet.
    #[default]
    Unknown,
    /// Hosts: plain Ethernet in and out.
    Host,
    /// Another Axon: Axon packets, and link-local Ethernet.
    Axon,
}
