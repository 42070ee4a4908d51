//! The fabric manager's network graph: links, shortest paths and locations.

use super::message::{Level, Place, Report};
use super::rules::{Neighbour, rules};
use crate::portland::plane::{Location, Routes};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use axon_wire::{MacAddr, PortNo};

/// Distance to an unreachable switch.
pub(super) const FAR: u16 = u16::MAX;

/// Switch, as it has reported itself.
#[derive(Clone, Debug)]
pub(super) struct Switch {
    pub mac: MacAddr,
    pub incarnation: u32,
    pub level: Level,
    pub location: Option<Location>,
    /// Neighbour and the neighbour's port, by own port.
    links: BTreeMap<PortNo, (MacAddr, PortNo)>,
    /// Links that both ends report: own port, and index of the neighbour.
    near: Vec<(PortNo, usize)>,
}

/// Changes caused by a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct News {
    /// Index of the switch.
    pub switch: usize,
    /// True if the switch is new or has restarted.
    pub reborn: bool,
    /// True if the level or the links have changed.
    pub changed: bool,
}

/// Network graph.
#[derive(Clone, Debug, Default)]
pub(super) struct Graph {
    switches: Vec<Switch>,
    index: BTreeMap<MacAddr, usize>,
    locations: BTreeMap<Location, usize>,
}

impl Graph {
    pub(crate) fn report(&mut self, mac: MacAddr, report: &Report) -> News {
        let next = self.switches.len();
        let switch = *self.index.entry(mac).or_insert(next);
        if switch == next {
            self.switches.push(Switch {
                mac,
                incarnation: 0,
                level: Level::Unknown,
                location: None,
                links: BTreeMap::new(),
                near: Vec::new(),
            });
        }
        let links = report.links.iter().map(|&(port, mac, far)| (port, (mac, far))).collect();
        let state = &mut self.switches[switch];
        let reborn = state.incarnation != report.incarnation;
        let changed = state.level != report.level || state.links != links;
        (state.incarnation, state.level, state.links) = (report.incarnation, report.level, links);
        // A manager that has just started accepts locations that its predecessor assigned.
        let claimed = report.place.map(Location::from);
        if let Some(location) = claimed.filter(|claimed| !self.locations.contains_key(claimed))
            && self.switches[switch].location.is_none()
        {
            self.place(switch, location);
        }
        News { switch, reborn, changed }
    }

    /// Assigns a free location to a switch.
    fn place(&mut self, switch: usize, location: Location) {
        self.switches[switch].location = Some(location);
        self.locations.insert(location, switch);
    }

    /// Recomputes the set of links that both ends report.
    pub(crate) fn refresh(&mut self) {
        for switch in 0..self.switches.len() {
            let state = &self.switches[switch];
            let confirmed = state.links.iter().filter_map(|(&port, (mac, far))| {
                let other = *self.index.get(mac)?;
                let back = self.switches[other].links.get(far)?;
                (*back == (state.mac, port)).then_some((port, other))
            });
            let near = confirmed.collect();
            self.switches[switch].near = near;
        }
    }

    pub(crate) fn switch(&self, switch: usize) -> &Switch {
        &self.switches[switch]
    }

    pub(crate) fn len(&self) -> usize {
        self.switches.len()
    }

    pub(crate) fn find(&self, mac: MacAddr) -> Option<usize> {
        self.index.get(&mac).copied()
    }

    /// Returns the edge switch at a location.
    pub(crate) fn at(&self, location: Location) -> Option<usize> {
        self.locations.get(&location).copied()
    }

    /// Returns all assigned locations.
    pub(crate) fn locations(&self) -> impl Iterator<Item = (Location, usize)> {
        self.locations.iter().map(|(&location, &switch)| (location, switch))
    }

    /// Returns the number of links from every switch to `target` on a shortest path, or [`FAR`] if
    /// there is no path.
    pub(crate) fn distances(&self, target: usize) -> Vec<u16> {
        let mut distances = alloc::vec![FAR; self.switches.len()];
        distances[target] = 0;
        let mut next = VecDeque::from([target]);
        while let Some(switch) = next.pop_front() {
            let far = distances[switch] + 1;
            for &(_, other) in &self.switches[switch].near {
                if distances[other] == FAR {
                    distances[other] = far;
                    next.push_back(other);
                }
            }
        }
        distances
    }

    /// Returns the links of `switch` that are on a shortest path according to `distances`.
    pub(crate) fn closer(&self, switch: usize, distances: &[u16]) -> Vec<(PortNo, usize)> {
        let here = distances[switch];
        let near = self.switches[switch].near.iter().copied();
        near.filter(|&(_, other)| distances[other] < here).collect()
    }

