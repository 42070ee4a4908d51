//! Formats alarms from the status of a lab.

use axon_linux::status::{NodeStatus, PortStatus, Status};
use axon_node::Refusal;
use axon_node::telemetry::{
    ConflictingHost, ControllerCounters, EdgeDebts, IpConflict, Miscabled, NodeTelemetry,
    ProgrammableTelemetry, RefusedSetting,
};
use axon_wire::NodeId;
use axon_wire::message::LinkEnd;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Maximum number of address conflicts that get their own line.
const CONFLICTS_SHOWN: usize = 8;

/// Formats one line for each fault. Returns an empty text if there is none.
pub fn alarms(status: &[NodeStatus]) -> String {
    let mut text = String::new();
    let answered = status.iter().filter_map(NodeStatus::status);
    let names: BTreeMap<NodeId, &str> = answered.clone().filter_map(named).collect();
    for status in answered {
        for port in &status.ports {
            if let Some((mtu, needed)) = too_small(port) {
                let port = &port.name;
                // Writing to a String cannot fail.
                let _ = writeln!(
                    text,
                    "alarm: {port}: its MTU of {mtu} is less than {needed}, longer frames are \
                     lost; `ip link set {port} mtu {needed}`"
                );
            }
        }
        if let NodeTelemetry::Switch(switch) = &status.node
            && switch.refusals.get(Refusal::PinnedPort) > 0
        {
            let (name, count) = (&status.name, switch.refusals.get(Refusal::PinnedPort));
            let _ = writeln!(
                text,
                "alarm: {name}: {count} messages of a switch or controller at a port that is \
                 pinned to hosts were refused (control_pinned_port); `ports.axon` of the fabric \
                 file says where they may be"
            );
        }
        dataplane(&mut text, &status.name, &status.node);
        if status.store.is_some_and(|store| store.failing) {
            let name = &status.name;
            let _ = writeln!(
                text,
                "alarm: {name}: its store cannot be written; leases given from now on are \
                 forgotten if it ends"
            );
        }
        let counters = match &status.node {
            NodeTelemetry::Controller(controller) => Some(&controller.counters),
            NodeTelemetry::Switch(switch) => switch.alone.as_ref().map(|alone| &alone.counters),
            _ => None,
        };
        if let Some(counters) = counters.filter(|counters| counters.ip_refused > 0) {
            let (name, count) = (&status.name, counters.ip_refused);
            let _ = writeln!(
                text,
                "alarm: {name}: {count} claims of addresses that belong to other hosts were \
                 refused (ip_refused)"
            );
        }
        let conflicts = match &status.node {
            NodeTelemetry::Controller(controller) => &controller.ip_conflicts[..],
            NodeTelemetry::Switch(switch) => {
                switch.alone.as_ref().map_or(&[][..], |alone| &alone.ip_conflicts)
            }
            _ => &[],
        };
        ip_conflicts(&mut text, &status.name, conflicts, &names);
        if let Some(counters) = counters {
            policy(&mut text, &status.name, counters);
        }
        if let NodeTelemetry::Switch(switch) = &status.node
            && let Some(alone) = &switch.alone
        {
            cables(&mut text, &status.name, &alone.miscabled, &names);
        }
    }
    text
}

/// Returns the identity and the name of a node that has answered.
fn named(status: &Status) -> Option<(NodeId, &str)> {
    Some((status.node.id()?, &status.name))
}

/// Lists addresses that two hosts use at the same time.
fn ip_conflicts(
    text: &mut String,
    name: &str,
    conflicts: &[IpConflict],
    names: &BTreeMap<NodeId, &str>,
) {
    let host = |host: ConflictingHost| {
        let (mac, at) = (host.mac, LinkEnd { node: host.switch, port: host.port });
        format!("{mac} at {}", port_name(at, names))
    };
    for &IpConflict { ip, vlan, holder, claimant } in conflicts.iter().take(CONFLICTS_SHOWN) {
        let (holder, claimant) = (host(holder), host(claimant));
        let vlan = if vlan.is_none() { String::new() } else { format!(" in VLAN {vlan}") };
        let _ = writeln!(
            text,
            "alarm: {name}: two hosts use the address {ip}{vlan}: {holder}, which keeps it, and \
             {claimant}; give one of them another address"
        );
    }
    if let Some(more) = conflicts.len().checked_sub(CONFLICTS_SHOWN).filter(|more| *more > 0) {
        let _ = writeln!(
            text,
            "alarm: {name}: two hosts use each of {more} more addresses; `axon status --json` has \
             them (ip_conflicts)"
        );
    }
}

/// Returns the name of a port of a switch.
fn port_name(end: LinkEnd, names: &BTreeMap<NodeId, &str>) -> String {
    match names.get(&end.node) {
        Some(name) => format!("{name}-{}", end.port),
        None => format!("port {} of switch {}", end.port, end.node),
    }
}

