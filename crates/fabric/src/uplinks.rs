//! The `uplinks` section: ports to real networks.
//!
//! The outside network counts as one host whose address is the gateway's. So it has a port that
//! never becomes an Axon port, a name, a place in proofs and in the simulator, and in a lab a
//! namespace, or a network device of the machine. Behind the port there may be many hosts.

use crate::error::Problem;
use crate::file::{self, File};
use crate::identity::switch_id;
use crate::model::{Fabric, Network, Uplink};
use crate::names;
use crate::reservation::{check, check_dns, check_domain};
use crate::topology::{self, Plan, PlanHost};
use axon_controller::config::UplinkConfig;
use ipnet::Ipv4Net;
use std::collections::BTreeSet;

/// Prefix of the keys of uplinks.
const KEY: &str = "uplinks[";

/// Adds the hosts that stand for the networks behind the uplinks.
pub(crate) fn add(file: &File, plan: &mut Plan) -> Result<(), Problem> {
    let Some(_) = file.uplinks.first() else { return Ok(()) };
    if file.network != Network::Axon || file.program.is_some() {
        let what = "the switches of this network know no uplinks";
        return Err(Problem::new("uplinks", what, "network axon, or no uplinks"));
    }
    let switches = plan.numbers();
    let hosts = plan.hosts.iter().map(|host| host.name.clone());
    let mut names: BTreeSet<String> = hosts.chain(plan.switches.iter().cloned()).collect();
    let mut added = Vec::new();
    for (number, uplink) in file.uplinks.iter().enumerate() {
        let key = format!("{KEY}{number}]");
        names::check(&format!("{key}.name"), &uplink.name)?;
        if !names.insert(uplink.name.clone()) {
            let what = format!("{} is the name of another node", uplink.name);
            return Err(Problem::new(format!("{key}.name"), what, "a name of its own"));
        }
        check_dns(&format!("{key}.dns"), uplink.dns.len())?;
        check_domain(&format!("{key}.domain"), uplink.domain.as_deref())?;
        check_device(&key, number, file)?;
        added.push(PlanHost {
            name: uplink.name.clone(),
            at: topology::end(&format!("{key}.at"), &uplink.at, &switches)?,
            ip: Some(uplink.gateway),
            ip6: None,
            mac: uplink.mac.as_ref().map(|mac| mac.0),
            wire: Vec::new(),
            key,
        });
    }
    plan.hosts.extend(added);
    Ok(())
}

/// Refuses an invalid device, one that another uplink uses, or one whose gateway needs a MAC that
/// the file does not give.
fn check_device(key: &str, number: usize, file: &File) -> Result<(), Problem> {
    let uplink = &file.uplinks[number];
    let Some(device) = &uplink.device else { return Ok(()) };
    let key = format!("{key}.device");
    if !names::is_device_name(device) {
        let what = format!("`{device}` cannot be a network device");
        let expected = "1 to 15 bytes without blanks, slashes, colons and per cent signs";
        return Err(Problem::new(key, what, expected));
    }
    let same = |other: &&file::Uplink| other.device.as_ref() == Some(device);
    if let Some(other) = file.uplinks[..number].iter().find(same) {
        let what = format!("{device} is the device of {} already", other.name);
        return Err(Problem::new(key, what, "a device of its own"));
    }
    if uplink.mac.is_none() && file.controller.mode == file::Mode::Static {
        let what = "without a controller switches know the gateway by its MAC";
        return Err(Problem::new(key, what, "`mac` of the uplink beside it, or no device"));
    }
    Ok(())
}

/// Returns the uplinks among the hosts of a plan, identified by their keys, in the order of the
/// file.
pub(crate) fn of(file: &File, plan: &Plan) -> Vec<Uplink> {
    let hosts = plan.hosts.iter().enumerate();
    let hosts = hosts.filter(|(_, host)| host.key.starts_with(KEY));
    let one = |((host, _), uplink): ((usize, &PlanHost), &file::Uplink)| {
        let device = uplink.device.clone();
        Uplink { host, gateway: uplink.gateway, device }
    };
    hosts.zip(&file.uplinks).map(one).collect()
}

/// Checks the gateways, and takes the hosts' router, name servers and domain from the uplinks where
/// `dhcp` has none.
pub(crate) fn finish(fabric: &mut Fabric, file: &File, subnet: Ipv4Net) -> Result<(), Problem> {
    for (number, uplink) in file.uplinks.iter().enumerate() {
        check(subnet, &format!("uplinks[{number}].gateway"), uplink.gateway)?;
    }
    let router = file.ipv6.as_ref().and_then(|ipv6| ipv6.router.as_ref());
    let is_router = |uplink: &&file::Uplink| router == Some(&uplink.name);
    if let Some(uplink) = file.uplinks.iter().find(is_router)
        && let (Some(device), None) = (&uplink.device, &uplink.mac)
    {
        let what = format!("the gateway behind {device} has a MAC of its own");
        let expected = "its link-local address, or its MAC as `mac` of the uplink";
        return Err(Problem::new("ipv6.router", what, expected));
    }
    let Some(first) = file.uplinks.first() else { return Ok(()) };
    debug_assert!(fabric.network == Network::Axon, "others were refused");
    if let Some(relay) = fabric.dhcp.relay {
        if fabric.uplinks.iter().any(|uplink| uplink.host == relay) {
            let what = format!("{} is an uplink", fabric.hosts[relay].name);
            return Err(Problem::new("dhcp.relay", what, "a host: no DHCP passes an uplink"));
        }
        return Ok(());
    }
    let dhcp = &mut fabric.dhcp;
    dhcp.router = dhcp.router.or(Some(first.gateway));
    if dhcp.dns.is_empty() {
        dhcp.dns = first.dns.clone();
    }
    if dhcp.domain.is_none() {
        dhcp.domain = first.domain.clone();
    }
    Ok(())
}

