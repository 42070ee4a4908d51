//! The subnet, the pool, and whether every host finds an address in them.

use crate::error::Problem;
use crate::file::{self, SubnetText};
use crate::model::{Dhcp, Fabric, Host};
use crate::topology::Plan;
use crate::units::span_text;
use ipnet::{IpAdd, IpSub, Ipv4Net};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// First and last address that hosts of the subnet can have: all but the network's own and the
/// broadcast address (RFC 1122 section 3.2.1.3).
fn host_range(subnet: Ipv4Net) -> (Ipv4Addr, Ipv4Addr) {
    (subnet.network().saturating_add(1), subnet.broadcast().saturating_sub(1))
}

/// Refuses an address that no host of the subnet can have.
fn check(subnet: Ipv4Net, key: &str, address: Ipv4Addr) -> Result<(), Problem> {
    let (first, last) = host_range(subnet);
    if (first..=last).contains(&address) {
        return Ok(());
    }
    let what = format!("{address} is not in the subnet");
    Err(Problem::new(key, what, format!("{first} to {last}")))
}

/// Hosts that fit into the small one of the two subnets that are taken if none is asked for;
/// some room is left for hosts that come later.
const SMALL_HOSTS_MAX: usize = 60_000;

/// Addresses that hosts behind one port may hold at most: 64 hosts with eight addresses each, as
/// many as switches and controllers keep.
const LEASES_PER_PORT_MAX: u32 = 512;

/// The subnet asked for, or one in which that many hosts have room.
fn subnet(asked: &file::Dhcp, hosts: usize) -> Ipv4Net {
    let prefix_len = if hosts <= SMALL_HOSTS_MAX { 16 } else { 8 };
    let ours = Ipv4Net::new_assert(Ipv4Addr::new(10, 0, 0, 0), prefix_len);
    asked.subnet.map_or(ours, |SubnetText(subnet)| subnet)
}

/// The address service, its reservations still empty.
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
        let what = format!("{} is out of range", span_text(lease));
        return Err(Problem::new("dhcp.lease", what, "10s to 1000000s"));
    }
    let pool_size = u64::from(pool_last.to_bits() - pool_first.to_bits()) + 1;
    let per_port = asked.leases_per_port.unwrap_or((pool_size / 4).clamp(1, 64) as u32);
    if !(1..=LEASES_PER_PORT_MAX).contains(&per_port) {
        let what = format!("{per_port} is out of range");
        return Err(Problem::new("dhcp.leases_per_port", what, "1 to 512"));
    }
    Ok(Dhcp {
        server,
        prefix_len: subnet.prefix_len(),
        pool_first,
        pool_last,
        lease,
        leases_per_port: per_port,
        reservations: BTreeMap::new(),
    })
}

/// Reserves addresses for hosts by name, and for hosts with fixed addresses so that nobody
/// else is given them; then counts whether the pool is enough for the others.
pub(crate) fn finish(fabric: &mut Fabric, asked: &file::Dhcp, plan: &Plan) -> Result<(), Problem> {
    let subnet = subnet(asked, fabric.hosts.len());
    let mut used = BTreeSet::from([fabric.dhcp.server]);
    let mut take = |key: &str, address: Ipv4Addr| -> Result<(), Problem> {
        check(subnet, key, address)?;
        if used.insert(address) {
            return Ok(());
        }
        Err(Problem::new(key, format!("{address} is in use already"), "another address"))
    };
    for (host, planned) in fabric.hosts.iter().zip(&plan.hosts) {
        if let Some(ip) = host.ip {
            take(&format!("{}.ip", planned.key), ip)?;
            fabric.dhcp.reservations.insert(host.mac, ip);
        }
    }
    let hosts: BTreeMap<&str, &Host> =
        fabric.hosts.iter().map(|host| (host.name.as_str(), host)).collect();
    for (name, &address) in &asked.reservations {
        let key = format!("dhcp.reservations.{name}");
        let Some(host) = hosts.get(name.as_str()) else {
            let what = format!("there is no host `{name}`");
            return Err(Problem::new(key, what, "the name of a host"));
        };
        if let Some(ip) = host.ip {
            let what = format!("{name} has the fixed address {ip}");
            return Err(Problem::new(key, what, "either a fixed address or a reservation"));
        }
        take(&key, address)?;
        fabric.dhcp.reservations.insert(host.mac, address);
    }
    let pool = fabric.dhcp.pool_first..=fabric.dhcp.pool_last;
    let size = u64::from(pool.end().to_bits() - pool.start().to_bits()) + 1;
    let free = size - used.range(pool.clone()).count() as u64;
    let wanted = (fabric.hosts.len() - fabric.dhcp.reservations.len()) as u64;
    if wanted > free {
        let what = format!("{wanted} hosts need an address and the pool has {free}");
        let key = if asked.pool.is_some() { "dhcp.pool" } else { "dhcp.subnet" };
        return Err(Problem::new(key, what, "an address for every host"));
    }
    Ok(())
}
