//! The iSCSI target, which serves commands from memory on any number of connections.

use super::super::tcp::{Listener, TcpOptions};
use super::super::{App, FlowStats};
use super::exchange::Exchange;
use super::pdu::Pdu;
use super::{IscsiLimits, Processor, Work};
use crate::host::stack::Stack;
use axon_wire::Time;
use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp;
use std::collections::BTreeMap;

/// Target configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetPlan {
    /// Target port; the iSCSI port is 3260.
    pub port: u16,
    /// TCP options of the connections.
    pub options: TcpOptions,
    /// Negotiated limits.
    pub limits: IscsiLimits,
    /// Processor cost of PDUs at this end.
    pub processor: Processor,
}

/// Write in progress.
#[derive(Clone, Copy, Debug)]
struct Write {
    length: u32,
    got: u32,
    /// Bytes requested so far.
    asked: u32,
}

/// Connection of an initiator.
#[derive(Debug, Default)]
struct Session {
    exchange: Exchange,
    writes: BTreeMap<u32, Write>,
}

/// Running target.
pub(crate) struct Target {
    plan: TargetPlan,
    listener: Listener,
    sessions: BTreeMap<SocketHandle, Session>,
    work: Work,
    due: Option<Time>,
    stats: FlowStats,
}

impl Target {
    pub(crate) fn new(plan: TargetPlan, stack: &mut Stack) -> Target {
        Target {
            plan,
            listener: Listener::new(plan.port, plan.options, stack),
            sessions: BTreeMap::new(),
            work: Work::new(plan.processor),
            due: None,
            stats: FlowStats::default(),
        }
    }

    fn serve(&mut self, now: Time, handle: SocketHandle, stack: &mut Stack) -> bool {
        let session = self.sessions.entry(handle).or_default();
        let socket = stack.sockets.get_mut::<tcp::Socket>(handle);
        let mut more = false;
        loop {
            let wrote = session.exchange.write(now, socket, (&mut self.work, &mut self.stats));
            let (read, pdu) = session.exchange.read(now, socket, (&mut self.work, &mut self.stats));
            more |= wrote | read;
            let Some(pdu) = pdu else { break };
            self.stats.completed += u64::from(session.take(pdu, &self.plan.limits));
        }
        if session.exchange.is_broken {
            socket.abort();
            return true;
        }
        if socket.state() == tcp::State::CloseWait && session.exchange.waiting().0 == 0 {
            socket.close();
            return true;
        }
        more
    }
}

impl Session {
    /// Processes a PDU of the initiator. Returns whether a command has got its status.
    fn take(&mut self, pdu: Pdu, limits: &IscsiLimits) -> bool {
        match pdu {
            Pdu::Command { tag, is_read: true, length, .. } => {
                let mut offset = 0;
                for data in limits.segments(length) {
                    let is_last = offset + data == length;
                    self.exchange.send(Pdu::DataIn { tag, offset, data, is_last });
                    offset += data;
                }
                true
            }
            Pdu::Command { tag, is_read: false, length, data } => {
                self.writes.insert(tag, Write { length, got: data, asked: data });
                self.go_on(tag, limits)
            }
            Pdu::DataOut { tag, data, .. } => {
                if let Some(write) = self.writes.get_mut(&tag) {
                    write.got += data;
                }
                self.go_on(tag, limits)
            }
            Pdu::DataIn { .. } | Pdu::ReadyToTransfer { .. } | Pdu::Response { .. } => {
                self.exchange.is_broken = true;
                false
            }
        }
    }

    /// Requests the next burst of a write once the last has arrived, or ends the command. Returns
    /// whether it has ended.
    fn go_on(&mut self, tag: u32, limits: &IscsiLimits) -> bool {
        let Some(write) = self.writes.get_mut(&tag).filter(|write| write.got >= write.asked) else {
            return false;
        };
        if write.got >= write.length {
            self.writes.remove(&tag);
            self.exchange.send(Pdu::Response { tag });
            return true;
        }
        let (offset, length) = (write.got, limits.burst.max(1).min(write.length - write.got));
        write.asked += length;
        self.exchange.send(Pdu::ReadyToTransfer { tag, offset, length });
        false
    }
}

impl App for Target {
    fn poll(&mut self, now: Time, stack: &mut Stack) -> bool {
        self.listener.poll(stack);
        let open = std::mem::take(&mut self.listener.open);
        self.sessions.retain(|handle, _| open.contains(handle));
        let mut more = false;
        for &handle in &open {
            more |= self.serve(now, handle, stack);
        }
        self.listener.open = open;
        self.due = self.work.due(now);
        more
    }

    fn deadline(&self) -> Option<Time> {
        self.due
    }

    fn stop(&mut self, now: Time, stack: &mut Stack) {
        self.listener.stop(stack);
        self.due = None;
        self.stats.done = Some(now);
    }

    fn stats(&self) -> &FlowStats {
        &self.stats
    }

    fn count_retransmits(&mut self, local_port: u16, segments: u64) {
        if self.plan.port == local_port {
            self.stats.retransmits += segments;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_is_asked_for_burst_by_burst_and_ends_once() {
        let limits = IscsiLimits { segment: 100, first_burst: 100, burst: 400 };
        let mut session = Session::default();
        let command = Pdu::Command { tag: 1, is_read: false, length: 700, data: 100 };
        assert!(!session.take(command, &limits));
        let asked = |session: &Session| session.writes.get(&1).map(|write| write.asked);
        assert_eq!(asked(&session), Some(500), "immediate data and one burst");
        let data = |offset| Pdu::DataOut { tag: 1, offset, data: 100, is_last: false };
        for offset in [100, 200, 300] {
            assert!(!session.take(data(offset), &limits));
            assert_eq!(asked(&session), Some(500), "one R2T is outstanding at most");
        }
        assert!(!session.take(data(400), &limits));
        assert_eq!(asked(&session), Some(700));
        assert!(!session.take(data(500), &limits));
        assert!(session.take(data(600), &limits), "all is here");
        assert!(!session.take(data(700), &limits), "nobody asked for that");
        let r2ts_and_response = 3 * super::super::pdu::HEADER_BYTES as u64;
        assert_eq!(session.exchange.waiting().0, r2ts_and_response);
    }
}
