//! The connections of a load balancer: which client and which backend each port of it stands for.
//!
//! Bounded: a new connection beyond the bound is refused, and no other one suffers for it. A
//! connection that is idle for too long ends; one that both sides have closed, or one has reset,
//! ends soon.

use alloc::collections::{BTreeMap, BTreeSet};
use axon_wire::{MacAddr, Span, Time};
use core::net::Ipv4Addr;

/// The first port that stands for a connection (RFC 6056 section 3.2: above the system ports).
const FIRST_PORT: u16 = 1024;
/// Connections at most, one for each port but that of the service.
pub const CONNECTIONS_MAX: usize = (u16::MAX - FIRST_PORT) as usize;
/// How long a closed connection is kept for what is repeated of its end (RFC 5382 REQ-5 leaves the
/// time after a reset open; four minutes after FINs).
const CLOSED: Span = Span::from_secs(10);

/// A client's end.
pub(super) type Client = (Ipv4Addr, u16);

/// A connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Connection {
    pub client: Client,
    /// Where what is for the client goes: the host or router that its packets come from.
    pub mac: MacAddr,
    /// The index of its backend.
    pub backend: usize,
    /// The port that the balancer has towards the backend.
    pub port: u16,
    /// The client, and the backend, have sent a FIN.
    closed: [bool; 2],
    ends_at: Time,
}

/// Which side a packet is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Backend,
}

/// What the flags of TCP say of the end of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags {
    pub fin: bool,
    pub rst: bool,
    pub syn: bool,
}

/// All connections of one protocol to one service.
#[derive(Debug)]
pub(super) struct Connections {
    by_port: BTreeMap<u16, Connection>,
    by_client: BTreeMap<Client, u16>,
    order: BTreeSet<(Time, u16)>,
    next_port: u16,
    most: usize,
    idle: Span,
    /// The port of the service, which stands for no connection.
    reserved: u16,
}

impl Connections {
    /// None yet, `most` at most, each of which ends when it is idle for so long, at other ports
    /// than `reserved`.
    pub fn new(most: usize, idle: Span, reserved: u16) -> Connections {
        Connections {
            by_port: BTreeMap::new(),
            by_client: BTreeMap::new(),
            order: BTreeSet::new(),
            next_port: FIRST_PORT,
            most: most.min(CONNECTIONS_MAX),
            idle,
            reserved,
        }
    }

    pub fn len(&self) -> usize {
        self.by_port.len()
    }

    pub fn of_client(&self, client: Client) -> Option<Connection> {
        self.by_port.get(self.by_client.get(&client)?).copied()
    }

    pub fn of_port(&self, port: u16) -> Option<Connection> {
        self.by_port.get(&port).copied()
    }

    /// A new connection, if there is room.
    pub fn open(
        &mut self,
        now: Time,
        client: Client,
        mac: MacAddr,
        backend: usize,
    ) -> Option<Connection> {
        if self.by_port.len() >= self.most {
            return None;
        }
        while self.by_port.contains_key(&self.next_port) || self.next_port == self.reserved {
            self.next_port = after(self.next_port);
        }
        let port = self.next_port;
        self.next_port = after(port);
        let ends_at = now + self.idle;
        let closed = [false; 2];
        let connection = Connection { client, mac, backend, port, closed, ends_at };
        self.by_port.insert(port, connection);
        self.by_client.insert(client, port);
        self.order.insert((ends_at, port));
        Some(connection)
    }

    /// A packet of a connection has passed.
    pub fn passed(&mut self, now: Time, port: u16, side: Side, flags: Flags) {
        let Some(connection) = self.by_port.get_mut(&port) else { return };
        if flags.syn && side == Side::Client {
            // The client uses its port anew.
            connection.closed = [false; 2];
        }
        connection.closed[side as usize] |= flags.fin;
        if flags.rst {
            connection.closed = [true; 2];
        }
        let is_closed = connection.closed == [true; 2];
        self.order.remove(&(connection.ends_at, port));
        connection.ends_at = now + if is_closed { CLOSED } else { self.idle };
        self.order.insert((connection.ends_at, port));
    }

