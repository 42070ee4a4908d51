//! Reachability between hosts: VLANs, tenants, uplinks, and address families.

use crate::host::HostVlan;
use crate::link::links::WireEnd;
use crate::world::World;
use axon_controller::policy::Identity;
use axon_fabric::assemble::switch_id;
use axon_fabric::model::End;
use axon_wire::PortNo;
use axon_wire::vlan::VlanId;

impl World {
    /// Returns the VLAN of a host: its untagged VLAN, or else the lowest of its tagged ones.
    pub(super) fn host_vlan(&self, index: usize) -> HostVlan {
        let host = &self.fabric.hosts[index];
        let at = End { switch: host.switch, port: host.port };
        let Some(vlans) = axon_fabric::vlans::of_port(&self.fabric, at) else {
            return HostVlan::default();
        };
        let tagged = vlans.tagged.first().copied().filter(|_| vlans.untagged.is_none());
        HostVlan { tag: tagged.unwrap_or_default(), remembers: true }
    }

    /// Returns the VLAN of a host, if it is in one.
    pub(super) fn vlan_of(&self, index: usize) -> VlanId {
        let access = axon_fabric::vlans::of_host(&self.fabric, &self.fabric.hosts[index])
            .map(|vlan| vlan.id);
        access.unwrap_or(self.host_vlan(index).tag)
    }

    /// Returns whether there are neither VLANs nor tenants.
    pub(super) fn everyone_may_reach_everyone(&self) -> bool {
        self.fabric.vlans.is_empty() && self.fabric.policy.is_open()
    }

    /// Returns whether two hosts may reach each other: they are in one VLAN, and `isolation`
    /// permits it.
    pub fn may_reach(&self, one: usize, other: usize) -> bool {
        let identity = |host: usize| {
            let far = self.far_end(WireEnd { station: self.host_station(host), port: PortNo(0) });
            let at = far.map(|end| (switch_id(end.station), end.port));
            Identity { mac: self.fabric.hosts[host].mac, at }
        };
        self.vlan_of(one) == self.vlan_of(other)
            && self.fabric.policy.allows(&identity(one), &identity(other))
    }

    /// Returns whether a host represents the network behind an uplink.
    pub(super) fn is_gateway(&self, index: usize) -> bool {
        self.fabric.uplinks.iter().any(|uplink| uplink.host == index)
    }

    /// Returns whether a host is to have an IPv6 address of global scope. A host behind an uplink
    /// is not, as it receives no router advertisements.
    pub fn wants_v6(&self, host: usize) -> bool {
        if self.is_gateway(host) {
            return false;
        }
        let tag = self.host_vlan(host).tag;
        let named = &self.fabric.hosts[host];
        match tag.is_none() {
            true => axon_fabric::ipv6::address(&self.fabric, named).is_some(),
            false => axon_fabric::ipv6::address_in(&self.fabric, named, tag).is_some(),
        }
    }
}
