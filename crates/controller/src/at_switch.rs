//! A controller within one switch, in a fabric without a central controller (thesis 000 §3.2.3).
//!
//! Every switch has a full controller: graph, host table, policy, router. The graph is that of the
//! fabric file, without links that their ends have reported to be down. The controller decides
//! about the routes of its own switch's ports only. All have the same graph and the same router, so
//! the two ends of a flow choose matching routes independently. Switches therefore never exchange
//! routes: the source switch queries for the host ([`ArpTarget`]), the target switch confirms its
//! location ([`ArpReply`]), and each fills in the route that starts at itself. No switch can set a
//! route of another one.

use super::conductor::Controller;
use super::hosts::{Host, Learned, Place};
use crate::config::{ControllerConfig, StaticTopology};
use alloc::vec::Vec;
use axon_link::effect::Effect;
use axon_node::Stored;
use axon_wire::message::{ArpReply, ArpTarget, Item};
use axon_wire::{Hops, Incarnation, NodeId, Time};
use core::net::IpAddr;

impl Controller {
    /// Creates the controller of the switch in `config`, with the topology of the fabric file. Its
    /// routes have at most `hops_max` hops.
    pub fn at_switch(
        config: &ControllerConfig,
        topology: &StaticTopology,
        hops_max: usize,
    ) -> Controller {
        let router = config.router.build(config.node.seed, config.layers);
        let router = super::router::Explicit::over(router, &topology.paths);
        let mut controller = Controller::with_router(config, hops_max, router);
        for switch in &topology.switches {
            controller.fwd.net.graph_mut().assume(switch.node, &switch.ports);
        }
        controller.fwd.net.fabric_mut().set_home(config.node.incarnation.node);
        let hosts: Vec<Stored> = topology.hosts.iter().cloned().map(Stored::Host).collect();
        controller.restore(Time::ZERO, &hosts, &mut Vec::new());
        // This state is in the file; it is neither a change nor stored.
        controller.keep(&mut Vec::new());
        controller
    }

    /// Returns a path to another switch's control plane over links that their nearer ends have
    /// reported, to reconnect parts of a fabric that were cut off from each other.
    pub fn path_for_greeting(&self, to: NodeId) -> Option<Hops> {
        self.fwd.net.fabric().path_for_greeting(to)
    }

    /// Phase II at the target switch: another switch queries for a local host on behalf of one of
    /// its hosts. Chooses the reverse route. `reverse` leads to that switch.
    ///
    /// Returns the message for the edge; `None` if the request is refused.
    pub fn target_asked(
        &mut self,
        now: Time,
        (from, reverse): (Incarnation, Hops),
        m: ArpTarget,
        out: &mut Vec<Effect>,
    ) -> Option<ArpTarget> {
        let switch = self.admit(now, from, out)?;
        let home = self.fwd.net.fabric().home()?;
        let place = Place { switch, port: m.source_port };
        let here = Place { switch: home, port: m.target_port };
        let Learned::Here(source) = self.fwd.requested(now, place, m.source_mac, out) else {
            self.counters.arp_misplaced += 1;
            return None;
        };
        // Ownership of another host's address is decided by host reports.
        let is_free = |ip: &IpAddr| self.fwd.net.hosts().by_ip(*ip).is_none();
        if let Some(ip) = m.source_ip.filter(is_free) {
            self.addresses.own(&mut self.fwd, now, source, ip, out);
        }
        let own = |ip: &IpAddr| self.fwd.net.hosts().by_ip(*ip) == Some(source);
        let source_ip = m.source_ip.filter(own);
        let target = self.fwd.net.host_at(here, m.target_mac)?;
        if self.fwd.net.needs_probe(target, out) {
            return None;
        }
        let is_allowed = self.fwd.routes.origin(&self.fwd.net, here, target, source).is_some()
            && self.fwd.routes.origin(&self.fwd.net, place, source, target).is_some();
        if !is_allowed {
            self.counters.arp_denied += 1;
            return None;
        }
        let back = self.fwd.route_here(now, here, source, target, out)?;
        let back = self.fwd.routes.flows().get(back)?;
        let (number, to_source, source_by_pair) =
            (back.number, back.to_install(), back.source.is_some());
        self.counters.arp_answered += 1;
        let stamp = self.fwd.routes.stamp(number);
        let m = ArpTarget { to_source, source_by_pair, source_ip, ..m };
        Some(ArpTarget { source_switch: from, stamp, answer_by: reverse, ..m })
    }

    /// Phase IV at the source switch: the target switch has completed its half. Chooses the forward
    /// route. Returns the message for the edge; `None` if the host is not there.
    pub fn target_found(
        &mut self,
        now: Time,
        from: Incarnation,
        m: ArpReply,
        out: &mut Vec<Effect>,
    ) -> Option<ArpReply> {
        let switch = self.admit(now, from, out)?;
        let place = Place { switch: self.fwd.net.fabric().home()?, port: m.source_port };
        let source = self.fwd.net.host_at(place, m.source_mac)?;
        let target = self.fwd.net.hosts().by_mac(m.target_mac)?;
        if self.fwd.net.hosts().get(target).map(Host::place)?.switch != switch {
            self.counters.arp_misplaced += 1;
            return None;
        }
        let route = self.fwd.route_here(now, place, target, source, out)?;
        let route = self.fwd.routes.flows().get(route)?;
        let (number, to_target, target_by_pair) =
            (route.number, route.to_install(), route.source.is_some());
        Some(ArpReply { stamp: self.fwd.routes.stamp(number), to_target, target_by_pair, ..m })
    }

    /// Returns the reports of this switch that another switch needs after a (new) greeting: hosts
    /// first, then their groups.
    pub fn reports(&self) -> Vec<Item> {
        let Some(home) = self.fwd.net.fabric().home() else { return Vec::new() };
        let here = |host: &&Host| host.place().switch == home && !host.is_provisional();
        let hosts = self.fwd.net.hosts().iter().map(|(_, host)| host).filter(here);
        let seen = hosts.map(|host| Item::HostSeen {
            port: host.place().port,
            mac: host.mac,
            ips: host.ips.clone(),
        });
        let here = self.groups.members_at(home);
        let joined = here.map(|(group, mac, at)| Item::GroupMember {
            port: at.port,
            mac,
            group,
            joined: true,
        });
        seen.chain(joined).collect()
    }
}
