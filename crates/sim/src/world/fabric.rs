//! A running fabric: switches, controller and hosts on an [`Engine`].
//!
//! Everything starts at time zero. The seed determines the noise of links and the random numbers of
//! hosts; those of switches and the controller derive from it, their number and their incarnation.

use crate::engine::dataplane::SwitchPlane;
use crate::engine::{Engine, Step};
use crate::link::links::{Link, LinkChange, LinkId};
use crate::world::builder::{self, Builder};
use crate::world::layout::Layout;
use crate::world::nodes::{Nodes, wire_end};
use crate::world::ready::Readiness;
use crate::world::results::Flows;
use crate::world::running::{PingId, Running};
use crate::world::setup::Setup;
use crate::world::traffic;
use crate::world::truth::Truth;
use axon_fabric::model::{End, Fabric, FaultKind, Network, Policy};
use axon_simhost::Host;
use axon_simhost::apps::{AppId, FlowStats};
use axon_simhost::ping::{PingPlan, PingStats};
use axon_switch::{ControllerNode, SwitchNode};
use axon_wire::{Span, Time};
use std::net::Ipv4Addr;

/// Running fabric with its hosts.
pub struct World {
    fabric: Fabric,
    nodes: Nodes,
    builder: Builder,
    /// Started flows of the fabric's traffic.
    flows: Vec<Running>,
}

/// Start of a world and of its nodes.
impl World {
    /// Returns a world in which everything was just powered on. The fabric's own faults are
    /// planned; [`World::inject`] adds others.
    pub fn new(fabric: &Fabric, seed: u64) -> World {
        World::begin(fabric, Setup { seed, ..Setup::default() })
    }

    /// Returns a world with the settings in `setup`.
    ///
    /// # Panics
    /// If the fabric needs what its data plane cannot do; see [`axon_fabric::needs`]. If its
    /// program is in Python and there is nothing to start it.
    pub fn begin(fabric: &Fabric, mut setup: Setup) -> World {
        let mut fabric = fabric.clone();
        if setup.arp_hosts.is_some() {
            builder::fix_addresses(&mut fabric);
        }
        axon_fabric::program::fix_addresses(&mut fabric);
        let mut nodes = Nodes::new(&fabric, setup.seed, setup.trace.take());
        for fault in &fabric.faults {
            nodes.engine_mut().plan(Time::ZERO + fault.at, fault.what);
        }
        setup.capture.iter().for_each(|&port| nodes.engine_mut().capture(port));
        let builder = Builder::new(&fabric, setup);
        let mut world = World { fabric, nodes, builder, flows: Vec::new() };
        (0..world.fabric.switches.len()).for_each(|switch| world.start_switch(switch));
        world.start_controller();
        (0..world.fabric.hosts.len()).for_each(|host| world.start_host(host));
        for agent in 0..world.fabric.agents.len() {
            if let Some(node) = world.builder.agent(&world.fabric, &world.nodes, agent) {
                let station = world.layout().agent_station(agent);
                world.engine_mut().power_on(station, node);
            }
        }
        world
    }

    /// (Re)starts a switch with empty tables.
    pub fn start_switch(&mut self, switch: usize) {
        let node = self.builder.switch(&self.fabric, &self.nodes, switch);
        self.engine_mut().power_on(switch, node);
    }

    /// Restarts the node of a switch on the data plane left by a crashed one; see
    /// [`Engine::crash_node`].
    pub fn restart_node(&mut self, switch: usize) {
        let config = self.builder.restarted(&self.fabric, &self.nodes, switch);
        self.engine_mut().restart_node(switch, |plane| SwitchNode::new(config, plane));
    }

    /// (Re)starts the controller, which keeps only its store.
    pub fn start_controller(&mut self) {
        let node = self.builder.controller(&self.fabric, &self.nodes);
        if node.is_on() {
            let station = self.layout().controller_station();
            self.engine_mut().power_on(station, node);
        }
    }

    /// Sets the controller's policy from its next start, like a change of its file.
    pub fn set_policy(&mut self, policy: Policy) {
        self.fabric.policy = policy;
    }

    /// (Re)starts a host, without its pings and streams.
    pub fn start_host(&mut self, host: usize) {
        let node = self.builder.host(&self.fabric, &self.nodes, host);
        let station = self.layout().host_station(host);
        self.engine_mut().power_on(station, node);
    }

    /// Sets the retry interval of hosts (DHCP, ARP), one second by default. Restarts the hosts.
    pub fn set_host_retry(&mut self, retry: Span) {
        self.builder.set_host_retry(retry);
        (0..self.fabric.hosts.len()).for_each(|host| self.start_host(host));
    }

