//! PortLand's data plane (Niranjan Mysore et al., SIGCOMM 2009, §3): forwarding by hierarchical
//! pseudo MAC addresses.
//!
//! An edge switch assigns each of its hosts a *pseudo MAC* (PMAC) that encodes its location: pod,
//! position of the edge switch in the pod, port, and a number on that port. A frame from a host
//! gets that host's PMAC as its source. Its destination is also a PMAC, because other hosts know
//! only PMACs. Every switch matches the *location* in the destination (pod and position), never the
//! whole address. The longest match among location, pod and default selects the ports, and the hash
//! of the flow selects one of them. The edge switch at the location restores the host's own address
//! (AMAC).
//!
//! ARP and unmatched frames go to the control plane. Control frames (with EtherType [`PORTLAND`])
//! also travel in the network. They go up the tree that the control plane maintains towards the
//! fabric manager, back down along the path that was learned on their way up, or to all switches
//! down the whole tree.
//!
//! Here, [`PortKind::Axon`] stands for a port to any other switch or to the fabric manager.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_node::PortKind;
use axon_node::{Action, Drop, Punt};
use axon_plane::ethernet;
use axon_plane::flow_hash::{choose, flow_hash};
use axon_plane::ports::{FrameMeta, Ports, copy};
use axon_plane::routes::MacMap;
use axon_wire::constants::ethertype::{ARP, PORTLAND};
use axon_wire::{Bytes, FrameBuf, MacAddr, PortNo, Time, mac_control};

/// Locally administered group address to which all switches listen.
pub(crate) const ALL_SWITCHES: MacAddr = MacAddr([0x03, b'p', b'l', 0, 0, 1]);

/// Size and limits of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortLandConfig {
    /// Number of ports, 0 to `ports - 1`.
    pub ports: u16,
    /// Buffer for each pair of egress port and ingress port, in bytes.
    pub queue_bytes_max: Bytes,
    /// Maximum frame length in bytes, without FCS and tag.
    pub frame_bytes_max: usize,
    /// MAC address of the switch.
    pub mac: MacAddr,
    /// Seed of the flow hash, which differs from those of the neighbours.
    pub seed: u64,
}

/// Location of an edge switch, which is the first half of a PMAC.
///
/// In the paper, a PMAC consists of pod (16 bits), position (8), port (8) and number (16). Here the
/// first octet must also mark a locally administered unicast address (IEEE 802 clause 8.2), so a
/// pod has 13 bits: five in the first octet, above 110, and eight in the second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    /// Pod, 0 to `Location::PODS` - 1.
    pub pod: u16,
    /// Position of the edge switch within the pod.
    pub position: u8,
}

impl Location {
    /// Number of pods that a PMAC can distinguish.
    pub(crate) const PODS: u16 = 1 << 13;

    /// Returns the PMAC of a host at this location.
    pub const fn pmac(self, port: u8, number: u16) -> MacAddr {
        let first = ((self.pod >> 8) as u8) << 3 | 0b110;
        let [high, low] = number.to_be_bytes();
        MacAddr([first, self.pod as u8, self.position, port, high, low])
    }

    /// Returns the location of the host with this PMAC, or `None` if the address is no PMAC.
    pub const fn of(pmac: MacAddr) -> Option<Location> {
        let [first, second, position, ..] = pmac.0;
        if first & 0b111 != 0b110 {
            return None;
        }
        Some(Location { pod: (first as u16 >> 3) << 8 | second as u16, position })
    }
}

/// Ports towards each location, by longest match. A match without ports means that the location is
/// unreachable. No match means that there is no route.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routes {
    /// Ports for one location.
    pub exact: BTreeMap<Location, Vec<PortNo>>,
    /// Ports for a whole pod.
    pub pods: BTreeMap<u16, Vec<PortNo>>,
    /// Ports for all other locations, if there is a rule for them.
    pub default: Option<Vec<PortNo>>,
}

impl Routes {
    /// Returns the ports for `location`.
    pub(crate) fn ports_towards(&self, location: Location) -> Option<&Vec<PortNo>> {
        let exact = self.exact.get(&location);
        exact.or_else(|| self.pods.get(&location.pod)).or(self.default.as_ref())
    }
}