/// Returns the uplinks as the controller's configuration.
pub(crate) fn config(fabric: &Fabric) -> Vec<UplinkConfig> {
    let of = |uplink: &Uplink| {
        let host = &fabric.hosts[uplink.host];
        let at = (switch_id(host.switch), host.port);
        UplinkConfig { at, gateway: uplink.gateway }
    };
    fabric.uplinks.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::{controller_config, switch_config};

    fn parse(uplinks: &str, rest: &str) -> Result<Fabric, String> {
        let text = format!(
            "name: a\ntopology:\n  listed: {{switches: [s1, s2], hosts: {{h1: s1, h2: s2}}, links: \
             [[s1-p4, s2]]}}\nuplinks: {uplinks}\n{rest}"
        );
        crate::parse("a.yaml".as_ref(), &text).map_err(|error| error.to_string())
    }

    #[test]
    fn an_uplink_is_a_pinned_port_and_hosts_get_their_settings_from_it() {
        let up = "[{name: up1, at: s1-p5, gateway: 10.0.0.254, dns: [10.0.0.253], \
                  domain: example.net}]";
        let fabric = parse(up, "").unwrap();
        let outside = &fabric.hosts[fabric.uplinks[0].host];
        assert_eq!((outside.name.as_str(), outside.port.0), ("up1", 5));
        let ports = switch_config(&fabric, 0, 1, 7).control.edge.ports;
        let uplinks: Vec<bool> = ports.iter().map(|port| port.uplink).collect();
        assert_eq!(uplinks, [false, false, false, false, false, true]);
        assert!(ports[5].hosts_only);
        let control = controller_config(&fabric, 1, 7).control;
        assert_eq!(control.dhcp.router, Some([10, 0, 0, 254].into()));
        assert_eq!(control.dhcp.dns, [std::net::Ipv4Addr::new(10, 0, 0, 253)]);
        assert_eq!(control.dhcp.domain.as_deref(), Some("example.net"));
        assert!(!control.dhcp.reservations.contains_key(&outside.mac), "a real one has its own");
        assert_eq!(control.uplinks.len(), 1);
        assert_eq!(fabric.uplinks[0].device, None);
        let real = parse(&up.replace("domain:", "device: eth1, domain:"), "").unwrap();
        assert_eq!(real.uplinks[0].device.as_deref(), Some("eth1"));
        let ours = "dhcp: {router: 10.0.0.9, dns: [10.0.0.8], domain: lab.example}";
        let dhcp = parse(up, ours).unwrap().dhcp;
        assert_eq!(dhcp.router, Some([10, 0, 0, 9].into()));
        assert_eq!(dhcp.domain.as_deref(), Some("lab.example"));
    }

    #[test]
    fn what_cannot_be_an_uplink_is_refused_with_its_line() {
        for (up, rest, reason) in [
            ("at: s9, gateway: 10.0.0.254", "", "uplinks[0].at: there is no switch `s9`"),
            ("at: s1-p4, gateway: 10.0.0.254", "", "s1-p4 is in use already"),
            ("at: s1, gateway: 10.1.0.254", "", "uplinks[0].gateway: 10.1.0.254 is not in the"),
            ("at: s1, gateway: 10.0.0.1", "", "10.0.0.1 is in use already"),
            ("at: s1, gateway: 10.0.0.254, domain: 'a b'", "", "`a b` is no domain"),
            ("at: s1, gateway: 10.0.0.254", "network: ethernet", "know no uplinks"),
            ("at: s1, gateway: 10.0.0.254", "dhcp: {relay: up1}", "up1 is an uplink"),
            ("at: s1, gateway: 10.0.0.254, device: a/b", "", "`a/b` cannot be a network device"),
            (
                "at: s1, gateway: 10.0.0.254, device: eth1",
                "controller: {mode: static}",
                "uplinks[0].device: without a controller switches know the gateway by its MAC",
            ),
            (
                "at: s1, gateway: 10.0.0.254, device: eth1",
                "ipv6: {prefix: '2001:db8::/64', router: up1}",
                "ipv6.router: the gateway behind eth1 has a MAC of its own",
            ),
            (
                "at: s1-p7, gateway: 10.0.0.254",
                "ports: {overrides: [{ports: [s1-p7], axon: true}]}",
                "s1-p7 is an uplink",
            ),
        ] {
            let error = parse(&format!("[{{name: up1, {up}}}]"), rest).unwrap_err();
            assert!(error.contains(reason) && error.starts_with("a.yaml:"), "{error}");
        }
        let [a, b] = ["a, at: s1, gateway: 10.0.0.254", "b, at: s2, gateway: 10.0.0.253"];
        let both = format!("[{{name: {a}, device: eth1}}, {{name: {b}, device: eth1}}]");
        let error = parse(&both, "").unwrap_err();
        assert!(error.contains("uplinks[1].device: eth1 is the device of a already"), "{error}");
        let taken = "[{name: h1, at: s1, gateway: 10.0.0.254}]";
        assert!(parse(taken, "").unwrap_err().contains("h1 is the name of another node"));
    }
}
