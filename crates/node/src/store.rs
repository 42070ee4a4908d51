//! Store of a controller for its next incarnation.
//!
//! A node does no I/O. It reports changes ([`Action::Store`](crate::Action::Store)), its runtime
//! stores them, and gives the whole store to the next incarnation when that starts. Switches are
//! identified by [`NodeId`]: all other identifiers are assigned anew at each start.

use crate::policy::{HostPair, Subject};
use alloc::vec::Vec;
use axon_wire::vlan::VlanId;
use axon_wire::{MacAddr, NodeId, PortNo, Time};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use serde::{Deserialize, Serialize};

/// Host reported by a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredHost {
    /// MAC address of the host.
    pub mac: MacAddr,
    /// Switch of the host.
    pub switch: NodeId,
    /// Port of the host at that switch.
    pub port: PortNo,
    /// IP addresses of the host, newest last.
    pub ips: Vec<IpAddr>,
}

/// State of a stored address. An offer is not stored: it lasts for seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StoredState {
    /// The address is leased to a client.
    Bound,
    /// The address is used by a host without a lease.
    InUse,
    /// The address was declined: another host answers on it.
    Declined,
    /// The address is free; the last owner is stored.
    Free,
}

/// Address of the DHCP server, with its owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredLease {
    /// The address.
    pub ip: Ipv4Addr,
    /// The MAC address of the owner, or of the last one.
    pub mac: MacAddr,
    /// The client identifier of the owner; empty without one.
    pub client_id: Vec<u8>,
    /// The switch of the owner.
    pub switch: NodeId,
    /// The port of the owner.
    pub port: PortNo,
    /// The state of the address.
    pub state: StoredState,
    /// End of the state for [`StoredState::Bound`] and [`StoredState::Declined`], begin for
    /// [`StoredState::InUse`] and [`StoredState::Free`]. In the time of the node that writes or
    /// reads it; a runtime converts it between incarnations, to [`Time::ZERO`] if it was before the
    /// start.
    pub until: Time,
}

/// IPv6 address that a DHCPv6 server has leased to a host, through the relay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredLease6 {
    /// The address.
    pub ip: Ipv6Addr,
    /// The MAC address of the host.
    pub mac: MacAddr,
    /// The switch of the host.
    pub switch: NodeId,
    /// The port of the host.
    pub port: PortNo,
    /// End of the lease, as [`StoredLease::until`].
    pub until: Time,
}

/// Entry of one VLAN.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StoredInVlan {
    /// Entry of the host table.
    Host(StoredHost),
    /// Entry of the DHCP server.
    Lease(StoredLease),
}

/// Key of an entry of one VLAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum KeyInVlan {
    /// A host.
    Host(MacAddr),
    /// An address.
    Lease(Ipv4Addr),
}

/// Entry of the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stored {
    /// Entry of the host table.
    Host(StoredHost),
    /// Entry of the DHCP server.
    Lease(StoredLease),
    /// Policy: whether two hosts may reach each other, where it differs from the fabric file.
    Pair(HostPair, bool),
    /// Policy: whether a host or port is in quarantine, where it differs from the fabric file.
    Quarantine(Subject, bool),
    /// Entry of the DHCPv6 relay.
    Lease6(StoredLease6),
    /// Entry of a VLAN. Hosts and leases in no VLAN are separate entries.
    InVlan(VlanId, StoredInVlan),
}

/// Key of an entry: there is one entry for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum StoreKey {
    /// A host.
    Host(MacAddr),
    /// An address.
    Lease(Ipv4Addr),
    /// Pair of hosts.
    Pair(HostPair),
    /// Host or port in quarantine, or exempt from it.
    Quarantine(Subject),
    /// IPv6 address.
    Lease6(Ipv6Addr),
    /// Host or address in a VLAN.
    InVlan(VlanId, KeyInVlan),
}

