//! A host's IP stack with what stands around it: what applications work on.

use crate::host::datagram;
use crate::host::nic::Nic;
use crate::host::resolve::Neighbours;
use axon_wire::{MacAddr, Time};
use smoltcp::iface::{Interface, SocketHandle, SocketSet};
use smoltcp::socket::dhcpv4;
use smoltcp::time::Instant;
use smoltcp::wire::{IpCidr, Ipv4Cidr};
use std::net::Ipv4Addr;

/// The first port that connections and streams send from (RFC 6335 clause 6).
const EPHEMERAL_FIRST: u16 = 49152;

/// The stack.
pub(crate) struct Stack {
    pub(crate) iface: Interface,
    pub(crate) nic: Nic,
    pub(crate) sockets: SocketSet<'static>,
    pub(crate) neighbours: Neighbours,
    pub(crate) mac: MacAddr,
    pub(crate) address: Option<Ipv4Addr>,
    /// The host's subnet and the router for all that is outside, if it was given one.
    router: Option<(Ipv4Cidr, Ipv4Addr)>,
    /// The longest IP packet, in bytes.
    pub(crate) mtu: u16,
    /// Ports given out so far.
    ports: u16,
}

impl Stack {
    pub(crate) fn new(
        (iface, nic): (Interface, Nic),
        sockets: SocketSet<'static>,
        neighbours: Neighbours,
        mac: MacAddr,
        mtu: u16,
    ) -> Stack {
        Stack { iface, nic, sockets, neighbours, mac, address: None, router: None, mtu, ports: 0 }
    }

    /// Takes what the DHCP client has got; says whether that is something new.
    pub(crate) fn poll_dhcp(&mut self, client: SocketHandle) -> bool {
        let (cidr, router) = match self.sockets.get_mut::<dhcpv4::Socket>(client).poll() {
            None => return false,
            Some(dhcpv4::Event::Configured(config)) => (Some(config.address), config.router),
            Some(dhcpv4::Event::Deconfigured) => (None, None),
        };
        self.address = cidr.map(|cidr| cidr.address());
        self.neighbours.forget();
        set_address(&mut self.iface, cidr);
        self.set_router(cidr.zip(router));
        true
    }

    /// Enters the subnet and the router, or that there is none.
    fn set_router(&mut self, router: Option<(Ipv4Cidr, Ipv4Addr)>) {
        self.router = router;
        let routes = self.iface.routes_mut();
        // The table has room for one, and takes it in the place of the one before.
        let _ = match router {
            Some((_, router)) => routes.add_default_ipv4_route(router).ok().flatten(),
            None => routes.remove_default_ipv4_route(),
        };
    }

    /// Whose MAC a packet for an address goes to: that of the address itself, or of the router.
    pub(crate) fn next_hop(&self, target: Ipv4Addr) -> Ipv4Addr {
        match self.router {
            Some((subnet, router)) if !subnet.contains_addr(&target) => router,
            _ => target,
        }
    }

    /// A port to send from; they come round after 16,384.
    pub(crate) fn ephemeral_port(&mut self) -> u16 {
        self.ports += 1;
        EPHEMERAL_FIRST + (self.ports - 1) % (u16::MAX - EPHEMERAL_FIRST)
    }

    /// This host's address and the MAC of `target`, if both are known now; otherwise the
    /// target is asked for from now on.
    pub(crate) fn way_to(&mut self, target: Ipv4Addr) -> Option<(Ipv4Addr, MacAddr)> {
        let next = self.next_hop(target);
        let known = self.neighbours.known(next);
        if known.is_none() {
            self.neighbours.want(next);
        }
        self.address.zip(known)
    }

    /// Sends one datagram that `write` fills with `bytes` bytes. Says whether it could: the
    /// target's MAC is known and the NIC has room.
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

/// Gives an interface this address, or none.
pub(crate) fn set_address(iface: &mut Interface, cidr: Option<Ipv4Cidr>) {
    iface.update_ip_addrs(|addresses| {
        addresses.clear();
        if let Some(cidr) = cidr {
            addresses.push(IpCidr::Ipv4(cidr)).expect("one address fits");
        }
    });
}

/// Simulated time as smoltcp counts it, rounded down to a microsecond.
pub(crate) fn instant(now: Time) -> Instant {
    Instant::from_micros(now.as_micros() as i64)
}
