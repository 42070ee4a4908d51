//! Listed topologies: names are checked and resolved here, ports later.

use super::plan::{HOSTS_MAX, Plan, PlanEnd, PlanHost, PlanLink, SWITCHES_MAX, in_range};
use crate::error::Problem;
use crate::file::{Listed, ListedHost, MacText, ShortOr, Tagged};
use crate::names;
use std::collections::BTreeMap;

pub(super) fn plan(listed: &Listed) -> Result<Plan, Problem> {
    in_range("topology.listed.switches", listed.switches.len(), 1, SWITCHES_MAX)?;
    in_range("topology.listed.hosts", listed.hosts.0.len(), 0, HOSTS_MAX)?;
    let mut switches = BTreeMap::new();
    for (index, name) in listed.switches.iter().enumerate() {
        let key = format!("topology.listed.switches[{index}]");
        names::check(&key, name)?;
        if switches.insert(name.as_str(), index).is_some() {
            return Err(Problem::new(key, format!("`{name}` is there twice"), "another name"));
        }
    }
    let mut plan = Plan { switches: listed.switches.clone(), ..Plan::default() };
    for (name, host) in &listed.hosts.0 {
        plan.hosts.push(plan_host(name, host, &switches)?);
    }
    for (index, link) in listed.links.iter().enumerate() {
        let key = format!("topology.listed.links[{index}]");
        let (between, wire, between_key) = match link {
            ShortOr::Short(between) => (between, Vec::new(), key.clone()),
            ShortOr::Long(link) => {
                (&link.common.between, link.kinds.clone(), format!("{key}.between"))
            }
        };
        let a = end(&format!("{between_key}[0]"), &between[0], &switches)?;
        let b = end(&format!("{between_key}[1]"), &between[1], &switches)?;
        plan.links.push(PlanLink { ends: [a, b], wire, key });
    }
    Ok(plan)
}

fn plan_host(
    name: &str,
    host: &ShortOr<String, ListedHost>,
    switches: &BTreeMap<&str, usize>,
) -> Result<PlanHost, Problem> {
    let key = format!("topology.listed.hosts.{name}");
    names::check(&key, name)?;
    if switches.contains_key(name) {
        let what = format!("`{name}` is a switch too");
        return Err(Problem::new(key, what, "another name"));
    }
    Ok(match host {
        ShortOr::Short(at) => PlanHost {
            name: name.into(),
            at: end(&key, at, switches)?,
            ip: None,
            ip6: None,
            mac: None,
            wire: Vec::new(),
            key,
        },
        ShortOr::Long(Tagged { kinds, common: long }) => PlanHost {
            name: name.into(),
            at: end(&format!("{key}.at"), &long.at, switches)?,
            ip: long.ip,
            ip6: long.ip6,
            mac: long.mac.map(|MacText(mac)| mac),
            wire: kinds.clone(),
            key,
        },
    })
}

/// Returns the end of a link that `text` refers to: a switch (`s1`) or a port of one (`s1-p0`).
pub(crate) fn end(
    key: &str,
    text: &str,
    switches: &BTreeMap<&str, usize>,
) -> Result<PlanEnd, Problem> {
    let (node, port) = match names::split_port(text) {
        Some((node, port)) => (node, Some(port)),
        None => (text, None),
    };
    match switches.get(node) {
        Some(&switch) => Ok(PlanEnd { switch, port }),
        None => {
            let first = switches.keys().next().copied().unwrap_or("s1");
            let what = format!("there is no switch `{node}`");
            let expected = format!("a switch such as {first}, or a port such as {first}-p0");
            Err(Problem::new(key, what, expected))
        }
    }
}
