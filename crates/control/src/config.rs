//! What a node is told before its first input. Every limit and interval is here.

use crate::controller::router::RouterKind;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use axon_dcbx::DcbxNodeConfig;
use axon_wire::{Incarnation, MacAddr, Span};
use core::net::Ipv4Addr;

/// What switches and controllers share.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// Who this is, in which incarnation.
    pub incarnation: Incarnation,
    /// Source address of its own Ethernet frames; locally administered in a lab.
    pub mac: MacAddr,
    /// The fabric's pre-shared key.
    pub key: [u8; 32],
    /// Feeds the node's random numbers (challenges); unpredictable outside a simulation.
    pub seed: u64,
    /// Intervals.
    pub timers: Timers,
    /// What it says of itself with LLDP and DCBX at its ports, and does about what it hears;
    /// without, it neither speaks nor reads them. What its ports are set to do is what its data plane
    /// is set to ([`DcbxConfig::for_plane`](axon_dcbx::DcbxConfig::for_plane)).
    pub dcbx: Option<Box<DcbxNodeConfig>>,
    /// The address that every host knows as its DHCP server and that switches probe from.
    pub server: ServerIdentity,
}

/// The one identity under which the fabric speaks to hosts. Its MAC never has a route, so
/// whatever a host sends to it comes to the control plane (paper 001 §4.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerIdentity {
    /// MAC, the same at every edge.
    pub mac: MacAddr,
    /// IPv4 address.
    pub ip: Ipv4Addr,
}

/// Intervals of the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timers {
    /// Between Hellos on a port without neighbour.
    pub hello: Span,
    /// Between heartbeats; a link is down after two without one.
    pub heartbeat: Span,
    /// Before an unacknowledged control message is sent again.
    pub retry: Span,
    /// Between ARP probes of a local host.
    pub host_probe: Span,
    /// How many probes in a row a host may leave unanswered.
    pub host_probes_max: u32,
    /// How long a reservation waits for its Axon-ARP reply.
    pub arp_wait: Span,
}

impl Default for Timers {
    fn default() -> Timers {
        Timers {
            hello: Span::from_millis(100),
            heartbeat: Span::from_millis(100),
            retry: Span::from_millis(50),
            host_probe: Span::from_secs(5),
            host_probes_max: 3,
            arp_wait: Span::from_secs(3),
        }
    }
}

/// A switch.
#[derive(Clone, Debug)]
pub struct SwitchConfig {
    /// What every node has.
    pub node: NodeConfig,
    /// Frames that may wait for routes, over the whole switch, in bytes.
    pub waiting_bytes_max: usize,
    /// Hosts that one port may have; more are not learned.
    pub hosts_per_port_max: usize,
}

/// A controller.
#[derive(Clone, Debug)]
pub struct ControllerConfig {
    /// What every node has.
    pub node: NodeConfig,
    /// The address service.
    pub dhcp: DhcpConfig,
    /// How paths are chosen.
    pub router: RouterKind,
    /// How many layers of routes the switches know, 1 to 8.
    pub layers: u8,
}

/// The DHCP server's addresses (RFC 2131).
#[derive(Clone, Debug)]
pub struct DhcpConfig {
    /// Prefix length of the subnet that [`ServerIdentity::ip`] is in.
    pub prefix_len: u8,
    /// First address of the pool.
    pub pool_first: Ipv4Addr,
    /// Last address of the pool, itself included.
    pub pool_last: Ipv4Addr,
    /// How long a lease lasts.
    pub lease: Span,
    /// Hosts that always get the same address; it may lie outside the pool.
    pub reservations: BTreeMap<MacAddr, Ipv4Addr>,
    /// Default router to announce, if any.
    pub router: Option<Ipv4Addr>,
    /// Name servers to announce.
    pub dns: alloc::vec::Vec<Ipv4Addr>,
}
