//! Sizes of the tables.

use serde::{Deserialize, Serialize};

/// The sizes of the tables, in entries; by default those of the paper's chip (004 §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sizes {
    /// Exact match on the destination MAC: 32,768.
    pub mac: u32,
    /// Exact match on the IPv4 destination: 8192.
    pub ipv4: u32,
    /// Exact match on the MPLS label: 4096.
    pub mpls: u32,
    /// Longest prefix match on the IPv4 destination: 6144.
    pub prefix: u32,
    /// TCAM: 2048; at most 65,536.
    pub tcam: u32,
    /// Interfaces: 4096; at most 65,536.
    pub interface: u32,
    /// Groups: 1024; at most 65,536. The paper's chip has an unnamed number.
    pub group: u32,
    /// Tunnels: 1024; at most 65,536. The paper's chip has an unnamed number.
    pub tunnel: u32,
}

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes {
            mac: 32 * 1024,
            ipv4: 8 * 1024,
            mpls: 4 * 1024,
            prefix: 6144,
            tcam: 2 * 1024,
            interface: 4 * 1024,
            group: 1024,
            tunnel: 1024,
        }
    }
}
