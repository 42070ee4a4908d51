//! Status of a lab as a text table.

use axon_fabric::model::DataplaneKind;
use axon_linux::columns::columns;
use axon_linux::dataplane_choice::DataplaneChoice;
use axon_linux::port::PortCounters;
use axon_linux::status::{Answer, NodeStatus, PortStatus, Status};
use axon_node::Drop;
use axon_node::telemetry::{Counts, NodeTelemetry, Reason};
use axon_wire::{Hops, NodeId};
use std::collections::BTreeMap;

const HEADINGS: [&str; 10] = [
    "node",
    "ports up",
    "neighbours",
    "hosts",
    "routes",
    "controller",
    "rx frames",
    "drops",
    "refusals",
    "restarts",
];
/// Maximum number of neighbours or hosts in one cell.
const LISTED_MAX: usize = 6;
const NONE: &str = "-";

/// Formats one line for each daemon in [`super::Lab::status`].
pub fn table(status: &[NodeStatus]) -> String {
    let names = names(status);
    let rows = columns(&HEADINGS, status.iter().map(|status| row(status, &names)));
    format!("{rows}{}{}{}", dataplanes(status), programs(status), captures(status))
}

/// Formats the frames that captures have missed, one line for each switch with any.
fn captures(status: &[NodeStatus]) -> String {
    let line = |status: &Status| {
        let missed: u64 = status.ports.iter().map(|port| port.counters.capture_missed).sum();
        let text = || format!("capture at {}: {missed} frames missed, not lost\n", status.name);
        (missed > 0).then(text)
    };
    status.iter().filter_map(NodeStatus::status).filter_map(line).collect()
}

/// Formats the program of each programmable switch, and the fill level of its non-empty tables.
fn programs(status: &[NodeStatus]) -> String {
    let mut text = String::new();
    for one in status {
        let Some(switch) = one.node().and_then(NodeTelemetry::programmable) else { continue };
        let full = switch.tables.iter().filter(|table| table.entries > 0);
        let full: Vec<String> =
            full.map(|one| format!("{} {} of {}", one.table, one.entries, one.size)).collect();
        let tables = if full.is_empty() { "empty tables".into() } else { full.join(", ") };
        let state = match (&switch.failure, &switch.refusal, switch.ready) {
            (Some(_), ..) => " (ended)",
            (None, Some(_), _) => " (lacks entries)",
            (None, None, true) => "",
            (None, None, false) => " (not ready)",
        };
        text += &format!("program {}{state} at {}: {tables}\n", switch.program, one.name());
    }
    text
}

/// Formats data planes and reasons, with one line for all switches that share both.
fn dataplanes(status: &[NodeStatus]) -> String {
    let mut alike: BTreeMap<(DataplaneKind, &str), Vec<&str>> = BTreeMap::new();
    for status in status.iter().filter_map(NodeStatus::status) {
        if let Some(DataplaneChoice { carrier, why }) = &status.dataplane {
            alike.entry((*carrier, why.as_str())).or_default().push(&status.name);
        }
    }
    let line = |((carrier, why), names): ((DataplaneKind, &str), Vec<&str>)| {
        let names = listed(names.into_iter().map(str::to_owned));
        format!("data plane {} at {names}: {why}\n", carrier.setting())
    };
    alike.into_iter().map(line).collect()
}

/// Returns the name of each node, by its identity, because nodes know their neighbours only by
/// identity.
fn names(status: &[NodeStatus]) -> BTreeMap<NodeId, &str> {
    let pair = |status: &'_ NodeStatus| status.node().and_then(NodeTelemetry::id);
    status.iter().filter_map(|one| Some((pair(one)?, one.name()))).collect()
}

