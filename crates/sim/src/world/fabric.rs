//! A fabric that runs: switches, controller and hosts on an [`Engine`].
//!
//! Stations are the switches in order, then the controller, then the hosts and then the agents,
//! each in order; links are those of [`LinkId`]. Everything starts at time zero. The seed decides
//! the noise of links and the random numbers of hosts; those of switches and the controller follow
//! from it, their number and their incarnation.

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
use axon_control::node::{ControllerNode, SwitchNode};
use axon_fabric::assemble;
use axon_fabric::model::{End, Fabric, Policy, Wire};
use axon_pipeline::ProgramNode;
use axon_wire::{PortNo, Span, Time};
use std::collections::BTreeSet;
use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The controller's one port.
const CONTROLLER_PORT: PortNo = PortNo(0);

/// How a world begins, beside its fabric.
#[derive(Default)]
pub struct Setup {
    /// What noise and random numbers follow from.
    pub seed: u64,
    /// The data plane of switches and of the controller.
    pub dataplane: DataplaneKind,
    /// Routes that the table of a port holds, if fewer than the data plane's own number.
    pub routes_per_port: Option<usize>,
    /// Hosts with a fixed address do not announce it: they say nothing before they are asked.
    pub silent_hosts: bool,
    /// Starts control programs in Python, for fabrics that have one.
    pub python: Option<PythonLoader>,
    /// Takes the trace as lines of text, if given.
    pub trace: Option<Box<dyn Write>>,
    /// Ports of whose frames copies are kept, from the first.
    pub capture: Vec<WireEnd>,
}

/// A fabric and its hosts.
pub struct World {
    pub(crate) engine: Engine,
    pub(crate) fabric: Fabric,
    seed: u64,
    dataplane: DataplaneKind,
    routes_per_port: Option<usize>,
    silent_hosts: bool,
    host_retry: Span,
    /// How hosts behave if they are ARP hosts only.
    pub(crate) arp_hosts: Option<ArpHosts>,
    /// What switches of another network are built from.
    plans: Plans,
    /// What runs of the fabric's traffic.
    pub(crate) traffic: Vec<Running>,
    /// The stations that are bridges with hosts behind them.
    pub(crate) bridges: BTreeSet<usize>,
}

impl World {
    /// A world in which everything has just been switched on. The fabric's own faults are
    /// planned; [`World::inject`] adds others.
    pub fn new(fabric: &Fabric, seed: u64) -> World {
        World::with_trace(fabric, seed, None)
    }

    /// The same, with its trace written as lines to `text`.
    pub fn with_trace(fabric: &Fabric, seed: u64, text: Option<Box<dyn Write>>) -> World {
        World::begin(fabric, Setup { seed, trace: text, ..Setup::default() })
    }

    /// A world that begins as `setup` says.
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

    /// A world with all stations and links in place, without power.
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

    /// Ends the node of a switch, as when a process is killed whose data plane is the kernel's: the
    /// data plane goes on.
    pub fn crash_node(&mut self, switch: usize) {
        self.engine.crash_node(switch);
    }

    /// Starts the node of a switch anew, on the data plane that has outlived the one before.
    pub fn restart_node(&mut self, switch: usize) {
        let incarnation = self.engine.next_incarnation(switch);
        let seed = self.node_seed(switch);
        let config = assemble::switch_config(&self.fabric, switch, incarnation, seed);
        self.engine.restart_node(switch, |plane| SwitchNode::new(config.control, plane));
    }

    /// (Re)starts the controller with nothing in memory but what its store has.
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

    /// Gives the controller another policy from its next start on, as when its file has changed.
    pub fn set_policy(&mut self, policy: Policy) {
        self.fabric.policy = policy;
    }

    /// (Re)starts a host; its pings and streams are forgotten.
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
            ipv6: self.fabric.is_dual_stack().then_some(host.ip6),
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

    /// The address and prefix length of a host without a DHCP client: the one of its file, or one
    /// of a VLAN that leases none.
    fn fixed_address(&self, index: usize) -> Option<(Ipv4Addr, u8)> {
        let host = &self.fabric.hosts[index];
        let given = || self.fabric.addresses()[index];
        let tag = self.host_vlan(index).tag;
        let leases = match self.fabric.vlans.iter().find(|vlan| vlan.id == tag) {
            Some(vlan) => vlan.dhcp.is_some(),
            None => self.fabric.dhcp_of(host).is_some(),
        };
        let ip = host.ip.or_else(|| (!leases).then(given).flatten());
        Some((ip?, self.fabric.prefix_len_of(host)))
    }

    /// Lets the world run on so many threads from now on. What happens is the same, bit for
    /// bit. Returns how many it really uses: one where links between its parts take no time.
    pub fn set_threads(&mut self, threads: usize) -> usize {
        self.engine.set_threads(threads)
    }

    /// How long hosts that start from now on wait between two tries (DHCP, ARP): one second
    /// unless set here. Restarts the hosts.
    pub fn set_host_retry(&mut self, retry: Span) {
        self.host_retry = retry;
        (0..self.fabric.hosts.len()).for_each(|host| self.start_host(host));
    }

    /// A seed for the next incarnation of a station.
    pub(crate) fn node_seed(&self, station: usize) -> u64 {
        let stream = (station as u128) << 64 | u128::from(self.engine.next_incarnation(station));
        oorandom::Rand64::new_inc(u128::from(self.seed), stream).rand_u64()
    }
}

