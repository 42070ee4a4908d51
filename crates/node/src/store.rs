//! What a controller keeps for its next incarnation.
//!
//! A node does no I/O. It says what changes ([`Action::Store`](crate::Action::Store)), its runtime
//! keeps it, and gives all of it to the next incarnation when that starts. Switches are named by
//! [`NodeId`]: everything else about them is given out anew at each start.

use crate::policy::{HostPair, Subject};
use alloc::vec::Vec;
use axon_wire::{MacAddr, NodeId, PortNo, Time};
use core::net::{IpAddr, Ipv4Addr};
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
}

impl Stored {
    /// What the entry is about.
    pub const fn key(&self) -> StoreKey {
        match self {
            Stored::Host(host) => StoreKey::Host(host.mac),
            Stored::Lease(lease) => StoreKey::Lease(lease.ip),
            Stored::Pair(pair, _) => StoreKey::Pair(*pair),
            Stored::Quarantine(subject, _) => StoreKey::Quarantine(*subject),
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
