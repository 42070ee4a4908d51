//! Bonds: ports of one or more switches that lead to one host (IEEE 802.1AX, thesis 000 §3.3.2).
//!
//! All switches of a fabric are one LACP system, so that a bond may end at several of them. The key
//! of a bond is its number in the file.

use crate::assemble::{SERVER_MAC, switch_id};
use crate::error::Problem;
use crate::file::{self, LacpMode};
use crate::model::{Bond, End, Fabric, Network};
use crate::names::{port_name, split_port};
use crate::topology::{self, Plan, PlanEnd};
use axon_controller::config::BondConfig;
use axon_link::lacp::LacpConfig;
use axon_wire::PortNo;
use axon_wire::lacp::SystemId;
use std::collections::BTreeMap;

/// Priority of the LACP system and of its ports: the standard's default.
const PRIORITY: u16 = 0x8000;
/// Maximum number of ports of a bond; that of Linux.
const PORTS_MAX: usize = 16;
/// Maximum number of bonds of a fabric, bounded by LACP keys and port numbers.
const BONDS_MAX: usize = 4_000;

/// Returns the ports of all bonds with their keys; hosts of bonds get those of their switches.
///
/// # Errors
/// A name that does not exist, a port listed twice, a host that is not at any of its ports.
pub(crate) fn ends(bonds: &[file::Bond], plan: &mut Plan) -> Result<Vec<BondEnds>, Problem> {
    if bonds.len() > BONDS_MAX {
        let what = format!("there are {}", bonds.len());
        return Err(Problem::new("bonds", what, format!("at most {BONDS_MAX}")));
    }
    let names: Vec<String> = plan.switches.clone();
    let names = names.iter().enumerate();
    let switches: BTreeMap<&str, usize> = names.map(|(i, name)| (name.as_str(), i)).collect();
    let mut taken: BTreeMap<(usize, PortNo), usize> = BTreeMap::new();
    let mut all = Vec::new();
    for (number, bond) in bonds.iter().enumerate() {
        let key = format!("bonds[{number}]");
        if !(2..=PORTS_MAX).contains(&bond.ports.len()) {
            let what = format!("{} of them", bond.ports.len());
            return Err(Problem::new(format!("{key}.ports"), what, "2 to 16 ports"));
        }
        let mut ends = Vec::new();
        for (place, name) in bond.ports.iter().enumerate() {
            let key = format!("{key}.ports[{place}]");
            let end = topology::end(&key, name, &switches)?;
            let Some(port) = end.port.filter(|_| split_port(name).is_some()) else {
                let what = format!("`{name}` is a switch");
                return Err(Problem::new(key, what, format!("a port such as {name}-p0")));
            };
            if let Some(other) = taken.insert((end.switch, port), number) {
                let whose = if other == number { "this bond" } else { "another bond" };
                let what = format!("{name} is in {whose} already");
                return Err(Problem::new(key, what, "a port that is in no bond"));
            }
            ends.push((end, key));
        }
        let host = match &bond.host {
            Some(name) => Some(host_of(&format!("{key}.host"), name, &mut ends, plan)?),
            None => None,
        };
        if let Some(host) = host
            && all.iter().any(|other: &BondEnds| other.host == Some(host))
        {
            let what = format!("{} has a bond already", plan.hosts[host].name);
            return Err(Problem::new(format!("{key}.host"), what, "another host"));
        }
        all.push(BondEnds { host, ends, active: bond.lacp == LacpMode::Active });
    }
    Ok(all)
}

/// Ports of a bond before they are checked against others.
pub(crate) struct BondEnds {
    host: Option<usize>,
    /// Member ports; the host's own is the first, if there is a host.
    ends: Vec<(PlanEnd, String)>,
    active: bool,
}

impl BondEnds {
    /// Returns the ports that no other section of the file requests.
    pub(crate) fn further(&self) -> &[(PlanEnd, String)] {
        &self.ends[usize::from(self.host.is_some())..]
    }
}

