//! Reservations of addresses, and the options that hosts get with their address.

use crate::error::Problem;
use crate::file;
use crate::identity::{CONTROLLER_MAC, SERVER_MAC, switch_mac};
use crate::model::{Fabric, Network};
use crate::names;
use axon_controller::policy::{Identity, Policy};
use axon_wire::MacAddr;
use ipnet::{IpAdd, IpSub, Ipv4Net};
use std::net::{IpAddr, Ipv4Addr};

/// Prefix of a reservation for a client identifier.
const BY_CLIENT: &str = "id:";
/// Maximum bytes of a client identifier (RFC 2132 section 9.14).
const CLIENT_BYTES_MAX: usize = 255;
const WHOM: &str = "a host by name, a MAC, or a client identifier such as id:printer";
/// Maximum number of name servers of a kind.
const DNS_MAX: usize = 8;

/// Returns the first and last address that hosts of the subnet can have: all but the network's own
/// and the broadcast address (RFC 1122 section 3.2.1.3).
pub(crate) fn host_range(subnet: Ipv4Net) -> (Ipv4Addr, Ipv4Addr) {
    (subnet.network().saturating_add(1), subnet.broadcast().saturating_sub(1))
}

/// Refuses an address that no host of the subnet can have.
pub(crate) fn check(subnet: Ipv4Net, key: &str, address: Ipv4Addr) -> Result<(), Problem> {
    let (first, last) = host_range(subnet);
    if (first..=last).contains(&address) {
        return Ok(());
    }
    let what = format!("{address} is not in the subnet");
    Err(Problem::new(key, what, format!("{first} to {last}")))
}

/// Holder of a reservation.
pub(crate) enum Reserved {
    Host(MacAddr),
    Client(Vec<u8>),
}

/// Parses the name of a reservation. A host has one reservation or a fixed address, under any of
/// its names.
pub(crate) fn whom(fabric: &Fabric, key: &str, name: &str) -> Result<Reserved, Problem> {
    if let Some(id) = name.strip_prefix(BY_CLIENT) {
        let id = client_id(id);
        if id.is_empty() || id.len() > CLIENT_BYTES_MAX {
            let what = format!("an identifier of {} bytes", id.len());
            return Err(Problem::new(key, what, "1 to 255 bytes after id:"));
        }
        if fabric.dhcp.clients.contains_key(&id) {
            let what = format!("{name} has a reservation already, written in another way");
            return Err(Problem::new(key, what, "one of the two"));
        }
        return Ok(Reserved::Client(id));
    }
    let host = fabric.hosts.iter().find(|host| host.name == name);
    let mac = match (host, file::mac(name)) {
        (Some(host), _) => host.mac,
        (None, Ok(mac)) => mac,
        (None, Err(_)) => {
            return Err(Problem::new(key, format!("there is no host `{name}`"), WHOM));
        }
    };
    let switches = (0..fabric.switches.len()).map(switch_mac);
    if switches.chain([CONTROLLER_MAC, SERVER_MAC]).any(|own| own == mac) {
        let what = format!("{mac} is of the fabric itself");
        return Err(Problem::new(key, what, "the MAC of a host"));
    }
    let host = fabric.hosts.iter().find(|host| host.mac == mac);
    let called = host.map_or_else(|| mac.to_string(), |host| host.name.clone());
    if let Some(ip) = host.and_then(|host| host.ip) {
        let what = format!("{called} has the fixed address {ip}");
        return Err(Problem::new(key, what, "either a fixed address or a reservation"));
    }
    if let Some(other) = fabric.dhcp.reservations.get(&mac) {
        let what = format!("{called} has a reservation already, {other}");
        return Err(Problem::new(key, what, "one reservation for a host, by its name or MAC"));
    }
    Ok(Reserved::Host(mac))
}

/// Parses a client identifier: hex pairs with colons are bytes, as in dnsmasq; other text stands
/// for its own bytes.
fn client_id(text: &str) -> Vec<u8> {
    let byte = |pair: &str| match pair.len() {
        2 => u8::from_str_radix(pair, 16).ok(),
        _ => None,
    };
    let bytes: Option<Vec<u8>> = text.split(':').map(byte).collect();
    bytes.filter(|_| text.contains(':')).unwrap_or_else(|| text.as_bytes().to_vec())
}