    /// Starts the fabric's traffic. Start and stop times of its entries count from now. Call it
    /// when every host has its address; a flow between hosts without one is not started.
    pub fn start_traffic(&mut self) {
        self.flows.extend(traffic::start(&self.fabric, &mut self.nodes, &self.builder));
    }

    /// Starts to count bytes by class on all links, from zero.
    pub fn count_classes(&mut self) {
        let axon = self.fabric.network == Network::Axon;
        let (cables, controller) = (self.fabric.links.len(), self.layout().controller_link());
        for id in (0..self.engine().links().len()).map(LinkId) {
            let axon = axon && (id.0 < cables || id == controller);
            self.engine_mut().change_link(id, LinkChange::CountClasses { axon });
        }
    }
}

/// Running a world.
impl World {
    /// Returns the simulated time.
    pub fn now(&self) -> Time {
        self.engine().now()
    }

    /// Handles all events up to and at `end`.
    pub fn run_until(&mut self, end: Time) {
        self.run_until_true(end, |_| false);
    }

    /// Handles all events for `span`.
    pub fn run_for(&mut self, span: Span) {
        self.run_until(self.now() + span);
    }

    /// Runs until `condition` holds, checked at the start and every millisecond. Returns whether it
    /// held before `limit`.
    pub fn run_until_true(
        &mut self,
        limit: Time,
        mut condition: impl FnMut(&World) -> bool,
    ) -> bool {
        loop {
            if condition(self) {
                return true;
            }
            if self.now() >= limit {
                return false;
            }
            let look = (self.now() + Span::from_millis(1)).min(limit);
            while let Step::Fault(fault) = self.engine_mut().run(look) {
                self.inject(fault);
            }
        }
    }

    /// Handles one event, or one fault, up to and at `limit`. Returns whether there was one.
    pub fn step(&mut self, limit: Time) -> bool {
        match self.engine_mut().step(limit) {
            Step::Limit => false,
            Step::Event => true,
            Step::Fault(fault) => {
                self.inject(fault);
                true
            }
        }
    }

    /// Injects a fault or a repair now.
    ///
    /// Both ends of a cut link lose carrier; those of a silent link do not, nor do the peers of a
    /// suspended node. In both cases, "up" restores it. A switch or a controller that comes back is
    /// a new node in a new incarnation, with empty state; one that is up already is unchanged.
    pub fn inject(&mut self, fault: FaultKind) {
        let (engine, layout) = self.nodes.split();
        let controller = layout.controller_station();
        match fault {
            FaultKind::LinkDown(link) => engine.change_link(LinkId(link), LinkChange::Cut(true)),
            FaultKind::LinkUp(link) => mend(engine, LinkId(link)),
            FaultKind::LinkSilent(link) => {
                engine.change_link(LinkId(link), LinkChange::Silent([true; 2]));
            }
            FaultKind::LinkSilentFrom(link, end) => {
                let Link { ends, silent, .. } = &engine.links()[link];
                let is_silent = |side| silent[side] || ends[side] == wire_end(end);
                let silent = LinkChange::Silent([0, 1].map(is_silent));
                engine.change_link(LinkId(link), silent);
            }
            FaultKind::SwitchDown(switch) => engine.power_off(switch),
            FaultKind::SwitchUp(switch) => {
                if !has_power(engine, switch) {
                    self.start_switch(switch);
                }
            }
            FaultKind::SwitchStopped(switch) => engine.stop(switch),
            FaultKind::SwitchGoesOn(switch) => engine.go_on(switch),
            FaultKind::ControllerStopped => engine.stop(controller),
            FaultKind::ControllerGoesOn => engine.go_on(controller),
            FaultKind::ControllerDown => engine.power_off(controller),
            FaultKind::ControllerUp => {
                if !has_power(engine, controller) {
                    self.start_controller();
                }
            }
            FaultKind::HostDown(host) => {
                engine.change_link(layout.access_link(host), LinkChange::Cut(true));
            }
            FaultKind::HostUp(host) => mend(engine, layout.access_link(host)),
            FaultKind::Loss(cable, ppm) => {
                engine.change_link(layout.cable(cable), LinkChange::LossPpm(ppm));
            }
            FaultKind::BitErrors(cable, rate) => {
                engine.change_link(layout.cable(cable), LinkChange::BitErrorsPer1e15(rate));
            }
            FaultKind::Rate(cable, rate) => {
                engine.change_link(layout.cable(cable), LinkChange::Rate(rate));
            }
            FaultKind::HostSlow(host, rate) => {
                if let Some(node) = self.nodes.host_mut(host) {
                    node.rx_ring_mut().set_rate(rate);
                }
            }
        }
    }

