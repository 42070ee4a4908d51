//! The nodes of a world and their cables, by their numbers in the fabric.

use crate::engine::Engine;
use crate::engine::dataplane::SwitchPlane;
use crate::engine::station::{Station, StationNode};
use crate::link::classes::ClassBytes;
use crate::link::links::{LinkId, WireEnd};
use crate::world::baselines::Baseline;
use crate::world::layout::Layout;
use crate::world::running::PingId;
use axon_agents::{Agent, AgentNode};
use axon_fabric::model::{End, Fabric, Wire};
use axon_node::probe::{ProbeId, ProbePlan};
use axon_node::{CommandError, Done, Request};
use axon_pipeline::ProgramNode;
use axon_simhost::apps::{AppId, FlowStats};
use axon_simhost::arp_host::{ArpHost, AskPlan, AskStats};
use axon_simhost::bridge::{Bridge, UP};
use axon_simhost::ping::{PingPlan, PingStats};
use axon_simhost::{Host, PORT};
use axon_switch::{ControllerNode, SwitchNode};
use axon_wire::{PortNo, Time};
use std::collections::BTreeSet;
use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Single port of the controller.
const CONTROLLER_PORT: PortNo = PortNo(0);

/// Nodes of a world on the stations and links of an engine.
pub struct Nodes {
    engine: Engine,
    layout: Layout,
    /// Stations that are bridges with hosts behind them.
    bridges: BTreeSet<usize>,
}

impl Nodes {
    /// Returns all stations and links of a fabric, without power.
    pub(crate) fn new(fabric: &Fabric, seed: u64, trace: Option<Box<dyn Write>>) -> Nodes {
        let (mut engine, layout) = (Engine::new(seed, trace), Layout::of(fabric));
        let names = fabric.switches.iter().map(|switch| &switch.name);
        let names = names.chain([&fabric.controller.name]);
        let names = names.chain(fabric.hosts.iter().map(|host| &host.name));
        let names = names.chain(fabric.agents.iter().map(|agent| &agent.name));
        engine.reserve(names.clone().count());
        for name in names {
            let station = engine.add_station(name);
            engine.station_mut(station).adapter_mut().profile_mut().hop_width = fabric.hop_width;
        }
        for switch in 0..fabric.switches.len() {
            engine.station_mut(switch).set_device(&fabric.device);
        }
        for host in 0..fabric.hosts.len() {
            engine.station_mut(layout.host_station(host)).set_host();
        }
        for link in &fabric.links {
            engine.connect(wire_end(link.a), wire_end(link.b), link.wire);
        }
        for (index, host) in fabric.hosts.iter().enumerate() {
            let near = WireEnd { station: layout.host_station(index), port: PORT };
            let far = WireEnd { station: host.switch, port: host.port };
            engine.connect(near, far, host.wire);
        }
        let near = WireEnd { station: layout.controller_station(), port: CONTROLLER_PORT };
        engine.connect(near, wire_end(fabric.controller.at), fabric.controller.wire);
        for (index, agent) in fabric.agents.iter().enumerate() {
            let station = layout.agent_station(index);
            let near = WireEnd { station, port: axon_agents::node::PORT };
            engine.station_mut(station).set_host();
            let far = wire_end(agent.at);
            engine.connect(near, far, agent.wire);
            if agent.kind.reads_queues() {
                let switch = engine.station_mut(far.station).adapter_mut();
                switch.port_mut(far.port).shows_queues = true;
            }
        }
        for bond in &fabric.bonds {
            let Some(host) = bond.host else { continue };
            for (port, &end) in (0..).map(PortNo).zip(&bond.members).skip(1) {
                let near = WireEnd { station: layout.host_station(host), port };
                engine.connect(near, wire_end(end), fabric.hosts[host].wire);
            }
        }
        Nodes { engine, layout, bridges: BTreeSet::new() }
    }

