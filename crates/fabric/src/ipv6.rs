//! The `ipv6` section: router advertisements to hosts.

use crate::error::Problem;
use crate::file;
use crate::identity::{SERVER_MAC, switch_id};
use crate::model::{Fabric, Host, Network};
use crate::names;
use crate::reservation::{check_dns, check_domain, check_mtu};
use crate::topology::Plan;
use crate::units::span_text;
use axon_controller::config::Dhcpv6Relay;
use axon_edge::config::{Dhcpv6Config, Ipv6Config};
use axon_wire::router::Advertisement;
use axon_wire::vlan::VlanId;
use axon_wire::{Span, nd};
use ipnet::Ipv6Net;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

/// Default interval of advertisements (RFC 4861 section 6.2.1 allows 4 s to 1800 s).
const INTERVAL: Span = Span::from_secs(200);
/// Valid and preferred lifetime of the prefix, in seconds: hosts keep their addresses through an
/// outage of a night.
const VALID_SECONDS: u32 = 86_400;
const PREFERRED_SECONDS: u32 = 14_400;
/// Bits of an address that form the prefix of its link.
pub(crate) const LINK_BITS: u8 = 64;
const PREFIX: &str = "a prefix of 64 bits such as 2001:db8:0:1::/64";
const ROUTER: &str = "a host by name, or a link-local address such as fe80::1";

/// Returns the configured router advertisements; `None` if the file has none.
pub(crate) fn resolve(
    fabric: &Fabric,
    asked: Option<&file::Ipv6>,
) -> Result<Option<Ipv6Config>, Problem> {
    let Some(asked) = asked else { return Ok(None) };
    if fabric.network != Network::Axon {
        let what = "the edges of this network advertise nothing";
        return Err(Problem::new("ipv6", what, "network axon, or no ipv6"));
    }
    let prefix = prefix(&asked.prefix)?;
    check_dns("ipv6.dns", asked.dns.len())?;
    check_domain("ipv6.domain", asked.domain.as_deref())?;
    check_mtu("ipv6.mtu", asked.mtu, (1280, fabric.mtu))?;
    let interval = asked.interval.as_ref().map_or(INTERVAL, |interval| interval.0);
    if !(4_000..=1_800_000).contains(&interval.as_millis()) {
        return Err(Problem::range("ipv6.interval", span_text(interval), "4s to 1800s"));
    }
    let router = asked.router.as_deref().map(|name| router(fabric, name)).transpose()?;
    let dhcp = asked.dhcp.as_ref();
    let relay = dhcp.map(|dhcp| relay(fabric, (dhcp, prefix))).transpose()?.flatten();
    let managed = dhcp.and_then(|dhcp| dhcp.managed).unwrap_or(relay.is_some());
    let autonomous = dhcp.and_then(|dhcp| dhcp.slaac).unwrap_or(true);
    // Three intervals, so that one may be lost (RFC 4861 section 6.2.1, RFC 8106).
    let seconds = 3 * (interval.as_millis() / 1_000);
    Ok(Some(Ipv6Config {
        advertisement: Advertisement {
            router_seconds: match router {
                Some(_) => u16::try_from(seconds).unwrap_or(u16::MAX),
                None => 0,
            },
            prefix: prefix.addr(),
            prefix_len: prefix.prefix_len(),
            autonomous,
            managed,
            other: dhcp.is_some(),
            valid_seconds: VALID_SECONDS,
            preferred_seconds: PREFERRED_SECONDS,
            mtu: asked.mtu.map(u32::from),
            dns: asked.dns.clone(),
            domain: asked.domain.clone(),
            dns_seconds: u32::try_from(seconds).unwrap_or(u32::MAX),
        },
        router,
        router_host: router.and_then(|router| {
            fabric.hosts.iter().find(|host| nd::link_local(host.mac) == router).map(|h| h.mac)
        }),
        dhcp: dhcp.map(|_| Dhcpv6Config {
            server: relay.map(|host| fabric.hosts[host].mac),
            address: dhcp.and_then(|dhcp| dhcp.server),
        }),
        interval,
    }))
}

