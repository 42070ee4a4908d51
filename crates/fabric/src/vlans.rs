//! VLANs: from names to ports, and the configuration of nodes.

pub use crate::vlan_ports::{dhcp_of, of_host, of_port, prefix_len_of};

use crate::error::Problem;
use crate::file;
use crate::index::{Index, Node};
use crate::model::{Dhcp, End, Fabric, Host, Network, Vlan};
use crate::names::check_kind;
use axon_controller::config::{DhcpConfig, VlanConfig, VlanPlan};
use axon_link::config::ServerIdentity;
use axon_wire::vlan::VlanId;
use std::collections::{BTreeMap, BTreeSet};

/// Expectation for a member, in errors.
const MEMBER: &str = "the name of a host such as h1, or a host port such as s1-p3";

/// Reads `vlans`, once all ports have their numbers.
pub(crate) fn resolve(fabric: &Fabric, asked: &[file::Vlan]) -> Result<Vec<Vlan>, Problem> {
    let index = Index::of(fabric);
    let mut vlans: Vec<Vlan> = Vec::new();
    let mut untagged: BTreeMap<End, VlanId> = BTreeMap::new();
    if fabric.network != Network::Axon && !asked.is_empty() {
        let what = "in this network there are no VLANs";
        return Err(Problem::new("vlans", what, "network: axon, or nothing here"));
    }
    check_beside(fabric, asked)?;
    for (number, one) in asked.iter().enumerate() {
        let key = format!("vlans[{number}]");
        let id = VlanId::new(one.id).filter(|id| !id.is_none()).ok_or_else(|| {
            let what = format!("{} is no VLAN", one.id);
            Problem::new(format!("{key}.id"), what, "1 to 4094")
        })?;
        if vlans.iter().any(|vlan| vlan.id == id) {
            let what = format!("there are two VLANs {id}");
            return Err(Problem::new(format!("{key}.id"), what, "another number"));
        }
        if let Some(name) = &one.name {
            check_kind(format!("{key}.name"), "VLAN", name)?;
        }
        let access = members(fabric, &index, &format!("{key}.access"), &one.access)?;
        let trunk = members(fabric, &index, &format!("{key}.trunk"), &one.trunk)?;
        for (place, at) in access.iter().enumerate() {
            let name = &one.access[place];
            if let Some(other) = untagged.insert(*at, id) {
                let what = format!("{name} is in VLAN {other} without a tag already");
                let key = format!("{key}.access[{place}]");
                return Err(Problem::new(key, what, "one VLAN, or the trunk of this one"));
            }
        }
        if let Some(place) = trunk.iter().position(|at| access.contains(at)) {
            let what = format!("{} is in VLAN {id} without a tag already", one.trunk[place]);
            let key = format!("{key}.trunk[{place}]");
            return Err(Problem::new(key, what, "access or trunk of this VLAN"));
        }
        if access.is_empty() && trunk.is_empty() {
            let what = format!("VLAN {id} has no ports");
            return Err(Problem::new(key, what, "access or trunk with hosts, or no such VLAN"));
        }
        let dhcp = one.dhcp.as_ref().map(|dhcp| service(&key, dhcp)).transpose()?;
        let ipv6 = crate::ipv6::resolve_in_vlan(fabric, (&key, one.ipv6.as_ref()))?;
        let (access, trunk) = (access.into_iter().collect(), trunk.into_iter().collect());
        vlans.push(Vlan { id, name: one.name.clone(), access, trunk, dhcp, ipv6 });
    }
    Ok(vlans)
}

/// Refuses settings that do not work with VLANs.
fn check_beside(fabric: &Fabric, asked: &[file::Vlan]) -> Result<(), Problem> {
    if asked.is_empty() {
        return Ok(());
    }
    if fabric.is_static() {
        let what = "without a controller there are no VLANs";
        return Err(Problem::new("vlans", what, "a fabric with a controller, or nothing here"));
    }
    if fabric.is_lossless() {
        let what = "the proof that no routes close a cycle of lossless buffers has no VLANs";
        return Err(Problem::new("vlans", what, "no lossless class, or nothing here"));
    }
    Ok(())
}

