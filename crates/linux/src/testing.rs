//! Builds status reports for tests of the code that reads them, here and in the lab.
#![allow(dead_code, reason = "each crate uses its own part")]

use crate::dataplane_choice::DataplaneChoice;
use crate::status::{Answer, LoopCounters, NodeStatus, PortStatus, Status};
use axon_fabric::model::DataplaneKind;
use axon_node::PortKind;
use axon_node::telemetry::{
    ControllerTelemetry, NodeTelemetry, PlaneTelemetry, PortTelemetry, SwitchTelemetry,
};
use axon_wire::NodeId;

/// Returns the telemetry of an idle switch without neighbours and hosts.
pub(crate) fn switch(ports: usize) -> SwitchTelemetry {
    SwitchTelemetry {
        id: NodeId(1),
        controller_path: None,
        neighbours: Vec::new(),
        dcbx: Vec::new(),
        hosts: Vec::new(),
        routes: Vec::new(),
        waiting_frames: 0,
        waiting_bytes: 0,
        unacknowledged: 0,
        plane: PlaneTelemetry {
            ports: vec![PortTelemetry::default(); ports],
            ..PlaneTelemetry::default()
        },
        probes: Vec::new(),
        refusals: Default::default(),
        edge: Default::default(),
        debts: Default::default(),
        refused_settings: Vec::new(),
        settings_refused: 0,
        alone: None,
    }
}

/// Returns the telemetry of an idle controller without switches and hosts.
pub(crate) fn controller() -> ControllerTelemetry {
    ControllerTelemetry {
        id: NodeId(0),
        neighbours: Vec::new(),
        switches: 0,
        hosts: Vec::new(),
        ip_conflicts: Vec::new(),
        routes: 0,
        policy: Default::default(),
        bonds: Vec::new(),
        restored: Default::default(),
        unacknowledged: 0,
        plane: PlaneTelemetry::default(),
        probes: Vec::new(),
        refusals: Default::default(),
        counters: Default::default(),
        dhcp: Default::default(),
        refused_settings: Vec::new(),
        settings_refused: 0,
    }
}

/// Returns the status of a switch `name` with this telemetry. Its ports are up.
pub(crate) fn status(name: &str, switch: SwitchTelemetry) -> NodeStatus {
    let ports = switch.plane.ports.len();
    node(name, ports, NodeTelemetry::Switch(Box::new(switch)))
}

/// Returns the status of a node `name` with this telemetry and this many ports, which are up.
pub(crate) fn node(name: &str, ports: usize, node: NodeTelemetry) -> NodeStatus {
    let port = |number| PortStatus {
        name: format!("{name}-p{number}"),
        up: true,
        kind: PortKind::Axon,
        rate_bps: None,
        mtu_bytes: None,
        mtu_needed_bytes: None,
        counters: Default::default(),
        agent: None,
    };
    let status = Status {
        name: name.into(),
        uptime_us: 0,
        run_loop: LoopCounters::default(),
        ports: (0..ports).map(port).collect(),
        store: None,
        dataplane: Some(DataplaneChoice { carrier: DataplaneKind::Software, why: "a test".into() }),
        node,
    };
    NodeStatus { restarts: 0, answer: Answer::Status(Box::new(status)) }
}

/// Returns a node that does not answer.
pub(crate) fn failed(name: &str, error: &str) -> NodeStatus {
    let (name, error) = (name.to_owned(), error.to_owned());
    NodeStatus { restarts: 0, answer: Answer::Failed { name, error } }
}