/// Returns the router advertisements for the hosts of a VLAN, at `key`. Its edges serve DHCPv6 and
/// do not relay it.
pub(crate) fn resolve_in_vlan(
    fabric: &Fabric,
    (key, asked): (&str, Option<&file::Ipv6>),
) -> Result<Option<Ipv6Config>, Problem> {
    let relay = asked.and_then(|asked| asked.dhcp.as_ref()?.relay.as_ref());
    let resolved = match relay {
        Some(name) => {
            let what = format!("{name} would be sent the requests of a VLAN");
            Err(Problem::new("ipv6.dhcp.relay", what, "no relay in a VLAN"))
        }
        None => resolve(fabric, asked),
    };
    resolved.map_err(|problem| Problem { key: format!("{key}.{}", problem.key), ..problem })
}

/// Returns the host that is the DHCPv6 server; `None` if none is named.
fn relay(
    fabric: &Fabric,
    (asked, prefix): (&file::Dhcpv6, Ipv6Net),
) -> Result<Option<usize>, Problem> {
    let Some(name) = &asked.relay else {
        let given = [
            ("ipv6.dhcp.server", asked.server.is_some()),
            ("ipv6.dhcp.managed", asked.managed == Some(true)),
            ("ipv6.dhcp.slaac", asked.slaac == Some(false)),
        ];
        let Some((key, _)) = given.into_iter().find(|(_, given)| *given) else { return Ok(None) };
        let what = "no host is the server, and edges give no addresses";
        return Err(Problem::new(key, what, "ipv6.dhcp.relay beside it, or nothing here"));
    };
    let host = names::host(fabric, "ipv6.dhcp.relay", name, "the name of a host")?;
    if fabric.uplinks.iter().any(|uplink| uplink.host == host) {
        let what = format!("{name} is an uplink");
        return Err(Problem::new("ipv6.dhcp.relay", what, "a host: no DHCP passes an uplink"));
    }
    let link_local = |ip: Ipv6Addr| ip.is_unicast_link_local();
    if let Some(ip) = asked.server.filter(|ip| !link_local(*ip) && !prefix.contains(ip)) {
        let what = format!("{ip} is not in {prefix}");
        return Err(Problem::new("ipv6.dhcp.server", what, "an address of the prefix"));
    }
    if asked.managed == Some(false) && asked.slaac == Some(false) {
        let what = "hosts are to get addresses neither by DHCPv6 nor by themselves";
        return Err(Problem::new("ipv6.dhcp.slaac", what, "true, or managed: true"));
    }
    Ok(Some(host))
}

/// Returns the DHCPv6 server as the controller's relay agent has it, if there is one.
pub(crate) fn dhcpv6(fabric: &Fabric) -> Option<Dhcpv6Relay> {
    let ipv6 = fabric.ipv6.as_ref()?;
    let dhcp = ipv6.dhcp.as_ref()?;
    let mac = dhcp.server?;
    let host = fabric.hosts.iter().find(|host| host.mac == mac)?;
    let names = fabric.switches.iter().enumerate();
    let [prefix, own] = [ipv6.advertisement.prefix, nd::link_local(SERVER_MAC)];
    Some(Dhcpv6Relay {
        ip: dhcp.address.unwrap_or_else(|| nd::link_local(mac)),
        mac,
        at: (switch_id(host.switch), host.port),
        // A unique address: the fabric's own in the prefix, which has 64 bits.
        link: Ipv6Addr::from_bits(prefix.to_bits() | own.to_bits() & u128::from(u64::MAX)),
        names: names.map(|(index, switch)| (switch_id(index), switch.name.clone())).collect(),
    })
}

