//! The `vlans` section.

use super::SubnetText;
use super::ipv6::Ipv6;
use super::text::an_hour;
use crate::units::SpanText;
use schemars::JsonSchema;
use serde::Deserialize;
use std::net::Ipv4Addr;

/// A VLAN: hosts that reach only each other, at any switch.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Vlan {
    /// VLAN ID, 1 to 4094.
    #[schemars(range(min = 1, max = 4094))]
    pub id: u16,
    /// Name: a letter, then letters, digits or `-`, at most 32.
    pub name: Option<String>,
    /// Hosts, by name, and host ports (`s1-p3`) whose untagged frames are in the VLAN. Each can be
    /// listed in one VLAN only.
    #[serde(default)]
    pub access: Vec<String>,
    /// Hosts and host ports whose frames are in the VLAN with its tag.
    #[serde(default)]
    pub trunk: Vec<String>,
    /// Addresses that its hosts are leased; none by default.
    pub dhcp: Option<VlanDhcp>,
    /// Router advertisements of IPv6 that edges send to its hosts; none by default.
    pub ipv6: Option<Ipv6>,
}

/// Addresses that the hosts of a VLAN are leased. They may overlap those of other VLANs.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VlanDhcp {
    /// Subnet of its hosts.
    pub subnet: SubnetText,
    /// Address of the server; the first of the subnet by default.
    pub server: Option<Ipv4Addr>,
    /// First and last address of the pool; by default the rest of the subnet.
    pub pool: Option<[Ipv4Addr; 2]>,
    /// Duration of a lease; 1h by default.
    #[serde(default = "an_hour")]
    pub lease: SpanText,
    /// Default router of its hosts, an address of the subnet.
    pub router: Option<Ipv4Addr>,
    /// Name servers of its hosts, best first, at most 8.
    #[serde(default)]
    #[schemars(length(max = 8))]
    pub dns: Vec<Ipv4Addr>,
}