    /// Plans a fault for a later time, or for now if `at` has passed.
    pub fn plan(&mut self, at: Time, fault: FaultKind) {
        self.engine_mut().plan(at, fault);
    }

    /// Adopts the fault settings of another fabric. Plans nothing.
    pub(crate) fn set_faults(&mut self, fabric: &Fabric) {
        self.fabric.faults.clone_from(&fabric.faults);
        self.fabric.faults_after_start.clone_from(&fabric.faults_after_start);
    }
}

/// State of a world, and access to its nodes.
impl World {
    /// Returns the running fabric.
    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// Returns the underlying engine.
    pub fn engine(&self) -> &Engine {
        self.nodes.engine()
    }

    /// Returns the underlying engine mutably, to connect and disconnect links.
    pub fn engine_mut(&mut self) -> &mut Engine {
        self.nodes.engine_mut()
    }

    /// Returns the nodes and their cables.
    pub fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    /// Returns the nodes and their cables mutably.
    pub fn nodes_mut(&mut self) -> &mut Nodes {
        &mut self.nodes
    }

    /// Returns the numbers of stations and links.
    pub fn layout(&self) -> &Layout {
        self.nodes.layout()
    }

    /// Returns the true topology.
    pub fn truth(&self) -> Truth<'_> {
        Truth::new(&self.fabric, &self.nodes)
    }

    /// Returns the started flows of the fabric's traffic.
    pub fn flows(&self) -> Flows<'_> {
        Flows::new(&self.fabric, &self.nodes, &self.flows)
    }

    pub(crate) fn readiness(&self) -> Readiness<'_> {
        Readiness::new(&self.fabric, &self.nodes)
    }

    /// Returns whether every host has an address and the network can carry its traffic. Hosts and
    /// switches that are disconnected, or without power, are ignored.
    pub fn is_ready(&self) -> bool {
        self.all_have_addresses() && self.unready().is_none()
    }

    /// Describes the first thing that the network still lacks.
    pub fn unready(&self) -> Option<String> {
        self.readiness().lacks()
    }

    /// Returns whether every host has an address, and an IPv6 address if it is to have one.
    pub fn all_have_addresses(&self) -> bool {
        self.readiness().all_have_addresses()
    }

    /// Returns a switch, if it has power.
    pub fn switch(&self, switch: usize) -> Option<&SwitchNode<SwitchPlane>> {
        self.nodes.switch(switch)
    }

    /// Returns the controller, if it has power.
    pub fn controller(&self) -> Option<&ControllerNode<SwitchPlane>> {
        self.nodes.controller()
    }

    /// Returns a host, if it has power.
    pub fn host(&self, host: usize) -> Option<&Host> {
        self.nodes.host(host)
    }

    /// Calls `work` with a host and the simulated time; see `Nodes::with_host`.
    pub fn with_host<R>(
        &mut self,
        host: usize,
        work: impl FnOnce(&mut Host, Time) -> R,
    ) -> Option<R> {
        self.nodes.with_host(host, work)
    }

    /// Returns the current IPv4 address of a host.
    pub fn address(&self, host: usize) -> Option<Ipv4Addr> {
        self.nodes.address(host)
    }

    /// Starts a ping from a host. Returns `None` if the host has no power.
    pub fn ping(&mut self, host: usize, plan: PingPlan) -> Option<PingId> {
        self.nodes.ping(host, plan)
    }

    /// Returns the statistics of a ping so far; `None` if its host has restarted since.
    pub fn ping_stats(&self, id: PingId) -> Option<PingStats> {
        self.nodes.ping_stats(id)
    }

    /// Returns the statistics of a host's application.
    pub fn flow_stats(&self, host: usize, id: AppId) -> Option<&FlowStats> {
        self.nodes.flow_stats(host, id)
    }

    /// Moves a host to another port at the same instant.
    ///
    /// # Panics
    /// If the port is in use.
    pub fn move_host(&mut self, host: usize, to: End) {
        self.nodes.move_host(host, to);
    }
}

fn has_power(engine: &Engine, station: usize) -> bool {
    engine.station(station).is_some_and(|station| station.node.is_on())
}

fn mend(engine: &mut Engine, link: LinkId) {
    engine.change_link(link, LinkChange::Silent([false; 2]));
    engine.change_link(link, LinkChange::Cut(false));
}
