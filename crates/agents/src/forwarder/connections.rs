//! Connections of a load balancer, with the client and the backend of each of its ports.
//!
//! A connection is *half-open* until its client has proved to be reachable. Anyone can open one
//! under any address. Therefore, half-open connections have a short lifetime and take at most a
//! quarter of the table, and the oldest one is evicted for a new one. A real client answers long
//! before that. An *established* connection ends after the configured idle time and is never
//! evicted. A connection that one side has closed ends sooner. One that both sides have closed, or
//! that is reset, ends soon.
//!
//! - TCP: A client counts as reachable when it acknowledges the sequence number of the backend's
//!   SYN (RFC 9293 section 3.5), which no third party can know. A half-open connection ends
//!   [`HALF_OPEN`] after it was opened, regardless of traffic. RFC 5382 REQ-5 requires four minutes
//!   there, but then an attacker could occupy a connection for that time with one SYN. Clients
//!   retry for longer than [`HALF_OPEN`].
//! - UDP: There is no handshake, so a client counts as reachable when it sends again after an
//!   answer. Before that, a flow ends when it is idle for [`UDP_HALF_OPEN`], as in Linux.
//!
//! One client address may have a sixteenth of the table, but at least 16 connections. At that
//! limit, its own oldest half-open connection is evicted, so that connections forged under its
//! address do not block it.

use super::stage::{Flags, Side, Stage};
pub use super::table::PORTS as CONNECTIONS_MAX;
use super::table::{Client, Connection, Entry, Table};
use axon_wire::{MacAddr, Span, Time};

/// Lifetime of a half-open TCP connection.
const HALF_OPEN: Span = Span::from_secs(10);
/// Idle time of a UDP flow before its client has sent again.
const UDP_HALF_OPEN: Span = Span::from_secs(30);
/// Idle time of a connection that one side has closed. It is the minimum for a connection that is
/// closing (RFC 5382 REQ-5).
const CLOSING: Span = Span::from_secs(240);
/// Time for which a closed connection is kept for retransmissions of its end. RFC 5382 REQ-5 does
/// not specify the time after a reset.
const CLOSED: Span = Span::from_secs(10);
/// Maximum number of connections from one client address in the smallest table.
const CLIENT_MAX_MIN: usize = 16;

/// Reason why a new connection is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The table has no connection that can be evicted.
    Full,
    /// The share of the client address has no connection that can be evicted.
    ClientFull,
}

/// Counters of ended connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ended {
    /// Half-open connections that were evicted.
    pub gave_way: u64,
    /// Half-open connections that timed out.
    pub half_open: u64,
    /// Other connections that were idle or closed.
    pub others: u64,
}

/// Connections of one protocol to one service.
#[derive(Debug)]
pub(super) struct Connections {
    table: Table,
    is_tcp: bool,
    most: usize,
    idle: Span,
    pub ended: Ended,
}

