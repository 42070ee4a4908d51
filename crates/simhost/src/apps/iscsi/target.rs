//! The iSCSI target, which serves commands from memory on any number of connections.

use super::super::tcp::TcpOptions;
use super::super::{App, AppId, FlowStats};
use super::exchange::Exchange;
use super::pdu::Pdu;
use super::{IscsiLimits, Processor, Work};
use crate::stack::Stack;
use crate::tcp::ConnectionId;
use axon_tcp::State;
use axon_wire::Time;
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
    sessions: BTreeMap<ConnectionId, Session>,
    work: Work,
    due: Option<Time>,
    stats: FlowStats,
}

impl Target {
    pub(crate) fn new(id: AppId, plan: TargetPlan, stack: &mut Stack) -> Target {
        stack.tcp.listen(plan.port, id, plan.options.config(stack.ip.mtu()));
        Target {
            plan,
            sessions: BTreeMap::new(),
            work: Work::new(plan.processor),
            due: None,
            stats: FlowStats::default(),
        }
    }

    /// Sends and reads on a connection until there is no more progress.
    fn serve(&mut self, now: Time, id: ConnectionId, stack: &mut Stack) {
        let Some(socket) = stack.tcp.get(id) else { return };
        if socket.connection.is_over() {
            self.sessions.remove(&id);
            return;
        }
        let session = self.sessions.entry(id).or_default();
        loop {
            session.exchange.write(now, socket, (&mut self.work, &mut self.stats));
            let pdu = session.exchange.read(now, socket, (&mut self.work, &mut self.stats));
            let Some(pdu) = pdu else { break };
            self.stats.completed += u64::from(session.take(pdu, &self.plan.limits));
        }
        if session.exchange.is_broken {
            socket.connection.abort();
        } else if socket.connection.state() == State::CloseWait && session.exchange.waiting().0 == 0
        {
            socket.connection.close();
        }
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
        let open: Vec<ConnectionId> = self.sessions.keys().copied().collect();
        open.into_iter().for_each(|id| self.serve(now, id, stack));
        self.due = self.work.due(now);
        false
    }

    fn connection(&mut self, now: Time, id: ConnectionId, stack: &mut Stack) {
        self.stats.retransmits += stack.tcp.new_retransmits(id);
        self.serve(now, id, stack);
        self.due = self.work.due(now);
    }

    fn deadline(&self) -> Option<Time> {
        self.due
    }

    fn stop(&mut self, now: Time, stack: &mut Stack) {
        stack.tcp.close_port(self.plan.port);
        self.due = None;
        self.stats.done = Some(now);
    }

    fn stats(&self) -> &FlowStats {
        &self.stats
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
