//! Switch with static tables, which contain all shortest paths to every host. The hash of a flow
//! selects one of them (equal-cost multipath; RFC 2992 calls the method hash-threshold).
//!
//! A frame for a known host goes to one of the ports on a shortest path, which is the same for all
//! frames of a flow. Ports without carrier are skipped. A frame for a group is flooded along a
//! fixed spanning tree. Nothing is learned or recomputed, so remote failures go unnoticed.

use alloc::sync::Arc;
use alloc::vec::Vec;
use axon_node::{Action, Drop};
use axon_plane::ethernet;
use axon_plane::flow_hash::{choose, flow_hash};
use axon_plane::ports::{FrameMeta, Ports, flood};
use axon_plane::routes::MacMap;
use axon_wire::{Bytes, MacAddr, PortNo, Time, mac_control};

/// Locations of all hosts in the network, shared by all switches.
pub type Places = MacMap<Place>;

/// Location of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Number of the switch that the host is attached to.
    pub switch: u32,
    /// Port of that switch to which the host is attached.
    pub port: PortNo,
}

/// Configuration of one switch.
#[derive(Clone, Debug)]
pub struct MultipathConfig {
    /// Number of ports, 0 to `ports - 1`.
    pub ports: u16,
    /// Buffer for each pair of egress port and ingress port, in bytes.
    pub queue_bytes_max: Bytes,
    /// Maximum frame length in bytes, without FCS and tag.
    pub frame_bytes_max: usize,
    /// Number of this switch.
    pub switch: u32,
    /// Locations of all hosts.
    pub places: Arc<Places>,
    /// Distinct sets of ports, to which `routes` refers by index.
    pub sets: Vec<Vec<PortNo>>,
    /// Index of the set of ports on a shortest path to each switch, by switch number.
    pub routes: Vec<u16>,
    /// Ports for group frames: host ports, and the links of the tree.
    pub tree: Vec<PortNo>,
    /// Seed of the flow hash, which differs from those of the neighbours.
    pub seed: u64,
}

/// Data plane of one switch.
#[derive(Clone, Debug)]
pub struct Multipath {
    config: MultipathConfig,
    ports: Ports,
}

impl Multipath {
    /// Creates a switch whose ports have no carrier.
    pub(crate) fn new(config: MultipathConfig) -> Multipath {
        Multipath { ports: Ports::new(config.ports, config.queue_bytes_max), config }
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
        if destination.is_link_local() {
            let control = mac_control::is_mac_control(frame);
            let reason = if control { Drop::MacControl } else { Drop::Broadcast };
            return self.ports.discard(meta, reason, out);
        }
        if destination.is_multicast() {
            return self.flood(now, meta, out);
        }
        match self.egress(destination, frame) {
            Some(port) => self.ports.deliver(now, meta, port, None, out),
            None => self.ports.discard(meta, Drop::NoRoute, out),
        }
    }

    fn egress(&self, destination: MacAddr, frame: &[u8]) -> Option<PortNo> {
        let place = self.config.places.get(&destination)?;
        if place.switch == self.config.switch {
            return Some(place.port);
        }
        let set = *self.config.routes.get(place.switch as usize)?;
        let ports = self.config.sets.get(usize::from(set))?;
        choose(flow_hash(self.config.seed, frame), ports, |port| self.ports.wires().is_up(port))
    }

    /// Floods a frame along the tree, to every port except its ingress. A frame from a port outside
    /// the tree is dropped, because it would arrive twice.
    fn flood(&mut self, now: Time, meta: FrameMeta, out: &mut Vec<Action>) {
        let tree = &self.config.tree;
        if !tree.contains(&meta.ingress) {
            return self.ports.discard(meta, Drop::Blocked, out);
        }
        let usable = |&port: &PortNo| port != meta.ingress && self.ports.wires().is_up(port);
        let ports: Vec<PortNo> = tree.iter().copied().filter(usable).collect();
        flood(&mut self.ports, now, meta, (&ports, None), out);
    }

    /// Returns the ports of the switch.
    pub(crate) fn ports(&self) -> &Ports {
        &self.ports
    }

