//! Formats the LLDP and DCBX state of the ports of switches and agents as a table.

use crate::columns::columns;
use crate::status::NodeStatus;
use axon_node::telemetry::{DcbxTelemetry, LldpNeighbour, Source};
use axon_wire::TrafficClass;
use axon_wire::dcbx::ieee::{Ets, Tsa};

const HEADINGS: [&str; 6] = ["port", "neighbour", "dcbx", "pfc", "classes", "trouble"];

/// Formats the traffic classes that have priorities: `0:0,1,2 40% 1:3,4 60% 2:7 strict`.
pub fn classes(ets: &Ets) -> String {
    let class = |class: TrafficClass| {
        let of_class = |(_, of): &(usize, &TrafficClass)| **of == class;
        let priorities: Vec<String> =
            ets.class_of.iter().enumerate().filter(of_class).map(|(n, _)| n.to_string()).collect();
        let schedule = match ets.tsa[class.index()] {
            Tsa::ETS => format!("{}%", ets.percent[class.index()]),
            Tsa::STRICT => "strict".to_owned(),
            Tsa::CREDIT_BASED => "shaper".to_owned(),
            _ => "vendor".to_owned(),
        };
        (!priorities.is_empty()).then(|| format!("{class}:{} {schedule}", priorities.join(",")))
    };
    TrafficClass::ALL.into_iter().filter_map(class).collect::<Vec<_>>().join(" ")
}

/// Formats one line for each port with a neighbour or a fault, of all nodes with LLDP. Returns an
/// empty text if there is no such port.
pub fn table(status: &[NodeStatus]) -> String {
    let ports = status.iter().filter_map(NodeStatus::node).flat_map(|node| node.dcbx());
    columns(&HEADINGS, ports.filter_map(row))
}

fn row(port: &DcbxTelemetry) -> Option<Vec<String>> {
    if port.neighbours.is_empty() && port.trouble.is_empty() {
        return None;
    }
    let neighbours: Vec<String> = port.neighbours.iter().map(neighbour).collect();
    let by = |text: String, from: Source| match from {
        Source::Peer => format!("{text} (peer)"),
        Source::Local => text,
    };
    Some(vec![
        port.name.clone(),
        neighbours.join(", "),
        port.dialect.to_string(),
        by(port.pfc.to_string(), port.pfc_from),
        by(classes(&port.ets), port.ets_from),
        port.trouble.join("; "),
    ])
}

/// Formats the neighbour's port, preceded by the system name unless the port ID begins with it.
fn neighbour(neighbour: &LldpNeighbour) -> String {
    match &neighbour.system {
        Some(system) if !neighbour.port.starts_with(system.as_str()) => {
            format!("{system} {}", neighbour.port)
        }
        _ => neighbour.port.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use axon_wire::PortNo;
    use axon_wire::dcbx::Dialect;
    use axon_wire::priority::{Priority, PrioritySet};

    #[test]
    fn classes_are_shown_with_their_priorities_and_shares() {
        let mut ets = Ets::default();
        (ets.tsa[0], ets.percent[0]) = (Tsa::ETS, 100);
        (ets.class_of[7], ets.tsa[3]) = (TrafficClass::ALL[3], Tsa::VENDOR);
        ets.class_of[5] = TrafficClass::ALL[2];
        assert_eq!(classes(&ets), "0:0,1,2,3,4,6 100% 2:5 strict 3:7 vendor");
    }

    #[test]
    fn an_operator_sees_who_is_there_what_is_in_force_and_what_is_wrong() {
        let neighbour = |port: &str, system: &str| LldpNeighbour {
            chassis: "02:00:00:00:00:01".into(),
            port: port.into(),
            system: Some(system.into()),
        };
        let alone = DcbxTelemetry {
            port: PortNo(1),
            name: "s1-p1".into(),
            neighbours: Vec::new(),
            dialect: Dialect::Ieee,
            pfc: [3, 4].map(|one| Priority::ALL[one]).into_iter().collect::<PrioritySet>(),
            pfc_from: Source::Peer,
            ets: Ets::default(),
            ets_from: Source::Local,
            received: None,
            defence: Vec::new(),
            trouble: Vec::new(),
            tx_lldpdus: 0,
            rx_lldpdus: 0,
            rx_malformed: 0,
            rx_foreign: 0,
            aged_out: 0,
        };
        let port = DcbxTelemetry {
            name: "s1-p0".into(),
            neighbours: vec![neighbour("s2-p1", "s2"), neighbour("eth0", "h")],
            trouble: vec!["no".into(), "way".into()],
            ..alone.clone()
        };
        let mut s1 = testing::switch(1);
        s1.dcbx = vec![port, alone];
        let text = table(&[testing::status("s1", s1), testing::failed("s2", "refused")]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        let words: Vec<&str> = lines[1].split_whitespace().collect();
        let expected = "s1-p0 s2-p1, h eth0 IEEE 3,4 (peer) 0:0,1,2,3,4,5,6,7 strict no; way";
        assert_eq!(words.join(" "), expected);
        assert_eq!(table(&[testing::failed("s2", "refused")]), "");
    }
}
