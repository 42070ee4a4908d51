//! Links of the model, some of which have failed, and the ways over them.

use super::violation::Wrong;
use super::wiring::{self, PORTS, Wiring, mac};
use axon_wire::message::LinkEnd;
use axon_wire::{Hops, MacAddr, NodeId, PortNo, Route};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// Place where a route ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct End {
    at: LinkEnd,
    /// True if the route crosses no failed link.
    works: bool,
}

/// Wiring and failed links.
#[derive(Clone)]
pub(super) struct Links {
    wiring: Arc<Wiring>,
    /// Links that have failed.
    cut: BTreeSet<usize>,
}

impl Links {
    /// Returns intact links.
    pub(super) fn new(wiring: Wiring) -> Links {
        Links { wiring: Arc::new(wiring), cut: BTreeSet::new() }
    }

    /// Returns the wiring.
    pub(super) fn wiring(&self) -> &Wiring {
        &self.wiring
    }

    /// Returns the links that have failed.
    pub(super) fn cut(&self) -> &BTreeSet<usize> {
        &self.cut
    }

    /// Fails a link. Returns both of its ends, or nothing if it has failed before.
    pub(super) fn fail(&mut self, link: usize) -> Option<[LinkEnd; 2]> {
        self.cut.insert(link).then(|| self.wiring.links[link])
    }

    /// Returns the link at a port, and its other end, unless it has failed.
    pub(super) fn working(&self, at: LinkEnd) -> Option<(usize, LinkEnd)> {
        self.wiring.link(at).filter(|(link, _)| !self.cut.contains(link))
    }

    /// Follows a route along the links.
    fn end_of(&self, from: NodeId, route: &Route) -> Result<End, Wrong> {
        let (mut node, mut works) = (from, true);
        let mut visited = BTreeSet::from([node]);
        let mut hops = route.hops.iter().peekable();
        while let Some(&port) = hops.next() {
            let at = LinkEnd { node, port };
            if hops.peek().is_none() {
                return Ok(End { at, works });
            }
            let (link, there) = self.wiring.link(at).ok_or(Wrong::Delivery)?;
            works &= !self.cut.contains(&link);
            node = there.node;
            if !visited.insert(node) {
                return Err(Wrong::Loop);
            }
        }
        Err(Wrong::Delivery)
    }

    /// Returns whether a frame arrives by a route to this MAC address.
    ///
    /// # Errors
    /// The route leads elsewhere.
    pub(super) fn leads_to(&self, from: NodeId, route: &Route, to: MacAddr) -> Result<bool, Wrong> {
        let end = self.end_of(from, route)?;
        match self.wiring.host_of(end.at).map(mac) == Some(to) {
            true => Ok(end.works),
            false => Err(Wrong::Delivery),
        }
    }

    /// Returns the port where a frame on this route arrives now, if it arrives.
    pub(super) fn arrives(&self, from: NodeId, route: &Route) -> Option<LinkEnd> {
        self.end_of(from, route).ok().filter(|end| end.works).map(|end| end.at)
    }

    /// Returns the path from the controller to a switch over working links through which a Hello
    /// has arrived.
    pub(super) fn way_to(&self, node: NodeId) -> Option<Hops> {
        let start = wiring::node_id(0);
        let mut ways = VecDeque::from([(start, vec![PortNo(0)])]);
        while let Some((at, way)) = ways.pop_front() {
            if at == node {
                return Some(way.into_iter().chain([PortNo::CONTROL]).collect());
            }
            if way.len() > self.wiring.switches {
                continue;
            }
            for port in (0..PORTS).map(PortNo) {
                if let Some((_, there)) = self.working(LinkEnd { node: at, port }) {
                    let way = way.iter().copied().chain([port]).collect();
                    ways.push_back((there.node, way));
                }
            }
        }
        None
    }

    /// Returns whether the remaining links connect the hosts. The controller is at the switch of
    /// the first host.
    pub(super) fn can_connect(&self) -> bool {
        self.way_to(self.wiring.host_at(1).node).is_some()
    }
}