/// Returns a host by name; its own port comes first among the ports of its bond.
fn host_of(
    key: &str,
    name: &str,
    ends: &mut [(PlanEnd, String)],
    plan: &mut Plan,
) -> Result<usize, Problem> {
    let Some(index) = plan.hosts.iter().position(|host| host.name == *name) else {
        let what = format!("there is no host `{name}`");
        return Err(Problem::new(key, what, "the name of a host such as h1"));
    };
    let at = &mut plan.hosts[index].at;
    let is_own = |(end, _): &(PlanEnd, String)| {
        end.switch == at.switch && (at.port.is_none() || at.port == end.port)
    };
    let Some(own) = ends.iter().position(is_own) else {
        let switch = &plan.switches[at.switch];
        let at = at.port.map_or(switch.clone(), |port| port_name(switch, port));
        let what = format!("{name} is at {at}, which is none of the ports");
        return Err(Problem::new(key, what, format!("{at} among `ports`, or another host")));
    };
    at.port = ends[own].0.port;
    ends[..=own].rotate_right(1);
    Ok(index)
}

/// Adds the bonds to the fabric, once it has its hosts.
///
/// # Errors
/// The fabric does not support bonds.
pub(crate) fn resolve(fabric: &mut Fabric, planned: &[BondEnds]) -> Result<(), Problem> {
    if planned.is_empty() {
        return Ok(());
    }
    if fabric.network != Network::Axon {
        return Err(Problem::new("bonds", "the switches are not Axon's", "network: axon"));
    }
    if fabric.is_static() {
        let what = "without a controller nobody selects the ports of a bond";
        return Err(Problem::new("bonds", what, "mode: central, or no bonds"));
    }
    if fabric.dcb.is_some() {
        let what = "a bond has no traffic classes yet";
        return Err(Problem::new("bonds", what, "no dcb, or no bonds"));
    }
    if fabric.cam.entries.is_some() && fabric.cam.masquerade {
        let what = "a masqueraded MAC is known at one port, and a bond sends by any";
        return Err(Problem::new("bonds", what, "cam.masquerade: false, or no cam.entries"));
    }
    for (number, planned) in planned.iter().enumerate() {
        if fabric.uplinks.iter().any(|uplink| planned.host == Some(uplink.host)) {
            let what = "this host is an uplink, which is one port";
            return Err(Problem::new(format!("bonds[{number}].host"), what, "another host"));
        }
        let end = |(end, _): &(PlanEnd, String)| Some(End { switch: end.switch, port: end.port? });
        let members: Vec<End> = planned.ends.iter().filter_map(end).collect();
        let name = match planned.host {
            Some(host) => fabric.hosts[host].name.clone(),
            None => port_name(&fabric.switches[members[0].switch].name, members[0].port),
        };
        let active = planned.active;
        fabric.bonds.push(Bond { name, host: planned.host, members, active });
    }
    Ok(())
}

/// Refuses bonds in a fabric with VLANs: edges with VLANs do not support bonds.
///
/// # Errors
/// The fabric has both.
pub(crate) fn check_vlans(fabric: &Fabric) -> Result<(), Problem> {
    match fabric.bonds.is_empty() || fabric.vlans.is_empty() {
        true => Ok(()),
        false => Err(Problem::new("bonds", "a bond is in no VLAN yet", "no vlans, or no bonds")),
    }
}

/// Returns the LACP configuration of a port, if it is a member of a bond.
pub(crate) fn lacp(fabric: &Fabric, at: End) -> Option<LacpConfig> {
    let mut port = 0;
    for (number, bond) in (1..).zip(&fabric.bonds) {
        for &member in &bond.members {
            port += 1;
            if member == at {
                let system = SystemId { priority: PRIORITY, mac: SERVER_MAC };
                return Some(LacpConfig {
                    system,
                    key: number,
                    port_priority: PRIORITY,
                    port,
                    active: bond.active,
                    short_timeout: true,
                });
            }
        }
    }
    None
}

/// Returns the bonds as the controller's configuration.
pub(crate) fn configs(fabric: &Fabric) -> Vec<BondConfig> {
    let member = |end: &End| (switch_id(end.switch), end.port);
    let bond = |bond: &Bond| BondConfig {
        name: bond.name.clone(),
        members: bond.members.iter().map(member).collect(),
    };
    fabric.bonds.iter().map(bond).collect()
}

#[cfg(test)]
mod tests {
    use crate::assemble::{controller_config, switch_config};
    use crate::model::Fabric;
    use axon_wire::PortNo;

