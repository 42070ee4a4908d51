//! A host's addresses: a fixed IPv4 address, which it announces, or one leased by DHCP; and IPv6.

use crate::config::HostConfig;
use crate::interface::Interface;
use crate::ipv6::Ipv6;
use crate::resolve::{self, Own};
use crate::stack::Stack;
use axon_wire::{Span, Time};
use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::dhcpv4;
use smoltcp::time::Duration;
use smoltcp::wire::{IpCidr, Ipv4Cidr};
use std::net::Ipv6Addr;

/// Number of announcements of a fixed address (RFC 5227 clause 1.1, ANNOUNCE_NUM).
const ANNOUNCEMENTS: u32 = 2;

/// Addresses of a host.
pub(crate) struct Addressing {
    /// IPv4 address configured in the stack.
    cidr: Option<Ipv4Cidr>,
    /// Socket of the DHCP client, unless the address is fixed.
    dhcp: Option<SocketHandle>,
    /// Number of received DHCP acknowledgements.
    acks: u64,
    /// IPv6 addresses, if IPv6 is enabled.
    ipv6: Option<Ipv6>,
    /// True if the host announces a fixed address.
    announces: bool,
    /// Interval between announcements.
    retry: Span,
    /// Time of the next announcement, and the number left.
    announce: Option<(Time, u32)>,
}

impl Addressing {
    /// Returns the addresses of a host without carrier. Opens the socket of the DHCP client.
    pub(crate) fn new(config: &HostConfig, sockets: &mut SocketSet<'static>) -> Addressing {
        let cidr = config.fixed.map(|(ip, prefix_len)| Ipv4Cidr::new(ip, prefix_len));
        let dhcp = cidr.is_none().then(|| {
            let mut socket = dhcpv4::Socket::new();
            let mut retry = dhcpv4::RetryConfig::default();
            let interval = Duration::from_micros(config.retry.as_nanos() / 1000);
            retry.discover_timeout = interval;
            retry.initial_request_timeout = interval;
            retry.min_renew_timeout = interval;
            socket.set_retry_config(retry);
            sockets.add(socket)
        });
        let ipv6 = |fixed| Ipv6::new(config.mac, fixed, !config.announces, config.retry);
        Addressing {
            cidr,
            dhcp,
            acks: 0,
            ipv6: config.ipv6.map(ipv6),
            announces: config.announces,
            retry: config.retry,
            announce: None,
        }
    }

    /// Sets the valid addresses of the interface.
    pub(crate) fn enter(&self, iface: &mut Interface) {
        let v6 = self.valid_v6().map(|ip| IpCidr::new(ip.into(), 64));
        iface.set_addresses(self.cidr.map(IpCidr::Ipv4).into_iter().chain(v6));
    }

    /// Returns the configured IPv4 address with its subnet.
    pub(crate) fn cidr(&self) -> Option<Ipv4Cidr> {
        self.cidr
    }

    /// Returns the valid IPv6 addresses, the link-local one first.
    pub(crate) fn valid_v6(&self) -> impl Iterator<Item = Ipv6Addr> {
        self.ipv6.iter().flat_map(Ipv6::valid)
    }

    /// Returns the valid IPv6 address of global scope, if any.
    pub(crate) fn global_v6(&self) -> Option<Ipv6Addr> {
        self.ipv6.as_ref()?.address()
    }

    /// Returns the source addresses of requests to neighbours.
    pub(crate) fn own(&self) -> Own<'_> {
        Own { v4: self.cidr.map(|cidr| cidr.address()), v6: self.ipv6.as_ref() }
    }

    /// Returns the number of received DHCP acknowledgements.
    pub(crate) fn dhcp_acks(&self) -> u64 {
        self.acks
    }

    /// Handles a change of carrier, after which the link may be another one.
    pub(crate) fn carrier(
        &mut self,
        now: Time,
        up: bool,
        (iface, sockets): (&mut Interface, &mut SocketSet<'static>),
    ) {
        if let Some(ipv6) = &mut self.ipv6 {
            ipv6.carrier(now, up);
            self.enter(iface);
        }
        self.announce = None;
        if !up {
            return;
        }
        match self.dhcp {
            Some(dhcp) => sockets.get_mut::<dhcpv4::Socket>(dhcp).reset(),
            None => self.announce = self.announces.then_some((now, ANNOUNCEMENTS)),
        }
    }

    /// Processes a received frame before the stack. Returns whether an address is to be probed.
    pub(crate) fn receive(&mut self, frame: &[u8]) -> bool {
        self.acks += u64::from(resolve::is_dhcp_ack(frame));
        self.ipv6.as_mut().is_some_and(|ipv6| ipv6.receive(frame))
    }

    /// Sends what is due, and sets the addresses that have become valid.
    pub(crate) fn poll(&mut self, now: Time, stack: &mut Stack, iface: &mut Interface) {
        if let (Some((at, left)), Some(ip)) = (self.announce, stack.ip.address())
            && at <= now
        {
            resolve::announce(stack.ip.mac(), ip, &mut stack.nic);
            self.announce = (left > 1).then_some((now + self.retry, left - 1));
        }
        if self.ipv6.as_mut().is_some_and(|ipv6| ipv6.poll(now, &mut stack.nic)) {
            self.enter(iface);
        }
    }

    /// Applies the result of the DHCP client, keeping the IPv6 addresses. Returns whether it is
    /// new.
    pub(crate) fn poll_dhcp(
        &mut self,
        stack: &mut Stack,
        (iface, sockets): (&mut Interface, &mut SocketSet<'static>),
    ) -> bool {
        let client = self.dhcp.map(|dhcp| sockets.get_mut::<dhcpv4::Socket>(dhcp));
        let router = match client.and_then(dhcpv4::Socket::poll) {
            None => return false,
            Some(dhcpv4::Event::Configured(config)) => {
                self.cidr = Some(config.address);
                config.router
            }
            Some(dhcpv4::Event::Deconfigured) => {
                self.cidr = None;
                None
            }
        };
        stack.ip.configure(self.cidr, router);
        stack.neighbours.forget();
        self.enter(iface);
        iface.set_router(router);
        true
    }

    /// Returns when to call [`Addressing::poll`] next.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let announce = self.announce.map(|(at, _)| at);
        let ipv6 = self.ipv6.as_ref().and_then(Ipv6::deadline);
        [announce, ipv6].into_iter().flatten().min()
    }
}
