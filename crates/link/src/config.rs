//! Configuration common to every node: identity, keys and intervals.

use axon_node::Keys;
use axon_wire::{Incarnation, MacAddr, Span};
use core::net::Ipv4Addr;

/// Maximum number of addresses of one host, IPv4 and IPv6 together. Another one replaces the
/// oldest.
pub const IPS_PER_HOST_MAX: usize = 16;

/// Maximum number of copies of one frame. The controller truncates its lists to this, too.
pub const COPIES_MAX: usize = 512;

/// Configuration shared by switches and controllers.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// The node and its incarnation.
    pub incarnation: Incarnation,
    /// Source address of the node's own Ethernet frames; locally administered in a lab.
    pub mac: MacAddr,
    /// Keys for sealing control messages.
    pub keys: Keys,
    /// Seed of the node's random numbers (challenges). Unpredictable outside a simulation.
    pub seed: u64,
    /// Intervals of the control plane.
    pub timers: Timers,
    /// Address of the DHCP server as hosts see it; also the source of the switches' probes.
    pub server: ServerIdentity,
}

/// Identity of the fabric towards hosts. Its MAC address never has a route, so every frame that a
/// host sends to it reaches the control plane (paper 001 §4.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerIdentity {
    /// MAC address, the same at every edge.
    pub mac: MacAddr,
    /// IPv4 address, the same at every edge.
    pub ip: Ipv4Addr,
}

/// Intervals of the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timers {
    /// Interval between Hellos on a port without a neighbour.
    pub hello: Span,
    /// Interval between heartbeats. A link is down after two intervals without one, unless the
    /// neighbour's data plane still forwards ([`Timers::restart_max`]).
    pub heartbeat: Span,
    /// Time until an unacknowledged control message is sent again.
    pub retry: Span,
    /// Interval between ARP probes of a local host.
    pub host_probe: Span,
    /// Number of consecutive probes that a host may leave unanswered.
    pub host_probes_max: u32,
    /// Longest time that a reserved route entry waits for its Axon-ARP reply.
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

impl Timers {
    /// Returns how long a switch may be silent before the controller removes its hosts: 600
    /// heartbeats and 100 retries. A switch reports all its hosts again after half that time
    /// without a path to the controller. It gives up a path that does not work after 30 heartbeats
    /// and 10 retries, so a switch whose hosts were removed always reports them.
    pub fn silence_max(&self) -> Span {
        self.heartbeat * 600 + self.retry * 100
    }

    /// Returns how long a neighbour may be without a heartbeat while its data plane returns echoes:
    /// 100 heartbeats. A node that hangs is removed after that, even if its data plane still
    /// forwards.
    pub fn restart_max(&self) -> Span {
        self.heartbeat * 100
    }

    /// Returns how long a controller counts links of a switch's previous incarnation that the new
    /// one has not reported: [`Timers::restart_max`], in which a restarting neighbour is back, and
    /// 10 Hellos for the handshake.
    pub fn reunion_max(&self) -> Span {
        self.restart_max() + self.hello * 10
    }

    /// Returns the longest time that a controller takes to decide about a route of its previous
    /// incarnation: 100 heartbeats and 50 retries.
    pub const fn decision_max(&self) -> Span {
        Span::from_ticks(self.heartbeat.ticks() * 100 + self.retry.ticks() * 50)
    }

    /// Returns how long frames may be in flight on a route that its edge has removed: 100
    /// heartbeats. Used only when a router replaces its order of switches, for flows without a path
    /// that is compatible with the old one.
    pub fn drain_max(&self) -> Span {
        self.heartbeat * 100
    }

    /// Returns how long a switch keeps a route of an earlier incarnation of the controller while
    /// the new one is reachable and has not decided about it: 200 heartbeats and 100 retries.
    pub fn inherited_max(&self) -> Span {
        self.decision_max() * 2
    }
}