/// Returns the ports of members, in order.
fn members(
    fabric: &Fabric,
    index: &Index<'_>,
    key: &str,
    names: &[String],
) -> Result<Vec<End>, Problem> {
    let links = fabric.links.iter().flat_map(|link| [link.a, link.b]);
    let links: BTreeSet<End> = links.chain([fabric.controller.at]).collect();
    let mut ends: Vec<End> = Vec::new();
    for (place, name) in names.iter().enumerate() {
        let key = format!("{key}[{place}]");
        let end = match index.node(name) {
            Some(Node::Host(host)) => {
                let host = &fabric.hosts[host];
                End { switch: host.switch, port: host.port }
            }
            _ => index.port(&key, name).map_err(|_| {
                let what = format!("there is no host `{name}`");
                Problem::new(&key, what, MEMBER)
            })?,
        };
        if links.contains(&end) {
            let what = format!("{name} is where a link of this file ends");
            return Err(Problem::new(key, what, "a host port"));
        }
        let is_at = |host: &Host| (host.switch, host.port) == (end.switch, end.port);
        if fabric.uplinks.iter().any(|uplink| is_at(&fabric.hosts[uplink.host])) {
            let what = format!("{name} is an uplink, which is in no VLAN");
            return Err(Problem::new(key, what, "a port of a host"));
        }
        if ends.contains(&end) {
            let what = format!("{name} is there twice");
            return Err(Problem::new(key, what, "each port once"));
        }
        ends.push(end);
    }
    Ok(ends)
}

/// Returns the DHCP service of a VLAN, without reservations.
fn service(key: &str, asked: &file::VlanDhcp) -> Result<Dhcp, Problem> {
    let as_of_fabric = file::Dhcp {
        subnet: Some(asked.subnet),
        server: asked.server,
        pool: asked.pool,
        lease: asked.lease,
        router: asked.router,
        dns: asked.dns.clone(),
        ..file::Dhcp::default()
    };
    let read = crate::addresses::without_hosts(&as_of_fabric, 0);
    let options = || crate::reservation::check_vlan_options(&as_of_fabric);
    let read = read.and_then(|dhcp| options().map(|()| dhcp));
    read.map_err(|problem| Problem { key: format!("{key}.{}", problem.key), ..problem })
}

/// Returns the addresses of each VLAN's edges towards its hosts.
pub(crate) fn servers(
    fabric: &Fabric,
    server: ServerIdentity,
) -> impl Iterator<Item = (&Vlan, ServerIdentity)> {
    fabric.vlans.iter().map(move |vlan| {
        let ip = vlan.dhcp.as_ref().map_or(server.ip, |dhcp| dhcp.server);
        (vlan, ServerIdentity { ip, ..server })
    })
}