fn row(of: &NodeStatus, names: &BTreeMap<NodeId, &str>) -> Vec<String> {
    let status = match &of.answer {
        Answer::Failed { name, error } => return vec![name.clone(), format!("no answer: {error}")],
        Answer::Status(status) => status,
    };
    let Status { name, ports, node, .. } = &**status;
    let up = ports.iter().filter(|port| port.up).count();
    let neighbours = node.neighbours().iter().map(|neighbour| {
        let name = names.get(&neighbour.node).map(ToString::to_string);
        let name = name.unwrap_or_else(|| neighbour.node.to_string());
        let mark = if neighbour.restarting { " (restarting)" } else { "" };
        format!("{}:{name}{mark}", neighbour.port)
    });
    let [hosts, routes, controller] = knowledge(node);
    let total = node.total();
    let lost = Counts::of(|reason: Drop| match reason.is_ordinary() {
        true => 0,
        false => total.dropped(reason),
    });
    let lost = [reasons(&lost), losses(ports)].into_iter().filter(|text| text != "0");
    let lost = lost.collect::<Vec<_>>().join(" ");
    let rx_frames = node.plane().map(|_| total.rx_frames.to_string());
    vec![
        name.clone(),
        format!("{up}/{}", ports.len()),
        listed(neighbours),
        hosts,
        routes,
        controller,
        rx_frames.unwrap_or_else(|| NONE.to_owned()),
        if lost.is_empty() { "0".to_owned() } else { lost },
        node.refusals().map_or_else(|| "0".to_owned(), reasons),
        of.restarts.to_string(),
    ]
}

/// Formats a node's hosts, its routes, and its path to the controller.
fn knowledge(node: &NodeTelemetry) -> [String; 3] {
    match node {
        NodeTelemetry::Switch(switch) => {
            // A host with no known IP address is named by its MAC address.
            let name = |host: &axon_node::telemetry::EdgeHost| {
                host.ip.map_or_else(|| host.mac.to_string(), |ip| ip.to_string())
            };
            let path = switch.controller_path.as_ref();
            [
                listed(switch.hosts.iter().map(name)),
                switch.routes.len().to_string(),
                match (&switch.alone, path) {
                    (Some(alone), _) => format!("none, met {}/{}", alone.met + 1, alone.switches),
                    (None, Some(path)) => way(path),
                    (None, None) => "not found".to_owned(),
                },
            ]
        }
        NodeTelemetry::Controller(controller) => {
            [controller.hosts.len().to_string(), controller.routes.to_string(), "itself".to_owned()]
        }
        NodeTelemetry::Agent(_) | NodeTelemetry::Programmable(_) => [NONE; 3].map(str::to_owned),
    }
}

/// Formats the path to the controller: `at p4`, or the number of links and the first port.
fn way(path: &Hops) -> String {
    // The last hop leads to the control plane at the end.
    match (path.first(), path.len().saturating_sub(1)) {
        (None, _) | (_, 0) => "itself".to_owned(),
        (Some(port), 1) => format!("at {port}"),
        (Some(port), links) => format!("by {port}, {links} links"),
    }
}

/// Formats the first few items, and the number of further ones.
fn listed(items: impl Iterator<Item = String>) -> String {
    let mut items: Vec<String> = items.collect();
    let more = items.len().saturating_sub(LISTED_MAX);
    items.truncate(LISTED_MAX);
    match (items.is_empty(), more) {
        (true, _) => NONE.to_owned(),
        (_, 0) => items.join(" "),
        _ => format!("{} +{more}", items.join(" ")),
    }
}

/// Formats the kernel's losses at the ports of a node, by counter name.
fn losses(ports: &[PortStatus]) -> String {
    let mut sum = PortCounters::default();
    ports.iter().for_each(|port| sum.add(port.counters));
    let lost = sum.lost().into_iter().filter(|(_, count)| *count > 0);
    let text: Vec<String> = lost.map(|(name, count)| format!("{name}:{count}")).collect();
    if text.is_empty() { "0".to_owned() } else { text.join(" ") }
}

