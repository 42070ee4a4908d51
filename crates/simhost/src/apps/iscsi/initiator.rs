//! The iSCSI initiator, which keeps a fixed number of commands outstanding.

use super::super::tcp::TcpOptions;
use super::super::{App, AppId, FlowStats};
use super::exchange::Exchange;
use super::pdu::Pdu;
use super::{IscsiLimits, Processor, Work};
use crate::stack::Stack;
use crate::tcp::ConnectionId;
use axon_tcp::{Socket, State};
use axon_wire::Time;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Commands to send to one target, all reads or all writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitiatorPlan {
    /// Target address.
    pub target: Ipv4Addr,
    /// Target port; the iSCSI port is 3260.
    pub port: u16,
    /// TCP options of the connection.
    pub options: TcpOptions,
    /// Negotiated limits.
    pub limits: IscsiLimits,
    /// Processor cost of PDUs at this end.
    pub processor: Processor,
    /// True if the commands are reads.
    pub is_read: bool,
    /// Data of a command in bytes, at least 1.
    pub length: u32,
    /// Number of outstanding commands, at least 1.
    pub depth: u32,
    /// Number of commands; `None` runs until stopped.
    pub count: Option<u64>,
}

/// Running initiator. A command's time runs from when it may be outstanding to its status.
pub(crate) struct Initiator {
    id: AppId,
    plan: InitiatorPlan,
    started: Time,
    /// Connection in use; `None` once the work is done.
    connection: Option<ConnectionId>,
    local_port: Option<u16>,
    exchange: Exchange,
    work: Work,
    /// Outstanding commands and their start times.
    open: BTreeMap<u32, Time>,
    issued: u64,
    due: Option<Time>,
    stats: FlowStats,
}

impl Initiator {
    pub(crate) fn new(id: AppId, plan: InitiatorPlan, now: Time) -> Initiator {
        Initiator {
            id,
            plan,
            started: now,
            connection: None,
            local_port: None,
            exchange: Exchange::default(),
            work: Work::new(plan.processor),
            open: BTreeMap::new(),
            issued: 0,
            due: Some(now),
            stats: FlowStats::default(),
        }
    }

    /// Issues commands up to the permitted number outstanding.
    fn issue(&mut self, now: Time) {
        let InitiatorPlan { is_read, length, depth, count, limits, .. } = self.plan;
        while self.open.len() < depth.max(1) as usize
            && count.is_none_or(|count| self.issued < count)
        {
            self.issued += 1;
            let tag = self.issued as u32;
            let data = if is_read { 0 } else { limits.immediate(length) };
            self.exchange.send(Pdu::Command { tag, is_read, length, data });
            self.open.insert(tag, now);
        }
    }

    /// Processes a PDU of the target.
    fn take(&mut self, now: Time, pdu: Pdu) {
        match pdu {
            Pdu::DataIn { tag, is_last: true, .. } | Pdu::Response { tag } => {
                if let Some(began) = self.open.remove(&tag) {
                    self.stats.times.add(now.since(began));
                    self.stats.completed += 1;
                }
            }
            Pdu::ReadyToTransfer { tag, offset, length } => {
                let (mut at, end) = (offset, offset + length);
                for data in self.plan.limits.segments(length) {
                    let is_last = at + data == end;
                    self.exchange.send(Pdu::DataOut { tag, offset: at, data, is_last });
                    at += data;
                }
            }
            Pdu::DataIn { .. } => {}
            Pdu::Command { .. } | Pdu::DataOut { .. } => self.exchange.is_broken = true,
        }
    }

    /// Gives up. The outstanding commands have failed.
    fn end(&mut self, now: Time) {
        self.connection = None;
        self.stats.failed += self.open.len() as u64;
        self.open.clear();
        self.stats.done.get_or_insert(now);
    }

    /// Sends and reads until there is no more progress.
    fn serve(&mut self, now: Time, socket: &mut Socket) {
        loop {
            self.issue(now);
            self.exchange.write(now, socket, (&mut self.work, &mut self.stats));
            let pdu = self.exchange.read(now, socket, (&mut self.work, &mut self.stats));
            let Some(pdu) = pdu else { break };
            self.take(now, pdu);
        }
    }
}

impl App for Initiator {
    fn poll(&mut self, now: Time, stack: &mut Stack) -> bool {
        self.due = None;
        if self.stats.done.is_some() {
            return false;
        }
        if now < self.started {
            self.due = Some(self.started);
            return false;
        }
        let Some(id) = self.connection else {
            let InitiatorPlan { target, port, options, .. } = self.plan;
            let config = options.config(stack.ip.mtu());
            let opened = stack.open_tcp(now, self.id, (target, port), config);
            (self.connection, self.local_port) = opened.unzip();
            return false;
        };
        let Some(socket) = stack.tcp.get(id) else { return false };
        if socket.connection.state() == State::Closed || self.exchange.is_broken {
            socket.connection.abort();
            self.end(now);
            return false;
        }
        if !socket.may_send() {
            return false;
        }
        self.serve(now, socket);
        if self.plan.count.is_some_and(|count| self.stats.completed >= count) {
            socket.connection.close();
            self.connection = None;
            self.stats.done = Some(now);
            return false;
        }
        self.due = self.work.due(now);
        false
    }

    fn connection(&mut self, now: Time, id: ConnectionId, stack: &mut Stack) {
        self.stats.retransmits += stack.tcp.new_retransmits(id);
        self.poll(now, stack);
    }

    fn deadline(&self) -> Option<Time> {
        self.due
    }

    fn stop(&mut self, now: Time, stack: &mut Stack) {
        if let Some(socket) = self.connection.take().and_then(|id| stack.tcp.get(id)) {
            socket.connection.close();
        }
        self.due = None;
        self.stats.done.get_or_insert(now);
    }

    fn stats(&self) -> &FlowStats {
        &self.stats
    }

    fn source_port(&self) -> Option<u16> {
        self.local_port
    }
}
