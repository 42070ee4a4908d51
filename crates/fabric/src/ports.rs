//! Trust settings of switch ports: where another switch is allowed, and which priorities hosts may
//! use.
//!
//! Any node that has the fabric's key and a port that may become an Axon port is a switch. So ports
//! where hosts are expected are pinned to hosts, unless the file configures otherwise. A host that
//! chose its own priority could be served before others. So hosts may use the priorities that are
//! no better than best effort (they share its class), and those that the file names for some
//! purpose: lossless ones, those of applications, which DCBX advertises, and those under congestion
//! notification. Frames with any other priority become best effort.

use crate::error::Problem;
use crate::file;
use crate::index::Index;
use crate::model::{AxonPorts, Dcb, End, Fabric, HostPriorities, PortPolicies, PortTrust};
use crate::names::priority;
use axon_edge::config::PortPolicy;
use axon_wire::PortNo;
use axon_wire::priority::{Priority, PrioritySet};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the default priorities of hosts.
pub(crate) fn default_priorities(dcb: &Dcb) -> HostPriorities {
    let dcbx = dcb.dcbx.iter().flat_map(|dcbx| {
        [&dcbx.common]
            .into_iter()
            .chain(dcbx.overrides.values())
            .flat_map(|said| said.asked.applications.iter().map(|application| application.priority))
    });
    let applications = dcb.applications.iter().map(|application| application.priority);
    let notified = dcb.cn.iter().flat_map(|cn| cn.cnpvs.iter());
    let named = dcbx.chain(applications).chain(notified).chain(dcb.lossless.iter());
    let allowed = dcb.beside(Priority::ZERO).iter().chain(named).collect();
    HostPriorities { allowed, otherwise: Priority::ZERO }
}

/// Returns the priorities of hosts at a port; `None` without `dcb`.
pub(crate) fn host_priorities(fabric: &Fabric, at: End) -> Option<HostPriorities> {
    let dcb = fabric.dcb.as_deref()?;
    let policies = &fabric.port_policies;
    let there = policies.overrides.get(&at).and_then(|trust| trust.priorities);
    there.or(policies.priorities).or_else(|| Some(default_priorities(dcb)))
}

/// Returns the trust settings of each port of a switch, by its index.
pub(crate) fn policies(fabric: &Fabric, switch: usize) -> Vec<PortPolicy> {
    let ports = (0..fabric.switches[switch].ports).map(PortNo);
    let hosts = fabric.hosts.iter().filter(|host| host.switch == switch);
    let links = axon_ends(fabric).filter(|end| end.switch == switch);
    let uplinks: BTreeSet<PortNo> =
        uplink_ends(fabric).filter(|end| end.switch == switch).map(|end| end.port).collect();
    let named: BTreeSet<PortNo> = match fabric.port_policies.axon {
        AxonPorts::ExceptHosts => {
            let bonds = fabric.bonds.iter().flat_map(|bond| &bond.members);
            let bonds = bonds.filter(|end| end.switch == switch).map(|end| end.port);
            hosts.map(|host| host.port).chain(bonds).collect()
        }
        AxonPorts::Links => links.map(|end| end.port).collect(),
        AxonPorts::Any => BTreeSet::new(),
    };
    let policy = |port| {
        let at = End { switch, port };
        let is_named = named.contains(&port);
        let by_default = is_named == (fabric.port_policies.axon == AxonPorts::Links);
        let there = fabric.port_policies.overrides.get(&at).and_then(|trust| trust.axon);
        let table = host_priorities(fabric, at).map(|priorities| priorities.table());
        PortPolicy {
            hosts_only: uplinks.contains(&port) || !there.unwrap_or(by_default),
            uplink: uplinks.contains(&port),
            regeneration: table.filter(|table| *table != Priority::ALL).map(Box::new),
            vlans: crate::vlan_ports::of_port(fabric, at).map(Box::new),
            bond: crate::bonds::lacp(fabric, at),
        }
    };
    ports.map(policy).collect()
}

