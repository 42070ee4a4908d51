//! Fat tree with two-level lookup (M. Al-Fares, A. Loukissas, A. Vahdat, "A scalable, commodity
//! data center network architecture", SIGCOMM 2008, §3.4 to §3.8).
//!
//! Destinations below a switch are matched by their address prefix. Packets to all others go up, on
//! the port selected by the last bits of the address. So hosts on one edge switch are spread over
//! all uplinks, and all traffic to one host takes the same uplink. Both are TCAM entries, with the
//! suffixes below the prefixes, as in the paper (§3.4).
//!
//! There are some differences from the paper. Hosts keep the addresses in the plan, so the prefixes
//! are those that separate the plan's hosts (`prefixes.rs`). With the paper's addresses
//! (10.pod.switch.id), they are the paper's prefixes. A suffix has as many bits as the number of
//! uplinks requires, not eight. All switches learn about failures ([`crate::link_state`]). Where
//! the paths to an edge switch deviate from the plan, the switch gets entries for that edge switch
//! or its pod above the suffixes. If there is a single path, these are its prefixes, and otherwise
//! its prefixes with each suffix. If failures make these entries too many, one entry spreads flows
//! over the paths.

mod prefixes;

use crate::entries::{Entries, Match};
use crate::exceptions::{Part, exceptions};
use crate::live::{Live, Towards};
use crate::planned::Design;
use crate::site::{Plan, Site};
use crate::tree::{DOWN, Place, Tree};
use alloc::vec::Vec;
use axon_pipeline::{Action, Change, Field, FrameType, Modify, Prefix, Target, Udlk, UdlkId};
use axon_wire::PortNo;
use prefixes::prefixes;

/// Key of all entries: the destination address.
const KEY: UdlkId = UdlkId(0);
const DESTINATION: Field = Field::Bytes { first: 30, last: 33 };
/// Maximum number of exceptions with suffixes. The TCAM has 2048 entries in total.
const EXCEPTIONS_MAX: usize = 1024;

/// Two-level lookup of one switch.
#[derive(Clone, Debug)]
pub struct FatTree {
    tree: Tree,
    /// Prefixes of each pod's hosts, and of each edge switch's hosts.
    pods: Vec<(Prefix, u32)>,
    edges: Vec<(Prefix, u32)>,
}

/// Networks that the program supports, as named in [`Unsuitable`](crate::Unsuitable).
pub(crate) const EXPECTED: &str = "a fat tree with all hosts at its edge switches";

impl FatTree {
    /// Returns the design for a fat tree, or `None` for any other network.
    pub(crate) fn of(plan: &Plan) -> Option<FatTree> {
        let tree = Tree::of(plan)?;
        let classes = |class: &dyn Fn(u32) -> u32| {
            prefixes(plan.hosts.iter().map(|host| (host.ip, class(host.node))))
        };
        Some(FatTree { tree, pods: classes(&|node| tree.pod(node)), edges: classes(&|node| node) })
    }
}

/// Builder of one switch's entries, lowest precedence first.
struct Lookup<'a> {
    design: &'a FatTree,
    site: &'a Site,
    towards: Towards,
    entries: Entries,
    /// Uplinks that are in service.
    up: Vec<PortNo>,
    position: u32,
}

impl Design for FatTree {
    fn entries(&self, site: &Site, live: Live<'_>) -> Vec<Change> {
        let place = self.tree.place(site.node);
        // Levels are numbered in order, so switches further up have higher numbers.
        let is_above = |other: u32| other > site.node;
        let up = live.neighbours(site.node).filter(|(_, other)| is_above(*other));
        let mut lookup = Lookup {
            design: self,
            site,
            towards: Towards::new(live, site.node),
            entries: Entries::new(site),
            up: up.map(|(port, _)| port).collect(),
            position: site.node % self.tree.half(),
        };
        let key = Udlk::of(FrameType::Ipv4, [DESTINATION]);
        lookup.entries.push(Change::Udlk(KEY, Some(key)));
        match place {
            Place::Core => lookup.core(),
            Place::Aggregation { pod, .. } => lookup.aggregation(pod),
            Place::Edge { .. } => lookup.edge(),
        }
        lookup.entries.into_changes()
    }
}

