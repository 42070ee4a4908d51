//! The subnet, the pool, and the check that every host gets an address.

use crate::error::Problem;
use crate::file::{self, SubnetText};
use crate::model::{Dhcp, Fabric, Host};
use crate::names::number;
use crate::reservation::{Reserved, check, host_range};
use crate::topology::Plan;
use crate::units::span_text;
use ipnet::{IpAdd, Ipv4Net};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// Maximum number of hosts for the smaller default subnet, with room for hosts that are added
/// later.
const SMALL_HOSTS_MAX: usize = 60_000;

/// Maximum number of addresses that hosts behind one port may hold: 64 hosts with eight addresses
/// each, the limit of switches and controllers.
const LEASES_PER_PORT_MAX: u32 = 512;

/// Returns the configured subnet, or a default one that is large enough for `hosts` hosts.
fn subnet(asked: &file::Dhcp, hosts: usize) -> Ipv4Net {
    let prefix_len = if hosts <= SMALL_HOSTS_MAX { 16 } else { 8 };
    let ours = Ipv4Net::new_assert(Ipv4Addr::new(10, 0, 0, 0), prefix_len);
    asked.subnet.map_or(ours, |SubnetText(subnet)| subnet)
}

/// Returns the DHCP service without reservations.
pub(crate) fn without_hosts(asked: &file::Dhcp, hosts: usize) -> Result<Dhcp, Problem> {
    let subnet = subnet(asked, hosts);
    let (first, last) = host_range(subnet);
    let server = asked.server.unwrap_or(first);
    check(subnet, "dhcp.server", server)?;
    let [pool_first, pool_last] = asked.pool.unwrap_or([first.saturating_add(1), last]);
    check(subnet, "dhcp.pool[0]", pool_first)?;
    check(subnet, "dhcp.pool[1]", pool_last)?;
    if pool_first > pool_last {
        let what = format!("{pool_last} comes before {pool_first}");
        return Err(Problem::new("dhcp.pool[1]", what, "the last address of the pool"));
    }
    let lease = asked.lease.0;
    if !(10_000..=1_000_000_000).contains(&lease.as_millis()) {
        return Err(Problem::range("dhcp.lease", span_text(lease), "10s to 1000000s"));
    }
    let pool_size = u64::from(pool_last.to_bits() - pool_first.to_bits()) + 1;
    let per_port = asked.leases_per_port.unwrap_or((pool_size / 4).clamp(1, 64) as u32);
    if !(1..=LEASES_PER_PORT_MAX).contains(&per_port) {
        return Err(Problem::range("dhcp.leases_per_port", per_port, "1 to 512"));
    }
    Ok(Dhcp {
        server,
        prefix_len: subnet.prefix_len(),
        pool_first,
        pool_last,
        lease,
        leases_per_port: per_port,
        reservations: BTreeMap::new(),
        clients: BTreeMap::new(),
        router: asked.router,
        dns: asked.dns.clone(),
        domain: asked.domain.clone(),
        mtu: asked.mtu,
        relay: None,
    })
}

