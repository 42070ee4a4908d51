//! `axon hosts`: positions of hosts.

use super::directory::{Directory, in_vlan};
use axon_fabric::assemble::switch_id;
use axon_fabric::model::End;
use axon_linux::columns::columns;
use axon_node::telemetry::text;
use axon_wire::MacAddr;
use axon_wire::vlan::VlanId;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

const HEADINGS: [&str; 6] = ["host", "MAC", "at", "addresses", "routes to it", "routes from it"];
const NONE: &str = "-";

/// Host, as the nodes of a lab know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostView {
    /// Name of the host in the fabric file; null if that does not list its MAC address.
    pub host: Option<String>,
    /// MAC address of the host.
    #[serde(with = "text::mac")]
    pub mac: MacAddr,
    /// VLAN of the host; omitted if there is none. A host in several VLANs has one entry for each.
    #[serde(skip_serializing_if = "VlanId::is_none_ref")]
    pub vlan: VlanId,
    /// Port of the host at the controller, `s1-p0`; null if the controller does not know it.
    pub at: Option<String>,
    /// Name of the bond to which this port belongs, if any.
    pub bond: Option<String>,
    /// Ports of switches that have learned the host.
    pub learned_at: Vec<String>,
    /// Addresses of the host by the controller, newest last.
    pub addresses: Vec<IpAddr>,
    /// Routes to the host, at all switches.
    pub routes_to: u64,
    /// Routes of the host's port at the controller.
    pub routes_from: u64,
}

/// Host in one VLAN.
type Key = (MacAddr, VlanId);

impl HostView {
    fn new(directory: &Directory<'_>, (mac, vlan): Key) -> HostView {
        let listed = directory.macs().iter().position(|listed| *listed == mac);
        HostView {
            host: listed.map(|index| directory.fabric().hosts[index].name.clone()),
            mac,
            vlan,
            at: None,
            bond: None,
            learned_at: Vec::new(),
            addresses: Vec::new(),
            routes_to: 0,
            routes_from: 0,
        }
    }
}

/// Returns all hosts: first those in the fabric file, in its order, then all others that a node
/// knows, by MAC address.
pub fn hosts(directory: &Directory<'_>) -> Vec<HostView> {
    let mut all: BTreeMap<Key, HostView> = BTreeMap::new();
    let fabric = directory.fabric();
    let own =
        |host| axon_fabric::vlans::of_host(fabric, host).map(|vlan| vlan.id).unwrap_or_default();
    let listed: Vec<Key> =
        fabric.hosts.iter().zip(directory.macs()).map(|(host, &mac)| (mac, own(host))).collect();
    for &key in &listed {
        all.insert(key, HostView::new(directory, key));
    }
    for host in directory.known() {
        let key = (host.mac, host.vlan);
        let view = all.entry(key).or_insert_with(|| HostView::new(directory, key));
        view.at = Some(directory.port_name((host.switch, host.port)));
        let is_at = |end: &End| (switch_id(end.switch), end.port) == (host.switch, host.port);
        let mut bonds = directory.fabric().bonds.iter();
        view.bond = bonds.find(|bond| bond.members.iter().any(is_at)).map(|bond| bond.name.clone());
        view.addresses.clone_from(&host.ips);
    }
    for switch in directory.switches() {
        for host in &switch.node.hosts {
            let key = (host.mac, host.vlan);
            let view = all.entry(key).or_insert_with(|| HostView::new(directory, key));
            view.learned_at.push(switch.port_name(host.port));
        }
    }
    let mut by_port: BTreeMap<(String, VlanId), u64> = BTreeMap::new();
    let mut by_host: BTreeMap<(MacAddr, VlanId), u64> = BTreeMap::new();
    for switch in directory.switches() {
        for route in &switch.node.routes {
            if let Some(view) = all.get_mut(&(route.destination, route.vlan)) {
                view.routes_to += 1;
            }
            *match route.source {
                None => by_port.entry((switch.port_name(route.port), route.vlan)).or_default(),
                Some(source) => by_host.entry((source, route.vlan)).or_default(),
            } += 1;
        }
    }
    for (host, view) in &mut all {
        let at = view.at.clone();
        let of_port = at.and_then(|port| by_port.get(&(port, view.vlan)));
        let counts = [of_port, by_host.get(host)];
        view.routes_from = counts.into_iter().flatten().sum();
    }
    // A host in the file that is seen only in the VLANs of its tags is not missing.
    let is_seen = |view: &HostView| view.at.is_some() || !view.learned_at.is_empty();
    let seen: BTreeSet<MacAddr> =
        all.values().filter(|view| is_seen(view)).map(|view| view.mac).collect();
    all.retain(|_, view| is_seen(view) || !seen.contains(&view.mac));
    let mut found = Vec::new();
    for (mac, _) in listed {
        let own: Vec<Key> = all.keys().filter(|key| key.0 == mac).copied().collect();
        found.extend(own.into_iter().filter_map(|key| all.remove(&key)));
    }
    found.extend(all.into_values());
    found
}

/// Formats the hosts as a table.
pub fn text(hosts: &[HostView]) -> String {
    let row = |host: &HostView| {
        let addresses: Vec<String> = host.addresses.iter().map(ToString::to_string).collect();
        let or_none = |text: String| if text.is_empty() { NONE.to_owned() } else { text };
        let at = host.at.clone().unwrap_or_else(|| match &host.learned_at[..] {
            [] => "not seen".to_owned(),
            ports => format!("{} (unknown to the controller)", ports.join(" ")),
        });
        let at = match &host.bond {
            Some(bond) => format!("{at} (bond {bond})"),
            None => at,
        };
        vec![
            in_vlan(host.host.clone().unwrap_or_else(|| NONE.to_owned()), host.vlan),
            host.mac.to_string(),
            at,
            or_none(addresses.join(" ")),
            host.routes_to.to_string(),
            host.routes_from.to_string(),
        ]
    };
    columns(&HEADINGS, hosts.iter().map(row))
}

#[cfg(test)]
mod tests {
    use super::super::directory::tests::{fabric, lab};
    use super::*;
    use axon_linux::status::Answer;
    use axon_node::telemetry::{ControllerHost, NodeTelemetry};
    use axon_wire::{NodeId, PortNo};

    #[test]
    fn hosts_of_the_file_come_first_and_others_by_their_mac() {
        let fabric = fabric();
        let mut status = lab(&fabric);
        let stranger = MacAddr([2, 0, 0, 0, 9, 9]);
        let Answer::Status(controller) = &mut status[0].answer else { unreachable!() };
        let NodeTelemetry::Controller(controller) = &mut controller.node else { unreachable!() };
        let (switch, port) = (NodeId(1), PortNo(0));
        controller.hosts.remove(1);
        controller.hosts.push(ControllerHost {
            mac: stranger,
            vlan: VlanId::NONE,
            switch,
            port,
            ips: Vec::new(),
        });
        let hosts = hosts(&Directory::new(&fabric, &status));
        let text = text(&hosts);
        let rows: Vec<String> = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        let [h1, h2] = [0, 1].map(|index: usize| fabric.hosts[index].mac);
        assert_eq!(rows[1], format!("h1 {h1} s1-p0 10.0.0.2 fe80::2 1 1"));
        assert_eq!(rows[2], format!("h2 {h2} not seen - 1 0"));
        assert_eq!(rows[3], format!("- {stranger} s1-p0 - 0 1"), "a port with two hosts");
        assert_eq!(rows.len(), 4);
    }
}
