//! Telemetry of a whole node.

use super::bonds::BondTelemetry;
use super::conflicts::IpConflict;
use super::control::{
    ControllerCounters, ControllerHost, DhcpCounters, EdgeCounters, EdgeDebts, EdgeHost, EdgeRoute,
    Neighbour, PolicyTelemetry, RefusedSetting, Restored,
};
use super::counts::Counts;
use super::dcbx::DcbxTelemetry;
use super::flow_control::FlowControl;
use super::plane::PlaneTelemetry;
use super::static_mode::StaticTelemetry;
use super::text;
use crate::contract::Refusal;
use crate::counters::PortCounters;
use crate::probe::ProbeReport;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use axon_wire::priority::{Priority, PrioritySet};
use axon_wire::{Hops, NodeId};
use serde::{Deserialize, Serialize};

/// Telemetry of a node; `role` is its kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum NodeTelemetry {
    /// The node is a switch.
    Switch(Box<SwitchTelemetry>),
    /// The node is a controller.
    Controller(Box<ControllerTelemetry>),
    /// The node is the agent at a host's edge.
    Agent(Box<AgentTelemetry>),
    /// The node is a programmable switch.
    Programmable(Box<ProgrammableTelemetry>),
}

impl NodeTelemetry {
    /// Returns the hosts of the whole fabric, if the node decides about routes to them: the
    /// controller, or a switch in a fabric without one.
    pub fn known_hosts(&self) -> Option<&[ControllerHost]> {
        match self {
            NodeTelemetry::Controller(controller) => Some(&controller.hosts),
            NodeTelemetry::Switch(switch) => Some(&switch.alone.as_ref()?.hosts),
            NodeTelemetry::Agent(_) | NodeTelemetry::Programmable(_) => None,
        }
    }
}

/// Telemetry of a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchTelemetry {
    /// The identity of the switch, a number.
    pub id: NodeId,
    /// The hops to the controller, if a path was verified.
    pub controller_path: Option<Hops>,
    /// The neighbours discovered by the switch.
    pub neighbours: Vec<Neighbour>,
    /// LLDP and DCBX of each port, if the switch advertises them.
    pub dcbx: Vec<DcbxTelemetry>,
    /// The hosts that the switch has learned at its ports.
    pub hosts: Vec<EdgeHost>,
    /// The routes of its hosts.
    pub routes: Vec<EdgeRoute>,
    /// Frames of hosts that are held until their route is set up.
    pub waiting_frames: u64,
    /// Bytes of held frames, with 64 bytes of overhead for each frame.
    pub waiting_bytes: u64,
    /// Reports that the controller has not acknowledged yet.
    pub unacknowledged: u64,
    /// The counters of the data plane.
    pub plane: PlaneTelemetry,
    /// The probe reports, oldest plan first.
    pub probes: Vec<ProbeReport>,
    /// Control messages refused, by reason.
    pub refusals: Counts<Refusal>,
    /// The counters of its edge.
    pub edge: EdgeCounters,
    /// Pending work of its data plane for its edge.
    pub debts: EdgeDebts,
    /// Settings of ports that its data plane has refused.
    pub refused_settings: Vec<RefusedSetting>,
    /// Number of settings that its data plane has refused.
    pub settings_refused: u64,
    /// State of its own decisions in a fabric without a controller; null in one with a controller.
    pub alone: Option<Box<StaticTelemetry>>,
}

/// Telemetry of a controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControllerTelemetry {
    /// The identity of the controller, a number.
    pub id: NodeId,
    /// The neighbours discovered by the controller.
    pub neighbours: Vec<Neighbour>,
    /// Number of switches in its topology.
    pub switches: u64,
    /// The hosts of the fabric.
    pub hosts: Vec<ControllerHost>,
    /// Addresses that two hosts use now, 256 at most for each VLAN.
    pub ip_conflicts: Vec<IpConflict>,
    /// Number of routes set up by it and still in place.
    pub routes: u64,
    /// The policy: the hosts that may reach each other.
    pub policy: PolicyTelemetry,
    /// The bonds of the fabric file, with the state of each port last reported by its switch.
    pub bonds: Vec<BondTelemetry>,
    /// State taken over from its previous incarnation.
    pub restored: Restored,
    /// Commands to switches that are not acknowledged yet.
    pub unacknowledged: u64,
    /// The counters of the data plane.
    pub plane: PlaneTelemetry,
    /// The probe reports, oldest plan first.
    pub probes: Vec<ProbeReport>,
    /// Control messages refused, by reason.
    pub refusals: Counts<Refusal>,
    /// The counters of the controller.
    pub counters: ControllerCounters,
    /// The counters of its DHCP server.
    pub dhcp: DhcpCounters,
    /// Settings of ports that its data plane has refused.
    pub refused_settings: Vec<RefusedSetting>,
    /// Number of settings that its data plane has refused.
    pub settings_refused: u64,
}

/// Telemetry of the agent at a host's edge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentTelemetry {
    /// Priorities with PFC on the link to the fabric.
    #[serde(with = "text::priorities")]
    pub pfc: PrioritySet,
    /// True if PAUSE is in use on that link, because no priority has PFC.
    pub pause: bool,
    /// Rules that assign priorities to frames: `udp:4791=3 default=0`.
    pub rules: String,
    /// The reaction points of the agent, by priority.
    pub reaction_points: Vec<ReactionPoint>,
    /// LLDP and DCBX at the port to the fabric, if it advertises them.
    pub dcbx: Option<DcbxTelemetry>,
    /// Flow control at the port to the host.
    pub host: FlowControl,
    /// Flow control at the port to the fabric.
    pub fabric: FlowControl,
    /// The sum over both ports.
    pub total: PortCounters,
}