/// Formats counts by reason.
fn reasons<R: Reason>(counts: &Counts<R>) -> String {
    let text: Vec<String> =
        counts.iter().map(|(reason, count)| format!("{}:{count}", reason.name())).collect();
    if text.is_empty() { "0".to_owned() } else { text.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use axon_node::telemetry::{EdgeHost, EdgeRoute, Neighbour};
    use axon_node::{PortEvent, Refusal};
    use axon_wire::{MacAddr, PortNo};
    use std::net::Ipv4Addr;

    #[test]
    fn an_operator_sees_names_addresses_and_reasons() {
        let mac = MacAddr([2, 0, 0, 0, 0, 9]);
        let neighbour = |port, node| {
            let (port, node, peer_port) = (PortNo(port), NodeId(node), PortNo(0));
            Neighbour { port, node, peer_port, restarting: node == NodeId(9) }
        };
        let host = |ip| EdgeHost { mac, vlan: Default::default(), port: PortNo(0), ip };
        let route = EdgeRoute {
            port: PortNo(0),
            vlan: Default::default(),
            destination: mac,
            source: None,
            hops: Hops::to_control(),
            placed: true,
        };
        let mut s1 = testing::switch(2);
        s1.controller_path = Some([PortNo(0), PortNo::CONTROL].into_iter().collect());
        s1.neighbours = vec![neighbour(1, 2), neighbour(2, 9)];
        s1.hosts = vec![host(Some(Ipv4Addr::new(10, 0, 0, 2))), host(None)];
        s1.routes = vec![route.clone(), route];
        s1.refusals = [(Refusal::Replayed, 4)].into_iter().collect();
        s1.plane.total.rx_frames = 7;
        for ordinary in [Drop::Consumed, Drop::MacControl, Drop::PortUnknown] {
            s1.plane.total.count_many(PortEvent::Drop(ordinary), 5);
        }
        s1.plane.total.count_many(PortEvent::Drop(Drop::NoRoute), 1);
        let mut s2 = testing::switch(0);
        s2.id = NodeId(2);
        let mut first = testing::status("s1", s1);
        first.restarts = 3;
        let Answer::Status(status) = &mut first.answer else { unreachable!() };
        status.ports[1].up = false;
        status.ports[0].counters.rx_ring_drops = 5;
        status.ports[1].counters.tx_refused = 2;
        status.ports.iter_mut().for_each(|port| port.counters.capture_missed = 3);
        let text = table(&[first, testing::status("s2", s2), testing::failed("s3", "refused")]);
        let lines: Vec<&str> = text.lines().skip(1).collect();
        let words: Vec<&str> = lines[0].split_whitespace().collect();
        let expected = "s1 1/2 p1:s2 p2:0000000000000009 (restarting) 10.0.0.2 \
                        02:00:00:00:00:09 2 at p0 7 no_route:1 rx_ring_drops:5 tx_refused:2 \
                        control_replayed:4 3";
        assert_eq!(words.join(" "), expected);
        assert!(lines[1].contains("not found"));
        assert_eq!(lines[2], format!("{:<4}  no answer: refused", "s3"));
        let missed = "capture at s1: 6 frames missed, not lost";
        assert_eq!(lines[3..], ["data plane full at s1 s2: a test", missed]);
    }

    #[test]
    fn the_way_to_the_controller_is_its_first_port_and_its_links() {
        let path = |ports: &[u16]| {
            let hops = ports.iter().map(|&port| PortNo(port)).chain([PortNo::CONTROL]);
            way(&hops.collect())
        };
        assert_eq!([path(&[4]), path(&[2, 0, 4])], ["at p4", "by p2, 3 links"]);
    }

    #[test]
    fn a_long_list_is_cut_short_and_says_so() {
        assert_eq!(listed((0..9).map(|n| n.to_string())), "0 1 2 3 4 5 +3");
        assert_eq!(listed(std::iter::empty()), "-");
    }
}