/// Returns the ports of links between switches, and the controller's.
fn axon_ends(fabric: &Fabric) -> impl Iterator<Item = End> {
    let links = fabric.links.iter().flat_map(|link| [link.a, link.b]);
    links.chain([fabric.controller.at])
}

/// Returns the ports to real networks.
fn uplink_ends(fabric: &Fabric) -> impl Iterator<Item = End> {
    let hosts = fabric.uplinks.iter().map(|uplink| &fabric.hosts[uplink.host]);
    hosts.map(|host| End { switch: host.switch, port: host.port })
}

/// Reads `ports`, once all ports have their numbers.
pub(crate) fn resolve(fabric: &Fabric, asked: &file::Ports) -> Result<PortPolicies, Problem> {
    let dcb = fabric.dcb.as_deref();
    let common = priorities("ports", dcb, None, (&asked.priorities, asked.otherwise))?;
    let index = Index::of(fabric);
    let mut overrides: BTreeMap<End, PortTrust> = BTreeMap::new();
    for (number, one) in asked.overrides.iter().enumerate() {
        let key = format!("ports.overrides[{number}]");
        let trust = PortTrust {
            axon: one.axon,
            priorities: priorities(&key, dcb, common, (&one.priorities, one.otherwise))?,
        };
        for (place, name) in one.ports.iter().enumerate() {
            let at = index.port(&format!("{key}.ports[{place}]"), name)?;
            if one.axon == Some(false) && axon_ends(fabric).any(|end| end == at) {
                let what = format!("{name} is where a link of this file ends");
                return Err(Problem::new(format!("{key}.axon"), what, "true, or another port"));
            }
            if one.axon == Some(true) && uplink_ends(fabric).any(|end| end == at) {
                let what = format!("{name} is an uplink");
                return Err(Problem::new(format!("{key}.axon"), what, "false, or another port"));
            }
            overrides.insert(at, trust);
        }
    }
    Ok(PortPolicies { axon: asked.axon, priorities: common, overrides })
}

/// Reads the priorities of hosts at `key`; missing ones are those of `common` or the default.
fn priorities(
    key: &str,
    dcb: Option<&Dcb>,
    common: Option<HostPriorities>,
    (allowed, otherwise): (&Option<Vec<u8>>, Option<u8>),
) -> Result<Option<HostPriorities>, Problem> {
    let says = match (allowed, otherwise) {
        (None, None) => return Ok(None),
        (Some(_), _) => format!("{key}.priorities"),
        (None, Some(_)) => format!("{key}.otherwise"),
    };
    let Some(dcb) = dcb else {
        let what = "without traffic classes switches know no priorities";
        return Err(Problem::new(says, what, "dcb, or nothing here"));
    };
    let known = common.unwrap_or_else(|| default_priorities(dcb));
    let allowed = match allowed {
        None => known.allowed,
        Some(values) => {
            let each = values.iter().enumerate();
            let set: Result<PrioritySet, Problem> =
                each.map(|(place, &value)| priority(format!("{says}[{place}]"), value)).collect();
            set?
        }
    };
    let otherwise_key = format!("{key}.otherwise");
    let otherwise = match otherwise {
        None => known.otherwise,
        Some(value) => priority(&otherwise_key, value)?,
    };
    if !allowed.contains(otherwise) {
        let what = format!("priority {otherwise} is none that hosts may use");
        return Err(Problem::new(otherwise_key, what, format!("one of {allowed}")));
    }
    Ok(Some(HostPriorities { allowed, otherwise }))
}

