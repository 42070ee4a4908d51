//! PortLand, implemented as table entries (R. Niranjan Mysore et al., SIGCOMM 2009; paper 004
//! §3.3.2 and appendix A).
//!
//! To other hosts, a host has a pseudo MAC (PMAC) that encodes its location: pod, position of its
//! edge switch, port, number. Its edge switch traps ARP and answers with PMACs. It replaces the
//! source of the host's frames with the host's PMAC, and the destination of frames delivered to the
//! host with the host's own address. All switches forward by PMAC prefix: core switches by pod, and
//! aggregation switches by pod and position. All other frames go up, spread by flow.
//!
//! There are some differences from the paper. The plan has all hosts and locations, so there is no
//! fabric manager and no location discovery. Failures are flooded ([`crate::link_state`]), not
//! reported to a manager. Where the paths to an edge switch deviate from the plan, switches get an
//! entry for that edge switch, like those that the paper's manager sends.

use crate::entries::{Entries, Match};
use crate::exceptions::{Part, exceptions};
use crate::live::{Live, Towards};
use crate::planned::Design;
use crate::site::{Plan, PlanHost, Site};
use crate::tree::{DOWN, Place, Tree};
use alloc::vec::Vec;
use axon_baselines::portland::plane::Location;
use axon_pipeline::{Action, Change, Field, MacKey, Modify, Target, Udlk, UdlkId};
use axon_wire::{MacAddr, PortNo};

/// Key of all entries: ingress port and destination MAC.
const KEY: UdlkId = UdlkId(0);
const DESTINATION: Field = Field::Bytes { first: 0, last: 5 };
/// Number of a host on its port. Each port has only one host.
const NUMBER: u16 = 1;
/// Maximum number of uplinks of a switch, equal to its number of hosts. The TCAM has 2048 entries,
/// and an edge switch needs about the square of this number.
const HALF_MAX: u32 = 40;

/// Networks that the program supports, as named in [`Unsuitable`](crate::Unsuitable).
pub(crate) const EXPECTED: &str =
    "a fat tree of switches with at most 80 ports, all hosts at its edge";

/// Tables of one switch.
#[derive(Clone, Debug)]
pub struct PortLand {
    tree: Tree,
}

impl PortLand {
    /// Returns the design for a fat tree, or `None` for any other network.
    pub fn of(plan: &Plan) -> Option<PortLand> {
        let tree = Tree::of(plan).filter(|tree| tree.half() <= HALF_MAX)?;
        let ports = plan.hosts.iter().all(|host| host.port.0 < 256);
        ports.then_some(PortLand { tree })
    }

    fn location(&self, edge: u32) -> Location {
        let position = edge % self.tree.half();
        Location { pod: self.tree.pod(edge) as u16, position: position as u8 }
    }

    /// Returns the PMAC of a host.
    pub fn pmac(&self, host: &PlanHost) -> MacAddr {
        self.location(host.node).pmac(host.port.0 as u8, NUMBER)
    }
}

impl Design for PortLand {
    fn entries(&self, site: &Site, live: Live<'_>) -> Vec<Change> {
        let towards = Towards::new(live, site.node);
        let mut switch = Switch { design: self, site, towards, entries: Entries::new(site) };
        let key = Udlk::new([Field::Ingress, DESTINATION]);
        switch.entries.push(Change::Udlk(KEY, Some(key)));
        match self.tree.place(site.node) {
            Place::Core => switch.core(),
            Place::Aggregation { pod, .. } => switch.aggregation(pod, live),
            Place::Edge { .. } => switch.edge(live),
        }
        switch.entries.into_changes()
    }

    fn mac_of(&self, target: &PlanHost) -> MacAddr {
        self.pmac(target)
    }
}

/// Builder of one switch's entries, lowest precedence first.
struct Switch<'a> {
    design: &'a PortLand,
    site: &'a Site,
    towards: Towards,
    entries: Entries,
}

