//! Connection table of a host, by the connections' ends, with their pending work.

use super::frame::Arrived;
use crate::apps::AppId;
use axon_tcp::{Config, Connection, Flags, Segment, Seq, Socket, State};
use axon_wire::{MacAddr, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv4Addr;

/// Maximum number of half-open connections of a host. Further SYNs are ignored; peers repeat them
/// (Linux: `somaxconn`).
const OPENING_MAX: u32 = 4096;

/// Local port, remote address and remote port.
pub(crate) type Ends = (u16, Ipv4Addr, u16);

/// ID of a connection of one host, valid while the connection exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConnectionId(u32);

/// Connection and its table state.
#[derive(Debug)]
struct Slot {
    socket: Socket,
    owner: AppId,
    ends: Ends,
    /// Last known MAC of the peer.
    mac: MacAddr,
    /// Retransmitted segments of which the application knows.
    retransmits: u64,
    /// True if the connection is half-open, started by a peer.
    is_opening: bool,
    /// Time of the queued timer.
    timer: Option<Time>,
    /// True if the connection is in the ready list.
    is_ready: bool,
    /// True if the application is to be notified.
    is_news: bool,
}

/// All connections of a host.
#[derive(Debug, Default)]
pub(crate) struct Tcp {
    slots: Vec<Option<Box<Slot>>>,
    free: Vec<u32>,
    by_ends: BTreeMap<Ends, ConnectionId>,
    listeners: BTreeMap<u16, (AppId, Config)>,
    ready: VecDeque<ConnectionId>,
    news: VecDeque<ConnectionId>,
    timers: BTreeSet<(Time, ConnectionId)>,
    /// Number of connections so far, which determines their initial numbers.
    count: u32,
    /// Number of half-open connections started by peers.
    opening: u32,
    without_sack: bool,
    /// Numbers of the frames that may still wait in a plain NIC.
    waiting: VecDeque<u64>,
}

impl Tcp {
    /// Returns whether the table has neither listeners nor connections.
    pub(crate) fn is_unused(&self) -> bool {
        self.listeners.is_empty() && self.by_ends.is_empty()
    }

    /// Disables selective acknowledgements for further connections.
    pub(crate) fn without_sack(&mut self) {
        self.without_sack = true;
    }

    /// Restricts a configuration to what this host permits.
    pub(crate) fn allowed(&self, config: Config) -> Config {
        Config { sack: config.sack && !self.without_sack, ..config }
    }

    /// Returns the initial number of the next connection. Initial numbers are far apart, so that a
    /// connection accepts no segments of another on the same ports.
    pub(crate) fn first_number(&self) -> Seq {
        Seq(self.count.wrapping_mul(0x9e37_79b9))
    }

    /// Accepts connections on a port for an application.
    pub(crate) fn listen(&mut self, port: u16, owner: AppId, config: Config) {
        self.listeners.insert(port, (owner, config));
    }

    /// Stops listening on a port and aborts its connections.
    pub(crate) fn close_port(&mut self, port: u16) {
        self.listeners.remove(&port);
        let of_port: Vec<ConnectionId> =
            self.by_ends.range((port, Ipv4Addr::UNSPECIFIED, 0)..).map(|(_, &id)| id).collect();
        for id in of_port {
            if let Some(slot) = self.slot(id).filter(|slot| slot.ends.0 == port) {
                slot.socket.connection.abort();
                self.make_ready(id);
            }
        }
    }

    /// Adds a connection, which has something to send.
    pub(crate) fn add(
        &mut self,
        owner: AppId,
        ends: Ends,
        mac: MacAddr,
        connection: Connection,
    ) -> ConnectionId {
        self.count += 1;
        let slot = Slot {
            socket: Socket::new(connection),
            owner,
            ends,
            mac,
            retransmits: 0,
            is_opening: false,
            timer: None,
            is_ready: false,
            is_news: false,
        };
        let index = self.free.pop().unwrap_or(self.slots.len() as u32);
        if self.slots.len() <= index as usize {
            self.slots.push(None);
        }
        self.slots[index as usize] = Some(Box::new(slot));
        let id = ConnectionId(index);
        self.by_ends.insert(ends, id);
        self.make_ready(id);
        id
    }

    /// Notes the number of a frame that was queued at a plain NIC.
    pub(super) fn sent(&mut self, number: u64) {
        self.waiting.push_back(number);
    }

    /// Returns the number of segments that wait in a plain NIC, which has sent all frames up to
    /// `gone`.
    pub(super) fn queued(&mut self, gone: u64) -> usize {
        while self.waiting.front().is_some_and(|&number| number <= gone) {
            self.waiting.pop_front();
        }
        self.waiting.len()
    }

    /// Returns whether there is a connection with these ends.
    pub(super) fn has(&self, ends: Ends) -> bool {
        self.by_ends.contains_key(&ends)
    }

    fn slot(&mut self, id: ConnectionId) -> Option<&mut Slot> {
        self.slots.get_mut(id.0 as usize)?.as_deref_mut()
    }

    /// Returns a connection to write to or read from. It is served afterwards.
    pub(crate) fn get(&mut self, id: ConnectionId) -> Option<&mut Socket> {
        self.make_ready(id);
        self.slot(id).map(|slot| &mut slot.socket)
    }

    /// Returns a connection to look at.
    pub(crate) fn look(&self, id: ConnectionId) -> Option<&Socket> {
        Some(&self.slots.get(id.0 as usize)?.as_deref()?.socket)
    }

    /// Returns the remote end of a connection.
    pub(crate) fn remote(&self, id: ConnectionId) -> Option<(Ipv4Addr, u16)> {
        let slot = self.slots.get(id.0 as usize)?.as_deref()?;
        Some((slot.ends.1, slot.ends.2))
    }

    /// Returns the number of segments retransmitted since the last call.
    pub(crate) fn new_retransmits(&mut self, id: ConnectionId) -> u64 {
        let Some(slot) = self.slot(id) else { return 0 };
        let all = slot.socket.connection.retransmits();
        all - std::mem::replace(&mut slot.retransmits, all)
    }

    /// Returns the MAC of a connection's peer.
    pub(crate) fn mac(&self, id: ConnectionId) -> MacAddr {
        let slot = self.slots.get(id.0 as usize).and_then(Option::as_deref);
        slot.map_or(MacAddr([0; 6]), |slot| slot.mac)
    }

    fn make_ready(&mut self, id: ConnectionId) {
        if let Some(slot) = self.slot(id).filter(|slot| !slot.is_ready) {
            slot.is_ready = true;
            self.ready.push_back(id);
        }
    }

    fn make_news(&mut self, id: ConnectionId) {
        if let Some(slot) = self.slot(id).filter(|slot| !slot.is_news) {
            slot.is_news = true;
            self.news.push_back(id);
        }
    }

    /// Returns whether connections wait for room in the NIC.
    #[inline]
    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Returns when the first timer expires.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.timers.first().map(|&(at, _)| at)
    }

    /// Marks the connections whose timers have expired as ready.
    pub(crate) fn wake(&mut self, now: Time) {
        while let Some(&(at, id)) = self.timers.first().filter(|&&(at, _)| at <= now) {
            self.timers.remove(&(at, id));
            if let Some(slot) = self.slot(id) {
                slot.timer = None;
            }
            self.make_ready(id);
        }
    }

    /// Removes and returns the next connection in the ready list.
    pub(crate) fn next_ready(&mut self) -> Option<ConnectionId> {
        let id = self.ready.pop_front()?;
        if let Some(slot) = self.slot(id) {
            slot.is_ready = false;
        }
        Some(id)
    }

    /// Returns one segment of a connection, with the content of its payload, and puts the
    /// connection back in the ready list, or sets its timer if it has none.
    pub(crate) fn poll(&mut self, now: Time, id: ConnectionId) -> Option<(Ends, Segment, Vec<u8>)> {
        let Slot { socket, ends, .. } = self.slot(id)?;
        let (connection, ends) = (&mut socket.connection, *ends);
        let before = connection.retransmits();
        let segment = connection.poll_transmit(now);
        let is_news = connection.retransmits() != before || connection.is_closed();
        let sent = segment.map(|segment| (ends, segment, socket.payload(&segment)));
        if is_news {
            self.make_news(id);
        }
        if sent.is_some() {
            self.make_ready(id);
            return sent;
        }
        self.set_timer(id);
        None
    }

    /// Sets a connection's timer. An early timer is harmless, as it is set anew when it expires, so
    /// a deadline that moves with every acknowledgement is updated only then.
    fn set_timer(&mut self, id: ConnectionId) {
        let Some(slot) = self.slot(id) else { return };
        let at = slot.socket.connection.deadline();
        let (Some(at), old) = (at, slot.timer) else { return };
        if old.is_some_and(|old| old <= at) {
            return;
        }
        slot.timer = Some(at);
        if let Some(old) = old {
            self.timers.remove(&(old, id));
        }
        self.timers.insert((at, id));
    }

    /// Processes a segment. Returns whether it was for one of these connections.
    pub(super) fn receive(&mut self, now: Time, arrived: &Arrived<'_>) -> bool {
        let ends = (arrived.to_port, arrived.from.0, arrived.from.1);
        let known = self.by_ends.get(&ends).copied();
        let flags = arrived.segment.flags;
        let opens = flags.has(Flags::SYN)
            && !flags.has(Flags::ACK)
            && !flags.has(Flags::RST)
            && self.listeners.contains_key(&arrived.to_port);
        // The application may keep something for a connection until it knows of its end.
        let is_old = |slot: &mut Slot| slot.socket.connection.is_over() && !slot.is_news;
        let closed = |tcp: &mut Tcp, id| tcp.slot(id).is_none_or(|slot| opens && is_old(slot));
        if let Some(id) = known {
            if !closed(self, id) {
                let Some(slot) = self.slot(id) else { return false };
                slot.mac = arrived.mac;
                slot.socket.on_segment(now, &arrived.segment, arrived.payload);
                let has_opened = slot.socket.connection.state() != State::SynReceived;
                if slot.is_opening && has_opened {
                    slot.is_opening = false;
                    self.opening -= 1;
                }
                self.make_ready(id);
                self.make_news(id);
                return true;
            }
            self.remove(id);
        }
        let Some(&(owner, config)) = self.listeners.get(&arrived.to_port) else { return false };
        if opens && self.opening >= OPENING_MAX {
            return true;
        }
        let config = self.allowed(config);
        let first = self.first_number();
        let Some(connection) = Connection::accept(now, config, first, &arrived.segment) else {
            return false;
        };
        let id = self.add(owner, ends, arrived.mac, connection);
        if let Some(slot) = self.slot(id) {
            slot.is_opening = true;
            self.opening += 1;
        }
        true
    }

    /// Returns whether applications are to be notified.
    pub(crate) fn has_news(&self) -> bool {
        !self.news.is_empty()
    }

    /// Returns the next connection with a notification, and its application.
    pub(crate) fn next_news(&mut self) -> Option<(AppId, ConnectionId)> {
        let id = self.news.pop_front()?;
        let slot = self.slot(id)?;
        slot.is_news = false;
        Some((slot.owner, id))
    }

    /// Removes a connection if it is closed.
    pub(crate) fn forget_closed(&mut self, id: ConnectionId) {
        if self.slot(id).is_some_and(|slot| slot.socket.connection.is_closed()) {
            self.remove(id);
        }
    }

    fn remove(&mut self, id: ConnectionId) {
        let Some(slot) = self.slots.get_mut(id.0 as usize).and_then(Option::take) else { return };
        if self.by_ends.get(&slot.ends) == Some(&id) {
            self.by_ends.remove(&slot.ends);
        }
        if let Some(at) = slot.timer {
            self.timers.remove(&(at, id));
        }
        self.opening -= u32::from(slot.is_opening);
        // Few are ready at a time. The ID is reused.
        self.ready.retain(|&other| other != id);
        self.news.retain(|&other| other != id);
        self.free.push(id.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_tcp::Options;

    fn arrived(from_port: u16, flags: Flags, (seq, ack): (Seq, Seq)) -> Arrived<'static> {
        Arrived {
            mac: MacAddr([2; 6]),
            from: (Ipv4Addr::new(10, 0, 0, 2), from_port),
            to: Ipv4Addr::new(10, 0, 0, 1),
            to_port: 9,
            segment: Segment {
                seq,
                ack,
                flags,
                window: 1000,
                options: Options::default(),
                bytes: 0,
                mark: axon_tcp::Mark::None,
            },
            payload: (&[][..]).into(),
        }
    }

    #[test]
    fn a_flood_of_syns_takes_a_bounded_number_of_places_and_who_answers_gives_his_back() {
        let now = Time::ZERO;
        let mut tcp = Tcp::default();
        tcp.listen(9, AppId(0), Config::default());
        let syn = |tcp: &mut Tcp, port| {
            assert!(tcp.receive(now, &arrived(port, Flags::SYN, (Seq(5), Seq(0)))));
        };
        (1..=5000).for_each(|port| syn(&mut tcp, port));
        assert_eq!((tcp.by_ends.len(), tcp.opening), (OPENING_MAX as usize, OPENING_MAX));
        // The first connection is established, which frees one place.
        let id = tcp.by_ends[&(9, Ipv4Addr::new(10, 0, 0, 2), 1)];
        let (_, answer, _) = tcp.poll(now, id).expect("SYN and ACK");
        assert!(tcp.receive(now, &arrived(1, Flags::ACK, (Seq(6), answer.seq + 1))));
        assert_eq!(tcp.opening, OPENING_MAX - 1);
        (5001..=5010).for_each(|port| syn(&mut tcp, port));
        assert_eq!(tcp.by_ends.len(), OPENING_MAX as usize + 1);
        tcp.close_port(9);
        while let Some(id) = tcp.next_ready() {
            tcp.poll(now, id);
            tcp.forget_closed(id);
        }
        assert_eq!((tcp.by_ends.len(), tcp.opening), (0, 0));
    }
}
