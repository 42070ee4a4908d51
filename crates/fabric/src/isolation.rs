//! Isolation of hosts: from the file to the policy of the controller.

use crate::error::Problem;
use crate::file::{self, Others};
use crate::identity::{CONTROLLER_ID, CONTROLLER_MAC, SERVER_MAC, switch_id, switch_mac};
use crate::index::{Index, Node};
use crate::model::{BySource, End, Fabric, Network, Policy};
use crate::names;
use axon_controller::policy::Group;
use axon_node::Subject;
use axon_wire::MacAddr;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Keys that enable routes by source: for the policy, and for paths.
const POLICY_KEY: &str = "isolation.by_source";
const ALWAYS_KEY: &str = "controller.by_source";
/// Expectation for a member, in errors.
const MEMBER: &str =
    "the name of a host such as h1, a MAC such as 02:00:00:00:00:01, or a host port such as s1-p3";

/// Resolves a name in a policy: a host of this fabric, a MAC, or a host port.
///
/// # Errors
/// The name is none of them; the key is empty.
pub fn subject(fabric: &Fabric, name: &str) -> Result<Subject, Problem> {
    member(fabric, &Index::of(fabric), "", name)
}

/// Returns the name of a policy's subject: that of a host of this fabric, or else the MAC or
/// port.
pub fn subject_name(fabric: &Fabric, subject: Subject) -> String {
    let host = |mac| fabric.hosts.iter().find(|host| host.mac == mac);
    match subject {
        Subject::Mac(mac) => host(mac).map_or(mac.to_string(), |host| host.name.clone()),
        Subject::Port(CONTROLLER_ID, port) => names::port_name(&fabric.controller.name, port),
        Subject::Port(node, port) => {
            let mut switches = (0..).zip(&fabric.switches);
            let switch = switches.find(|(index, _)| switch_id(*index) == node);
            switch.map_or(subject.to_string(), |(_, switch)| names::port_name(&switch.name, port))
        }
    }
}

/// Reads `isolation`, once all hosts have their ports and addresses, and checks reservations
/// against it.
pub(crate) fn resolve(fabric: &Fabric, file: &file::File) -> Result<Policy, Problem> {
    let asked = &file.isolation;
    let mut reader = Reader {
        fabric,
        index: Index::of(fabric),
        policy: Policy::default(),
        members: BTreeMap::new(),
        reserved: BTreeMap::new(),
    };
    let mut tenants: BTreeMap<&str, Group> = BTreeMap::new();
    for (number, tenant) in asked.tenants.iter().enumerate() {
        let key = format!("isolation.tenants[{number}]");
        let name = &tenant.name;
        names::check_kind(format!("{key}.name"), "tenant", name)?;
        let group = reader.policy.add_tenant(name.as_str());
        if tenants.insert(name, group).is_some() {
            let what = format!("there are two tenants {name}");
            return Err(Problem::new(format!("{key}.name"), what, "another name"));
        }
        reader.tenant(&key, tenant, group)?;
    }
    for (number, tenant) in asked.tenants.iter().enumerate() {
        for (place, other) in tenant.reach.iter().enumerate() {
            let key = format!("isolation.tenants[{number}].reach[{place}]");
            match tenants.get(other.as_str()) {
                Some(_) if *other == tenant.name => {
                    let what = format!("{other} reaches itself in any case");
                    return Err(Problem::new(key, what, "another tenant, or nothing"));
                }
                Some(&group) => reader.policy.join(tenants[tenant.name.as_str()], group),
                None => {
                    let what = format!("there is no tenant `{other}`");
                    return Err(Problem::new(key, what, "the name of a tenant"));
                }
            }
        }
    }
    reader.shared(&asked.shared)?;
    reader.quarantine(&asked.quarantine)?;
    if asked.others == Others::Deny {
        reader.policy.deny_others();
    }
    if fabric.network != Network::Axon && !reader.policy.is_open() {
        let what = "in this network there is no controller that gives routes";
        return Err(Problem::new("isolation", what, "network: axon, or nothing here"));
    }
    crate::reservation::check_policy(fabric, &reader.policy, &file.dhcp)?;
    Ok(reader.policy)
}

