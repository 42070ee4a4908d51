//! Byte streams over TCP: a sender of a number of bytes, and a sink for any number of senders.
//!
//! The payload repeats one byte, so that a stream needs no buffers and its frames are light.

use super::tcp::{TcpOptions, TcpPlan};
use super::{App, AppId, FlowStats, Received};
use crate::stack::Stack;
use crate::tcp::ConnectionId;
use axon_tcp::State;
use axon_wire::{Bytes, Time};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Running sender. The time of its one transfer runs from its start until the last byte is
/// acknowledged, including the wait for the target's address.
pub(crate) struct TcpSender {
    id: AppId,
    plan: TcpPlan,
    started: Time,
    /// True if the start is due but the target's address was not resolved.
    waiting: bool,
    connection: Option<ConnectionId>,
    local_port: Option<u16>,
    stopped: bool,
    stats: FlowStats,
}

impl TcpSender {
    pub(crate) fn new(id: AppId, plan: TcpPlan, now: Time, stack: &mut Stack) -> TcpSender {
        stack.way_to(plan.target);
        TcpSender {
            id,
            plan,
            started: now,
            waiting: false,
            connection: None,
            local_port: None,
            stopped: false,
            stats: FlowStats::default(),
        }
    }

    fn left(&self) -> u64 {
        match self.plan.bytes {
            _ if self.stopped => 0,
            Some(bytes) => bytes - self.stats.sent_bytes.0,
            None => u64::MAX,
        }
    }

    fn open(&mut self, now: Time, stack: &mut Stack) {
        let TcpPlan { target, port, options, .. } = self.plan;
        let config = options.config(stack.ip.mtu());
        if let Some((id, local)) = stack.open_tcp(now, self.id, (target, port), config) {
            (self.connection, self.local_port) = (Some(id), Some(local));
        }
    }

    /// Writes as much as the send buffer holds. Closes when all is acknowledged.
    fn serve(&mut self, now: Time, id: ConnectionId, stack: &mut Stack) {
        let left = self.left();
        self.stats.retransmits += stack.tcp.new_retransmits(id);
        let Some(socket) = stack.tcp.get(id) else { return };
        if socket.connection.state() == State::Closed {
            // The connection was closed, refused or aborted.
            self.connection = None;
            self.stats.failed += u64::from(self.stats.done.is_none());
            self.stats.done.get_or_insert(now);
            return;
        }
        if self.stats.done.is_some() || !socket.may_send() {
            return;
        }
        let bytes = socket.write(&[], left);
        if bytes > 0 {
            self.stats.count_sent(now, bytes as usize);
        }
        if left == 0 && socket.connection.queued() == 0 {
            socket.connection.close();
            self.stats.times.add(now.since(self.started));
            self.stats.completed += 1;
            self.stats.done = Some(now);
        }
    }
}

impl App for TcpSender {
    fn poll(&mut self, now: Time, stack: &mut Stack) -> bool {
        match self.connection {
            Some(id) if self.stopped => self.serve(now, id, stack),
            Some(_) => {}
            None if self.stats.done.is_some() || now < self.started => {}
            None => {
                self.waiting = true;
                self.open(now, stack);
            }
        }
        false
    }

    fn deadline(&self) -> Option<Time> {
        // Later frames trigger progress; the connection handles retransmissions.
        (!self.waiting && self.stats.done.is_none()).then_some(self.started)
    }

    fn stop(&mut self, now: Time, _stack: &mut Stack) {
        self.stopped = true;
        if self.connection.is_none() {
            self.stats.done.get_or_insert(now);
        }
    }

    fn stats(&self) -> &FlowStats {
        &self.stats
    }

    fn connection(&mut self, now: Time, id: ConnectionId, stack: &mut Stack) {
        self.serve(now, id, stack);
    }

    fn source_port(&self) -> Option<u16> {
        self.local_port
    }
}

/// Counts the bytes received on one TCP port and verifies them.
pub(crate) struct TcpSink {
    port: u16,
    stats: FlowStats,
    /// Boxed, as a node of the map has room for eleven.
    senders: BTreeMap<(Ipv4Addr, u16), Box<Received>>,
}

impl TcpSink {
    pub(crate) fn new(id: AppId, port: u16, options: TcpOptions, stack: &mut Stack) -> TcpSink {
        stack.tcp.listen(port, id, options.config(stack.ip.mtu()));
        TcpSink { port, stats: FlowStats::default(), senders: BTreeMap::new() }
    }
}

impl App for TcpSink {
    fn poll(&mut self, _now: Time, _stack: &mut Stack) -> bool {
        false
    }

    fn deadline(&self) -> Option<Time> {
        None
    }

    fn stop(&mut self, now: Time, stack: &mut Stack) {
        stack.tcp.close_port(self.port);
        self.stats.done = Some(now);
    }

    fn stats(&self) -> &FlowStats {
        &self.stats
    }

    fn connection(&mut self, now: Time, id: ConnectionId, stack: &mut Stack) {
        let remote = stack.tcp.remote(id);
        let (Some(socket), Some(remote)) = (stack.tcp.get(id), remote) else { return };
        let (bytes, wrong) = socket.skip(u64::MAX);
        if socket.connection.state() == State::CloseWait && socket.connection.close() {
            self.stats.completed += 1;
        }
        if bytes == 0 {
            return;
        }
        let sender = self.senders.entry(remote).or_default();
        sender.count(now, bytes as usize);
        sender.wrong_bytes += wrong;
        let all = &mut self.stats.received;
        all.packets += 1;
        all.bytes += Bytes(bytes);
        all.first.get_or_insert(now);
        all.last = Some(now);
        all.wrong_bytes += wrong;
    }

    fn received_from(&self, from: (Ipv4Addr, u16)) -> Option<&Received> {
        self.senders.get(&from).map(|received| &**received)
    }
}
