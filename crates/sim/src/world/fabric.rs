//! A running fabric: switches, controller and hosts on an [`Engine`].
//!
//! Stations are the switches in order, then the controller, then the hosts and then the agents,
//! each in order; links are those of [`LinkId`]. Everything starts at time zero. The seed
//! determines the noise of links and the random numbers of hosts; those of switches and the
//! controller derive from it, their number and their incarnation.

use crate::engine::dataplane::{DataplaneKind, SwitchPlane};
use crate::engine::station::StationNode;
use crate::engine::{Engine, Step};
use crate::host::arp_host::ArpHosts;
use crate::host::ping::{PingPlan, PingStats};
use crate::host::{self, Host, HostConfig};
use crate::link::links::{LinkId, WireEnd};
use crate::link::timing;
use crate::world::baselines::{self, Baseline, Plans};
use crate::world::host_dcb;
use crate::world::python::PythonLoader;
use crate::world::running::{PingId, Running};
use axon_fabric::assemble;
use axon_fabric::model::{End, Fabric, Policy, Wire};
use axon_pipeline::ProgramNode;
use axon_switch::{ControllerNode, SwitchNode};
use axon_wire::{PortNo, Span, Time};
use std::collections::BTreeSet;
use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Single port of the controller.
const CONTROLLER_PORT: PortNo = PortNo(0);

/// Initial settings of a world, in addition to its fabric.
#[derive(Default)]
pub struct Setup {
    /// Seed of noise and random numbers.
    pub seed: u64,
    /// Data plane of switches and of the controller.
    pub dataplane: DataplaneKind,
    /// Maximum number of routes in a port's table, if below the data plane's own.
    pub routes_per_port: Option<usize>,
    /// True if hosts with a fixed address do not announce it and stay silent until requested.
    pub silent_hosts: bool,
    /// Loader of Python control programs, for fabrics that have one.
    pub python: Option<PythonLoader>,
    /// Receives the trace as lines of text, if given.
    pub trace: Option<Box<dyn Write>>,
    /// Ports to capture from the start.
    pub capture: Vec<WireEnd>,
}

/// Running fabric with its hosts.
pub struct World {
    pub(crate) engine: Engine,
    pub(crate) fabric: Fabric,
    seed: u64,
    dataplane: DataplaneKind,
    routes_per_port: Option<usize>,
    silent_hosts: bool,
    host_retry: Span,
    /// Settings of ARP hosts, if the world has only those.
    pub(crate) arp_hosts: Option<ArpHosts>,
    /// Plans for switches of another network.
    plans: Plans,
    /// Running traffic of the fabric.
    pub(crate) traffic: Vec<Running>,
    /// Stations that are bridges with hosts behind them.
    pub(crate) bridges: BTreeSet<usize>,
}

impl World {
    /// Returns a world in which everything was just powered on. The fabric's own faults are
    /// planned; [`World::inject`] adds others.
    pub fn new(fabric: &Fabric, seed: u64) -> World {
        World::with_trace(fabric, seed, None)
    }

    /// Returns a world like [`World::new`], with its trace written as lines to `text`.
    pub fn with_trace(fabric: &Fabric, seed: u64, text: Option<Box<dyn Write>>) -> World {
        World::begin(fabric, Setup { seed, trace: text, ..Setup::default() })
    }

    /// Returns a world with the settings in `setup`.
    ///
    /// # Panics
    /// If the fabric needs what its data plane cannot do; see [`axon_fabric::needs`]. If its
    /// program is in Python and there is nothing to start it.
    pub fn begin(fabric: &Fabric, setup: Setup) -> World {
        World::build(fabric, setup, None)
    }

    pub(crate) fn build(fabric: &Fabric, setup: Setup, arp_hosts: Option<ArpHosts>) -> World {
        let ports = setup.capture.clone();
        let mut world = World::wired(fabric, setup, arp_hosts);
        ports.iter().for_each(|&port| world.engine.capture(port));
        world.power_on_all();
        world
    }

