//! Reachability between hosts, by the fabric file: VLANs, uplinks, and address families.

use axon_fabric::model::{End, Fabric};
use axon_simhost::HostVlan;
use axon_wire::vlan::VlanId;

/// Returns the VLAN of a host: its untagged VLAN, or else the lowest of its tagged ones.
pub(crate) fn host_vlan(fabric: &Fabric, index: usize) -> HostVlan {
    let host = &fabric.hosts[index];
    let at = End { switch: host.switch, port: host.port };
    let Some(vlans) = axon_fabric::vlans::of_port(fabric, at) else { return HostVlan::default() };
    let tagged = vlans.tagged.first().copied().filter(|_| vlans.untagged.is_none());
    HostVlan { tag: tagged.unwrap_or_default(), remembers: true }
}

/// Returns the VLAN of a host, if it is in one.
pub(crate) fn vlan_of(fabric: &Fabric, index: usize) -> VlanId {
    let access = axon_fabric::vlans::of_host(fabric, &fabric.hosts[index]).map(|vlan| vlan.id);
    access.unwrap_or(host_vlan(fabric, index).tag)
}

/// Returns whether there are neither VLANs nor tenants.
pub(crate) fn everyone_may_reach_everyone(fabric: &Fabric) -> bool {
    fabric.vlans.is_empty() && fabric.policy.is_open()
}

/// Returns whether a host represents the network behind an uplink.
pub(crate) fn is_gateway(fabric: &Fabric, index: usize) -> bool {
    fabric.uplinks.iter().any(|uplink| uplink.host == index)
}

/// Returns whether a host is to have an IPv6 address of global scope. A host behind an uplink is
/// not, as it receives no router advertisements.
pub fn wants_v6(fabric: &Fabric, host: usize) -> bool {
    if is_gateway(fabric, host) {
        return false;
    }
    let tag = host_vlan(fabric, host).tag;
    let named = &fabric.hosts[host];
    match tag.is_none() {
        true => axon_fabric::ipv6::address(fabric, named).is_some(),
        false => axon_fabric::ipv6::address_in(fabric, named, tag).is_some(),
    }
}