    /// Ends a connection.
    pub fn close(&mut self, port: u16) {
        if let Some(connection) = self.by_port.remove(&port) {
            self.by_client.remove(&connection.client);
            self.order.remove(&(connection.ends_at, port));
        }
    }

    /// Ends what is due; how many those were.
    pub fn timeout(&mut self, now: Time) -> u64 {
        let mut ended = 0;
        while let Some(&(_, port)) = self.order.first().filter(|(at, _)| *at <= now) {
            self.close(port);
            ended += 1;
        }
        ended
    }

    pub fn deadline(&self) -> Option<Time> {
        self.order.first().map(|&(at, _)| at)
    }
}

const fn after(port: u16) -> u16 {
    if port == u16::MAX { FIRST_PORT } else { port + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::ZERO;
    const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);

    fn client(port: u16) -> Client {
        (Ipv4Addr::new(10, 0, 0, 1), port)
    }

    #[test]
    fn a_connection_is_found_from_both_sides_until_it_is_idle() {
        let mut all = Connections::new(10, Span::from_secs(100), 80);
        let one = all.open(NOW, client(1), MAC, 3).unwrap();
        assert_eq!((all.of_client(client(1)), all.of_port(one.port)), (Some(one), Some(one)));
        let later = NOW + Span::from_secs(60);
        all.passed(later, one.port, Side::Backend, Flags::default());
        assert_eq!(all.timeout(NOW + Span::from_secs(100)), 0);
        assert_eq!(all.deadline(), Some(later + Span::from_secs(100)));
        assert_eq!(all.timeout(later + Span::from_secs(100)), 1);
        assert_eq!((all.of_client(client(1)), all.len()), (None, 0));
    }

    #[test]
    fn what_is_closed_on_both_sides_or_reset_ends_soon() {
        let fin = Flags { fin: true, ..Flags::default() };
        let rst = Flags { rst: true, ..Flags::default() };
        let mut all = Connections::new(10, Span::from_secs(100), 80);
        let ends = |all: &mut Connections, flags: &[(Side, Flags)]| {
            let port = all.open(NOW, client(1), MAC, 0).unwrap().port;
            flags.iter().for_each(|&(side, flags)| all.passed(NOW, port, side, flags));
            let ends_at = all.of_port(port).unwrap().ends_at;
            all.close(port);
            ends_at.since(NOW)
        };
        assert_eq!(ends(&mut all, &[(Side::Client, fin)]), Span::from_secs(100));
        assert_eq!(ends(&mut all, &[(Side::Client, fin), (Side::Backend, fin)]), CLOSED);
        assert_eq!(ends(&mut all, &[(Side::Backend, rst)]), CLOSED);
        let syn = Flags { syn: true, ..Flags::default() };
        let again = [(Side::Client, fin), (Side::Backend, fin), (Side::Client, syn)];
        assert_eq!(ends(&mut all, &again), Span::from_secs(100));
    }

    #[test]
    fn there_are_no_more_than_may_be_and_every_port_is_used_once() {
        let mut all = Connections::new(usize::MAX, Span::from_secs(1), 8080);
        let ports: BTreeSet<u16> = (0..u16::MAX)
            .filter_map(|port| Some(all.open(NOW, client(port), MAC, 0)?.port))
            .collect();
        assert_eq!((ports.len(), ports.first()), (CONNECTIONS_MAX, Some(&FIRST_PORT)));
        assert!(!ports.contains(&8080), "the service's own");
        all.close(5000);
        assert_eq!(all.open(NOW, client(u16::MAX), MAC, 0).unwrap().port, 5000);
        assert_eq!(all.open(NOW, (Ipv4Addr::LOCALHOST, 1), MAC, 0), None);
    }
}
