//! Paths: the router, and the path that is being computed.

use super::fabric::Fabric;
use super::flows::{Origin, Route};
use super::hosts::{HostIndex, Place};
use super::network::Network;
use super::router::{Detour, Flow, Router, Step, flow_hash};
use super::topology::{Graph, SwitchIndex};
use alloc::boxed::Box;
use alloc::vec::Vec;
use axon_wire::{Hops, Layer, NodeId, PortNo};

/// Router, with the path found last and a current path.
#[derive(Clone, Debug)]
pub(super) struct Paths {
    router: Box<dyn Router>,
    /// Maximum number of hops that fit in a header. A longer path is unusable.
    hops_max: usize,
    /// The path found last.
    found: Vec<Step>,
    /// Layer of the path in `found`.
    layer: Layer,
    /// Current path of the route under consideration.
    current: Vec<Step>,
    detour: Detour,
}

impl Paths {
    /// Creates the state of a router without flows.
    pub(super) fn new(router: Box<dyn Router>, hops_max: usize) -> Paths {
        let (found, current, detour) = Default::default();
        Paths { router, hops_max, found, layer: Layer::ZERO, current, detour }
    }

    pub(super) fn router(&self) -> &dyn Router {
        &*self.router
    }

    pub(super) fn router_mut(&mut self) -> &mut dyn Router {
        &mut *self.router
    }

    /// Returns the maximum number of hops that fit in a header.
    pub(super) const fn hops_max(&self) -> usize {
        self.hops_max
    }

    /// Returns the path found last, and its layer.
    pub(super) fn found(&self) -> (&[Step], Layer) {
        (&self.found, self.layer)
    }

    /// Returns the current path of the route under consideration.
    pub(super) fn current(&self) -> &[Step] {
        &self.current
    }

    /// Sets the current path to that of a route.
    pub(super) fn set_current(&mut self, route: &Route) {
        self.current.clear();
        self.current.extend(route.steps());
    }

    /// Sets the current path to that of a route, and stops counting it on its links.
    pub(super) fn unplace(&mut self, route: &Route) {
        self.set_current(route);
        self.router.removed(&self.current);
    }

    /// Counts the found path on its links.
    pub(super) fn place(&mut self) {
        self.router.placed(&self.found);
    }

    /// Counts the current path on its links again.
    pub(super) fn place_current(&mut self) {
        self.router.placed(&self.current);
    }

    /// Returns whether the current path follows the rule of the router on this layer.
    pub(super) fn allows_current(&mut self, graph: &Graph, layer: Layer) -> bool {
        self.router.allows(graph, &self.current, layer)
    }

    /// Finds a path for a flow that fits in a header. If the router's choice does not fit, a
    /// shortest path is used. Returns whether there is a path.
    pub(super) fn find(&mut self, graph: &Graph, flow: &Flow) -> bool {
        let mut found = self.router.path(graph, flow, &mut self.found);
        if found && self.found.len() >= self.hops_max {
            let shortest = self.router.shortest();
            found = shortest.pick(graph, flow.from, flow.to, flow.hash, &mut self.found);
        }
        if !found || self.found.len() >= self.hops_max {
            return false;
        }
        self.set_layer(graph)
    }

    /// Finds a path for a route that ends at `exit`, one of the ports where a route to the host may
    /// end. Returns that port if there is a path.
    pub(super) fn find_to(
        &mut self,
        net: &Network,
        from: Origin,
        destination: HostIndex,
        exit: Place,
    ) -> Option<Place> {
        let (flow, to) = self.flow_to(net, from, destination, exit)?;
        self.find(net.graph(), &flow).then_some(to)
    }

    /// Finds a path that is better than the current one, if there is one.
    pub(super) fn find_better(&mut self, graph: &Graph, flow: &Flow) -> bool {
        let better = self.router.better(graph, flow, &self.current, &mut self.found);
        let moves = better && self.found.len() < self.hops_max && self.found != self.current;
        moves && self.set_layer(graph)
    }

    /// Replaces `path` with the best backup of `primary`, the current path of `flow`, that the
    /// router does not compute itself. Returns whether there is one ([`Detour::find`]).
    pub(super) fn detour(
        &mut self,
        graph: &Graph,
        flow: &Flow,
        primary: &[Step],
        path: &mut Vec<Step>,
    ) -> bool {
        self.detour.find(graph, flow, primary, &mut *self.router, path)
    }

    fn set_layer(&mut self, graph: &Graph) -> bool {
        let layer = self.router.layer(graph, &self.found);
        self.layer = layer.unwrap_or(self.layer);
        layer.is_some()
    }

    /// Returns a shortest path between two switches, ending in [`PortNo::CONTROL`].
    pub(super) fn between(
        &mut self,
        graph: &Graph,
        (from, to): (SwitchIndex, SwitchIndex),
        hash: u64,
    ) -> Option<Hops> {
        if !self.router.shortest().pick(graph, from, to, hash, &mut self.found) {
            return None;
        }
        let links = self.found.iter().map(|step| step.egress);
        Some(Hops(links.chain([PortNo::CONTROL]).collect()))
    }

    /// Returns the path from here to a switch's control plane, ending in [`PortNo::CONTROL`]: the
    /// shortest one over all of the controller's own links, lowest port first. If the graph has no
    /// path yet, returns the reverse path of the switch's last Controller Hello.
    pub(super) fn path_to(&mut self, fabric: &Fabric, switch: NodeId) -> Option<Hops> {
        let graph = fabric.graph();
        let to = graph.index_of(switch)?;
        if let Some(home) = fabric.home() {
            return self.between(graph, (home, to), switch.0);
        }
        let mut best: Option<(usize, PortNo, SwitchIndex)> = None;
        for (port, via) in fabric.attachments() {
            let Some(distance) = self.router.shortest().distance(graph, via, to) else {
                continue;
            };
            if best.is_none_or(|(least, ..)| distance < least) {
                best = Some((distance, port, via));
            }
        }
        let Some((_, port, via)) = best else {
            return graph.switch(to).reverse.clone();
        };
        if !self.router.shortest().pick(graph, via, to, switch.0, &mut self.found) {
            return None;
        }
        let mut hops = Vec::with_capacity(self.found.len() + 2);
        hops.push(port);
        hops.extend(self.found.iter().map(|step| step.egress));
        hops.push(PortNo::CONTROL);
        Some(Hops(hops))
    }

    /// Returns the flow for a route that ends at `exit`, one of the ports where a route to the host
    /// may end.
    pub(super) fn flow_to(
        &self,
        net: &Network,
        from: Origin,
        destination: HostIndex,
        to: Place,
    ) -> Option<(Flow, Place)> {
        if !net.may_reach(from, destination) {
            return None;
        }
        let host = net.hosts().get(destination)?;
        let at = from.at;
        let hash = flow_hash(net.fabric().node(at.switch), at.port, host.mac);
        let hash = net.hash_of(from, hash);
        let from = at.switch;
        let towards = u64::from(net.vlan().value()) << 32 | u64::from(destination.0);
        Some((Flow { from, to: to.switch, hash, towards }, to))
    }
}
