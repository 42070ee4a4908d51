//! Routes that a controller chooses for a fabric, planned without a simulator or a lab.
//!
//! No frame is sent: the controller receives the messages of all switches at once, as function
//! calls, and the routes that it chooses are in its registry.

use crate::assemble;
use crate::model::{End, Fabric, Link};
use axon_controller::Controller;
use axon_controller::flows::Route;
use axon_controller::router::{Router, Step};
use axon_controller::topology::SwitchIndex;
use axon_controller::{Effect, Effects};
use axon_wire::message::{ArpRequest, ControllerHello, Item, Peer, PortState, Role, Target};
use axon_wire::vlan::VlanId;
use axon_wire::{Hops, Incarnation, Layer, PortNo, Span, Time};
use oorandom::Rand64;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

/// IPv4 address of the first host; need not be in the subnet's pool.
const FIRST_IP: u32 = 0x0a10_0000;
/// Maximum rounds of a router that improves earlier choices.
const ROUNDS_MAX: u64 = 40;

/// A route and its backup, if any: the links of the backup, nearest first, and its layer.
pub type RouteAndBackup<'a> = (&'a Route, Option<(&'a [Step], Layer)>);

/// A controller, and the fabric that it has learned from the messages of all its switches.
#[derive(Clone, Debug)]
pub struct Planned<'a> {
    fabric: &'a Fabric,
    controller: Controller,
    /// By switch: the port states that it last reported, and the version of that report.
    ports: Vec<(Vec<PortState>, u64)>,
    now: Time,
    out: Effects,
    /// Number of the controller's last request for acknowledgements.
    awaited: Option<u64>,
}

fn incarnation(switch: usize) -> Incarnation {
    Incarnation { node: assemble::switch_id(switch), number: 1 }
}

fn ip(host: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from(FIRST_IP + host as u32))
}

impl<'a> Planned<'a> {
    /// Creates a controller with this router, to which every switch has reported its neighbours and
    /// its hosts, in the order of the fabric. `seed` is that of the controller.
    pub fn new(fabric: &'a Fabric, router: Box<dyn Router>, seed: u64) -> Planned<'a> {
        let config = assemble::controller_config(fabric, 1, seed);
        let hops_max = config.plane.hops_max();
        let mut controller = Controller::with_router(&config.control, hops_max, router);
        let (now, out) = (Time::ZERO, Vec::new());
        let End { switch, port } = fabric.controller.at;
        let attached = Some((assemble::switch_id(switch), port));
        controller.attached(PortNo(0), attached);
        let mut ports = vec![(Vec::new(), 0); fabric.switches.len()];
        for link in &fabric.links {
            for (here, there) in [(link.a, link.b), (link.b, link.a)] {
                let (node, role) = (assemble::switch_id(there.switch), Role::Switch);
                let peer = Peer::Axon { node, port: there.port, role };
                ports[here.switch].0.push(PortState { port: here.port, peer });
            }
        }
        let mut planned = Planned { fabric, controller, ports, now, out, awaited: None };
        for switch in 0..planned.ports.len() {
            planned.hello(switch);
        }
        for (index, host) in fabric.hosts.iter().enumerate() {
            let seen = Item::HostSeen { port: host.port, mac: host.mac, ips: vec![ip(index)] };
            planned.controller.item(
                now,
                incarnation(host.switch),
                (VlanId::NONE, seen),
                &mut planned.out,
            );
        }
        planned.carry_out();
        planned
    }

    /// Takes the controller's effects, and records the number of its last request for
    /// acknowledgements.
    fn carry_out(&mut self) -> Vec<Effect> {
        let out = std::mem::take(&mut self.out).into_iter();
        let out = out.map(|(_, effect)| effect).collect::<Vec<_>>();
        let mut numbers = out.iter().filter_map(|effect| match effect {
            Effect::AwaitAcknowledged { number, .. } => Some(*number),
            _ => None,
        });
        self.awaited = numbers.next_back().or(self.awaited);
        out
    }

    fn hello(&mut self, switch: usize) {
        let (ports, version) = &mut self.ports[switch];
        *version += 1;
        let hello = ControllerHello { version: *version, nonce: 0, ports: ports.clone() };
        let reverse = Hops::to_control();
        self.controller.controller_hello(
            self.now,
            incarnation(switch),
            reverse,
            hello,
            &mut self.out,
        );
    }

    /// Returns the fabric.
    pub const fn fabric(&self) -> &'a Fabric {
        self.fabric
    }

