//! Builds the nodes of a world from its fabric: each call returns one for a new incarnation.

use crate::engine::dataplane::SwitchPlane;
use crate::engine::station::{Station, StationNode};
use crate::link::timing;
use crate::world::baselines::{self, Plans};
use crate::world::nodes::Nodes;
use crate::world::setup::Setup;
use crate::world::{host_dcb, reach};
use axon_agents::AgentNode;
use axon_fabric::assemble;
use axon_fabric::model::{DataplaneKind, Fabric};
use axon_simhost::arp_host::{ArpHost, ArpHostConfig, ArpHosts};
use axon_simhost::{Host, HostConfig};
use axon_switch::config::SwitchConfig;
use axon_switch::{ControllerNode, SwitchNode};
use axon_wire::Span;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// Builder of nodes. The seed of a node derives from that of the world, its station and its
/// incarnation.
pub(crate) struct Builder {
    seed: u64,
    dataplane: DataplaneKind,
    routes_per_port: Option<usize>,
    silent_hosts: bool,
    host_retry: Span,
    /// Settings of ARP hosts, if the world has only those.
    arp_hosts: Option<ArpHosts>,
    /// Plans for switches of another network.
    plans: Plans,
}

impl Builder {
    pub(crate) fn new(fabric: &Fabric, setup: Setup) -> Builder {
        let Setup { seed, dataplane, routes_per_port, silent_hosts, arp_hosts, .. } = setup;
        let (host_retry, plans) = (Span::from_secs(1), Plans::new(fabric, setup.python));
        Builder { seed, dataplane, routes_per_port, silent_hosts, host_retry, arp_hosts, plans }
    }

    /// Sets the retry interval of hosts (DHCP, ARP).
    pub(crate) fn set_host_retry(&mut self, retry: Span) {
        self.host_retry = retry;
    }

    /// Returns a seed for the next incarnation of a station.
    pub(crate) fn seed(&self, nodes: &Nodes, station: usize) -> u64 {
        let incarnation = nodes.next_incarnation(station);
        let stream = (station as u128) << 64 | u128::from(incarnation);
        oorandom::Rand64::new_inc(u128::from(self.seed), stream).rand_u64()
    }

    /// Returns a switch with empty tables.
    pub(crate) fn switch(&self, fabric: &Fabric, nodes: &Nodes, switch: usize) -> StationNode {
        let incarnation = nodes.next_incarnation(switch);
        let seed = self.seed(nodes, switch);
        if let Some(node) = self.plans.switch(fabric, switch, incarnation, seed) {
            return node;
        }
        let mut config = assemble::switch_config(fabric, switch, incarnation, seed);
        config.plane.probe_units = timing::probe_units(&fabric.device);
        let routes = &mut config.plane.routes_per_port_max;
        *routes = self.routes_per_port.map_or(*routes, |few| few.min(*routes));
        let kind = match axon_fabric::dataplane::of_switch(fabric, switch).0 {
            DataplaneKind::Rtl => DataplaneKind::Rtl,
            _ => self.dataplane,
        };
        let plane = SwitchPlane::new(kind, config.plane);
        StationNode::Switch(Box::new(SwitchNode::new(config.control, plane)))
    }

    /// Returns the configuration of a switch's node that starts on the data plane left by another.
    pub(crate) fn restarted(&self, fabric: &Fabric, nodes: &Nodes, switch: usize) -> SwitchConfig {
        let incarnation = nodes.next_incarnation(switch);
        assemble::switch_config(fabric, switch, incarnation, self.seed(nodes, switch)).control
    }

    /// Returns the controller with what it has stored; [`StationNode::Off`] if the network has
    /// none.
    pub(crate) fn controller(&self, fabric: &Fabric, nodes: &Nodes) -> StationNode {
        let (engine, station) = (nodes.engine(), nodes.layout().controller_station());
        let incarnation = nodes.next_incarnation(station);
        if let Some(node) = baselines::controller(fabric, incarnation) {
            return node;
        }
        let seed = self.seed(nodes, station);
        let config = assemble::controller_config(fabric, incarnation, seed);
        let plane = SwitchPlane::new(self.dataplane, config.plane);
        let stored = engine.station(station).map_or_else(Vec::new, Station::stored);
        let node = ControllerNode::restored(config.control, plane, engine.now(), &stored);
        StationNode::Controller(Box::new(node))
    }