impl Lookup<'_> {
    /// Adds one port for each pod, and a different port for destinations with another path.
    fn core(&mut self) {
        let tree = self.design.tree;
        // Only down, because packets from above to no edge switch must not go up again.
        let of_pod: Vec<Vec<PortNo>> = (0..2 * tree.half())
            .map(|pod| {
                let mut of = (0..tree.edges()).filter(|&edge| tree.pod(edge) == pod);
                let down = of.find(|&edge| self.towards.distance(edge) == DOWN);
                down.map_or(Vec::new(), |edge| self.towards.ports(edge))
            })
            .collect();
        let design = self.design;
        for &(prefix, pod) in &design.pods {
            self.below(prefix, &of_pod[pod as usize]);
        }
        for &(prefix, edge) in &design.edges {
            let ports = self.towards.ports(edge);
            if ports != of_pod[design.tree.pod(edge) as usize] {
                self.below(prefix, &ports);
            }
        }
    }

    /// Adds suffixes for the uplinks. Packets to this switch's own pod are dropped, except those to
    /// its edge switches, which are matched one by one.
    fn aggregation(&mut self, pod: u32) {
        self.suffixes(None, &self.up.clone());
        self.exceptions(|tree, edge| tree.pod(edge) != pod);
        let design = self.design;
        for &(prefix, of) in design.pods.iter().filter(|(_, of)| *of == pod) {
            debug_assert_eq!(of, pod);
            self.below(prefix, &[]);
        }
        for &(prefix, edge) in &design.edges {
            if design.tree.pod(edge) == pod {
                let ports = self.towards.ports(edge);
                self.below(prefix, &ports);
            }
        }
    }

    /// Adds suffixes for the uplinks. Packets to addresses of this switch that have no host are
    /// dropped.
    fn edge(&mut self) {
        let (own, design) = (self.site.node, self.design);
        self.suffixes(None, &self.up.clone());
        self.exceptions(|_, edge| edge != own);
        for &(prefix, _) in design.edges.iter().filter(|(_, edge)| *edge == own) {
            self.below(prefix, &[]);
        }
        for host in self.site.hosts() {
            let target = self.entries.host(host.port);
            self.entries.tcam(KEY, Match::new().exactly(&host.ip.octets()), onward(target));
        }
    }

    /// Adds entries for edge switches that are reached via only some of the uplinks. Those with
    /// several paths get suffixes while there is room, and otherwise are spread by flow.
    fn exceptions(&mut self, is_up: impl Fn(Tree, u32) -> bool) {
        let design = self.design;
        let is_up = |edge| is_up(design.tree, edge);
        let found = exceptions(design.tree, &self.towards, &self.up, is_up);
        let prefixes = |part| {
            let (all, number) = match part {
                Part::Pod(pod) => (&design.pods, pod),
                Part::Edge(edge) => (&design.edges, edge),
            };
            all.iter().filter(move |(_, of)| *of == number).map(|(prefix, _)| *prefix)
        };
        let suffixes = |(part, ports): &(Part, Vec<PortNo>)| {
            prefixes(*part).count() * ports.len().next_power_of_two()
        };
        let has_room = found.iter().map(suffixes).sum::<usize>() <= EXCEPTIONS_MAX;
        for (part, ports) in found {
            for prefix in prefixes(part) {
                match ports.len() {
                    2.. if has_room => self.suffixes(Some(prefix), &ports),
                    _ => self.below(prefix, &ports),
                }
            }
        }
    }

    /// Adds one entry for a prefix.
    fn below(&mut self, prefix: Prefix, ports: &[PortNo]) {
        let target = self.entries.one_of(ports);
        self.entries.tcam(
            KEY,
            Match::new().masked(&prefix.address.octets(), &mask(prefix)),
            onward(target),
        );
    }

    /// Adds one entry for each value of the last bits, for all addresses or for those with a
    /// prefix.
    fn suffixes(&mut self, prefix: Option<Prefix>, ports: &[PortNo]) {
        let Some(count) = u32::try_from(ports.len()).ok().filter(|&count| count > 0) else {
            return;
        };
        let values = count.next_power_of_two();
        let suffix = (values - 1).to_be_bytes();
        for value in 0..values {
            let port = ports[((value + self.position) % count) as usize];
            let (mut bits, mut care) = (value.to_be_bytes(), suffix);
            if let Some(prefix) = prefix {
                let (address, mask) = (prefix.address.octets(), mask(prefix));
                for at in 0..4 {
                    // Bits that are in both belong to the prefix.
                    bits[at] = bits[at] & !mask[at] | address[at];
                    care[at] |= mask[at];
                }
            }
            let target = self.entries.one_of(&[port]);
            self.entries.tcam(KEY, Match::new().masked(&bits, &care), onward(target));
        }
    }
}