    /// Returns the underlying engine.
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Returns the number of the next incarnation of a station's node.
    pub(crate) fn next_incarnation(&self, station: usize) -> u64 {
        self.engine.station(station).map_or(1, Station::next_incarnation)
    }

    /// Returns the underlying engine mutably, to connect and disconnect links.
    pub(crate) fn engine_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// Returns the engine mutably, with the numbers of its stations and links.
    pub(crate) fn split(&mut self) -> (&mut Engine, &Layout) {
        (&mut self.engine, &self.layout)
    }

    /// Returns the numbers of stations and links.
    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    fn node(&self, station: usize) -> Option<&StationNode> {
        Some(&self.engine.station(station)?.node)
    }

    /// Returns a switch, if it has power.
    pub(crate) fn switch(&self, switch: usize) -> Option<&SwitchNode<SwitchPlane>> {
        match self.node(switch)? {
            StationNode::Switch(node) => Some(node),
            _ => None,
        }
    }

    /// Returns the controller, if it has power.
    pub(crate) fn controller(&self) -> Option<&ControllerNode<SwitchPlane>> {
        match self.node(self.layout.controller_station())? {
            StationNode::Controller(node) => Some(node),
            _ => None,
        }
    }

    /// Returns a switch of another network, or the node at its controller's station, if it has
    /// power.
    pub fn baseline(&self, station: usize) -> Option<&Baseline> {
        match self.node(station)? {
            StationNode::Baseline(node) => Some(node),
            _ => None,
        }
    }

    /// Returns a programmable switch, if it has power.
    pub fn program(&self, switch: usize) -> Option<&ProgramNode> {
        match self.baseline(switch)? {
            Baseline::Program(node) => Some(node),
            _ => None,
        }
    }

    /// Returns an agent, if it runs.
    pub fn agent(&self, agent: usize) -> Option<&AgentNode<dyn Agent + Send>> {
        match self.node(self.layout.agent_station(agent))? {
            StationNode::Agent(node) => Some(node),
            _ => None,
        }
    }

    /// Returns a host, if it has power.
    pub fn host(&self, host: usize) -> Option<&Host> {
        match self.node(self.layout.host_station(host))? {
            StationNode::Host(node) => Some(node),
            _ => None,
        }
    }

    /// Returns a host mutably. It acts on the changes at its next event.
    pub(crate) fn host_mut(&mut self, host: usize) -> Option<&mut Host> {
        match &mut self.engine.station_mut(self.layout.host_station(host)).node {
            StationNode::Host(node) => Some(node),
            _ => None,
        }
    }

    /// Calls `work` with a host and the simulated time, then lets the host act on it. Returns the
    /// result of `work`, or `None` if the host has no power.
    pub(crate) fn with_host<R>(
        &mut self,
        host: usize,
        work: impl FnOnce(&mut Host, Time) -> R,
    ) -> Option<R> {
        let now = self.engine.now();
        let result = work(self.host_mut(host)?, now);
        self.engine.nudge(self.layout.host_station(host));
        Some(result)
    }

    /// Returns an ARP host, if there is one with power.
    pub fn arp_host(&self, host: usize) -> Option<&ArpHost> {
        match self.node(self.layout.host_station(host))? {
            StationNode::ArpHost(host) => Some(host),
            _ => None,
        }
    }

    /// Returns all ARP hosts with power.
    pub fn arp_hosts(&self) -> impl Iterator<Item = &ArpHost> {
        (0..self.layout.hosts()).filter_map(|host| self.arp_host(host))
    }

    /// Gives an ARP host addresses to resolve. Returns whether there is such a host.
    pub fn ask(&mut self, host: usize, plan: AskPlan) -> bool {
        let station = self.layout.host_station(host);
        let StationNode::ArpHost(node) = &mut self.engine.station_mut(station).node else {
            return false;
        };
        node.ask(plan);
        self.engine.nudge(station);
        true
    }

