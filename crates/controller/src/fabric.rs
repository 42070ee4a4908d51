//! The fabric as the controller knows it: the graph of switches, its own ports, the bonds, and the
//! VLANs of host ports.

use super::bonds::{Bond, Bonds, Exits};
use super::hosts::Place;
use super::topology::{Graph, SwitchIndex};
use alloc::collections::btree_map::Entry;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use axon_node::PortVlans;
use axon_wire::message::{Peer, Role};
use axon_wire::vlan::VlanId;
use axon_wire::{Hops, NodeId, PortNo};

/// Switches, links, bonds and the VLANs of ports. They are the same for all VLANs.
#[derive(Clone, Debug)]
pub(super) struct Fabric {
    graph: Graph,
    /// Own ports of the controller that lead to a switch, each with that switch and its port.
    attachments: BTreeMap<PortNo, (NodeId, PortNo)>,
    /// Switch that contains this controller, which then decides about the routes of that switch
    /// only. `None` for the controller of a whole fabric.
    home: Option<SwitchIndex>,
    bonds: Bonds,
    /// VLANs of host ports. A port without an entry is in no VLAN.
    vlans: BTreeMap<(NodeId, PortNo), PortVlans>,
}

impl Fabric {
    /// Creates a fabric without switches.
    pub(super) fn new(bonds: Bonds, vlans: BTreeMap<(NodeId, PortNo), PortVlans>) -> Fabric {
        Fabric { graph: Graph::default(), attachments: BTreeMap::new(), home: None, bonds, vlans }
    }

    /// Returns whether hosts in a VLAN may be at a port.
    pub(super) fn is_in(&self, vlan: VlanId, at: (NodeId, PortNo)) -> bool {
        self.vlans.get(&at).map_or(vlan.is_none(), |vlans| vlans.has(vlan))
    }

    /// Returns whether frames of a VLAN are tagged at a port.
    pub(super) fn is_tagged(&self, vlan: VlanId, at: (NodeId, PortNo)) -> bool {
        self.vlans.get(&at).is_some_and(|vlans| vlans.is_tagged(vlan))
    }

    /// Returns the graph of switches.
    pub(super) const fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Returns the graph of switches, to be changed.
    pub(super) const fn graph_mut(&mut self) -> &mut Graph {
        &mut self.graph
    }

    /// Returns the bonds.
    pub(super) const fn bonds(&self) -> &Bonds {
        &self.bonds
    }

    /// Returns the bonds, to be changed.
    pub(super) const fn bonds_mut(&mut self) -> &mut Bonds {
        &mut self.bonds
    }

    /// Returns the switch that contains this controller, if one does.
    pub(super) const fn home(&self) -> Option<SwitchIndex> {
        self.home
    }

    /// Records the switch that contains this controller.
    pub(super) fn set_home(&mut self, node: NodeId) {
        self.home = self.graph.index_of(node);
    }

    /// Records the switch and port to which the controller's own `port` leads, or that it leads to
    /// none.
    pub(super) fn attached(&mut self, port: PortNo, peer: Option<(NodeId, PortNo)>) {
        match peer {
            Some(peer) => self.attachments.insert(port, peer),
            None => self.attachments.remove(&port),
        };
    }

    /// Returns the controller's own ports that lead to a known switch, each with that switch,
    /// lowest port first.
    pub(super) fn attachments(&self) -> impl Iterator<Item = (PortNo, SwitchIndex)> {
        let known = |(&port, &(node, _)): (&PortNo, &(NodeId, PortNo))| {
            Some((port, self.graph.index_of(node)?))
        };
        self.attachments.iter().filter_map(known)
    }

    /// Returns the switches that the graph connects to the controller, or `None` if none of its own
    /// ports leads to a switch.
    pub(super) fn reached(&self) -> Option<BTreeSet<SwitchIndex>> {
        if self.attachments.is_empty() {
            return None;
        }
        let mut next: Vec<SwitchIndex> = self.attachments().map(|(_, switch)| switch).collect();
        let mut reached = BTreeSet::new();
        while let Some(at) = next.pop() {
            if reached.insert(at) {
                next.extend(self.graph.edges(at).iter().map(|edge| edge.to));
            }
        }
        Some(reached)
    }

    /// Returns the node ID of a switch.
    pub(super) fn node(&self, switch: SwitchIndex) -> NodeId {
        self.graph.switch(switch).incarnation.node
    }

    /// Returns the node ID of a place's switch, and the port number.
    pub(super) fn port(&self, place: Place) -> (NodeId, PortNo) {
        (self.node(place.switch), place.port)
    }

    /// Returns the place of a port, or `None` if its switch is unknown.
    pub(super) fn place(&self, (node, port): (NodeId, PortNo)) -> Option<Place> {
        Some(Place { switch: self.graph.index_of(node)?, port })
    }