    /// Returns a world with all stations and links in place, without power.
    fn wired(fabric: &Fabric, setup: Setup, arp_hosts: Option<ArpHosts>) -> World {
        let Setup { seed, dataplane, routes_per_port, trace, python, .. } = setup;
        let mut own = fabric.clone();
        axon_fabric::program::fix_addresses(&mut own);
        let mut world = World {
            engine: Engine::new(seed, trace),
            plans: Plans::new(&own, python),
            fabric: own,
            seed,
            dataplane,
            routes_per_port,
            silent_hosts: setup.silent_hosts,
            host_retry: Span::from_secs(1),
            arp_hosts,
            traffic: Vec::new(),
            bridges: BTreeSet::new(),
        };
        let names = fabric.switches.iter().map(|switch| &switch.name);
        let names = names.chain([&fabric.controller.name]);
        let names = names.chain(fabric.hosts.iter().map(|host| &host.name));
        let names = names.chain(fabric.agents.iter().map(|agent| &agent.name));
        world.engine.reserve(names.clone().count());
        for name in names {
            world.engine.add_station(name);
        }
        world.engine.set_hop_width(fabric.hop_width);
        (0..fabric.switches.len()).for_each(|s| world.engine.set_device(s, &fabric.device));
        (0..fabric.hosts.len()).for_each(|h| world.engine.set_host(world.host_station(h)));
        let end = |end: End| WireEnd { station: end.switch, port: end.port };
        for link in &fabric.links {
            world.engine.connect(end(link.a), end(link.b), link.wire);
        }
        for (index, host) in fabric.hosts.iter().enumerate() {
            let near = WireEnd { station: world.host_station(index), port: host::PORT };
            let far = End { switch: host.switch, port: host.port };
            world.engine.connect(near, end(far), host.wire);
        }
        let near = WireEnd { station: world.controller_station(), port: CONTROLLER_PORT };
        world.engine.connect(near, end(fabric.controller.at), fabric.controller.wire);
        world.connect_agents(fabric);
        world.connect_bonds(fabric);
        for fault in &fabric.faults {
            world.engine.plan(Time::ZERO + fault.at, fault.what);
        }
        world
    }

    fn power_on_all(&mut self) {
        for switch in 0..self.fabric.switches.len() {
            self.start_switch(switch);
        }
        self.start_controller();
        for host in 0..self.fabric.hosts.len() {
            self.start_host(host);
        }
        for agent in 0..self.fabric.agents.len() {
            self.start_agent(agent);
        }
    }

    /// (Re)starts a switch with empty tables.
    pub fn start_switch(&mut self, switch: usize) {
        let incarnation = self.engine.next_incarnation(switch);
        let seed = self.node_seed(switch);
        if let Some(node) = self.plans.switch(&self.fabric, switch, incarnation, seed) {
            return self.engine.power_on(switch, node);
        }
        let mut config = assemble::switch_config(&self.fabric, switch, incarnation, seed);
        config.plane.probe_units = timing::probe_units(&self.fabric.device);
        let routes = &mut config.plane.routes_per_port_max;
        *routes = self.routes_per_port.map_or(*routes, |few| few.min(*routes));
        let plane = SwitchPlane::new(self.dataplane, config.plane);
        let node = SwitchNode::new(config.control, plane);
        self.engine.power_on(switch, StationNode::Switch(Box::new(node)));
    }

    /// Crashes the node of a switch, like a killed process with the kernel's data plane: the data
    /// plane keeps forwarding.
    pub fn crash_node(&mut self, switch: usize) {
        self.engine.crash_node(switch);
    }

    /// Restarts the node of a switch on the data plane left by the crashed one.
    pub fn restart_node(&mut self, switch: usize) {
        let incarnation = self.engine.next_incarnation(switch);
        let seed = self.node_seed(switch);
        let config = assemble::switch_config(&self.fabric, switch, incarnation, seed);
        self.engine.restart_node(switch, |plane| SwitchNode::new(config.control, plane));
    }

    /// (Re)starts the controller, which keeps only its store.
    pub fn start_controller(&mut self) {
        let station = self.controller_station();
        let incarnation = self.engine.next_incarnation(station);
        match baselines::controller(&self.fabric, incarnation) {
            Some(StationNode::Off) => return,
            Some(node) => return self.engine.power_on(station, node),
            None => {}
        }
        let config =
            assemble::controller_config(&self.fabric, incarnation, self.node_seed(station));
        let plane = SwitchPlane::new(self.dataplane, config.plane);
        let stored = self.engine.stored(station);
        let node = ControllerNode::restored(config.control, plane, self.now(), &stored);
        self.engine.power_on(station, StationNode::Controller(Box::new(node)));
    }

