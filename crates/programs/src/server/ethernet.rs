//! Plain Ethernet switch between servers, with static entries for the servers on its ports.

use crate::site::{Neighbour, Site};
use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use axon_pipeline::{
    Change, Control, EntryName, Group, Interface, MacKey, Program, Received, Target,
};
use axon_wire::{MacAddr, PortNo, Time};

/// Group of all ports.
const ALL_PORTS: u16 = 0;

/// Switch that forwards by destination MAC and sends broadcasts to all other ports. It does not
/// learn addresses, because the plan gives the port of each server.
#[derive(Clone, Debug)]
pub(crate) struct EthernetSwitch {
    site: Site,
    failure: Option<String>,
    /// Entries that were removed by an operator and could not be restored.
    missing: BTreeSet<EntryName>,
    /// Reason for the refusal.
    refusal: Option<String>,
}

impl EthernetSwitch {
    pub(crate) fn new(site: Site) -> EthernetSwitch {
        EthernetSwitch { site, failure: None, missing: BTreeSet::new(), refusal: None }
    }

    /// Returns one MAC entry for each server, one for broadcast, and an interface for each port.
    fn entries(&self) -> Vec<Change> {
        let servers = self.site.ports().filter_map(|(port, there)| match there {
            Neighbour::Node(node, _) => Some((port, self.site.plan.nodes[node as usize].mac)),
            _ => None,
        });
        let servers: Vec<(PortNo, MacAddr)> = servers.collect();
        let mac = |mac, target: Target| {
            Change::Mac(MacKey { bridge: 0, mac }, Some(axon_pipeline::Action::from(target)))
        };
        let mut changes = Vec::new();
        for &(port, server) in &servers {
            changes.push(Change::Interface(port.0, Some(Interface::of(port))));
            changes.push(mac(server, Target::Port(port)));
        }
        let interfaces = servers.iter().map(|(port, _)| port.0).collect();
        changes.push(Change::Group(ALL_PORTS, Some(Group { interfaces })));
        changes.push(mac(MacAddr::BROADCAST, Target::Group(ALL_PORTS)));
        changes
    }
}

impl Program for EthernetSwitch {
    fn start(&mut self, _: Time, control: &mut dyn Control) {
        self.failure = control.commit(&self.entries()).err().map(|error| error.to_string());
    }

    fn receive_packet(&mut self, _: Time, _: Received<'_>, _: &mut dyn Control) {}

    fn removed(&mut self, _: Time, entries: &[EntryName], control: &mut dyn Control) {
        self.missing.extend(entries);
        let mut changes = self.entries();
        changes.retain(|change| self.missing.contains(&change.entry()));
        self.refusal = control.commit(&changes).err().map(|error| error.to_string());
        if self.refusal.is_none() {
            self.missing.clear();
        }
    }

    fn failure(&self) -> Option<String> {
        self.failure.clone()
    }

    fn refusal(&self) -> Option<String> {
        self.refusal.clone()
    }
}
