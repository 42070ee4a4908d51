//! Formats the flow control state of the ports of switches and agents as a table.

use crate::columns::columns;
use crate::status::{NodeStatus, Status};
use axon_node::telemetry::{FlowControl, QueuedBytes};
use axon_wire::{PortNo, PrioritySet};

const HEADINGS: [&str; 4] = ["port", "paused by its peer", "XOFF to its peer", "queued"];

/// Formats one line for each port with a paused priority or queued bytes. Returns an empty text if
/// there is no such port.
pub fn table(status: &[NodeStatus]) -> String {
    columns(&HEADINGS, status.iter().filter_map(NodeStatus::status).flat_map(rows))
}

fn rows(status: &Status) -> Vec<Vec<String>> {
    let ports = status.ports.iter().zip(status.node.flow_control());
    ports.filter_map(|(port, flow)| row(&port.name, flow?)).collect()
}

fn row(port: &str, flow: &FlowControl) -> Option<Vec<String>> {
    if flow.paused.is_empty() && flow.xoff.is_empty() && flow.queued.is_empty() {
        return None;
    }
    let queued: Vec<String> = flow.queued.iter().map(queue).collect();
    let or_none = |text: String, is_empty| if is_empty { "-".to_owned() } else { text };
    let priorities = |set: PrioritySet| or_none(set.to_string(), set.is_empty());
    let queued = or_none(queued.join(", "), queued.is_empty());
    Some(vec![port.to_owned(), priorities(flow.paused), priorities(flow.xoff), queued])
}

fn queue(&QueuedBytes { class, ingress, bytes }: &QueuedBytes) -> String {
    let from = match ingress {
        PortNo::CONTROL => "itself".to_owned(),
        port => port.to_string(),
    };
    format!("class {class}: {} B from {from}", bytes.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use axon_wire::Bytes;
    use axon_wire::priority::{Priority, TrafficClass};

    #[test]
    fn an_operator_sees_who_is_paused_who_was_sent_xoff_and_what_is_queued() {
        let set = |list: &[usize]| list.iter().map(|&n| Priority::ALL[n]).collect::<PrioritySet>();
        let queued = |class: usize, ingress, bytes| QueuedBytes {
            class: TrafficClass::ALL[class],
            ingress,
            bytes: Bytes(bytes),
        };
        let mut s1 = testing::switch(3);
        let xoff = FlowControl { xoff: set(&[3, 4]), ..FlowControl::default() };
        let paused = FlowControl {
            paused: set(&[3]),
            queued: vec![queued(1, PortNo(0), 3000), queued(2, PortNo::CONTROL, 60)],
            ..FlowControl::default()
        };
        let flows = [xoff, FlowControl::default(), paused];
        for (port, flow) in s1.plane.ports.iter_mut().zip(flows) {
            port.flow_control = Some(flow);
        }
        let text = table(&[testing::status("s1", s1), testing::failed("s2", "refused")]);
        let lines: Vec<String> = text
            .lines()
            .skip(1)
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        let queued = "class 1: 3000 B from p0, class 2: 60 B from itself";
        assert_eq!(lines, ["s1-p0 - 3,4 -".to_owned(), format!("s1-p2 3 - {queued}")]);
        assert_eq!(table(&[testing::status("s2", testing::switch(2))]), "");
    }
}