/// Checks the fixed addresses of hosts: in each VLAN, all are of one link and none is used twice.
///
/// # Errors
/// The first violation, by key.
pub(crate) fn check_hosts(fabric: &Fabric, plan: &Plan) -> Result<(), Problem> {
    let mut links: BTreeMap<VlanId, Ipv6Net> = BTreeMap::new();
    let mut used = BTreeSet::new();
    for (host, planned) in fabric.hosts.iter().zip(&plan.hosts) {
        let Some(ip) = host.ip6 else { continue };
        let key = format!("{}.ip6", planned.key);
        if fabric.network != Network::Axon {
            let what = "hosts of this network have IPv4 addresses alone";
            return Err(Problem::new(key, what, "network axon, or no ip6"));
        }
        if !nd::is_host_ip(ip) || ip.is_unicast_link_local() {
            let what = format!("{ip} is not an address of global scope");
            return Err(Problem::new(key, what, "an address such as 2001:db8::11"));
        }
        let vlan = crate::vlan_ports::of_host(fabric, host).map(|vlan| vlan.id).unwrap_or_default();
        let advertised = advertised_in(fabric, vlan).map(|ipv6| ipv6.advertisement.prefix);
        let expected = *links.entry(vlan).or_insert(link_of(advertised.unwrap_or(ip)));
        if link_of(ip) != expected {
            let what = format!("{ip} is not on the link of the others");
            return Err(Problem::new(key, what, format!("an address in {expected}")));
        }
        if ip == expected.addr() || !used.insert((vlan, ip)) {
            let what = format!("{ip} is in use already");
            return Err(Problem::new(key, what, "another address"));
        }
    }
    Ok(())
}

/// Returns the prefix of the link that an address is on.
fn link_of(ip: Ipv6Addr) -> Ipv6Net {
    Ipv6Net::new_assert(ip, LINK_BITS).trunc()
}

fn prefix(text: &str) -> Result<Ipv6Net, Problem> {
    let refused = |what: String| Problem::new("ipv6.prefix", what, PREFIX);
    let net: Ipv6Net = text.parse().map_err(|_| refused(format!("`{text}` is no prefix")))?;
    let first = net.addr();
    if net.prefix_len() != 64 {
        return Err(refused(format!("{text} has {} bits", net.prefix_len())));
    }
    if net.network() != first {
        return Err(refused(format!("{text} has bits behind the prefix")));
    }
    if first.is_multicast() || first.is_unicast_link_local() || first.is_unspecified() {
        return Err(refused(format!("hosts cannot have addresses of {text}")));
    }
    Ok(net)
}

fn router(fabric: &Fabric, name: &str) -> Result<Ipv6Addr, Problem> {
    if let Some(host) = fabric.hosts.iter().find(|host| host.name == name) {
        return Ok(nd::link_local(host.mac));
    }
    let refused = |what: String| Problem::new("ipv6.router", what, ROUTER);
    let ip: Ipv6Addr =
        name.parse().map_err(|_| refused(format!("`{name}` is neither host nor address")))?;
    match ip.is_unicast_link_local() {
        true => Ok(ip),
        false => Err(refused(format!("{ip} is not link-local"))),
    }
}

/// Returns whether hosts have IPv6 addresses beside the link-local ones: edges advertise a
/// prefix, or a host has a fixed one.
pub fn is_dual_stack(fabric: &Fabric) -> bool {
    let is_advertised =
        fabric.ipv6.is_some() || fabric.vlans.iter().any(|vlan| vlan.ipv6.is_some());
    is_advertised || fabric.hosts.iter().any(|host| host.ip6.is_some())
}

/// Returns the router advertisements for the hosts of a VLAN, or of none.
fn advertised_in(fabric: &Fabric, vlan: VlanId) -> Option<&Ipv6Config> {
    match fabric.vlans.iter().find(|one| one.id == vlan) {
        Some(vlan) => vlan.ipv6.as_ref(),
        None => fabric.ipv6.as_ref(),
    }
}

