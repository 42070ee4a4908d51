//! What the run loop and the status read of a node.

use axon_control::node::{ControllerNode, SwitchNode};
use axon_dcbx::agent::{AgentNode, HOST, Rules};
use axon_node::telemetry::NodeTelemetry;
use axon_node::{Dataplane, Node, PortKind};
use axon_wire::{PortNo, Time};

/// A node that a [`Runtime`](crate::run::Runtime) can run.
pub trait Inspect: Node {
    /// What is plugged into a port, by the node's data plane.
    fn port_kind(&self, port: PortNo) -> PortKind;

    /// Which frames of the host at a port have which priority; `None` if the queues of the host
    /// are not the node's affair.
    fn rules(&self, port: PortNo) -> Option<&Rules> {
        let _ = port;
        None
    }

    /// All that it reports of itself at `now`.
    fn telemetry(&self, now: Time) -> NodeTelemetry;
}

impl<D: Dataplane> Inspect for SwitchNode<D> {
    fn port_kind(&self, port: PortNo) -> PortKind {
        self.plane().kind(port).unwrap_or_default()
    }

    fn telemetry(&self, now: Time) -> NodeTelemetry {
        NodeTelemetry::Switch(Box::new(self.telemetry(now)))
    }
}

impl<D: Dataplane> Inspect for ControllerNode<D> {
    fn port_kind(&self, port: PortNo) -> PortKind {
        self.plane().kind(port).unwrap_or_default()
    }

    fn telemetry(&self, now: Time) -> NodeTelemetry {
        NodeTelemetry::Controller(Box::new(self.telemetry(now)))
    }
}

impl Inspect for AgentNode {
    /// Both ends carry plain Ethernet.
    fn port_kind(&self, _: PortNo) -> PortKind {
        PortKind::Host
    }

    fn rules(&self, port: PortNo) -> Option<&Rules> {
        (port == HOST).then(|| self.rules())
    }

    fn telemetry(&self, now: Time) -> NodeTelemetry {
        NodeTelemetry::Agent(Box::new(self.telemetry(now)))
    }
}
