//! What LLDP and DCBX know of the ports of switches and agents: as JSON in the status, and as a
//! table.

use crate::columns::columns;
use axon_dcbx::DcbPort;
use axon_dcbx::lldp::Neighbour;
use axon_plane::qcn::Defences;
use axon_wire::dcbx::ieee::{Ets, Tsa};
use axon_wire::lldp::{Id, kind};
use axon_wire::{MacAddr, PortNo, Priority, TrafficClass};
use serde_json::{Map, Value, json};

const HEADINGS: [&str; 6] = ["port", "neighbour", "speaks", "pfc", "classes", "trouble"];
/// The subtypes of IDs that are MAC addresses (IEEE 802.1AB tables 8-2 and 8-3).
const CHASSIS_MAC: u8 = 4;
const PORT_MAC: u8 = 3;

/// One port.
pub(crate) fn status(number: PortNo, port: &DcbPort) -> Value {
    let operational = port.operational();
    let counters = port.agent().counters();
    let remote = port.remote().map(|remote| {
        json!({
            "pfc": remote.pfc.map(|pfc| json!({
                "willing": pfc.willing,
                "enabled": pfc.enabled.to_string(),
            })),
            "ets": remote.configuration.map(|told| json!({
                "willing": told.willing,
                "classes": classes(&told.ets),
            })),
            "recommends": remote.recommendation.map(|ets| classes(&ets)),
        })
    });
    json!({
        "port": number.0,
        "name": id(&port.agent().identity().port, PORT_MAC),
        "neighbours": port.agent().neighbours().iter().map(neighbour).collect::<Vec<_>>(),
        "speaks": port.speaking().to_string(),
        "pfc": operational.pfc.to_string(),
        "pfc_from": operational.pfc_from.to_string(),
        "classes": classes(&operational.ets),
        "classes_from": operational.ets_from.to_string(),
        "remote": remote,
        "defence": port.defences().map(defence),
        "trouble": port.notes().iter().map(ToString::to_string).collect::<Vec<_>>(),
        "sent": counters.sent,
        "received": counters.received,
        "malformed": counters.malformed,
        "foreign": counters.foreign,
        "aged_out": counters.aged_out,
    })
}

/// By priority of the congestion notification domain, how it is defended.
fn defence(defences: &Defences) -> Map<String, Value> {
    let inside = defences.says().values.iter();
    inside.map(|one: Priority| (one.to_string(), defences.mode(one).name().into())).collect()
}

fn neighbour(neighbour: &Neighbour) -> Value {
    let name = neighbour.optional.iter().find(|tlv| tlv.kind == kind::SYSTEM_NAME);
    json!({
        "chassis": id(&neighbour.chassis, CHASSIS_MAC),
        "port": id(&neighbour.port, PORT_MAC),
        "system": name.map(|tlv| printable(&tlv.value)),
    })
}

fn id(id: &Id, mac_subtype: u8) -> String {
    match <[u8; 6]>::try_from(&id.name[..]) {
        Ok(bytes) if id.subtype == mac_subtype => MacAddr(bytes).to_string(),
        _ => printable(&id.name),
    }
}

/// Text that a neighbour has chosen, without what could confuse a terminal.
fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().filter(|c| !c.is_control()).collect()
}

/// The classes that have priorities: `0:0,1,2 40% 1:3,4 60% 2:7 strict`.
fn classes(ets: &Ets) -> String {
    let class = |class: TrafficClass| {
        let of_class = |(_, of): &(usize, &TrafficClass)| **of == class;
        let priorities: Vec<String> =
            ets.class_of.iter().enumerate().filter(of_class).map(|(n, _)| n.to_string()).collect();
        let turns = match ets.tsa[class.index()] {
            Tsa::ETS => format!("{}%", ets.percent[class.index()]),
            Tsa::STRICT => "strict".to_owned(),
            Tsa::CREDIT_BASED => "shaper".to_owned(),
            _ => "own".to_owned(),
        };
        (!priorities.is_empty()).then(|| format!("{class}:{} {turns}", priorities.join(",")))
    };
    TrafficClass::ALL.into_iter().filter_map(class).collect::<Vec<_>>().join(" ")
}

/// One line for each port that has a neighbour or is in trouble, of all nodes that speak LLDP;
/// empty if none does.
pub fn table(status: &[Value]) -> String {
    columns(&HEADINGS, status.iter().flat_map(rows))
}

fn rows(status: &Value) -> Vec<Vec<String>> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let from_peer = |told: &Value, from: &Value| {
        let by = if *from == "peer" { " (peer)" } else { "" };
        format!("{}{by}", text(told))
    };
    let row = |port: &Value| {
        let neighbours: Vec<String> = list(&port["neighbours"])
            .iter()
            .map(|one| match one["system"].as_str() {
                Some(system) if !text(&one["port"]).starts_with(system) => {
                    format!("{system} {}", text(&one["port"]))
                }
                _ => text(&one["port"]),
            })
            .collect();
        let trouble: Vec<String> = list(&port["trouble"]).iter().map(text).collect();
        (!neighbours.is_empty() || !trouble.is_empty()).then(|| {
            vec![
                text(&port["name"]),
                neighbours.join(", "),
                text(&port["speaks"]),
                from_peer(&port["pfc"], &port["pfc_from"]),
                from_peer(&port["classes"], &port["classes_from"]),
                trouble.join("; "),
            ]
        })
    };
    list(&status["node"]["dcbx"]).iter().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_told_with_their_priorities_and_shares() {
        let mut ets = Ets::default();
        (ets.tsa[0], ets.percent[0]) = (Tsa::ETS, 100);
        (ets.class_of[7], ets.tsa[3]) = (TrafficClass::ALL[3], Tsa::VENDOR);
        ets.class_of[5] = TrafficClass::ALL[2];
        assert_eq!(classes(&ets), "0:0,1,2,3,4,6 100% 2:5 strict 3:7 own");
    }

    #[test]
    fn what_a_neighbour_calls_itself_does_no_harm() {
        let mac = MacAddr([2, 0, 0, 0, 0, 1]);
        assert_eq!(id(&Id::chassis_of_mac(mac), CHASSIS_MAC), "02:00:00:00:00:01");
        assert_eq!(id(&Id::port_of_name("\x1b[2Js1-p0\n"), PORT_MAC), "[2Js1-p0");
    }

    #[test]
    fn an_operator_sees_who_is_there_what_is_in_force_and_what_is_wrong() {
        let port = json!({ "name": "s1-p0", "speaks": "IEEE", "pfc": "3,4", "pfc_from": "peer",
            "classes": "0:0 strict", "classes_from": "local", "trouble": ["no", "way"],
            "neighbours": [{ "port": "s2-p1", "system": "s2" }, { "port": "eth0", "system": "h" }] });
        let alone = json!({ "name": "s1-p1", "neighbours": [], "trouble": [] });
        let text = table(&[
            json!({ "name": "s1", "node": { "dcbx": [port, alone] } }),
            json!({ "name": "s2", "node": {} }),
        ]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        let words: Vec<&str> = lines[1].split_whitespace().collect();
        let expected = "s1-p0 s2-p1, h eth0 IEEE 3,4 (peer) 0:0 strict no; way";
        assert_eq!(words.join(" "), expected);
        assert_eq!(table(&[json!({ "name": "s2", "node": {} })]), "");
    }
}
