//! Graph of switches, built from their port states (paper 001 §4.2.1).
//!
//! Every switch sends its complete port state with a version number. A link becomes an edge if both
//! ends are switches and name each other, by node and port. So a failure counts as soon as either
//! end has detected it, and no path leads through a controller.
//!
//! A new incarnation of a switch has to repeat the handshake with its neighbours, while its data
//! plane may still forward. So the ports of the previous incarnation count until the new one
//! reports them, until the other end no longer names the switch, or until their time expires. The
//! time limit is needed because neighbours detect whether the data plane still forwards, but a
//! neighbour that is dead, or that has restarted too, does not report it.
//!
//! Switches get dense indices in the order in which they first appear, and keep them for ever.
//! There are at most as many indices as nodes with the fabric's key. The edges are in one flat
//! list, ordered by switch and egress port, so that a search touches little memory.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
pub use axon_node::SwitchIndex;
use axon_wire::message::{Peer, PortState, Role};
use axon_wire::{Hops, Incarnation, NodeId, PortNo, Time};

/// Number of changes that a router can catch up with. If it is further behind, it starts afresh.
const JOURNAL_MAX: usize = 512;

/// One direction of a link between switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Switch at the far end.
    pub to: SwitchIndex,
    /// Port at the near end.
    pub egress: PortNo,
    /// Port at the far end.
    pub ingress: PortNo,
}

/// Changes that an update makes to the edges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Directed links that were removed, in both directions, each given by its near end.
    pub lost: Vec<(SwitchIndex, PortNo)>,
    /// True if edges were added.
    pub gained: bool,
}

/// Result of looking up the sender of a message in the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// An earlier incarnation than the known one. Its message is to be ignored.
    Stale,
    /// The known incarnation, or a switch that is new or has not been received yet.
    Known(SwitchIndex),
    /// A later incarnation. Its port state is not known yet, and the links of the previous
    /// incarnation count while the other ends name the switch.
    Reborn(SwitchIndex, Change),
}

/// State of one switch.
#[derive(Clone, Debug)]
pub struct Switch {
    /// Latest incarnation. Its number is 0, which no real incarnation has, until a message is
    /// received.
    pub incarnation: Incarnation,
    /// Version of `ports`, or `None` until the first Controller Hello from this incarnation.
    pub version: Option<u64>,
    /// Ports that are up, with their peers.
    pub ports: BTreeMap<PortNo, Peer>,
    /// Ports of earlier incarnations that this one has not reported yet, and the time until which
    /// they count. A further incarnation does not extend that time.
    before: BTreeMap<PortNo, (Peer, Time)>,
    /// Reverse path of the switch's last Controller Hello, from the controller's control plane to
    /// the switch's.
    pub reverse: Option<Hops>,
}

/// All switches and the edges between them.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    by_id: BTreeMap<NodeId, SwitchIndex>,
    switches: Vec<Switch>,
    adjacency: Vec<Vec<Edge>>,
    /// Edges of all switches; `edges[first[s]..first[s + 1]]` are those of switch `s`.
    edges: Vec<Edge>,
    first: Vec<u32>,
    /// Switches whose edges have changed, newest last. `generation` counts all entries ever made.
    journal: VecDeque<SwitchIndex>,
    generation: u64,
    /// Earliest time at which a port of an earlier incarnation expires.
    before_until: Option<Time>,
}

impl Graph {
    /// Returns the number of switches.
    pub fn len(&self) -> usize {
        self.switches.len()
    }

    /// Returns whether the graph has no switches.
    pub fn is_empty(&self) -> bool {
        self.switches.is_empty()
    }

    /// Returns the index of a switch.
    pub fn index_of(&self, node: NodeId) -> Option<SwitchIndex> {
        self.by_id.get(&node).copied()
    }

    /// Returns the latest incarnation of a switch.
    pub fn incarnation_of(&self, node: NodeId) -> Option<Incarnation> {
        Some(self.switch(self.index_of(node)?).incarnation)
    }

    /// Returns whether the graph has any links at a switch.
    pub fn has_links(&self, node: NodeId) -> bool {
        self.index_of(node).is_some_and(|at| !self.edges(at).is_empty())
    }