    /// Returns the address resolution statistics of all ARP hosts.
    pub fn ask_stats(&self) -> AskStats {
        let mut sum = AskStats::default();
        self.arp_hosts().for_each(|host| sum.add(&host.stats()));
        sum
    }

    /// Returns the current IPv4 address of a host.
    pub(crate) fn address(&self, host: usize) -> Option<Ipv4Addr> {
        match self.arp_host(host) {
            Some(host) => Some(host.address()),
            None => self.host(host)?.address(),
        }
    }

    /// Returns the current IPv6 address of global scope of a host.
    pub fn address6(&self, host: usize) -> Option<Ipv6Addr> {
        self.host(host)?.address6()
    }

    /// Starts a ping from a host. Returns `None` if the host has no power.
    pub(crate) fn ping(&mut self, host: usize, plan: PingPlan) -> Option<PingId> {
        let number = self.with_host(host, |host, now| host.ping(plan, now))?;
        Some(PingId { host, number })
    }

    /// Returns the statistics of a ping so far; `None` if its host has restarted since.
    pub(crate) fn ping_stats(&self, id: PingId) -> Option<PingStats> {
        self.host(id.host)?.ping_stats(id.number)
    }

    /// Returns the statistics of a host's application.
    pub(crate) fn flow_stats(&self, host: usize, id: AppId) -> Option<&FlowStats> {
        self.host(host)?.flow_stats(id)
    }

    /// Starts a plan of probes on a switch. Returns `None` if the switch has no power.
    ///
    /// # Errors
    /// The fault of the plan.
    pub fn probe(
        &mut self,
        switch: usize,
        plan: ProbePlan,
    ) -> Option<Result<ProbeId, CommandError>> {
        let done = self.engine.command(switch, Request::Probe(plan))?;
        Some(done.map(|done| match done {
            Done::Probe(id) => id,
            Done::Rekeyed | Done::Tables(_) | Done::Policy(_) => {
                unreachable!("a plan of probes is answered by its number")
            }
        }))
    }

    /// Moves a host to another port at the same instant.
    ///
    /// # Panics
    /// If the port is in use.
    pub(crate) fn move_host(&mut self, host: usize, to: End) {
        self.attach(host, wire_end(to));
    }

    /// Connects two free ports of switches by a new link.
    ///
    /// # Panics
    /// If a port is in use.
    pub fn connect(&mut self, a: End, b: End, wire: Wire) -> LinkId {
        self.engine.connect(wire_end(a), wire_end(b), wire)
    }

    /// Moves the cables of these hosts to a new bridge, whose own cable goes to a port of a switch,
    /// possibly that of one of them. A private bridge forwards nothing between them.
    ///
    /// # Panics
    /// If the port is used by something else.
    pub fn put_behind(&mut self, hosts: &[usize], at: End, is_private: bool) {
        let wire = self.engine.links()[self.layout.access_link(hosts[0]).0].wire;
        let station = self.engine.add_station(&format!("b{}", self.bridges.len() + 1));
        for (&host, port) in hosts.iter().zip(1..) {
            self.attach(host, WireEnd { station, port: PortNo(port) });
        }
        self.engine.connect(WireEnd { station, port: UP }, wire_end(at), wire);
        let bridge = Bridge::new(hosts.len(), is_private);
        self.engine.power_on(station, StationNode::Other(Box::new(bridge)));
        self.bridges.insert(station);
    }

    fn attach(&mut self, host: usize, far: WireEnd) {
        let near = WireEnd { station: self.layout.host_station(host), port: PORT };
        self.engine.reconnect(self.layout.access_link(host), near, far);
    }

    /// Returns the end at which a frame from this port arrives, if the link carries frames in both
    /// directions. There are no routes over a link that is silent in one direction. A frame from a
    /// host behind a bridge arrives beyond the bridge.
    pub(crate) fn far_end(&self, from: WireEnd) -> Option<WireEnd> {
        let (id, side) = self.engine.link_at(from)?;
        let link = &self.engine.links()[id.0];
        let far = (link.carrier && link.silent == [false; 2]).then(|| link.ends[1 - side])?;
        match self.bridges.contains(&far.station) && far.port != UP {
            true => self.far_end(WireEnd { station: far.station, port: UP }),
            false => Some(far),
        }
    }

