//! `axon top`: load of the ports, with the busiest first.

use super::directory::{Directory, lost};
use axon_fabric::model::Fabric;
use axon_linux::columns::columns;
use axon_linux::status::{NodeStatus, Status};
use axon_node::PortCounters;
use axon_node::telemetry::{NodeTelemetry, PortTelemetry};
use axon_wire::PortNo;
use serde::Serialize;

const HEADINGS: [&str; 9] =
    ["port", "to", "rx Mb/s", "tx Mb/s", "rx/s", "tx/s", "link used", "queued", "drops/s"];
const NONE: &str = "-";

/// Load of a switch port, from two measurements of its counters.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PortLoad {
    /// Name of the port, `s1-p0`.
    pub port: String,
    /// Port or hosts at the other end, as far as known.
    pub peer: Vec<String>,
    /// Receive rate in bits per second, without FCS, preamble and gap.
    pub rx_bps: f64,
    /// Transmit rate in bits per second, without FCS, preamble and gap.
    pub tx_bps: f64,
    /// Received frames per second.
    pub rx_frames_per_s: f64,
    /// Sent frames per second.
    pub tx_frames_per_s: f64,
    /// Configured rate in bits per second; null if unlimited.
    pub rate_bps: Option<u64>,
    /// Bytes queued for the port, without FCS.
    pub queued_bytes: u64,
    /// Frames per second received by the port and lost.
    pub drops_per_s: f64,
}

impl PortLoad {
    /// Returns the rate of the busier direction, in bits per second.
    fn most_bps(&self) -> f64 {
        self.rx_bps.max(self.tx_bps)
    }
}

/// Returns the loads on all ports of all switches between two measurements of a lab, with the
/// busiest first. A switch that did not answer both, or was restarted in between, is omitted.
pub fn loads(fabric: &Fabric, before: &[NodeStatus], after: &[NodeStatus]) -> Vec<PortLoad> {
    let directory = Directory::new(fabric, after);
    let mut all = Vec::new();
    for now in after.iter().filter_map(NodeStatus::status) {
        let same = |status: &&Status| status.name == now.name && status.uptime_us < now.uptime_us;
        let Some(then) = before.iter().filter_map(NodeStatus::status).find(same) else { continue };
        let seconds = (now.uptime_us - then.uptime_us) as f64 / 1e6;
        let (Some(ports), Some(earlier)) = (ports(&now.node), ports(&then.node)) else { continue };
        for (number, (port, earlier)) in ports.iter().zip(earlier).enumerate() {
            let device = now.ports.get(number);
            if !port.up || device.is_none() {
                continue;
            }
            let name = device.map(|device| device.name.clone()).unwrap_or_default();
            let per_s = |of: fn(&PortCounters) -> u64| {
                of(&port.counters).saturating_sub(of(&earlier.counters)) as f64 / seconds
            };
            all.push(PortLoad {
                port: name,
                peer: peer(&directory, now, PortNo(number as u16)),
                rx_bps: 8.0 * per_s(|counters| counters.rx_bytes),
                tx_bps: 8.0 * per_s(|counters| counters.tx_bytes),
                rx_frames_per_s: per_s(|counters| counters.rx_frames),
                tx_frames_per_s: per_s(|counters| counters.tx_frames),
                rate_bps: device.and_then(|device| device.rate_bps),
                queued_bytes: port.queued_bytes.0,
                drops_per_s: per_s(lost),
            });
        }
    }
    all.sort_by(|a, b| b.most_bps().total_cmp(&a.most_bps()).then(a.port.cmp(&b.port)));
    all
}

fn ports(node: &NodeTelemetry) -> Option<&[PortTelemetry]> {
    let is_switch = matches!(node, NodeTelemetry::Switch(_) | NodeTelemetry::Programmable(_));
    node.plane().filter(|_| is_switch).map(|plane| &plane.ports[..])
}

/// Returns the neighbour's port, or the hosts at the port according to the controller.
fn peer(directory: &Directory<'_>, of: &Status, port: PortNo) -> Vec<String> {
    let Some(switch) = of.node.switch().and_then(|node| directory.switch(node.id)) else {
        return Vec::new();
    };
    if let Some(peer) = switch.peer(port) {
        return vec![directory.port_name(peer)];
    }
    directory.hosts_at((switch.node.id, port), None)
}

/// Formats the first `lines` loads as a table, and the number of further ones.
pub fn text(loads: &[PortLoad], lines: usize) -> String {
    let row = |load: &PortLoad| {
        let used = load.rate_bps.filter(|&bps| bps > 0).map(|bps| load.tx_bps / bps as f64);
        vec![
            load.port.clone(),
            if load.peer.is_empty() { NONE.to_owned() } else { load.peer.join(" ") },
            format!("{:.2}", load.rx_bps / 1e6),
            format!("{:.2}", load.tx_bps / 1e6),
            format!("{:.0}", load.rx_frames_per_s),
            format!("{:.0}", load.tx_frames_per_s),
            used.map_or_else(|| NONE.to_owned(), |used| format!("{:.0} %", 100.0 * used)),
            format!("{} B", load.queued_bytes),
            format!("{:.0}", load.drops_per_s),
        ]
    };
    let table = columns(&HEADINGS, loads.iter().take(lines).map(row));
    match loads.len().saturating_sub(lines) {
        0 => table,
        more => format!("{table}and {more} ports more: --lines N shows them\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::directory::tests::{fabric, lab};
    use super::*;
    use axon_linux::status::Answer;

    /// Returns the status of the lab after this uptime, with these bytes sent by p1 of s1.
    fn look(fabric: &Fabric, uptime_us: u64, bytes: u64) -> Vec<NodeStatus> {
        let mut status = lab(fabric);
        for one in &mut status {
            let Answer::Status(one) = &mut one.answer else { unreachable!() };
            one.uptime_us = uptime_us;
            let NodeTelemetry::Switch(switch) = &mut one.node else { continue };
            for port in &mut switch.plane.ports {
                port.up = true;
            }
            if one.name == "s1" {
                let port = &mut switch.plane.ports[1].counters;
                (port.tx_bytes, port.tx_frames) = (bytes, bytes / 1_000);
                one.ports[1].rate_bps = Some(10_000_000);
            }
        }
        status
    }

    #[test]
    fn the_busiest_port_comes_first_with_its_rates_and_the_port_at_its_far_end() {
        let fabric = fabric();
        let (before, after) = (look(&fabric, 1_000, 0), look(&fabric, 2_001_000, 1_000_000));
        let loads = loads(&fabric, &before, &after);
        assert_eq!(loads.len(), 4);
        let first = &loads[0];
        assert_eq!((first.port.as_str(), &first.peer[..]), ("s1-p1", &["s2-p1".to_owned()][..]));
        assert_eq!((first.tx_bps, first.tx_frames_per_s), (4e6, 500.0));
        let text = text(&loads, 1);
        assert!(text.contains("40 %") && text.contains("and 3 ports more"), "{text}");
        assert_eq!(loads[1].peer, ["h1"]);
    }

    #[test]
    fn a_switch_that_was_started_again_in_between_is_left_out() {
        let fabric = fabric();
        let (before, after) = (look(&fabric, 9_000_000, 5), look(&fabric, 1_000_000, 9));
        assert_eq!(loads(&fabric, &before, &after), []);
    }
}
