//! Node state that the run loop and the status reports read.

use axon_node::telemetry::NodeTelemetry;
use axon_node::{Dataplane, PortKind, Shortcuts};
use axon_switch::agent::{AgentNode, HOST, Rules};
use axon_switch::{ControllerNode, SwitchNode};
use axon_wire::{PortNo, Time};

/// Node that a [`Runtime`](crate::run::Runtime) can run.
pub trait Inspect: Shortcuts {
    /// Returns the kind of the peer at a port, as stored in the node's data plane.
    fn port_kind(&self, port: PortNo) -> PortKind;

    /// Returns the rules that map frames from the host at a port to priorities, or `None` if the
    /// node does not manage the queues of the host.
    fn rules(&self, port: PortNo) -> Option<&Rules> {
        let _ = port;
        None
    }

    /// Returns the telemetry at `now`.
    fn telemetry(&self, now: Time) -> NodeTelemetry;
}

impl<D: Dataplane + Shortcuts> Inspect for SwitchNode<D> {
    fn port_kind(&self, port: PortNo) -> PortKind {
        self.plane().kind(port).unwrap_or_default()
    }

    fn telemetry(&self, now: Time) -> NodeTelemetry {
        NodeTelemetry::Switch(Box::new(self.telemetry(now)))
    }
}

impl<D: Dataplane + Shortcuts> Inspect for ControllerNode<D> {
    fn port_kind(&self, port: PortNo) -> PortKind {
        self.plane().kind(port).unwrap_or_default()
    }

    fn telemetry(&self, now: Time) -> NodeTelemetry {
        NodeTelemetry::Controller(Box::new(self.telemetry(now)))
    }
}

impl Inspect for AgentNode {
    /// Both ends of the link carry plain Ethernet.
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