/// Data plane of a PortLand switch.
#[derive(Clone, Debug)]
pub struct PortLand {
    config: PortLandConfig,
    ports: Ports,
    /// Location of an edge switch, once assigned.
    location: Option<Location>,
    /// Hosts on this switch, by AMAC and by PMAC.
    by_amac: MacMap<(PortNo, MacAddr)>,
    by_pmac: MacMap<(PortNo, MacAddr)>,
    /// The switch's own rules, and the routes sent by the fabric manager.
    rules: Routes,
    sent: BTreeMap<Location, Vec<PortNo>>,
    /// Port towards the fabric manager, and the manager's address.
    up: Option<(PortNo, MacAddr)>,
    /// Ports to switches that reach the fabric manager via this one.
    children: Vec<PortNo>,
    /// Last ingress port of control frames from each switch.
    relays: MacMap<PortNo>,
}

impl PortLand {
    /// Creates a switch whose ports have no known kind and no carrier.
    pub(crate) fn new(config: PortLandConfig) -> PortLand {
        PortLand {
            ports: Ports::new(config.ports, config.queue_bytes_max),
            location: None,
            by_amac: MacMap::default(),
            by_pmac: MacMap::default(),
            rules: Routes::default(),
            sent: BTreeMap::new(),
            up: None,
            children: Vec::new(),
            relays: MacMap::default(),
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
        let ethertype = u16::from_be_bytes([frame[12], frame[13]]);
        if destination.is_link_local() {
            let reason = match ethertype {
                PORTLAND => return self.ports.punt(now, meta, Punt::LinkLocal, out),
                mac_control::ETHERTYPE => Drop::MacControl,
                _ => Drop::Broadcast,
            };
            return self.ports.discard(meta, reason, out);
        }
        match self.ports.wires().kind(meta.ingress) {
            Some(PortKind::Axon) if ethertype == PORTLAND => self.relay(now, meta, out),
            Some(PortKind::Axon) if destination.is_multicast() => {
                self.ports.discard(meta, Drop::Broadcast, out);
            }
            Some(PortKind::Axon) => self.forward(now, meta, out),
            Some(PortKind::Host) if ethertype == PORTLAND => {
                self.ports.discard(meta, Drop::Refused, out);
            }
            Some(PortKind::Host) => self.host_ingress(now, meta, ethertype, out),
            Some(PortKind::Unknown) | None => self.ports.discard(meta, Drop::PortUnknown, out),
        }
    }

    /// Handles a frame from a host, and replaces its source by the host's PMAC. ARP, and frames
    /// from a host that is not known on this port, are punted.
    fn host_ingress(
        &mut self,
        now: Time,
        mut meta: FrameMeta,
        ethertype: u16,
        out: &mut Vec<Action>,
    ) {
        let source = MacAddr::source_of(meta.frame.bytes()).unwrap_or_default();
        let destination = MacAddr::destination_of(meta.frame.bytes()).unwrap_or_default();
        let known = self.by_amac.get(&source).filter(|(port, _)| *port == meta.ingress);
        match known {
            _ if ethertype == ARP => self.ports.punt(now, meta, Punt::Miss, out),
            None => self.ports.punt(now, meta, Punt::Miss, out),
            Some(_) if destination.is_multicast() => {
                self.ports.discard(meta, Drop::Broadcast, out);
            }
            Some(&(_, pmac)) => {
                meta.frame.bytes_mut()[6..12].copy_from_slice(&pmac.0);
                self.forward(now, meta, out);
            }
        }
    }

    /// Forwards a frame between PMACs. A frame without a route is punted as [`Punt::Miss`], and a
    /// frame to a host that has left is punted as [`Punt::Error`].
    pub fn forward(&mut self, now: Time, mut meta: FrameMeta, out: &mut Vec<Action>) {
        let destination = MacAddr::destination_of(meta.frame.bytes()).unwrap_or_default();
        let Some(location) = Location::of(destination) else {
            return self.ports.discard(meta, Drop::NoRoute, out);
        };
        if self.location == Some(location) {
            let Some(&(port, amac)) = self.by_pmac.get(&destination) else {
                return self.ports.punt(now, meta, Punt::Error, out);
            };
            meta.frame.bytes_mut()[..6].copy_from_slice(&amac.0);
            return self.ports.deliver(now, meta, port, Some(PortKind::Host), out);
        }
        let Some(ports) = self.sent.get(&location).or_else(|| self.rules.ports_towards(location))
        else {
            return self.ports.punt(now, meta, Punt::Miss, out);
        };
        let hash = flow_hash(self.config.seed, meta.frame.bytes());
        match choose(hash, ports, |port| self.ports.wires().is_up(port)) {
            Some(port) => self.ports.deliver(now, meta, port, Some(PortKind::Axon), out),
            None => self.ports.discard(meta, Drop::NoRoute, out),
        }
    }

    /// Forwards a control frame from another switch to this switch, up, down, or to all.
    fn relay(&mut self, now: Time, meta: FrameMeta, out: &mut Vec<Action>) {
        let frame = meta.frame.bytes();
        let destination = MacAddr::destination_of(frame).unwrap_or_default();
        let source = MacAddr::source_of(frame).unwrap_or_default();
        if destination == self.config.mac {
            return self.ports.punt(now, meta, Punt::Addressed, out);
        }
        if destination == ALL_SWITCHES {
            if self.up.is_none_or(|(port, _)| port != meta.ingress) {
                return self.ports.discard(meta, Drop::Blocked, out);
            }
            for port in self.children.clone() {
                let copy = copy(&mut self.ports, &meta);
                self.ports.deliver(now, copy, port, Some(PortKind::Axon), out);
            }
            return self.ports.punt(now, meta, Punt::Addressed, out);
        }
        let port = match self.up {
            Some((port, manager)) if destination == manager => {
                self.relays.insert(source, meta.ingress);
                Some(port)
            }
            _ => self.relays.get(&destination).copied(),
        };
        match port {
            Some(port) if port != meta.ingress => {
                self.ports.deliver(now, meta, port, Some(PortKind::Axon), out);
            }
            _ => self.ports.discard(meta, Drop::NoRoute, out),
        }
    }

    /// Sends one of the switch's own frames out of `port` if the port is of this `kind`, or in any
    /// case for `None`.
    pub(crate) fn send(
        &mut self,
        now: Time,
        port: PortNo,
        frame: &[u8],
        kind: Option<PortKind>,
        out: &mut Vec<Action>,
    ) {
        let meta = self.ports.originate(now, FrameBuf::with_headroom(0, frame));
        self.ports.deliver(now, meta, port, kind, out);
    }

    /// Sends a frame to a PMAC. The frame is the switch's own, or was queued.
    pub(crate) fn send_on(&mut self, now: Time, frame: FrameBuf, out: &mut Vec<Action>) {
        let meta = self.ports.originate(now, frame);
        self.forward(now, meta, out);
    }

    /// Sets the location of this edge switch.
    pub(crate) fn set_location(&mut self, location: Option<Location>) {
        self.location = location;
    }

    /// Returns the location of this edge switch.
    pub fn location(&self) -> Option<Location> {
        self.location
    }

    /// Records a host on `port` with these two addresses. Earlier entries with either are removed.
    pub(crate) fn set_host(&mut self, port: PortNo, amac: MacAddr, pmac: MacAddr) {
        self.remove_host(amac);
        self.by_amac.insert(amac, (port, pmac));
        self.by_pmac.insert(pmac, (port, amac));
    }

    /// Removes a host.
    pub(crate) fn remove_host(&mut self, amac: MacAddr) {
        if let Some((_, pmac)) = self.by_amac.remove(&amac) {
            self.by_pmac.remove(&pmac);
        }
    }

    /// Sets the switch's own rules.
    pub(crate) fn set_rules(&mut self, rules: Routes) {
        self.rules = rules;
    }

    /// Sets the ports towards one location, as sent by the fabric manager. They take precedence
    /// over the rules.
    pub(crate) fn set_location_ports(&mut self, location: Location, ports: Vec<PortNo>) {
        self.sent.insert(location, ports);
    }

    /// Removes all routes that the fabric manager has sent.
    pub(crate) fn forget_location_ports(&mut self) {
        self.sent.clear();
    }

    /// Returns the ports that lead to `location` according to the rules and the routes.
    pub fn ports_towards(&self, location: Location) -> Option<&Vec<PortNo>> {
        self.sent.get(&location).or_else(|| self.rules.ports_towards(location))
    }

    /// Sets the tree for control frames: the port up to the fabric manager, the manager's address,
    /// and the ports down.
    pub(crate) fn set_tree(&mut self, up: Option<(PortNo, MacAddr)>, children: Vec<PortNo>) {
        self.up = up;
        self.children = children;
    }

    /// Returns the ports of the switch.
    pub(crate) fn ports(&self) -> &Ports {
        &self.ports
    }

    /// Returns the ports for changes of carrier, kind, `TxDone` and time.
    pub(crate) fn ports_mut(&mut self) -> &mut Ports {
        &mut self.ports
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_wire::FrameBuf;

    /// Frames sent (port, destination, source), punts and drops.
    type Outcome = (Vec<(u16, MacAddr, MacAddr)>, Vec<Punt>, Vec<Drop>);

    const HERE: Location = Location { pod: 300, position: 7 };
    const THERE: Location = Location { pod: 8191, position: 255 };
    const AMAC: MacAddr = MacAddr([0x02, 0, 0, 0, 0, 1]);
    const OWN: MacAddr = MacAddr([0x02, 0x73, 0, 0, 0, 1]);
    const MANAGER: MacAddr = MacAddr([0x02, 0x63, 0, 0, 0, 1]);
    const OTHER: MacAddr = MacAddr([0x02, 0x73, 0, 0, 0, 9]);

    /// Returns an edge switch with a host on p0, other switches on p1 (up), p2 and p3, and p4
    /// unknown.
    fn edge() -> PortLand {
        let mut plane = PortLand::new(PortLandConfig {
            ports: 5,
            queue_bytes_max: Bytes(1 << 17),
            frame_bytes_max: 1514,
            mac: OWN,
            seed: 1,
        });
        for port in (0..5).map(PortNo) {
            plane.ports_mut().link(Time::ZERO, port, true, &mut Vec::new());
            let kind = match port.0 {
                0 => PortKind::Host,
                4 => PortKind::Unknown,
                _ => PortKind::Axon,
            };
            plane.ports_mut().set_kind(port, kind);
        }
        plane.set_location(Some(HERE));
        plane.set_host(PortNo(0), AMAC, HERE.pmac(0, 1));
        plane.set_tree(Some((PortNo(1), MANAGER)), Vec::from([PortNo(2), PortNo(3)]));
        plane
    }

    /// Returns the egress ports of a frame with the frame's addresses, the punts, and the drops.
    fn fate(
        plane: &mut PortLand,
        ingress: u16,
        to: MacAddr,
        from: MacAddr,
        ethertype: u16,
    ) -> Outcome {
        let mut bytes = [0; 60];
        bytes[..6].copy_from_slice(&to.0);
        bytes[6..12].copy_from_slice(&from.0);
        bytes[12..14].copy_from_slice(&ethertype.to_be_bytes());
        let (now, mut out) = (Time::ZERO, Vec::new());
        let meta = FrameMeta::new(FrameBuf::new(&bytes), PortNo(ingress), now, true);
        plane.receive(now, meta, &mut out);
        let (mut sent, mut punts, mut drops) = (Vec::new(), Vec::new(), Vec::new());
        for action in out {
            match action {
                Action::Transmit { port, frame, .. } => {
                    let bytes = frame.bytes();
                    let destination = MacAddr::destination_of(bytes).unwrap();
                    sent.push((port.0, destination, MacAddr::source_of(bytes).unwrap()));
                    plane.ports_mut().tx_done(now, port, &mut Vec::new());
                }
                Action::Punt { punt, .. } => punts.push(punt),
                Action::Dropped { reason, .. } => drops.push(reason),
                Action::Note(_) => {}
                other => panic!("{other:?}"),
            }
        }
        (sent, punts, drops)
    }

    #[test]
    fn a_pmac_says_where_and_is_an_address_of_one_station() {
        for location in [Location::default(), HERE, THERE] {
            let pmac = location.pmac(255, u16::MAX);
            assert!(pmac.is_unicast() && pmac.0[0] & 2 != 0, "{pmac}");
            assert_eq!(Location::of(pmac), Some(location));
        }
        assert_eq!(Location::of(AMAC), None);
        assert_eq!(Location::of(MacAddr::BROADCAST), None);
    }

    #[test]
    fn sources_become_pmacs_on_the_way_in_and_destinations_amacs_on_the_way_out() {
        let mut plane = edge();
        let (mine, theirs) = (HERE.pmac(0, 1), THERE.pmac(3, 1));
        plane.set_location_ports(THERE, Vec::from([PortNo(2)]));
        assert_eq!(fate(&mut plane, 0, theirs, AMAC, 0x0800).0, [(2, theirs, mine)]);
        assert_eq!(fate(&mut plane, 2, mine, theirs, 0x0800).0, [(0, AMAC, theirs)]);
        assert_eq!(fate(&mut plane, 2, HERE.pmac(0, 2), theirs, 0x0800).1, [Punt::Error]);
        assert_eq!(fate(&mut plane, 0, theirs, OTHER, 0x0800).1, [Punt::Miss], "a new host");
        assert_eq!(fate(&mut plane, 0, MacAddr::BROADCAST, AMAC, ARP).1, [Punt::Miss]);
        assert_eq!(fate(&mut plane, 0, MacAddr::BROADCAST, AMAC, 0x0800).2, [Drop::Broadcast]);
        assert_eq!(fate(&mut plane, 4, mine, theirs, 0x0800).2, [Drop::PortUnknown]);
        plane.remove_host(AMAC);
        assert_eq!(fate(&mut plane, 2, mine, theirs, 0x0800).1, [Punt::Error]);
    }

    #[test]
    fn the_longest_match_counts_and_no_ports_is_no_way() {
        let mut plane = edge();
        let (from, to) = (Location { pod: 1, position: 1 }.pmac(0, 1), THERE.pmac(0, 1));
        assert_eq!(fate(&mut plane, 1, to, from, 0x0800).1, [Punt::Miss], "nothing is known");
        let mut rules = Routes { default: Some(Vec::from([PortNo(1)])), ..Routes::default() };
        plane.set_rules(rules.clone());
        assert_eq!(fate(&mut plane, 1, to, from, 0x0800).0[0].0, 1);
        rules.pods.insert(THERE.pod, Vec::from([PortNo(2)]));
        plane.set_rules(rules.clone());
        assert_eq!(fate(&mut plane, 1, to, from, 0x0800).0[0].0, 2);
        rules.exact.insert(THERE, Vec::from([PortNo(3)]));
        plane.set_rules(rules);
        assert_eq!(fate(&mut plane, 1, to, from, 0x0800).0[0].0, 3);
        plane.set_location_ports(THERE, Vec::new());
        assert_eq!(fate(&mut plane, 1, to, from, 0x0800).2, [Drop::NoRoute]);
        plane.forget_location_ports();
        assert_eq!(fate(&mut plane, 1, to, from, 0x0800).0[0].0, 3);
        assert_eq!(fate(&mut plane, 1, OTHER, from, 0x0800).2, [Drop::NoRoute], "no PMAC");
    }

    #[test]
    fn control_frames_go_up_down_by_what_they_taught_and_to_all() {
        let mut plane = edge();
        assert_eq!(fate(&mut plane, 1, OTHER, MANAGER, PORTLAND).2, [Drop::NoRoute]);
        assert_eq!(fate(&mut plane, 3, MANAGER, OTHER, PORTLAND).0, [(1, MANAGER, OTHER)]);
        assert_eq!(fate(&mut plane, 1, OTHER, MANAGER, PORTLAND).0, [(3, OTHER, MANAGER)]);
        assert_eq!(fate(&mut plane, 1, OWN, MANAGER, PORTLAND).1, [Punt::Addressed]);
        let (sent, punts, _) = fate(&mut plane, 1, ALL_SWITCHES, MANAGER, PORTLAND);
        assert_eq!(sent.iter().map(|sent| sent.0).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(punts, [Punt::Addressed]);
        assert_eq!(fate(&mut plane, 2, ALL_SWITCHES, MANAGER, PORTLAND).2, [Drop::Blocked]);
        assert_eq!(fate(&mut plane, 0, MANAGER, AMAC, PORTLAND).2, [Drop::Refused], "a host");
        let link = axon_wire::link::DESTINATION;
        assert_eq!(fate(&mut plane, 4, link, OTHER, PORTLAND).1, [Punt::LinkLocal]);
        assert_eq!(fate(&mut plane, 4, link, OTHER, 0x88cc).2, [Drop::Broadcast]);
    }
}