    /// Returns the rules that `switch` derives by itself in a fat tree.
    pub fn rules(&self, switch: usize) -> Routes {
        let near = self.switches[switch].near.iter();
        let neighbours: Vec<Neighbour> = near
            .map(|&(port, other)| Neighbour {
                port,
                level: self.switches[other].level,
                pod: self.pod(other),
                position: self.switches[other].location.map(|location| location.position),
            })
            .collect();
        rules(self.switches[switch].level, self.pod(switch), &neighbours)
    }

    /// Returns the pod of an edge switch, or of the edge switches below an aggregation switch.
    fn pod(&self, switch: usize) -> Option<u16> {
        let state = &self.switches[switch];
        if state.level != Level::Aggregation {
            return state.location.map(|location| location.pod);
        }
        let edges = state.near.iter().map(|&(_, other)| &self.switches[other]);
        let edges = edges.filter(|other| other.level == Level::Edge);
        edges.filter_map(|other| other.location).map(|location| location.pod).min()
    }

    /// Returns whether every link joins edge and aggregation, or aggregation and core, and all
    /// three levels exist.
    pub(crate) fn is_fat_tree(&self) -> bool {
        let joins = |a: Level, b: Level| {
            matches!(
                (a.min(b), a.max(b)),
                (Level::Edge, Level::Aggregation) | (Level::Aggregation, Level::Core)
            )
        };
        let has = |level| self.switches.iter().any(|switch| switch.level == level);
        has(Level::Edge)
            && has(Level::Core)
            && self.switches.iter().all(|switch| {
                switch
                    .near
                    .iter()
                    .all(|&(_, other)| joins(switch.level, self.switches[other].level))
            })
    }

    /// Assigns a location to every edge switch without one, and returns these switches. In a fat
    /// tree, edge switches below common aggregation switches share a pod. Otherwise they are
    /// numbered.
    pub(crate) fn place_all(&mut self, fat_tree: bool) -> Vec<usize> {
        let waiting: Vec<usize> = (0..self.switches.len())
            .filter(|&switch| {
                let state = &self.switches[switch];
                state.level == Level::Edge && state.location.is_none()
            })
            .collect();
        for &switch in &waiting {
            let mates = if fat_tree { self.pod_mates(switch) } else { Vec::new() };
            let pods = mates.iter().filter_map(|&mate| self.switches[mate].location);
            let pod = pods.map(|location| location.pod).min();
            if let Some(location) = self.free_location(pod, fat_tree) {
                self.place(switch, location);
            }
        }
        let placed = waiting.into_iter();
        placed.filter(|&switch| self.switches[switch].location.is_some()).collect()
    }

    /// Returns the edge switches that are connected to this one through edge and aggregation
    /// switches, over any number of links.
    fn pod_mates(&self, switch: usize) -> Vec<usize> {
        let mut seen = alloc::vec![false; self.switches.len()];
        seen[switch] = true;
        let mut next = Vec::from([switch]);
        let mut mates = Vec::new();
        while let Some(at) = next.pop() {
            if self.switches[at].level == Level::Edge {
                mates.push(at);
            }
            for &(_, other) in &self.switches[at].near {
                let inside = matches!(self.switches[other].level, Level::Edge | Level::Aggregation);
                if inside && !core::mem::replace(&mut seen[other], true) {
                    next.push(other);
                }
            }
        }
        mates
    }

    /// Returns the first free position in `pod`. Without a pod, returns the first position in a new
    /// pod of a tree, or the first free location in any other network. Returns `None` if every
    /// number is taken.
    fn free_location(&self, pod: Option<u16>, fat_tree: bool) -> Option<Location> {
        let free = |pod: u16| {
            let mut positions = (0..=u8::MAX).map(|position| Location { pod, position });
            positions.find(|location| !self.locations.contains_key(location))
        };
        if let Some(location) = pod.and_then(free) {
            return Some(location);
        }
        let last = self.locations.keys().next_back().map(|location| location.pod);
        match last {
            Some(last) if fat_tree => (last + 1..Location::PODS).find_map(free),
            Some(last) => (last..Location::PODS).find_map(free),
            None => free(0),
        }
    }
}