    /// Returns whether a host is behind a bridge.
    pub(crate) fn is_behind(&self, bridge: usize, host: usize) -> bool {
        let near = WireEnd { station: self.layout.host_station(host), port: PORT };
        self.bridges.contains(&bridge)
            && self.engine.link_at(near).is_some_and(|(id, side)| {
                self.engine.links()[id.0].ends[1 - side].station == bridge
            })
    }

    /// Returns the bytes that a link has carried since counting began, in both directions together.
    pub fn class_bytes(&self, link: LinkId) -> ClassBytes {
        let mut sum = ClassBytes::default();
        for side in 0..2 {
            if let Some(counted) = self.engine.class_bytes(link, side) {
                sum.add(counted);
            }
        }
        sum
    }
}

/// Returns a port of a switch as an end of a link.
pub(crate) fn wire_end(end: End) -> WireEnd {
    WireEnd { station: end.switch, port: end.port }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::classes::Class;
    use crate::world::{Setup, World};
    use axon_simhost::arp_host::{ArpHosts, TRIES_MAX};
    use axon_wire::Span;

    /// Returns a world of two switches with two hosts each, all known to the controller.
    fn booted() -> World {
        let fabric = axon_fabric::samples::line(2, 2);
        let setup = Setup { seed: 1, arp_hosts: Some(ArpHosts::default()), ..Setup::default() };
        let mut world = World::begin(&fabric, setup);
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
        assert!(world.nodes_mut().ask(0, questions));
        assert!(!world.nodes().arp_hosts().all(ArpHost::is_done));
        world.run_for(Span::from_millis(100));
        let stats = world.nodes().ask_stats();
        assert_eq!((stats.asked, stats.answered, stats.requests, stats.failed), (3, 3, 3, 0));
        assert!(stats.waited_max > Span::ZERO && stats.waited_max < stats.waited, "{stats:?}");
        assert!(world.nodes().arp_hosts().all(ArpHost::is_done));
        assert_eq!(world.engine().check_conservation(), Ok(()));
        assert!(world.truth().stale_routes().is_empty());
    }

    #[test]
    fn what_nobody_answers_is_asked_again_and_given_up() {
        let mut world = booted();
        let absent = Ipv4Addr::new(10, 0, 200, 200);
        let plan = AskPlan { targets: vec![absent], ..plan(&world, &[]) };
        world.nodes_mut().ask(0, plan);
        world.run_for(Span::from_secs(6));
        let stats = world.nodes().ask_stats();
        assert_eq!((stats.answered, stats.failed), (0, 1));
        assert_eq!(stats.requests, u64::from(TRIES_MAX));
    }

    #[test]
    fn links_count_what_they_carry_by_class() {
        let mut world = booted();
        world.count_classes();
        let questions = plan(&world, &[2]);
        world.nodes_mut().ask(0, questions);
        world.run_for(Span::from_millis(10));
        assert!(world.nodes().arp_hosts().all(ArpHost::is_done));
        let bytes = |link| {
            let counted = world.nodes().class_bytes(link);
            [Class::Routed, Class::Arp, Class::Data].map(|class| counted.of(class))
        };
        assert_eq!(bytes(world.layout().access_link(0)), [0, 128, 0], "a request and its answer");
        // The controller is at the first switch, so only the second half of the setup, in both
        // directions, crosses the link between the two.
        let [routed, arp, data] = bytes(LinkId(0));
        assert!(routed > 128 && arp == 0 && data == 0, "{routed} {arp} {data}");
        let [routed, ..] = bytes(world.layout().controller_link());
        assert!(routed > 128, "a request to the controller and one from it: {routed}");
    }
}