/// Lists cables that differ from the fabric file, in a fabric without a controller.
fn cables(text: &mut String, name: &str, miscabled: &[Miscabled], names: &BTreeMap<NodeId, &str>) {
    let end = |end| port_name(end, names);
    for &Miscabled { port, expected, found } in miscabled {
        let expected = expected.map_or_else(|| "no other switch".to_owned(), end);
        let found = end(found);
        let _ = writeln!(
            text,
            "alarm: {name}-{port} leads to {found}; the fabric file has {expected} there. The link \
             is not used"
        );
    }
}

/// Lists policy violations by hosts, as a controller counts them.
fn policy(text: &mut String, name: &str, counters: &ControllerCounters) {
    if counters.hosts_misplaced > 0 {
        let _ = writeln!(
            text,
            "alarm: {name}: {} reports of hosts at ports where `isolation` of the fabric file does \
             not admit them were refused (hosts_misplaced)",
            counters.hosts_misplaced
        );
    }
    if counters.scans > 0 {
        let _ = writeln!(
            text,
            "alarm: {name}: {} times a port has requested many hosts that it may not reach or \
             that do not exist (scans); the log of {name} has the hosts",
            counters.scans
        );
    }
}

/// Lists refused and pending updates to a data plane.
fn dataplane(text: &mut String, name: &str, node: &NodeTelemetry) {
    let (refused, debts) = match node {
        NodeTelemetry::Switch(switch) => (&switch.refused_settings[..], switch.debts),
        NodeTelemetry::Controller(controller) => {
            (&controller.refused_settings[..], EdgeDebts::default())
        }
        NodeTelemetry::Programmable(switch) => return program(text, name, switch),
        NodeTelemetry::Agent(_) => return,
    };
    for RefusedSetting { port, setting, error, refusals } in refused {
        let _ = writeln!(
            text,
            "alarm: {name}: the data plane has refused a setting of {name}-{port}, {setting}, \
             {refusals} times: {error}"
        );
    }
    if debts.stale > 0 {
        let _ = writeln!(
            text,
            "alarm: {name}: the data plane may still have {} routes that were removed; they are \
             removed again every second",
            debts.stale
        );
    }
    if debts.lost {
        let _ = writeln!(
            text,
            "alarm: {name}: the data plane owes too many answers and is re-synchronised; until \
             then the frames of new flows take the slow path"
        );
    }
}

/// Lists faults of a control program.
fn program(text: &mut String, name: &str, switch: &ProgrammableTelemetry) {
    if let Some(failure) = &switch.failure {
        let _ = writeln!(
            text,
            "alarm: {name}: its program {} takes no packets any more: {failure}; the switch goes \
             on with the tables that it has",
            switch.program
        );
    }
    if let Some(refusal) = &switch.refusal {
        let _ = writeln!(
            text,
            "alarm: {name}: its tables refuse entries of its program {}, which runs on with those \
             of before and tries again: {refusal}",
            switch.program
        );
    }
}