/// Reserves addresses for hosts by name, and for hosts with fixed addresses so that no other host
/// gets them; then checks that the pool is large enough for the others. Also reads the router
/// advertisements from `ipv6`.
pub(crate) fn finish(fabric: &mut Fabric, file: &file::File, plan: &Plan) -> Result<(), Problem> {
    let asked = &file.dhcp;
    fabric.ipv6 = crate::ipv6::resolve(fabric, file.ipv6.as_ref())?;
    crate::ipv6::check_hosts(fabric, plan)?;
    let subnet = subnet(asked, fabric.hosts.len());
    let mut used = BTreeSet::from([fabric.dhcp.server]);
    let mut take = |key: &str, address: Ipv4Addr| -> Result<(), Problem> {
        check(subnet, key, address)?;
        if used.insert(address) {
            return Ok(());
        }
        Err(Problem::new(key, format!("{address} is in use already"), "another address"))
    };
    let first_uplink = fabric.hosts.len() - fabric.uplinks.len();
    for (index, (host, planned)) in fabric.hosts.iter().zip(&plan.hosts).enumerate() {
        let Some(ip) = host.ip.filter(|_| crate::vlan_ports::of_host(fabric, host).is_none())
        else {
            continue;
        };
        if index < first_uplink {
            take(&format!("{}.ip", planned.key), ip)?;
            fabric.dhcp.reservations.insert(host.mac, ip);
        } else {
            // A gateway has a MAC of its own, and its port is marked as the gateway's.
            take(&format!("{}.gateway", planned.key), ip)?;
        }
    }
    finish_vlans(fabric, plan)?;
    for (name, &address) in &asked.reservations {
        let key = format!("dhcp.reservations.{name}");
        let whom = crate::reservation::whom(fabric, &key, name)?;
        take(&key, address)?;
        match whom {
            Reserved::Host(mac) => drop(fabric.dhcp.reservations.insert(mac, address)),
            Reserved::Client(id) => drop(fabric.dhcp.clients.insert(id, address)),
        }
    }
    crate::reservation::check_options(fabric, asked, subnet)?;
    crate::uplinks::finish(fabric, file, subnet)?;
    let pool = fabric.dhcp.pool_first..=fabric.dhcp.pool_last;
    let size = u64::from(pool.end().to_bits() - pool.start().to_bits()) + 1;
    let free = size - used.range(pool.clone()).count() as u64;
    let needs = |host: &&Host| {
        host.ip.is_none()
            && crate::vlan_ports::of_host(fabric, host).is_none()
            && !fabric.dhcp.reservations.contains_key(&host.mac)
    };
    let wanted = fabric.hosts.iter().filter(needs).count() as u64;
    if wanted > free {
        let what = format!("{wanted} hosts need an address and the pool has {free}");
        let key = if asked.pool.is_some() { "dhcp.pool" } else { "dhcp.subnet" };
        return Err(Problem::new(key, what, "an address for every host"));
    }
    Ok(())
}

/// Reserves the addresses of hosts in VLANs: an address belongs to one host in each VLAN, and is
/// reserved for it where the VLAN leases any.
fn finish_vlans(fabric: &mut Fabric, plan: &Plan) -> Result<(), Problem> {
    for number in 0..fabric.vlans.len() {
        let vlan = &fabric.vlans[number];
        let mut used: BTreeSet<Ipv4Addr> = vlan.dhcp.iter().map(|dhcp| dhcp.server).collect();
        let mut reserved = BTreeMap::new();
        let mut wanted = 0;
        for (host, planned) in fabric.hosts.iter().zip(&plan.hosts) {
            if crate::vlan_ports::of_host(fabric, host).is_none_or(|own| own.id != vlan.id) {
                continue;
            }
            let Some(ip) = host.ip else {
                wanted += 1;
                continue;
            };
            let key = format!("{}.ip", planned.key);
            if let Some(dhcp) = &vlan.dhcp {
                check(Ipv4Net::new(dhcp.server, dhcp.prefix_len).unwrap_or_default(), &key, ip)?;
            }
            if !used.insert(ip) {
                return Err(Problem::new(
                    key,
                    format!("{ip} is in use already"),
                    "another address",
                ));
            }
            reserved.insert(host.mac, ip);
        }
        let Some(dhcp) = &mut fabric.vlans[number].dhcp else { continue };
        dhcp.reservations = reserved;
        let pool = dhcp.pool_first..=dhcp.pool_last;
        let size = u64::from(pool.end().to_bits() - pool.start().to_bits()) + 1;
        let free = size - used.range(pool).count() as u64;
        if wanted > free {
            let what = format!("{wanted} hosts need an address and the pool has {free}");
            let key = format!("vlans[{number}].dhcp.subnet");
            return Err(Problem::new(key, what, "an address for every host"));
        }
    }
    Ok(())
}

/// Returns an address for each host, in the order of [`Fabric::hosts`], for hosts without a
/// DHCP client.
///
/// A fixed or reserved address comes first. Then a host whose name ends in a number N gets host
/// number N of the subnet, so h3 is 10.0.0.3, unless that is the server's or taken. Each of the
/// others gets the first free address of the pool; none if the pool is used up, which a fabric
/// that was loaded from a file rules out. Each VLAN has addresses of its own, and by default
/// those of the fabric.
pub fn of_hosts(fabric: &Fabric) -> Vec<Option<Ipv4Addr>> {
    let of = |host: &Host| crate::vlan_ports::of_host(fabric, host).map(|vlan| vlan.id);
    let mut addresses = vec![None; fabric.hosts.len()];
    let vlans: BTreeSet<_> = fabric.hosts.iter().map(of).collect();
    for vlan in vlans {
        let own: Vec<usize> =
            (0..fabric.hosts.len()).filter(|&host| of(&fabric.hosts[host]) == vlan).collect();
        let hosts: Vec<&Host> = own.iter().map(|&host| &fabric.hosts[host]).collect();
        let dhcp = fabric.vlans.iter().find(|one| Some(one.id) == vlan);
        let dhcp = dhcp.and_then(|vlan| vlan.dhcp.as_ref()).unwrap_or(&fabric.dhcp);
        let theirs = addresses_in(dhcp, &hosts);
        own.into_iter().zip(theirs).for_each(|(host, ip)| addresses[host] = ip);
    }
    addresses
}

