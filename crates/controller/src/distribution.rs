//! Distribution of the routes to a host at a bond: the port where each route ends, and moves to
//! other ports. See `bonds.rs`.

use super::bonds::Exits;
use super::flows::{Flows, Origin, RouteIndex};
use super::hosts::{Host, HostIndex, Place};
use super::network::Network;
use super::routes::Routes;
use crate::effect::Effect;
use alloc::vec::Vec;

/// Choice of the port where each route ends.
impl Routes<'_> {
    /// Returns the ports where a route to a host may end, in order of preference. The current port
    /// of the route comes first, then the ports with the fewest routes to the host.
    pub(super) fn exits_in_order(
        &self,
        net: &Network,
        from: Origin,
        destination: HostIndex,
    ) -> Option<Exits> {
        let exits = net.fabric().exits(net.hosts().get(destination)?.place());
        let Exits::Of(mut places) = exits else { return Some(exits) };
        let own = self.flows().find(from, destination);
        let current = own.and_then(|own| self.flows().get(own)).map(|route| route.exit);
        let counts = counts(self.flows(), destination, &places);
        let mut order: Vec<(bool, usize, usize)> = (counts.iter().enumerate())
            .map(|(number, &count)| (Some(places[number]) != current, count, number))
            .collect();
        order.sort_unstable();
        places = order.into_iter().map(|(.., number)| places[number]).collect();
        Some(Exits::Of(places))
    }

    /// Moves those routes to a host that end at a port which does not distribute.
    pub(super) fn move_away(&mut self, net: &Network, host: HostIndex, out: &mut Vec<Effect>) {
        let Some(place) = net.hosts().get(host).map(Host::place) else { return };
        let exits = net.fabric().exits(place);
        for route in self.flows().towards(host) {
            let exit = self.flows().get(route).map(|route| route.exit);
            if exit.is_some_and(|exit| !exits.contains(exit)) {
                self.reroute(net, route, out);
                self.count_bond_move();
            }
        }
    }

    /// Moves routes to a host between the ports of its bond until the ports have equal numbers of
    /// them.
    pub(super) fn balance(&mut self, net: &Network, host: HostIndex, out: &mut Vec<Effect>) {
        let Some(place) = net.hosts().get(host).map(Host::place) else { return };
        let Exits::Of(places) = net.fabric().exits(place) else { return };
        loop {
            let counts = counts(self.flows(), host, &places);
            let most = (0..counts.len()).rev().max_by_key(|&at| counts[at]);
            let least = (0..counts.len()).min_by_key(|&at| counts[at]);
            let (Some(most), Some(least)) = (most, least) else { return };
            if counts[most] <= counts[least] + 1 {
                return;
            }
            let ends_there = |route: &RouteIndex| {
                self.flows().get(*route).is_some_and(|route| route.exit == places[most])
            };
            let Some(route) = self.flows().towards(host).into_iter().find(ends_there) else {
                return;
            };
            if !self.reroute_to(net, route, places[least], out) {
                return;
            }
            self.count_bond_move();
        }
    }
}

/// Returns the number of routes to a host that end at each of these ports.
fn counts(flows: &Flows, destination: HostIndex, places: &[Place]) -> Vec<usize> {
    let mut counts = alloc::vec![0; places.len()];
    for route in flows.towards(destination) {
        let exit = flows.get(route).map(|route| route.exit);
        let place = places.iter().position(|place| Some(*place) == exit);
        if let Some(place) = place {
            counts[place] += 1;
        }
    }
    counts
}