/// Returns where hosts behind one port get routes of their own.
pub(crate) fn by_source(fabric: &Fabric, file: &file::File) -> Result<BySource, Problem> {
    let (kind, key) = match (file.controller.by_source, file.isolation.by_source) {
        (true, _) => (BySource::Always, ALWAYS_KEY),
        (false, true) => (BySource::Policy, POLICY_KEY),
        (false, false) => return Ok(BySource::Never),
    };
    if fabric.network != Network::Axon {
        let what = "in this network there is no controller that gives routes";
        return Err(Problem::new(key, what, "network: axon, or nothing here"));
    }
    Ok(kind)
}

/// Returns the key of the file that enables routes by source, if any.
pub(crate) fn by_source_key(fabric: &Fabric) -> Option<&'static str> {
    match fabric.by_source {
        BySource::Never => None,
        BySource::Policy => Some(POLICY_KEY),
        BySource::Always => Some(ALWAYS_KEY),
    }
}

struct Reader<'a> {
    fabric: &'a Fabric,
    index: Index<'a>,
    policy: Policy,
    /// Members so far, each with a description of its group.
    members: BTreeMap<Subject, String>,
    reserved: BTreeMap<IpAddr, String>,
}

impl Reader<'_> {
    fn tenant(&mut self, key: &str, tenant: &file::Tenant, group: Group) -> Result<(), Problem> {
        let hosts_key = format!("{key}.hosts");
        if tenant.hosts.is_empty() {
            let what = format!("tenant {} has no hosts", tenant.name);
            return Err(Problem::new(hosts_key, what, "at least one, or no such tenant"));
        }
        let words = format!("in tenant {}", tenant.name);
        for (place, name) in tenant.hosts.iter().enumerate() {
            let key = format!("{hosts_key}[{place}]");
            let subject = member(self.fabric, &self.index, &key, name)?;
            self.enter(&key, (name, subject), (group, &words))?;
            if tenant.pin {
                self.pin(&key, name, subject)?;
            }
            if let Some(Node::Host(host)) = self.index.node(name) {
                let host = &self.fabric.hosts[host];
                let leased = self.fabric.dhcp.reservations.get(&host.mac).copied();
                for ip in host.ip.into_iter().chain(leased).collect::<BTreeSet<_>>() {
                    self.reserve(&key, ip.into(), (group, &words))?;
                }
            }
        }
        for (place, &ip) in tenant.addresses.iter().enumerate() {
            self.reserve(&format!("{key}.addresses[{place}]"), ip, (group, &words))?;
        }
        Ok(())
    }

    fn shared(&mut self, names: &[String]) -> Result<(), Problem> {
        for (place, name) in names.iter().enumerate() {
            let key = format!("isolation.shared[{place}]");
            let subject = member(self.fabric, &self.index, &key, name)?;
            self.enter(&key, (name, subject), (Group::Shared, "shared"))?;
        }
        Ok(())
    }

    fn quarantine(&mut self, names: &[String]) -> Result<(), Problem> {
        let mut seen = BTreeSet::new();
        for (place, name) in names.iter().enumerate() {
            let key = format!("isolation.quarantine[{place}]");
            let subject = member(self.fabric, &self.index, &key, name)?;
            if self.members.get(&subject).is_some_and(|words| words == "shared") {
                let what = format!("{name} is shared");
                return Err(Problem::new(key, what, "one of the two"));
            }
            if !seen.insert(subject) {
                let what = format!("{name} is there twice");
                return Err(Problem::new(key, what, "one of the two"));
            }
            self.policy.isolate(subject);
        }
        Ok(())
    }

    /// Adds a member to its group, which must be its only one. A host of the file and its port must
    /// not be in two groups.
    fn enter(
        &mut self,
        key: &str,
        (name, subject): (&str, Subject),
        (group, words): (Group, &str),
    ) -> Result<(), Problem> {
        if let Some(known) = self.members.get(&subject) {
            let what = format!("{name} is {known} already");
            return Err(Problem::new(key, what, "each host in one place"));
        }
        let beside = self.fabric.hosts.iter().filter_map(|host| {
            let (mac, port) = (Subject::Mac(host.mac), port_subject(host_end(host)));
            match subject {
                of if of == mac => Some((port, "its port")),
                of if of == port => Some((mac, host.name.as_str())),
                _ => None,
            }
        });
        for (other, called) in beside {
            if let Some(known) = self.members.get(&other).filter(|known| *known != words) {
                let what = format!("{name} is to be {words}, and {called} is {known}");
                return Err(Problem::new(key, what, "a host and its port in one place"));
            }
        }
        self.members.insert(subject, words.to_owned());
        self.policy.put(subject, group);
        Ok(())
    }

    /// Pins a host to its port in this file.
    fn pin(&mut self, key: &str, name: &str, subject: Subject) -> Result<(), Problem> {
        let host = self.fabric.hosts.iter().find(|host| subject == Subject::Mac(host.mac));
        let Some(host) = host else {
            let what = format!("{name} is no host of this file, so its port is not known");
            let expected = "a host of this file, or no pin: a port alone admits no host of another \
                            tenant";
            return Err(Problem::new(key, what, expected));
        };
        self.policy.pin(host.mac, (switch_id(host.switch), host.port));
        Ok(())
    }

    fn reserve(
        &mut self,
        key: &str,
        ip: IpAddr,
        (group, words): (Group, &str),
    ) -> Result<(), Problem> {
        if ip == IpAddr::V4(self.fabric.dhcp.server) {
            let what = format!("{ip} is the address of the DHCP server");
            return Err(Problem::new(key, what, "an address of a host"));
        }
        match self.reserved.insert(ip, words.to_owned()) {
            Some(known) if known != words => {
                let what = format!("{ip} is {known} already");
                Err(Problem::new(key, what, "each address in one tenant"))
            }
            _ => {
                self.policy.reserve(ip, group);
                Ok(())
            }
        }
    }
}

