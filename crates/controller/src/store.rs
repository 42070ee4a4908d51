//! Controller state stored for the next incarnation, and its restoration.
//!
//! Stored are the hosts that switches have reported, the addresses of the DHCP server with their
//! owners, those that a DHCPv6 server has leased through the relay, and operators' changes of the
//! policy. The graph is not stored, because switches report it within a heartbeat; nor are routes,
//! which the edges keep (`takeover.rs`).
//!
//! Restored state is provisional. A host keeps its location until its switch is received; if the
//! switch does not report it within five seconds, it is queried for and removed. A switch that is
//! never received loses its hosts like a dead one. A lease keeps its state and ends at the earliest
//! a minute after the start, because its host may be present before its switch is received. A
//! DHCPv6 lease ends at its original time, when the host removes the address too.

use super::conductor::Controller;
use super::hosts::{HostIndex, HostTable, Place};
use super::lease::{Holder, Lease, LeaseState};
use super::leases6::Lease6;
use super::topology::Graph;
use alloc::vec::Vec;
use axon_link::effect::Effect;
use axon_node::telemetry::Restored;
use axon_node::{
    StoreChange, StoreKey, Stored, StoredHost, StoredLease, StoredLease6, StoredState,
};
use axon_wire::{NodeId, PortNo, Span, Time};
use core::net::Ipv4Addr;

/// Minimum remaining duration of a restored lease, because the clock may have been set.
const STANDS: Span = Span::from_secs(60);

impl Controller {
    /// Restores the stored state of an earlier incarnation. Entries that do not fit this
    /// configuration are dropped. Call it once, before anything else.
    pub fn restore(&mut self, now: Time, stored: &[Stored], out: &mut Vec<Effect>) {
        stored.iter().for_each(|entry| self.fwd.net.policy_mut().restore(entry));
        let mut entered: Vec<(HostIndex, &StoredHost)> = Vec::new();
        for entry in stored {
            if let Stored::Host(host) = entry {
                let ports = self.fwd.net.fabric().bonds().ports_with((host.switch, host.port));
                let admitted = self.fwd.net.policy().admits(host.mac, &ports);
                let place = self.remembered_place(now, host.switch, host.port);
                let restore = |hosts: &mut HostTable| hosts.restore(place, host.mac);
                match admitted.then(|| restore(self.fwd.net.hosts_mut())).flatten() {
                    Some(index) => entered.push((index, host)),
                    None => self.give_up(entry.key(), out),
                }
            }
        }
        self.restored.hosts = entered.len() as u64;
        for entry in stored {
            if let Stored::Lease(lease) = entry {
                let place = self.remembered_place(now, lease.switch, lease.port);
                let shown = self.fwd.net.host(lease.mac);
                let shown_at = shown.map(|host| host.place());
                match self.addresses.dhcp_mut().restore(
                    now,
                    lease.ip,
                    from_stored(now, lease, place),
                    shown_at,
                ) {
                    true => self.restored.leases += 1,
                    false => self.give_up(entry.key(), out),
                }
            }
        }
        for entry in stored {
            if let Stored::Lease6(lease) = entry {
                let place = self.remembered_place(now, lease.switch, lease.port);
                let (mac, until) = (lease.mac, lease.until.max(now + STANDS));
                let has_relay = self.relay6.is_some();
                match has_relay
                    && self.addresses.leases6_mut().restore(
                        now,
                        lease.ip,
                        Lease6 { mac, place, until },
                    ) {
                    true => self.restored.leases += 1,
                    false => self.give_up(entry.key(), out),
                }
            }
        }
        // The leases define the owner of an address here too.
        for (index, host) in entered {
            host.ips.iter().for_each(|&ip| self.addresses.own(&mut self.fwd, now, index, ip, out));
        }
    }

    /// Returns the place of a switch that was not received yet, whose silence counts from now on.
    fn remembered_place(&mut self, now: Time, switch: NodeId, port: PortNo) -> Place {
        let switch = self.fwd.net.graph_mut().remember(switch);
        self.ageing.heard(now, switch);
        Place { switch, port }
    }

    fn give_up(&mut self, key: StoreKey, out: &mut Vec<Effect>) {
        self.restored.refused += 1;
        out.push(Effect::Store(StoreChange::Delete(key)));
    }

    /// Emits the changes to be stored since the last call.
    pub fn keep(&mut self, out: &mut Vec<Effect>) {
        for mac in self.fwd.net.hosts_mut().take_changed() {
            let host = self.fwd.net.host(mac);
            let put = host.filter(|host| host.is_kept()).map(|host| StoredHost {
                mac,
                switch: self.fwd.net.fabric().node(host.place().switch),
                port: host.place().port,
                ips: host.ips.clone(),
            });
            let delete = StoreChange::Delete(StoreKey::Host(mac));
            let change = put.map_or(delete, |host| StoreChange::Put(Stored::Host(host)));
            out.push(Effect::Store(change));
        }
        for ip in self.addresses.dhcp_mut().take_changed() {
            let change = match self.addresses.dhcp().lease(ip) {
                None => StoreChange::Delete(StoreKey::Lease(ip)),
                Some(lease) => match to_stored(self.fwd.net.graph(), ip, lease) {
                    Some(lease) => StoreChange::Put(Stored::Lease(lease)),
                    // An offer does not change the previous owner's entry.
                    None => continue,
                },
            };
            out.push(Effect::Store(change));
        }
        self.keep_v6(out);
    }

    /// Emits the changes of DHCPv6 leases for [`Controller::keep`].
    fn keep_v6(&mut self, out: &mut Vec<Effect>) {
        for ip in self.addresses.leases6_mut().take_changed() {
            let change = self.addresses.leases6().get(ip).map_or(
                StoreChange::Delete(StoreKey::Lease6(ip)),
                |&Lease6 { mac, place, until }| {
                    let switch = self.fwd.net.fabric().node(place.switch);
                    let port = place.port;
                    StoreChange::Put(Stored::Lease6(StoredLease6 { ip, mac, switch, port, until }))
                },
            );
            out.push(Effect::Store(change));
        }
    }

    /// Returns the counts of state restored from the previous incarnation.
    pub fn restored(&self) -> Restored {
        let provisional = self.fwd.net.hosts().iter().filter(|(_, host)| host.is_provisional());
        Restored {
            hosts_provisional: provisional.count() as u64,
            routes_pending: self.fwd.take_over.len() as u64,
            ..self.restored.plus(self.fwd.take_over.decided())
        }
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

/// Returns the stored form of a lease; `None` for an offer.
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