/// Returns the MTU of a port and the required MTU if the required one is larger, otherwise `None`.
fn too_small(port: &PortStatus) -> Option<(u64, u64)> {
    let pair = port.mtu_bytes.zip(port.mtu_needed_bytes);
    pair.filter(|(mtu, needed)| port.up && mtu < needed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use axon_linux::status::Answer;
    use axon_wire::PortNo;

    #[test]
    fn a_cable_that_is_not_as_the_file_has_it_is_shown_with_both_ends() {
        let mut s1 = testing::switch(2);
        let end = |node, port| LinkEnd { node: NodeId(node), port: PortNo(port) };
        let wrong = |port, expected, found| Miscabled { port: PortNo(port), expected, found };
        let miscabled = vec![wrong(0, Some(end(2, 1)), end(2, 0)), wrong(1, None, end(9, 4))];
        s1.alone = Some(Box::new(axon_node::telemetry::StaticTelemetry {
            switches: 2,
            met: 1,
            missing: Vec::new(),
            miscabled,
            hosts: Vec::new(),
            ip_conflicts: Vec::new(),
            routes: 0,
            policy: Default::default(),
            counters: Default::default(),
            dhcp: Default::default(),
        }));
        let mut s2 = testing::switch(2);
        s2.id = NodeId(2);
        let text = alarms(&[testing::status("s1", s1), testing::status("s2", s2)]);
        assert_eq!(
            text,
            "alarm: s1-p0 leads to s2-p0; the fabric file has s2-p1 there. The link is not used\n\
             alarm: s1-p1 leads to port p4 of switch 0000000000000009; the fabric file has no \
             other switch there. The link is not used\n"
        );
    }

    #[test]
    fn an_address_conflict_is_shown_with_both_hosts_and_many_are_counted() {
        let mut controller = testing::controller();
        let host = |last, switch, port| ConflictingHost {
            mac: axon_wire::MacAddr([2, 0, 0, 0, 0, last]),
            switch: NodeId(switch),
            port: PortNo(port),
        };
        let conflict = |last| IpConflict {
            ip: std::net::Ipv4Addr::new(10, 0, 0, last).into(),
            vlan: Default::default(),
            holder: host(1, 1, 2),
            claimant: host(2, 9, 4),
        };
        controller.ip_conflicts = vec![conflict(7)];
        let mut s1 = testing::switch(3);
        s1.id = NodeId(1);
        let s1 = testing::status("s1", s1);
        let shown = |controller: &axon_node::telemetry::ControllerTelemetry| {
            let node = NodeTelemetry::Controller(Box::new(controller.clone()));
            alarms(&[s1.clone(), testing::node("c1", 1, node)])
        };
        assert_eq!(
            shown(&controller),
            "alarm: c1: two hosts use the address 10.0.0.7: 02:00:00:00:00:01 at s1-p2, which \
             keeps it, and 02:00:00:00:00:02 at port p4 of switch 0000000000000009; give one of \
             them another address\n"
        );
        controller.ip_conflicts.extend((10..30).map(conflict));
        let text = shown(&controller);
        assert_eq!(text.lines().count(), CONFLICTS_SHOWN + 1, "{text}");
        assert!(text.contains("each of 13 more addresses"), "{text}");
    }

    #[test]
    fn an_operator_sees_settings_that_were_refused_and_routes_that_may_not_be_removed() {
        let mut telemetry = testing::switch(3);
        telemetry.refused_settings.push(RefusedSetting {
            port: axon_wire::PortNo(2),
            setting: axon_node::SettingName::Kind,
            error: axon_node::SettingError::Unavailable,
            refusals: 4,
        });
        telemetry.debts = EdgeDebts { unanswered: 1, stale: 3, lost: true };
        let text = alarms(&[testing::status("s1", telemetry)]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[0].contains("s1-p2, port kind, 4 times: the device is not av"), "{text}");
        assert!(lines[1].contains("3 routes") && lines[2].contains("slow path"), "{text}");
    }

    #[test]
    fn an_operator_sees_whether_a_program_has_ended_or_lacks_entries() {
        let program = ProgrammableTelemetry {
            program: "bridge".into(),
            ready: true,
            failure: None,
            refusal: Some("change 3 (tcam 7): the table is full".into()),
            tables: Vec::new(),
            plane: testing::switch(0).plane,
        };
        let alarm = |of: &ProgrammableTelemetry| {
            let mut status = testing::status("s1", testing::switch(0));
            let Answer::Status(inner) = &mut status.answer else { unreachable!() };
            inner.node = NodeTelemetry::Programmable(Box::new(of.clone()));
            alarms(&[status])
        };
        let refused = alarm(&program);
        assert!(refused.contains("tcam 7") && refused.contains("runs on"), "{refused}");
        assert!(!refused.contains("takes no packets"), "{refused}");
        let failure = Some("it has raised".into());
        let ended = alarm(&ProgrammableTelemetry { refusal: None, failure, ..program });
        assert!(ended.contains("takes no packets any more: it has raised"), "{ended}");
    }

    #[test]
    fn an_operator_sees_an_mtu_that_is_too_small_and_addresses_that_were_refused() {
        let mut switch = testing::status("s1", testing::switch(3));
        let Answer::Status(status) = &mut switch.answer else { unreachable!() };
        for (port, (mtu, up)) in
            status.ports.iter_mut().zip([(1500, true), (2144, true), (1500, false)])
        {
            (port.mtu_bytes, port.mtu_needed_bytes, port.up) = (Some(mtu), Some(2144), up);
        }
        let mut controller = testing::status("c1", testing::switch(0));
        let Answer::Status(status) = &mut controller.answer else { unreachable!() };
        status.node = NodeTelemetry::Controller(Box::new(testing::controller()));
        assert_eq!(alarms(std::slice::from_ref(&controller)), "");
        let Answer::Status(status) = &mut controller.answer else { unreachable!() };
        let NodeTelemetry::Controller(node) = &mut status.node else { unreachable!() };
        node.counters.ip_refused = 7;
        let full = axon_linux::store::StoreStatus { failing: true, ..Default::default() };
        status.store = Some(full);
        let text = alarms(&[switch, controller]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[0].contains("s1-p0") && lines[0].contains("mtu 2144"), "{text}");
        assert!(lines[1].contains("c1: its store cannot be written"), "{text}");
        assert!(lines[2].contains("c1: 7 claims"), "{text}");
    }
}