    /// Returns the state of a switch.
    ///
    /// # Panics
    /// If the index is not from this graph.
    pub fn switch(&self, index: SwitchIndex) -> &Switch {
        &self.switches[index.index()]
    }

    /// Returns the switches, in order of index.
    pub fn switches(&self) -> impl Iterator<Item = (SwitchIndex, &Switch)> {
        self.switches.iter().enumerate().map(|(at, switch)| (SwitchIndex(at as u32), switch))
    }

    /// Returns the edges at a switch, ordered by egress port.
    #[inline]
    pub fn edges(&self, of: SwitchIndex) -> &[Edge] {
        let at = of.index();
        match (self.first.get(at), self.first.get(at + 1)) {
            (Some(&from), Some(&to)) => &self.edges[from as usize..to as usize],
            _ => &[],
        }
    }

    /// Returns a number that grows with every change to the edges.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns the switches whose edges have changed after `generation`, with repetitions, or
    /// `None` if the journal does not reach back that far.
    pub(crate) fn touched_since(
        &self,
        generation: u64,
    ) -> Option<impl Iterator<Item = SwitchIndex>> {
        let count = usize::try_from(self.generation.checked_sub(generation)?).ok()?;
        let skipped = self.journal.len().checked_sub(count)?;
        Some(self.journal.range(skipped..).copied())
    }

    /// Looks up the sender `incarnation`. Adds it if it is a new switch. Starts a later incarnation
    /// of a known switch, which keeps the ports of the previous incarnation until `until` at the
    /// latest.
    pub(crate) fn admit(&mut self, incarnation: Incarnation, until: Time) -> Admission {
        if let Some(index) = self.index_of(incarnation.node) {
            let switch = &mut self.switches[index.index()];
            if incarnation.number == switch.incarnation.number {
                return Admission::Known(index);
            }
            if !switch.was_heard() {
                switch.incarnation = incarnation;
                return Admission::Known(index);
            }
            if incarnation.number < switch.incarnation.number {
                return Admission::Stale;
            }
            let fresh = Switch::new(incarnation);
            let Switch { mut before, ports, .. } = core::mem::replace(switch, fresh);
            before.extend(ports.into_iter().map(|(port, peer)| (port, (peer, until))));
            if !before.is_empty() {
                self.before_until = Some(self.before_until.map_or(until, |first| first.min(until)));
            }
            switch.before = before;
            let change = self.connect(index);
            return Admission::Reborn(index, change);
        }
        Admission::Known(self.add(incarnation))
    }

    /// Returns the index of a switch from the controller's store, and adds the switch if it is new.
    /// The switch has no incarnation and no edges until a message arrives from it.
    pub(crate) fn remember(&mut self, node: NodeId) -> SwitchIndex {
        let known = self.index_of(node);
        known.unwrap_or_else(|| self.add(Incarnation { node, number: 0 }))
    }

    /// Adds the ports of a switch as given in the fabric file, and the switch itself if it is new.
    /// They count until the switch reports its own.
    pub(crate) fn assume(&mut self, node: NodeId, ports: &[PortState]) -> SwitchIndex {
        let index = self.remember(node);
        let switch = &mut self.switches[index.index()];
        switch.ports = ports.iter().map(|state| (state.port, state.peer)).collect();
        self.connect(index);
        index
    }

    fn add(&mut self, incarnation: Incarnation) -> SwitchIndex {
        let index = SwitchIndex(self.switches.len() as u32);
        self.by_id.insert(incarnation.node, index);
        self.switches.push(Switch::new(incarnation));
        self.adjacency.push(Vec::new());
        self.flatten();
        index
    }

    /// Returns the edge at a port, if both ends agree on it.
    pub(crate) fn edge(&self, from: SwitchIndex, egress: PortNo) -> Option<&Edge> {
        self.edges(from).iter().find(|edge| edge.egress == egress)
    }

    /// Returns whether a port without an edge may get one once more switches have sent their state.
    pub(crate) fn is_undecided(&self, from: SwitchIndex, egress: PortNo) -> bool {
        let silent = |index: SwitchIndex| self.switch(index).version.is_none();
        match self.switch(from).ports.get(&egress) {
            _ if silent(from) => true,
            Some(Peer::Axon { node, role: Role::Switch, .. }) => {
                self.index_of(*node).is_none_or(silent)
            }
            _ => false,
        }
    }