    /// Returns the controller.
    pub const fn controller(&self) -> &Controller {
        &self.controller
    }

    /// Returns the controller, for queries that change its state.
    pub const fn controller_mut(&mut self) -> &mut Controller {
        &mut self.controller
    }

    /// Returns the controller's clock, counted from its start.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// Sends one host's ARP request for another, both by index. If there is a path, the controller
    /// installs routes in both directions. Returns whether it has answered.
    ///
    /// # Panics
    /// If there are no such hosts.
    pub fn ask(&mut self, source: usize, target: usize) -> bool {
        let host = &self.fabric.hosts[source];
        let request = ArpRequest {
            id: 7,
            port: host.port,
            source_mac: host.mac,
            source_ip: Some(ip(source)),
            target: Target::Ip(ip(target)),
            hint: None,
        };
        let before = self.controller.counters().arp_answered;
        self.controller.arp_request(self.now, incarnation(host.switch), request, &mut self.out);
        self.carry_out();
        self.controller.counters().arp_answered > before
    }

    /// Advances the clock until the router has no more paths to improve, or has had 40 rounds.
    pub fn settle(&mut self) {
        // A round has a batch each heartbeat, and ten heartbeats before the next.
        let batches = self.controller.flows().len() as u64 / 1_000 + 20;
        let end = self.now + self.fabric.timers.heartbeat * (batches * ROUNDS_MAX);
        while let Some(deadline) = self.controller.deadline().filter(|&at| at <= end) {
            self.now = self.now.max(deadline);
            self.controller.timeout(self.now, &mut self.out);
            self.carry_out();
        }
        self.now += Span::from_secs(60);
    }

    /// Acknowledges all that the switches were sent, and advances until frames on old paths have
    /// left the fabric. Returns whether the controller was waiting for that.
    pub(crate) fn drain(&mut self) -> bool {
        let Some(number) = self.awaited.take().filter(|_| self.controller.is_draining()) else {
            return false;
        };
        self.controller.acknowledged(self.now, number);
        self.settle();
        true
    }

    /// Takes a link down: both ends report it. Returns the controller's commands.
    pub fn cut(&mut self, link: &Link) -> Vec<Effect> {
        let mut out = self.lose(link.a);
        out.extend(self.lose(link.b));
        out
    }

    /// Reports that the link at one port of a switch is down. Returns the controller's commands.
    pub(crate) fn lose(&mut self, end: End) -> Vec<Effect> {
        self.ports[end.switch].0.retain(|state| state.port != end.port);
        self.hello(end.switch);
        self.carry_out()
    }

    /// Returns the route from one host to another, by index, if the controller has chosen one.
    pub fn route(&self, from: usize, to: usize) -> Option<&Route> {
        self.route_and_backup(from, to).map(|(route, _)| route)
    }

    /// Returns the route from one host to another, by index, with its backup. [`Planned::settle`]
    /// lets the controller find the backups.
    pub fn route_and_backup(&self, from: usize, to: usize) -> Option<RouteAndBackup<'_>> {
        let (hosts, flows) = (self.controller.hosts(), self.controller.flows());
        let index = |host: usize| hosts.by_mac(self.fabric.hosts[host].mac);
        let source = hosts.get(index(from)?)?;
        let found = flows.find(source.place(), index(to)?)?;
        Some((flows.get(found)?, self.controller.vlans().plain().backup(found)))
    }

    /// Returns the connected component of each switch of the fabric, as the lowest switch in it, in
    /// the controller's view.
    pub(crate) fn parts(&self) -> Vec<usize> {
        let graph = self.controller.graph();
        let mut lowest: Vec<usize> = (0..self.fabric.switches.len()).collect();
        let mut changed = true;
        while changed {
            changed = false;
            for (at, _) in graph.switches() {
                for edge in graph.edges(at) {
                    let (here, there) = (self.switch(at), self.switch(edge.to));
                    changed |= lowest[there] < lowest[here];
                    lowest[here] = lowest[here].min(lowest[there]);
                }
            }
        }
        lowest
    }

    /// Returns the index in the fabric of a switch of the controller's graph.
    pub fn switch(&self, index: SwitchIndex) -> usize {
        // Identities count from one.
        self.controller.graph().switch(index).incarnation.node.0 as usize - 1
    }
}

