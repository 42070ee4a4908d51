//! Location discovery (paper §3.4): the neighbour on each port, the level of this switch, and the
//! port towards the fabric manager.
//!
//! Every port sends its identity and state at regular intervals. A port that receives no such
//! message for three intervals is a host port. A switch is at the edge if it has hosts, or has
//! neighbours on at most half its ports. A switch with neighbours at the edge is an aggregation
//! switch, and one that has only aggregation switches as neighbours is core. The level is
//! permanent. An aggregation switch is in the pod of the edge switches below it.
//!
//! Location discovery messages also carry the distance to the fabric manager. A switch selects the
//! nearest neighbour whose path does not lead through this switch. A distance above the maximum
//! means unreachable, so that a stale distance in a cycle dies out. This forms the tree along which
//! control frames travel, which the paper does not specify.
//!
//! There is one difference from the paper. The fabric manager assigns positions together with the
//! pod, and the edge switches of a pod do not agree on them among themselves.

use super::message::{Ldm, Level, Way};
use super::rules::Neighbour;
use crate::portland::plane::Location;
use alloc::vec::Vec;
use axon_node::PortKind;
use axon_wire::{MacAddr, PortNo, Span, Time};

/// Number of intervals without a message after which a port is a host port.
const HOST_INTERVALS: u64 = 3;
/// Number of intervals without a message after which a neighbour is lost (in the paper, 50 ms with
/// intervals of 10 ms).
const LOST_INTERVALS: u64 = 5;
/// Maximum number of links on a path to the fabric manager.
const DISTANCE_MAX: u16 = 256;
/// Delay between a change and the messages about it, so that several changes share a message.
const TELL: Span = Span::from_millis(1);

/// State of one port.
#[derive(Clone, Debug, Default)]
struct Port {
    up: bool,
    kind: PortKind,
    /// Time at which the port got carrier.
    since: Time,
    /// Neighbour, its last message, and the time at which that message was received.
    received: Option<(MacAddr, Ldm, Time)>,
}

/// Location discovery in one switch, or in the fabric manager.
#[derive(Clone, Debug)]
pub(super) struct Ldp {
    mac: MacAddr,
    interval: Span,
    ports: Vec<Port>,
    level: Level,
    location: Option<Location>,
    /// Path from this switch to the manager, and its first port.
    way: Option<Way>,
    parent: Option<PortNo>,
    /// Time at which messages are next due on all ports.
    next: Time,
    /// Last content that was sent, without the port.
    sent: (Level, Option<u16>, Option<Way>, Option<PortNo>),
    /// Version, which increases with every change that the manager should know of: neighbours,
    /// level, location, path.
    version: u64,
    /// True if the switch's own rules or tree may have changed.
    changed: bool,
}

impl Ldp {
    pub(crate) fn new(mac: MacAddr, ports: u16, interval: Span) -> Ldp {
        Ldp {
            mac,
            interval,
            ports: alloc::vec![Port::default(); usize::from(ports)],
            level: Level::Unknown,
            location: None,
            way: None,
            parent: None,
            next: Time::MAX,
            sent: (Level::Unknown, None, None, None),
            version: 0,
            changed: false,
        }
    }

    /// Makes this node the fabric manager, to which all paths lead.
    pub(crate) fn be_manager(&mut self, incarnation: u32) {
        self.level = Level::Manager;
        self.way = Some(Way {
            manager: self.mac,
            incarnation,
            fat_tree: false,
            distance: 0,
            path: incarnation,
        });
    }

    /// Advertises to all neighbours that the network is a fat tree.
    pub(crate) fn set_fat_tree(&mut self, now: Time) {
        if let Some(way) = self.way.as_mut().filter(|way| !way.fat_tree) {
            way.fat_tree = true;
            self.schedule_messages(now);
        }
    }

