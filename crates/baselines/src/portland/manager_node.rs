//! Node of the fabric manager, which is attached to a port of a switch like Axon's controller.

use super::ldp::Ldp;
use super::manager::{Letter, Manager, ManagerCounters};
use super::message::{Message, Register};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use axon_node::{
    Action, Awaited, Drop, Input, Node, NodeKind, PortEvent, PortKind, Punt, Shortcuts,
};
use axon_plane::{FrameMeta, Ports};
use axon_wire::constants::ethertype::PORTLAND;
use axon_wire::{Bytes, FrameBuf, MacAddr, PortNo, Span, Time};
use core::net::Ipv4Addr;

/// The only port of the manager.
const PORT: PortNo = PortNo(0);
/// Maximum number of frames in the port's buffer. Further frames wait here without loss.
const QUEUED_MAX: u64 = 64;

/// Configuration of the fabric manager.
#[derive(Clone, Copy, Debug)]
pub struct ManagerConfig {
    /// MAC address of the manager.
    pub mac: MacAddr,
    /// Incarnation number. Later incarnations have greater ones.
    pub incarnation: u32,
    /// Interval between location discovery messages.
    pub interval: Span,
    /// Initial interval between retransmissions of unacknowledged messages.
    pub retry: Span,
    /// Size of the port's buffer, in bytes.
    pub queue_bytes_max: Bytes,
}

/// Node of a fabric manager.
#[derive(Debug)]
pub struct ManagerNode {
    config: ManagerConfig,
    ports: Ports,
    ldp: Ldp,
    manager: Manager,
    letters: Vec<Letter>,
    outbox: VecDeque<Vec<u8>>,
    actions: Vec<Action>,
}

impl ManagerNode {
    /// Creates a manager that has just been switched on.
    pub fn new(config: ManagerConfig) -> ManagerNode {
        let mut ldp = Ldp::new(config.mac, 1, config.interval);
        ldp.be_manager(config.incarnation);
        ManagerNode {
            ports: Ports::new(1, config.queue_bytes_max),
            ldp,
            manager: Manager::new(config.interval, config.retry),
            letters: Vec::new(),
            outbox: VecDeque::new(),
            actions: Vec::new(),
            config,
        }
    }

    /// Returns the port of the manager.
    pub fn ports(&self) -> &Ports {
        &self.ports
    }

    /// Returns the counters since the start.
    pub fn counters(&self) -> ManagerCounters {
        self.manager.counters()
    }

    /// Returns whether the network is a fat tree, or `None` before the first evaluation.
    pub fn fat_tree(&self) -> Option<bool> {
        self.manager.fat_tree()
    }

    /// Returns the registered hosts by IP address.
    pub fn hosts(&self) -> &BTreeMap<Ipv4Addr, Register> {
        self.manager.hosts()
    }

    /// Returns the number of switches that have reported themselves.
    pub fn switches(&self) -> usize {
        self.manager.switches()
    }

    fn receive(&mut self, now: Time, meta: FrameMeta) {
        if let Err(reason) = self.ports.receive(now, &meta) {
            return self.ports.discard(meta, reason, &mut self.actions);
        }
        let frame = meta.frame.bytes();
        let destination = MacAddr::destination_of(frame).unwrap_or_default();
        let control = frame.get(12..14) == Some(&PORTLAND.to_be_bytes());
        let punt = match destination {
            mac if control && mac == self.config.mac => Punt::Addressed,
            mac if control && mac.is_link_local() => Punt::LinkLocal,
            _ => return self.ports.discard(meta, Drop::NoRoute, &mut self.actions),
        };
        self.ports.punt(now, meta, punt, &mut self.actions);
    }

    fn read(&mut self, now: Time, port: PortNo, frame: &[u8], punt: Punt) -> bool {
        match Message::parse(frame) {
            Some((from, Message::Ldm(ldm))) if punt == Punt::LinkLocal => {
                self.ldp.receive(now, port, from, ldm);
                self.ports.set_kind(port, PortKind::Axon);
                true
            }
            Some((from, message)) if punt == Punt::Addressed => {
                self.manager.message(now, from, message, &mut self.letters)
            }
            _ => false,
        }
    }

    /// Passes messages to the port as long as its buffer has room.
    fn post(&mut self, now: Time) {
        let mac = self.config.mac;
        for (to, message) in self.letters.drain(..) {
            self.outbox.push_back(message.emit(to, mac));
        }
        if !self.ports.wires().is_up(PORT) {
            // The receivers repeat their requests.
            self.outbox.clear();
        }
        while self.ports.queues().frames(PORT) < QUEUED_MAX {
            let Some(frame) = self.outbox.pop_front() else {
                return;
            };
            self.send(now, &frame);
        }
    }

    fn send(&mut self, now: Time, frame: &[u8]) {
        let meta = self.ports.originate(now, FrameBuf::with_headroom(0, frame));
        self.ports.deliver(now, meta, PORT, None, &mut self.actions);
    }
}

impl Node for ManagerNode {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        match input {
            Input::Frame { port, frame, complete_at, intact } => {
                self.receive(now, FrameMeta::new(frame, port, complete_at, intact));
            }
            Input::TxDone { port } => self.ports.tx_done(now, port, &mut self.actions),
            Input::Link { port, up } => {
                self.ports.link(now, port, up, &mut self.actions);
                self.ldp.link(now, port, up);
            }
            Input::Timeout => {}
            Input::Command(command) => {
                out.push(Action::Reply(command.unsupported_by(NodeKind::Baseline)));
            }
        }
        self.ports.timeout(now, &mut self.actions);
        for action in core::mem::take(&mut self.actions) {
            let Action::Punt { ingress, frame, punt, .. } = action else {
                out.push(action);
                continue;
            };
            let known = self.read(now, ingress, frame.bytes(), punt);
            let reason = if known { Drop::Consumed } else { Drop::Refused };
            self.ports.count(ingress, PortEvent::Drop(reason));
            out.push(Action::Dropped { ingress, reason, frame });
        }
        if self.ldp.deadline().is_some_and(|at| at <= now) {
            self.ldp.timeout(now);
        }
        self.manager.timeout(now, &mut self.letters);
        if self.manager.fat_tree() == Some(true) {
            self.ldp.set_fat_tree(now);
        }
        for (_, ldm) in self.ldp.due(now) {
            self.send(now, &Message::Ldm(ldm).emit_link(self.config.mac));
        }
        self.post(now);
        out.append(&mut self.actions);
    }

    fn deadline(&self) -> Option<Time> {
        let deadlines = [self.ports.deadline(), self.ldp.deadline(), self.manager.deadline()];
        deadlines.into_iter().flatten().min()
    }
}

impl Shortcuts for ManagerNode {
    #[inline]
    fn awaited(&mut self) -> Awaited {
        self.ports.awaited()
    }
}
