//! What a whole node reports of itself.

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

/// A node; `role` says which kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum NodeTelemetry {
    /// The node is a switch.
    Switch(Box<SwitchTelemetry>),
    /// The node is a controller.
    Controller(Box<ControllerTelemetry>),
    /// The agent at a host's edge.
    Agent(Box<AgentTelemetry>),
    /// The node is a programmable switch.
    Programmable(Box<ProgrammableTelemetry>),
}

impl NodeTelemetry {
    /// The hosts of the whole fabric, if it is a node that decides about routes to them: the
    /// controller, or a switch in a fabric without one.
    pub fn known_hosts(&self) -> Option<&[ControllerHost]> {
        match self {
            NodeTelemetry::Controller(controller) => Some(&controller.hosts),
            NodeTelemetry::Switch(switch) => Some(&switch.alone.as_ref()?.hosts),
            NodeTelemetry::Agent(_) | NodeTelemetry::Programmable(_) => None,
        }
    }
}

/// A switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchTelemetry {
    /// The identity of the switch, a number.
    pub id: NodeId,
    /// The hops to the controller, if a path was verified.
    pub controller_path: Option<Hops>,
    /// Neighbours by its own discovery.
    pub neighbours: Vec<Neighbour>,
    /// LLDP and DCBX of each port, if it advertises them.
    pub dcbx: Vec<DcbxTelemetry>,
    /// The hosts that the switch has learned at its ports.
    pub hosts: Vec<EdgeHost>,
    /// Routes of its hosts.
    pub routes: Vec<EdgeRoute>,
    /// Frames of hosts that are queued until their route is set up.
    pub waiting_frames: u64,
    /// Their bytes, with 64 bytes of overhead for each frame.
    pub waiting_bytes: u64,
    /// Reports that the controller has not acknowledged yet.
    pub unacknowledged: u64,
    /// The counters of the data plane.
    pub plane: PlaneTelemetry,
    /// Its probes, oldest plan first.
    pub probes: Vec<ProbeReport>,
    /// Control messages refused, by reason.
    pub refusals: Counts<Refusal>,
    /// What its edge has done.
    pub edge: EdgeCounters,
    /// What its data plane owes its edge.
    pub debts: EdgeDebts,
    /// Settings of ports that its data plane has refused.
    pub refused_settings: Vec<RefusedSetting>,
    /// How often its data plane has refused a setting.
    pub settings_refused: u64,
    /// What it decides by itself, in a fabric without a controller; null in one that has one.
    pub alone: Option<Box<StaticTelemetry>>,
}

/// A controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControllerTelemetry {
    /// The identity of the controller, a number.
    pub id: NodeId,
    /// Neighbours by its own discovery.
    pub neighbours: Vec<Neighbour>,
    /// How many switches are in its topology.
    pub switches: u64,
    /// The hosts of the fabric.
    pub hosts: Vec<ControllerHost>,
    /// Addresses that two hosts use now, 256 at most for each VLAN.
    pub ip_conflicts: Vec<IpConflict>,
    /// How many routes it has set up that stand.
    pub routes: u64,
    /// Which hosts may reach which.
    pub policy: PolicyTelemetry,
    /// The bonds of the fabric file, with what their switches reported last of each port.
    pub bonds: Vec<BondTelemetry>,
    /// What it has of its incarnation before.
    pub restored: Restored,
    /// Commands to switches that are not acknowledged yet.
    pub unacknowledged: u64,
    /// The counters of the data plane.
    pub plane: PlaneTelemetry,
    /// Its probes, oldest plan first.
    pub probes: Vec<ProbeReport>,
    /// Control messages refused, by reason.
    pub refusals: Counts<Refusal>,
    /// What it has done.
    pub counters: ControllerCounters,
    /// What its DHCP server has done.
    pub dhcp: DhcpCounters,
    /// Settings of ports that its data plane has refused.
    pub refused_settings: Vec<RefusedSetting>,
    /// How often its data plane has refused a setting.
    pub settings_refused: u64,
}

/// The agent at a host's edge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentTelemetry {
    /// Priorities with PFC on the link to the fabric.
    #[serde(with = "text::priorities")]
    pub pfc: PrioritySet,
    /// Whether PAUSE is in use there, because no priority has PFC.
    pub pause: bool,
    /// Which frames have which priority: `udp:4791=3 default=0`.
    pub rules: String,
    /// Its reaction points, by priority.
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

