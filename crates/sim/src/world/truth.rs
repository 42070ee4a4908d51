//! The true topology, to compare with the state of switches and controller.
//!
//! The world knows which links carry frames, whereas nodes must discover it. A route is stale if a
//! frame that follows it through the true topology would not reach the host whose MAC it is for.
//! This is checked by following it hop by hop.

use crate::engine::station::StationNode;
use crate::link::links::WireEnd;
use crate::world::nodes::Nodes;
use crate::world::reach;
use axon_controller::policy::Identity;
use axon_fabric::assemble::switch_id;
use axon_fabric::model::{End, Fabric, Network};
use axon_node::Dataplane;
use axon_wire::{Hops, MacAddr, PortNo, Route};
use std::collections::VecDeque;
use std::fmt;

/// Route that does not lead to its host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaleRoute {
    /// Port whose table holds the route: `s1-p0`.
    pub at: String,
    /// Destination MAC.
    pub destination: MacAddr,
    /// Hops of the route.
    pub hops: Hops,
    /// Description of where the route leads.
    pub leads_to: String,
}

impl fmt::Display for StaleRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StaleRoute { at, destination, hops, leads_to } = self;
        write!(f, "{at}: the route [{hops}] to {destination} leads to {leads_to}")
    }
}

/// True topology of a world.
#[derive(Clone, Copy)]
pub struct Truth<'a> {
    fabric: &'a Fabric,
    nodes: &'a Nodes,
}

