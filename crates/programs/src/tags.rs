//! Label switching with MPLS labels (RFC 3031; paper 004 §3.2.2).
//!
//! Each switch has its own label for each host. The edge switch of the source looks up the
//! destination by its IPv4 address and pushes the next switch's label for it. Every switch on the
//! path swaps its own label for that of the next one, and the last switch pops it and delivers the
//! packet. Labels are numbered from the plan, so each program can compute those of its neighbours
//! without label distribution.
//!
//! Each switch has one path to each host, and hosts are spread over the shortest paths. When links
//! fail, all programs recompute the paths ([`crate::link_state`]).

use crate::entries::Entries;
use crate::live::{Live, Towards};
use crate::planned::Design;
use crate::site::{Neighbour, Plan, Site};
use crate::spread::spread;
use alloc::vec::Vec;
use axon_pipeline::{Action, Change, Label, Modify, Target};
use axon_wire::PortNo;

/// First label that is not reserved (RFC 3032 section 2.1).
const FIRST: u32 = 16;
/// Maximum number of hosts, since the label table has 4096 entries.
const HOSTS_MAX: usize = 4096;

/// Networks that the program supports, as named in [`Unsuitable`](crate::Unsuitable).
pub(crate) const EXPECTED: &str = "any network with 1 to 4096 hosts";

/// Label tables of one switch.
#[derive(Clone, Copy, Debug)]
pub struct Tags {
    hosts: u32,
}

impl Tags {
    /// Returns the design for a network whose hosts fit into the tables, or `None` for any other
    /// network.
    pub(crate) fn of(plan: &Plan) -> Option<Tags> {
        let fits = (1..=HOSTS_MAX).contains(&plan.hosts.len());
        fits.then_some(Tags { hosts: plan.hosts.len() as u32 })
    }

    /// Returns the label of a host at `node`.
    fn label(self, node: u32, host: u32) -> Label {
        Label(FIRST + (host + node % self.hosts) % self.hosts)
    }
}

impl Design for Tags {
    fn entries(&self, site: &Site, live: Live<'_>) -> Vec<Change> {
        let towards = Towards::new(live, site.node);
        let is_edge = site.hosts().next().is_some();
        let mut entries = Entries::new(site);
        entries.refuse_labels(site);
        for (number, host) in (0..).zip(&site.plan.hosts) {
            let own = self.label(site.node, number);
            let (transit, pushed) = if host.node == site.node {
                let target = entries.host(host.port);
                (Action::from(target).with(Modify::MplsPop), Action::from(target))
            } else {
                let Some((port, next)) = next(site, &towards, number, host.node) else { continue };
                let label = self.label(next, number);
                let onward = || Action::from(Target::Interface(port.0));
                let swap = onward().with(Modify::MplsSwap(label));
                (swap, onward().with(Modify::MplsPush(label)))
            };
            entries.push(Change::Mpls(own.0, Some(transit)));
            if is_edge {
                entries.push(Change::Ipv4(host.ip, Some(pushed)));
            }
        }
        entries.into_changes()
    }
}

/// Returns the port of the only path to a host, and the node at its other end.
fn next(site: &Site, towards: &Towards, host: u32, target: u32) -> Option<(PortNo, u32)> {
    let ports = towards.ports(target);
    let &port = spread(&ports, site.node, host)?;
    match site.own().ports.get(port.index())?.neighbour {
        Neighbour::Node(next, _) => Some((port, next)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::Net;
    use crate::planned::Planned;
    use crate::plans;
    use alloc::boxed::Box;
    use axon_pipeline::Parsed;

    #[test]
    fn every_switch_on_the_way_swaps_its_label_for_that_of_the_next() {
        let plan = plans::fat_tree(4);
        let tags = Tags::of(&plan).unwrap();
        let mut net = Net::new(plan, |site| Box::new(Planned::new(site, tags)));
        net.datagram(0, 13, 1).unwrap();
        let labels: Vec<Option<u32>> =
            net.hops.iter().map(|hop| Parsed::ethernet(&hop.frame).label).collect();
        let expected: Vec<Option<u32>> =
            net.hops[1..].iter().map(|hop| Some(tags.label(hop.node, 13).0)).collect();
        assert_eq!(labels[..4], expected);
        assert_eq!(labels[4], None, "the last one pops it");
        let mut distinct = labels[..4].to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), 4, "labels are of one switch each");
        // Uniform model: each switch except the first has decremented the TTL.
        assert_eq!(net.received[0].1[22], 60);
    }
}
