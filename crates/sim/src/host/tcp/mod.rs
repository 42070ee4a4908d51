//! TCP beside the stack, for byte streams whose payload nobody reads.
//!
//! Connections are those of `axon-tcp`. Their segments are light frames, read before the stack sees
//! them: those of a known connection by local port, remote address and remote port, and a SYN to a
//! port that an application listens on. All others go to the stack, which refuses them.
//!
//! Connections with something to send are served alternately, a segment each, while the NIC's
//! queue is short: as with the byte queue limits of Linux, what waits does so in the connections,
//! and the queue adds little to the round trip.

mod frame;
mod table;

pub(crate) use table::{ConnectionId, Tcp};

use crate::host::apps::AppId;
use crate::host::stack::Stack;
use axon_tcp::{Config, Connection};
use axon_wire::{Contents, MacAddr, Time};
use std::net::Ipv4Addr;

/// Frames in the NIC's queue up to which connections are served.
const QUEUE_FRAMES_MAX: usize = 16;

impl Stack {
    /// Opens a connection of an application, if the way to the target is known.
    pub(crate) fn open_tcp(
        &mut self,
        now: Time,
        owner: AppId,
        (target, port): (Ipv4Addr, u16),
        config: Config,
    ) -> Option<(ConnectionId, u16)> {
        let (_, mac) = self.way_to(target)?;
        let local = self.ephemeral_port();
        let connection = Connection::open(now, self.tcp.allowed(config), self.tcp.first_number());
        Some((self.tcp.add(owner, (local, target, port), mac, connection), local))
    }

    /// Takes a frame if it is a segment for one of these connections, or opens one.
    pub(crate) fn receive_tcp(&mut self, now: Time, contents: Contents<'_>) -> bool {
        if self.tcp.is_unused() {
            return false;
        }
        let Some(own) = self.address else { return false };
        match frame::parse(contents) {
            Some(arrived) if arrived.to == own => self.tcp.receive(now, &arrived),
            _ => false,
        }
    }

    /// Sends what connections have to send, as far as the NIC has room.
    pub(crate) fn pump_tcp(&mut self, now: Time) {
        self.tcp.wake(now);
        while self.nic.has_room() && !self.is_tcp_held() {
            let Some(id) = self.tcp.next_ready() else { break };
            let Some((ends, segment)) = self.tcp.poll(now, id) else { continue };
            let (local, remote, port) = ends;
            let known = self.way_to(remote);
            let Some(from) = self.address else { continue };
            // A neighbour that is just asked for again is still where it was.
            let mac: MacAddr = known.map_or(self.tcp.mac(id), |(_, mac)| mac);
            let addresses =
                frame::Addresses { source: (self.mac, from, local), target: (mac, remote, port) };
            frame::send(&mut self.nic, &segment, addresses);
        }
    }

    /// Whether enough waits in the NIC; one with priorities takes all, for a paused priority must
    /// not hold up the others.
    fn is_tcp_held(&self) -> bool {
        self.nic.dcb.is_none() && self.nic.waiting() >= QUEUE_FRAMES_MAX
    }
}
