//! What a controller keeps for its next incarnation.
//!
//! A node does no I/O. It says what changes ([`Action::Store`](crate::Action::Store)), its runtime
//! keeps it, and gives all of it to the next incarnation when that starts. Switches are named by
//! [`NodeId`]: everything else about them is given out anew at each start.

use crate::policy::{HostPair, Subject};
use alloc::vec::Vec;
use axon_wire::vlan::VlanId;
use axon_wire::{MacAddr, NodeId, PortNo, Time};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use serde::{Deserialize, Serialize};

/// A host that a switch has reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredHost {
    /// Its MAC address.
    pub mac: MacAddr,
    /// Its switch.
    pub switch: NodeId,
    /// Its port there.
    pub port: PortNo,
    /// Its addresses, newest last.
    pub ips: Vec<IpAddr>,
}

/// The state of an address that is kept. An offer is not: it lasts for seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StoredState {
    /// The address is leased to a client.
    Bound,
    /// Used by a host without a lease.
    InUse,
    /// Declined: another host answers on it.
    Declined,
    /// Leased to nobody; the last owner is kept.
    Free,
}

/// An address of the DHCP server, and whose it is.
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
    /// [`StoredState::Bound`] and [`StoredState::Declined`]: when the state ends.
    /// [`StoredState::InUse`] and [`StoredState::Free`]: when it began. In the time of the node
    /// that writes or reads it; a runtime converts it between incarnations, to [`Time::ZERO`] if
    /// it was before the start.
    pub until: Time,
}

/// An address of IPv6 that a DHCPv6 server has leased to a host, behind the relay.
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
    /// When the lease ends, as [`StoredLease::until`].
    pub until: Time,
}

/// An entry about one VLAN.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StoredInVlan {
    /// Of its host table.
    Host(StoredHost),
    /// Of its DHCP server.
    Lease(StoredLease),
}

/// What an entry about one VLAN is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum KeyInVlan {
    /// A host.
    Host(MacAddr),
    /// An address.
    Lease(Ipv4Addr),
}

/// An entry of the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stored {
    /// Of the host table.
    Host(StoredHost),
    /// Of the DHCP server.
    Lease(StoredLease),
    /// Of the policy: whether two hosts may reach each other, other than the fabric file says.
    Pair(HostPair, bool),
    /// Of the policy: whether something is in quarantine, other than the fabric file says.
    Quarantine(Subject, bool),
    /// Of the relay of DHCPv6.
    Lease6(StoredLease6),
    /// Of a VLAN. Hosts and leases that are in none are entries by themselves.
    InVlan(VlanId, StoredInVlan),
}

/// What an entry is about: there is one entry for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum StoreKey {
    /// A host.
    Host(MacAddr),
    /// An address.
    Lease(Ipv4Addr),
    /// Two hosts.
    Pair(HostPair),
    /// A host or a port in quarantine, or out of it.
    Quarantine(Subject),
    /// An address of IPv6.
    Lease6(Ipv6Addr),
    /// Something in a VLAN.
    InVlan(VlanId, KeyInVlan),
}

impl StoreKey {
    /// The same in a VLAN; `None` for what is in no VLAN, or in all.
    pub const fn in_vlan(self, vlan: VlanId) -> Option<StoreKey> {
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
    /// What the entry is about.
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

    /// The same in a VLAN; `None` for what is in no VLAN, or in all.
    pub fn in_vlan(self, vlan: VlanId) -> Option<Stored> {
        match self {
            Stored::Host(host) => Some(Stored::InVlan(vlan, StoredInVlan::Host(host))),
            Stored::Lease(lease) => Some(Stored::InVlan(vlan, StoredInVlan::Lease(lease))),
            Stored::Pair(..) | Stored::Quarantine(..) | Stored::Lease6(_) | Stored::InVlan(..) => {
                None
            }
        }
    }

    /// The VLAN that an entry is about, and what it says there; `None` for what holds in all.
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

    /// The port of the host that an entry is about; `None` for one of the policy.
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

/// A change of the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StoreChange {
    /// This is the entry of its key now.
    Put(Stored),
    /// There is no such entry any more.
    Delete(StoreKey),
}

impl StoreChange {
    /// The same in a VLAN; `None` for what is in no VLAN, or in all.
    pub fn in_vlan(self, vlan: VlanId) -> Option<StoreChange> {
        match self {
            StoreChange::Put(entry) => entry.in_vlan(vlan).map(StoreChange::Put),
            StoreChange::Delete(key) => key.in_vlan(vlan).map(StoreChange::Delete),
        }
    }
}
