//! Ports to real networks, as they are written: `uplinks:`.

use super::text::MacText;
use schemars::JsonSchema;
use serde::Deserialize;
use std::net::Ipv4Addr;

/// A port to a real network, behind which there is a gateway.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Uplink {
    /// Its name: in a lab without `device`, that of the namespace outside.
    pub name: String,
    /// The switch, and the port if that matters: `s3-p5`.
    pub at: String,
    /// The gateway's address, one of the subnet of `dhcp`. Hosts get it as their router.
    pub gateway: Ipv4Addr,
    /// The MAC of the gateway in a lab and in the simulator; the fabric's own choice by default.
    /// With `device` a lab does not set it: the gateway has its own.
    pub mac: Option<MacText>,
    /// In a lab, the network device that becomes the port: one of the network namespace that
    /// `axon up` runs in, such as `eth1`. Without it, a namespace plays the outside.
    #[schemars(length(min = 1, max = 15))]
    pub device: Option<String>,
    /// Name servers that hosts get, best first, at most 8.
    #[serde(default)]
    #[schemars(length(max = 8))]
    pub dns: Vec<Ipv4Addr>,
    /// The domain in which hosts look for names, such as `example.net`.
    pub domain: Option<String>,
}
