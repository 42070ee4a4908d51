//! The cables of the fabric file beside those that discovery finds.
//!
//! A link counts if both of its ends find what the file has there. Another switch, another port of
//! the same switch, or a switch where the file has none is not used, and is reported once, with
//! what was expected and what was found: paths that were computed from the file would lead
//! elsewhere over it.

use crate::config::StaticSwitch;
use crate::effect::Effect;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_node::Note;
use axon_node::telemetry::Miscabled;
use axon_wire::message::{LinkEnd, Peer, PortState, Role};
use axon_wire::{NodeId, PortNo};

#[derive(Debug)]
pub(super) struct Cables {
    home: NodeId,
    /// By switch and port, the other end of each link of the file.
    links: BTreeMap<(NodeId, PortNo), LinkEnd>,
    miscabled: BTreeMap<PortNo, Miscabled>,
}

impl Cables {
    pub fn new(home: NodeId, switches: &[StaticSwitch]) -> Cables {
        let ends = |switch: &StaticSwitch| {
            let node = switch.node;
            let far = |state: &PortState| Some(((node, state.port), switch_at(&state.peer)?));
            switch.ports.iter().filter_map(far).collect::<Vec<_>>()
        };
        let links = switches.iter().flat_map(ends).collect();
        Cables { home, links, miscabled: BTreeMap::new() }
    }

    /// The ports of a switch that are as the file has them, and its host ports.
    pub fn filter(&self, node: NodeId, ports: Vec<PortState>) -> Vec<PortState> {
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

    /// The same for this switch; what is news is noted.
    pub fn judge(&mut self, ports: Vec<PortState>, out: &mut Vec<Effect>) -> Vec<PortState> {
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

    pub fn miscabled(&self) -> impl Iterator<Item = Miscabled> {
        self.miscabled.values().copied()
    }

    /// Whether all links of the file are among these ports of this switch.
    pub fn all_there(&self, view: &[PortState]) -> bool {
        self.missing(view).is_empty()
    }

    /// The ports of this switch whose links are not among these.
    pub fn missing(&self, view: &[PortState]) -> Vec<PortNo> {
        let own = (self.home, PortNo(0))..=(self.home, PortNo(u16::MAX));
        let own = self.links.range(own).map(|(&(_, port), _)| port);
        own.filter(|port| !view.iter().any(|state| state.port == *port)).collect()
    }
}

/// The switch at the other end of a port, if there is one.
fn switch_at(peer: &Peer) -> Option<LinkEnd> {
    match *peer {
        Peer::Axon { node, port, role: Role::Switch } => Some(LinkEnd { node, port }),
        _ => None,
    }
}