fn host_end(host: &crate::model::Host) -> End {
    End { switch: host.switch, port: host.port }
}

fn port_subject(end: End) -> Subject {
    Subject::Port(switch_id(end.switch), end.port)
}

/// Resolves the name of a member.
fn member(fabric: &Fabric, index: &Index<'_>, key: &str, name: &str) -> Result<Subject, Problem> {
    if let Some(Node::Host(host)) = index.node(name) {
        return Ok(Subject::Mac(fabric.hosts[host].mac));
    }
    if let Ok(mac) = file::mac(name) {
        return match is_ours(fabric, mac) {
            true => {
                let what = format!("{mac} is of the fabric itself");
                Err(Problem::new(key, what, "the MAC of a host"))
            }
            false => Ok(Subject::Mac(mac)),
        };
    }
    let end = index
        .port(key, name)
        .map_err(|_| Problem::new(key, format!("there is no host `{name}`"), MEMBER))?;
    let links = fabric.links.iter().flat_map(|link| [link.a, link.b]);
    if links.chain([fabric.controller.at]).any(|used| used == end) {
        let what = format!("{name} is where a link of this file ends");
        return Err(Problem::new(key, what, "a host port"));
    }
    Ok(port_subject(end))
}

/// Returns whether a MAC belongs to a switch, to the controller or to its DHCP server.
fn is_ours(fabric: &Fabric, mac: MacAddr) -> bool {
    let switches = (0..fabric.switches.len()).map(switch_mac);
    switches.chain([CONTROLLER_MAC, SERVER_MAC]).any(|ours| ours == mac)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_controller::policy::Identity;

    /// s1 has h1 at port 0, h2 at 1, the link at 2, the controller at 3; s2 has h3 and h4.
    fn parse(isolation: &str) -> Result<Fabric, String> {
        let text = format!(
            "name: a\ntopology:\n  listed:\n    switches: [s1, s2]\n    hosts: {{h1: s1, h2: \
             {{at: s1, ip: 10.0.0.12}}, h3: s2, h4: s2-p7}}\n    links: [[s1, s2]]\ndhcp: \
             {{reservations: {{h1: 10.0.0.11}}}}\nisolation:\n{isolation}"
        );
        crate::parse("a.yaml".as_ref(), &text).map_err(|error| error.to_string())
    }

    fn identity(fabric: &Fabric, host: usize) -> Identity {
        let host = &fabric.hosts[host];
        Identity { mac: host.mac, at: Some((switch_id(host.switch), host.port)) }
    }

    #[test]
    fn names_macs_and_ports_become_a_policy() {
        let fabric = parse(
            "  tenants:\n  - {name: red, hosts: [h1, h2], pin: true}\n  - {name: blue, hosts: \
             [s2-p7, 02:00:00:00:00:99], reach: [green], addresses: ['fd00::7']}\n  - {name: \
             green, hosts: [s2-p0]}\n",
        )
        .unwrap();
        let policy = &fabric.policy;
        let reaches = |a, b| policy.allows(&identity(&fabric, a), &identity(&fabric, b));
        assert!(reaches(0, 1) && reaches(2, 3) && !reaches(0, 2) && !reaches(1, 3));
        assert_eq!(policy.tenants().collect::<Vec<_>>(), ["red", "blue", "green"]);
        let [h1, h3] = [0, 2].map(|host| identity(&fabric, host));
        let admits = |host: &Identity, at: &Identity| policy.admits(host.mac, &[at.at.unwrap()]);
        assert!(admits(&h1, &h1) && !admits(&h1, &h3) && !admits(&h3, &h1));
        for (ip, owner) in [("10.0.0.11", &h1), ("10.0.0.12", &h1), ("fd00::7", &h3)] {
            let ip: IpAddr = ip.parse().unwrap();
            let others = [&h1, &h3].map(|host| policy.may_own(host, ip));
            let expected = [&h1, &h3].map(|host| host == owner && ip.is_ipv4());
            assert_eq!(others, expected, "{ip}");
        }
        assert_eq!(subject(&fabric, "h2"), Ok(Subject::Mac(fabric.hosts[1].mac)));
        let port = subject(&fabric, "s2-p7").unwrap();
        assert_eq!(subject_name(&fabric, port), "s2-p7");
    }

    #[test]
    fn contradictions_are_refused_by_key_with_their_reason() {
        let red = "  tenants:\n  - {name: red, hosts: [h1]}\n";
        let cases = [
            (format!("{red}  - {{name: red, hosts: [h2]}}\n"), "[1].name: there are two tenants"),
            (format!("{red}  - {{name: blue, hosts: [h1]}}\n"), "hosts[0]: h1 is in tenant red"),
            (format!("{red}  - {{name: b, hosts: [s1-p0]}}\n"), "and h1 is in tenant red"),
            (format!("{red}  - {{name: b, hosts: []}}\n"), "tenants[1].hosts: tenant b has no"),
            (format!("{red}  - {{name: b, hosts: [h9]}}\n"), "there is no host `h9`"),
            (format!("{red}  - {{name: b, hosts: [s1-p2]}}\n"), "s1-p2 is where a link"),
            (format!("{red}  - {{name: b, hosts: [h2], reach: [c]}}\n"), "no tenant `c`"),
            (format!("{red}  - {{name: b, hosts: [h2], reach: [b]}}\n"), "b reaches itself"),
            (format!("{red}  - {{name: b, hosts: [s2-p7], pin: true}}\n"), "no host of this file"),
            (format!("{red}  - {{name: b, hosts: [h2], addresses: [10.0.0.11]}}\n"), "already"),
            (format!("{red}  - {{name: '-', hosts: [h2]}}\n"), "`-` cannot name a tenant"),
            (format!("{red}  shared: [h1]\n"), "shared[0]: h1 is in tenant red already"),
            ("  shared: [h1]\n  quarantine: [h1]\n".into(), "quarantine[0]: h1 is shared"),
            ("  quarantine: [h1, h1]\n".into(), "quarantine[1]: h1 is there twice"),
            ("  shared: [02:63:00:00:00:01]\n".into(), "is of the fabric itself"),
            ("  shared: [h1]\nnetwork: ethernet\n".into(), "isolation: in this network"),
        ];
        for (text, expected) in cases {
            let error = parse(&text).unwrap_err();
            assert!(error.contains(expected), "{text}{error}");
            assert!(error.starts_with("a.yaml:"), "{error}");
        }
    }
}
