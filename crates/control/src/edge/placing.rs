//! What the data plane is asked for, and what it answers.
//!
//! In plain English: a route that has a place is asked for. Until the answer has come the route
//! counts as placed, and what the data plane punts meanwhile goes by software, so nobody waits for
//! a slow device. If the device refuses, software keeps the route, whatever stood in the table
//! before is taken out of it (it would lead the old way), and the port is tried again after a pause.

use super::Cx;
use super::flows::{Flows, Key, Placement, of_port};
use super::places::Places;
use crate::effect::Effect;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_node::{Capabilities, Note, PortView, RouteAnswer, RouteChange, RouteTicket, Snapshot};
use axon_wire::{HopWidth, MacAddr, PortNo, Route, Span, Time};

/// From a refusal to the next try at the same port.
pub(super) const PAUSE: Span = Span::from_secs(1);

/// The routes of a data plane, as far as the edge has asked for them.
#[derive(Debug)]
pub(super) struct Placing {
    per_port_max: usize,
    width: HopWidth,
    hops_max: usize,
    places: Places,
    tickets: u64,
    /// Changes without an answer.
    asked: BTreeMap<RouteTicket, Asked>,
    /// Removals that the data plane has refused: it may still have these routes.
    stale: BTreeSet<Key>,
    /// Ports to be tried again.
    refused: BTreeSet<PortNo>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
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
            asked: BTreeMap::new(),
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

    /// Takes a place for a route, if it has none yet; `false` if the table is full.
    pub(super) fn reserve(&mut self, (port, destination): Key) -> bool {
        self.places.reserve(port, destination)
    }

    /// Takes a place for a destination whose MAC is still to be learned.
    pub(super) fn hold(&mut self, port: PortNo) -> bool {
        self.places.hold(port)
    }

    /// Gives back a place that [`Placing::hold`] took.
    pub(super) fn release(&mut self, port: PortNo) {
        self.places.release(port);
    }

    /// Gives back the place of a route that the data plane was not asked for.
    pub(super) fn free(&mut self, (port, destination): Key) {
        self.places.free(port, destination);
    }

    /// Gives back all places of one port, whose routes are gone.
    pub(super) fn clear(&mut self, port: PortNo) {
        self.places.clear(port);
    }

    /// Asks for a route that has a place.
    pub(super) fn install(&mut self, cx: &mut Cx, key: Key, route: Route) -> RouteTicket {
        let (port, destination) = key;
        self.stale.remove(&key);
        self.ask(cx, Asked::Install(key), RouteChange::Install { port, destination, route })
    }

    /// Asks that a route go, and gives back its place.
    pub(super) fn remove(&mut self, cx: &mut Cx, key: Key) {
        let (port, destination) = key;
        self.places.free(port, destination);
        cx.out.push(Effect::Note(Note::RouteRemoved { port, destination }));
        self.take_out(cx, key);
    }

    fn take_out(&mut self, cx: &mut Cx, key: Key) {
        let (port, destination) = key;
        self.stale.remove(&key);
        self.ask(cx, Asked::Remove(key), RouteChange::Remove { port, destination });
    }