    /// Returns a host without pings and streams.
    pub(crate) fn host(&self, fabric: &Fabric, nodes: &Nodes, index: usize) -> StationNode {
        let seed = self.seed(nodes, nodes.layout().host_station(index));
        if let Some(host) = self.arp_host(fabric, index, seed) {
            return StationNode::ArpHost(Box::new(host));
        }
        let host = &fabric.hosts[index];
        StationNode::Host(Box::new(Host::new(HostConfig {
            mac: host.mac,
            fixed: fixed_address(fabric, index),
            is_gateway: reach::is_gateway(fabric, index),
            ipv6: axon_fabric::ipv6::is_dual_stack(fabric).then_some(host.ip6),
            announces: !self.silent_hosts,
            mtu: fabric.mtu,
            seed,
            retry: self.host_retry,
            dcb: host_dcb::host_dcb(fabric, index),
            vlan: reach::host_vlan(fabric, index),
            bond_ports: nodes.layout().bond_ports(index),
        })))
    }

    fn arp_host(&self, fabric: &Fabric, index: usize, seed: u64) -> Option<ArpHost> {
        let ArpHosts { retry, announce_within } = self.arp_hosts?;
        let host = &fabric.hosts[index];
        let mut random = oorandom::Rand64::new(seed.into());
        let after = |within: Span| Span::from_ticks(random.rand_range(0..within.ticks().max(1)));
        let announce_after = announce_within.map(after);
        Some(ArpHost::new(ArpHostConfig { mac: host.mac, ip: host.ip?, retry, announce_after }))
    }

    /// Returns a built-in agent with empty state. A user's own agent runs on Linux only.
    pub(crate) fn agent(
        &self,
        fabric: &Fabric,
        nodes: &Nodes,
        index: usize,
    ) -> Option<StationNode> {
        let setup = &fabric.agents[index];
        let agent = setup.kind.build()?;
        let mut config = setup.port;
        config.cache.seed = self.seed(nodes, nodes.layout().agent_station(index));
        // The fabric's settings were checked when they were read.
        let node = AgentNode::new(config, agent).ok()?;
        Some(StationNode::Agent(Box::new(node)))
    }
}

/// Returns the address and prefix length of a host without a DHCP client: from the fabric file, or
/// of a VLAN without leases.
fn fixed_address(fabric: &Fabric, index: usize) -> Option<(Ipv4Addr, u8)> {
    let host = &fabric.hosts[index];
    let given = || axon_fabric::addresses::of_hosts(fabric)[index];
    let tag = reach::host_vlan(fabric, index).tag;
    let leases = match fabric.vlans.iter().find(|vlan| vlan.id == tag) {
        Some(vlan) => vlan.dhcp.is_some(),
        None => axon_fabric::vlans::dhcp_of(fabric, host).is_some(),
    };
    let ip = host.ip.or_else(|| (!leases).then(given).flatten());
    Some((ip?, axon_fabric::vlans::prefix_len_of(fabric, host)))
}

/// Gives each host without an address the next free one of the pool, for hosts without a DHCP
/// client.
///
/// # Panics
/// If the pool is too small for that, which the fabric's own check excludes.
pub(crate) fn fix_addresses(fabric: &mut Fabric) {
    let taken: BTreeSet<Ipv4Addr> = fabric.hosts.iter().filter_map(|host| host.ip).collect();
    let (first, last) = (fabric.dhcp.pool_first.to_bits(), fabric.dhcp.pool_last.to_bits());
    let free = (first..=last).map(Ipv4Addr::from_bits);
    let mut free = free.filter(|ip| !taken.contains(ip));
    for host in fabric.hosts.iter_mut().filter(|host| host.ip.is_none()) {
        host.ip = Some(free.next().expect("the pool has an address for every host"));
    }
}