    /// Records a switch's port state, unless an equal or newer version is already known.
    pub(crate) fn update(
        &mut self,
        index: SwitchIndex,
        version: u64,
        ports: &[PortState],
        reverse: Hops,
    ) -> Change {
        let switch = &mut self.switches[index.index()];
        if switch.version > Some(version) {
            return Change::default();
        }
        switch.reverse = Some(reverse);
        if switch.version == Some(version) {
            return Change::default();
        }
        switch.version = Some(version);
        switch.ports = ports.iter().map(|state| (state.port, state.peer)).collect();
        switch.before.retain(|port, _| !switch.ports.contains_key(port));
        self.connect(index)
    }

    /// Returns when to call [`Graph::run_out`] next. Early or repeated calls are harmless.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.before_until
    }

    /// Expires ports of earlier incarnations.
    pub(crate) fn run_out(&mut self, now: Time) -> Change {
        let mut all = Change::default();
        if self.before_until.is_none_or(|until| until > now) {
            return all;
        }
        for index in (0..self.switches.len()).map(|at| SwitchIndex(at as u32)) {
            let before = &mut self.switches[index.index()].before;
            let had = before.len();
            before.retain(|_, (_, until)| *until > now);
            if before.len() < had {
                let change = self.connect(index);
                all.lost.extend(change.lost);
                all.gained |= change.gained;
            }
        }
        let left = self.switches.iter().flat_map(|switch| switch.before.values());
        self.before_until = left.map(|&(_, until)| until).min();
        all
    }

    /// Returns the edges at the switch `index` on which both ends agree.
    fn agreed(&self, index: SwitchIndex) -> Vec<Edge> {
        let switch = &self.switches[index.index()];
        let here = switch.incarnation.node;
        let edge = |(&egress, peer): (&PortNo, &Peer)| {
            let Peer::Axon { node, port: ingress, role: Role::Switch } = *peer else {
                return None;
            };
            let to = self.index_of(node).filter(|&to| to != index)?;
            let back = Peer::Axon { node: here, port: egress, role: Role::Switch };
            (self.switches[to.index()].peer(ingress) == Some(&back)).then_some(Edge {
                to,
                egress,
                ingress,
            })
        };
        let before = switch.before.iter().map(|(port, (peer, _))| (port, peer));
        let before = before.filter(|(port, _)| !switch.ports.contains_key(port));
        let mut edges: Vec<Edge> = switch.ports.iter().chain(before).filter_map(edge).collect();
        edges.sort_unstable_by_key(|edge| edge.egress);
        edges
    }

    /// Updates the edges of one switch, at both of their ends.
    fn connect(&mut self, index: SwitchIndex) -> Change {
        let wanted = self.agreed(index);
        let had = core::mem::take(&mut self.adjacency[index.index()]);
        let mut change = Change::default();
        for edge in had.iter().filter(|edge| !wanted.contains(edge)) {
            self.adjacency[edge.to.index()].retain(|other| other.egress != edge.ingress);
            change.lost.push((index, edge.egress));
            change.lost.push((edge.to, edge.ingress));
            self.touch(edge.to);
        }
        for edge in wanted.iter().filter(|edge| !had.contains(edge)) {
            let others = &mut self.adjacency[edge.to.index()];
            let at = others.partition_point(|other| other.egress < edge.ingress);
            others.insert(at, Edge { to: index, egress: edge.ingress, ingress: edge.egress });
            change.gained = true;
            self.touch(edge.to);
        }
        self.adjacency[index.index()] = wanted;
        if change.gained || !change.lost.is_empty() {
            self.touch(index);
            self.flatten();
        }
        change
    }

    fn touch(&mut self, index: SwitchIndex) {
        self.generation += 1;
        self.journal.push_back(index);
        if self.journal.len() > JOURNAL_MAX {
            self.journal.pop_front();
        }
    }

    fn flatten(&mut self) {
        self.edges.clear();
        self.first.clear();
        for edges in &self.adjacency {
            self.first.push(self.edges.len() as u32);
            self.edges.extend_from_slice(edges);
        }
        self.first.push(self.edges.len() as u32);
    }
}

