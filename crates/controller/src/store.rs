//! Controller state stored for the next incarnation, and its restoration.
//!
//! The store contains the hosts that switches have reported, the addresses of the DHCP server with
//! their owners, the addresses that a DHCPv6 server has leased through the relay, and policy
//! changes made by operators. The graph is not stored, because switches report it within a
//! heartbeat. Routes are not stored either, because the edges keep them (`takeover.rs`).
//!
//! Restored state is provisional. A host keeps its location until the first message from its switch
//! arrives. If the switch does not report the host within five seconds, the host is queried and
//! removed. If no message from a switch ever arrives, its hosts are removed like those of a dead
//! switch. A lease keeps its state and does not end within the first minute after the start,
//! because its host may be present before its switch is received. A DHCPv6 lease ends at its
//! original time, because the host removes the address then too.

use super::addresses::Addresses;
use super::forwarding::Forwarding;
use super::hosts::{HostIndex, Place};
use super::leases4::{Holder, Lease, LeaseState};
use super::leases6::Lease6;
use super::network::Network;
use super::topology::Graph;
use super::vlans::Services;
use crate::effect::Effect;
use alloc::vec::Vec;
use axon_node::{
    StoreChange, StoreKey, Stored, StoredHost, StoredLease, StoredLease6, StoredState,
};
use axon_wire::{Span, Time};
use core::net::Ipv4Addr;

/// Minimum remaining duration of a restored lease, in case the clock was set in the meantime.
const STANDS: Span = Span::from_secs(60);

/// Restores the stored hosts and leases of one VLAN. Entries that do not fit this configuration are
/// dropped. DHCPv6 leases fit if there is a relay agent for them. The graph has the switches of all
/// entries.
pub(super) fn restore(
    (fwd, own): (&mut Forwarding, &mut Services),
    now: Time,
    stored: &[Stored],
    out: &mut Vec<Effect>,
) {
    let Services { presence, relay6, restored, .. } = own;
    let mut entered: Vec<(HostIndex, &StoredHost)> = Vec::new();
    for entry in stored {
        let Some(place) = entry.at().and_then(|at| fwd.net.fabric().place(at)) else { continue };
        let is_restored = match entry {
            Stored::Host(host) => {
                let ports = fwd.net.fabric().bonds().ports_with((host.switch, host.port));
                let is_admitted = fwd.net.policy().admits(host.mac, &ports);
                let index = is_admitted.then(|| fwd.net.hosts_mut().restore(place, host.mac));
                let index = index.flatten();
                entered.extend(index.map(|index| (index, host)));
                restored.hosts += u64::from(index.is_some());
                index.is_some()
            }
            Stored::Lease(lease) => {
                let shown_at = fwd.net.place_of(lease.mac);
                let from = from_stored(now, lease, place);
                let dhcp = presence.addresses_mut().dhcp_mut();
                let is_restored = dhcp.restore(now, lease.ip, from, shown_at);
                restored.leases += u64::from(is_restored);
                is_restored
            }
            Stored::Lease6(lease) => {
                let (mac, until) = (lease.mac, lease.until.max(now + STANDS));
                let leases6 = presence.addresses_mut().leases6_mut();
                let is_restored = relay6.is_some()
                    && leases6.restore(now, lease.ip, Lease6 { mac, place, until });
                restored.leases += u64::from(is_restored);
                is_restored
            }
            Stored::Pair(..) | Stored::Quarantine(..) | Stored::InVlan(..) => continue,
        };
        if !is_restored {
            restored.refused += 1;
            out.push(Effect::Store(StoreChange::Delete(entry.key())));
        }
    }
    // The leases determine the owner of an address in this table too.
    for (index, host) in entered {
        for &ip in &host.ips {
            presence.addresses_mut().own(fwd, now, index, ip, out);
        }
    }
}

/// Emits the changes since the last call that are to be stored: hosts, DHCP leases, DHCPv6 leases.
pub(super) fn keep(net: &mut Network, addresses: &mut Addresses, out: &mut Vec<Effect>) {
    for mac in net.hosts_mut().take_changed() {
        let host = net.host(mac);
        let put = host.filter(|host| host.is_kept()).map(|host| StoredHost {
            mac,
            switch: net.fabric().node(host.place().switch),
            port: host.place().port,
            ips: host.ips.clone(),
        });
        let delete = StoreChange::Delete(StoreKey::Host(mac));
        let change = put.map_or(delete, |host| StoreChange::Put(Stored::Host(host)));
        out.push(Effect::Store(change));
    }
    for ip in addresses.dhcp_mut().take_changed() {
        let change = match addresses.dhcp().lease(ip) {
            None => StoreChange::Delete(StoreKey::Lease(ip)),
            Some(lease) => match to_stored(net.graph(), ip, lease) {
                Some(lease) => StoreChange::Put(Stored::Lease(lease)),
                // An offer does not change the stored entry of the previous owner.
                None => continue,
            },
        };
        out.push(Effect::Store(change));
    }
    for ip in addresses.leases6_mut().take_changed() {
        let change = addresses.leases6().get(ip).map_or(
            StoreChange::Delete(StoreKey::Lease6(ip)),
            |&Lease6 { mac, place, until }| {
                let (switch, port) = net.fabric().port(place);
                StoreChange::Put(Stored::Lease6(StoredLease6 { ip, mac, switch, port, until }))
            },
        );
        out.push(Effect::Store(change));
    }
}

fn from_stored(now: Time, stored: &StoredLease, place: Place) -> Lease {
    let (state, until) = match stored.state {
        StoredState::Bound => (LeaseState::Bound, stored.until.max(now + STANDS)),
        StoredState::InUse => (LeaseState::InUse, stored.until),
        StoredState::Declined => (LeaseState::Declined, stored.until),
        StoredState::Free => (LeaseState::Free, stored.until),
    };
    let holder = Holder { mac: stored.mac, client_id: stored.client_id.clone(), place };
    Lease::new(holder, state, until)
}

/// Returns the stored form of a lease, or `None` for an offer.
fn to_stored(graph: &Graph, ip: Ipv4Addr, lease: &Lease) -> Option<StoredLease> {
    let state = match lease.state {
        LeaseState::Offered => return None,
        LeaseState::Bound => StoredState::Bound,
        LeaseState::InUse => StoredState::InUse,
        LeaseState::Declined => StoredState::Declined,
        LeaseState::Free => StoredState::Free,
    };
    let holder = &lease.holder;
    Some(StoredLease {
        ip,
        mac: holder.mac,
        client_id: holder.client_id.clone(),
        switch: graph.switch(holder.place.switch).incarnation.node,
        port: holder.place.port,
        state,
        until: lease.until,
    })
}
