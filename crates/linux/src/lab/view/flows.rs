//! `axon flows`: the routes that stand, and where they lead.

use super::directory::{Directory, in_vlan};
use crate::columns::columns;
use axon_node::telemetry::text;
use axon_wire::MacAddr;
use axon_wire::vlan::VlanId;
use serde::Serialize;

const HEADINGS: [&str; 4] = ["from", "to", "path", "state"];

/// A route at the edge: frames that come in by a host port for one destination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FlowView {
    /// The hosts at its ingress by the controller, by name, or by MAC address if the fabric file
    /// does not list them; or the one whose frames alone take it.
    pub from: Vec<String>,
    /// The host port whose frames take it, `s1-p0`.
    pub at: String,
    /// The VLAN of these frames; left out where that is none.
    #[serde(skip_serializing_if = "VlanId::is_none_ref")]
    pub vlan: VlanId,
    /// The host that it leads to, by name, or by MAC address if the fabric file does not list it.
    pub to: String,
    /// The MAC address of that host.
    #[serde(with = "text::mac")]
    pub destination: MacAddr,
    /// The ports by which its frames leave each switch, in their order.
    pub path: Vec<String>,
    /// Whether the last of them is no link to another switch, by what switches know of their
    /// neighbours; else the route leads nowhere now.
    pub arrives: bool,
    /// Whether it is in the table of the data plane; else the control plane forwards its frames.
    pub in_table: bool,
}

/// All routes of all edges, in the order of switches, ports, VLANs and destinations.
pub fn flows(directory: &Directory<'_>) -> Vec<FlowView> {
    let mut all = Vec::new();
    for switch in directory.switches() {
        let mut routes: Vec<_> = switch.node.routes.iter().collect();
        routes.sort_by_key(|route| (route.port, route.vlan, route.destination, route.source));
        for route in routes {
            let (path, arrives) = directory.follow(switch.node.id, &route.hops);
            all.push(FlowView {
                from: match route.source {
                    Some(mac) => vec![directory.host_name(mac)],
                    None => directory.hosts_at((switch.node.id, route.port), Some(route.vlan)),
                },
                at: switch.port_name(route.port),
                vlan: route.vlan,
                to: directory.host_name(route.destination),
                destination: route.destination,
                path: path.iter().map(|hop| hop.switch.port_name(hop.egress)).collect(),
                arrives,
                in_table: route.placed,
            });
        }
    }
    all
}

/// The routes as a table for people.
pub fn text(flows: &[FlowView]) -> String {
    let row = |flow: &FlowView| {
        let from = match &flow.from[..] {
            [] => flow.at.clone(),
            hosts => format!("{} ({})", hosts.join(" "), flow.at),
        };
        let state = match (flow.arrives, flow.in_table) {
            (false, _) => "leads nowhere",
            (true, true) => "in the table",
            (true, false) => "slow path",
        };
        vec![from, in_vlan(flow.to.clone(), flow.vlan), flow.path.join(" "), state.to_owned()]
    };
    columns(&HEADINGS, flows.iter().map(row))
}

#[cfg(test)]
mod tests {
    use super::super::directory::tests::{fabric, lab};
    use super::*;
    use crate::status::Answer;
    use axon_node::telemetry::NodeTelemetry;

    #[test]
    fn a_route_is_shown_with_its_hosts_its_ports_and_where_it_is() {
        let fabric = fabric();
        let mut status = lab(&fabric);
        let rows = |status: &[_]| {
            let text = text(&flows(&Directory::new(&fabric, status)));
            let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
            text.lines().skip(1).map(words).collect::<Vec<_>>()
        };
        let expected =
            ["h1 (s1-p0) h2 s1-p1 s2-p0 in the table", "h2 (s2-p0) h1 s2-p1 s1-p0 slow path"];
        assert_eq!(rows(&status), expected);
        // A link that s1 does not know any more.
        let Answer::Status(s1) = &mut status[1].answer else { unreachable!() };
        let NodeTelemetry::Switch(s1) = &mut s1.node else { unreachable!() };
        s1.neighbours.clear();
        assert_eq!(rows(&status)[0], "h1 (s1-p0) h2 s1-p1 leads nowhere");
    }
}
