//! The `isolation` section.

use schemars::JsonSchema;
use serde::Deserialize;
use std::net::IpAddr;

/// Isolation of hosts by tenant. Without tenants all hosts reach each other.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Isolation {
    /// Groups of hosts that reach each other and no others.
    pub tenants: Vec<Tenant>,
    /// Hosts that every tenant reaches: by name, by MAC, or by the port of a switch (`s1-p3`),
    /// which stands for any host there.
    pub shared: Vec<String>,
    /// Hosts, MACs and ports that are isolated from all others; takes precedence over all other
    /// keys.
    pub quarantine: Vec<String>,
    /// Hosts in no tenant: they reach each other and shared hosts (`allow`, the default), or no
    /// host at all.
    pub others: Others,
    /// True if source addresses are trusted: a host that shares a port then reaches what its own
    /// address may reach, by routes of its own, and not what all hosts at the port may. False by
    /// default.
    pub by_source: bool,
}

/// A group of hosts that reach only each other and shared hosts.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tenant {
    /// Name: a letter, then letters, digits or `-`, at most 32.
    pub name: String,
    /// Hosts: by name, by MAC, or by the port of a switch (`s1-p3`), which stands for any host
    /// there.
    pub hosts: Vec<String>,
    /// Addresses that no host outside the tenant may own. The addresses and reservations that its
    /// hosts have in this file are included.
    #[serde(default)]
    pub addresses: Vec<IpAddr>,
    /// Other tenants that the tenant reaches, in both directions.
    #[serde(default)]
    pub reach: Vec<String>,
    /// True if its hosts are admitted only at their ports in this file, and no other hosts there.
    #[serde(default)]
    pub pin: bool,
}

/// Reachability of hosts in no tenant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Others {
    /// Hosts in no tenant reach each other and shared hosts.
    #[default]
    Allow,
    /// Hosts in no tenant reach no host, not even shared ones.
    Deny,
}
