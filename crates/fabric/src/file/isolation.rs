//! Which hosts may reach which, as it is written: `isolation:`.

use schemars::JsonSchema;
use serde::Deserialize;
use std::net::IpAddr;

/// Which hosts may reach which. Without tenants all of them do.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Isolation {
    /// Groups of hosts that reach each other and no others.
    pub tenants: Vec<Tenant>,
    /// Hosts that every tenant reaches: by name, by MAC, or by the port of a switch (`s1-p3`),
    /// which means whatever is there.
    pub shared: Vec<String>,
    /// Hosts, MACs and ports that reach nobody, whatever else is said of them.
    pub quarantine: Vec<String>,
    /// Whether hosts in no tenant reach each other and shared hosts, or nobody; allow by default.
    pub others: Others,
    /// Whether source addresses are trusted: a host behind a port with others then reaches what it
    /// may reach itself, by routes of its own, and not what all hosts at the port may. No by
    /// default.
    pub by_source: bool,
}

/// A group of hosts that reach each other and, beside shared hosts, no others.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tenant {
    /// Its name: a letter, then letters, digits or `-`, at most 32.
    pub name: String,
    /// Its hosts: by name, by MAC, or by the port of a switch (`s1-p3`), which means whatever is
    /// there.
    pub hosts: Vec<String>,
    /// Addresses that no host outside of it may own. Those that its hosts have in this file, and
    /// their reservations, are such addresses already.
    #[serde(default)]
    pub addresses: Vec<IpAddr>,
    /// Other tenants that it reaches, and that reach it.
    #[serde(default)]
    pub reach: Vec<String>,
    /// Whether its hosts are admitted at their ports of this file only, and no others there.
    #[serde(default)]
    pub pin: bool,
}

/// What hosts in no tenant may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Others {
    /// Hosts in no tenant reach each other and shared hosts.
    #[default]
    Allow,
    /// Hosts in no tenant reach nobody, not even shared hosts.
    Deny,
}
