//! `axon path`: path of frames from one host to another, switch by switch.

use super::directory::{Directory, Hop, in_vlan, lost};
use axon_linux::columns::columns;
use axon_node::telemetry::ControllerHost;
use axon_wire::PortNo;
use axon_wire::vlan::VlanId;
use serde::Serialize;

const HEADINGS: [&str; 7] = ["switch", "in", "out", "link", "tx frames", "queued", "drops"];
const NONE: &str = "-";

/// Path of frames from one host to another, if there is a route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PathView {
    /// Sending host, by its name in the fabric file.
    pub from: String,
    /// Receiving host, by its name in the fabric file.
    pub to: String,
    /// VLAN of both hosts; omitted if there is none.
    #[serde(skip_serializing_if = "VlanId::is_none_ref")]
    pub vlan: VlanId,
    /// True if there is a route at the edge. It is installed with the first frame, and exists while
    /// frames use it.
    pub has_route: bool,
    /// True if the data plane has the route; otherwise the control plane forwards its frames.
    pub in_table: bool,
    /// True if the last port is that of the receiving host.
    pub arrives: bool,
    /// Switches on the path, in order.
    pub steps: Vec<PathStep>,
}

/// Switch on the path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PathStep {
    /// Ingress port of the step, such as `s1-p0`.
    pub ingress: String,
    /// Egress port of the step.
    pub egress: String,
    /// True if the egress port has carrier.
    pub up: bool,
    /// Rate of the egress port, in bits per second; null if unlimited.
    pub rate_bps: Option<u64>,
    /// Frames sent by the egress port, of all flows.
    pub tx_frames: u64,
    /// Bytes queued for the egress port, of all flows, without FCS.
    pub queued_bytes: u64,
    /// Frames received by the ingress port and lost, of all flows.
    pub drops: u64,
}

/// Returns the path from one host to another, by their indices in the fabric file.
pub fn path(directory: &Directory<'_>, from: usize, to: usize) -> PathView {
    let fabric = directory.fabric();
    let (source, target) = (&fabric.hosts[from], &fabric.hosts[to]);
    let mut view = PathView {
        from: source.name.clone(),
        to: target.name.clone(),
        vlan: VlanId::NONE,
        has_route: false,
        in_table: false,
        arrives: false,
        steps: Vec::new(),
    };
    // The controller knows the current positions, and the file has the initial ones.
    let of = |mac| directory.known().iter().filter(move |host| host.mac == mac);
    let place = |host: &ControllerHost| (host.switch, host.port);
    let [source_mac, target_mac] = [from, to].map(|host| directory.macs()[host]);
    let found = of(source_mac).find_map(|host| {
        let switch = directory.switch(host.switch)?;
        let key = (host.port, host.vlan, target_mac);
        let routes = || switch.node.routes.iter();
        let for_source = |source| {
            let mut routes = routes().filter(|route| route.source == source);
            routes.find(|route| (route.port, route.vlan, route.destination) == key)
        };
        let route = for_source(Some(source_mac)).or_else(|| for_source(None))?;
        Some((place(host), route))
    });
    let Some(((node, port), route)) = found else { return view };
    let there = of(target_mac).find(|host| host.vlan == route.vlan).map(place);
    view.vlan = route.vlan;
    let (way, arrives) = directory.follow(node, &route.hops);
    let last = way.last().map(|hop| (hop.switch.node.id, hop.egress));
    view.has_route = true;
    view.in_table = route.placed;
    view.arrives = arrives && last == there;
    view.steps = way.iter().map(|hop| step(hop, port)).collect();
    view
}

/// Builds a step. At the first switch, the ingress port is that of the host.
fn step(hop: &Hop<'_>, of_host: PortNo) -> PathStep {
    let ingress = hop.ingress.unwrap_or(of_host);
    let (device, port) = (hop.switch.device(hop.egress), hop.switch.port(hop.egress));
    let counters = hop.switch.port(ingress).map(|port| port.counters);
    PathStep {
        ingress: hop.switch.port_name(ingress),
        egress: hop.switch.port_name(hop.egress),
        up: device.is_some_and(|device| device.up),
        rate_bps: device.and_then(|device| device.rate_bps),
        tx_frames: port.map_or(0, |port| port.counters.tx_frames),
        queued_bytes: port.map_or(0, |port| port.queued_bytes.0),
        drops: counters.map_or(0, |counters| lost(&counters)),
    }
}