/// Returns an address of one DHCP service for each of these hosts.
fn addresses_in(dhcp: &Dhcp, hosts: &[&Host]) -> Vec<Option<Ipv4Addr>> {
    let Dhcp { server, prefix_len, pool_first, pool_last, ref reservations, .. } = *dhcp;
    // Prefix lengths over 32 count as 32.
    let subnet = Ipv4Net::new(server, prefix_len).unwrap_or(server.into());
    let (first, last) = host_range(subnet);
    let mut used: BTreeSet<Ipv4Addr> =
        reservations.values().chain(dhcp.clients.values()).copied().collect();
    used.extend(hosts.iter().filter_map(|host| host.ip));
    used.insert(server);
    let given = |host: &&Host| host.ip.or_else(|| reservations.get(&host.mac).copied());
    let mut addresses: Vec<Option<Ipv4Addr>> = hosts.iter().map(given).collect();
    for (host, address) in hosts.iter().zip(&mut addresses) {
        let numbered = || subnet.network().to_bits().checked_add(number(&host.name)?);
        if address.is_none()
            && let Some(ip) = numbered().map(Ipv4Addr::from_bits)
            && (first..=last).contains(&ip)
            && used.insert(ip)
        {
            *address = Some(ip);
        }
    }
    let pool = (pool_first.to_bits()..=pool_last.to_bits()).map(Ipv4Addr::from_bits);
    let mut free = pool.filter(|ip| !used.contains(ip));
    for address in addresses.iter_mut().filter(|address| address.is_none()) {
        *address = free.next();
    }
    addresses
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(dhcp: &str, hosts: &str) -> String {
        let text = format!(
            "name: a\ndhcp: {dhcp}\ntopology:\n  listed:\n    switches: [s1]\n    hosts: {hosts}\n"
        );
        let fabric = crate::parse("a.yaml".as_ref(), &text).unwrap();
        let mut addresses: Vec<(&str, Option<Ipv4Addr>)> =
            fabric.hosts.iter().map(|host| host.name.as_str()).zip(of_hosts(&fabric)).collect();
        addresses.sort();
        let text = |(name, ip): &(&str, Option<Ipv4Addr>)| format!("{name} {}", ip.unwrap());
        addresses.iter().map(text).collect::<Vec<String>>().join(", ")
    }

    #[test]
    fn a_host_has_the_address_that_its_name_ends_in_if_that_is_free() {
        let hosts = "{ h1: s1, h2: s1, h3: s1, db: s1, web3: s1, h300: s1 }";
        let expected = "db 10.0.0.5, h1 10.0.0.4, h2 10.0.0.2, h3 10.0.0.3, h300 10.0.1.44, \
                        web3 10.0.0.6";
        assert_eq!(addresses("{}", hosts), expected, "10.0.0.1 is the server's");
        let server = "{ server: 10.0.0.9, pool: [10.0.0.100, 10.0.0.110] }";
        let hosts = "{ h0: s1, h1: s1, h9: s1, h99999999999: s1 }";
        let expected = "h0 10.0.0.100, h1 10.0.0.1, h9 10.0.0.101, h99999999999 10.0.0.102";
        assert_eq!(addresses(server, hosts), expected);
    }

    #[test]
    fn fixed_and_reserved_addresses_come_before_numbers() {
        let hosts = "{ h2: { at: s1, ip: 10.0.0.3 }, h3: s1, h4: s1, h5: s1 }";
        let dhcp = "{ reservations: { h4: 10.0.0.5 } }";
        let expected = "h2 10.0.0.3, h3 10.0.0.2, h4 10.0.0.5, h5 10.0.0.4";
        assert_eq!(addresses(dhcp, hosts), expected);
    }
}
