//! A host's IP stack with its surroundings, as used by applications.

use crate::host::apps::AppId;
use crate::host::datagram;
use crate::host::interface::Interface;
use crate::host::ipv6::Ipv6;
use crate::host::nic::Nic;
use crate::host::resolve::Neighbours;
use crate::host::tcp::Tcp;
use axon_wire::{MacAddr, Time};
use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::dhcpv4;
use smoltcp::time::Instant;
use smoltcp::wire::{IpCidr, Ipv4Cidr};
use std::net::{IpAddr, Ipv4Addr};

/// First ephemeral port (RFC 6335 clause 6).
const EPHEMERAL_FIRST: u16 = 49152;

/// Stack of a host. The fields for datagrams, which bypass the rest, come first.
#[repr(C)]
pub(crate) struct Stack {
    pub(crate) address: Option<Ipv4Addr>,
    pub(crate) mac: MacAddr,
    /// Maximum IP packet size, in bytes.
    pub(crate) mtu: u16,
    /// Subnet of the host and its router, if configured.
    router: Option<(Ipv4Cidr, Ipv4Addr)>,
    /// Number of ephemeral ports assigned so far.
    ports: u16,
    pub(crate) nic: Nic,
    pub(crate) neighbours: Neighbours,
    /// TCP connections.
    pub(crate) tcp: Tcp,
    /// Application being added, or added last.
    pub(crate) adding: AppId,
    pub(crate) iface: Interface,
    pub(crate) sockets: SocketSet<'static>,
}

impl Stack {
    pub(crate) fn new(
        (iface, nic): (Interface, Nic),
        sockets: SocketSet<'static>,
        neighbours: Neighbours,
        mac: MacAddr,
        mtu: u16,
    ) -> Stack {
        Stack {
            iface,
            nic,
            sockets,
            neighbours,
            mac,
            mtu,
            tcp: Tcp::default(),
            adding: AppId(0),
            address: None,
            router: None,
            ports: 0,
        }
    }

    /// Applies the DHCP client's result, keeping the IPv6 addresses. Returns the new IPv4 address,
    /// if any, or `None` if nothing has changed.
    pub(crate) fn poll_dhcp(
        &mut self,
        client: SocketHandle,
        v6: Option<&Ipv6>,
    ) -> Option<Option<Ipv4Cidr>> {
        let (cidr, router) = match self.sockets.get_mut::<dhcpv4::Socket>(client).poll() {
            None => return None,
            Some(dhcpv4::Event::Configured(config)) => (Some(config.address), config.router),
            Some(dhcpv4::Event::Deconfigured) => (None, None),
        };
        self.address = cidr.map(|cidr| cidr.address());
        self.neighbours.forget();
        set_address(&mut self.iface, cidr, v6);
        self.set_router(cidr.zip(router));
        Some(cidr)
    }

    /// Sets the subnet and the router, or removes them.
    fn set_router(&mut self, router: Option<(Ipv4Cidr, Ipv4Addr)>) {
        self.router = router;
        self.iface.set_router(router.map(|(_, router)| router));
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

    /// Returns this host's address and the MAC of `target` if both are known. Otherwise starts
    /// resolving the target.
    pub(crate) fn way_to(&mut self, target: Ipv4Addr) -> Option<(Ipv4Addr, MacAddr)> {
        let next = self.next_hop(target.into());
        let known = self.neighbours.known(next);
        if known.is_none() {
            self.neighbours.want(next);
        }
        self.address.zip(known)
    }

    /// Sends one datagram with `bytes` bytes of payload, written by `write`. Returns whether it was
    /// sent: the target's MAC is known and the NIC has room.
    pub(crate) fn send_datagram(
        &mut self,
        ports: (u16, u16),
        target: Ipv4Addr,
        bytes: usize,
        write: impl FnOnce(&mut [u8]),
    ) -> bool {
        let Some((from, mac)) = self.way_to(target) else {
            return false;
        };
        if !self.nic.has_room() {
            return false;
        }
        let addresses = datagram::Addresses {
            source: (self.mac, from, ports.0),
            target: (mac, target, ports.1),
        };
        self.nic
            .build(datagram::HEADER_BYTES + bytes, |frame| datagram::emit(frame, addresses, write));
        true
    }
}

/// Sets the IPv4 address of an interface, or none, with the IPv6 addresses.
pub(crate) fn set_address(iface: &mut Interface, cidr: Option<Ipv4Cidr>, v6: Option<&Ipv6>) {
    let v6 = v6.into_iter().flat_map(Ipv6::valid).map(|ip| IpCidr::new(ip.into(), 64));
    iface.set_addresses(cidr.map(IpCidr::Ipv4).into_iter().chain(v6));
}

/// Returns simulated time as smoltcp's, rounded down to a microsecond.
pub(crate) fn instant(now: Time) -> Instant {
    Instant::from_micros(now.as_micros() as i64)
}