impl Switch<'_> {
    fn core(&mut self) {
        let tree = self.design.tree;
        for pod in 0..2 * tree.half() {
            let of: Vec<u32> = (0..tree.edges()).filter(|&edge| tree.pod(edge) == pod).collect();
            // Only down, because frames from above to no edge switch must not go up again.
            let down = of.iter().find(|&&edge| self.towards.distance(edge) == DOWN);
            let usual = down.map_or(Vec::new(), |&edge| self.towards.ports(edge));
            let target = self.entries.one_of(&usual);
            self.entries.tcam(KEY, anywhere().pod(self.design.location(of[0])), target);
            let ways = of.into_iter().map(|edge| (edge, self.towards.ports(edge)));
            for (edge, way) in ways.filter(|(_, way)| *way != usual) {
                let target = self.entries.one_of(&way);
                self.entries.tcam(KEY, anywhere().at(self.design.location(edge)), target);
            }
        }
    }

    fn aggregation(&mut self, pod: u32, live: Live<'_>) {
        let up = self.up(live);
        let target = self.entries.one_of(&up);
        self.entries.tcam(KEY, anywhere().pmac(), target);
        let tree = self.design.tree;
        // Frames to this pod but to no edge switch would come back from the core.
        let own = self.design.location(self.site.node % tree.edges());
        self.entries.tcam(KEY, anywhere().pod(own), Target::Drop);
        for edge in (0..tree.edges()).filter(|&edge| tree.pod(edge) == pod) {
            let target = self.entries.one_of(&self.towards.ports(edge));
            self.entries.tcam(KEY, anywhere().at(self.design.location(edge)), target);
        }
        for (part, ports) in exceptions(tree, &self.towards, &up, |edge| tree.pod(edge) != pod) {
            let target = self.entries.one_of(&ports);
            self.entries.tcam(KEY, anywhere().part(self.design, part), target);
        }
    }

    /// Adds entries by port, because frames from hosts get their PMAC as source.
    fn edge(&mut self, live: Live<'_>) {
        let (own, design) = (self.site.node, self.design);
        let up = self.up(live);
        let hosts: Vec<PlanHost> = self.site.hosts().cloned().collect();
        let exceptions = exceptions(design.tree, &self.towards, &up, |edge| edge != own);
        for edge in (0..design.tree.edges()).filter(|&edge| self.towards.is_between(edge)) {
            // Only after link failures, on a path between two aggregation switches.
            if edge != own {
                let target = self.entries.one_of(&self.towards.ports(edge));
                self.entries.tcam(KEY, anywhere().at(design.location(edge)), target);
            }
        }
        for host in &hosts {
            let of = || from(host.port);
            let renamed = Modify::SetSource(design.pmac(host));
            let target = self.entries.one_of(&up);
            self.entries.tcam(KEY, of().pmac(), Action::from(target).with(renamed.clone()));
            for (part, ports) in &exceptions {
                let target = self.entries.one_of(ports);
                let action = Action::from(target).with(renamed.clone());
                self.entries.tcam(KEY, of().part(design, *part), action);
            }
            self.entries.tcam(KEY, of().at(design.location(own)), Target::Drop);
            for other in hosts.iter().filter(|other| other.port != host.port) {
                let target = self.entries.host(other.port);
                let action = Action::from(target).with(renamed.clone());
                self.entries.tcam(KEY, of().exactly(design.pmac(other)), action);
            }
        }
        for host in &hosts {
            let key = MacKey { bridge: 0, mac: design.pmac(host) };
            let target = self.entries.host(host.port);
            self.entries.push(Change::Mac(key, Some(target.into())));
        }
    }

    /// Returns the uplinks in service.
    fn up(&self, live: Live<'_>) -> Vec<PortNo> {
        let is_above = |other: u32| other > self.site.node;
        let up = live.neighbours(self.site.node).filter(|(_, other)| is_above(*other));
        up.map(|(port, _)| port).collect()
    }
}

/// Beginning of an entry: the ingress port, which precedes the address.
struct Ingress(Match);

fn anywhere() -> Ingress {
    Ingress(Match::new().any(2))
}

fn from(port: PortNo) -> Ingress {
    Ingress(Match::new().ingress(port))
}

impl Ingress {
    /// Matches any PMAC: the last three bits of its first octet are 110.
    fn pmac(self) -> Match {
        self.0.masked(&[0b110, 0, 0, 0, 0, 0], &[0b111, 0, 0, 0, 0, 0])
    }