/// Refuses traffic whose priority its hosts may not use.
pub(crate) fn check_traffic(fabric: &Fabric) -> Result<(), Problem> {
    for (number, entry) in fabric.traffic.iter().enumerate() {
        let flows = entry.flows.iter().flat_map(|&(from, to)| [from, to]);
        for host in flows.chain(entry.hosts.iter().copied()) {
            let host = &fabric.hosts[host];
            let at = End { switch: host.switch, port: host.port };
            let Some(allowed) = host_priorities(fabric, at).map(|priorities| priorities.allowed)
            else {
                return Ok(());
            };
            if !allowed.contains(entry.priority) && entry.priority != Priority::ZERO {
                let what = format!("{} may use priorities {allowed}", host.name);
                let expected = "one of these, or ports.priorities with this one";
                return Err(Problem::new(format!("traffic[{number}].priority"), what, expected));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::switch_config;

    const DCB: &str = "dcb:\n  classes:\n  - {priorities: [0, 1, 2], ets: 40}\n  \
        - {priorities: [3], ets: 60, lossless: true}\n  - {priorities: [4, 5, 6, 7]}\n  \
        applications: [udp:4791=3, tcp:3260=5]\n";

    fn fabric(rest: &str) -> Fabric {
        let text = format!(
            "name: a\ntopology:\n  listed: {{switches: [s1, s2], hosts: {{h1: s1, h2: s1-p5}}, \
             links: [[s1, s2]]}}\n{rest}"
        );
        crate::parse("a.yaml".as_ref(), &text).unwrap_or_else(|error| panic!("{error}"))
    }

    fn pinned(rest: &str) -> Vec<usize> {
        let ports = switch_config(&fabric(rest), 0, 1, 7).control.edge.ports;
        let pinned = ports.iter().enumerate().filter(|(_, policy)| policy.hosts_only);
        pinned.map(|(port, _)| port).collect()
    }

    /// s1 has h1 at port 0, the link at 1, the controller at 2, h2 at 5.
    #[test]
    fn ports_of_hosts_are_pinned_unless_the_file_says_otherwise() {
        assert_eq!(pinned(""), [0, 5]);
        assert_eq!(pinned("ports: {axon: any}\n"), [0; 0]);
        assert_eq!(pinned("ports: {axon: links}\n"), [0, 3, 4, 5]);
        let but = "ports: {overrides: [{ports: [h2], axon: true}, {ports: [s1-p3], axon: false}]}";
        assert_eq!(pinned(but), [0, 3]);
    }

    fn tables(rest: &str) -> Vec<Option<Vec<u8>>> {
        let ports = switch_config(&fabric(rest), 0, 1, 7).control.edge.ports;
        let table = |table: &[Priority; 8]| table.iter().map(|priority| priority.value()).collect();
        ports.iter().map(|policy| policy.regeneration.as_deref().map(table)).collect()
    }

    #[test]
    fn hosts_have_what_is_no_better_than_best_effort_and_what_dcb_names() {
        assert_eq!(tables("")[0], None, "without DCB there are no priorities");
        assert_eq!(tables(DCB)[0], Some(vec![0, 1, 2, 3, 0, 5, 0, 0]));
        let fewer = DCB.to_owned()
            + "ports: {priorities: [0, 3, 7], otherwise: 3, \
                     overrides: [{ports: [h2], priorities: [1], otherwise: 1}]}\n";
        let tables = tables(&fewer);
        assert_eq!(tables[0], Some(vec![0, 3, 3, 3, 3, 3, 3, 7]));
        assert_eq!(tables[5], Some(vec![1; 8]), "untagged frames too");
    }

    #[test]
    fn traffic_that_its_hosts_may_not_send_is_refused() {
        let text = |priority| {
            format!(
                "name: a\ntopology: {{line: {{switches: 2}}}}\n{DCB}traffic:\n\
                 - {{udp: {{count: 1}}, from: h1, to: h2, priority: {priority}}}\n"
            )
        };
        let parse = |priority| crate::parse("a.yaml".as_ref(), &text(priority));
        assert!(parse(5).is_ok());
        let error = parse(6).unwrap_err().to_string();
        assert!(error.contains("traffic[0].priority: h1 may use priorities"), "{error}");
    }
}
