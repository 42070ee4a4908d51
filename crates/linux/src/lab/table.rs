//! The status of a lab as a table for people.

use crate::columns::columns;
use serde_json::Value;
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
/// Neighbours or hosts that are named in one cell.
const LISTED_MAX: usize = 6;

/// One line for each daemon of [`super::Lab::status`].
pub fn table(status: &[Value]) -> String {
    let names = names(status);
    columns(&HEADINGS, status.iter().map(|status| row(status, &names)))
}

/// Who has which id. Nodes know their neighbours by id, people by name.
fn names<'a>(status: &'a [Value]) -> BTreeMap<&'a str, &'a str> {
    let pair = |status: &'a Value| Some((status["node"]["id"].as_str()?, status["name"].as_str()?));
    status.iter().filter_map(pair).collect()
}

fn row(status: &Value, names: &BTreeMap<&str, &str>) -> Vec<String> {
    let name = status["name"].as_str().unwrap_or("?").to_owned();
    if let Some(error) = status["error"].as_str() {
        return vec![name, format!("no answer: {error}")];
    }
    let node = &status["node"];
    let is_controller = node["role"] == "controller";
    let ports = items(&status["ports"]);
    let up = ports.iter().filter(|port| port["up"] == true).count();
    let neighbours = items(&node["neighbours"]).iter().map(|neighbour| {
        let id = neighbour["node"].as_str().unwrap_or("?");
        let port = neighbour["port"].as_u64().unwrap_or(0);
        format!("p{port}:{}", names.get(id).unwrap_or(&id))
    });
    let hosts = items(&node["hosts"]);
    let hosts = if is_controller {
        hosts.len().to_string()
    } else {
        // A host that has not said its address yet is known by its MAC.
        let known = |host: &Value| host["ip"].as_str().or(host["mac"].as_str()).map(str::to_owned);
        listed(hosts.iter().filter_map(known))
    };
    let routes = match &node["routes"] {
        Value::Array(routes) => routes.len().to_string(),
        Value::Number(routes) => routes.to_string(),
        _ => "-".to_owned(),
    };
    let controller = match node["controller_path"].as_str() {
        _ if is_controller => "itself",
        _ if node["role"] == "agent" => "-",
        Some(hops) => hops,
        None => "not found",
    };
    vec![
        name,
        format!("{up}/{}", ports.len()),
        listed(neighbours),
        hosts,
        routes,
        controller.to_owned(),
        node["plane"]["rx_frames"].as_u64().map_or("-".to_owned(), |frames| frames.to_string()),
        reasons(node.get("drops").unwrap_or(&node["plane"]["drops"])),
        reasons(&node["refusals"]),
        status["restarts"].as_u64().unwrap_or(0).to_string(),
    ]
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The first few, and how many there are beyond.
fn listed(items: impl Iterator<Item = String>) -> String {
    let mut items: Vec<String> = items.collect();
    let more = items.len().saturating_sub(LISTED_MAX);
    items.truncate(LISTED_MAX);
    match (items.is_empty(), more) {
        (true, _) => "-".to_owned(),
        (_, 0) => items.join(" "),
        _ => format!("{} +{more}", items.join(" ")),
    }
}

/// Counts by reason. The ordinary end of a control packet is no loss.
fn reasons(counts: &Value) -> String {
    let counts = counts.as_object().into_iter().flatten();
    let counts = counts.filter(|(reason, _)| *reason != "consumed");
    let text: Vec<String> = counts.map(|(reason, count)| format!("{reason}:{count}")).collect();
    if text.is_empty() { "0".to_owned() } else { text.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_operator_sees_names_addresses_and_reasons() {
        let text = table(&[
            json!({ "name": "s1", "restarts": 3, "ports": [{ "up": true }, { "up": false }],
                "node": { "role": "switch", "id": "1", "controller_path": "p0 cpu",
                    "neighbours": [{ "port": 1, "node": "2" }, { "port": 2, "node": "9" }],
                    "hosts": [{ "ip": "10.0.0.2", "mac": "m" }, { "ip": null, "mac": "m" }],
                    "routes": [1, 2], "refusals": { "replay": 4 },
                    "plane": { "rx_frames": 7, "drops": { "consumed": 5, "no_route": 1 } } } }),
            json!({ "name": "s2", "ports": [], "node": { "id": "2", "role": "switch" } }),
            json!({ "name": "s3", "error": "refused" }),
        ]);
        let lines: Vec<&str> = text.lines().skip(1).collect();
        let words: Vec<&str> = lines[0].split_whitespace().collect();
        let expected = "s1 1/2 p1:s2 p2:9 10.0.0.2 m 2 p0 cpu 7 no_route:1 replay:4 3";
        assert_eq!(words.join(" "), expected);
        assert!(lines[1].contains("not found"));
        assert_eq!(lines[2], format!("{:<4}  no answer: refused", "s3"));
    }

    #[test]
    fn a_long_list_is_cut_short_and_says_so() {
        assert_eq!(listed((0..9).map(|n| n.to_string())), "0 1 2 3 4 5 +3");
        assert_eq!(listed(std::iter::empty()), "-");
    }
}
