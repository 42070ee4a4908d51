//! The places of route tables and the changes that the data plane has not answered.

use super::context::Cx;
use super::places::{Key, Places};
use crate::effect::Effect;
use alloc::collections::{BTreeMap, BTreeSet};
use axon_node::{Capabilities, Note, PortView, RouteChange, RouteTicket};
use axon_wire::{HopWidth, PortNo, Route};

/// The route tables of a data plane, as far as the edge has requested entries.
#[derive(Debug)]
pub(super) struct Placing {
    per_port_max: usize,
    width: HopWidth,
    hops_max: usize,
    places: Places,
    tickets: u64,
    /// Changes without an answer.
    pub(super) requested: BTreeMap<RouteTicket, Requested>,
    /// Removals that the data plane has refused: it may still have these routes.
    pub(super) stale: BTreeSet<Key>,
    /// Ports to be tried again.
    pub(super) refused: BTreeSet<PortNo>,
}

/// A change that the data plane has not answered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Requested {
    Install(Key),
    Remove(Key),
}

impl Placing {
    /// An empty table at each port of a data plane that can do this.
    pub(super) fn new(has: &Capabilities) -> Placing {
        Placing {
            per_port_max: has.routes_per_port_max,
            width: has.hop_width,
            hops_max: has.hops_max(),
            places: Places::new(has.ports, has.routes_per_port_max),
            tickets: 0,
            requested: BTreeMap::new(),
            stale: BTreeSet::new(),
            refused: BTreeSet::new(),
        }
    }

    /// Routes that the table of one port holds.
    pub(super) fn per_port_max(&self) -> usize {
        self.per_port_max
    }

    /// Whether `port` exists and a header of this fabric can hold `route`.
    pub(super) fn can_hold(&self, ports: &dyn PortView, port: PortNo, route: &Route) -> bool {
        ports.kind(port).is_some()
            && route.hops.len() <= self.hops_max
            && route.hops.iter().all(|&hop| self.width.can_name(hop))
    }

    /// Reserves an entry for a route, if it has none yet; `false` if the table is full.
    pub(super) fn reserve(&mut self, (port, destination): Key) -> bool {
        self.places.reserve(port, destination)
    }

    /// Reserves an entry for a destination whose MAC is not known yet.
    pub(super) fn hold(&mut self, port: PortNo) -> bool {
        self.places.hold(port)
    }

    /// Gives back a place that [`Placing::hold`] took.
    pub(super) fn release(&mut self, port: PortNo) {
        self.places.release(port);
    }

    /// Frees the entry of a route that was not requested.
    pub(super) fn free(&mut self, (port, destination): Key) {
        self.places.free(port, destination);
    }

    /// Frees all entries of one port, whose routes are gone.
    pub(super) fn clear(&mut self, port: PortNo) {
        self.places.clear(port);
    }

    /// Requests a route that has an entry.
    pub(super) fn install(&mut self, cx: &mut Cx, key: Key, route: Route) -> RouteTicket {
        let (port, destination) = key;
        self.stale.remove(&key);
        self.ask(cx, Requested::Install(key), RouteChange::Install { port, destination, route })
    }

    /// Requests the removal of a route, and frees its entry.
    pub(super) fn remove(&mut self, cx: &mut Cx, key: Key) {
        let (port, destination) = key;
        self.places.free(port, destination);
        cx.out.push(Effect::Note(Note::RouteRemoved { port, destination }));
        self.take_out(cx, key);
    }

    pub(super) fn take_out(&mut self, cx: &mut Cx, key: Key) {
        let (port, destination) = key;
        self.stale.remove(&key);
        self.ask(cx, Requested::Remove(key), RouteChange::Remove { port, destination });
    }

    fn ask(&mut self, cx: &mut Cx, request: Requested, change: RouteChange) -> RouteTicket {
        self.tickets += 1;
        let ticket = RouteTicket(self.tickets);
        self.requested.insert(ticket, request);
        cx.out.push(Effect::Route { ticket, change });
        ticket
    }

    /// Places taken on one port.
    #[cfg(test)]
    pub(super) fn taken(&self, port: PortNo) -> usize {
        self.places.taken(port)
    }

    /// Ports that are to be tried again.
    #[cfg(test)]
    pub(super) fn refused(&self) -> usize {
        self.refused.len()
    }
}