    /// Returns whether the routes of this switch are decided by a controller in another switch.
    pub(super) fn is_elsewhere(&self, switch: SwitchIndex) -> bool {
        self.home.is_some_and(|home| home != switch)
    }

    /// Returns the names of a port and its switch, using `names`. A switch without a name is shown
    /// by its number.
    pub(super) fn names_among(
        &self,
        names: &BTreeMap<NodeId, String>,
        place: Place,
    ) -> (String, String) {
        let node = self.node(place.switch);
        let name = names.get(&node);
        let switch = name.cloned().unwrap_or_else(|| node.to_string());
        (format!("{switch}-{}", place.port), switch)
    }

    /// Returns whether a switch has host ports.
    pub(super) fn has_hosts(&self, switch: SwitchIndex) -> bool {
        self.graph.switch(switch).ports.values().any(|at| *at == Peer::Host)
    }

    /// Returns the bond to which a port is joined.
    pub(super) fn bond_at(&self, place: Place) -> Option<&Bond> {
        if self.bonds.is_empty() {
            return None;
        }
        self.bonds.joined(self.port(place))
    }

    /// Returns the ports of the bond to which a port is joined, in the bond's order. If there is no
    /// bond, returns the port alone.
    pub(super) fn ports_of(&self, place: Place) -> Vec<Place> {
        let Some(bond) = self.bond_at(place) else { return [place].into() };
        bond.joined().filter_map(|member| self.place(member.at())).collect()
    }

    /// Returns whether two ports are the same location, that is, the same port or ports of the same
    /// bond.
    pub(super) fn is_one_place(&self, a: Place, b: Place) -> bool {
        a == b || self.bond_at(a).is_some() && self.ports_of(a).contains(&b)
    }

    /// Returns the port that represents the bond of this port.
    pub(super) fn first_port(&self, place: Place) -> Place {
        match self.bond_at(place) {
            Some(_) => self.ports_of(place).first().copied().unwrap_or(place),
            None => place,
        }
    }

    /// Returns the ports where routes to a host at this port may end.
    pub(super) fn exits(&self, place: Place) -> Exits {
        let Some(bond) = self.bond_at(place) else { return Exits::One(place) };
        let members = bond.joined().filter(|member| member.distributes());
        let places: Vec<Place> = members.filter_map(|member| self.place(member.at())).collect();
        match places[..] {
            [] => Exits::One(place),
            [one] => Exits::One(one),
            _ => Exits::Of(places),
        }
    }

    /// Returns whether port `before` has left the bond to which `at` is joined, because the switch
    /// of `before` is gone. A host known at `before` has then moved to another port of its bond.
    pub(super) fn has_left_port(&self, before: Place, at: Place) -> bool {
        let number = |place: Place| self.bonds.slot(self.port(place)).map(|(bond, _)| bond);
        self.bond_at(at).is_some() && self.bond_at(before).is_none() && number(before) == number(at)
    }

    /// Returns another distributing port of the bond to which a port is joined, or was joined until
    /// it lost its carrier.
    pub(super) fn other_port(&self, place: Place) -> Option<Place> {
        if self.bonds.is_empty() {
            return None;
        }
        self.bonds.others(self.port(place)).find_map(|at| self.place(at))
    }

    /// Returns the known ports of a bond, joined or not.
    pub(super) fn places_of(&self, bond: usize) -> Vec<Place> {
        self.bonds.ports(bond).filter_map(|at| self.place(at)).collect()
    }

    /// Returns a path to another switch's control plane over links that their nearer ends have
    /// reported. It serves to reconnect parts of a fabric that were cut off from each other. Nearer
    /// switches have more recent reports, so each step of the path updates the next.
    pub(super) fn path_for_greeting(&self, to: NodeId) -> Option<Hops> {
        let (home, end) = (self.home?, self.graph.index_of(to)?);
        // Predecessor of each switch in the breadth-first search.
        let mut from: BTreeMap<SwitchIndex, (SwitchIndex, PortNo)> = BTreeMap::new();
        let mut next = VecDeque::from([home]);
        while let Some(at) = next.pop_front().filter(|_| !from.contains_key(&end)) {
            for (&egress, peer) in &self.graph.switch(at).ports {
                let Peer::Axon { node, role: Role::Switch, .. } = *peer else { continue };
                let Some(there) = self.graph.index_of(node).filter(|&there| there != home) else {
                    continue;
                };
                if let Entry::Vacant(place) = from.entry(there) {
                    place.insert((at, egress));
                    next.push_back(there);
                }
            }
        }
        let mut hops = Vec::from([PortNo::CONTROL]);
        let mut at = end;
        while at != home {
            let (before, egress) = *from.get(&at)?;
            hops.push(egress);
            at = before;
        }
        hops.reverse();
        Some(Hops(hops))
    }
}
