//! Settings of an edge that do not change.

use crate::config::{EdgeConfig, EdgeServices};
use alloc::vec::Vec;
use axon_link::config::ServerIdentity;
use axon_node::Capabilities;
use axon_wire::{MacAddr, NodeId, Span, host_frame, nd};
use core::net::{IpAddr, Ipv6Addr};

/// Minimum interval of the edge, whatever is configured.
const INTERVAL_MIN: Span = Span::from_millis(1);

/// Function that builds a neighbour advertisement; see [`nd::advertisement`].
pub(super) type Advertise = fn(MacAddr, Ipv6Addr, Option<(MacAddr, Ipv6Addr)>) -> Vec<u8>;

/// Settings of an edge, from its configuration and the capabilities of its data plane.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) node: NodeId,
    pub(super) mac: MacAddr,
    /// Identity of the fabric towards hosts.
    pub(super) server: ServerIdentity,
    /// First interval of repeated requests, at least 1 ms.
    pub(super) retry: Span,
    /// Time after which an unanswered request has failed, at least 1 ms.
    pub(super) arp_wait: Span,
    /// Interval of probes of a host, at least 1 ms.
    pub(super) host_probe: Span,
    pub(super) host_probes_max: u32,
    pub(super) frame_bytes_max: usize,
    /// Time for which routes without a controller's decision are kept.
    pub(super) inherited_max: Span,
    /// Services for the configuration of hosts.
    pub(super) services: EdgeServices,
}

impl Settings {
    /// Returns the settings. Intervals below 1 ms count as 1 ms.
    pub(super) fn new(config: &EdgeConfig, has: &Capabilities) -> Settings {
        let node = &config.node;
        Settings {
            node: node.incarnation.node,
            mac: node.mac,
            server: node.server,
            retry: node.timers.retry.max(INTERVAL_MIN),
            arp_wait: node.timers.arp_wait.max(INTERVAL_MIN),
            host_probe: node.timers.host_probe.max(INTERVAL_MIN),
            host_probes_max: node.timers.host_probes_max,
            frame_bytes_max: has.frame_bytes_max,
            inherited_max: node.timers.inherited_max(),
            services: config.services.clone(),
        }
    }

    /// Returns whether a host can have this MAC address: it is neither a group's nor the fabric's
    /// own.
    pub(super) fn is_host_mac(&self, mac: MacAddr) -> bool {
        mac.is_unicast() && mac != self.server.mac && mac != self.mac
    }

    /// Returns whether a host can have this address: it is neither special nor the fabric's own.
    pub(super) fn is_host_ip(&self, ip: IpAddr) -> bool {
        let is_plain = match ip {
            IpAddr::V4(ip) => host_frame::is_host_ip(ip),
            IpAddr::V6(ip) => nd::is_host_ip(ip),
        };
        is_plain && !self.is_own_ip(ip)
    }

    /// Returns whether this is the fabric's own address.
    pub(super) fn is_own_ip(&self, ip: IpAddr) -> bool {
        ip == IpAddr::V4(self.server.ip) || ip == IpAddr::V6(self.link_local())
    }

    /// Returns the source address of the server identity's probes and queries.
    pub(super) fn link_local(&self) -> Ipv6Addr {
        nd::link_local(self.server.mac)
    }

    /// Builds the query to `to` for an address, from the server's identity. `None` for an address
    /// that no host can have.
    pub(super) fn question(&self, to: MacAddr, ip: IpAddr) -> Option<Vec<u8>> {
        if !self.is_host_ip(ip) {
            return None;
        }
        let mac = self.server.mac;
        Some(match ip {
            IpAddr::V4(ip) => host_frame::request(mac, self.server.ip, to, ip),
            IpAddr::V6(ip) => {
                let to = (to != MacAddr::BROADCAST).then_some(to);
                nd::solicitation((mac, self.link_local()), to, ip)
            }
        })
    }

    /// Returns the function that builds an advertisement of the neighbour `ip`, as a router or
    /// another host.
    pub(super) fn advertise_neighbour(&self, ip: IpAddr) -> Advertise {
        let router = self.services.ipv6.as_ref().and_then(|ipv6| ipv6.router);
        match router.is_some_and(|router| ip == router) {
            true => nd::router_neighbour,
            false => nd::advertisement,
        }
    }
}
