//! Checks of the invariants, which must hold despite losses, duplicates, reordering and restarts.

use super::World;
use crate::fabric::violation::Wrong;
use crate::fabric::wiring::{self, mac};
use axon_wire::message::{LinkEnd, RoutePath};
use axon_wire::{MacAddr, PortNo, Route};
use std::collections::BTreeSet;

/// Returns the first property that is violated, if any.
pub(crate) fn find(world: &World) -> Option<Wrong> {
    let of_switches = (0..world.switches.len())
        .find_map(|switch| wrong_route(world, switch).or_else(|| wrong_backup(world, switch)));
    world.wrong.or(of_switches).or_else(|| wrong_holder(world))
}

fn wrong_route(world: &World, switch: usize) -> Option<Wrong> {
    let node = wiring::node_id(switch);
    let this = &world.switches[switch];
    let tables = this.device.routes.iter().map(|(&(_, to), route)| (to, route));
    let kept = this.edge.plain().flows().map(|(_, to, flow)| (to, &flow.route));
    tables.chain(kept).find_map(|(to, route)| world.links.leads_to(node, route, to).err())
}

fn wrong_backup(world: &World, switch: usize) -> Option<Wrong> {
    let node = wiring::node_id(switch);
    let is_whole = |path: &RoutePath| {
        let links = path.links().collect::<Vec<_>>();
        let follows = |pair: &[LinkEnd]| {
            world.wiring().link(pair[0]).is_some_and(|(_, there)| there.node == pair[1].node)
        };
        path.switches.first() == Some(&node) && links.windows(2).all(follows)
    };
    world.switches[switch].edge.plain().backups().find_map(|(_, to, primary, backup)| {
        if !is_whole(primary) || !is_whole(backup) || primary == backup {
            return Some(Wrong::Backup);
        }
        let ends = [primary, backup].map(|path| world.links.leads_to(node, &path.route, to));
        ends.into_iter().find_map(Result::err)
    })
}

fn wrong_holder(world: &World) -> Option<Wrong> {
    let mut held = BTreeSet::new();
    for (_, host) in world.head.controller().hosts().iter() {
        for ip in &host.ips {
            let owner = (0..world.wiring().hosts()).find(|&host| *ip == wiring::ip(host));
            if !held.insert(*ip) || owner.map(mac) != Some(host.mac) {
                return Some(Wrong::Holder);
            }
        }
    }
    let flows = world.switches.iter().flat_map(|switch| switch.edge.plain().flows());
    let wrong = |(to, ip): (MacAddr, std::net::IpAddr)| {
        !(0..world.wiring().hosts()).any(|host| (mac(host), wiring::ip(host).into()) == (to, ip))
    };
    let mut named = flows.filter_map(|(_, to, flow)| Some((to, flow.ip?)));
    named.any(wrong).then_some(Wrong::Holder)
}

/// Returns whether a frame from one host to the other arrives by a route.
pub(crate) fn works(world: &World, from: usize) -> bool {
    let LinkEnd { node, port } = world.wiring().host_at(from);
    let to = mac(1 - from);
    let routes = &world.switches[wiring::place_of(node)].device.routes;
    let route = routes.get(&(port, to));
    route.is_some_and(|route| world.links.leads_to(node, route, to) == Ok(true))
}

/// Returns whether the controller and the edges have the same routes.
pub(crate) fn agrees(world: &World) -> bool {
    let mut decided = BTreeSet::new();
    for (_, route) in world.head.controller().flows().iter() {
        let Some(host) = world.head.controller().hosts().get(route.destination) else {
            return false;
        };
        let node = world.head.controller().graph().switch(route.at.switch).incarnation.node;
        decided.insert((node, route.at.port, host.mac, key(&route.to_install())));
    }
    let held = world.switches.iter().flat_map(|switch| {
        let node = switch.incarnation.node;
        switch.edge.plain().flows().map(move |(port, to, flow)| (node, port, to, key(&flow.route)))
    });
    decided == held.collect()
}

impl World {
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
}

/// Returns a key for sorting routes.
fn key(route: &Route) -> (Vec<PortNo>, u8) {
    (route.hops.to_vec(), route.layer.into())
}