impl StoreKey {
    /// Returns the key in a VLAN; `None` for keys that have no VLAN, or have one already.
    pub(crate) const fn in_vlan(self, vlan: VlanId) -> Option<StoreKey> {
        match self {
            StoreKey::Host(mac) => Some(StoreKey::InVlan(vlan, KeyInVlan::Host(mac))),
            StoreKey::Lease(ip) => Some(StoreKey::InVlan(vlan, KeyInVlan::Lease(ip))),
            StoreKey::Pair(_)
            | StoreKey::Quarantine(_)
            | StoreKey::Lease6(_)
            | StoreKey::InVlan(..) => None,
        }
    }
}

impl Stored {
    /// Returns the key of the entry.
    pub const fn key(&self) -> StoreKey {
        match self {
            Stored::Host(host) => StoreKey::Host(host.mac),
            Stored::Lease(lease) => StoreKey::Lease(lease.ip),
            Stored::Pair(pair, _) => StoreKey::Pair(*pair),
            Stored::Quarantine(subject, _) => StoreKey::Quarantine(*subject),
            Stored::Lease6(lease) => StoreKey::Lease6(lease.ip),
            Stored::InVlan(vlan, StoredInVlan::Host(host)) => {
                StoreKey::InVlan(*vlan, KeyInVlan::Host(host.mac))
            }
            Stored::InVlan(vlan, StoredInVlan::Lease(lease)) => {
                StoreKey::InVlan(*vlan, KeyInVlan::Lease(lease.ip))
            }
        }
    }

    /// Returns the entry in a VLAN; `None` for entries that have no VLAN, or have one already.
    pub fn in_vlan(self, vlan: VlanId) -> Option<Stored> {
        match self {
            Stored::Host(host) => Some(Stored::InVlan(vlan, StoredInVlan::Host(host))),
            Stored::Lease(lease) => Some(Stored::InVlan(vlan, StoredInVlan::Lease(lease))),
            Stored::Pair(..) | Stored::Quarantine(..) | Stored::Lease6(_) | Stored::InVlan(..) => {
                None
            }
        }
    }

    /// Returns the VLAN of an entry and the entry without it; `None` for entries of the policy.
    pub fn open(&self) -> Option<(VlanId, Stored)> {
        match self {
            Stored::Host(_) | Stored::Lease(_) | Stored::Lease6(_) => {
                Some((VlanId::NONE, self.clone()))
            }
            Stored::InVlan(vlan, StoredInVlan::Host(host)) => {
                Some((*vlan, Stored::Host(host.clone())))
            }
            Stored::InVlan(vlan, StoredInVlan::Lease(lease)) => {
                Some((*vlan, Stored::Lease(lease.clone())))
            }
            Stored::Pair(..) | Stored::Quarantine(..) => None,
        }
    }

    /// Returns the port of the host of an entry; `None` for one of the policy.
    pub const fn at(&self) -> Option<(NodeId, PortNo)> {
        match self {
            Stored::Host(host) | Stored::InVlan(_, StoredInVlan::Host(host)) => {
                Some((host.switch, host.port))
            }
            Stored::Lease(lease) | Stored::InVlan(_, StoredInVlan::Lease(lease)) => {
                Some((lease.switch, lease.port))
            }
            Stored::Lease6(lease) => Some((lease.switch, lease.port)),
            Stored::Pair(..) | Stored::Quarantine(..) => None,
        }
    }
}

/// Change of the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StoreChange {
    /// Sets the entry of its key.
    Put(Stored),
    /// Removes the entry of a key.
    Delete(StoreKey),
}

impl StoreChange {
    /// Returns the change in a VLAN; `None` for entries that have no VLAN, or have one already.
    pub fn in_vlan(self, vlan: VlanId) -> Option<StoreChange> {
        match self {
            StoreChange::Put(entry) => entry.in_vlan(vlan).map(StoreChange::Put),
            StoreChange::Delete(key) => key.in_vlan(vlan).map(StoreChange::Delete),
        }
    }
}
