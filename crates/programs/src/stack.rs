//! Source routing with a stack of tags (nISR: paper 004 §3.2.2).
//!
//! The edge switch of the source pushes the whole path, with one MPLS label for each switch that
//! follows. The label is the number of the egress port plus 16. Every switch pops the top label and
//! sends the packet out of that port. The last label is that of the host's port. A switch has one
//! entry for each of its ports, and all path state is at the edge.
//!
//! Hosts are spread over the shortest paths. When links fail, edge switches recompute the paths
//! ([`crate::link_state`]).

use crate::entries::Entries;
use crate::live::{FAR, Live};
use crate::planned::Design;
use crate::site::{Neighbour, Plan, Site};
use crate::spread::spread;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_pipeline::{Action, Change, Label, Modify, Target};
use axon_wire::PortNo;

/// First label that is not reserved (RFC 3032 section 2.1).
const FIRST: u32 = 16;
/// Maximum number of labels that an action pushes, limited by its modifications.
pub const HOPS_MAX: usize = 8;
/// Maximum number of hosts, since the IPv4 table has 8192 entries.
const HOSTS_MAX: usize = 8192;

/// Networks that the program supports, as named in [`Unsuitable`](crate::Unsuitable).
pub(crate) const EXPECTED: &str =
    "a network of at most 8192 hosts, each at most 8 links away from any other switch with hosts";

/// Label tables of one switch.
#[derive(Clone, Copy, Debug)]
pub struct Stack;

impl Stack {
    /// Returns whether an action can push every path in a network.
    pub(crate) fn suits(plan: &Plan) -> bool {
        let down = Default::default();
        let live = Live::new(plan, &down);
        let mut edges: Vec<u32> = plan.hosts.iter().map(|host| host.node).collect();
        edges.sort_unstable();
        edges.dedup();
        let reaches = |from: u32| {
            let distances = live.distances([from]);
            edges.iter().all(|&edge| distances[edge as usize] as usize <= HOPS_MAX)
        };
        plan.hosts.len() <= HOSTS_MAX && edges.iter().all(|&edge| reaches(edge))
    }
}

impl Design for Stack {
    fn entries(&self, site: &Site, live: Live<'_>) -> Vec<Change> {
        let mut entries = Entries::new(site);
        entries.refuse_labels(site);
        for (port, there) in site.ports() {
            let target = match there {
                Neighbour::Nothing | Neighbour::Agent => continue,
                Neighbour::Node(..) => Target::Interface(port.0),
                Neighbour::Host(_) => entries.host(port),
            };
            let action = Action::from(target).with(Modify::MplsPop);
            entries.push(Change::Mpls(label(port).0, Some(action)));
        }
        if site.hosts().next().is_none() {
            return entries.into_changes();
        }
        let mut distances: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (number, host) in (0..).zip(&site.plan.hosts) {
            let action = if host.node == site.node {
                entries.host(host.port).into()
            } else {
                let distances =
                    distances.entry(host.node).or_insert_with(|| live.distances([host.node]));
                let Some(mut path) = path(live, site.node, number, distances) else { continue };
                let first = path.remove(0);
                path.push(host.port);
                if path.len() > HOPS_MAX {
                    continue;
                }
                let way = Action::from(Target::Interface(first.0));
                path.iter().rev().fold(way, |way, &port| way.with(Modify::MplsPush(label(port))))
            };
            entries.push(Change::Ipv4(host.ip, Some(action)));
        }
        entries.into_changes()
    }
}

fn label(port: PortNo) -> Label {
    Label(FIRST + u32::from(port.0))
}

/// Returns the egress ports of one shortest path from `node` to a node at which `distances` is 0,
/// or `None` if there is none.
fn path(live: Live<'_>, node: u32, host: u32, distances: &[u32]) -> Option<Vec<PortNo>> {
    let mut path = Vec::new();
    let mut at = node;
    while distances[at as usize] > 0 {
        if distances[at as usize] == FAR {
            return None;
        }
        let closer = live.closer(at, distances);
        let &port = spread(&closer, at, host)?;
        path.push(port);
        at = live.neighbours(at).find(|(own, _)| *own == port)?.1;
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::Net;
    use crate::planned::Planned;
    use crate::plans;
    use alloc::boxed::Box;

    /// Returns the MPLS labels in a frame.
    fn labels(frame: &[u8]) -> Vec<u32> {
        let entries = frame[14..].chunks(4).map(|four| four.first_chunk().copied());
        let entries = entries.flatten().map(u32::from_be_bytes);
        let mut labels = Vec::new();
        for entry in entries.take_while(|_| frame[12..14] == [0x88, 0x47]) {
            labels.push(entry >> 12);
            if entry & 1 << 8 != 0 {
                break;
            }
        }
        labels
    }

    #[test]
    fn the_first_switch_pushes_the_whole_path_and_each_pops_its_own_port() {
        for (plan, to) in [(plans::fat_tree(4), 13), (plans::ring(16), 8)] {
            let mut net = Net::new(plan, |site| Box::new(Planned::new(site, Stack)));
            net.datagram(0, to, 1).unwrap();
            let ports: Vec<u32> = net.hops.iter().map(|hop| 16 + u32::from(hop.port.0)).collect();
            assert!(ports.len() == 5 || ports.len() == 9);
            for (number, hop) in net.hops.iter().enumerate() {
                assert_eq!(labels(&hop.frame), ports[number + 1..]);
            }
        }
    }
}
