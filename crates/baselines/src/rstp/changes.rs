//! Topology changes and transmission (IEEE 802.1D-2004 clauses 17.31 and 17.26).
//!
//! When a port that is not an edge port begins to forward, the locations of addresses may have
//! changed. The bridge sends a topology change on all its other ports in the tree for a hello time
//! plus one second, and flushes the addresses learned there. Receivers do the same. A BPDU is sent
//! when there is a change, and in any case once per hello time by designated ports. At most six are
//! sent at once, then one per second.

use super::bpdu::{Bpdu, SentRole};
use super::port::{ChangeState, Port, Role};
use super::{Request, Rstp};
use alloc::vec::Vec;
use axon_wire::{PortNo, Span, Time};

impl Rstp {
    /// Runs one step of a port's topology change machine. Returns whether there was one.
    pub(super) fn topology_step(
        &mut self,
        now: Time,
        index: usize,
        requests: &mut Vec<Request>,
    ) -> bool {
        let port = &mut self.ports[index];
        let active = matches!(port.role, Role::Root | Role::Designated);
        let heard = port.rcvd_tc || port.rcvd_tc_ack || port.tc_prop;
        match port.change {
            ChangeState::Inactive if port.learn => port.change = ChangeState::Learning,
            ChangeState::Learning if active && port.forward && !port.oper_edge => {
                port.change = ChangeState::Active;
                new_tc_while(port, now);
                port.new_info = true;
                self.propagate(index);
            }
            ChangeState::Learning if heard => forget_changes(port),
            ChangeState::Learning if !active && !port.learn && !port.learning => {
                port.change = ChangeState::Inactive;
                port.tc.stop();
                requests.push(Request::Flush { port: PortNo(index as u16) });
            }
            ChangeState::Active if !active || port.oper_edge => {
                port.change = ChangeState::Learning;
                forget_changes(port);
            }
            ChangeState::Active if port.rcvd_tc => {
                port.rcvd_tc = false;
                self.propagate(index);
            }
            ChangeState::Active if port.tc_prop => {
                port.tc_prop = false;
                new_tc_while(port, now);
                requests.push(Request::Flush { port: PortNo(index as u16) });
            }
            ChangeState::Active if port.rcvd_tc_ack => {
                port.rcvd_tc_ack = false;
                port.tc.stop();
            }
            _ => return false,
        }
        true
    }

    /// Runs `setTcPropTree` (clause 17.21.18) and counts the change once.
    fn propagate(&mut self, from: usize) {
        for (index, port) in self.ports.iter_mut().enumerate() {
            port.tc_prop |= index != from;
        }
    }

    /// Sends the BPDUs that are due on a port.
    pub(super) fn transmit(&mut self, now: Time, index: usize, requests: &mut Vec<Request>) {
        let hello = self.config.times.hello.span();
        let port = &mut self.ports[index];
        pay_back(port, now);
        if !port.enabled || port.role == Role::Disabled || !port.selected || port.updt_info {
            return;
        }
        if port.hello.is_over(now) {
            let changing = !port.tc.is_over(now);
            port.new_info |= port.role == Role::Designated || port.role == Role::Root && changing;
            port.hello.start(now, hello);
        }
        if !port.new_info || port.tx_count >= self.config.tx_hold_count {
            return;
        }
        port.new_info = false;
        if port.tx_count == 0 {
            port.tx_tick.start(now, Span::from_secs(1));
        }
        port.tx_count += 1;
        let frame = rst_bpdu(port, now).emit(self.id.mac);
        self.sent += 1;
        requests.push(Request::Send { port: PortNo(index as u16), frame });
    }
}

/// Runs `newTcWhile` (clause 17.21.7).
fn new_tc_while(port: &mut Port, now: Time) {
    if port.tc.is_over(now) {
        port.tc.start(now, port.designated_times.hello.span() + Span::from_secs(1));
        port.new_info = true;
    }
}

fn forget_changes(port: &mut Port) {
    (port.rcvd_tc, port.rcvd_tc_ack, port.tc_prop) = (false, false, false);
}

/// Decrements `txCount` once each second.
fn pay_back(port: &mut Port, now: Time) {
    while port.tx_count > 0 && port.tx_tick.is_over(now) {
        port.tx_count -= 1;
        let last = port.tx_tick;
        port.tx_tick.start(last.moment(), Span::from_secs(1));
    }
}

/// Returns the BPDU that `txRstp` sends (clause 17.21.20).
fn rst_bpdu(port: &Port, now: Time) -> Bpdu {
    Bpdu {
        vector: port.designated,
        times: port.designated_times,
        role: match port.role {
            Role::Disabled => SentRole::Unknown,
            Role::Alternate | Role::Backup => SentRole::AlternateOrBackup,
            Role::Root => SentRole::Root,
            Role::Designated => SentRole::Designated,
        },
        topology_change: !port.tc.is_over(now),
        proposal: port.proposing,
        agreement: port.agree,
        learning: port.learning,
        forwarding: port.forwarding,
        acknowledgment: false,
    }
}
