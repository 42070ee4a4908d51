//! Readiness of a network for its hosts' traffic.
//!
//! A host with a fixed address has it at once, long before its switch can forward its frames. So
//! traffic and pings wait until the network is ready, which depends on the network:
//!
//! - Axon: every switch that the controller can reach knows its route to the controller and the far
//!   end of each link to another switch, and the controller knows each host by its address;
//! - Axon without a controller: every switch knows the far end of each link to another switch, and
//!   each host by its address;
//! - bridges: all connected bridges have one root, every port between them that is to forward does
//!   and every other blocks, and every port to a host forwards;
//! - PortLand: every switch knows its level, and the fabric manager every host by its address;
//! - static multipath: always ready, as its tables exist from the start.

use crate::engine::dataplane::SwitchPlane;
use crate::link::links::WireEnd;
use crate::world::baselines::Baseline;
use crate::world::nodes::Nodes;
use crate::world::reach;
use crate::world::truth::Truth;
use axon_baselines::bridge::BridgeNode;
use axon_baselines::bridge::plane::PortState;
use axon_baselines::portland::Level;
use axon_baselines::rstp::Role;
use axon_fabric::model::{End, Fabric, Network};
use axon_wire::PortNo;
use std::net::IpAddr;

/// Readiness of a world.
#[derive(Clone, Copy)]
pub(crate) struct Readiness<'a> {
    fabric: &'a Fabric,
    nodes: &'a Nodes,
    truth: Truth<'a>,
}

