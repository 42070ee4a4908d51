//! A host's bond: several NICs behind one stack, with LACP (IEEE 802.1AX), like Linux in mode
//! 802.3ad.
//!
//! The host is an LACP system of its own. The ports whose partner is that of the first port form
//! one aggregate. Frames received on a collecting port are accepted. Outgoing frames are
//! distributed by a hash of both MAC addresses, and of IP addresses and ports (Linux' `layer3+4`),
//! over the distributing ports, so a conversation stays on one link and in order. Each port has a
//! short queue, so that a port waiting for its wire does not block the others. Without a
//! distributing port, the stack has no carrier.

use crate::config::PORT;
use crate::nic::Nic;
use crate::reception::Reception;
use axon_link::lacp::{LacpConfig, LacpPort, Mux, Selection};
use axon_node::{Action, Drop, Input};
use axon_wire::constants::ethertype;
use axon_wire::host_frame;
use axon_wire::lacp::{Lacpdu, Partner, SystemId};
use axon_wire::{FrameBuf, MacAddr, PortNo, Time};
use std::collections::VecDeque;

/// Maximum number of frames queued at one port before the stack has to wait.
const QUEUE_FRAMES_MAX: usize = 4;
/// Key of the single aggregate.
const KEY: u16 = 9;
/// Priority of the system and of its ports.
const PRIORITY: u16 = 0xffff;

/// Ports of a host with a bond.
#[derive(Clone, Debug)]
pub(crate) struct Bond {
    mac: MacAddr,
    ports: Vec<Port>,
    selection: Selection,
}

#[derive(Clone, Debug)]
struct Port {
    lacp: LacpPort,
    up: bool,
    busy: bool,
    queue: VecDeque<FrameBuf>,
}

impl Bond {
    /// Returns a bond of `ports` ports without carrier.
    pub(crate) fn new(mac: MacAddr, ports: u16) -> Bond {
        let port = |number: u16| {
            let system = SystemId { priority: PRIORITY, mac };
            let lacp = LacpPort::new(LacpConfig {
                system,
                key: KEY,
                port_priority: PRIORITY,
                port: number + 1,
                active: true,
                short_timeout: true,
            });
            Port { lacp, up: false, busy: false, queue: VecDeque::new() }
        };
        Bond { mac, ports: (0..ports).map(port).collect(), selection: Selection::default() }
    }

    /// Returns the LACP state of a port.
    pub(crate) fn state(&self, port: PortNo) -> Option<Mux> {
        self.ports.get(port.index()).map(|port| port.lacp.mux_state())
    }

    /// Returns whether any port distributes.
    pub(crate) fn is_up(&self) -> bool {
        self.ports.iter().any(Port::distributes)
    }

    /// Handles the part of an input that concerns the bond alone. Returns the input for the stack.
    pub(crate) fn handle(
        &mut self,
        now: Time,
        input: Input,
        (nic, reception): (&mut Nic, &mut Reception),
        out: &mut Vec<Action>,
    ) -> Input {
        self.timeout(now);
        match input {
            Input::Link { port, up } => {
                self.link(now, port, up).iter().for_each(|frame| nic.end(frame));
                Input::Timeout
            }
            Input::TxDone { port } => {
                self.wire_is_free(port);
                Input::TxDone { port: PORT }
            }
            Input::Frame { port, frame, intact: true, .. }
                if self.takes(now, port, frame.bytes()) =>
            {
                reception.count();
                nic.recycle(frame);
                Input::Timeout
            }
            Input::Frame { port, frame, intact: true, .. } if !self.collects(port) => {
                reception.count();
                out.push(Action::Dropped { ingress: port, reason: Drop::Refused, frame });
                Input::Timeout
            }
            input => input,
        }
    }

    /// Queues frames of the stack at the ports, and sends them.
    pub(crate) fn transmit(&mut self, now: Time, nic: &mut Nic, out: &mut Vec<Action>) {
        while nic.has_carrier() && self.has_room() {
            let Some(frame) = nic.next(now) else { break };
            if let Some(frame) = self.put(frame) {
                nic.end(&frame);
            }
        }
        while let Some((port, frame, made)) = self.next(now) {
            if made {
                nic.count_made();
            }
            out.push(Action::Transmit { port, frame, complete_at: now, intact: true });
        }
    }

    /// Handles a carrier change of a port. Returns the frames queued there.
    fn link(&mut self, now: Time, port: PortNo, up: bool) -> VecDeque<FrameBuf> {
        let Some(port) = self.ports.get_mut(port.index()) else { return VecDeque::new() };
        // No `TxDone` is pending for a frame that lost its carrier.
        (port.up, port.busy) = (up, false);
        port.lacp.link(now, up);
        let waited = std::mem::take(&mut port.queue);
        self.select(now);
        waited
    }