    /// Sets the controller's policy from its next start, like a change of its file.
    pub fn set_policy(&mut self, policy: Policy) {
        self.fabric.policy = policy;
    }

    /// (Re)starts a host, without its pings and streams.
    pub fn start_host(&mut self, index: usize) {
        let station = self.host_station(index);
        if let Some(host) = self.new_arp_host(index) {
            self.engine.power_on(station, StationNode::ArpHost(Box::new(host)));
            return;
        }
        let host = &self.fabric.hosts[index];
        let config = HostConfig {
            mac: host.mac,
            fixed: self.fixed_address(index),
            is_gateway: self.is_gateway(index),
            ipv6: axon_fabric::ipv6::is_dual_stack(&self.fabric).then_some(host.ip6),
            announces: !self.silent_hosts,
            mtu: self.fabric.mtu,
            seed: self.node_seed(station),
            retry: self.host_retry,
            dcb: host_dcb::host_dcb(&self.fabric, index),
            vlan: self.host_vlan(index),
            bond_ports: self.bond_ports(index),
        };
        let host = Host::new(config);
        self.engine.power_on(station, StationNode::Host(Box::new(host)));
    }

    /// Returns the address and prefix length of a host without a DHCP client: from the fabric file,
    /// or of a VLAN without leases.
    fn fixed_address(&self, index: usize) -> Option<(Ipv4Addr, u8)> {
        let host = &self.fabric.hosts[index];
        let given = || axon_fabric::addresses::of_hosts(&self.fabric)[index];
        let tag = self.host_vlan(index).tag;
        let leases = match self.fabric.vlans.iter().find(|vlan| vlan.id == tag) {
            Some(vlan) => vlan.dhcp.is_some(),
            None => axon_fabric::vlans::dhcp_of(&self.fabric, host).is_some(),
        };
        let ip = host.ip.or_else(|| (!leases).then(given).flatten());
        Some((ip?, axon_fabric::vlans::prefix_len_of(&self.fabric, host)))
    }

    /// Sets the number of threads. The results are the same, bit for bit. Returns the number used,
    /// which is one if links between parts of the world have no delay.
    pub fn set_threads(&mut self, threads: usize) -> usize {
        self.engine.set_threads(threads)
    }

    /// Sets the retry interval of hosts (DHCP, ARP), one second by default. Restarts the hosts.
    pub fn set_host_retry(&mut self, retry: Span) {
        self.host_retry = retry;
        (0..self.fabric.hosts.len()).for_each(|host| self.start_host(host));
    }

    /// Returns a seed for the next incarnation of a station.
    pub(crate) fn node_seed(&self, station: usize) -> u64 {
        let stream = (station as u128) << 64 | u128::from(self.engine.next_incarnation(station));
        oorandom::Rand64::new_inc(u128::from(self.seed), stream).rand_u64()
    }
}

/// Running a world.
impl World {
    /// Returns the simulated time.
    pub fn now(&self) -> Time {
        self.engine.now()
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
            while let Step::Fault(fault) = self.engine.run(look) {
                self.inject(fault);
            }
        }
    }

    /// Handles one event, or one fault, up to and at `limit`. Returns whether there was one.
    pub fn step(&mut self, limit: Time) -> bool {
        match self.engine.step(limit) {
            Step::Limit => false,
            Step::Event => true,
            Step::Fault(fault) => {
                self.inject(fault);
                true
            }
        }
    }

    /// Starts a ping from a host. Returns `None` if the host has no power.
    pub fn ping(&mut self, host: usize, plan: PingPlan) -> Option<PingId> {
        let now = self.now();
        let number = self.host_mut(host)?.ping(plan, now);
        self.engine.nudge(self.host_station(host));
        Some(PingId { host, number })
    }

    /// Returns the statistics of a ping so far; `None` if its host has restarted since.
    pub fn ping_stats(&self, id: PingId) -> Option<PingStats> {
        self.host(id.host)?.ping_stats(id.number)
    }
}

