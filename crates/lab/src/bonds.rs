//! Text output for bonds and their ports.

use axon_fabric::assemble::port_name;
use axon_fabric::model::Fabric;
use axon_linux::status::NodeStatus;
use axon_node::telemetry::{BondTelemetry, MemberTelemetry, NodeTelemetry, PartnerTelemetry};

/// Formats a line for each bond, with the names from the fabric.
pub fn text(status: &[NodeStatus], fabric: &Fabric) -> String {
    let bonds = of(status).map(|(name, bond)| {
        let member = |member: &MemberTelemetry| {
            let (port, state) = (port_of(member, fabric), member.state.name());
            let mismatch = if member.mismatch { ", another partner" } else { "" };
            format!("{port} {state}{mismatch}")
        };
        let members: Vec<String> = bond.members.iter().map(member).collect();
        let partner = bond.partner.map_or("nobody yet".into(), |partner| partner_text(&partner));
        format!("{name}: bond {} with {partner}: {}\n", bond.name, members.join("; "))
    });
    bonds.collect()
}

/// Formats an alarm for each port whose partner is not that of its bond.
pub fn alarms(status: &[NodeStatus], fabric: &Fabric) -> String {
    let mut text = String::new();
    for (name, bond) in of(status) {
        let is_used = |member: &&MemberTelemetry| !member.mismatch && member.partner.is_some();
        let first = bond.members.iter().find(is_used);
        for member in bond.members.iter().filter(|member| member.mismatch) {
            let (Some(first), Some(expected)) = (first, bond.partner) else { continue };
            let Some(partner) = member.partner else { continue };
            text += &format!(
                "alarm: {name}: bond {}: {} leads to {}, and {} to {}; {} is not used\n",
                bond.name,
                port_of(member, fabric),
                partner_text(&partner),
                port_of(first, fabric),
                partner_text(&expected),
                port_of(member, fabric),
            );
        }
    }
    text
}

/// Returns the bonds of all controllers, with the names of the controllers.
fn of(status: &[NodeStatus]) -> impl Iterator<Item = (&str, &BondTelemetry)> {
    status.iter().flat_map(|one| {
        let bonds = match one.node() {
            Some(NodeTelemetry::Controller(controller)) => &controller.bonds[..],
            _ => &[],
        };
        bonds.iter().map(|bond| (one.name(), bond))
    })
}

fn port_of(member: &MemberTelemetry, fabric: &Fabric) -> String {
    let switch = (0..fabric.switches.len())
        .find(|&index| axon_fabric::assemble::switch_id(index) == member.switch);
    match switch {
        Some(index) => port_name(&fabric.switches[index].name, member.port),
        None => format!("port {} of {}", member.port, member.switch),
    }
}

fn partner_text(partner: &PartnerTelemetry) -> String {
    let PartnerTelemetry { system, priority, key } = partner;
    format!("system {system} (priority {priority}), key {key}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use axon_wire::message::MemberState;
    use axon_wire::{MacAddr, PortNo};

    #[test]
    fn a_bond_is_one_line_and_a_mismatch_an_alarm_that_names_both_ports_and_partners() {
        let text_of = "name: a\ntopology: {ring: {switches: 3}}\nbonds: [{host: h1, ports: [s1-p0, \
                       s2-p7]}]";
        let fabric = axon_fabric::parse("a.yaml".as_ref(), text_of).unwrap();
        let partner =
            |last| PartnerTelemetry { system: MacAddr([2, 0, 0, 0, 0, last]), priority: 7, key: 9 };
        let member = |switch, port, state, last, mismatch| MemberTelemetry {
            switch: axon_fabric::assemble::switch_id(switch),
            port: PortNo(port),
            state,
            partner: Some(partner(last)),
            mismatch,
        };
        let members = vec![
            member(0, 0, MemberState::Distributing, 1, false),
            member(1, 7, MemberState::Detached, 2, true),
        ];
        let mut controller = testing::controller();
        controller.bonds =
            vec![BondTelemetry { name: "h1".into(), partner: Some(partner(1)), members }];
        let status = [testing::node("c1", 1, NodeTelemetry::Controller(Box::new(controller)))];
        let line = text(&status, &fabric);
        assert!(line.starts_with("c1: bond h1 with system 02:00:00:00:00:01"), "{line}");
        assert!(line.ends_with("s1-p0 distributing; s2-p7 detached, another partner\n"), "{line}");
        let alarm = alarms(&status, &fabric);
        for expected in ["s2-p7 leads to system 02:00:00:00:00:02", "s1-p0 to system", "not used"] {
            assert!(alarm.contains(expected), "{alarm}");
        }
        assert_eq!(alarm.lines().count(), 1);
    }
}