/// Returns the location of a switch in message form.
pub(super) fn place_of(switch: &Switch) -> Option<Place> {
    switch.location.map(Place::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mac(number: usize) -> MacAddr {
        MacAddr([2, 0, 0, 0, 0, number as u8])
    }

    /// Returns the graph with these levels and links, all of which are reported.
    fn graph(levels: &[Level], links: &[(usize, usize)]) -> Graph {
        let mut graph = Graph::default();
        let mut reports: Vec<Report> = levels
            .iter()
            .map(|&level| Report {
                sequence: 1,
                incarnation: 1,
                level,
                place: None,
                links: Vec::new(),
            })
            .collect();
        for &(a, b) in links {
            let (p, q) = (reports[a].links.len() as u16, reports[b].links.len() as u16);
            reports[a].links.push((PortNo(p), mac(b), PortNo(q)));
            reports[b].links.push((PortNo(q), mac(a), PortNo(p)));
        }
        for (number, report) in reports.iter().enumerate() {
            let news = graph.report(mac(number), report);
            assert_eq!(news, News { switch: number, reborn: true, changed: true });
            assert!(!graph.report(mac(number), report).changed);
        }
        graph.refresh();
        graph
    }

    /// Two pods with two edge (0-3) and two aggregation switches (4-7) each, and two core switches.
    fn tree() -> Graph {
        use Level::{Aggregation, Core, Edge};
        let levels = [[Edge; 4].as_slice(), &[Aggregation; 4], &[Core; 2]].concat();
        let inside = [(0, 4), (0, 5), (1, 4), (1, 5), (2, 6), (2, 7), (3, 6), (3, 7)];
        let above = [(4, 8), (5, 9), (6, 8), (7, 9)];
        graph(&levels, &[inside.as_slice(), &above].concat())
    }

    #[test]
    fn a_fat_tree_is_recognised_and_its_pods_are_what_hangs_together_below_the_core() {
        let mut tree = tree();
        assert!(tree.is_fat_tree());
        assert_eq!(tree.place_all(true), [0, 1, 2, 3]);
        let at = |pod, position| Some(Location { pod, position });
        let places: Vec<_> = (0..5).map(|switch| tree.switch(switch).location).collect();
        assert_eq!(places, [at(0, 0), at(0, 1), at(1, 0), at(1, 1), None]);
        assert!(tree.place_all(true).is_empty(), "everyone keeps his place");
        // The rules that switches derive by themselves are shortest paths.
        for (location, target) in tree.locations().collect::<Vec<_>>() {
            let distances = tree.distances(target);
            for switch in (0..tree.len()).filter(|&switch| switch != target) {
                let closer = tree.closer(switch, &distances);
                let ports: Vec<PortNo> = closer.iter().map(|&(port, _)| port).collect();
                assert_eq!(
                    tree.rules(switch).ports_towards(location),
                    Some(&ports),
                    "{switch} {target}"
                );
            }
        }
    }

    #[test]
    fn what_is_no_fat_tree_is_numbered() {
        let ring: Vec<_> = (0..300).map(|switch| (switch, (switch + 1) % 300)).collect();
        let mut ring = {
            let macs = |number: usize| MacAddr([2, 0, 0, 0, (number >> 8) as u8, number as u8]);
            let mut graph = Graph::default();
            for &(a, b) in &ring {
                let before = (a + 299) % 300;
                let links = Vec::from([
                    (PortNo(0), macs(b), PortNo(1)),
                    (PortNo(1), macs(before), PortNo(0)),
                ]);
                let level = Level::Edge;
                let report = Report { sequence: 1, incarnation: 1, level, place: None, links };
                graph.report(macs(a), &report);
            }
            graph.refresh();
            graph
        };
        assert!(!ring.is_fat_tree());
        assert_eq!(ring.place_all(false).len(), 300);
        assert_eq!(ring.switch(255).location, Some(Location { pod: 0, position: 255 }));
        assert_eq!(ring.switch(256).location, Some(Location { pod: 1, position: 0 }));
        let distances = ring.distances(0);
        assert_eq!((distances[150], distances[299]), (150, 1));
        assert_eq!(ring.closer(150, &distances).len(), 2, "both ways round");
    }

    #[test]
    fn a_link_counts_when_both_ends_report_it() {
        let mut graph = graph(&[Level::Edge; 2], &[(0, 1)]);
        assert_eq!(graph.distances(0), [0, 1]);
        let silent = Report {
            sequence: 2,
            incarnation: 1,
            level: Level::Edge,
            place: None,
            links: Vec::new(),
        };
        assert!(graph.report(mac(1), &silent).changed);
        graph.refresh();
        assert_eq!(graph.distances(0), [0, FAR]);
    }

    #[test]
    fn a_place_that_was_given_before_is_believed_if_it_is_free() {
        let mut graph = Graph::default();
        let place = Some(Place { pod: 9, position: 4 });
        let report = |incarnation| Report {
            sequence: 1,
            incarnation,
            level: Level::Edge,
            place,
            links: Vec::new(),
        };
        graph.report(mac(1), &report(1));
        graph.report(mac(2), &report(1));
        graph.place_all(false);
        assert_eq!(graph.switch(0).location, Some(Location { pod: 9, position: 4 }));
        assert_eq!(graph.switch(1).location, Some(Location { pod: 9, position: 0 }));
        assert!(graph.report(mac(1), &report(2)).reborn);
    }
}