    fn ask(&mut self, cx: &mut Cx, asked: Asked, change: RouteChange) -> RouteTicket {
        self.tickets += 1;
        let ticket = RouteTicket(self.tickets);
        self.asked.insert(ticket, asked);
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

impl Flows {
    /// Whether the data plane has a route from `port` to `destination`, or may have one.
    pub(super) fn is_placed(&self, key: Key) -> bool {
        self.live.get(&key).is_some_and(|flow| flow.is_placed())
    }

    /// The data plane has answered; says when to try its port again, if that is new.
    pub(super) fn answered(&mut self, cx: &mut Cx, answer: RouteAnswer) -> Option<(PortNo, Time)> {
        let key = match (self.placing.asked.remove(&answer.ticket)?, answer.result) {
            (Asked::Remove(_), Ok(())) => return None,
            (Asked::Remove(key), Err(_)) => {
                // A later install has replaced the route, or will.
                if !self.is_placed(key) {
                    self.placing.stale.insert(key);
                }
                key
            }
            (Asked::Install(key), result) => {
                let flow = self.live.get_mut(&key)?;
                if flow.placement != Placement::Requested(answer.ticket) {
                    return None;
                }
                if result.is_ok() {
                    let (port, destination) = key;
                    flow.placement = Placement::Installed;
                    cx.out.push(Effect::Note(Note::RouteSet { port, destination }));
                    return None;
                }
                flow.placement = Placement::Software;
                self.placing.free(key);
                self.placing.take_out(cx, key);
                match self.software_is_full(key.0) {
                    true => self.let_go(key),
                    false => drop(self.unplaced.insert(key)),
                }
                key
            }
        };
        let new = self.placing.refused.insert(key.0);
        new.then_some((key.0, cx.now + PAUSE))
    }

    /// Tries again what the data plane has refused at `port`.
    pub(super) fn try_again(&mut self, cx: &mut Cx, port: PortNo) {
        self.placing.refused.remove(&port);
        let stale: BTreeSet<Key> = self.placing.stale.range(of_port(port)).copied().collect();
        for key in stale {
            self.placing.take_out(cx, key);
        }
        self.promote(cx, port);
    }

    /// Asks for the software routes of `port` while its table has places. A port that has refused
    /// something waits for its pause to end.
    pub(super) fn promote(&mut self, cx: &mut Cx, port: PortNo) {
        if self.placing.refused.contains(&port) {
            return;
        }
        while let Some(&key) = self.unplaced.range(of_port(port)).next()
            && self.place(cx, key)
        {}
    }

    /// Asks for one software route, if it finds a place.
    pub(super) fn place(&mut self, cx: &mut Cx, key: Key) -> bool {
        let Some(flow) = self.live.get_mut(&key).filter(|flow| !flow.is_placed()) else {
            return false;
        };
        if !self.placing.reserve(key) {
            return false;
        }
        flow.placement = Placement::Requested(self.placing.install(cx, key, flow.route.clone()));
        self.unplaced.remove(&key);
        true
    }

    /// All routes that the data plane should have.
    pub(super) fn wanted(&self) -> impl Iterator<Item = (PortNo, MacAddr, &Route)> {
        let placed = self.live.iter().filter(|(_, flow)| flow.is_placed());
        placed.map(|(&(port, mac), flow)| (port, mac, &flow.route))
    }

    /// The data plane had lost its tables and was re-synchronised; `has` is what it has now. What it
    /// should have and has not is kept in software. Says which ports to try again, and when.
    pub(super) fn resynchronised(&mut self, cx: &mut Cx, has: &Snapshot) -> Vec<(PortNo, Time)> {
        self.placing.asked.clear();
        self.placing.stale.clear();
        let mut again = Vec::new();
        let there = |(port, mac): Key, route: &Route| {
            let port = has.ports.get(port.index());
            port.is_some_and(|port| port.routes.iter().any(|had| had.0 == mac && had.1 == *route))
        };
        for (&key, flow) in self.live.iter_mut().filter(|(_, flow)| flow.is_placed()) {
            if there(key, &flow.route) {
                flow.placement = Placement::Installed;
                continue;
            }
            flow.placement = Placement::Software;
            self.placing.free(key);
            self.unplaced.insert(key);
            if self.placing.refused.insert(key.0) {
                again.push((key.0, cx.now + PAUSE));
            }
        }
        again
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use axon_wire::Route;

    #[test]
    fn a_route_that_the_device_refuses_goes_by_software_and_is_tried_again() {
        let mut bench = Bench::new();
        bench.host(0, 1);
        bench.tables.refuses = 2;
        bench.set_route(0, 9, 1, 3);
        assert_eq!((bench.placed(0, 9), bench.places(0)), (None, 0));
        let frame = udp_frame(mac(9), mac(1), 1);
        bench.frame(0, &frame);
        assert_eq!(bench.sent, [(PortNo(0), Route::from([3]), frame)]);
        bench.pass(PAUSE);
        assert_eq!(bench.placed(0, 9), None, "refused again");
        bench.pass(PAUSE);
        assert_eq!(bench.placed(0, 9), Some(Route::from([3])));
    }

    #[test]
    fn a_new_route_that_is_refused_takes_the_old_one_out() {
        let mut bench = Bench::new();
        bench.host(0, 1);
        bench.set_route(0, 9, 1, 3);
        assert_eq!(bench.placed(0, 9), Some(Route::from([3])));
        bench.tables.refuses = 1;
        bench.set_route(0, 9, 2, 4);
        assert_eq!(bench.placed(0, 9), None, "the old route leads the old way");
        bench.pass(PAUSE);
        assert_eq!(bench.placed(0, 9), Some(Route::from([4])));
    }

    #[test]
    fn after_a_loss_what_stands_again_is_placed_and_what_does_not_is_software() {
        let mut bench = Bench::new();
        bench.host(0, 1);
        for (to, hop) in [(8, 3), (9, 4)] {
            bench.set_route(0, to, 1, hop);
        }
        bench.lose_routes(&[mac(9)]);
        assert_eq!((bench.placed(0, 8), bench.placed(0, 9)), (Some(Route::from([3])), None));
        bench.pass(PAUSE);
        assert_eq!(bench.placed(0, 9), Some(Route::from([4])));
    }
}