impl Switch {
    /// Returns whether any message from the switch was received. Otherwise, it is known from the
    /// store.
    pub const fn was_heard(&self) -> bool {
        self.incarnation.number > 0
    }

    /// Returns the peer at a port, as reported by this incarnation or a previous one.
    fn peer(&self, port: PortNo) -> Option<&Peer> {
        self.ports.get(&port).or_else(|| self.before.get(&port).map(|(peer, _)| peer))
    }

    fn new(incarnation: Incarnation) -> Switch {
        let (ports, before) = (BTreeMap::new(), BTreeMap::new());
        Switch { incarnation, version: None, ports, before, reverse: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expiry of the ports of the previous incarnation.
    const END: Time = Time::from_ticks(1_000);

    fn incarnation(node: u64) -> Incarnation {
        Incarnation { node: NodeId(node), number: 1 }
    }

    fn to(port: u16, node: u64, there: u16) -> PortState {
        let peer = Peer::Axon { node: NodeId(node), port: PortNo(there), role: Role::Switch };
        PortState { port: PortNo(port), peer }
    }

    fn tell(graph: &mut Graph, node: u64, version: u64, ports: &[PortState]) -> Change {
        let Admission::Known(index) = graph.admit(incarnation(node), END) else { panic!("stale") };
        graph.update(index, version, ports, Hops::to_control())
    }

    #[test]
    fn an_edge_needs_the_word_of_both_ends() {
        let mut graph = Graph::default();
        assert_eq!(tell(&mut graph, 1, 1, &[to(4, 2, 5)]), Change::default());
        assert!(tell(&mut graph, 2, 1, &[to(5, 1, 4)]).gained);
        let edge = Edge { to: SwitchIndex(1), egress: PortNo(4), ingress: PortNo(5) };
        assert_eq!(graph.edges(SwitchIndex(0)), [edge]);
        let change = tell(&mut graph, 1, 2, &[to(4, 2, 6)]);
        assert_eq!(change.lost, [(SwitchIndex(0), PortNo(4)), (SwitchIndex(1), PortNo(5))]);
        assert!(graph.edges(SwitchIndex(1)).is_empty());
    }

    #[test]
    fn older_versions_do_not_count_and_a_new_incarnation_begins_with_what_its_neighbours_name() {
        let mut graph = Graph::default();
        tell(&mut graph, 1, 7, &[to(4, 2, 5)]);
        tell(&mut graph, 2, 1, &[to(5, 1, 4)]);
        assert_eq!(tell(&mut graph, 1, 6, &[]), Change::default());
        assert_eq!(graph.edges(SwitchIndex(0)).len(), 1);
        let reborn = graph.admit(Incarnation { node: NodeId(1), number: 2 }, END);
        let Admission::Reborn(index, change) = reborn else { panic!("{reborn:?}") };
        assert_eq!((index, change), (SwitchIndex(0), Change::default()));
        assert_eq!(graph.admit(incarnation(1), END), Admission::Stale);
        let links = |graph: &Graph| graph.edges(SwitchIndex(0)).len();
        // The switch has no neighbour yet, and then its old neighbour again.
        assert_eq!(graph.update(index, 1, &[], Hops::to_control()), Change::default());
        assert_eq!(graph.update(index, 2, &[to(4, 2, 5)], Hops::to_control()), Change::default());
        assert_eq!(links(&graph), 1);
        let change = graph.update(index, 3, &[], Hops::to_control());
        assert_eq!((change.lost.len(), links(&graph)), (2, 0), "what it has reported is its own");
    }

    #[test]
    fn a_link_of_the_incarnation_before_goes_with_the_word_of_its_other_end() {
        let mut graph = Graph::default();
        let next = Incarnation { node: NodeId(1), number: 2 };
        for node in [2, 3] {
            tell(&mut graph, node, 1, &[to(5, 1, node as u16)]);
        }
        tell(&mut graph, 1, 7, &[to(2, 2, 5), to(3, 3, 5)]);
        let Admission::Reborn(index, _) = graph.admit(next, END) else {
            panic!("a new incarnation")
        };
        assert_eq!(graph.edges(index).len(), 2);
        assert_eq!(tell(&mut graph, 2, 2, &[]).lost.len(), 2);
        let edge = |egress| graph.edge(index, PortNo(egress)).is_some();
        assert_eq!([edge(2), edge(3)], [false, true]);
        // A different node is there now.
        let change = graph.update(index, 1, &[to(3, 2, 9)], Hops::to_control());
        assert_eq!((change.lost.len(), graph.edges(index).len()), (2, 0));
    }

    #[test]
    fn a_link_that_a_new_incarnation_never_reports_ends_in_time_whatever_the_other_end_says() {
        let mut graph = Graph::default();
        tell(&mut graph, 1, 1, &[to(4, 2, 5)]);
        tell(&mut graph, 2, 1, &[to(5, 1, 4)]);
        let born = |graph: &mut Graph, node, number, until| {
            let reborn = graph.admit(Incarnation { node: NodeId(node), number }, until);
            let Admission::Reborn(index, change) = reborn else { panic!("{reborn:?}") };
            assert_eq!(change, Change::default());
            graph.update(index, 1, &[], Hops::to_control());
        };
        let later = Time::from_ticks(END.ticks() + 500);
        let just_before = Time::from_ticks(END.ticks() - 1);
        // Both ends restart, and one of them restarts twice. Neither extends the time left by the
        // first restart.
        born(&mut graph, 1, 2, END);
        born(&mut graph, 2, 2, later);
        born(&mut graph, 1, 3, later);
        assert_eq!((graph.deadline(), graph.run_out(just_before)), (Some(END), Change::default()));
        assert_eq!(graph.edges(SwitchIndex(0)).len(), 1);
        let lost = graph.run_out(END).lost;
        assert_eq!(lost, [(SwitchIndex(0), PortNo(4)), (SwitchIndex(1), PortNo(5))]);
        assert!(graph.edges(SwitchIndex(0)).is_empty() && graph.edges(SwitchIndex(1)).is_empty());
        assert_eq!(graph.deadline(), Some(later), "what the other end has left");
        assert_eq!((graph.run_out(later), graph.deadline()), (Change::default(), None));
    }

    #[test]
    fn a_link_that_a_new_incarnation_reports_in_time_does_not_run_out() {
        let mut graph = Graph::default();
        tell(&mut graph, 1, 1, &[to(4, 2, 5)]);
        tell(&mut graph, 2, 1, &[to(5, 1, 4)]);
        let next = Incarnation { node: NodeId(1), number: 2 };
        let Admission::Reborn(index, _) = graph.admit(next, END) else { panic!("it is new") };
        graph.update(index, 1, &[to(4, 2, 5)], Hops::to_control());
        assert_eq!((graph.run_out(END), graph.edges(index).len()), (Change::default(), 1));
    }

    #[test]
    fn controllers_and_cables_to_oneself_are_no_edges() {
        let mut graph = Graph::default();
        let peer = Peer::Axon { node: NodeId(2), port: PortNo(0), role: Role::Controller };
        tell(&mut graph, 1, 1, &[PortState { port: PortNo(1), peer }, to(2, 1, 3), to(3, 1, 2)]);
        tell(&mut graph, 2, 1, &[to(0, 1, 1)]);
        assert!(graph.edges(SwitchIndex(0)).is_empty() && graph.edges(SwitchIndex(1)).is_empty());
    }

    #[test]
    fn the_journal_names_what_changed_or_says_that_it_forgot() {
        let mut graph = Graph::default();
        tell(&mut graph, 1, 1, &[to(4, 2, 5)]);
        tell(&mut graph, 2, 1, &[to(5, 1, 4)]);
        let before = graph.generation();
        for version in 2..100 {
            let ports: &[_] = if version % 2 == 0 { &[] } else { &[to(4, 2, 5)] };
            tell(&mut graph, 1, version, ports);
        }
        assert_eq!(graph.touched_since(before).unwrap().count(), 98 * 2);
        for version in 100..1000 {
            let ports: &[_] = if version % 2 == 0 { &[] } else { &[to(4, 2, 5)] };
            tell(&mut graph, 1, version, ports);
        }
        assert!(graph.touched_since(before).is_none());
    }
}