    /// Returns the ports for changes of carrier, `TxDone` and time.
    pub(crate) fn ports_mut(&mut self) -> &mut Ports {
        &mut self.ports
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_wire::FrameBuf;

    fn mac(last: u8) -> MacAddr {
        MacAddr([2, 0, 0, 0, 0, last])
    }

    /// Returns switch 0, with h1 on p0 and two paths to switch 1, to which h2 is attached.
    fn switch() -> Multipath {
        let place = |switch, port| Place { switch, port: PortNo(port) };
        let places = [(mac(1), place(0, 0)), (mac(2), place(1, 0))].into_iter().collect();
        let mut switch = Multipath::new(MultipathConfig {
            ports: 4,
            queue_bytes_max: Bytes(1 << 17),
            frame_bytes_max: 1514,
            switch: 0,
            places: Arc::new(places),
            sets: Vec::from([Vec::new(), Vec::from([PortNo(1), PortNo(2)])]),
            routes: Vec::from([0, 1]),
            tree: Vec::from([PortNo(0), PortNo(1), PortNo(3)]),
            seed: 1,
        });
        for port in 0..4 {
            switch.ports_mut().link(Time::ZERO, PortNo(port), true, &mut Vec::new());
        }
        switch
    }

    /// Returns the egress ports of a frame, and the reason if the frame was dropped.
    fn fate(
        switch: &mut Multipath,
        ingress: u16,
        to: MacAddr,
        flow: u8,
    ) -> (Vec<u16>, Option<Drop>) {
        let mut bytes = [0; 60];
        bytes[..6].copy_from_slice(&to.0);
        bytes[11] = flow;
        let (now, mut out) = (Time::ZERO, Vec::new());
        let meta = FrameMeta::new(FrameBuf::new(&bytes), PortNo(ingress), now, true);
        switch.receive(now, meta, &mut out);
        let (mut sent, mut dropped) = (Vec::new(), None);
        for action in out {
            match action {
                Action::Transmit { port, .. } => {
                    sent.push(port.0);
                    switch.ports_mut().tx_done(now, port, &mut Vec::new());
                }
                Action::Dropped { reason, .. } => dropped = Some(reason),
                _ => {}
            }
        }
        (sent, dropped)
    }

    #[test]
    fn all_shortest_paths_are_used_and_dead_ones_passed_over() {
        let mut switch = switch();
        let mut used = [0; 4];
        for flow in 0..=255 {
            let (sent, _) = fate(&mut switch, 0, mac(2), flow);
            assert_eq!(sent, fate(&mut switch, 0, mac(2), flow).0, "a flow keeps its path");
            used[usize::from(sent[0])] += 1;
        }
        assert!(used[1] > 90 && used[2] > 90 && used[1] + used[2] == 256, "{used:?}");
        switch.ports_mut().link(Time::ZERO, PortNo(1), false, &mut Vec::new());
        assert!((0..=255).all(|flow| fate(&mut switch, 0, mac(2), flow).0 == [2]));
        switch.ports_mut().link(Time::ZERO, PortNo(2), false, &mut Vec::new());
        assert_eq!(fate(&mut switch, 0, mac(2), 1), (Vec::new(), Some(Drop::NoRoute)));
    }

    #[test]
    fn groups_go_along_the_tree_and_strangers_nowhere() {
        let mut switch = switch();
        assert_eq!(fate(&mut switch, 0, MacAddr::BROADCAST, 1), (Vec::from([1, 3]), None));
        assert_eq!(fate(&mut switch, 2, MacAddr::BROADCAST, 1).1, Some(Drop::Blocked));
        assert_eq!(fate(&mut switch, 1, mac(1), 1), (Vec::from([0]), None));
        assert_eq!(fate(&mut switch, 0, mac(9), 1).1, Some(Drop::NoRoute));
        let reserved = MacAddr([1, 0x80, 0xc2, 0, 0, 0]);
        assert_eq!(fate(&mut switch, 0, reserved, 1).1, Some(Drop::Broadcast));
    }
}
