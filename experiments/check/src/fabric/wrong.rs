//! Checks of the invariants, which must hold despite losses, duplicates, reordering and restarts.

use super::violation::Wrong;
use super::wiring::{self, mac};
use super::world::World;
use axon_wire::message::{LinkEnd, RoutePath};
use axon_wire::{MacAddr, NodeId, PortNo, Route};
use std::collections::BTreeSet;

/// Place where a route ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct End {
    at: LinkEnd,
    /// True if the route crosses no failed link.
    works: bool,
}

impl World {
    /// Returns the first property that is violated, if any.
    pub(super) fn find_wrong(&self) -> Option<Wrong> {
        let of_switches = (0..self.switches.len())
            .find_map(|switch| self.wrong_route(switch).or_else(|| self.wrong_backup(switch)));
        self.wrong.or(of_switches).or_else(|| self.wrong_holder())
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

    /// Returns whether a route leads to this MAC address.
    fn leads_to(&self, from: NodeId, route: &Route, to: MacAddr) -> Result<bool, Wrong> {
        let end = self.end_of(from, route)?;
        match self.wiring.host_of(end.at).map(mac) == Some(to) {
            true => Ok(end.works),
            false => Err(Wrong::Delivery),
        }
    }

    fn wrong_route(&self, switch: usize) -> Option<Wrong> {
        let node = wiring::node_id(switch);
        let this = &self.switches[switch];
        let tables = this.device.routes.iter().map(|(&(_, to), route)| (to, route));
        let kept = this.edge.plain().flows().map(|(_, to, flow)| (to, &flow.route));
        tables.chain(kept).find_map(|(to, route)| self.leads_to(node, route, to).err())
    }

    fn wrong_backup(&self, switch: usize) -> Option<Wrong> {
        let node = wiring::node_id(switch);
        let is_whole = |path: &RoutePath| {
            let links = path.links().collect::<Vec<_>>();
            let follows = |pair: &[LinkEnd]| {
                self.wiring.link(pair[0]).is_some_and(|(_, there)| there.node == pair[1].node)
            };
            path.switches.first() == Some(&node) && links.windows(2).all(follows)
        };
        self.switches[switch].edge.plain().backups().find_map(|(_, to, primary, backup)| {
            if !is_whole(primary) || !is_whole(backup) || primary == backup {
                return Some(Wrong::Backup);
            }
            let ends = [primary, backup].map(|path| self.leads_to(node, &path.route, to));
            ends.into_iter().find_map(Result::err)
        })
    }

    fn wrong_holder(&self) -> Option<Wrong> {
        let mut held = BTreeSet::new();
        for (_, host) in self.controller.hosts().iter() {
            for ip in &host.ips {
                let owner = (0..self.wiring.hosts()).find(|&host| *ip == wiring::ip(host));
                if !held.insert(*ip) || owner.map(mac) != Some(host.mac) {
                    return Some(Wrong::Holder);
                }
            }
        }
        let flows = self.switches.iter().flat_map(|switch| switch.edge.plain().flows());
        let wrong = |(to, ip): (MacAddr, std::net::IpAddr)| {
            !(0..self.wiring.hosts()).any(|host| (mac(host), wiring::ip(host).into()) == (to, ip))
        };
        let mut named = flows.filter_map(|(_, to, flow)| Some((to, flow.ip?)));
        named.any(wrong).then_some(Wrong::Holder)
    }

    /// Compares the flows in a switch with the newest decisions that it has accepted.
    pub(super) fn look_at_order(&mut self, switch: usize, backups_used: u64) {
        let this = &mut *self.switches[switch];
        let took_backup = this.edge.counters().backups_used > backups_used;
        for (port, to, flow) in this.edge.plain().flows().filter(|(.., flow)| !flow.inherited) {
            let now = (flow.stamp, Some(flow.route.clone()));
            let Some((stamp, route)) = this.newest.insert((port, to), now) else { continue };
            let is_other = route.is_some_and(|route| route != flow.route);
            if flow.stamp < stamp || (flow.stamp == stamp && is_other && !took_backup) {
                self.wrong.get_or_insert(Wrong::Order);
            }
        }
    }

    /// Returns the port where a frame on this route arrives now, if it arrives.
    pub(super) fn arrives(&self, from: NodeId, route: &Route) -> Option<LinkEnd> {
        self.end_of(from, route).ok().filter(|end| end.works).map(|end| end.at)
    }

    /// Returns whether a frame from one host to the other arrives by a route.
    pub(super) fn works(&self, from: usize) -> bool {
        let LinkEnd { node, port } = self.wiring.host_at(from);
        let to = mac(1 - from);
        let routes = &self.switches[wiring::place_of(node)].device.routes;
        let route = routes.get(&(port, to));
        route.is_some_and(|route| self.leads_to(node, route, to) == Ok(true))
    }

    /// Returns whether the remaining links connect the hosts. The controller is at the switch of
    /// the first host.
    pub(super) fn can_connect(&self) -> bool {
        self.way_to(self.wiring.host_at(1).node).is_some()
    }

    /// Returns whether the controller and the edges have the same routes.
    pub(super) fn agrees(&self) -> bool {
        let mut decided = BTreeSet::new();
        for (_, route) in self.controller.flows().iter() {
            let Some(host) = self.controller.hosts().get(route.destination) else { return false };
            let node = self.controller.graph().switch(route.at.switch).incarnation.node;
            decided.insert((node, route.at.port, host.mac, key(&route.to_install())));
        }
        let held = self.switches.iter().flat_map(|switch| {
            let node = switch.incarnation.node;
            switch
                .edge
                .plain()
                .flows()
                .map(move |(port, to, flow)| (node, port, to, key(&flow.route)))
        });
        decided == held.collect()
    }
}

/// Returns a key for sorting routes.
fn key(route: &Route) -> (Vec<PortNo>, u8) {
    (route.hops.to_vec(), route.layer.into())
}
