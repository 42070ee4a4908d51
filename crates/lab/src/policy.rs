//! Text output for the policy, which determines the hosts that may reach each other.

use axon_fabric::model::Fabric;
use axon_linux::status::NodeStatus;
use axon_node::Subject;
use axon_node::telemetry::{NodeTelemetry, PolicyTelemetry};

/// Maximum number of pairs or hosts in one line.
const LISTED_MAX: usize = 8;

/// Formats lines for each controller with policy entries, with the names from its fabric.
pub fn text(status: &[NodeStatus], fabric: &Fabric) -> String {
    let controller = |status: &NodeStatus| match status.node()? {
        NodeTelemetry::Controller(controller) => {
            Some(lines(status.name(), &controller.policy, controller.counters.arp_denied, fabric))
        }
        NodeTelemetry::Switch(switch) => {
            let alone = switch.alone.as_ref()?;
            Some(lines(status.name(), &alone.policy, alone.counters.arp_denied, fabric))
        }
        _ => None,
    };
    status.iter().filter_map(controller).collect()
}

fn lines(name: &str, policy: &PolicyTelemetry, denied: u64, fabric: &Fabric) -> String {
    let PolicyTelemetry { tenants, shared_hosts, other_hosts, quarantine, pairs, outstanding } =
        policy;
    let mut parts = Vec::new();
    if !tenants.is_empty() || *shared_hosts > 0 {
        let each = tenants.iter().map(|tenant| format!("{} {}", tenant.name, tenant.hosts));
        let rest = [("shared", shared_hosts), ("others", other_hosts)];
        let rest = rest.into_iter().map(|(name, hosts)| format!("{name} {hosts}"));
        parts.push(format!("hosts by tenant: {}", each.chain(rest).collect::<Vec<_>>().join(", ")));
    }
    let subjects = quarantine.iter().filter_map(|one| {
        let port = || Some(Subject::Port(one.switch?, one.port?));
        one.mac.map(Subject::Mac).or_else(port)
    });
    let names: Vec<String> =
        subjects.map(|subject| axon_fabric::isolation::subject_name(fabric, subject)).collect();
    if !names.is_empty() {
        parts.push(format!("in quarantine: {}", listed(&names)));
    }
    for (allowed, what) in [(true, "allowed"), (false, "denied")] {
        let host = |mac| axon_fabric::isolation::subject_name(fabric, Subject::Mac(mac));
        let those = pairs.iter().filter(|pair| pair.allowed == allowed);
        let those = those.map(|pair| format!("{} {}", host(pair.a), host(pair.b)));
        let those: Vec<String> = those.collect();
        if !those.is_empty() {
            parts.push(format!("{what} by command: {}", listed(&those)));
        }
    }
    if !parts.is_empty() || denied > 0 {
        parts.push(format!("{denied} requests denied"));
    }
    if !outstanding.is_empty() {
        parts.push(format!("{} switches have still to remove routes", outstanding.len()));
    }
    if parts.is_empty() { String::new() } else { format!("{name}: {}\n", parts.join("; ")) }
}

/// Formats the first few names and the number of further ones.
fn listed(names: &[String]) -> String {
    let more = names.len().saturating_sub(LISTED_MAX);
    let some = names[..names.len() - more].join(", ");
    if more == 0 { some } else { format!("{some} and {more} more") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use axon_linux::status::Answer;
    use axon_node::telemetry::ControllerTelemetry;
    use axon_node::telemetry::{PairTelemetry, QuarantineTelemetry, TenantTelemetry};

    #[test]
    fn a_policy_is_shown_by_the_names_of_the_fabric_and_an_open_one_is_not() {
        let fabric = axon_fabric::parse(
            "a.yaml".as_ref(),
            "name: a\ntopology: {line: {switches: 2, hosts_per_switch: 2}}\n",
        )
        .unwrap();
        let mut of = testing::status("c1", testing::switch(0));
        let mut controller = testing::controller();
        let mut shown = |controller: &ControllerTelemetry| {
            let Answer::Status(status) = &mut of.answer else { unreachable!() };
            status.node = NodeTelemetry::Controller(Box::new(controller.clone()));
            text(std::slice::from_ref(&of), &fabric)
        };
        controller.policy.other_hosts = 4;
        assert_eq!(shown(&controller), "");
        controller.policy.tenants = vec![TenantTelemetry { name: "red".into(), hosts: 2 }];
        controller.counters.arp_denied = 5;
        let line = "c1: hosts by tenant: red 2, shared 0, others 4; 5 requests denied\n";
        assert_eq!(shown(&controller), line);
        let [a, b, c] = [0, 1, 2].map(|host: usize| fabric.hosts[host].mac);
        controller.policy.quarantine =
            vec![QuarantineTelemetry { mac: Some(c), switch: None, port: None }];
        controller.policy.pairs = vec![PairTelemetry { a, b, allowed: false }];
        let line = shown(&controller);
        assert!(line.contains("; in quarantine: h3; denied by command: h1 h2; 5 req"), "{line}");
    }
}
