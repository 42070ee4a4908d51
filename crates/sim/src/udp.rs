//! The simplest traffic: datagrams at an interval, counted where they arrive.

use axon_wire::{Bytes, Span, Time};
use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::udp;
use smoltcp::wire::IpAddress;
use std::net::Ipv4Addr;

/// Datagrams that a socket holds.
const DATAGRAMS_MAX: usize = 64;
/// The longest datagram: what fits an MTU of 9000 bytes.
const DATAGRAM_BYTES_MAX: usize = 8972;

/// A stream of datagrams to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpPlan {
    /// To whom.
    pub target: Ipv4Addr,
    /// To which port there.
    pub port: u16,
    /// Bytes of UDP payload in each, up to 8972.
    pub payload: usize,
    /// From one datagram to the next.
    pub interval: Span,
    /// How many.
    pub count: u64,
}

/// A source at work.
#[derive(Debug)]
pub(crate) struct UdpSource {
    plan: UdpPlan,
    socket: SocketHandle,
    next: Option<Time>,
    left: u64,
    /// Datagrams handed to the stack.
    pub(crate) sent: u64,
}

impl UdpSource {
    pub(crate) fn new(
        plan: UdpPlan,
        local_port: u16,
        now: Time,
        sockets: &mut SocketSet<'static>,
    ) -> UdpSource {
        let socket = sockets.add(socket(local_port));
        let plan = UdpPlan { payload: plan.payload.min(DATAGRAM_BYTES_MAX), ..plan };
        UdpSource { plan, socket, next: Some(now), left: plan.count, sent: 0 }
    }

    /// Sends the datagrams that are due; says whether there was one.
    pub(crate) fn poll(&mut self, now: Time, sockets: &mut SocketSet<'static>) -> bool {
        let Some(next) = self.next.filter(|&next| next <= now) else {
            return false;
        };
        let socket = sockets.get_mut::<udp::Socket>(self.socket);
        let to = (IpAddress::Ipv4(self.plan.target), self.plan.port);
        if let Ok(bytes) = socket.send(self.plan.payload, to) {
            bytes.fill(0x61);
            self.sent += 1;
        }
        self.left = self.left.saturating_sub(1);
        self.next = (self.left > 0).then_some(next + self.plan.interval);
        true
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        self.next
    }
}

/// Counts what arrives on one UDP port.
#[derive(Debug)]
pub(crate) struct UdpSink {
    socket: SocketHandle,
    /// Datagrams that arrived.
    pub(crate) datagrams: u64,
    /// Bytes of payload in them.
    pub(crate) payload: Bytes,
}

impl UdpSink {
    pub(crate) fn new(port: u16, sockets: &mut SocketSet<'static>) -> UdpSink {
        UdpSink { socket: sockets.add(socket(port)), datagrams: 0, payload: Bytes(0) }
    }

    /// Takes what has arrived.
    pub(crate) fn poll(&mut self, sockets: &mut SocketSet<'static>) {
        let socket = sockets.get_mut::<udp::Socket>(self.socket);
        while let Ok((bytes, _)) = socket.recv() {
            self.datagrams += 1;
            self.payload += Bytes(bytes.len() as u64);
        }
    }
}

fn socket(port: u16) -> udp::Socket<'static> {
    let buffer = || {
        let places = vec![udp::PacketMetadata::EMPTY; DATAGRAMS_MAX];
        udp::PacketBuffer::new(places, vec![0; DATAGRAMS_MAX * DATAGRAM_BYTES_MAX / 4])
    };
    let mut socket = udp::Socket::new(buffer(), buffer());
    socket.bind(port).expect("a new socket, a port that is not zero");
    socket
}
