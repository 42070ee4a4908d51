//! The `uplinks` section: ports to real networks.

use super::text::MacText;
use schemars::JsonSchema;
use serde::Deserialize;
use std::net::Ipv4Addr;

/// A port to a real network with a gateway.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Uplink {
    /// Name; also that of the outside namespace in a lab without `device`.
    pub name: String,
    /// Switch (`s3`), or port (`s3-p5`).
    pub at: String,
    /// Address of the gateway, in the subnet of `dhcp`. Hosts get it as their router.
    pub gateway: Ipv4Addr,
    /// MAC address of the gateway in a lab and in the simulator; chosen by the fabric by default.
    /// With `device` a lab does not set it: the gateway has its own.
    pub mac: Option<MacText>,
    /// Network device that becomes the port in a lab, from the network namespace that `axon up`
    /// runs in, such as `eth1`. Without it, a namespace stands for the outside.
    #[schemars(length(min = 1, max = 15))]
    pub device: Option<String>,
    /// Name servers that hosts get, best first, at most 8.
    #[serde(default)]
    #[schemars(length(max = 8))]
    pub dns: Vec<Ipv4Addr>,
    /// Domain in which hosts look up names, such as `example.net`.
    pub domain: Option<String>,
}
