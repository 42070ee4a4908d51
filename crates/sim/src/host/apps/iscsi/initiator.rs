//! The iSCSI initiator, which keeps a fixed number of commands outstanding.

use super::super::tcp::{self, TcpOptions};
use super::super::{App, FlowStats};
use super::exchange::Exchange;
use super::pdu::Pdu;
use super::{IscsiLimits, Processor, Work};
use crate::host::stack::Stack;
use axon_wire::Time;
use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp as stack_tcp;
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
    plan: InitiatorPlan,
    started: Time,
    socket: Option<SocketHandle>,
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
    pub(crate) fn new(plan: InitiatorPlan, now: Time) -> Initiator {
        Initiator {
            plan,
            started: now,
            socket: None,
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
        self.stats.failed += self.open.len() as u64;
        self.open.clear();
        self.stats.done.get_or_insert(now);
    }

    /// Sends and reads until there is no more progress.
    fn serve(&mut self, now: Time, socket: &mut stack_tcp::Socket<'_>) -> bool {
        let mut more = false;
        loop {
            self.issue(now);
            let wrote = self.exchange.write(now, socket, (&mut self.work, &mut self.stats));
            let (read, pdu) = self.exchange.read(now, socket, (&mut self.work, &mut self.stats));
            more |= wrote | read;
            let Some(pdu) = pdu else { break };
            self.take(now, pdu);
        }
        more
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
        let Some(handle) = self.socket else {
            let InitiatorPlan { target, port, options, .. } = self.plan;
            let opened = tcp::connect(target, port, &options, stack);
            (self.socket, self.local_port) = (opened.map(|of| of.0), opened.map(|of| of.1));
            return opened.is_some();
        };
        let socket = stack.sockets.get_mut::<stack_tcp::Socket>(handle);
        if !socket.is_open() || self.exchange.is_broken {
            socket.abort();
            self.end(now);
            return true;
        }
        if !socket.may_send() {
            return false;
        }
        let more = self.serve(now, socket);
        if self.plan.count.is_some_and(|count| self.stats.completed >= count) {
            socket.close();
            self.stats.done = Some(now);
            return true;
        }
        self.due = self.work.due(now);
        more
    }

    fn deadline(&self) -> Option<Time> {
        self.due
    }

    fn stop(&mut self, now: Time, stack: &mut Stack) {
        if let Some(handle) = self.socket {
            stack.sockets.get_mut::<stack_tcp::Socket>(handle).close();
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

    fn count_retransmits(&mut self, local_port: u16, segments: u64) {
        if self.local_port == Some(local_port) {
            self.stats.retransmits += segments;
        }
    }
}