/// Access to the components of a world.
impl World {
    /// Returns the running fabric.
    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// Returns the underlying engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Returns the underlying engine mutably, to connect and disconnect links.
    pub fn engine_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// Returns the hash of the whole trace.
    pub fn trace_hash(&self) -> u64 {
        self.engine.trace_hash()
    }

    /// Returns the station of the controller.
    pub fn controller_station(&self) -> usize {
        self.fabric.switches.len()
    }

    /// Returns the station of a host.
    pub fn host_station(&self, host: usize) -> usize {
        self.fabric.switches.len() + 1 + host
    }

    /// Returns the link between a host and its edge.
    pub fn access_link(&self, host: usize) -> LinkId {
        LinkId(self.fabric.links.len() + host)
    }

    /// Returns the link between the controller and its switch.
    pub fn controller_link(&self) -> LinkId {
        LinkId(self.fabric.links.len() + self.fabric.hosts.len())
    }

    /// Returns a switch, if it has power.
    pub fn switch(&self, switch: usize) -> Option<&SwitchNode<SwitchPlane>> {
        match &self.engine.station(switch)?.node {
            StationNode::Switch(node) => Some(node),
            _ => None,
        }
    }

    /// Returns the controller, if it has power.
    pub fn controller(&self) -> Option<&ControllerNode<SwitchPlane>> {
        match &self.engine.station(self.controller_station())?.node {
            StationNode::Controller(node) => Some(node),
            _ => None,
        }
    }

    /// Returns a switch of another network, or the node at its controller's station, if it has
    /// power.
    pub fn baseline(&self, station: usize) -> Option<&Baseline> {
        match &self.engine.station(station)?.node {
            StationNode::Baseline(node) => Some(node),
            _ => None,
        }
    }

    /// Returns a programmable switch, if it has power.
    pub fn program_node(&self, switch: usize) -> Option<&ProgramNode> {
        match self.baseline(switch)? {
            Baseline::Program(node) => Some(node),
            _ => None,
        }
    }

    /// Returns a host, if it has power.
    pub fn host(&self, host: usize) -> Option<&Host> {
        match &self.engine.station(self.host_station(host))?.node {
            StationNode::Host(node) => Some(node),
            _ => None,
        }
    }

    /// Returns a host mutably. Call [`World::nudge_host`] afterwards.
    pub fn host_mut(&mut self, host: usize) -> Option<&mut Host> {
        let station = self.host_station(host);
        match &mut self.engine.station_mut(station).node {
            StationNode::Host(node) => Some(node),
            _ => None,
        }
    }

    /// Lets a host act on changes made through [`World::host_mut`].
    pub fn nudge_host(&mut self, host: usize) {
        self.engine.nudge(self.host_station(host));
    }

    /// Returns the current IPv4 address of a host.
    pub fn address(&self, host: usize) -> Option<Ipv4Addr> {
        match self.arp_host(host) {
            Some(host) => Some(host.address()),
            None => self.host(host)?.address(),
        }
    }

    /// Returns the current IPv6 address of global scope of a host.
    pub fn address6(&self, host: usize) -> Option<Ipv6Addr> {
        self.host(host)?.address6()
    }

    /// Returns whether every host has an address, and an IPv6 address if it is to have one.
    pub fn all_have_addresses(&self) -> bool {
        let has_v6 = |host: usize| {
            !self.wants_v6(host) || self.host(host).is_none_or(|host| host.address6().is_some())
        };
        (0..self.fabric.hosts.len()).all(|host| self.address(host).is_some() && has_v6(host))
    }

    /// Moves a host to another port at the same instant.
    ///
    /// # Panics
    /// If the port is in use.
    pub fn move_host(&mut self, host: usize, to: End) {
        let near = WireEnd { station: self.host_station(host), port: host::PORT };
        let far = WireEnd { station: to.switch, port: to.port };
        self.engine.reconnect(self.access_link(host), near, far);
    }

    /// Connects two free ports of switches by a new link.
    ///
    /// # Panics
    /// If a port is in use.
    pub fn connect(&mut self, a: End, b: End, wire: Wire) -> LinkId {
        let end = |end: End| WireEnd { station: end.switch, port: end.port };
        self.engine.connect(end(a), end(b), wire)
    }
}
