//! VL2-like fabric (A. Greenberg et al., "VL2: a scalable and flexible data center network",
//! SIGCOMM 2009, §4).
//!
//! Hosts have application addresses (AA), switches have locator addresses (LA), and the
//! intermediate switches share one additional LA. A packet to a host on another edge switch gets
//! two IPv4 headers, the inner one for the edge switch of the destination and the outer one for the
//! shared address. Each switch uses the flow hash to forward the packet to one of the nearest
//! intermediate switches. The intermediate switch removes the outer header and forwards the packet
//! to the edge switch, which removes the other header and delivers it. Each pair of edge switches
//! thereby uses the whole middle of the network, regardless of the layers in between (Valiant load
//! balancing, §4.2.2).
//!
//! There are some differences from the paper. Edge switches encapsulate, not agents in hosts. The
//! plan is the directory of AAs, and ARP is answered at the edge. Switches after the first see no
//! flow in the outer headers, only the hosts' MAC addresses, so they spread by pairs of hosts. An
//! intermediate switch does not look up a packet twice, so for each edge switch it has an entry
//! that matches both headers. Networks with more than three kinds of layers follow one pattern; see
//! `roles.rs`.

mod roles;

use crate::entries::{Entries, Match};
use crate::live::{Live, Towards};
use crate::planned::Design;
use crate::site::{Plan, PlanHost, Site};
use alloc::vec::Vec;
use axon_pipeline::{Action, Change, Field, FrameType, Modify, Target, Tunnel, Udlk, UdlkId};
use core::net::Ipv4Addr;
use roles::Roles;

/// Key for decapsulation: destination address of the outer header, and of the next header.
const KEY: UdlkId = UdlkId(0);
const OUTER: Field = Field::Bytes { first: 30, last: 33 };
const INNER: Field = Field::Bytes { first: 50, last: 53 };
/// Key for the filters that prevent hosts from sending to locators: ingress port and destination.
const ARRIVAL_KEY: UdlkId = UdlkId(1);
/// Length of both headers in bytes.
pub const OVERHEAD_BYTES: usize = 40;

/// Block of the LAs, 100.64.0.0/10 (RFC 6598).
const LOCATORS: u32 = 0x6440_0000;
const LOCATORS_MASK: u32 = 0xffc0_0000;
/// LA that is shared by all intermediate switches.
const ANYCAST: Ipv4Addr = Ipv4Addr::new(100, 127, 255, 254);
/// IP in IP (RFC 2003).
const IP_IN_IP: u8 = 4;
const TTL: u8 = 64;
/// Number of the tunnel to the middle. The tunnel to edge switch `n` is `n + 1`.
const TO_MIDDLE: u16 = 0;
/// Maximum number of edge switches, since a switch has 1024 tunnels and 8192 IPv4 entries.
const EDGES_MAX: usize = 1023;
const ADDRESSES_MAX: usize = 8192;

/// Networks that the program supports, as named in [`Unsuitable`](crate::Unsuitable).
pub(crate) const EXPECTED: &str = "layers of switches, hosts at the first, the last of which is as \
     far from all of the first: a fat tree or leaves and spines; at most 1023 edge switches, hosts \
     and edge switches at most 8191; no host in 100.64.0.0/10";

/// Tables of one switch.
#[derive(Clone, Debug)]
pub struct Vl2 {
    roles: Roles,
}

impl Vl2 {
    /// Returns the design for a network of layers, or `None` for any other network.
    pub(crate) fn of(plan: &Plan) -> Option<Vl2> {
        let roles = Roles::of(plan)?;
        let is_apart = |host: &PlanHost| host.ip.to_bits() & LOCATORS_MASK != LOCATORS;
        let fits = roles.edges.len() <= EDGES_MAX
            && roles.edges.len() + plan.hosts.len() < ADDRESSES_MAX
            && plan.hosts.iter().all(is_apart);
        fits.then_some(Vl2 { roles })
    }
}

/// Returns the LA of a node.
fn locator(node: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(LOCATORS + 1 + node)
}

impl Design for Vl2 {
    fn entries(&self, site: &Site, live: Live<'_>) -> Vec<Change> {
        let towards = Towards::new(live, site.node);
        let mut entries = Entries::new(site);
        let key = Udlk::of(FrameType::Ipv4, [OUTER, INNER]);
        entries.push(Change::Udlk(KEY, Some(key)));
        let middle = live.distances(self.roles.intermediates.iter().copied());
        let up = live.closer(site.node, &middle);
        let is_intermediate = self.roles.intermediates.contains(&site.node);
        for &edge in self.roles.edges.iter().filter(|&&edge| edge != site.node) {
            let target = entries.one_of(&towards.ports(edge));
            let onward = Action::from(target).with(Modify::DecrementTtl);
            entries.push(Change::Ipv4(locator(edge), Some(onward)));
            if is_intermediate {
                let both = Match::new().exactly(&ANYCAST.octets()).exactly(&locator(edge).octets());
                let out = Action::from(target).with(Modify::TunnelPop { shim_bytes: 0 });
                entries.tcam(KEY, both, out);
            }
        }
        if !is_intermediate {
            let target = entries.one_of(&up);
            let onward = Action::from(target).with(Modify::DecrementTtl);
            entries.push(Change::Ipv4(ANYCAST, Some(onward)));
            if self.roles.edges.contains(&site.node) {
                self.edge(site, target, &mut entries);
            }
        }
        entries.into_changes()
    }
}