    pub(crate) fn link(&mut self, now: Time, port: PortNo, up: bool) {
        let Some(state) = self.ports.get_mut(port.index()) else {
            return;
        };
        let known = state.received.is_some();
        *state = Port { up, since: now, ..Port::default() };
        self.version += u64::from(known);
        self.changed = true;
        self.update(now);
        if up {
            self.next = now;
        }
    }

    pub(crate) fn receive(&mut self, now: Time, port: PortNo, from: MacAddr, ldm: Ldm) {
        let Some(state) = self.ports.get_mut(port.index()).filter(|state| state.up) else {
            return;
        };
        let before = state.received.replace((from, ldm, now));
        state.kind = PortKind::Axon;
        let same = before.is_some_and(|(mac, old, _)| (mac, old) == (from, ldm));
        if !same {
            let known = before.map(|(mac, old, _)| (mac, old.port));
            if known != Some((from, ldm.port)) {
                self.version += 1;
            }
            self.changed = true;
            self.update(now);
        }
    }

    pub(crate) fn timeout(&mut self, now: Time) {
        let (host, lost) = (self.interval * HOST_INTERVALS, self.interval * LOST_INTERVALS);
        let mut changed = false;
        for port in self.ports.iter_mut().filter(|port| port.up) {
            let silent = port.kind == PortKind::Unknown && port.since + host <= now;
            let gone = port.received.is_some_and(|(_, _, last)| last + lost <= now);
            if silent {
                port.kind = PortKind::Host;
            }
            if gone {
                port.received = None;
            }
            changed |= silent || gone;
        }
        if changed {
            self.version += 1;
            self.changed = true;
            self.update(now);
        }
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        let (host, lost) = (self.interval * HOST_INTERVALS, self.interval * LOST_INTERVALS);
        let ports = self.ports.iter().filter(|port| port.up);
        let ports = ports.filter_map(|port| match port.received {
            Some((_, _, last)) => Some(last + lost),
            None => (port.kind == PortKind::Unknown).then_some(port.since + host),
        });
        let any_up = self.ports.iter().any(|port| port.up);
        ports.chain(any_up.then_some(self.next)).min()
    }

    /// Returns the messages that are due, one for each port with carrier.
    pub(crate) fn due(&mut self, now: Time) -> Vec<(PortNo, Ldm)> {
        if self.next > now {
            return Vec::new();
        }
        self.next = now + self.interval;
        let (pod, position) = (self.pod(), self.location.map(|location| location.position));
        let ports = self.ports.iter().enumerate().filter(|(_, port)| port.up);
        ports
            .map(|(index, _)| {
                let port = PortNo(index as u16);
                let towards_you = self.parent == Some(port);
                let (level, way) = (self.level, self.way);
                (port, Ldm { port, level, pod, position, way, towards_you })
            })
            .collect()
    }

    pub(crate) fn set_location(&mut self, now: Time, location: Location) {
        if self.location != Some(location) {
            self.location = Some(location);
            self.version += 1;
            self.changed = true;
            self.update(now);
        }
    }

    pub(crate) fn level(&self) -> Level {
        self.level
    }

    pub(crate) fn location(&self) -> Option<Location> {
        self.location
    }

    /// Returns the pod of this switch.
    pub(crate) fn pod(&self) -> Option<u16> {
        let below = || {
            let edges = self.neighbours().filter(|other| other.level == Level::Edge);
            edges.filter_map(|other| other.pod).min()
        };
        match self.level {
            Level::Aggregation => below(),
            _ => self.location.map(|location| location.pod),
        }
    }

    pub(crate) fn way(&self) -> Option<Way> {
        self.way
    }

    /// Returns the port towards the manager.
    pub(crate) fn parent(&self) -> Option<PortNo> {
        self.parent
    }

