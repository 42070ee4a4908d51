//! Reports of a world's agents.

use crate::world::World;
use axon_cache::CacheCounters;
use axon_fabric::model::{AgentSetup, Fabric};
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

/// Returns warnings for agents that cannot run in the simulator.
pub(crate) fn warnings(fabric: &Fabric) -> impl Iterator<Item = String> {
    let own = fabric.agents.iter().filter(|agent| agent.kind.build().is_none());
    own.map(|agent| format!("agent {} is a program of its own: it runs on Linux only", agent.name))
}

/// Returns the counters of all running agents.
pub fn reports(world: &World) -> Vec<AgentReport> {
    let report = |(index, setup): (usize, &AgentSetup)| {
        let node = world.nodes().agent(index)?;
        Some(AgentReport {
            agent: setup.name.clone(),
            kind: setup.kind.name(),
            counters: node.agent().counters(),
            payload: *node.cache_counters(),
            refused: node.refused(),
        })
    };
    world.fabric().agents.iter().enumerate().filter_map(report).collect()
}
