//! VLANs of ports and of hosts.

use crate::model::{Dhcp, End, Fabric, Host, Vlan};
use axon_node::PortVlans;
use axon_wire::vlan::VlanId;

/// Returns the VLANs of a host port; `None` in a fabric without VLANs.
pub fn of_port(fabric: &Fabric, at: End) -> Option<PortVlans> {
    if fabric.vlans.is_empty() {
        return None;
    }
    let access = fabric.vlans.iter().find(|vlan| vlan.access.contains(&at));
    let tagged = fabric.vlans.iter().filter(|vlan| vlan.trunk.contains(&at));
    let mut tagged: Vec<VlanId> = tagged.map(|vlan| vlan.id).collect();
    tagged.sort_unstable();
    Some(PortVlans { untagged: access.map(|vlan| vlan.id).unwrap_or_default(), tagged })
}

/// Returns the VLAN of a host's untagged frames, if any.
pub fn of_host<'a>(fabric: &'a Fabric, host: &Host) -> Option<&'a Vlan> {
    let at = End { switch: host.switch, port: host.port };
    fabric.vlans.iter().find(|vlan| vlan.access.contains(&at))
}

/// Returns the DHCP service of a host; `None` in a VLAN without one.
pub fn dhcp_of<'a>(fabric: &'a Fabric, host: &Host) -> Option<&'a Dhcp> {
    of_host(fabric, host).map_or(Some(&fabric.dhcp), |vlan| vlan.dhcp.as_ref())
}

/// Returns the prefix length of the subnet of a host.
pub fn prefix_len_of(fabric: &Fabric, host: &Host) -> u8 {
    dhcp_of(fabric, host).unwrap_or(&fabric.dhcp).prefix_len
}

/// Returns whether ports of a switch have tagged frames, so that several VLANs share a table.
pub(crate) fn has_trunks(fabric: &Fabric, switch: usize) -> bool {
    fabric.vlans.iter().any(|vlan| vlan.trunk.iter().any(|at| at.switch == switch))
}
