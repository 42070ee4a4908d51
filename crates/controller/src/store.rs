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
use super::lease::{Holder, Lease, LeaseState};
use super::leases6::Lease6;
use super::network::Network;
use super::presence::Presence;
use super::topology::Graph;
use crate::effect::Effect;
use alloc::vec::Vec;
use axon_node::telemetry::Restored;
use axon_node::{
    StoreChange, StoreKey, Stored, StoredHost, StoredLease, StoredLease6, StoredState,
};
use axon_wire::{NodeId, PortNo, Span, Time};
use core::net::Ipv4Addr;

/// Minimum remaining duration of a restored lease, in case the clock was set in the meantime.
const STANDS: Span = Span::from_secs(60);

/// Counts of restored state.
#[derive(Clone, Debug, Default)]
pub(super) struct Store {
    restored: Restored,
}

impl Store {
    /// Restores the stored state of an earlier incarnation. Entries that do not fit this
    /// configuration are dropped. DHCPv6 leases fit if there is a relay agent for them.
    pub(super) fn restore(
        &mut self,
        (fwd, presence): (&mut Forwarding, &mut Presence),
        now: Time,
        (stored, has_relay6): (&[Stored], bool),
        out: &mut Vec<Effect>,
    ) {
        stored.iter().for_each(|entry| fwd.net.policy_mut().restore(entry));
        let mut entered: Vec<(HostIndex, &StoredHost)> = Vec::new();
        for entry in stored {
            if let Stored::Host(host) = entry {
                let at = (host.switch, host.port);
                let ports = fwd.net.fabric().bonds().ports_with(at);
                let is_admitted = fwd.net.policy().admits(host.mac, &ports);
                let place = remembered_place((&mut *fwd, &mut *presence), now, at);
                let restored = is_admitted.then(|| fwd.net.hosts_mut().restore(place, host.mac));
                match restored.flatten() {
                    Some(index) => entered.push((index, host)),
                    None => self.give_up(entry.key(), out),
                }
            }
        }
        self.restored.hosts = entered.len() as u64;
        for entry in stored {
            if let Stored::Lease(lease) = entry {
                let at = (lease.switch, lease.port);
                let place = remembered_place((&mut *fwd, &mut *presence), now, at);
                let shown_at = fwd.net.place_of(lease.mac);
                let dhcp = presence.addresses_mut().dhcp_mut();
                match dhcp.restore(now, lease.ip, from_stored(now, lease, place), shown_at) {
                    true => self.restored.leases += 1,
                    false => self.give_up(entry.key(), out),
                }
            }
        }
        for entry in stored {
            if let Stored::Lease6(lease) = entry {
                let at = (lease.switch, lease.port);
                let place = remembered_place((&mut *fwd, &mut *presence), now, at);
                let (mac, until) = (lease.mac, lease.until.max(now + STANDS));
                let restored = Lease6 { mac, place, until };
                let leases6 = presence.addresses_mut().leases6_mut();
                match has_relay6 && leases6.restore(now, lease.ip, restored) {
                    true => self.restored.leases += 1,
                    false => self.give_up(entry.key(), out),
                }
            }
        }
        // The leases determine the owner of an address in this table too.
        for (index, host) in entered {
            for &ip in &host.ips {
                presence.addresses_mut().own(fwd, now, index, ip, out);
            }
        }
    }

    fn give_up(&mut self, key: StoreKey, out: &mut Vec<Effect>) {
        self.restored.refused += 1;
        out.push(Effect::Store(StoreChange::Delete(key)));
    }

    /// Returns the counts of restored state, and of the part that is still provisional.
    pub(super) fn restored(&self, fwd: &Forwarding) -> Restored {
        let provisional = fwd.net.hosts().iter().filter(|(_, host)| host.is_provisional());
        Restored {
            hosts_provisional: provisional.count() as u64,
            routes_pending: fwd.take_over.len() as u64,
            ..self.restored.plus(fwd.take_over.decided())
        }
    }
}

/// Returns the place for a port of a switch that has not been received yet. From now on, the
/// silence of that switch counts.
fn remembered_place(
    (fwd, presence): (&mut Forwarding, &mut Presence),
    now: Time,
    (switch, port): (NodeId, PortNo),
) -> Place {
    let switch = fwd.net.graph_mut().remember(switch);
    presence.heard(now, switch);
    Place { switch, port }
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
