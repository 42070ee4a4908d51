//! The `ipv6` section: router advertisements to hosts.

use crate::units::SpanText;
use schemars::JsonSchema;
use serde::Deserialize;
use std::net::Ipv6Addr;

/// DHCPv6: by a server among the hosts, or for settings only by the edges.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Dhcpv6 {
    /// Name of the host that is the server. Without one, edges answer information requests with the
    /// name servers and the domain of `ipv6`.
    pub relay: Option<String>,
    /// Address of the server, if it is not the link-local one of its MAC.
    pub server: Option<Ipv6Addr>,
    /// True if advertisements have flag M (addresses are given by DHCPv6); with `relay` only, where
    /// it is true by default.
    pub managed: Option<bool>,
    /// True if hosts form addresses from the prefix (SLAAC); true by default.
    pub slaac: Option<bool>,
}

/// Router advertisements of IPv6 that edges send to their hosts.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ipv6 {
    /// Prefix of hosts' addresses: 64 bits long, such as `2001:db8:0:1::/64`.
    pub prefix: String,
    /// Default router: the name of a host, or its link-local address. Hosts have none without it.
    pub router: Option<String>,
    /// Name servers of the hosts, best first, at most 8.
    #[serde(default)]
    #[schemars(length(max = 8))]
    pub dns: Vec<Ipv6Addr>,
    /// Domain in which hosts look up names, such as `lab.example`.
    pub domain: Option<String>,
    /// MTU of IPv6 that hosts are given, 1280 to 9000 bytes and no more than `mtu`.
    #[schemars(range(min = 1280, max = 9000))]
    pub mtu: Option<u16>,
    /// Addresses and settings by DHCPv6; without it, DHCPv6 requests are not answered.
    pub dhcp: Option<Dhcpv6>,
    /// Interval between unsolicited advertisements at a port; 4s to 1800s, 200s by default.
    pub interval: Option<SpanText>,
}