impl<'a> Readiness<'a> {
    pub(crate) fn new(fabric: &'a Fabric, nodes: &'a Nodes) -> Readiness<'a> {
        Readiness { fabric, nodes, truth: Truth::new(fabric, nodes) }
    }

    /// Returns whether every host has an address, and an IPv6 address if it is to have one.
    pub(crate) fn all_have_addresses(&self) -> bool {
        let has_v6 = |host: usize| {
            !reach::wants_v6(self.fabric, host)
                || self.nodes.host(host).is_none_or(|host| host.address6().is_some())
        };
        let mut hosts = 0..self.fabric.hosts.len();
        hosts.all(|host| self.nodes.address(host).is_some() && has_v6(host))
    }

    /// Describes the first thing that the network still lacks.
    pub(crate) fn lacks(&self) -> Option<String> {
        match self.fabric.network {
            Network::Axon if self.fabric.is_static() => self.static_lacks(),
            Network::Axon => self.axon_lacks(),
            Network::Ethernet => self.bridges_lack(),
            Network::PortLand => self.portland_lacks(),
            Network::Ecmp => None,
            Network::Program => self.programs_lack(),
        }
    }

    /// Returns the names of connected hosts without an address, and a sentence about disconnected
    /// hosts without one, if there are any.
    pub(crate) fn without_address(&self) -> (Vec<String>, Option<String>) {
        let connected = self.truth.connected_hosts();
        let hosts = (0..self.fabric.hosts.len()).filter(|&host| self.nodes.address(host).is_none());
        let (lacking, cut_off): (Vec<usize>, Vec<usize>) =
            hosts.partition(|host| connected.binary_search(host).is_ok());
        let names = |hosts: Vec<usize>| -> Vec<String> {
            hosts.into_iter().map(|host| self.fabric.hosts[host].name.clone()).collect()
        };
        let cut_off = names(cut_off);
        let (count, all) = (cut_off.len(), self.fabric.hosts.len());
        let text = format!("{count} of {all} hosts are cut off and have no address: ");
        (names(lacking), (count > 0).then(|| text + &cut_off.join(", ")))
    }

    fn axon_lacks(&self) -> Option<String> {
        let Some(controller) = self.nodes.controller() else {
            return Some(format!("{} has no power", self.fabric.controller.name));
        };
        let name = |switch: usize| &self.fabric.switches[switch].name;
        for (index, reached) in self.truth.controlled_switches().into_iter().enumerate() {
            let Some(switch) = self.nodes.switch(index).filter(|_| reached) else { continue };
            if switch.uplink().controller().is_none() {
                return Some(format!("{} has not found the controller", name(index)));
            }
        }
        if let Some(lacks) = self.unknown_link() {
            return Some(lacks);
        }
        let controllers = controller.controller();
        self.missing_host("the controller", |host, ip| {
            let own = controllers.vlans().get(reach::vlan_of(self.fabric, host));
            own.is_some_and(|own| own.hosts().by_ip(ip).is_some())
        })
    }

    fn static_lacks(&self) -> Option<String> {
        if let Some(lacks) = self.unknown_link() {
            return Some(lacks);
        }
        for (index, reached) in self.truth.controlled_switches().into_iter().enumerate() {
            let switch = self.nodes.switch(index).filter(|_| reached);
            let Some(alone) = switch.and_then(|switch| switch.alone()) else { continue };
            let hosts = alone.controller().hosts();
            let known = |_, ip| {
                let host = hosts.by_ip(ip).and_then(|host| hosts.get(host));
                host.is_some_and(|host| !host.is_provisional())
            };
            if let Some(lacks) = self.missing_host(&self.fabric.switches[index].name, known) {
                return Some(lacks);
            }
        }
        None
    }

    /// Describes a live link that one of its ends has not discovered yet.
    fn unknown_link(&self) -> Option<String> {
        let name = |switch: usize| &self.fabric.switches[switch].name;
        for (a, b) in self.truth.live_links() {
            for end in [a, b] {
                let knows = |switch: &axon_switch::SwitchNode<SwitchPlane>| {
                    switch.discovery().neighbour(end.port).is_some()
                };
                if self.nodes.switch(end.switch).is_some_and(|switch| !knows(switch)) {
                    let name = name(end.switch);
                    return Some(format!("{name} does not know what is behind p{}", end.port.0));
                }
            }
        }
        None
    }

    fn programs_lack(&self) -> Option<String> {
        let unready = |switch: &usize| {
            self.nodes.program(*switch).is_some_and(|node| !node.program().is_ready())
        };
        let switch = (0..self.fabric.switches.len()).find(unready)?;
        Some(format!("the program of {} is not ready", self.fabric.switches[switch].name))
    }

    /// Returns a warning for each control program that has ended or lacks entries.
    pub(crate) fn program_warnings(self) -> impl Iterator<Item = String> {
        let switches = self.fabric.switches.iter().enumerate();
        switches.filter_map(|(index, switch)| {
            let program = self.nodes.program(index)?.program();
            let ended = |why| format!("the program of {} has ended: {why}", switch.name);
            let refused = |why| format!("the tables of {} refuse its program: {why}", switch.name);
            program.failure().map(ended).or_else(|| program.refusal().map(refused))
        })
    }

    /// Describes a connected host whose address is not known where it must be.
    fn missing_host(&self, whom: &str, known: impl Fn(usize, IpAddr) -> bool) -> Option<String> {
        let mut hosts = self.truth.connected_hosts().into_iter();
        let missing = hosts
            .find(|&host| self.nodes.address(host).is_some_and(|ip| !known(host, ip.into())))?;
        Some(format!("{whom} does not know {}", self.fabric.hosts[missing].name))
    }

    fn bridge(&self, switch: usize) -> Option<&BridgeNode> {
        match self.nodes.baseline(switch)? {
            Baseline::Bridge(node) => Some(node),
            _ => None,
        }
    }

    fn bridges_lack(&self) -> Option<String> {
        let at = |end: End| format!("{}-p{}", self.fabric.switches[end.switch].name, end.port.0);
        let forwards =
            |node: &BridgeNode, port: PortNo| node.bridge().state(port) == PortState::Forwarding;
        for (a, b) in self.truth.live_links() {
            let (Some(first), Some(second)) = (self.bridge(a.switch), self.bridge(b.switch)) else {
                continue;
            };
            if first.rstp().root().0 != second.rstp().root().0 {
                return Some(format!("{} and {} have not agreed on a root", at(a), at(b)));
            }
            for (node, end) in [(first, a), (second, b)] {
                let open = matches!(node.rstp().role(end.port), Role::Root | Role::Designated);
                if open != forwards(node, end.port) {
                    return Some(format!("{} is still finding its part in the tree", at(end)));
                }
            }
        }
        for host in self.truth.connected_hosts() {
            let near = WireEnd {
                station: self.nodes.layout().host_station(host),
                port: axon_simhost::PORT,
            };
            let Some(far) = self.nodes.far_end(near) else { continue };
            let end = End { switch: far.station, port: far.port };
            if self.bridge(end.switch).is_some_and(|node| !forwards(node, end.port)) {
                return Some(format!("{} does not forward yet", at(end)));
            }
        }
        None
    }

    fn portland_lacks(&self) -> Option<String> {
        let Some(Baseline::Manager(manager)) =
            self.nodes.baseline(self.nodes.layout().controller_station())
        else {
            return Some("the fabric manager has no power".to_owned());
        };
        for (index, reached) in self.truth.controlled_switches().into_iter().enumerate() {
            if let (true, Some(Baseline::PortLand(node))) = (reached, self.nodes.baseline(index))
                && node.level() == Level::Unknown
            {
                let name = &self.fabric.switches[index].name;
                return Some(format!("{name} does not know its level"));
            }
        }
        self.missing_host("the fabric manager", |_, ip| match ip {
            IpAddr::V4(ip) => manager.hosts().contains_key(&ip),
            IpAddr::V6(_) => false,
        })
    }
}