/// A programmable switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgrammableTelemetry {
    /// The name of its control program, or its file.
    pub program: String,
    /// Whether the switch carries what hosts send, as far as the program can tell.
    pub ready: bool,
    /// Why the program has ended and takes no packets any more; null as long as it runs.
    pub failure: Option<String>,
    /// Why the tables have refused entries of the program, which runs on and tries again; null as
    /// long as they lack none.
    pub refusal: Option<String>,
    /// How full each table of the switch is.
    pub tables: Vec<TableCount>,
    /// The counters of the data plane.
    pub plane: PlaneTelemetry,
}

/// How full a table of a programmable switch is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableCount {
    /// The name of the table, such as `tcam`.
    pub table: String,
    /// How many entries the table has now.
    pub entries: u32,
    /// How many entries the table can hold.
    pub size: u32,
}

/// A reaction point (IEEE 802.1Q clause 31.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReactionPoint {
    /// The priority, 0 to 7.
    pub priority: Priority,
    /// Congestion notifications that it has acted on.
    pub cnms: u64,
    /// The rate that it holds the host to, in bits per second.
    pub rate_bps: u64,
}

impl NodeTelemetry {
    /// Its identity; agents and programmable switches have none.
    pub fn id(&self) -> Option<NodeId> {
        match self {
            NodeTelemetry::Switch(switch) => Some(switch.id),
            NodeTelemetry::Controller(controller) => Some(controller.id),
            NodeTelemetry::Agent(_) | NodeTelemetry::Programmable(_) => None,
        }
    }

    /// The switch, if it is one.
    pub fn switch(&self) -> Option<&SwitchTelemetry> {
        if let NodeTelemetry::Switch(switch) = self { Some(switch) } else { None }
    }

    /// The programmable switch, if it is one.
    pub fn programmable(&self) -> Option<&ProgrammableTelemetry> {
        if let NodeTelemetry::Programmable(switch) = self { Some(switch) } else { None }
    }

    /// The agent, if it is one.
    pub fn agent(&self) -> Option<&AgentTelemetry> {
        if let NodeTelemetry::Agent(agent) = self { Some(agent) } else { None }
    }

    /// Its data plane; an agent's is not a whole one.
    pub fn plane(&self) -> Option<&PlaneTelemetry> {
        match self {
            NodeTelemetry::Switch(switch) => Some(&switch.plane),
            NodeTelemetry::Controller(controller) => Some(&controller.plane),
            NodeTelemetry::Programmable(switch) => Some(&switch.plane),
            NodeTelemetry::Agent(_) => None,
        }
    }

    /// What it has counted over all ports.
    pub fn total(&self) -> &PortCounters {
        match self {
            NodeTelemetry::Switch(switch) => &switch.plane.total,
            NodeTelemetry::Controller(controller) => &controller.plane.total,
            NodeTelemetry::Agent(agent) => &agent.total,
            NodeTelemetry::Programmable(switch) => &switch.plane.total,
        }
    }

    /// Neighbours by its own discovery.
    pub fn neighbours(&self) -> &[Neighbour] {
        match self {
            NodeTelemetry::Switch(switch) => &switch.neighbours,
            NodeTelemetry::Controller(controller) => &controller.neighbours,
            NodeTelemetry::Agent(_) | NodeTelemetry::Programmable(_) => &[],
        }
    }

    /// LLDP and DCBX of each port that advertises them.
    pub fn dcbx(&self) -> &[DcbxTelemetry] {
        match self {
            NodeTelemetry::Switch(switch) => &switch.dcbx,
            NodeTelemetry::Controller(_) | NodeTelemetry::Programmable(_) => &[],
            NodeTelemetry::Agent(agent) => agent.dcbx.as_slice(),
        }
    }

    /// Flow control by port number; `None` where a port has no traffic classes.
    pub fn flow_control(&self) -> Vec<Option<&FlowControl>> {
        match self {
            NodeTelemetry::Agent(agent) => Vec::from([Some(&agent.host), Some(&agent.fabric)]),
            _ => {
                let ports = self.plane().map_or(&[][..], |plane| &plane.ports);
                ports.iter().map(|port| port.flow_control.as_ref()).collect()
            }
        }
    }

    /// Control messages refused, by reason; agents and programmable switches take none.
    pub fn refusals(&self) -> Option<&Counts<Refusal>> {
        match self {
            NodeTelemetry::Switch(switch) => Some(&switch.refusals),
            NodeTelemetry::Controller(controller) => Some(&controller.refusals),
            NodeTelemetry::Agent(_) | NodeTelemetry::Programmable(_) => None,
        }
    }

    /// Its probes, oldest plan first.
    pub fn probes(&self) -> &[ProbeReport] {
        match self {
            NodeTelemetry::Switch(switch) => &switch.probes,
            NodeTelemetry::Controller(controller) => &controller.probes,
            NodeTelemetry::Agent(_) | NodeTelemetry::Programmable(_) => &[],
        }
    }
}
