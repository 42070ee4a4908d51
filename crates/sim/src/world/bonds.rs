//! Hosts with bonds: one link for each port, the first in place of a host's single one.

use crate::link::links::{LinkId, WireEnd};
use crate::world::World;
use axon_fabric::model::Fabric;
use axon_wire::PortNo;

impl World {
    /// Returns the number of ports of a host's bond; 0 without a bond.
    pub(crate) fn bond_ports(&self, host: usize) -> u16 {
        let bond = self.fabric().bonds.iter().find(|bond| bond.host == Some(host));
        bond.map_or(0, |bond| bond.members.len() as u16)
    }

    /// Returns the link of a port of a host's bond. The first is the host's own.
    ///
    /// # Panics
    /// If the host has no bond, or that no such port.
    pub fn bond_link(&self, host: usize, member: usize) -> LinkId {
        let ports = usize::from(self.bond_ports(host));
        assert!(member < ports, "port {member} of a bond with {ports}");
        if member == 0 {
            return self.access_link(host);
        }
        let of_hosts = self.fabric().bonds.iter().filter_map(|bond| Some((bond.host?, bond)));
        let before = of_hosts.take_while(|(other, _)| *other != host);
        let before: usize = before.map(|(_, bond)| bond.members.len() - 1).sum();
        let first = self.controller_link().0 + 1 + self.fabric().agents.len();
        LinkId(first + before + member - 1)
    }

    pub(crate) fn connect_bonds(&mut self, fabric: &Fabric) {
        for bond in &fabric.bonds {
            let Some(host) = bond.host else { continue };
            for (number, end) in (0..).map(PortNo).zip(&bond.members).skip(1) {
                let near = WireEnd { station: self.host_station(host), port: number };
                let far = WireEnd { station: end.switch, port: end.port };
                self.engine.connect(near, far, fabric.hosts[host].wire);
            }
        }
    }
}