/// Telemetry of a programmable switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgrammableTelemetry {
    /// The name of its control program, or its file.
    pub program: String,
    /// True if the switch carries traffic of hosts, as far as the program can determine.
    pub ready: bool,
    /// The reason for which the program has ended and accepts no packets; null while it runs.
    pub failure: Option<String>,
    /// The reason for which the tables refuse entries of the program, which continues and tries
    /// again; null while none are missing.
    pub refusal: Option<String>,
    /// Number of entries of each table of the switch.
    pub tables: Vec<TableCount>,
    /// The counters of the data plane.
    pub plane: PlaneTelemetry,
}

/// Number of entries of a table of a programmable switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableCount {
    /// The name of the table, such as `tcam`.
    pub table: String,
    /// Current number of entries of the table.
    pub entries: u32,
    /// Maximum number of entries of the table.
    pub size: u32,
}

/// A reaction point (IEEE 802.1Q clause 31.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReactionPoint {
    /// The priority, 0 to 7.
    pub priority: Priority,
    /// Congestion notifications that had an effect.
    pub cnms: u64,
    /// The current rate limit of the host, in bits per second.
    pub rate_bps: u64,
}

impl NodeTelemetry {
    /// Returns the identity of the node; agents and programmable switches have none.
    pub fn id(&self) -> Option<NodeId> {
        match self {
            NodeTelemetry::Switch(switch) => Some(switch.id),
            NodeTelemetry::Controller(controller) => Some(controller.id),
            NodeTelemetry::Agent(_) | NodeTelemetry::Programmable(_) => None,
        }
    }

    /// Returns the switch, if the node is one.
    pub fn switch(&self) -> Option<&SwitchTelemetry> {
        if let NodeTelemetry::Switch(switch) = self { Some(switch) } else { None }
    }

    /// Returns the programmable switch, if the node is one.
    pub fn programmable(&self) -> Option<&ProgrammableTelemetry> {
        if let NodeTelemetry::Programmable(switch) = self { Some(switch) } else { None }
    }

    /// Returns the agent, if the node is one.
    pub fn agent(&self) -> Option<&AgentTelemetry> {
        if let NodeTelemetry::Agent(agent) = self { Some(agent) } else { None }
    }

    /// Returns the data plane; `None` for an agent, which has no complete one.
    pub fn plane(&self) -> Option<&PlaneTelemetry> {
        match self {
            NodeTelemetry::Switch(switch) => Some(&switch.plane),
            NodeTelemetry::Controller(controller) => Some(&controller.plane),
            NodeTelemetry::Programmable(switch) => Some(&switch.plane),
            NodeTelemetry::Agent(_) => None,
        }
    }

    /// Returns the counters over all ports.
    pub fn total(&self) -> &PortCounters {
        match self {
            NodeTelemetry::Switch(switch) => &switch.plane.total,
            NodeTelemetry::Controller(controller) => &controller.plane.total,
            NodeTelemetry::Agent(agent) => &agent.total,
            NodeTelemetry::Programmable(switch) => &switch.plane.total,
        }
    }

    /// Returns the neighbours discovered by the node.
    pub fn neighbours(&self) -> &[Neighbour] {
        match self {
            NodeTelemetry::Switch(switch) => &switch.neighbours,
            NodeTelemetry::Controller(controller) => &controller.neighbours,
            NodeTelemetry::Agent(_) | NodeTelemetry::Programmable(_) => &[],
        }
    }

    /// Returns LLDP and DCBX of each port that advertises them.
    pub fn dcbx(&self) -> &[DcbxTelemetry] {
        match self {
            NodeTelemetry::Switch(switch) => &switch.dcbx,
            NodeTelemetry::Controller(_) | NodeTelemetry::Programmable(_) => &[],
            NodeTelemetry::Agent(agent) => agent.dcbx.as_slice(),
        }
    }

    /// Returns flow control by port number; `None` where a port has no traffic classes.
    pub fn flow_control(&self) -> Vec<Option<&FlowControl>> {
        match self {
            NodeTelemetry::Agent(agent) => Vec::from([Some(&agent.host), Some(&agent.fabric)]),
            _ => {
                let ports = self.plane().map_or(&[][..], |plane| &plane.ports);
                ports.iter().map(|port| port.flow_control.as_ref()).collect()
            }
        }
    }

    /// Returns the refused control messages by reason; `None` for nodes that receive none.
    pub fn refusals(&self) -> Option<&Counts<Refusal>> {
        match self {
            NodeTelemetry::Switch(switch) => Some(&switch.refusals),
            NodeTelemetry::Controller(controller) => Some(&controller.refusals),
            NodeTelemetry::Agent(_) | NodeTelemetry::Programmable(_) => None,
        }
    }

    /// Returns the probe reports, oldest plan first.
    pub fn probes(&self) -> &[ProbeReport] {
        match self {
            NodeTelemetry::Switch(switch) => &switch.probes,
            NodeTelemetry::Controller(controller) => &controller.probes,
            NodeTelemetry::Agent(_) | NodeTelemetry::Programmable(_) => &[],
        }
    }
}
