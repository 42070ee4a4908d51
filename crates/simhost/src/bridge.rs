//! A plain learning bridge: an ordinary switch that connects several hosts to one port.
//!
//! It learns the source of each frame, and forwards a frame to the port where its destination was
//! learned, or to all others. Port 0 is the uplink to the fabric; the other ports have hosts.
//! Frames with reserved addresses (IEEE 802.1Q clause 8.6.3) are not forwarded. Frames are stored
//! and forwarded. The bridge is unaware of Axon.
//!
//! A *private* bridge has protected ports (RFC 5517): hosts cannot reach each other, and a frame
//! for an unknown destination goes to the uplink only.

use axon_node::{Action, Input, Node, Shortcuts};
use axon_wire::{FrameBuf, MacAddr, PortNo, Time};
use std::collections::{BTreeMap, VecDeque};

/// Uplink to the fabric.
pub const UP: PortNo = PortNo(0);
/// Maximum number of frames queued for one wire. Further frames are dropped.
const QUEUE_FRAMES_MAX: usize = 1_000;

/// Learning bridge.
#[derive(Debug, Default)]
pub struct Bridge {
    is_private: bool,
    ports: Vec<Port>,
    learned: BTreeMap<MacAddr, PortNo>,
    /// Frames being received, by the time of their last byte and arrival order.
    held: BTreeMap<(Time, u64), (PortNo, FrameBuf)>,
    count: u64,
}

#[derive(Debug, Default)]
struct Port {
    is_up: bool,
    is_busy: bool,
    queue: VecDeque<FrameBuf>,
}

impl Bridge {
    /// Returns a bridge for `hosts` hosts.
    pub fn new(hosts: usize, is_private: bool) -> Bridge {
        let ports = (0..=hosts).map(|_| Port::default()).collect();
        Bridge { is_private, ports, ..Bridge::default() }
    }

    /// Forwards a complete frame.
    fn relay(&mut self, now: Time, from: PortNo, frame: &FrameBuf, out: &mut Vec<Action>) {
        let bytes = frame.bytes();
        let ends = (MacAddr::destination_of(bytes), MacAddr::source_of(bytes));
        let (Some(to), Some(source)) = ends else { return };
        let is_link_local = to.0[..5] == [1, 0x80, 0xc2, 0, 0] && to.0[5] < 0x10;
        if is_link_local || !source.is_unicast() {
            return;
        }
        self.learned.insert(source, from);
        let known = self.learned.get(&to).copied();
        let flooded = to.is_multicast() || !self.is_private;
        for port in (0..self.ports.len() as u16).map(PortNo) {
            let wanted = match known {
                Some(known) => port == known,
                None => port == UP || flooded,
            };
            let passes = port != from && !(self.is_private && port != UP && from != UP);
            if wanted && passes {
                self.send(now, port, FrameBuf::new(bytes), out);
            }
        }
    }

    fn send(&mut self, now: Time, port: PortNo, frame: FrameBuf, out: &mut Vec<Action>) {
        let Some(state) = self.ports.get_mut(port.index()).filter(|port| port.is_up) else {
            return;
        };
        if state.is_busy {
            if state.queue.len() < QUEUE_FRAMES_MAX {
                state.queue.push_back(frame);
            }
            return;
        }
        state.is_busy = true;
        out.push(Action::Transmit { port, frame, complete_at: now, intact: true });
    }
}

impl Node for Bridge {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        match input {
            Input::Frame { port, frame, complete_at, intact: true } => {
                self.count += 1;
                self.held.insert((complete_at, self.count), (port, frame));
            }
            Input::TxDone { port } => {
                if let Some(state) = self.ports.get_mut(port.index()) {
                    state.is_busy = false;
                    if let Some(frame) = state.queue.pop_front() {
                        self.send(now, port, frame, out);
                    }
                }
            }
            Input::Link { port, up } => {
                if let Some(state) = self.ports.get_mut(port.index()) {
                    *state = Port { is_up: up, ..Port::default() };
                    self.learned.retain(|_, at| *at != port);
                }
            }
            Input::Frame { .. } | Input::Timeout | Input::Command(_) => {}
        }
        while let Some(first) = self.held.first_entry()
            && first.key().0 <= now
        {
            let (from, frame) = first.remove();
            self.relay(now, from, &frame, out);
        }
    }

    fn deadline(&self) -> Option<Time> {
        self.held.first_key_value().map(|((at, _), _)| *at)
    }
}

impl Shortcuts for Bridge {}

#[cfg(test)]
mod tests {
    use super::*;

    fn mac(last: u8) -> MacAddr {
        MacAddr([2, 0, 0, 0, 0, last])
    }

    /// Returns the egress ports of a frame that arrives at `port`.
    fn leaves(bridge: &mut Bridge, port: u16, (from, to): (MacAddr, MacAddr)) -> Vec<u16> {
        let frame = FrameBuf::new(&[&to.0[..], &from.0, &[8, 0], &[0; 46]].concat());
        let (port, complete_at) = (PortNo(port), Time::ZERO);
        let mut out = Vec::new();
        let input = Input::Frame { port, frame, complete_at, intact: true };
        bridge.handle(Time::ZERO, input, &mut out);
        let ports: Vec<u16> = out
            .iter()
            .map(|action| match action {
                Action::Transmit { port, .. } => port.0,
                other => panic!("{other:?}"),
            })
            .collect();
        for &port in &ports {
            let port = PortNo(port);
            bridge.handle(Time::ZERO, Input::TxDone { port }, &mut Vec::new());
        }
        ports
    }

    fn with_carrier(is_private: bool) -> Bridge {
        let mut bridge = Bridge::new(2, is_private);
        for port in (0..3).map(PortNo) {
            bridge.handle(Time::ZERO, Input::Link { port, up: true }, &mut Vec::new());
        }
        bridge
    }

    #[test]
    fn it_floods_what_it_has_not_learned_and_keeps_what_is_for_the_link() {
        let mut bridge = with_carrier(false);
        assert_eq!(leaves(&mut bridge, 1, (mac(1), mac(9))), [0, 2]);
        assert_eq!(leaves(&mut bridge, 0, (mac(9), mac(1))), [1]);
        assert_eq!(leaves(&mut bridge, 1, (mac(1), mac(9))), [0]);
        assert_eq!(leaves(&mut bridge, 2, (mac(2), MacAddr::BROADCAST)), [0, 1]);
        let link = MacAddr([1, 0x80, 0xc2, 0, 0, 0x0e]);
        assert_eq!(leaves(&mut bridge, 0, (mac(9), link)), [0; 0]);
    }

    #[test]
    fn between_protected_ports_nothing_passes() {
        let mut bridge = with_carrier(true);
        assert_eq!(leaves(&mut bridge, 1, (mac(1), MacAddr::BROADCAST)), [0]);
        assert_eq!(leaves(&mut bridge, 2, (mac(2), mac(1))), [0; 0]);
        assert_eq!(leaves(&mut bridge, 0, (mac(9), MacAddr::BROADCAST)), [1, 2]);
        assert_eq!(leaves(&mut bridge, 0, (mac(9), mac(7))), [0; 0]);
    }
}
