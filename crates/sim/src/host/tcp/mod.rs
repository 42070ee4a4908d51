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

/// Segments in the NIC's queue up to which connections are served.
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
        // Those that come round may be in use.
        let free = (0..u16::MAX).find_map(|_| {
            let local = self.ephemeral_port();
            (!self.tcp.has((local, target, port))).then_some(local)
        });
        let local = free?;
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
        while !self.is_tcp_held() {
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
            if self.nic.dcb.is_none() {
                self.tcp.waiting.push_back(self.nic.numbers().0);
            }
        }
    }

    /// Whether enough segments wait in the NIC, whatever else does: datagrams that are always there
    /// must not keep connections from it. A NIC with priorities takes all, for a paused priority
    /// must not hold up the others.
    fn is_tcp_held(&mut self) -> bool {
        if self.nic.dcb.is_some() {
            return !self.nic.has_room();
        }
        let (_, gone) = self.nic.numbers();
        while self.tcp.waiting.front().is_some_and(|&number| number <= gone) {
            self.tcp.waiting.pop_front();
        }
        self.tcp.waiting.len() >= QUEUE_FRAMES_MAX
    }
}
