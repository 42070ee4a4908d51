//! Data plane of a learning bridge (IEEE 802.1D-2004 clause 7).
//!
//! The bridge learns the source of each frame on a forwarding port. A frame to a known destination
//! goes to that destination's port. Any other frame, including one to a group, is flooded to every
//! other forwarding port. Frames from a port that does not forward are dropped, except those to the
//! bridge itself. Frames to the reserved addresses 01-80-C2-00-00-00 to 0F (clause 7.12.6) are
//! punted on every port and never forwarded.
//!
//! With cut-through, the source is learned and the frame leaves before its FCS is known.

use crate::bridge::fdb::Fdb;
use alloc::vec::Vec;
use axon_node::PortKind;
use axon_node::counters::Counters;
use axon_node::{Action, Drop, Punt};
use axon_plane::ethernet;
use axon_plane::ports::{FrameMeta, Ports, flood};
use axon_wire::{Bytes, FrameBuf, MacAddr, PortNo, Span, Time, mac_control};

/// Size and limits of a bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BridgeConfig {
    /// Number of ports, 0 to `ports - 1`.
    pub ports: u16,
    /// Buffer for each pair of egress port and ingress port, in bytes.
    pub queue_bytes_max: Bytes,
    /// Maximum frame length in bytes, without FCS and tag.
    pub frame_bytes_max: usize,
    /// Ageing time (clause 7.9.2): 300 s by default.
    pub ageing: Span,
    /// Capacity of the filtering database in addresses.
    pub fdb_entries_max: usize,
}

impl BridgeConfig {
    /// Returns the defaults for a bridge with `ports` ports: 1514-byte frames, 128 KiB per buffer,
    /// 300 s of ageing, and 16,384 addresses.
    pub(crate) const fn with_ports(ports: u16) -> BridgeConfig {
        BridgeConfig {
            ports,
            queue_bytes_max: Bytes(128 * 1024),
            frame_bytes_max: 1514,
            ageing: Span::from_secs(300),
            fdb_entries_max: 16_384,
        }
    }
}

/// State of a port (IEEE 802.1D-2004 clause 7.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PortState {
    /// Frames are discarded.
    #[default]
    Discarding,
    /// Sources are learned, and frames are discarded.
    Learning,
    /// Sources are learned, and frames are forwarded.
    Forwarding,
}

/// Data plane of a learning bridge.
#[derive(Clone, Debug)]
pub struct Bridge {
    config: BridgeConfig,
    ports: Ports,
    fdb: Fdb,
    states: Vec<PortState>,
}

impl Bridge {
    /// Creates a bridge with an empty database. All its ports discard frames.
    pub(crate) fn new(config: BridgeConfig) -> Bridge {
        Bridge {
            ports: Ports::new(config.ports, config.queue_bytes_max),
            fdb: Fdb::new(config.fdb_entries_max, config.ageing),
            states: alloc::vec![PortState::default(); usize::from(config.ports)],
            config,
        }
    }

    /// Receives a frame on a port; see [`Input::Frame`](axon_node::Input).
    pub(crate) fn receive(&mut self, now: Time, meta: FrameMeta, out: &mut Vec<Action>) {
        if let Err(reason) = self.ports.receive(now, &meta) {
            return self.ports.discard(meta, reason, out);
        }
        let frame = meta.frame.bytes();
        if let Some(reason) = ethernet::fault(frame, self.config.frame_bytes_max) {
            return self.ports.discard(meta, reason, out);
        }
        let destination = MacAddr::destination_of(frame).unwrap_or_default();
        let source = MacAddr::source_of(frame).unwrap_or_default();
        if destination.is_link_local() {
            if mac_control::is_mac_control(frame) {
                return self.ports.discard(meta, Drop::MacControl, out);
            }
            return self.ports.punt(now, meta, Punt::LinkLocal, out);
        }
        let state = self.state(meta.ingress);
        if state != PortState::Discarding && source.is_unicast() {
            self.fdb.learn(now, source, meta.ingress);
        }
        if state != PortState::Forwarding {
            return self.ports.discard(meta, Drop::Blocked, out);
        }
        let known = self.fdb.port_of(now, destination).filter(|_| destination.is_unicast());
        match known {
            Some(port) if port == meta.ingress => {
                self.ports.discard(meta, Drop::Filtered, out);
            }
            Some(port) if self.state(port) == PortState::Forwarding => {
                self.ports.deliver(now, meta, port, Some(PortKind::Host), out);
            }
            _ => self.flood(now, meta, out),
        }
    }

