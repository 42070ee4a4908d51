//! Comparison of the cables in the fabric file with those that discovery finds.
//!
//! A link is used if both of its ends match the file. A different switch, a different port of that
//! switch, or a switch where the file has none is not used, because paths computed from the file
//! would lead elsewhere over it. Each mismatch is reported once, with what was expected and what
//! was found.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_controller::Effect;
use axon_controller::config::StaticSwitch;
use axon_node::Note;
use axon_node::telemetry::Miscabled;
use axon_wire::message::{LinkEnd, Peer, PortState, Role};
use axon_wire::{NodeId, PortNo};

#[derive(Debug)]
pub(super) struct Cables {
    home: NodeId,
    /// Far end of each link in the file, by switch and port.
    links: BTreeMap<(NodeId, PortNo), LinkEnd>,
    miscabled: BTreeMap<PortNo, Miscabled>,
}

impl Cables {
    pub(crate) fn new(home: NodeId, switches: &[StaticSwitch]) -> Cables {
        let ends = |switch: &StaticSwitch| {
            let node = switch.node;
            let far = |state: &PortState| Some(((node, state.port), switch_at(&state.peer)?));
            switch.ports.iter().filter_map(far).collect::<Vec<_>>()
        };
        let links = switches.iter().flat_map(ends).collect();
        Cables { home, links, miscabled: BTreeMap::new() }
    }

    /// Returns the ports of a switch that match the file, host ports included.
    pub(crate) fn filter(&self, node: NodeId, ports: Vec<PortState>) -> Vec<PortState> {
        ports.into_iter().filter(|state| self.fits(node, state)).collect()
    }

    fn fits(&self, node: NodeId, state: &PortState) -> bool {
        let expected = self.links.get(&(node, state.port));
        match state.peer {
            Peer::Host => expected.is_none(),
            Peer::Axon { .. } => {
                let found = switch_at(&state.peer);
                found.is_some() && found.as_ref() == expected
            }
        }
    }

    /// Returns the ports of this switch that match the file, and notes new mismatches.
    pub(crate) fn judge(&mut self, ports: Vec<PortState>, out: &mut Vec<Effect>) -> Vec<PortState> {
        let mut wrong = BTreeMap::new();
        for state in &ports {
            let Some(found) = switch_at(&state.peer).filter(|_| !self.fits(self.home, state))
            else {
                continue;
            };
            let port = state.port;
            let expected = self.links.get(&(self.home, port)).copied();
            let is = Miscabled { port, expected, found };
            if self.miscabled.get(&port) != Some(&is) {
                out.push(Effect::Note(Note::Miscabled { port, expected, found }));
            }
            wrong.insert(port, is);
        }
        self.miscabled = wrong;
        self.filter(self.home, ports)
    }

    pub(crate) fn miscabled(&self) -> impl Iterator<Item = Miscabled> {
        self.miscabled.values().copied()
    }

    /// Returns whether `view` has all links that the file has at this switch.
    pub(crate) fn all_there(&self, view: &[PortState]) -> bool {
        self.missing(view).is_empty()
    }

    /// Returns this switch's ports with a link in the file that `view` lacks.
    pub(crate) fn missing(&self, view: &[PortState]) -> Vec<PortNo> {
        let own = (self.home, PortNo(0))..=(self.home, PortNo(u16::MAX));
        let own = self.links.range(own).map(|(&(_, port), _)| port);
        own.filter(|port| !view.iter().any(|state| state.port == *port)).collect()
    }
}

/// Returns the switch at the other end of a port, if there is one.
fn switch_at(peer: &Peer) -> Option<LinkEnd> {
    match *peer {
        Peer::Axon { node, port, role: Role::Switch } => Some(LinkEnd { node, port }),
        _ => None,
    }
}
