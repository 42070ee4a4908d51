//! What an agent is.

use axon_agents::forwarder::HEAD_BYTES;
use axon_agents::{Agent, Forwarder, ForwarderConfig, InNetworkCache, InNetworkCacheConfig};
use axon_wire::MacAddr;
use std::net::Ipv4Addr;

/// What an agent is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentKind {
    /// A cache in the network.
    Cache(InNetworkCacheConfig),
    /// A load balancer or a router.
    Forwarder(ForwarderConfig),
    /// A program of the user, with its arguments; for Linux only.
    Run(Vec<String>),
}

impl AgentKind {
    /// `cache`, `forwarder` or `run`, as in the fabric file.
    pub const fn name(&self) -> &'static str {
        match self {
            AgentKind::Cache(_) => "cache",
            AgentKind::Forwarder(_) => "forwarder",
            AgentKind::Run(_) => "run",
        }
    }

    /// The agent, if it ships.
    pub fn build(&self) -> Option<Box<dyn Agent + Send>> {
        match self {
            AgentKind::Cache(config) => Some(Box::new(InNetworkCache::new(*config))),
            AgentKind::Forwarder(config) => Some(Box::new(Forwarder::new(config.clone()))),
            AgentKind::Run(_) => None,
        }
    }

    /// The address that it has as a host of the network.
    pub const fn address(&self) -> Option<(MacAddr, Ipv4Addr)> {
        match self {
            AgentKind::Forwarder(config) => Some((config.mac, config.address)),
            AgentKind::Cache(_) | AgentKind::Run(_) => None,
        }
    }

    /// Bytes of head that it needs.
    pub(super) fn head_bytes(&self) -> usize {
        match self {
            AgentKind::Cache(config) => config.head_bytes(),
            AgentKind::Forwarder(_) => HEAD_BYTES,
            AgentKind::Run(_) => 128,
        }
    }
}