    /// Sends a copy to every other port that forwards and has carrier. The last copy is the frame
    /// itself.
    fn flood(&mut self, now: Time, meta: FrameMeta, out: &mut Vec<Action>) {
        let ports = (0..self.ports.wires().count()).map(PortNo).filter(|&port| {
            let forwards = self.states[port.index()] == PortState::Forwarding;
            port != meta.ingress && forwards && self.ports.wires().is_up(port)
        });
        let ports: Vec<PortNo> = ports.collect();
        flood(&mut self.ports, now, meta, (&ports, Some(PortKind::Host)), out);
    }

    /// Sends one of the bridge's own frames out of `port`, regardless of the port's state.
    pub(crate) fn send(&mut self, now: Time, port: PortNo, frame: &[u8], out: &mut Vec<Action>) {
        let meta = self.ports.originate(now, FrameBuf::with_headroom(0, frame));
        self.ports.deliver(now, meta, port, None, out);
    }

    /// Sets the state of a port. A frame that is queued there is dropped when it is scheduled if
    /// the port does not forward by then (clause 7.7.3).
    pub(crate) fn set_state(&mut self, port: PortNo, state: PortState) {
        if let Some(current) = self.states.get_mut(port.index()) {
            *current = state;
            // A port kind for which no frames from hosts are queued.
            let forwards = state == PortState::Forwarding;
            let kind = if forwards { PortKind::Host } else { PortKind::Unknown };
            self.ports.set_kind(port, kind);
        }
    }

    /// Removes the addresses learned on a port.
    pub(crate) fn flush(&mut self, port: PortNo) {
        self.fdb.flush(port);
    }

    /// Returns the state of a port.
    pub fn state(&self, port: PortNo) -> PortState {
        self.states.get(port.index()).copied().unwrap_or_default()
    }

    /// Returns the filtering database.
    #[cfg(test)]
    pub(crate) fn fdb(&self) -> &Fdb {
        &self.fdb
    }

    /// Returns the ports of the bridge.
    pub(crate) fn ports(&self) -> &Ports {
        &self.ports
    }

    /// Returns the ports for changes of carrier, `TxDone` and time.
    pub(crate) fn ports_mut(&mut self) -> &mut Ports {
        &mut self.ports
    }

