//! Ports of a server to its own hosts, with their entries and ARP.

use super::address::SLOTS;
use crate::arp;
use crate::site::{Neighbour, Plan, Site};
use alloc::vec::Vec;
use axon_pipeline::{Action, Change, Control, Interface, MacKey, PortOptions};
use axon_wire::{MacAddr, PortNo};
use core::net::Ipv4Addr;

/// Bridge for the ports to hosts.
const HOST_BRIDGE: u16 = 1;

/// Host attached to this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Own {
    port: PortNo,
    mac: MacAddr,
    ip: Ipv4Addr,
}

/// Returns whether all hosts in a network are on its first nodes, which are the servers, and no
/// server has more hosts than slots.
pub(crate) fn hosts_fit(plan: &Plan, servers: u32) -> bool {
    let mut at = alloc::vec![0; plan.nodes.len()];
    let mut count = |node: u32| {
        at[node as usize] += 1;
        node < servers && at[node as usize] <= SLOTS
    };
    plan.nodes.len() >= servers as usize && plan.hosts.iter().all(|host| count(host.node))
}

/// Hosts attached to this server, by slot.
#[derive(Clone, Debug)]
pub(crate) struct HostPorts {
    site: Site,
    own: Vec<Own>,
    /// Number of the interface to slot 0. The interfaces to other slots follow.
    first_interface: u16,
}

impl HostPorts {
    /// Creates the host ports of the site's node, at most one for each slot.
    pub(crate) fn new(site: &Site, first_interface: u16) -> HostPorts {
        let hosts = site.hosts().take(SLOTS.into());
        let own = hosts.map(|host| Own { port: host.port, mac: host.mac, ip: host.ip }).collect();
        HostPorts { site: site.clone(), own, first_interface }
    }

    /// Returns the entries for the ports: an interface for each host, which sets the host's MAC,
    /// and traps for ARP and for packets of unknown flows.
    pub(crate) fn entries(&self) -> Vec<Change> {
        let own_mac = self.site.own().mac;
        let mut changes = Vec::new();
        for (slot, host) in (0..).zip(&self.own) {
            let (destination, source) = (Some(host.mac), Some(own_mac));
            let interface = Interface { port: host.port, destination, source };
            changes.push(Change::Interface(self.interface(slot), Some(interface)));
            let options = PortOptions { bridge: HOST_BRIDGE, ..PortOptions::default() };
            changes.push(Change::Port(host.port, Some(options)));
        }
        if !self.own.is_empty() {
            for mac in [own_mac, MacAddr::BROADCAST] {
                let key = MacKey { bridge: HOST_BRIDGE, mac };
                changes.push(Change::Mac(key, Some(Action::cpu())));
            }
        }
        changes
    }

    /// Returns the ports in the order of their slots.
    pub(crate) fn ports(&self) -> impl Iterator<Item = PortNo> {
        self.own.iter().map(|host| host.port)
    }

    /// Returns whether a port has a host.
    pub(crate) fn has(&self, port: PortNo) -> bool {
        self.ports().any(|host| host == port)
    }

    /// Returns the slots in use.
    pub(crate) fn slots(&self) -> impl Iterator<Item = u8> {
        0..self.own.len() as u8
    }

    /// Returns the number of the interface to a slot.
    pub(crate) fn interface(&self, slot: u8) -> u16 {
        self.first_interface + u16::from(slot)
    }

    /// Answers a host's ARP request for any target with the address of this server.
    pub(crate) fn answer_arp(&self, port: PortNo, frame: &[u8], control: &mut dyn Control) {
        let own_mac = self.site.own().mac;
        let known = |ip| self.site.plan.host_of(ip).map(|_| own_mac);
        if let Some(reply) = arp::answer(frame, known) {
            control.send_packet(port, &reply);
        }
    }

    /// Returns the server and slot of a host in the network, if its server has a slot for it.
    pub(crate) fn place_of(&self, ip: Ipv4Addr) -> Option<(u32, u8)> {
        let host = self.site.plan.host_of(ip)?;
        let there = self.site.plan.hosts.iter().filter(|other| other.node == host.node);
        let slot = there.take(SLOTS.into()).position(|other| other.ip == ip)?;
        Some((host.node, slot as u8))
    }

    /// Returns the ports to other nodes, each with the node at its other end.
    pub(crate) fn links(site: &Site) -> impl Iterator<Item = (PortNo, u32)> {
        site.ports().filter_map(|(port, there)| match there {
            Neighbour::Node(node, _) => Some((port, node)),
            _ => None,
        })
    }
}