/// Checks the options that hosts get with their address, and finds the server that requests are
/// relayed to.
pub(crate) fn check_options(
    fabric: &mut Fabric,
    asked: &file::Dhcp,
    subnet: Ipv4Net,
) -> Result<(), Problem> {
    if let Some(router) = asked.router {
        check(subnet, "dhcp.router", router)?;
    }
    check_dns("dhcp.dns", asked.dns.len())?;
    check_domain("dhcp.domain", asked.domain.as_deref())?;
    check_mtu("dhcp.mtu", asked.mtu, (576, fabric.mtu))?;
    let Some(name) = &asked.relay else { return Ok(()) };
    let key = "dhcp.relay";
    if fabric.network != Network::Axon {
        let what = "this network relays nothing";
        return Err(Problem::new(key, what, "network axon, or no relay"));
    }
    let index = names::host(fabric, key, name, "the name of a host with a fixed address")?;
    if fabric.hosts[index].ip.is_none() {
        let what = format!("{name} has no fixed address");
        return Err(Problem::new(key, what, "a host with `ip`: a server is found by it"));
    }
    if let Some(reserved) = asked.reservations.keys().next() {
        let what = format!("{name} is the DHCP server, and an address is reserved here");
        let key = format!("dhcp.reservations.{reserved}");
        return Err(Problem::new(key, what, "reservations at the server, or no relay"));
    }
    let given = [
        ("dhcp.router", asked.router.is_some()),
        ("dhcp.dns", !asked.dns.is_empty()),
        ("dhcp.domain", asked.domain.is_some()),
        ("dhcp.mtu", asked.mtu.is_some()),
    ];
    if let Some((key, _)) = given.into_iter().find(|(_, given)| *given) {
        let what = format!("{name} is the DHCP server, and an option is set here");
        return Err(Problem::new(key, what, "options at the server, or no relay"));
    }
    fabric.dhcp.relay = Some(index);
    Ok(())
}

/// Checks the options that hosts of a VLAN get with their address.
pub(crate) fn check_vlan_options(asked: &file::Dhcp) -> Result<(), Problem> {
    let subnet = asked.subnet.as_ref().map(|subnet| subnet.0);
    if let (Some(subnet), Some(router)) = (subnet, asked.router) {
        check(subnet, "dhcp.router", router)?;
    }
    check_dns("dhcp.dns", asked.dns.len())
}

/// Refuses a reservation of a tenant's address by client identifier, since any host can send any
/// identifier. Also refuses one for a MAC in no tenant, or in another.
pub(crate) fn check_policy(
    fabric: &Fabric,
    policy: &Policy,
    asked: &file::Dhcp,
) -> Result<(), Problem> {
    for (name, &address) in &asked.reservations {
        let ip = IpAddr::V4(address);
        if !policy.addresses().any(|of_tenant| of_tenant == ip) {
            continue;
        }
        let key = format!("dhcp.reservations.{name}");
        if name.starts_with(BY_CLIENT) {
            let what = format!("{address} is an address of a tenant, and any host can send {name}");
            return Err(Problem::new(key, what, "a host of the tenant, by name or MAC"));
        }
        let of_name = fabric.hosts.iter().find(|host| host.name == *name).map(|host| host.mac);
        let Some(mac) = of_name.or_else(|| file::mac(name).ok()) else { continue };
        let host = fabric.hosts.iter().find(|host| host.mac == mac);
        let at = host.map(|host| (crate::identity::switch_id(host.switch), host.port));
        if !policy.may_own(&Identity { mac, at }, ip) {
            let what = format!("{address} is an address of a tenant that {name} is not in");
            return Err(Problem::new(key, what, "a host of the tenant, or another address"));
        }
    }
    Ok(())
}

/// Refuses too many name servers.
pub(crate) fn check_dns(key: &str, count: usize) -> Result<(), Problem> {
    match count {
        0..=DNS_MAX => Ok(()),
        _ => Err(Problem::new(key, format!("{count} name servers"), "at most 8")),
    }
}

/// Refuses an invalid domain name (RFC 1035 section 2.3.1, digits allowed as in RFC 1123).
pub(crate) fn check_domain(key: &str, domain: Option<&str>) -> Result<(), Problem> {
    let Some(domain) = domain else { return Ok(()) };
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.chars().all(plain)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if domain.len() <= 200 && domain.split('.').all(label) {
        return Ok(());
    }
    let expected = "labels of letters, digits and `-` with dots between, at most 200 characters";
    Err(Problem::new(key, format!("`{domain}` is no domain"), expected))
}