    const START: &str = "name: a\ntopology:\n  listed: {switches: [s1, s2], hosts: {h1: s1, h2: \
                         s2-p1}, links: [[s1, s2]]}\n";

    fn parse(rest: &str) -> Result<Fabric, String> {
        let text = format!("{START}{rest}");
        crate::parse("a.yaml".as_ref(), &text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_bond_takes_its_ports_and_all_switches_are_one_system() {
        let fabric = parse("bonds: [{host: h1, ports: [s2-p5, s1-p3]}]").unwrap();
        assert_eq!(fabric.hosts[0].port, PortNo(3), "its own port is that of the bond");
        assert_eq!((fabric.switches[0].ports, fabric.switches[1].ports), (4, 6));
        let of = |switch, port: usize| {
            switch_config(&fabric, switch, 1, 1).control.edge.ports[port].clone()
        };
        let [a, b] = [of(0, 3), of(1, 5)];
        assert!(a.hosts_only && b.hosts_only && of(0, 0).bond.is_none());
        let [a, b] = [a.bond.unwrap(), b.bond.unwrap()];
        assert_eq!((a.system, a.key, a.active), (b.system, b.key, true));
        assert_ne!(a.port, b.port);
        let bonds = controller_config(&fabric, 1, 1).control.bonds;
        assert_eq!((bonds.len(), bonds[0].name.as_str(), bonds[0].members.len()), (1, "h1", 2));
    }

    #[test]
    fn a_bond_without_a_host_is_for_whatever_is_plugged_in() {
        let fabric = parse("bonds: [{ports: [s1-p7, s2-p7], lacp: passive}]").unwrap();
        assert_eq!((fabric.bonds[0].name.as_str(), fabric.bonds[0].host), ("s1-p7", None));
        assert!(!switch_config(&fabric, 0, 1, 1).control.edge.ports[7].bond.unwrap().active);
    }

    const UPLINK: &str = "bonds: [{host: up1, ports: [s1-p3, s2-p4]}]\nuplinks: [{name: up1, at: \
                          s1-p3, gateway: 10.0.0.9}]";

    #[test]
    fn what_is_no_bond_is_refused_with_its_line_and_reason() {
        for (rest, expected) in [
            ("bonds: [{ports: [s1-p1]}]", "1 of them; expected 2 to 16 ports"),
            ("bonds: [{ports: [s1-p4, s3-p1]}]", "there is no switch `s3`"),
            ("bonds: [{ports: [s1, s2-p4]}]", "`s1` is a switch"),
            ("bonds: [{ports: [s1-p4, s1-p4]}]", "s1-p4 is in this bond already"),
            ("bonds: [{ports: [s1-p4, s2-p4]}, {ports: [s1-p4, s2-p5]}]", "in another bond"),
            ("bonds: [{host: h3, ports: [s1-p4, s2-p4]}]", "there is no host `h3`"),
            ("bonds: [{host: h2, ports: [s1-p4, s2-p4]}]", "h2 is at s2-p1, which is none"),
            ("bonds: [{ports: [s1-p4, s2-p1]}]", "s2-p1 is in use already"),
            ("bonds: [{ports: [s1-p4, s2-p4]}]\nnetwork: ethernet", "not Axon's"),
            (
                "bonds: [{ports: [s1-p4, s2-p4]}]\ndcb: {classes: [{priorities: [0, 1, 2, 3, 4, 5, \
                 6, 7]}]}",
                "no traffic classes yet",
            ),
            ("bonds: [{ports: [s1-p4, s2-p4]}]\ncam: {entries: 4}", "masqueraded"),
            ("bonds: [{ports: [s1-p4, s2-p4], lacp: fast}]", "lacp"),
            ("bonds: [{ports: [s1-p4, s2-p4]}]\ncontroller: {mode: static}", "nobody selects"),
            ("bonds: [{ports: [s1-p4, s2-p4]}]\nvlans: [{id: 7, access: [h1]}]", "in no VLAN yet"),
            (UPLINK, "this host is an uplink"),
        ] {
            let error = parse(rest).unwrap_err();
            assert!(error.contains(expected), "{error}\n{expected}");
            assert!(error.starts_with("a.yaml:"), "{error}");
        }
    }
}
