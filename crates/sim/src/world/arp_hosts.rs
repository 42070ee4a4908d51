//! Worlds whose hosts implement ARP only.

use crate::engine::station::StationNode;
use crate::host::arp_host::{ArpHost, ArpHostConfig, ArpHosts, AskPlan, AskStats};
use crate::world::{Setup, World};
use axon_fabric::model::Fabric;
use axon_wire::Span;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

impl World {
    /// Returns a world whose hosts implement ARP only, all just powered on. Each has its address
    /// from the fabric, or else the next free one of the pool.
    ///
    /// # Panics
    /// If the pool is too small for that, which the fabric's own check excludes.
    pub fn with_arp_hosts(fabric: &Fabric, seed: u64, how: ArpHosts) -> World {
        let mut fabric = fabric.clone();
        let taken: BTreeSet<Ipv4Addr> = fabric.hosts.iter().filter_map(|host| host.ip).collect();
        let (first, last) = (fabric.dhcp.pool_first.to_bits(), fabric.dhcp.pool_last.to_bits());
        let free = (first..=last).map(Ipv4Addr::from_bits);
        let mut free = free.filter(|ip| !taken.contains(ip));
        for host in fabric.hosts.iter_mut().filter(|host| host.ip.is_none()) {
            host.ip = Some(free.next().expect("the pool has an address for every host"));
        }
        World::build(&fabric, Setup { seed, ..Setup::default() }, Some(how))
    }

    pub(crate) fn new_arp_host(&self, index: usize) -> Option<ArpHost> {
        let ArpHosts { retry, announce_within } = self.arp_hosts?;
        let host = &self.fabric().hosts[index];
        let mut random = oorandom::Rand64::new(self.node_seed(self.host_station(index)).into());
        let after = |within: Span| Span::from_ticks(random.rand_range(0..within.ticks().max(1)));
        let announce_after = announce_within.map(after);
        Some(ArpHost::new(ArpHostConfig { mac: host.mac, ip: host.ip?, retry, announce_after }))
    }

    /// Returns an ARP host, if there is one with power.
    pub fn arp_host(&self, host: usize) -> Option<&ArpHost> {
        match &self.engine().station(self.host_station(host))?.node {
            StationNode::ArpHost(host) => Some(host),
            _ => None,
        }
    }

    /// Gives an ARP host addresses to resolve. Returns whether there is such a host.
    pub fn ask(&mut self, host: usize, plan: AskPlan) -> bool {
        let station = self.host_station(host);
        let StationNode::ArpHost(node) = &mut self.engine_mut().station_mut(station).node else {
            return false;
        };
        node.ask(plan);
        self.engine_mut().nudge(station);
        true
    }

    /// Returns the address resolution statistics of all hosts.
    pub fn ask_stats(&self) -> AskStats {
        let mut sum = AskStats::default();
        let hosts = 0..self.fabric().hosts.len();
        hosts.filter_map(|host| self.arp_host(host)).for_each(|host| sum.add(&host.stats()));
        sum
    }

    /// Returns whether every request is answered or given up.
    pub fn all_answered(&self) -> bool {
        let mut hosts = (0..self.fabric().hosts.len()).filter_map(|host| self.arp_host(host));
        hosts.all(ArpHost::is_done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::arp_host::TRIES_MAX;
    use crate::link::classes::Class;
    use crate::link::links::LinkId;
    use axon_wire::Time;

    /// Returns a world of two switches with two hosts each, all known to the controller.
    fn booted() -> World {
        let fabric = axon_fabric::samples::line(2, 2);
        let mut world = World::with_arp_hosts(&fabric, 1, ArpHosts::default());
        let known = world.run_until_true(Time::ZERO + Span::from_secs(3), |world| {
            let controller = world.controller().map(|node| node.controller());
            controller.is_some_and(|controller| controller.hosts().len() == 4)
        });
        assert!(known, "announcements teach the controller all hosts");
        world
    }

    fn plan(world: &World, targets: &[usize]) -> AskPlan {
        let targets = targets.iter().filter_map(|&host| world.address(host)).collect();
        AskPlan { targets, first_at: world.now(), interval: Span::from_millis(1) }
    }

    #[test]
    fn a_question_is_answered_once_and_its_answer_is_timed() {
        let mut world = booted();
        let questions = plan(&world, &[1, 2, 3]);
        assert!(world.ask(0, questions));
        assert!(!world.all_answered());
        world.run_for(Span::from_millis(100));
        let stats = world.ask_stats();
        assert_eq!((stats.asked, stats.answered, stats.requests, stats.failed), (3, 3, 3, 0));
        assert!(stats.waited_max > Span::ZERO && stats.waited_max < stats.waited, "{stats:?}");
        assert!(world.all_answered());
        assert_eq!(world.engine().check_conservation(), Ok(()));
        assert!(world.stale_routes().is_empty());
    }

    #[test]
    fn what_nobody_answers_is_asked_again_and_given_up() {
        let mut world = booted();
        let absent = Ipv4Addr::new(10, 0, 200, 200);
        world.ask(0, AskPlan { targets: vec![absent], ..plan(&world, &[]) });
        world.run_for(Span::from_secs(6));
        let stats = world.ask_stats();
        assert_eq!((stats.answered, stats.failed), (0, 1));
        assert_eq!(stats.requests, u64::from(TRIES_MAX));
    }

    #[test]
    fn links_count_what_they_carry_by_class() {
        let mut world = booted();
        world.count_classes();
        let questions = plan(&world, &[2]);
        world.ask(0, questions);
        world.run_for(Span::from_millis(10));
        assert!(world.all_answered());
        let bytes = |link| {
            let counted = world.class_bytes(link);
            [Class::Routed, Class::Arp, Class::Data].map(|class| counted.of(class))
        };
        assert_eq!(bytes(world.access_link(0)), [0, 128, 0], "a request and its answer");
        // The controller is at the first switch, so only the second half of the setup, in both
        // directions, crosses the link between the two.
        let [routed, arp, data] = bytes(LinkId(0));
        assert!(routed > 128 && arp == 0 && data == 0, "{routed} {arp} {data}");
        let [routed, ..] = bytes(world.controller_link());
        assert!(routed > 128, "a request to the controller and one from it: {routed}");
    }
}