impl Connections {
    /// Creates an empty table for at most `most` connections with this idle time, on ports other
    /// than `reserved`.
    pub(crate) fn new(is_tcp: bool, most: usize, idle: Span, reserved: u16) -> Connections {
        let most = most.clamp(1, CONNECTIONS_MAX);
        Connections { table: Table::new(reserved), is_tcp, most, idle, ended: Ended::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// Returns the number of half-open connections.
    pub(crate) fn half_open(&self) -> usize {
        self.table.half_open()
    }

    /// Returns the maximum number of half-open connections: a quarter of all, at least 1.
    fn half_open_max(&self) -> usize {
        (self.most / 4).max(1)
    }

    /// Returns the maximum number of connections from one client address.
    fn client_max(&self) -> usize {
        (self.most / 16).max(CLIENT_MAX_MIN)
    }

    pub(crate) fn of_client(&self, client: Client) -> Option<Connection> {
        self.table.of_client(client).map(|entry| entry.connection)
    }

    pub fn of_port(&self, port: u16) -> Option<Connection> {
        self.table.get(port).map(|entry| entry.connection)
    }

    /// Opens a half-open connection. If there is no room, evicts the oldest half-open one.
    ///
    /// # Errors
    /// No connection can be evicted.
    pub(crate) fn open(
        &mut self,
        now: Time,
        client: Client,
        mac: MacAddr,
        backend: usize,
    ) -> Result<Connection, Refused> {
        if self.table.of_address(client.0) >= self.client_max() {
            let own = self.table.oldest_half_open_of(client.0).ok_or(Refused::ClientFull)?;
            self.give_way(own);
        }
        if self.table.len() >= self.most || self.table.half_open() >= self.half_open_max() {
            let oldest = self.table.oldest_half_open().ok_or(Refused::Full)?;
            self.give_way(oldest);
        }
        let port = self.table.free_port();
        let connection = Connection { client, mac, backend, port };
        let ends_at = now + self.lasts(Stage::NEW);
        self.table.insert(Entry { connection, stage: Stage::NEW, ends_at });
        Ok(connection)
    }

    fn give_way(&mut self, port: u16) {
        self.table.remove(port);
        self.ended.gave_way += 1;
    }

    /// Returns the idle time of a connection in this stage.
    fn lasts(&self, stage: Stage) -> Span {
        let span = match stage {
            Stage::HalfOpen { .. } if self.is_tcp => HALF_OPEN,
            Stage::HalfOpen { .. } => UDP_HALF_OPEN,
            Stage::Established { closed: [false, false], .. } => self.idle,
            Stage::Established { .. } => CLOSING,
            Stage::Closed => CLOSED,
        };
        span.min(self.idle)
    }

    /// Processes a packet that belongs to a connection.
    pub(crate) fn passed(&mut self, now: Time, port: u16, side: Side, flags: Flags) {
        let Some(entry) = self.table.get(port) else { return };
        let before = entry.stage;
        let stage = match self.is_tcp {
            true => before.after(side, flags),
            false => before.after_datagram(side),
        };
        let begins = stage.is_half_open() && !before.is_half_open();
        if begins && self.table.half_open() >= self.half_open_max() {
            let oldest = self.table.oldest_half_open();
            oldest.into_iter().for_each(|oldest| self.give_way(oldest));
        }
        let stays = self.is_tcp && stage.is_half_open() && !begins;
        let ends_at = if stays { entry.ends_at } else { now + self.lasts(stage) };
        self.table.update(port, stage, ends_at);
    }

    /// Records the MAC address from which a packet of an established connection came. Further
    /// packets to the client go there.
    ///
    /// With TCP, the packet must prove that its sender sees the backend's packets, so that a forged
    /// packet diverts nothing. UDP has no such proof.
    pub(crate) fn came_from(&mut self, port: u16, mac: MacAddr, flags: Flags) {
        let Some(entry) = self.table.get(port) else { return };
        let is_its = match self.is_tcp {
            true => entry.stage.is_of_client(flags),
            false => matches!(entry.stage, Stage::Established { .. }),
        };
        if is_its && mac.is_unicast() {
            self.table.set_mac(port, mac);
        }
    }

    /// Ends a connection.
    pub(crate) fn close(&mut self, port: u16) {
        self.table.remove(port);
    }

    /// Ends all connections that are due.
    pub(crate) fn timeout(&mut self, now: Time) {
        while let Some((_, port)) = self.table.first().filter(|(at, _)| *at <= now) {
            match self.table.remove(port).is_some_and(|entry| entry.stage.is_half_open()) {
                true => self.ended.half_open += 1,
                false => self.ended.others += 1,
            }
        }
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        self.table.first().map(|(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forwarder::stage::ACKED_MAX;
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;
    use core::net::Ipv4Addr;

    const NOW: Time = Time::ZERO;
    const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
    const IDLE: Span = Span::from_secs(1000);
    const ISN: u32 = u32::MAX;

    fn client(port: u16) -> Client {
        (Ipv4Addr::new(10, 0, 0, 1), port)
    }

    /// Returns one of many clients.
    fn other(number: u32) -> Client {
        (Ipv4Addr::from_bits(0x0b00_0000 + number), 7)
    }

    fn tcp(most: usize) -> Connections {
        Connections::new(true, most, IDLE, 80)
    }

    fn syn() -> Flags {
        Flags { syn: true, next: 1, ..Flags::default() }
    }

    fn syn_ack() -> Flags {
        Flags { sequence: ISN, next: 0, acknowledged: Some(1), ..syn() }
    }

    fn ack(number: u32) -> Flags {
        Flags { sequence: 1, next: 1, acknowledged: Some(number), ..Flags::default() }
    }

    fn open(all: &mut Connections, now: Time, client: Client) -> u16 {
        all.open(now, client, MAC, 0).unwrap().port
    }

    fn establish(all: &mut Connections, now: Time, client: Client) -> u16 {
        let port = open(all, now, client);
        all.passed(now, port, Side::Client, syn());
        all.passed(now, port, Side::Backend, syn_ack());
        all.passed(now, port, Side::Client, ack(ISN.wrapping_add(1)));
        port
    }

    fn stage(all: &Connections, port: u16) -> Stage {
        all.table.get(port).unwrap().stage
    }

    fn lasts(all: &Connections, port: u16) -> Span {
        all.table.get(port).unwrap().ends_at.since(NOW)
    }

    #[test]
    fn a_connection_is_found_from_both_sides_until_it_is_idle() {
        let mut all = tcp(100);
        let port = establish(&mut all, NOW, client(1));
        let one = all.of_port(port);
        assert_eq!((all.of_client(client(1)), one.unwrap().client), (one, client(1)));
        let later = NOW + Span::from_secs(600);
        all.passed(later, port, Side::Backend, ack(1));
        all.timeout(NOW + IDLE);
        assert_eq!((all.len(), all.deadline()), (1, Some(later + IDLE)));
        all.timeout(later + IDLE);
        assert_eq!((all.of_client(client(1)), all.len()), (None, 0));
        assert_eq!(all.ended, Ended { others: 1, ..Ended::default() });
    }

    #[test]
    fn a_connection_is_half_open_until_its_client_acknowledges_what_the_backend_has_chosen() {
        let mut all = tcp(100);
        let port = open(&mut all, NOW, client(1));
        let later = NOW + Span::from_secs(9);
        // Neither packets sent blindly nor repeated packets extend its lifetime.
        all.passed(later, port, Side::Client, ack(ISN.wrapping_add(1)));
        all.passed(later, port, Side::Client, syn());
        all.passed(later, port, Side::Backend, syn_ack());
        for acknowledged in [ISN, ISN.wrapping_add(2 + ACKED_MAX), 0x8000_0000] {
            all.passed(later, port, Side::Client, ack(acknowledged));
        }
        all.passed(later, port, Side::Client, Flags::default());
        all.passed(later, port, Side::Backend, ack(1));
        assert_eq!((lasts(&all, port), all.half_open()), (HALF_OPEN, 1));
        all.passed(later, port, Side::Client, ack(ISN.wrapping_add(1)));
        assert_eq!((lasts(&all, port), all.half_open()), (Span::from_secs(9) + IDLE, 0));
        let port = open(&mut all, NOW, client(2));
        all.timeout(NOW + HALF_OPEN);
        assert_eq!((all.of_port(port), all.ended.half_open), (None, 1));
    }

    #[test]
    fn a_flow_of_udp_is_half_open_until_its_client_sends_after_an_answer() {
        let mut all = Connections::new(false, 100, IDLE, 80);
        let port = open(&mut all, NOW, client(1));
        let later = NOW + Span::from_secs(5);
        all.passed(later, port, Side::Client, Flags::default());
        assert_eq!(lasts(&all, port), Span::from_secs(5) + UDP_HALF_OPEN, "it is not idle");
        all.passed(NOW, port, Side::Backend, Flags::default());
        assert_eq!((lasts(&all, port), all.half_open()), (UDP_HALF_OPEN, 1));
        all.passed(NOW, port, Side::Client, Flags::default());
        assert_eq!((lasts(&all, port), all.half_open()), (IDLE, 0));
    }

    #[test]
    fn what_is_closed_on_both_sides_or_reset_ends_soon() {
        let fin = Flags { fin: true, acknowledged: Some(0), ..Flags::default() };
        // The other side expects these sequence numbers from the client and from the backend.
        let rst = Flags { rst: true, sequence: 1, ..Flags::default() };
        let refused = Flags { rst: true, ..Flags::default() };
        let mut all = tcp(100);
        let ends = |all: &mut Connections, flags: &[(Side, Flags)]| {
            let port = establish(all, NOW, client(1));
            flags.iter().for_each(|&(side, flags)| all.passed(NOW, port, side, flags));
            let after = (lasts(all, port), all.half_open());
            all.close(port);
            after
        };
        assert_eq!(ends(&mut all, &[(Side::Client, fin)]), (CLOSING, 0));
        assert_eq!(ends(&mut all, &[(Side::Client, fin), (Side::Backend, fin)]), (CLOSED, 0));
        assert_eq!(ends(&mut all, &[(Side::Backend, refused)]), (CLOSED, 0));
        // A SYN on an established connection is ignored, but on a closed one it opens a new
        // connection.
        assert_eq!(ends(&mut all, &[(Side::Client, syn())]), (IDLE, 0));
        let again = [(Side::Client, rst), (Side::Client, syn())];
        assert_eq!(ends(&mut all, &again), (HALF_OPEN, 1));
        let repeated = [(Side::Client, rst), (Side::Client, ack(0)), (Side::Backend, syn_ack())];
        assert_eq!(ends(&mut all, &repeated), (CLOSED, 0));
    }

    #[test]
    fn half_open_ones_have_a_quarter_and_the_oldest_gives_way_but_no_established_one() {
        let mut all = tcp(160);
        let first: Vec<u16> = (0..120).map(|n| establish(&mut all, NOW, other(n))).collect();
        let flood: Vec<u16> = (0..1000).map(|n| open(&mut all, NOW, other(500 + n))).collect();
        assert_eq!((all.len(), all.half_open(), all.ended.gave_way), (160, 40, 960));
        assert!(first.iter().all(|&port| is_established(&all, port)));
        assert!(flood[960..].iter().all(|&port| all.of_port(port).is_some()));
        // An established connection stays. A closed one that is opened again is also half-open.
        let port = establish(&mut all, NOW, other(5000));
        assert_eq!((is_established(&all, port), all.half_open()), (true, 39));
        open(&mut all, NOW, other(5001));
        let rst = Flags { rst: true, sequence: 1, ..Flags::default() };
        all.passed(NOW, first[0], Side::Client, rst);
        all.close(first[1]);
        open(&mut all, NOW, other(5002));
        assert_eq!(all.half_open(), 40);
        all.passed(NOW, first[0], Side::Client, syn());
        assert_eq!((stage(&all, first[0]), all.half_open()), (Stage::NEW, 40));
        // If all connections in the table are established, there is no room.
        let mut all = tcp(160);
        (0..160).for_each(|n| {
            establish(&mut all, NOW, other(n));
        });
        assert_eq!(all.open(NOW, other(999), MAC, 0), Err(Refused::Full));
        assert_eq!(all.ended, Ended::default());
    }

    fn is_established(all: &Connections, port: u16) -> bool {
        matches!(stage(all, port), Stage::Established { closed: [false, false], .. })
    }

    #[test]
    fn one_client_has_a_sixteenth_and_what_is_begun_under_its_address_keeps_it_from_nothing() {
        let mut all = tcp(320);
        (0..8).for_each(|port| {
            establish(&mut all, NOW, client(port));
        });
        (100..900).for_each(|port| {
            open(&mut all, NOW, client(port));
        });
        assert_eq!((all.len(), all.half_open(), all.ended.gave_way), (20, 12, 788));
        (10..22).for_each(|port| {
            establish(&mut all, NOW, client(port));
        });
        assert_eq!((all.len(), all.half_open()), (20, 0));
        assert_eq!(all.open(NOW, client(23), MAC, 0), Err(Refused::ClientFull));
        establish(&mut all, NOW, other(1));
        all.timeout(NOW + IDLE);
        assert_eq!(all.len(), 0);
        establish(&mut all, NOW + IDLE, client(23));
    }

    #[test]
    fn there_are_no_more_than_may_be_and_every_port_is_used_once() {
        let mut all = Connections::new(true, usize::MAX, IDLE, 8080);
        let most = CONNECTIONS_MAX as u32;
        let ports: BTreeSet<u16> = (0..most).map(|n| establish(&mut all, NOW, other(n))).collect();
        assert_eq!((ports.len(), ports.first()), (CONNECTIONS_MAX, Some(&1024)));
        assert!(!ports.contains(&8080), "the service's own");
        all.close(5000);
        assert_eq!(establish(&mut all, NOW, other(most)), 5000);
        assert_eq!(all.open(NOW, other(most + 1), MAC, 0), Err(Refused::Full));
    }
}
