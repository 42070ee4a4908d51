//! Memory that a run needs before traffic begins.

use super::show::size;
use anyhow::{Result, ensure};
use axon_fabric::model::{Fabric, Host, Network};
use axon_wire::Bytes;

/// Minimum bytes that a simulation uses for each host, link between switches and Axon before the
/// first event, as measured on rings, tori of 2,000 and 4,000 switches and a fat tree with 3,456
/// hosts, and rounded down: they use more later. The value of a host is calculated: 19,000 when
/// each had an IP stack, of which 10,544 are that.
const HOST_BYTES: u64 = 7_000;
/// Additional bytes of a host that requests its address, since it then has an IP stack.
const DHCP_BYTES: u64 = 10_500;
const LINK_BYTES: u64 = 3_000;
const SWITCH_BYTES: u64 = 3_500;

/// Refuses a run whose nodes and links alone need more than `most`.
pub(crate) fn check(fabric: &Fabric, most: Bytes) -> Result<()> {
    let (hosts, links) = (fabric.hosts.len(), fabric.links.len());
    let switches = fabric.switches.len();
    let least = least(fabric);
    ensure!(
        least <= most.0,
        "{}: {hosts} hosts, {switches} switches and {links} links need at least {} before \
         anything is sent; --memory-max is {}",
        fabric.name,
        size(least),
        size(most.0)
    );
    Ok(())
}

/// Returns the minimum bytes that a run needs before traffic begins.
pub fn least(fabric: &Fabric) -> u64 {
    let asks =
        |host: &&Host| host.ip.is_none() && axon_fabric::vlans::dhcp_of(fabric, host).is_some();
    // A VLAN may lease no addresses.
    let asking = if fabric.vlans.is_empty() { fabric.hosts.iter().filter(asks).count() } else { 0 };
    let hosts = fabric.hosts.len() as u64 * HOST_BYTES + asking as u64 * DHCP_BYTES;
    if fabric.network != Network::Axon {
        return hosts;
    }
    hosts + fabric.links.len() as u64 * LINK_BYTES + fabric.switches.len() as u64 * SWITCH_BYTES
}