    /// Returns the ports to switches whose path to the manager begins with this switch.
    pub(crate) fn children(&self) -> Vec<PortNo> {
        let ports = self.ports.iter().enumerate();
        let below =
            ports.filter(|(_, port)| port.received.is_some_and(|(_, ldm, _)| ldm.towards_you));
        below.map(|(index, _)| PortNo(index as u16)).collect()
    }

    pub(crate) fn kind(&self, port: PortNo) -> PortKind {
        self.ports.get(port.index()).map_or(PortKind::Unknown, |port| port.kind)
    }

    /// Returns whether each port with carrier is known to lead to a switch or a host.
    pub(crate) fn is_settled(&self) -> bool {
        self.ports.iter().all(|port| !port.up || port.kind != PortKind::Unknown)
    }

    /// Returns whether anything has changed since the last call.
    pub(crate) fn take_changed(&mut self) -> bool {
        core::mem::take(&mut self.changed)
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Returns the neighbouring switches in the form used by rules.
    pub(crate) fn neighbours(&self) -> impl Iterator<Item = Neighbour> {
        self.switches().map(|(port, _, ldm)| Neighbour {
            port,
            level: ldm.level,
            pod: ldm.pod,
            position: ldm.position,
        })
    }

    /// Returns the links in the form used by reports: own port, neighbour, the neighbour's port.
    pub(crate) fn links(&self) -> Vec<(PortNo, MacAddr, PortNo)> {
        self.switches().map(|(port, mac, ldm)| (port, mac, ldm.port)).collect()
    }

    fn switches(&self) -> impl Iterator<Item = (PortNo, MacAddr, Ldm)> {
        self.ports.iter().enumerate().filter_map(|(index, port)| {
            let (mac, ldm, _) = port.received.filter(|(_, ldm, _)| ldm.level != Level::Manager)?;
            Some((PortNo(index as u16), mac, ldm))
        })
    }

    /// Recomputes the level and the path.
    fn update(&mut self, now: Time) {
        if self.level == Level::Manager {
            return;
        }
        if self.level == Level::Unknown && self.is_settled() {
            self.level = self.find_level();
        }
        (self.parent, self.way) = self.find_way();
        let say = (self.level, self.pod(), self.way, self.parent);
        if say == self.sent {
            return;
        }
        let route = |way: Option<Way>| way.map(|way| (way.incarnation, way.path));
        if (self.sent.0, route(self.sent.2)) != (say.0, route(say.2)) {
            self.version += 1;
        }
        self.sent = say;
        self.changed = true;
        self.schedule_messages(now);
    }

    fn find_level(&self) -> Level {
        let hosts = self.ports.iter().any(|port| port.kind == PortKind::Host);
        let neighbours = self.neighbours().count();
        let few = neighbours > 0 && 2 * neighbours <= self.ports.len();
        if hosts || few {
            Level::Edge
        } else if self.neighbours().any(|other| other.level == Level::Edge) {
            Level::Aggregation
        } else if neighbours > 0 && self.neighbours().all(|o| o.level == Level::Aggregation) {
            Level::Core
        } else {
            Level::Unknown
        }
    }

    fn find_way(&self) -> (Option<PortNo>, Option<Way>) {
        let ways = self.ports.iter().enumerate().filter_map(|(index, port)| {
            let (_, ldm, _) = port.received?;
            let way = ldm.way.filter(|way| !ldm.towards_you && way.distance < DISTANCE_MAX)?;
            Some((PortNo(index as u16), way))
        });
        // The latest incarnation, then the shortest path, then the current one, then the lowest
        // port.
        let rank = |(port, way): &(PortNo, Way)| {
            let other = self.parent != Some(*port);
            (core::cmp::Reverse(way.incarnation), way.distance, other, *port)
        };
        let Some((port, way)) = ways.min_by_key(rank) else {
            return (None, None);
        };
        let path = path_of(way.path, self.mac, port);
        (Some(port), Some(Way { distance: way.distance + 1, path, ..way }))
    }

    /// Schedules messages soon, on all ports.
    fn schedule_messages(&mut self, now: Time) {
        self.next = self.next.min(now + TELL);
    }
}

/// Returns the path digest extended by one link. It is most likely unique.
fn path_of(before: u32, mac: MacAddr, port: PortNo) -> u32 {
    let bytes = mac.0.into_iter().chain(port.0.to_be_bytes());
    bytes
        .fold(before ^ 0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Span = Span::from_millis(10);

    fn mac(last: u8) -> MacAddr {
        MacAddr([2, 0, 0, 0, 0, last])
    }

    fn at(ticks: u64) -> Time {
        Time::ZERO + TICK * ticks
    }

    fn ldm(level: Level, distance: Option<u16>) -> Ldm {
        let way = distance.map(|distance| Way {
            manager: mac(99),
            incarnation: 1,
            fat_tree: false,
            distance,
            path: u32::from(distance),
        });
        Ldm { port: PortNo(7), level, pod: None, position: None, way, towards_you: false }
    }

    /// Returns a switch whose four ports have had carrier from the start.
    fn switch() -> Ldp {
        let mut ldp = Ldp::new(mac(1), 4, TICK);
        (0..4).for_each(|port| ldp.link(Time::ZERO, PortNo(port), true));
        ldp
    }

    #[test]
    fn a_level_follows_from_who_is_around() {
        use Level::{Aggregation, Core, Edge, Unknown};
        for (heard, level) in [
            ([None, None, Some(Unknown), Some(Unknown)], Edge),
            ([Some(Edge), Some(Edge), Some(Unknown), Some(Core)], Aggregation),
            ([Some(Aggregation); 4], Core),
            ([Some(Core), Some(Core), Some(Aggregation), Some(Core)], Unknown),
        ] {
            let mut ldp = switch();
            for (port, level) in heard.into_iter().enumerate() {
                if let Some(level) = level {
                    ldp.receive(at(1), PortNo(port as u16), mac(10), ldm(level, None));
                }
            }
            ldp.timeout(at(3));
            assert_eq!(ldp.level(), level, "{heard:?}");
            assert!(ldp.is_settled());
        }
    }

    #[test]
    fn the_nearest_way_counts_and_none_that_comes_back() {
        let mut ldp = switch();
        ldp.receive(at(1), PortNo(0), mac(10), ldm(Level::Unknown, Some(4)));
        ldp.receive(at(1), PortNo(1), mac(11), ldm(Level::Unknown, Some(2)));
        assert_eq!((ldp.parent(), ldp.way().unwrap().distance), (Some(PortNo(1)), 3));
        let below = Ldm { towards_you: true, ..ldm(Level::Unknown, Some(1)) };
        ldp.receive(at(1), PortNo(2), mac(12), below);
        assert_eq!((ldp.parent(), ldp.children()), (Some(PortNo(1)), Vec::from([PortNo(2)])));
        ldp.link(at(2), PortNo(1), false);
        assert_eq!(ldp.way().unwrap().distance, 5);
        ldp.receive(at(3), PortNo(0), mac(10), ldm(Level::Unknown, Some(DISTANCE_MAX)));
        assert_eq!((ldp.parent(), ldp.way()), (None, None), "too far is nowhere");
    }

    #[test]
    fn a_neighbour_that_falls_silent_is_gone_and_its_port_is_not_for_hosts() {
        let mut ldp = switch();
        ldp.receive(at(1), PortNo(0), mac(10), ldm(Level::Unknown, Some(0)));
        ldp.timeout(at(5));
        assert_eq!(ldp.links().len(), 1);
        let before = ldp.version();
        ldp.timeout(at(6));
        assert_eq!((ldp.links().len(), ldp.way()), (0, None));
        assert!(ldp.version() > before);
        assert_eq!(ldp.kind(PortNo(0)), PortKind::Axon);
        assert_eq!(ldp.kind(PortNo(1)), PortKind::Host);
    }
}
