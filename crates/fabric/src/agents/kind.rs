//! Kinds of agents.

use axon_agents::forwarder::HEAD_BYTES;
use axon_agents::{
    Agent, CongestionResponder, Forwarder, ForwarderConfig, InNetworkCache, InNetworkCacheConfig,
    ResponderConfig, congestion,
};
use axon_wire::MacAddr;
use std::net::Ipv4Addr;

/// Kind of an agent, with its configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentKind {
    /// A cache in the network.
    Cache(InNetworkCacheConfig),
    /// A congestion responder.
    Congestion(ResponderConfig),
    /// A load balancer or a router.
    Forwarder(ForwarderConfig),
    /// A program of the user, with its arguments; Linux only.
    Run(Vec<String>),
}

impl AgentKind {
    /// Returns `cache`, `congestion`, `forwarder` or `run`, as in the fabric file.
    pub const fn name(&self) -> &'static str {
        match self {
            AgentKind::Cache(_) => "cache",
            AgentKind::Congestion(_) => "congestion",
            AgentKind::Forwarder(_) => "forwarder",
            AgentKind::Run(_) => "run",
        }
    }

    /// Builds the agent; `None` for a program of the user.
    pub fn build(&self) -> Option<Box<dyn Agent + Send>> {
        match self {
            AgentKind::Cache(config) => Some(Box::new(InNetworkCache::new(*config))),
            // The settings were checked when they were read.
            AgentKind::Congestion(config) => {
                let responder = CongestionResponder::new(config.clone()).ok()?;
                Some(Box::new(responder))
            }
            AgentKind::Forwarder(config) => Some(Box::new(Forwarder::new(config.clone()))),
            AgentKind::Run(_) => None,
        }
    }

    /// Returns the address that the agent has as a host of the network.
    pub const fn address(&self) -> Option<(MacAddr, Ipv4Addr)> {
        match self {
            AgentKind::Forwarder(config) => Some((config.mac, config.address)),
            AgentKind::Cache(_) | AgentKind::Congestion(_) | AgentKind::Run(_) => None,
        }
    }

    /// Returns whether the agent gets copies of the selected frames, which continue undisturbed.
    pub(crate) const fn gets_copies(&self) -> bool {
        matches!(self, AgentKind::Congestion(_))
    }

    /// Returns whether the agent reads the lengths of its switch's queues.
    pub const fn reads_queues(&self) -> bool {
        matches!(self, AgentKind::Congestion(_))
    }

    /// Returns the number of bytes of frame head that the agent needs.
    pub(super) fn head_bytes(&self) -> usize {
        match self {
            AgentKind::Cache(config) => config.head_bytes(),
            AgentKind::Congestion(_) => congestion::HEAD_BYTES,
            AgentKind::Forwarder(_) => HEAD_BYTES,
            AgentKind::Run(_) => 128,
        }
    }
}