    /// Handles an LACP frame. Returns whether the frame was one.
    fn takes(&mut self, now: Time, port: PortNo, frame: &[u8]) -> bool {
        let Ok(pdu) = Lacpdu::parse(frame) else { return false };
        if let Some(port) = self.ports.get_mut(port.index()) {
            port.lacp.receive(now, &pdu);
        }
        self.select(now);
        true
    }

    /// Returns whether a port accepts received frames.
    fn collects(&self, port: PortNo) -> bool {
        self.state(port).is_some_and(|mux| mux >= Mux::Collecting)
    }

    /// Marks the wire of a port as free.
    fn wire_is_free(&mut self, port: PortNo) {
        if let Some(port) = self.ports.get_mut(port.index()) {
            port.busy = false;
        }
    }

    /// Processes the LACP timers that are due.
    fn timeout(&mut self, now: Time) {
        let due = |port: &&mut Port| port.lacp.deadline().is_some_and(|at| at <= now);
        let mut any = false;
        for port in self.ports.iter_mut().filter(due) {
            port.lacp.timeout(now);
            any = true;
        }
        if any {
            self.select(now);
        }
    }

    /// Returns when the next LACP timer is due.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let waits = |port: &&Port| !port.busy;
        self.ports.iter().filter(waits).filter_map(|port| port.lacp.deadline()).min()
    }

    /// Returns whether the stack may send a frame.
    fn has_room(&self) -> bool {
        self.is_up() && self.ports.iter().all(|port| port.queue.len() < QUEUE_FRAMES_MAX)
    }

    /// Returns the number of queued frames.
    pub(crate) fn waiting(&self) -> usize {
        self.ports.iter().map(|port| port.queue.len()).sum()
    }

    /// Queues a frame at the port of its conversation. Returns the frame if no port distributes.
    fn put(&mut self, frame: FrameBuf) -> Option<FrameBuf> {
        let open: Vec<usize> =
            (0..self.ports.len()).filter(|&port| self.ports[port].distributes()).collect();
        let Some(count) = std::num::NonZero::new(open.len()) else { return Some(frame) };
        let port = open[conversation(frame.bytes()) as usize % count];
        self.ports[port].queue.push_back(frame);
        None
    }

    /// Returns the next frame and its port, and whether it is a newly made LACPDU.
    fn next(&mut self, now: Time) -> Option<(PortNo, FrameBuf, bool)> {
        let mac = self.mac;
        for (number, port) in (0..).map(PortNo).zip(&mut self.ports) {
            if port.busy || !port.up {
                continue;
            }
            let pdu = port.lacp.transmit(now).map(|pdu| {
                let mut store = vec![0; FrameBuf::HEADROOM];
                store.extend(pdu.emit(mac));
                FrameBuf::from_vec(store, FrameBuf::HEADROOM)
            });
            let made = pdu.is_some();
            if let Some(frame) = pdu.or_else(|| port.queue.pop_front()) {
                port.busy = true;
                return Some((number, frame, made));
            }
        }
        None
    }

    fn select(&mut self, now: Time) {
        let partner = |port: &Port| port.lacp.partner().and_then(Partner::of);
        let carries = |port: &Port| port.lacp.mux_state() >= Mux::Collecting;
        self.selection.choose(self.ports.iter().map(|port| (partner(port), carries(port))));
        let selection = self.selection;
        for port in &mut self.ports {
            let wanted = selection.takes(partner(port));
            if wanted != port.lacp.is_selected() {
                port.lacp.select(now, wanted);
            }
        }
    }
}

impl Port {
    fn distributes(&self) -> bool {
        self.lacp.mux_state() == Mux::Distributing
    }
}

/// Returns a hash (FNV-1a) of the conversation to which a frame belongs.
fn conversation(frame: &[u8]) -> u32 {
    let mut hash: u32 = 0x811c_9dc5;
    let mut add = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        }
    };
    add(frame.get(..12).unwrap_or_default());
    if let Some((ethertype::IPV4, packet)) = host_frame::contents(frame) {
        add(packet.get(12..20).unwrap_or_default());
        let has_ports = matches!(packet.get(9), Some(6 | 17));
        let is_whole = packet.get(6..8).is_some_and(|bytes| bytes[0] & 0x3f == 0 && bytes[1] == 0);
        if has_ports && is_whole {
            add(packet.get(20..24).unwrap_or_default());
        }
    }
    hash ^ hash >> 16
}