impl Truth<'_> {
    pub(crate) fn new<'a>(fabric: &'a Fabric, nodes: &'a Nodes) -> Truth<'a> {
        Truth { fabric, nodes }
    }

    /// Returns the links between switches that carry frames.
    pub(crate) fn live_links(&self) -> impl Iterator<Item = (End, End)> {
        let links = self.fabric.links.iter().map(|link| (link.a, link.b));
        links.filter(|(a, _)| {
            let far = self.nodes.far_end(WireEnd { station: a.switch, port: a.port });
            far.is_some_and(|far| far.station < self.fabric.switches.len())
        })
    }

    /// Returns for each switch whether a frame from the controller can reach it. Without a
    /// controller, returns the largest connected part.
    pub fn controlled_switches(&self) -> Vec<bool> {
        if self.fabric.is_static() {
            return self.largest_part();
        }
        let from = WireEnd { station: self.nodes.layout().controller_station(), port: PortNo(0) };
        self.reached_from(self.nodes.far_end(from).map(|end| end.station))
    }

    /// Returns the largest set of switches that reach each other; of equal ones, the first.
    fn largest_part(&self) -> Vec<bool> {
        let mut seen = vec![false; self.fabric.switches.len()];
        let mut largest = (0, seen.clone());
        for switch in 0..seen.len() {
            if !seen[switch] {
                let part = self.reached_from(Some(switch));
                seen.iter_mut().zip(&part).for_each(|(seen, &part)| *seen |= part);
                let size = part.iter().filter(|&&part| part).count();
                if size > largest.0 {
                    largest = (size, part);
                }
            }
        }
        largest.1
    }

    fn reached_from(&self, start: Option<usize>) -> Vec<bool> {
        let mut reached = vec![false; self.fabric.switches.len()];
        let mut next: VecDeque<usize> = start.into_iter().collect();
        while let Some(station) = next.pop_front() {
            if station >= reached.len() || std::mem::replace(&mut reached[station], true) {
                continue;
            }
            for port in 0..self.fabric.switches[station].ports {
                let from = WireEnd { station, port: PortNo(port) };
                next.extend(self.nodes.far_end(from).map(|end| end.station));
            }
        }
        reached
    }

    /// Returns the hosts whose edge the controller can reach, any two of which should be able to
    /// communicate. Without a controller, returns those in the largest connected part.
    pub fn connected_hosts(&self) -> Vec<usize> {
        let reached = match self.fabric.network {
            Network::Axon | Network::PortLand => self.controlled_switches(),
            Network::Ethernet | Network::Ecmp | Network::Program => self.largest_part(),
        };
        let hosts = 0..self.fabric.hosts.len();
        hosts
            .filter(|&host| {
                let station = self.nodes.layout().host_station(host);
                let mut ports = (0..self.nodes.layout().bond_ports(host).max(1)).map(PortNo);
                ports.any(|port| {
                    let far = self.nodes.far_end(WireEnd { station, port });
                    far.is_some_and(|end| reached.get(end.station) == Some(&true))
                })
            })
            .collect()
    }

    /// Returns every valid route that does not lead to its host, on all switches that the
    /// controller can reach.
    pub fn stale_routes(&self) -> Vec<StaleRoute> {
        let mut stale = Vec::new();
        for (index, reached) in self.controlled_switches().into_iter().enumerate() {
            let Some(switch) = self.nodes.switch(index).filter(|_| reached) else {
                continue;
            };
            for (port, state) in (0..).map(PortNo).zip(switch.plane().snapshot().ports) {
                let masqueraded = state.masqueraded.into_iter();
                let masqueraded = masqueraded.map(|one| (one.destination, one.route));
                let routes = state.routes.into_iter().map(|(key, route)| (key.destination, route));
                let routes = routes.chain(masqueraded);
                for (destination, Route { hops, .. }) in routes {
                    let leads_to = match self.walk(index, &hops, destination) {
                        Ok(host) if host == destination => continue,
                        Ok(host) => host.to_string(),
                        Err(place) => place,
                    };
                    let at = format!("{}-{port}", self.fabric.switches[index].name);
                    stale.push(StaleRoute { at, destination, hops, leads_to });
                }
            }
        }
        stale
    }

    /// Follows a route from a switch. Returns the MAC of the host at its end, or a description of
    /// where it ends instead. A bridge leads to the route's destination if that host is behind it.
    fn walk(&self, switch: usize, hops: &Hops, to: MacAddr) -> Result<MacAddr, String> {
        let mut station = switch;
        for &port in hops.iter() {
            let Some(here) = self.nodes.engine().station(station) else {
                return Err(format!("station {station}, which is not there"));
            };
            if !matches!(here.node, StationNode::Switch(_)) {
                return Err(format!("{}, with hops left", here.name()));
            }
            let from = WireEnd { station, port };
            let Some(end) = self.nodes.far_end(from) else {
                return Err(format!("{}-{port}, where no frame passes", here.name()));
            };
            station = end.station;
        }
        let host = self.fabric.hosts.iter().position(|host| host.mac == to);
        if host.is_some_and(|host| self.nodes.is_behind(station, host)) {
            return Ok(to);
        }
        match self.nodes.engine().station(station).map(|here| (&here.node, here.name())) {
            Some((StationNode::Host(host), _)) => Ok(host.mac()),
            Some((StationNode::ArpHost(host), _)) => Ok(host.mac()),
            Some((StationNode::Agent(_), name)) => {
                let agents = &self.fabric.agents;
                let setup = agents.get(station.wrapping_sub(self.nodes.layout().agent_station(0)));
                let address = setup.and_then(|setup| setup.kind.address());
                address.map(|(mac, _)| mac).ok_or_else(|| name.to_owned())
            }
            there => Err(there.map_or_else(String::new, |(_, name)| name.to_owned())),
        }
    }

    /// Returns whether two hosts may reach each other: they are in one VLAN, and `isolation`
    /// permits it.
    pub(crate) fn may_reach(&self, one: usize, other: usize) -> bool {
        let identity = |host: usize| {
            let station = self.nodes.layout().host_station(host);
            let far = self.nodes.far_end(WireEnd { station, port: PortNo(0) });
            let at = far.map(|end| (switch_id(end.station), end.port));
            Identity { mac: self.fabric.hosts[host].mac, at }
        };
        reach::vlan_of(self.fabric, one) == reach::vlan_of(self.fabric, other)
            && self.fabric.policy.allows(&identity(one), &identity(other))
    }
}
