//! Agents of the fabric file in a lab, each attached to a port of its switch. The agents that add
//! DCB to hosts are separate daemons.

use super::own_program;
use super::plan::AttachedPlan;
use super::state::StateDir;
use anyhow::{Context, Result};
use axon_linux::agent_port::{AgentCounters, AgentStatus};
use axon_linux::attach::{self, AttachOptions};
use axon_linux::log;
use axon_linux::status::{NodeStatus, PortStatus, ask};
use nix::unistd::setsid;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// Status of an agent of the fabric file: attachment, and counters of the agent and its port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AttachedAgent {
    /// Name in the fabric file.
    pub agent: String,
    /// Kind as in the fabric file: `cache`, `congestion`, `forwarder` or `run`.
    pub kind: &'static str,
    /// Port of the switch to which the agent belongs, such as `s1-p3`.
    pub port: String,
    /// True if an agent is attached to that port.
    pub attached: bool,
    /// Restarts of the agent's process after it ended with an error.
    pub restarts: u32,
    /// Counters of the agent itself, by name: see its file in `crates/agents`; null if its process
    /// does not answer, or is a user program.
    pub counters: Option<BTreeMap<String, u64>>,
    /// Counters of the port; null if the switch does not answer.
    pub port_counters: Option<AgentCounters>,
}

impl AttachedPlan {
    /// Returns the status of this agent's port, if the switch reports it.
    fn found(&self, ports: &[PortStatus]) -> Option<AgentStatus> {
        ports.iter().find(|port| port.name == self.port)?.agent.clone()
    }

    /// Returns whether the switch that answers at this socket has the agent attached to its port.
    pub(super) fn is_at(&self, switch: &Path) -> bool {
        let status = ask(switch).ok();
        let port = status.and_then(|status| self.found(&status.ports));
        port.is_some_and(|port| port.agent.is_some())
    }
}

/// Runs an agent as a process of the lab.
pub(super) fn run(state: &StateDir, name: &str) -> Result<()> {
    let fabric = state.load_fabric()?;
    let agent = attach::agent_of(&fabric, name)?;
    let origin = state.origin()?;
    let folder = origin.parent().unwrap_or(Path::new("/"));
    setsid().context("a daemon has just been started and can lead a session")?;
    if let Some(program) = attach::own_program(agent, &state.socket(name), folder) {
        return own_program::run(program, state.log(name)).with_context(|| format!("agent {name}"));
    }
    // The log of the process is its standard error.
    log::rotate(state.log(name));
    tracing_subscriber::fmt().with_ansi(false).with_writer(log::writer).init();
    let options = AttachOptions {
        status_socket: Some(state.agent_status(name)),
        waits: true,
        ..AttachOptions::at(state.socket(name))
    };
    attach::attach(&fabric, name, &options).map(drop)
}

/// Queries all agents in parallel, because each may take a tenth of a second.
pub(super) fn status(
    plan: &[AttachedPlan],
    state: &StateDir,
    nodes: &[NodeStatus],
) -> Vec<AttachedAgent> {
    let restarts = state.restarts();
    let one = |agent: &AttachedPlan| {
        let switch = nodes.iter().find(|node| node.name() == agent.switch);
        let port = switch.and_then(NodeStatus::status);
        let port = port.and_then(|status| agent.found(&status.ports));
        let own = attach::ask(&state.agent_status(&agent.name)).ok();
        AttachedAgent {
            agent: agent.name.clone(),
            kind: agent.kind,
            port: agent.port.clone(),
            attached: port.as_ref().is_some_and(|port| port.agent.is_some()),
            restarts: restarts.get(&agent.name).copied().unwrap_or(0),
            counters: own.map(|own| own.counters),
            port_counters: port.map(|port| port.counters),
        }
    };
    std::thread::scope(|scope| {
        let asked: Vec<_> = plan.iter().map(|agent| scope.spawn(move || one(agent))).collect();
        asked.into_iter().filter_map(|asked| asked.join().ok()).collect()
    })
}

/// Formats a line for each agent.
pub fn text(agents: &[AttachedAgent]) -> String {
    let mut text = String::new();
    for agent in agents {
        let AttachedAgent { agent: name, kind, port, .. } = agent;
        let state = if agent.attached { "attached" } else { "not attached" };
        let mut parts = vec![state.to_owned()];
        if agent.restarts > 0 {
            parts.push(format!("restarts {}", agent.restarts));
        }
        if let Some(counted) = &agent.port_counters {
            let AgentCounters { packets, forwarded, dropped, sent, full_drops, lost, .. } = counted;
            parts.push(format!(
                "packets {packets}, forwarded {forwarded}, dropped {dropped}, sent {sent}"
            ));
            let losses = [("full_drops", full_drops), ("lost", lost)].into_iter();
            let losses = losses.filter(|(_, count)| **count > 0);
            parts.extend(losses.map(|(name, count)| format!("{name} {count}")));
        }
        let own: Vec<String> = agent.counters.iter().flatten().map(counted).collect();
        let own = if own.is_empty() { String::new() } else { format!("; {}", own.join(", ")) };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "agent {name} ({kind}) at {port}: {}{own}", parts.join(", "));
    }
    text
}

fn counted((name, count): (&String, &u64)) -> String {
    format!("{name} {count}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_sees_whether_an_agent_is_attached_and_what_it_has_counted() {
        let counters = AgentCounters {
            packets: 7,
            forwarded: 5,
            sent: 2,
            full_drops: 3,
            lost: 1,
            ..Default::default()
        };
        let attached = AttachedAgent {
            agent: "a1".into(),
            kind: "cache",
            port: "s1-p3".into(),
            attached: true,
            restarts: 1,
            counters: Some([("hits".to_owned(), 2), ("misses".to_owned(), 5)].into()),
            port_counters: Some(counters),
        };
        let gone = AttachedAgent {
            agent: "own".into(),
            kind: "run",
            attached: false,
            restarts: 0,
            counters: None,
            port_counters: None,
            ..attached.clone()
        };
        assert_eq!(
            text(&[attached, gone]),
            "agent a1 (cache) at s1-p3: attached, restarts 1, packets 7, forwarded 5, dropped 0, \
             sent 2, full_drops 3, lost 1; hits 2, misses 5\n\
             agent own (run) at s1-p3: not attached\n"
        );
    }
}
