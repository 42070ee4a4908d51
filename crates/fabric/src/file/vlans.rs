//! VLANs, as they are written: `vlans:`.

use super::SubnetText;
use super::ipv6::Ipv6;
use super::text::an_hour;
use crate::units::SpanText;
use schemars::JsonSchema;
use serde::Deserialize;
use std::net::Ipv4Addr;

/// A VLAN: hosts that reach each other and no others, wherever they are.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Vlan {
    /// Its number in tags, 1 to 4094.
    #[schemars(range(min = 1, max = 4094))]
    pub id: u16,
    /// Its name: a letter, then letters, digits or `-`, at most 32.
    pub name: Option<String>,
    /// Hosts, by name, and host ports (`s1-p3`) whose frames are in it without a tag. Each is in
    /// one VLAN at most so.
    #[serde(default)]
    pub access: Vec<String>,
    /// Hosts and host ports whose frames are in it with its tag.
    #[serde(default)]
    pub trunk: Vec<String>,
    /// The addresses that its hosts are leased; without, they are leased none.
    pub dhcp: Option<VlanDhcp>,
    /// What edges advertise to its hosts; without, nothing.
    pub ipv6: Option<Ipv6>,
}

/// The addresses that the hosts of a VLAN are leased. They may be those of other VLANs, too.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VlanDhcp {
    /// The subnet of its hosts.
    pub subnet: SubnetText,
    /// The server's address; the subnet's first by default.
    pub server: Option<Ipv4Addr>,
    /// First and last address to give; all of the subnet behind the first by default.
    pub pool: Option<[Ipv4Addr; 2]>,
    /// How long a lease lasts; 1h by default.
    #[serde(default = "an_hour")]
    pub lease: SpanText,
    /// The default router of its hosts, an address of the subnet.
    pub router: Option<Ipv4Addr>,
    /// Name servers of its hosts, best first, at most 8.
    #[serde(default)]
    #[schemars(length(max = 8))]
    pub dns: Vec<Ipv4Addr>,
}