/// Returns a host's address of global scope: its fixed one, or the one that it forms from the
/// advertised prefix and its MAC (EUI-64, RFC 4291 appendix A). The router in the file receives
/// no advertisements.
pub fn address(fabric: &Fabric, host: &Host) -> Option<Ipv6Addr> {
    address_in(
        fabric,
        host,
        crate::vlan_ports::of_host(fabric, host).map(|vlan| vlan.id).unwrap_or_default(),
    )
}

/// Returns a host's address of global scope, if its frames are in that VLAN.
pub fn address_in(fabric: &Fabric, host: &Host, vlan: VlanId) -> Option<Ipv6Addr> {
    let advertised = || {
        let ipv6 = advertised_in(fabric, vlan).filter(|ipv6| ipv6.router_host != Some(host.mac))?;
        let prefix = ipv6.advertisement.prefix.to_bits();
        let own = nd::link_local(host.mac).to_bits() & u128::from(u64::MAX);
        Some(Ipv6Addr::from_bits(prefix | own))
    };
    host.ip6.or_else(advertised)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(ipv6: &str) -> Result<Fabric, String> {
        let text = format!(
            "name: a\ntopology:\n  listed:\n    switches: [s1]\n    hosts: {{h1: s1, h2: \
             s1}}\nipv6: {ipv6}\n"
        );
        crate::parse("a.yaml".as_ref(), &text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_prefix_is_enough_and_a_router_is_a_host_or_an_address() {
        let config = |ipv6| parse(ipv6).unwrap().ipv6.unwrap();
        let least = config("{prefix: '2001:db8:0:1::/64'}");
        assert_eq!((least.router, least.advertisement.router_seconds), (None, 0));
        let mac = parse("{prefix: 'fd00::/64'}").unwrap().hosts[1].mac;
        let by_name = config("{prefix: 'fd00::/64', router: h2, interval: 10s}");
        assert_eq!((by_name.router, by_name.router_host), (Some(nd::link_local(mac)), Some(mac)));
        assert_eq!(by_name.advertisement.router_seconds, 30);
        let local = nd::link_local(mac);
        let text = format!("{{prefix: 'fd00::/64', router: '{local}'}}");
        let by_address = parse(&text).unwrap().ipv6.unwrap();
        assert_eq!(by_address.router_host, Some(mac));
        let elsewhere = config("{prefix: 'fd00::/64', router: 'fe80::1'}");
        assert_eq!((elsewhere.router_host, elsewhere.advertisement.router_seconds), (None, 600));
    }

    #[test]
    fn flags_follow_the_file_and_the_server_is_a_host() {
        let flags = |dhcp: &str| {
            let text = format!("{{prefix: 'fd00::/64'{dhcp}}}");
            let says = parse(&text).unwrap().ipv6.unwrap().advertisement;
            (says.managed, says.other, says.autonomous)
        };
        assert_eq!(flags(""), (false, false, true));
        assert_eq!(flags(", dhcp: {}"), (false, true, true));
        assert_eq!(flags(", dhcp: {relay: h1}"), (true, true, true));
        assert_eq!(flags(", dhcp: {relay: h1, slaac: false}"), (true, true, false));
        assert_eq!(flags(", dhcp: {relay: h1, managed: false}"), (false, true, true));
        let fabric = parse("{prefix: 'fd00::/64', dhcp: {relay: h2}}").unwrap();
        let server = dhcpv6(&fabric).unwrap();
        assert_eq!(server.mac, fabric.hosts[1].mac);
        assert_eq!(server.ip, nd::link_local(server.mac));
        assert!(server.link.to_string().starts_with("fd00::"), "{}", server.link);
        let named = parse("{prefix: 'fd00::/64', dhcp: {relay: h2, server: 'fd00::9'}}").unwrap();
        assert_eq!(dhcpv6(&named).unwrap().ip.to_string(), "fd00::9");
        assert_eq!(dhcpv6(&parse("{prefix: 'fd00::/64', dhcp: {}}").unwrap()), None);
    }

    #[test]
    fn what_hosts_could_not_use_is_refused() {
        for (ipv6, reason) in [
            ("{prefix: 'fd00::/48'}", "fd00::/48 has 48 bits"),
            ("{prefix: 'fd00::1/64'}", "has bits behind the prefix"),
            ("{prefix: 'fe80::/64'}", "hosts cannot have addresses of fe80::/64"),
            ("{prefix: x}", "`x` is no prefix"),
            ("{prefix: 'fd00::/64', router: h9}", "`h9` is neither host nor address"),
            ("{prefix: 'fd00::/64', router: 'fd00::1'}", "fd00::1 is not link-local"),
            ("{prefix: 'fd00::/64', mtu: 1200}", "expected 1280 to 1500"),
            ("{prefix: 'fd00::/64', interval: 1s}", "expected 4s to 1800s"),
            ("{prefix: 'fd00::/64', domain: 'a b'}", "`a b` is no domain"),
            ("{prefix: 'fd00::/64', dhcp: {relay: h9}}", "dhcp.relay: there is no host `h9`"),
            ("{prefix: 'fd00::/64', dhcp: {managed: true}}", "dhcp.managed: no host is the server"),
            ("{prefix: 'fd00::/64', dhcp: {slaac: false}}", "dhcp.slaac: no host is the server"),
            (
                "{prefix: 'fd00::/64', dhcp: {relay: h1, server: 'fd01::1'}}",
                "fd01::1 is not in fd00::/64",
            ),
            (
                "{prefix: 'fd00::/64', dhcp: {relay: h1, managed: false, slaac: false}}",
                "neither by DHCPv6 nor by themselves",
            ),
        ] {
            let error = parse(ipv6).unwrap_err();
            assert!(error.contains(reason) && error.starts_with("a.yaml:6:"), "{error}");
        }
    }

    #[test]
    fn fixed_addresses_are_of_one_link_and_of_one_host_each() {
        let parse = |hosts: &str, rest: &str| {
            let text = format!(
                "name: a\ntopology:\n  listed:\n    switches: [s1]\n    \
                 hosts: {{ {hosts} }}\n{rest}"
            );
            crate::parse("a.yaml".as_ref(), &text).map_err(|error| error.to_string())
        };
        let two =
            "h1: { at: s1, ip6: \"2001:db8::1\" }, h2: { at: s1, ip6: \"2001:db8::2\" }, h3: s1";
        let fabric = parse(two, "").unwrap();
        assert!(is_dual_stack(&fabric));
        let addresses: Vec<_> = fabric.hosts.iter().map(|host| address(&fabric, host)).collect();
        assert_eq!(
            addresses[..2],
            ["2001:db8::1", "2001:db8::2"].map(|ip| Some(ip.parse().unwrap()))
        );
        assert_eq!(addresses[2], None);
        let fabric = parse(two, "ipv6: { prefix: \"2001:db8::/64\" }\n").unwrap();
        let made = address(&fabric, &fabric.hosts[2]).unwrap().to_string();
        assert!(made.starts_with("2001:db8::") && made.contains("ff:fe"), "{made}");
        for (ip6, rest, wrong) in [
            ("fe80::1", "", "is not an address of global scope; expected an address such as"),
            ("ff02::1", "", "is not an address of global scope"),
            ("::", "", "is not an address of global scope"),
            ("2001:db8::1", "", "2001:db8::1 is in use already"),
            (
                "2001:db8:0:1::9",
                "",
                "is not on the link of the others; expected an address in 2001:db8::/64",
            ),
            ("2001:db8::9", "ipv6: { prefix: \"2001:db8:7::/64\" }\n", "in 2001:db8:7::/64"),
        ] {
            let hosts =
                format!("h1: {{ at: s1, ip6: \"2001:db8::1\" }}, h2: {{ at: s1, ip6: \"{ip6}\" }}");
            let error = parse(&hosts, rest).unwrap_err();
            assert!(error.contains(wrong) && error.contains("a.yaml:5:"), "{error}");
        }
    }
}
