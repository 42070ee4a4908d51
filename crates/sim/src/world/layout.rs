//! Numbers of a world's stations and links.
//!
//! Stations are the switches in order, then the controller, then the hosts and then the agents,
//! each in order. Links are those between switches, then those of hosts, of the controller and of
//! agents, and then the further links of bonds: the first port of a bond has its host's own link.

use crate::link::links::LinkId;
use axon_fabric::model::{Cable, Fabric};
use std::collections::BTreeMap;

/// Numbers of the stations and links of a fabric's world.
#[derive(Clone, Debug)]
pub struct Layout {
    switches: usize,
    hosts: usize,
    links: usize,
    bonds: BTreeMap<usize, BondLinks>,
}

/// Links of a host's bond.
#[derive(Clone, Copy, Debug)]
struct BondLinks {
    ports: u16,
    /// Link of its second port.
    second: usize,
}

impl Layout {
    /// Returns the numbers in the world of a fabric.
    pub(crate) fn of(fabric: &Fabric) -> Layout {
        let (switches, hosts) = (fabric.switches.len(), fabric.hosts.len());
        let links = fabric.links.len();
        let mut second = links + hosts + 1 + fabric.agents.len();
        let mut bonds = BTreeMap::new();
        for bond in &fabric.bonds {
            if let Some(host) = bond.host {
                bonds.insert(host, BondLinks { ports: bond.members.len() as u16, second });
                second += bond.members.len() - 1;
            }
        }
        Layout { switches, hosts, links, bonds }
    }

    /// Returns the number of hosts.
    pub(crate) fn hosts(&self) -> usize {
        self.hosts
    }

    /// Returns the station of the controller.
    pub fn controller_station(&self) -> usize {
        self.switches
    }

    /// Returns the station of a host.
    pub fn host_station(&self, host: usize) -> usize {
        self.switches + 1 + host
    }

    /// Returns the station of an agent, by its index in the fabric.
    pub fn agent_station(&self, agent: usize) -> usize {
        self.host_station(self.hosts) + agent
    }

    /// Returns the link between a host and its edge.
    pub fn access_link(&self, host: usize) -> LinkId {
        LinkId(self.links + host)
    }

    /// Returns the link between the controller and its switch.
    pub fn controller_link(&self) -> LinkId {
        LinkId(self.links + self.hosts)
    }

    /// Returns the link of a cable of the fabric.
    pub(crate) fn cable(&self, cable: Cable) -> LinkId {
        match cable {
            Cable::Link(link) => LinkId(link),
            Cable::Host(host) => self.access_link(host),
            Cable::Controller => self.controller_link(),
        }
    }

    /// Returns the number of ports of a host's bond; 0 without a bond.
    pub(crate) fn bond_ports(&self, host: usize) -> u16 {
        self.bonds.get(&host).map_or(0, |bond| bond.ports)
    }

    /// Returns the link of a port of a host's bond. The first is the host's own.
    ///
    /// # Panics
    /// If the host has no bond, or that no such port.
    pub fn bond_link(&self, host: usize, member: usize) -> LinkId {
        let ports = usize::from(self.bond_ports(host));
        assert!(member < ports, "port {member} of a bond with {ports}");
        match member {
            0 => self.access_link(host),
            _ => LinkId(self.bonds[&host].second + member - 1),
        }
    }
}