fn mask(prefix: Prefix) -> [u8; 4] {
    u32::MAX.checked_shl(32 - u32::from(prefix.length)).unwrap_or(0).to_be_bytes()
}

/// Adds a TTL decrement, because switches in this design are routers.
fn onward(target: Target) -> Action {
    match target {
        Target::Drop => target.into(),
        _ => Action::from(target).with(Modify::DecrementTtl),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::Net;
    use crate::planned::Planned;
    use crate::plans;
    use alloc::boxed::Box;
    use alloc::collections::BTreeSet;
    use axon_node::Drop;
    use core::net::Ipv4Addr;

    fn net(plan: &Plan) -> Net {
        let design = FatTree::of(plan).unwrap();
        Net::new(plan.clone(), |site| Box::new(Planned::new(site, design.clone())))
    }

    #[test]
    fn suffixes_spread_hosts_over_all_ways_up_and_each_host_has_one() {
        for plan in [plans::fat_tree(8), plans::structural(8)] {
            let mut net = net(&plan);
            // From the first host to the four hosts on an edge switch in another pod.
            let mut cores = BTreeSet::new();
            for to in 64..68 {
                let mut ways = BTreeSet::new();
                for flow in 0..4 {
                    assert_eq!(net.datagram(0, to, flow), Some(5));
                    ways.insert(net.hops[2].node);
                }
                assert_eq!(ways.len(), 1, "all flows to a host take one way");
                cores.extend(ways);
            }
            assert_eq!(cores.len(), 4, "each of the four hosts another");
        }
    }

    #[test]
    fn an_address_that_no_host_has_ends_and_does_not_return() {
        let plan = plans::structural(4);
        let mut net = net(&plan);
        let host = &plan.hosts[0];
        for (ip, hops, reason) in [
            ([10, 0, 0, 77], 0, Drop::Denied),
            ([10, 0, 1, 77], 2, Drop::Denied),
            ([10, 3, 1, 77], 4, Drop::Denied),
            ([10, 9, 1, 2], 2, Drop::NoRoute),
        ] {
            let to = Ipv4Addr::from(ip);
            net.send(0, &crate::net::datagram(host.mac, plan.hosts[9].mac, host.ip, to, 1));
            assert_eq!(net.received, []);
            assert_eq!(net.hops.len(), hops, "{to}");
            assert_eq!(net.drops.iter().map(|drop| drop.1).collect::<Vec<_>>(), [reason], "{to}");
        }
    }

    #[test]
    fn an_address_that_no_host_has_does_not_return_without_any_link_either() {
        let plan = plans::structural(4);
        let mut net = net(&plan);
        let host = &plan.hosts[0];
        for (node, port) in net.links() {
            net.link(node, port, false);
            for (ip, most) in [([10, 3, 7, 2], 3), ([10, 3, 7, 3], 3), ([10, 0, 7, 2], 3)] {
                let frame =
                    crate::net::datagram(host.mac, plan.hosts[9].mac, host.ip, ip.into(), 1);
                net.send(0, &frame);
                assert!(net.hops.len() <= most, "{node} {port}: {}", net.hops.len());
                assert_eq!(net.drops.len(), 1, "{node} {port}");
            }
            net.link(node, port, true);
        }
    }
}
