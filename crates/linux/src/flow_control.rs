//! What flow control does at the ports of switches and agents: as JSON in the status, and as a
//! table.

use crate::columns::columns;
use axon_plane::{Ports, WaitingQueue};
use axon_wire::priority::{Priority, PrioritySet};
use axon_wire::{Frame, PortNo, Time};
use serde_json::{Value, json};

const HEADINGS: [&str; 4] = ["port", "stopped by its peer", "asks its peer to stop", "waiting"];

/// One port: the priorities that its peer has stopped and those that it asks its peer to stop, how
/// often each was named by frames to the peer (requests) and from it (indications), what waits of
/// each class, by the port that it came in by, and the buffers of what came in here that stand
/// still ([`axon_plane::Blocked`]).
pub(crate) fn status<B: Frame>(ports: &Ports<B>, now: Time, port: PortNo) -> Value {
    let counts = Priority::ALL.map(|priority| ports.pfc_counts(port, priority));
    let waiting = ports.waiting(port).map(|(class, ingress, bytes)| {
        json!({ "class": class.value(), "ingress": ingress.0, "bytes": bytes.0 })
    });
    let standing = Priority::ALL.into_iter().filter_map(|priority| {
        let still = ports.blocked(now, port, priority)?;
        let queue = |queue: &WaitingQueue| {
            json!({ "egress": queue.egress.0, "stopped": numbers(queue.paused) })
        };
        Some(json!({
            "priority": priority.value(),
            "left_frames": still.left,
            "still_ms": now.since(still.since).as_millis(),
            "waits": still.waits.iter().map(queue).collect::<Vec<_>>(),
        }))
    });
    json!({
        "stopped": numbers(ports.paused(now, port)),
        "asking": numbers(ports.pause_requests(port)),
        "requests": counts.map(|(requests, _)| requests),
        "indications": counts.map(|(_, indications)| indications),
        "waiting": waiting.collect::<Vec<_>>(),
        "standing": standing.collect::<Vec<_>>(),
    })
}

fn numbers(priorities: PrioritySet) -> Vec<u8> {
    priorities.iter().map(Priority::value).collect()
}

/// One line for each port where something is stopped or waits now; empty if none is.
pub fn table(status: &[Value]) -> String {
    columns(&HEADINGS, status.iter().flat_map(rows))
}

fn rows(status: &Value) -> Vec<Vec<String>> {
    let node = &status["node"];
    // A switch tells of all its ports in a row; an agent has two, each with its own name.
    let of_switch = items(&node["plane"]["flow_control"]).iter();
    let of_agent = ["host", "fabric"].iter().filter_map(|side| node.get(side));
    let ports = items(&status["ports"]).iter().zip(of_switch.chain(of_agent));
    ports.filter_map(|(port, flow)| row(port["name"].as_str()?, flow)).collect()
}

fn row(port: &str, flow: &Value) -> Option<Vec<String>> {
    let stopped = items(&flow["stopped"]).iter().map(Value::to_string);
    let asking = items(&flow["asking"]).iter().map(Value::to_string);
    let waiting = items(&flow["waiting"]).iter().map(|queue| {
        let ingress = match queue["ingress"].as_u64() {
            Some(port) if port == u64::from(PortNo::CONTROL.0) => "itself".to_owned(),
            port => format!("p{}", port.unwrap_or(0)),
        };
        format!("class {}: {} B from {ingress}", queue["class"], queue["bytes"])
    });
    let cells = [list(stopped, ","), list(asking, ","), list(waiting, ", ")];
    let is_any = cells.iter().any(|cell| cell != "-");
    is_any.then(|| [port.to_owned()].into_iter().chain(cells).collect())
}

fn list(items: impl Iterator<Item = String>, between: &str) -> String {
    let items: Vec<String> = items.collect();
    if items.is_empty() { "-".to_owned() } else { items.join(between) }
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_sees_who_is_stopped_who_asks_for_it_and_what_waits() {
        let ports = json!([{ "name": "s1-p0" }, { "name": "s1-p1" }, { "name": "s1-p2" }]);
        let waiting = json!([{ "class": 1, "ingress": 0, "bytes": 3000 },
            { "class": 2, "ingress": PortNo::CONTROL.0, "bytes": 60 }]);
        let flow = json!([{ "asking": [3, 4] }, {},
            { "stopped": [3], "waiting": waiting }]);
        let text = table(&[
            json!({ "name": "s1", "ports": ports, "node": { "plane": { "flow_control": flow } } }),
            json!({ "name": "h1", "ports": [{ "name": "h1-p0" }, { "name": "h1-e0" }],
                "node": { "host": {}, "fabric": { "stopped": [3] } } }),
            json!({ "name": "c1", "ports": [], "node": {} }),
        ]);
        let lines: Vec<String> = text
            .lines()
            .skip(1)
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        let waits = "class 1: 3000 B from p0, class 2: 60 B from itself";
        assert_eq!(lines, ["s1-p0 - 3,4 -", &format!("s1-p2 3 - {waits}"), "h1-e0 3 - -"]);
        assert_eq!(table(&[json!({ "name": "c1", "ports": [], "node": {} })]), "");
    }
}
