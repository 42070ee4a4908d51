//! A switch with seven ports to hosts, as a controller meets it.

use axon_wire::message::{ControllerHello, Peer, PortState};
use axon_wire::{Hops, Incarnation, NodeId, PortNo};

/// The switch.
pub const SWITCH: Incarnation = Incarnation { node: NodeId(1), number: 1 };

/// Returns the Controller Hello of a switch with seven hosts.
pub fn hello() -> ControllerHello {
    let state = |port| PortState { port: PortNo(port), peer: Peer::Host };
    ControllerHello { version: 1, nonce: 1, ports: (1..8).map(state).collect() }
}

/// The way from the controller to it.
pub fn reverse() -> Hops {
    Hops::from([0, PortNo::CONTROL.0])
}