    /// Matches all PMACs in a pod.
    fn pod(self, location: Location) -> Match {
        self.0.masked(&location.pmac(0, 0).0, &[0xff, 0xff, 0, 0, 0, 0])
    }

    /// Matches all PMACs on an edge switch.
    fn at(self, location: Location) -> Match {
        self.0.masked(&location.pmac(0, 0).0, &[0xff, 0xff, 0xff, 0, 0, 0])
    }

    /// Matches all PMACs in a part of the tree.
    fn part(self, design: &PortLand, part: Part) -> Match {
        match part {
            Part::Pod(pod) => self.pod(design.location(pod * design.tree.half())),
            Part::Edge(edge) => self.at(design.location(edge)),
        }
    }

    /// Matches exactly one PMAC.
    fn exactly(self, pmac: MacAddr) -> Match {
        self.0.exactly(&pmac.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::Net;
    use crate::planned::Planned;
    use crate::plans;
    use alloc::boxed::Box;
    use axon_wire::MacAddr;

    #[test]
    fn switches_see_pseudo_addresses_and_hosts_their_own() {
        let plan = plans::fat_tree(4);
        let design = PortLand::of(&plan).unwrap();
        let of = |_: &Site| design.clone();
        let mut net =
            Net::new(plan.clone(), |site| Box::new(Planned::new(site.clone(), of(&site))));
        for (from, to) in [(0, 1), (0, 2), (0, 9), (15, 0)] {
            let [a, b] = [from, to].map(|host: u32| &plan.hosts[host as usize]);
            assert_eq!(net.resolve(from, b.ip), Some(design.pmac(b)));
            net.datagram(from, to, 1).unwrap();
            let (last, before) = net.hops.split_last().unwrap();
            for hop in before {
                assert_eq!(MacAddr::destination_of(&hop.frame), Some(design.pmac(b)));
                assert_eq!(MacAddr::source_of(&hop.frame), Some(design.pmac(a)));
            }
            assert_eq!(MacAddr::destination_of(&last.frame), Some(b.mac));
            assert_eq!(MacAddr::source_of(&last.frame), Some(design.pmac(a)));
        }
    }

    #[test]
    fn a_pseudo_address_that_no_host_has_ends_at_the_first_switch_that_knows() {
        let plan = plans::fat_tree(4);
        let design = PortLand::of(&plan).unwrap();
        let of = |_: &Site| design.clone();
        let mut net =
            Net::new(plan.clone(), |site| Box::new(Planned::new(site.clone(), of(&site))));
        let host = &plan.hosts[0];
        let mut ends = |mac| {
            net.send(0, &crate::net::datagram(host.mac, mac, host.ip, host.ip, 1));
            assert_eq!(net.received, []);
            assert_eq!(net.drops.len(), 1, "{:?}", net.drops);
            net.hops.len()
        };
        let at = |pod, position| Location { pod, position }.pmac(200, 1);
        assert_eq!(ends(at(0, 0)), 0, "of the own edge switch");
        assert_eq!(ends(at(0, 1)), 2, "of its pod");
        assert_eq!(ends(at(0, 7)), 1, "of no edge switch of the pod");
        assert_eq!(ends(at(3, 1)), 4);
        assert_eq!(ends(at(9, 0)), 2, "of no pod");
        assert_eq!(ends(MacAddr::BROADCAST), 0);
    }

    #[test]
    fn a_position_that_is_not_there_ends_without_any_link_too() {
        let plan = plans::fat_tree(4);
        let design = PortLand::of(&plan).unwrap();
        let of = |_: &Site| design.clone();
        let mut net =
            Net::new(plan.clone(), |site| Box::new(Planned::new(site.clone(), of(&site))));
        for (node, port) in net.links() {
            net.link(node, port, false);
            for (from, pod) in [(0_u32, 3), (0, 0), (15, 0), (15, 3)] {
                for flow in 0..4 {
                    let host = &plan.hosts[from as usize];
                    let nobody = Location { pod, position: 7 }.pmac(0, 1);
                    let frame = crate::net::datagram(host.mac, nobody, host.ip, host.ip, flow);
                    net.send(from, &frame);
                    assert!(net.hops.len() <= 3 && net.drops.len() == 1, "{node} {port}");
                }
            }
            net.link(node, port, true);
        }
    }
}