impl Vl2 {
    /// Adds encapsulation and decapsulation to an edge switch.
    fn edge(&self, site: &Site, up: Target, entries: &mut Entries) {
        let own = locator(site.node);
        let tunnel = |destination| Tunnel {
            source: own,
            destination,
            protocol: IP_IN_IP,
            ttl: TTL,
            shim: Vec::new(),
        };
        entries.push(Change::Tunnel(TO_MIDDLE, Some(tunnel(ANYCAST))));
        for (number, &edge) in (TO_MIDDLE + 1..).zip(&self.roles.edges) {
            if edge != site.node {
                entries.push(Change::Tunnel(number, Some(tunnel(locator(edge)))));
            }
        }
        for host in &site.plan.hosts {
            let action = if host.node == site.node {
                let here = Action::from(entries.host(host.port));
                let both = Match::new().exactly(&own.octets()).exactly(&host.ip.octets());
                entries.tcam(KEY, both, here.clone().with(Modify::TunnelPop { shim_bytes: 0 }));
                here
            } else {
                let Ok(place) = self.roles.edges.binary_search(&host.node) else { continue };
                let number = TO_MIDDLE + 1 + place as u16;
                let inner = Action::from(up).with(Modify::TunnelPush(number));
                inner.with(Modify::TunnelPush(TO_MIDDLE))
            };
            entries.push(Change::Ipv4(host.ip, Some(action)));
        }
        entries.push(Change::Udlk(
            ARRIVAL_KEY,
            Some(Udlk::of(FrameType::Ipv4, [Field::Ingress, OUTER])),
        ));
        for host in site.hosts() {
            let locators = Match::new()
                .ingress(host.port)
                .masked(&LOCATORS.to_be_bytes(), &LOCATORS_MASK.to_be_bytes());
            entries.first(ARRIVAL_KEY, locators, Target::Drop);
        }
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

    fn address(frame: &[u8], at: usize) -> Ipv4Addr {
        Ipv4Addr::from(*frame[at..].first_chunk::<4>().unwrap())
    }

    #[test]
    fn packets_have_two_headers_up_to_the_middle_and_one_from_there() {
        let plan = plans::fat_tree(4);
        let design = Vl2::of(&plan).unwrap();
        let mut net = Net::new(plan.clone(), |site| Box::new(Planned::new(site, design.clone())));
        net.datagram(0, 13, 1).unwrap();
        let edge = locator(plan.hosts[13].node);
        let [first, second, third, fourth, last] = &net.hops[..] else { panic!("{:?}", net.hops) };
        for hop in [first, second] {
            assert_eq!(hop.frame.len(), last.frame.len() + OVERHEAD_BYTES);
            assert_eq!([address(&hop.frame, 30), address(&hop.frame, 50)], [ANYCAST, edge]);
        }
        for hop in [third, fourth] {
            assert_eq!(hop.frame.len(), last.frame.len() + 20);
            let to = plan.hosts[13].ip;
            assert_eq!([address(&hop.frame, 30), address(&hop.frame, 50)], [edge, to]);
        }
    }

    #[test]
    fn hosts_send_nothing_to_locators_themselves() {
        let plan = plans::fat_tree(4);
        let design = Vl2::of(&plan).unwrap();
        let mut net = Net::new(plan.clone(), |site| Box::new(Planned::new(site, design.clone())));
        let host = &plan.hosts[0];
        for to in [ANYCAST, locator(0), locator(3)] {
            let mut frame = crate::net::datagram(host.mac, host.mac, host.ip, to, 1);
            // Forges an inner header for an edge switch.
            frame[50..54].copy_from_slice(&locator(3).octets());
            net.send(0, &frame);
            assert_eq!((net.hops.len(), net.drops.len()), (0, 1), "{to}");
        }
    }

    #[test]
    fn flows_of_two_hosts_are_spread_over_the_middle() {
        let plan = plans::leaf_spine(4, 4);
        let design = Vl2::of(&plan).unwrap();
        let mut net = Net::new(plan, |site| Box::new(Planned::new(site, design.clone())));
        let mut used = BTreeSet::new();
        for flow in 0..64 {
            net.datagram(0, 7, flow).unwrap();
            used.insert(net.hops[1].node);
        }
        assert_eq!(used, (4..8).collect());
    }
}