    /// Returns the counters since the start.
    pub fn counters(&self) -> &Counters {
        self.ports.counters()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_wire::FrameBuf;

    const GROUP: MacAddr = MacAddr::BROADCAST;

    fn mac(last: u8) -> MacAddr {
        MacAddr([2, 0, 0, 0, 0, last])
    }

    fn frame(to: MacAddr, from: MacAddr) -> FrameBuf {
        let mut bytes = [0; 60];
        bytes[..6].copy_from_slice(&to.0);
        bytes[6..12].copy_from_slice(&from.0);
        bytes[12] = 8;
        FrameBuf::new(&bytes)
    }

    /// Returns a bridge that has four ports with carrier, all of which except p3 forward.
    fn bridge() -> Bridge {
        let mut bridge = Bridge::new(BridgeConfig::with_ports(4));
        for port in (0..4).map(PortNo) {
            bridge.ports_mut().link(Time::ZERO, port, true, &mut Vec::new());
            bridge.set_state(port, PortState::Forwarding);
        }
        bridge.set_state(PortNo(3), PortState::Discarding);
        bridge
    }

    /// Returns the egress ports and drops of a frame. The wires are free again at once.
    fn fate(bridge: &mut Bridge, port: u16, frame: FrameBuf) -> (Vec<u16>, Vec<Drop>) {
        let mut out = Vec::new();
        let now = Time::ZERO;
        bridge.receive(now, FrameMeta::new(frame, PortNo(port), now, true), &mut out);
        let (mut sent, mut drops) = (Vec::new(), Vec::new());
        for action in out {
            match action {
                Action::Transmit { port, .. } => {
                    sent.push(port.0);
                    bridge.ports_mut().tx_done(now, port, &mut Vec::new());
                }
                Action::Dropped { reason, .. } => drops.push(reason),
                _ => {}
            }
        }
        (sent, drops)
    }

    #[test]
    fn it_floods_until_it_has_learned() {
        let mut bridge = bridge();
        assert_eq!(fate(&mut bridge, 0, frame(mac(2), mac(1))), (vec(&[1, 2]), Vec::new()));
        assert_eq!(fate(&mut bridge, 2, frame(mac(1), mac(2))), (vec(&[0]), Vec::new()));
        assert_eq!(fate(&mut bridge, 0, frame(mac(2), mac(1))), (vec(&[2]), Vec::new()));
        assert_eq!(fate(&mut bridge, 0, frame(GROUP, mac(1))), (vec(&[1, 2]), Vec::new()));
        assert_eq!(
            fate(&mut bridge, 2, frame(mac(2), mac(9))),
            (Vec::new(), [Drop::Filtered].into())
        );
        bridge.flush(PortNo(2));
        assert_eq!(fate(&mut bridge, 0, frame(mac(2), mac(1))).0, [1, 2]);
        let total = bridge.counters().total();
        assert_eq!((total.rx_frames, total.copies, total.tx_frames), (6, 3, 8));
    }

    #[test]
    fn a_port_that_does_not_forward_passes_nothing_in_or_out() {
        let mut bridge = bridge();
        let blocked = (Vec::new(), Vec::from([Drop::Blocked]));
        assert_eq!(fate(&mut bridge, 3, frame(GROUP, mac(4))), blocked);
        assert!(bridge.fdb().is_empty());
        bridge.set_state(PortNo(3), PortState::Learning);
        assert_eq!(fate(&mut bridge, 3, frame(GROUP, mac(4))), blocked);
        assert_eq!(bridge.fdb().len(), 1);
        assert_eq!(
            fate(&mut bridge, 0, frame(mac(4), mac(1))).0,
            [1, 2],
            "flooded, not sent there"
        );
    }

    #[test]
    fn reserved_addresses_are_punted_on_any_port_and_never_forwarded() {
        let mut bridge = bridge();
        for (last, punts) in [(0x00, 1), (0x0e, 1), (0x0f, 1), (0x10, 0)] {
            let to = MacAddr([1, 0x80, 0xc2, 0, 0, last]);
            let mut out = Vec::new();
            let meta = FrameMeta::new(frame(to, mac(1)), PortNo(3), Time::ZERO, true);
            bridge.receive(Time::ZERO, meta, &mut out);
            let punted = out.iter().filter(|action| matches!(action, Action::Punt { .. }));
            assert_eq!(punted.count(), punts, "{to}");
        }
    }

    #[test]
    fn a_frame_that_waits_at_a_port_that_stops_forwarding_is_dropped() {
        let mut bridge = bridge();
        let mut out = Vec::new();
        for _ in 0..2 {
            let meta = FrameMeta::new(frame(GROUP, mac(1)), PortNo(0), Time::ZERO, true);
            bridge.receive(Time::ZERO, meta, &mut out);
        }
        bridge.set_state(PortNo(1), PortState::Discarding);
        out.clear();
        bridge.ports_mut().tx_done(Time::ZERO, PortNo(1), &mut out);
        assert!(matches!(out[..], [Action::Dropped { reason: Drop::KindChanged, .. }]), "{out:?}");
    }

    fn vec(ports: &[u16]) -> Vec<u16> {
        ports.to_vec()
    }
}
