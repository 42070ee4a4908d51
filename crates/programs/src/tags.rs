//! Tag switching with labels of MPLS (RFC 3031; paper 004 §3.2.2).
//!
//! In plain English: each switch has a label of its own for each host. The edge switch of the
//! source finds the destination by its IPv4 address and pushes the label that the next switch
//! has for it; every switch on the way swaps its own label for that of the next one; the last
//! pops it and delivers. Labels are numbered from the plan, so each program knows those of its
//! neighbours and none needs to be distributed.
//!
//! There is one path to each host from each switch; hosts are spread over the shortest ones. When
//! links fail, all programs compute the paths anew ([`crate::link_state`]).

use crate::entries::Entries;
use crate::live::{Live, Towards};
use crate::planned::Design;
use crate::site::{Neighbour, Plan, Site};
use crate::spread::spread;
use alloc::vec::Vec;
use axon_pipeline::{Action, Change, Label, Modify, Target};
use axon_wire::PortNo;

/// The first label that is free to use (RFC 3032 section 2.1).
const FIRST: u32 = 16;
/// The most hosts: the label table has 4096 entries.
const HOSTS_MAX: usize = 4096;

/// What a network is to be.
pub const EXPECTED: &str = "any network with 1 to 4096 hosts";

/// The label tables of one switch.
#[derive(Clone, Copy, Debug)]
pub struct Tags {
    hosts: u32,
}

impl Tags {
    /// For a network whose hosts the tables hold; `None` for another.
    pub fn of(plan: &Plan) -> Option<Tags> {
        let fits = (1..=HOSTS_MAX).contains(&plan.hosts.len());
        fits.then_some(Tags { hosts: plan.hosts.len() as u32 })
    }

    /// The label that `node` has for a host.
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

/// The port of the one path to a host, and the node there.
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
        // The uniform model: each switch has taken one off the TTL, the first one none.
        assert_eq!(net.received[0].1[22], 60);
    }
}