/// Running.
impl World {
    /// Simulated time.
    pub fn now(&self) -> Time {
        self.engine.now()
    }

    /// Handles everything up to and at `end`.
    pub fn run_until(&mut self, end: Time) {
        self.run_until_true(end, |_| false);
    }

    /// Handles everything for `span`.
    pub fn run_for(&mut self, span: Span) {
        self.run_until(self.now() + span);
    }

    /// Runs until `condition` holds; looks at the start and every millisecond. Says whether
    /// it came to hold before `limit`.
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

    /// Handles one event, or one fault, up to and at `limit`; says whether there was one.
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

    /// Starts a ping from a host. A host without power starts none and answers `None`.
    pub fn ping(&mut self, host: usize, plan: PingPlan) -> Option<PingId> {
        let now = self.now();
        let number = self.host_mut(host)?.ping(plan, now);
        self.engine.nudge(self.host_station(host));
        Some(PingId { host, number })
    }

    /// What came of a ping so far; `None` if its host has restarted since.
    pub fn ping_stats(&self, id: PingId) -> Option<PingStats> {
        self.host(id.host)?.ping_stats(id.number)
    }
}

/// Access to what a world is made of.
impl World {
    /// The fabric that runs here.
    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// The engine below.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The engine below, to connect and disconnect links.
    pub fn engine_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// The hash of all that has happened.
    pub fn trace_hash(&self) -> u64 {
        self.engine.trace_hash()
    }

    /// The station of the controller.
    pub fn controller_station(&self) -> usize {
        self.fabric.switches.len()
    }

    /// The station of a host.
    pub fn host_station(&self, host: usize) -> usize {
        self.fabric.switches.len() + 1 + host
    }

    /// The link between a host and its edge.
    pub fn access_link(&self, host: usize) -> LinkId {
        LinkId(self.fabric.links.len() + host)
    }

    /// The link between the controller and its switch.
    pub fn controller_link(&self) -> LinkId {
        LinkId(self.fabric.links.len() + self.fabric.hosts.len())
    }

    /// A switch, if it has power.
    pub fn switch(&self, switch: usize) -> Option<&SwitchNode<SwitchPlane>> {
        match &self.engine.station(switch)?.node {
            StationNode::Switch(node) => Some(node),
            _ => None,
        }
    }

    /// The controller, if it has power.
    pub fn controller(&self) -> Option<&ControllerNode<SwitchPlane>> {
        match &self.engine.station(self.controller_station())?.node {
            StationNode::Controller(node) => Some(node),
            _ => None,
        }
    }

    /// A switch of another network, or what stands in the controller's place there, if it
    /// has power.
    pub fn baseline(&self, station: usize) -> Option<&Baseline> {
        match &self.engine.station(station)?.node {
            StationNode::Baseline(node) => Some(node),
            _ => None,
        }
    }

    /// A programmable switch, if it has power.
    pub fn program_node(&self, switch: usize) -> Option<&ProgramNode> {
        match self.baseline(switch)? {
            Baseline::Program(node) => Some(node),
            _ => None,
        }
    }

    /// A host, if it has power.
    pub fn host(&self, host: usize) -> Option<&Host> {
        match &self.engine.station(self.host_station(host))?.node {
            StationNode::Host(node) => Some(node),
            _ => None,
        }
    }

    /// A host, to change it; call [`World::nudge_host`] after.
    pub fn host_mut(&mut self, host: usize) -> Option<&mut Host> {
        let station = self.host_station(host);
        match &mut self.engine.station_mut(station).node {
            StationNode::Host(node) => Some(node),
            _ => None,
        }
    }

    /// Lets a host act on what was changed by [`World::host_mut`].
    pub fn nudge_host(&mut self, host: usize) {
        self.engine.nudge(self.host_station(host));
    }

    /// The address of a host, if it has one now.
    pub fn address(&self, host: usize) -> Option<Ipv4Addr> {
        match self.arp_host(host) {
            Some(host) => Some(host.address()),
            None => self.host(host)?.address(),
        }
    }

    /// The IPv6 address of global scope of a host, if it has one now.
    pub fn address6(&self, host: usize) -> Option<Ipv6Addr> {
        self.host(host)?.address6()
    }

    /// Whether every host has an address, and one of IPv6 if it is to have one.
    pub fn all_have_addresses(&self) -> bool {
        let has_v6 = |host: usize| {
            !self.wants_v6(host) || self.host(host).is_none_or(|host| host.address6().is_some())
        };
        (0..self.fabric.hosts.len()).all(|host| self.address(host).is_some() && has_v6(host))
    }

    /// Connects a host to another port instead of its present one, at the same instant.
    ///
    /// # Panics
    /// If the port is taken.
    pub fn move_host(&mut self, host: usize, to: End) {
        let near = WireEnd { station: self.host_station(host), port: host::PORT };
        let far = WireEnd { station: to.switch, port: to.port };
        self.engine.reconnect(self.access_link(host), near, far);
    }

    /// Connects two free ports of switches by a new link.
    ///
    /// # Panics
    /// If a port is taken.
    pub fn connect(&mut self, a: End, b: End, wire: Wire) -> LinkId {
        let end = |end: End| WireEnd { station: end.switch, port: end.port };
        self.engine.connect(end(a), end(b), wire)
    }
}