/// Returns the VLANs as the controller's configuration.
pub(crate) fn plan(
    fabric: &Fabric,
    server: ServerIdentity,
    config: impl Fn(&Dhcp) -> DhcpConfig,
) -> VlanPlan {
    let vlan = |(vlan, server): (&Vlan, ServerIdentity)| {
        let dhcp = vlan.dhcp.as_ref().map(&config);
        VlanConfig { vlan: vlan.id, server, dhcp }
    };
    let ends = fabric.vlans.iter().flat_map(|vlan| vlan.access.iter().chain(&vlan.trunk));
    let port =
        |at: &End| Some(((crate::identity::switch_id(at.switch), at.port), of_port(fabric, *at)?));
    VlanPlan {
        vlans: servers(fabric, server).map(vlan).collect(),
        ports: ends.filter_map(port).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::{of_port, prefix_len_of};
    use crate::assemble::{controller_config, switch_config};
    use crate::model::Fabric;
    use axon_node::PortVlans;
    use axon_wire::vlan::VlanId;

    /// s1 has h1 at port 0, h2 at 1, the link at 2, the controller at 3; s2 has h3 and h4.
    fn parse(rest: &str) -> Result<Fabric, String> {
        let text = format!(
            "name: a\ntopology:\n  listed:\n    switches: [s1, s2]\n    hosts: {{h1: s1, h2: \
             {{at: s1, ip: 10.0.0.12}}, h3: s2, h4: s2-p7}}\n    links: [[s1, s2]]\n{rest}"
        );
        crate::parse("a.yaml".as_ref(), &text).map_err(|error| error.to_string())
    }

    fn vlan(number: u16) -> VlanId {
        VlanId::new(number).unwrap()
    }

    #[test]
    fn ports_are_in_the_vlans_that_the_file_says_and_others_in_none() {
        let fabric = parse(
            "vlans:\n- {id: 20, access: [h1], trunk: [s2-p7]}\n- {id: 10, name: red, access: \
             [s2-p7, s2-p5], trunk: [h3], dhcp: {subnet: 192.168.7.0/24}}\n- {id: 30, trunk: \
             [h4]}\n",
        );
        let fabric = fabric.unwrap_or_else(|error| panic!("{error}"));
        let of = |switch: usize, port: usize| {
            let ports = switch_config(&fabric, switch, 1, 7).control.edge.ports;
            *ports[port].vlans.clone().expect("a fabric with VLANs")
        };
        let ports = |untagged, tagged: &[u16]| PortVlans {
            untagged: vlan(untagged),
            tagged: tagged.iter().map(|&number| vlan(number)).collect(),
        };
        assert_eq!((of(0, 0), of(0, 1)), (ports(20, &[]), ports(0, &[])));
        assert_eq!(
            (of(1, 0), of(1, 5), of(1, 7)),
            (ports(0, &[10]), ports(10, &[]), ports(10, &[20, 30]))
        );
        let switch = switch_config(&fabric, 0, 1, 7).control;
        let servers: Vec<_> = switch
            .edge
            .vlans
            .iter()
            .map(|vlan| (vlan.id.value(), vlan.server.ip.octets()))
            .collect();
        let expected = [(20, [10, 0, 0, 1]), (10, [192, 168, 7, 1]), (30, [10, 0, 0, 1])];
        assert_eq!(servers, expected);
        let plan = controller_config(&fabric, 1, 7).control.vlans;
        let leased: Vec<_> = plan.vlans.iter().map(|one| one.dhcp.is_some()).collect();
        assert_eq!((leased, plan.ports.len()), (vec![false, true, false], 4));
        assert!(of_port(&parse("").unwrap(), fabric.controller.at).is_none());
    }

    #[test]
    fn addresses_are_those_of_the_vlan_of_a_host() {
        let fabric = parse(
            "vlans:\n- {id: 10, access: [h1], dhcp: {subnet: 10.0.0.0/24}}\n- {id: 20, access: \
             [h3]}\n",
        );
        let fabric = fabric.unwrap_or_else(|error| panic!("{error}"));
        let addresses: Vec<_> = crate::addresses::of_hosts(&fabric)
            .into_iter()
            .map(|ip| ip.unwrap().octets()[3])
            .collect();
        // h1 alone in a VLAN, h2 with a fixed one, h3 alone in a VLAN, h4.
        assert_eq!(addresses, [2, 12, 3, 4], "10.0.0.1 is the server's");
        let lengths = fabric.hosts.iter().map(|host| prefix_len_of(&fabric, host));
        assert_eq!(lengths.collect::<Vec<_>>(), [24, 16, 16, 16]);
    }

    #[test]
    fn prefixes_are_those_of_the_vlan_of_a_host() {
        let fabric = parse(
            "ipv6: {prefix: 'fd00::/64'}\nvlans:\n- {id: 10, access: [h1], ipv6: {prefix: \
             'fd10::/64', dhcp: {}}}\n- {id: 20, access: [h3]}\n",
        );
        let fabric = fabric.unwrap_or_else(|error| panic!("{error}"));
        let prefix = |host: usize| {
            crate::ipv6::address(&fabric, &fabric.hosts[host]).map(|address| address.segments()[0])
        };
        // h1 is in VLAN 10, h2 in none, h3 in one without advertisements.
        assert_eq!([0, 1, 2].map(prefix), [Some(0xfd10), Some(0xfd00), None]);
        let switch = switch_config(&fabric, 0, 1, 7).control;
        let advertised = switch.edge.vlans.iter().map(|vlan| vlan.ipv6.is_some());
        assert_eq!(advertised.collect::<Vec<_>>(), [true, false]);
        assert!(crate::ipv6::is_dual_stack(&fabric));
        let alone = parse("vlans:\n- {id: 10, access: [h1], ipv6: {prefix: 'fd10::/64'}}\n");
        assert!(crate::ipv6::is_dual_stack(&alone.unwrap()));
    }

    #[test]
    fn contradictions_are_refused_by_key_with_their_reason() {
        let cases = [
            ("{id: 0, access: [h1]}", "vlans[0].id: 0 is no VLAN"),
            ("{id: 4095, access: [h1]}", "expected 1 to 4094"),
            (
                "{id: 7, access: [h1]}\n- {id: 7, access: [h3]}",
                "vlans[1].id: there are two VLANs 7",
            ),
            ("{id: 7, access: [h9]}", "vlans[0].access[0]: there is no host `h9`"),
            ("{id: 7, trunk: [s1-p2]}", "trunk[0]: s1-p2 is where a link"),
            ("{id: 7, trunk: [s1-p3]}", "trunk[0]: s1-p3 is where a link"),
            ("{id: 7, access: [h1]}\n- {id: 8, access: [s1-p0]}", "is in VLAN 7 without a tag"),
            ("{id: 7, access: [h1], trunk: [h1]}", "trunk[0]: h1 is in VLAN 7 without a tag"),
            ("{id: 7, trunk: [h1, s1-p0]}", "trunk[1]: s1-p0 is there twice"),
            ("{id: 7}", "vlans[0]: VLAN 7 has no ports"),
            ("{id: 7, name: '-', access: [h1]}", "name: `-` cannot name a VLAN"),
            ("{id: 7, access: [h1], dhcp: {subnet: 10.1.0.0/24, server: 10.2.0.1}}", "dhcp.server"),
            ("{id: 7, access: [h1], dhcp: {subnet: 10.1.0.0/24, router: 10.2.0.1}}", "dhcp.router"),
            (
                "{id: 7, access: [h2], dhcp: {subnet: 10.1.0.0/24}}",
                "10.0.0.12 is not in the subnet",
            ),
            ("{id: 7, access: [h1], ipv6: {prefix: x}}", "vlans[0].ipv6.prefix: `x` is no prefix"),
            (
                "{id: 7, access: [h1], ipv6: {prefix: 'fd00::/64', dhcp: {relay: h1}}}",
                "vlans[0].ipv6.dhcp.relay: h1 would be sent",
            ),
            ("{id: 7, access: [h1]}\nnetwork: ethernet", "vlans: in this network"),
            ("{id: 7, access: [h1]}\ncontroller: {mode: static}", "vlans: without a controller"),
            (
                "{id: 7, access: [h1]}\ncontroller: {router: up_down}\ndcb: {classes: \
                 [{priorities: [3], lossless: true}, {priorities: [0, 1, 2, 4, 5, 6, 7]}]}",
                "vlans: the proof that no routes close a cycle of lossless buffers has no VLANs; \
                 expected no lossless class",
            ),
        ];
        for (text, expected) in cases {
            let error = parse(&format!("vlans:\n- {text}\n")).unwrap_err();
            assert!(error.contains(expected), "{text}\n{error}");
            assert!(error.starts_with("a.yaml:"), "{error}");
        }
    }
}