/// Formats the path as text.
pub fn text(path: &PathView) -> String {
    let PathView { from, to, vlan, has_route, in_table, arrives, steps } = path;
    let to = &in_vlan(to.clone(), *vlan);
    if !has_route {
        return format!(
            "{from} -> {to}: no route. A route comes with the first frame, if {from} may reach \
             {to}: try `axon ping {from} {to}`\n"
        );
    }
    let state = match (arrives, in_table) {
        (false, _) => "the route does not end at that host now",
        (true, true) => "route in the table",
        (true, false) => "route of the control plane, as the table does not have it",
    };
    let row = |step: &PathStep| {
        let split = |port: &str| match port.split_once('-') {
            Some((switch, port)) => (switch.to_owned(), port.to_owned()),
            None => (port.to_owned(), NONE.to_owned()),
        };
        let ((switch, ingress), (_, egress)) = (split(&step.ingress), split(&step.egress));
        let link = match (step.up, step.rate_bps) {
            (false, _) => "down".to_owned(),
            (true, Some(bps)) => format!("{} Mb/s", bps / 1_000_000),
            (true, None) => "up".to_owned(),
        };
        let queued = format!("{} B", step.queued_bytes);
        let (frames, drops) = (step.tx_frames.to_string(), step.drops.to_string());
        vec![switch, ingress, egress, link, frames, queued, drops]
    };
    format!("{from} -> {to}: {state}\n{}", columns(&HEADINGS, steps.iter().map(row)))
}

#[cfg(test)]
mod tests {
    use super::super::directory::tests::{fabric, lab};
    use super::*;
    use axon_linux::status::Answer;
    use axon_node::telemetry::NodeTelemetry;
    use axon_node::{Drop, PortEvent};

    #[test]
    fn a_path_names_each_switch_with_its_ports_and_what_they_have() {
        let fabric = fabric();
        let mut status = lab(&fabric);
        let Answer::Status(s2) = &mut status[2].answer else { unreachable!() };
        s2.ports[0].rate_bps = Some(200_000_000);
        let NodeTelemetry::Switch(s2) = &mut s2.node else { unreachable!() };
        s2.plane.ports[1].counters.count_many(PortEvent::Drop(Drop::QueueFull), 7);
        s2.plane.ports[1].counters.count_many(PortEvent::Drop(Drop::Consumed), 9);
        let directory = Directory::new(&fabric, &status);
        let found = path(&directory, 0, 1);
        assert!(found.has_route && found.in_table && found.arrives);
        let text = text(&found);
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = text.lines().map(words).collect();
        assert_eq!(lines[0], "h1 -> h2: route in the table");
        assert_eq!(lines[2..], ["s1 p0 p1 up 0 0 B 0", "s2 p1 p0 200 Mb/s 0 0 B 7"]);
        assert!(!path(&directory, 1, 0).in_table);
    }

    #[test]
    fn a_host_that_has_moved_is_not_where_the_route_ends() {
        let fabric = fabric();
        let mut status = lab(&fabric);
        let Answer::Status(controller) = &mut status[0].answer else { unreachable!() };
        let NodeTelemetry::Controller(controller) = &mut controller.node else { unreachable!() };
        controller.hosts[1].port = PortNo(4);
        let found = path(&Directory::new(&fabric, &status), 0, 1);
        assert!(found.has_route && !found.arrives);
        assert!(text(&found).contains("does not end at that host"));
    }

    #[test]
    fn without_a_route_the_way_out_is_named() {
        let fabric = fabric();
        let status = lab(&fabric);
        let found = path(&Directory::new(&fabric, &status[..2]), 1, 0);
        assert!(!found.has_route && text(&found).contains("`axon ping h2 h1`"));
    }
}