/// Draws distinct pairs of `hosts` hosts at random, by index, the lower first, in order; all pairs
/// if `pairs` is that many or more.
pub fn draw_pairs(hosts: usize, pairs: usize, seed: u64) -> Vec<(usize, usize)> {
    let all = hosts.saturating_mul(hosts.saturating_sub(1)) / 2;
    let mut random = Rand64::new(u128::from(seed));
    if all <= pairs.saturating_mul(2) {
        let mut left = pairs.min(all) as u64;
        let each = (0..hosts).flat_map(|a| (a + 1..hosts).map(move |b| (a, b)));
        // Each pair is taken with probability (pairs still needed) / (pairs left).
        let drawn = each.zip(0..all as u64).filter(|&(_, before)| {
            let taken = random.rand_range(0..all as u64 - before) < left;
            left -= u64::from(taken);
            taken
        });
        return drawn.map(|(pair, _)| pair).collect();
    }
    let mut drawn = BTreeSet::new();
    while drawn.len() < pairs {
        let a = random.rand_range(0..hosts as u64) as usize;
        let b = random.rand_range(0..hosts as u64) as usize;
        if a != b {
            drawn.insert((a.min(b), a.max(b)));
        }
    }
    drawn.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::sample;
    use axon_controller::router::RouterKind;
    use axon_prove::{Dependencies, Verdict};
    use axon_wire::Priority;

    #[test]
    fn hosts_that_ask_get_routes_and_a_cut_link_moves_them() {
        let fabric = sample("torus: { rows: 3, cols: 4 }");
        let router = fabric.controller.router.build(1, 1);
        let mut planned = Planned::new(&fabric, router, 1);
        assert!(planned.route(0, 1).is_none());
        assert!(planned.ask(0, 1));
        let first = |planned: &Planned<'_>, from, to| {
            let step = planned.route(from, to).unwrap().steps().next().unwrap();
            (planned.switch(step.switch), step.egress)
        };
        let (switch, port) = first(&planned, 0, 1);
        assert_eq!(switch, fabric.hosts[0].switch);
        let end = End { switch, port };
        let link = fabric.links.iter().find(|link| link.a == end || link.b == end).unwrap();
        assert!(!planned.cut(link).is_empty());
        assert_ne!(first(&planned, 0, 1), (switch, port));
        assert!(planned.route(1, 0).is_some() && planned.route(0, 2).is_none());
    }

    #[test]
    fn whatever_is_cut_the_controller_leaves_no_up_and_down_routes_with_a_cycle() {
        let fabric = sample("torus: { rows: 4, cols: 4 }");
        for seed in 0..8 {
            let mut planned = Planned::new(&fabric, RouterKind::UpDown.build(seed, 1), seed);
            for (a, b) in draw_pairs(16, 120, seed) {
                assert!(planned.ask(a, b));
            }
            let mut random = Rand64::new(u128::from(seed));
            let mut links: Vec<usize> = (0..fabric.links.len()).collect();
            while !links.is_empty() {
                let at = random.rand_range(0..links.len() as u64) as usize;
                planned.cut(&fabric.links[links.swap_remove(at)]);
                let mut all = Dependencies::default();
                for (index, route) in planned.controller().flows().iter() {
                    all.add(index.0, Priority::ZERO, route.steps());
                }
                let verdict = all.verdict();
                assert!(matches!(verdict, Verdict::Free(_)), "seed {seed}: {verdict:?}");
            }
            assert!(planned.controller().flows().is_empty(), "every switch is alone");
        }
    }

    #[test]
    fn pairs_are_drawn_once_each_and_all_if_that_many_are_wanted() {
        for (hosts, pairs, wanted) in
            [(10, 3, 3), (10, 44, 44), (10, 45, 45), (10, 99, 45), (1, 5, 0)]
        {
            let drawn = draw_pairs(hosts, pairs, 7);
            let distinct: BTreeSet<_> = drawn.iter().copied().collect();
            assert_eq!((drawn.len(), distinct.len()), (wanted, wanted));
            assert!(drawn.iter().all(|&(a, b)| a < b && b < hosts));
        }
        assert_ne!(draw_pairs(100, 5, 1), draw_pairs(100, 5, 2));
        assert_eq!(draw_pairs(100, 5, 1), draw_pairs(100, 5, 1));
    }
}