/// Refuses an MTU that hosts cannot set.
pub(crate) fn check_mtu(
    key: &str,
    mtu: Option<u16>,
    (least, most): (u16, u16),
) -> Result<(), Problem> {
    match mtu {
        Some(mtu) if !(least..=most).contains(&mtu) => {
            let expected = format!("{least} to {most}, the MTU of the fabric");
            Err(Problem::range(key, mtu, expected))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(rest: &str) -> Result<Fabric, String> {
        let text = format!(
            "name: a\ntopology:\n  listed:\n    switches: [s1]\n    hosts: {{h1: s1, h2: s1, h3: \
             {{at: s1, ip: 10.0.0.9}}}}\n{rest}"
        );
        crate::parse("a.yaml".as_ref(), &text).map_err(|error| error.to_string())
    }

    #[test]
    fn names_macs_and_client_identifiers_have_addresses() {
        let reservations = "h1: 10.0.0.7, '02:00:00:00:77:01': 10.0.0.8, 'id:printer': 10.0.0.10, \
                            'id:01:ab': 10.0.0.11";
        let fabric = parse(&format!("dhcp: {{reservations: {{{reservations}}}}}\n")).unwrap();
        let of_mac = |mac| fabric.dhcp.reservations.get(&mac).unwrap().octets()[3];
        assert_eq!(of_mac(fabric.hosts[0].mac), 7);
        assert_eq!(of_mac(MacAddr([2, 0, 0, 0, 0x77, 1])), 8);
        let of_client = |id: &[u8]| fabric.dhcp.clients.get(id).unwrap().octets()[3];
        assert_eq!((of_client(b"printer"), of_client(&[1, 0xab])), (10, 11));
    }

    #[test]
    fn what_contradicts_itself_is_refused_with_its_line_and_the_reason() {
        let mac = parse("").unwrap().hosts[0].mac;
        let cases = [
            (format!("h1: 10.0.0.7, '{mac}': 10.0.0.8"), "h1 has a reservation already"),
            ("h1: 10.0.0.7, h2: 10.0.0.7".into(), "10.0.0.7 is in use already"),
            ("h1: 10.0.0.9".into(), "10.0.0.9 is in use already"),
            ("h3: 10.0.0.7".into(), "h3 has the fixed address 10.0.0.9"),
            ("h7: 10.0.0.7".into(), "there is no host `h7`"),
            ("'id:': 10.0.0.7".into(), "an identifier of 0 bytes"),
            ("'id:61:62': 10.0.0.7, 'id:ab': 10.0.0.8".into(), "written in another way"),
            (format!("'{SERVER_MAC}': 10.0.0.7"), "of the fabric itself"),
        ];
        for (reservations, reason) in cases {
            let error = parse(&format!("dhcp:\n  reservations: {{{reservations}}}\n")).unwrap_err();
            assert!(error.contains(reason), "{error}");
            assert!(error.starts_with("a.yaml:7:"), "{error}");
        }
        let tenants = "isolation:\n  tenants: [{name: red, hosts: [h1], addresses: [10.0.0.7]}]\n";
        for (whom, reason) in [("'id:x'", "any host can send"), ("h2", "h2 is not in")] {
            let text = format!("dhcp:\n  reservations: {{{whom}: 10.0.0.7}}\n{tenants}");
            let error = parse(&text).unwrap_err();
            assert!(error.contains(reason) && error.starts_with("a.yaml:7:"), "{error}");
        }
        assert!(parse(&format!("dhcp:\n  reservations: {{h1: 10.0.0.7}}\n{tenants}")).is_ok());
    }

    #[test]
    fn a_relay_has_a_server_with_an_address_and_nothing_of_its_own() {
        let fabric = parse("dhcp: {relay: h3}\n").unwrap();
        assert_eq!(fabric.dhcp.relay, Some(2));
        let config = crate::assemble::controller_config(&fabric, 1, 1).control.dhcp.relay.unwrap();
        assert_eq!((config.mac, config.ip.octets()), (fabric.hosts[2].mac, [10, 0, 0, 9]));
        for (dhcp, reason) in [
            ("{relay: h1}", "h1 has no fixed address"),
            ("{relay: h8}", "there is no host `h8`"),
            ("{relay: h3, reservations: {h1: 10.0.0.7}}", "h3 is the DHCP server"),
            ("{relay: h3, mtu: 1400}", "h3 is the DHCP server"),
            ("{router: 192.168.0.1}", "192.168.0.1 is not in the subnet"),
            ("{domain: 'a..b'}", "`a..b` is no domain"),
            ("{mtu: 1501}", "1501 is out of range; expected 576 to 1500"),
        ] {
            let error = parse(&format!("dhcp: {dhcp}\n")).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }
}
