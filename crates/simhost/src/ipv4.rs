//! A host's IPv4 address, its router, and its ephemeral ports.

use axon_wire::MacAddr;
use smoltcp::wire::Ipv4Cidr;
use std::net::{IpAddr, Ipv4Addr};

/// First ephemeral port (RFC 6335 clause 6).
const EPHEMERAL_FIRST: u16 = 49152;

/// IPv4 configuration of a host. The fields for datagrams come first.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Ipv4 {
    address: Option<Ipv4Addr>,
    mac: MacAddr,
    /// Maximum IP packet size, in bytes.
    mtu: u16,
    /// Subnet of the host and its router, if configured.
    router: Option<(Ipv4Cidr, Ipv4Addr)>,
    /// Number of ephemeral ports assigned so far.
    ports: u16,
}

impl Ipv4 {
    /// Returns the configuration of a host without an address.
    pub(crate) fn new(mac: MacAddr, mtu: u16) -> Ipv4 {
        Ipv4 { address: None, mac, mtu, router: None, ports: 0 }
    }

    /// Returns the address, if the host has one.
    pub(crate) fn address(&self) -> Option<Ipv4Addr> {
        self.address
    }

    /// Returns the host's MAC address.
    pub(crate) fn mac(&self) -> MacAddr {
        self.mac
    }

    /// Returns the maximum IP packet size, in bytes.
    pub(crate) fn mtu(&self) -> u16 {
        self.mtu
    }

    /// Sets the address, the subnet and the router, or removes them.
    pub(crate) fn configure(&mut self, cidr: Option<Ipv4Cidr>, router: Option<Ipv4Addr>) {
        self.address = cidr.map(|cidr| cidr.address());
        self.router = cidr.zip(router);
    }

    /// Returns the next hop for an address: the address itself, or the router.
    pub(crate) fn next_hop(&self, target: IpAddr) -> IpAddr {
        match (self.router, target) {
            (Some((subnet, router)), IpAddr::V4(ip)) if !subnet.contains_addr(&ip) => router.into(),
            _ => target,
        }
    }

    /// Returns an ephemeral port; ports repeat after 16,384.
    pub(crate) fn ephemeral_port(&mut self) -> u16 {
        let port = EPHEMERAL_FIRST + self.ports;
        self.ports = (self.ports + 1) % (u16::MAX - EPHEMERAL_FIRST);
        port
    }
}
