//! TCP of a host, beside the stack.
//!
//! Connections are those of `axon-tcp`. Their segments are light frames behind their content, read
//! before the stack gets them: segments of a known connection, by local port, remote address and
//! remote port, and a SYN to a port on which an application listens. All others are refused with a
//! reset.
//!
//! Connections with data to send are served in rotation, a segment each, while the NIC's queue is
//! short. As with Linux byte queue limits, data waits in the connections and the queue adds little
//! to the round trip.

mod frame;
mod table;

pub(crate) use table::{ConnectionId, Tcp};

use crate::apps::AppId;
use crate::datagram::Addresses;
use crate::stack::Stack;
use axon_tcp::{Config, Connection};
use axon_wire::{Contents, MacAddr, Time};
use std::net::Ipv4Addr;

/// Number of segments in the NIC's queue up to which connections are served.
const QUEUE_FRAMES_MAX: usize = 16;

impl Stack {
    /// Opens a connection of an application, if the target's MAC is known.
    pub(crate) fn open_tcp(
        &mut self,
        now: Time,
        owner: AppId,
        (target, port): (Ipv4Addr, u16),
        config: Config,
    ) -> Option<(ConnectionId, u16)> {
        let (_, mac) = self.way_to(target)?;
        // Ephemeral ports repeat and may be in use.
        let free = (0..u16::MAX).find_map(|_| {
            let local = self.ip.ephemeral_port();
            (!self.tcp.has((local, target, port))).then_some(local)
        });
        let local = free?;
        let connection = Connection::open(now, self.tcp.allowed(config), self.tcp.first_number());
        Some((self.tcp.add(owner, (local, target, port), mac, connection), local))
    }

    /// Consumes a frame if it is a segment for this host. Returns whether it did.
    pub(crate) fn receive_tcp(&mut self, now: Time, contents: Contents<'_>) -> bool {
        let Some(own) = self.ip.address() else { return false };
        let Some(arrived) = frame::parse(contents).filter(|arrived| arrived.to == own) else {
            return false;
        };
        if !self.tcp.receive(now, &arrived) && self.nic.has_room() {
            refuse(self, &arrived, own);
        }
        true
    }

    /// Sends the connections' segments while the NIC has room.
    pub(crate) fn pump_tcp(&mut self, now: Time) {
        self.tcp.wake(now);
        while !self.is_tcp_held() {
            let Some(id) = self.tcp.next_ready() else { break };
            let Some((ends, segment, content)) = self.tcp.poll(now, id) else { continue };
            let (local, remote, port) = ends;
            let known = self.way_to(remote);
            let Some(from) = self.ip.address() else { continue };
            // While a neighbour is resolved again, its last known MAC is used.
            let mac: MacAddr = known.map_or(self.tcp.mac(id), |(_, mac)| mac);
            let source = (self.ip.mac(), from, local);
            let addresses = Addresses { source, target: (mac, remote, port) };
            frame::send(&mut self.nic, &segment, addresses, &content);
            if self.nic.dcb().is_none() {
                self.tcp.sent(self.nic.numbers().0);
            }
        }
    }

    /// Returns whether the NIC holds enough segments. Other frames do not count, as a constant load
    /// of datagrams must not block connections. A NIC with priorities has no limit, as a paused
    /// priority must not block the others.
    fn is_tcp_held(&mut self) -> bool {
        if self.nic.dcb().is_some() {
            return !self.nic.has_room();
        }
        let (_, gone) = self.nic.numbers();
        self.tcp.queued(gone) >= QUEUE_FRAMES_MAX
    }
}

/// Answers a segment of no connection with a reset, if the peer's MAC is known. The source of the
/// frame is not used, as the network may give the peer another MAC.
fn refuse(stack: &mut Stack, arrived: &frame::Arrived<'_>, own: Ipv4Addr) {
    let Some(reset) = Connection::refuse(&arrived.segment) else { return };
    let (remote, port) = arrived.from;
    let next = stack.ip.next_hop(remote.into());
    let Some(mac) = stack.neighbours.stray(next) else { return };
    let source = (stack.ip.mac(), own, arrived.to_port);
    let addresses = Addresses { source, target: (mac, remote, port) };
    frame::send(&mut stack.nic, &reset, addresses, &[]);
}
