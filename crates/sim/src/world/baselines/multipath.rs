//! Tables of static multipath, computed from the fabric before the start.
//!
//! A breadth-first search from every switch with hosts gives the distance of all others. A port of
//! a switch is on a shortest path if it leads one step closer. Multicast follows the breadth-first
//! tree of the first switch.

use axon_baselines::multipath::{Place, Places};
use axon_fabric::model::Fabric;
use axon_wire::PortNo;
use std::collections::VecDeque;

/// Link from the view of one end: own port, the switch at the other end, its port.
type Near = (PortNo, usize, PortNo);

/// Distance of an unreachable switch.
const FAR: u32 = u32::MAX;

/// Tables of one switch; see [`axon_baselines::multipath::MultipathConfig`].
#[derive(Clone, Debug)]
pub(crate) struct Tables {
    /// Sets of ports; the first is empty.
    pub(crate) sets: Vec<Vec<PortNo>>,
    /// Number of the set of ports towards each switch with hosts.
    pub(crate) routes: Vec<u16>,
    /// Ports of the tree and of hosts.
    pub(crate) tree: Vec<PortNo>,
}

/// Returns the location of every host.
pub(crate) fn places(fabric: &Fabric) -> Places {
    let place = |switch: usize, port| Place { switch: switch as u32, port };
    fabric.hosts.iter().map(|host| (host.mac, place(host.switch, host.port))).collect()
}

/// Returns the tables of all switches.
pub(crate) fn tables(fabric: &Fabric) -> Vec<Tables> {
    let switches = fabric.switches.len();
    let mut near: Vec<Vec<Near>> = vec![Vec::new(); switches];
    for link in &fabric.links {
        near[link.a.switch].push((link.a.port, link.b.switch, link.b.port));
        near[link.b.switch].push((link.b.port, link.a.switch, link.a.port));
    }
    near.iter_mut().for_each(|ports| ports.sort_unstable());
    let empty = || Tables { sets: vec![Vec::new()], routes: vec![0; switches], tree: Vec::new() };
    let mut tables: Vec<Tables> = (0..switches).map(|_| empty()).collect();
    for host in &fabric.hosts {
        tables[host.switch].tree.push(host.port);
    }
    let mut with_hosts: Vec<usize> = fabric.hosts.iter().map(|host| host.switch).collect();
    with_hosts.sort_unstable();
    with_hosts.dedup();
    for target in with_hosts {
        let distances = distances(&near, target);
        for (switch, table) in tables.iter_mut().enumerate() {
            let here = distances[switch];
            let closer = near[switch].iter().filter(|&&(_, other, _)| distances[other] < here);
            let ports: Vec<PortNo> = closer.map(|&(port, ..)| port).collect();
            table.routes[target] = table.number_of(ports);
        }
    }
    span(&near, &mut tables);
    for table in &mut tables {
        table.tree.sort_unstable();
    }
    tables
}

impl Tables {
    /// Returns the number of a set of ports, which is added if it is new.
    ///
    /// # Panics
    /// Never: a switch of 65,535 ports at most, on a graph, has fewer sets than targets.
    fn number_of(&mut self, ports: Vec<PortNo>) -> u16 {
        let known = self.sets.iter().position(|set| *set == ports);
        let number = known.unwrap_or_else(|| {
            self.sets.push(ports);
            self.sets.len() - 1
        });
        u16::try_from(number).expect("fewer than 65,536 different sets of ports")
    }
}

fn distances(near: &[Vec<Near>], target: usize) -> Vec<u32> {
    let mut distances = vec![FAR; near.len()];
    distances[target] = 0;
    let mut next = VecDeque::from([target]);
    while let Some(switch) = next.pop_front() {
        for &(_, other, _) in &near[switch] {
            if distances[other] == FAR {
                distances[other] = distances[switch] + 1;
                next.push_back(other);
            }
        }
    }
    distances
}

/// Adds the ports of a breadth-first tree: at each switch but the first, the lowest port that leads
/// closer to the first, and the other end of that link.
fn span(near: &[Vec<Near>], tables: &mut [Tables]) {
    let distances = distances(near, 0);
    for switch in 1..near.len() {
        let here = distances[switch];
        let up = near[switch].iter().find(|&&(_, other, _)| distances[other] < here);
        if let Some(&(port, parent, far)) = up {
            tables[switch].tree.push(port);
            tables[parent].tree.push(far);
        }
    }
}
