//! Agents of a world: each is a station on a link to its switch's agent port.

use crate::engine::station::StationNode;
use crate::link::links::WireEnd;
use crate::world::World;
use axon_agents::node::PORT;
use axon_agents::{Agent, AgentNode};
use axon_cache::CacheCounters;
use axon_fabric::model::Fabric;
use serde::Serialize;
use std::collections::BTreeMap;

/// Counters of an agent.
#[derive(Clone, Debug, Serialize)]
pub struct AgentReport {
    /// Name of the agent in the fabric file.
    pub agent: String,
    /// `cache`, `congestion`, `forwarder` or `run`, as in the fabric file.
    pub kind: &'static str,
    /// Counters of the agent itself, by name: see its file in `crates/agents`.
    pub counters: BTreeMap<&'static str, u64>,
    /// Counters of the payload buffers at the agent's port.
    pub payload: CacheCounters,
    /// Number of answered handles that matched no held packet.
    pub refused: u64,
}

impl World {
    /// Returns the station of an agent, by its index in the fabric.
    pub fn agent_station(&self, agent: usize) -> usize {
        self.host_station(self.fabric().hosts.len()) + agent
    }

    /// Returns an agent, if it runs.
    pub fn agent(&self, agent: usize) -> Option<&AgentNode<dyn Agent + Send>> {
        match &self.engine().station(self.agent_station(agent))?.node {
            StationNode::Agent(node) => Some(node),
            _ => None,
        }
    }

    pub(crate) fn connect_agents(&mut self, fabric: &Fabric) {
        for (index, agent) in fabric.agents.iter().enumerate() {
            let near = WireEnd { station: self.agent_station(index), port: PORT };
            self.engine.set_host(near.station);
            let far = WireEnd { station: agent.at.switch, port: agent.at.port };
            self.engine.connect(near, far, agent.wire);
            if agent.kind.reads_queues() {
                self.engine.show_queues(far);
            }
        }
    }

    /// (Re)starts a built-in agent with empty state. A user's own agent runs on Linux only.
    pub fn start_agent(&mut self, index: usize) {
        let station = self.agent_station(index);
        let setup = &self.fabric().agents[index];
        let Some(agent) = setup.kind.build() else { return };
        let mut config = setup.port;
        config.cache.seed = self.node_seed(station);
        // The fabric's settings were checked when they were read.
        if let Ok(node) = AgentNode::new(config, agent) {
            self.engine.power_on(station, StationNode::Agent(Box::new(node)));
        }
    }

    /// Ends an agent: its port loses carrier, and the packets it held are lost.
    pub fn stop_agent(&mut self, index: usize) {
        let station = self.agent_station(index);
        self.engine.power_off(station);
    }

    /// Returns warnings for agents that cannot run in the simulator.
    pub(crate) fn agent_warnings(&self) -> Vec<String> {
        let own = self.fabric().agents.iter().filter(|agent| agent.kind.build().is_none());
        own.map(|agent| {
            format!("agent {} is a program of its own: it runs on Linux only", agent.name)
        })
        .collect()
    }

    /// Returns the counters of all running agents.
    pub fn agent_reports(&self) -> Vec<AgentReport> {
        let all = self.fabric().agents.iter().enumerate();
        let report = |(index, setup): (usize, &axon_fabric::model::AgentSetup)| {
            let node = self.agent(index)?;
            Some(AgentReport {
                agent: setup.name.clone(),
                kind: setup.kind.name(),
                counters: node.agent().counters(),
                payload: *node.cache_counters(),
                refused: node.refused(),
            })
        };
        all.filter_map(report).collect()
    }
}
