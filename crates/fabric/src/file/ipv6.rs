//! What edges advertise to hosts, as it is written: `ipv6:`.

use crate::units::SpanText;
use schemars::JsonSchema;
use serde::Deserialize;
use std::net::Ipv6Addr;

/// DHCPv6: by a server among the hosts, or for settings alone by the edges.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Dhcpv6 {
    /// The host that is the server, by name. Without one, edges answer requests for information
    /// with the name servers and the domain of `ipv6`.
    pub relay: Option<String>,
    /// The address of the server, if it is not the link-local one of its MAC.
    pub server: Option<Ipv6Addr>,
    /// Whether advertisements say that addresses are given by DHCPv6 (the flag M);
    /// with `relay` only, where it is true by default.
    pub managed: Option<bool>,
    /// Whether hosts make addresses of the prefix by themselves; true by default.
    pub slaac: Option<bool>,
}

/// Router advertisements of IPv6 that edges send to their hosts.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ipv6 {
    /// The prefix that hosts make their addresses from: 64 bits long, such as `2001:db8:0:1::/64`.
    pub prefix: String,
    /// The default router: a host, by name, or its link-local address. Hosts have none without it.
    pub router: Option<String>,
    /// Name servers of the hosts, best first, at most 8.
    #[serde(default)]
    #[schemars(length(max = 8))]
    pub dns: Vec<Ipv6Addr>,
    /// The domain in which hosts look for names, such as `lab.example`.
    pub domain: Option<String>,
    /// The MTU that hosts are to set for IPv6, 1280 to 9000 bytes and no more than `mtu`.
    #[schemars(range(min = 1280, max = 9000))]
    pub mtu: Option<u16>,
    /// Addresses and settings by DHCPv6; without, what hosts ask for is not answered.
    pub dhcp: Option<Dhcpv6>,
    /// Between two advertisements at a port that nobody asks for; 4s to 1800s, 200s by default.
    pub interval: Option<SpanText>,
}
