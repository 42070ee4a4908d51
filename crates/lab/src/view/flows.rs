//! `axon flows`: installed routes and their paths.

use super::directory::{Directory, in_vlan};
use axon_linux::columns::columns;
use axon_node::telemetry::text;
use axon_wire::MacAddr;
use axon_wire::vlan::VlanId;
use serde::Serialize;

const HEADINGS: [&str; 4] = ["from", "to", "path", "state"];

/// Route at the edge: frames from a host port to one destination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FlowView {
    /// Hosts at the ingress port by the controller, by name, or by MAC address if the fabric file
    /// does not list them; for a route of one source, that host.
    pub from: Vec<String>,
    /// Host port of the route, `s1-p0`.
    pub at: String,
    /// VLAN of the frames; omitted if there is none.
    #[serde(skip_serializing_if = "VlanId::is_none_ref")]
    pub vlan: VlanId,
    /// Destination host, by name, or by MAC address if the fabric file does not list it.
    pub to: String,
    /// MAC address of the destination host.
    #[serde(with = "text::mac")]
    pub destination: MacAddr,
    /// Egress port at each switch, in order.
    pub path: Vec<String>,
    /// True if the last egress port has no other switch behind it, by the neighbours of the
    /// switches; otherwise the path is broken.
    pub arrives: bool,
    /// True if the data plane has the route; otherwise the control plane forwards its frames.
    pub in_table: bool,
}

/// Returns all routes at all edges, ordered by switch, port, VLAN and destination.
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

/// Formats the routes as a table.
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
    use axon_linux::status::Answer;
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
        // s1 no longer has its link.
        let Answer::Status(s1) = &mut status[1].answer else { unreachable!() };
        let NodeTelemetry::Switch(s1) = &mut s1.node else { unreachable!() };
        s1.neighbours.clear();
        assert_eq!(rows(&status)[0], "h1 (s1-p0) h2 s1-p1 leads nowhere");
    }
}
