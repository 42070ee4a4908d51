//! Leases of the DHCP server: the state of each address, its holder, and the holder's port.
//!
//! An address of the pool is *offered* for seconds, *bound* for a lease, *in use* by a host without
//! a lease (which sends ARP from it), or *declined* (another host answers on it) for minutes. Then
//! it is *free* again, and its last owner gets it back unless another client needed it. Addresses
//! never leased go first, then the one that has been free longest. Of the former, a client gets the
//! one derived from its MAC address, if possible: a controller without its leases then gives each
//! client its previous address, and not one that another host still has.
//!
//! This table is the authority for the owner of a pool address: the host table assigns an address
//! to a host only after `Leases::claim`. The holder of an address is a MAC address with a client
//! identifier at a port. Only the holder releases or declines the address, and only while the host
//! table has had its MAC address at no other port for [`SETTLE`]. A holder that is at another port
//! for that long is queried at its own, and has moved if it does not answer.
//!
//! All state is bounded by the pool and the reservations: an unknown client adds only an entry for
//! an address. One port holds a bounded number of pool addresses. If it needs more, or if the pool
//! is empty, leases of hosts that are gone are reclaimed.

use super::hosts::Place;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use axon_wire::{MacAddr, Span, Time};
use core::net::Ipv4Addr;

/// Time for which a host must be gone from its port, or at another one, before that counts. A host
/// whose MAC address was used at another port is queried and back within two seconds.
pub(super) const SETTLE: Span = Span::from_secs(10);
/// Maximum number of offered and declined addresses of one host port.
const HELD_MAX: usize = 16;

/// State of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// Offered to a client, not yet requested.
    Offered,
    /// Leased to a client.
    Bound,
    /// Used by a host without a lease, or longer than its lease.
    InUse,
    /// Not leased out: its client found that another host uses it.
    Declined,
    /// Leased to no client; the last owner is kept.
    Free,
}

/// Client that holds an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// MAC address.
    pub mac: MacAddr,
    /// Client identifier (RFC 2132 §9.14); empty if there is none.
    pub client_id: Vec<u8>,
    /// Host port.
    pub place: Place,
}

/// State of an address, and its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Current or last owner.
    pub holder: Holder,
    /// State of the address.
    pub state: LeaseState,
    /// For [`LeaseState::Offered`], [`LeaseState::Bound`] and [`LeaseState::Declined`], the end of
    /// the state. For [`LeaseState::InUse`] and [`LeaseState::Free`], its beginning.
    pub until: Time,
    /// Port of the holder's MAC address in the host table.
    pub(super) shown_at: Option<Place>,
    /// Time since when it is there; `None` if always.
    pub(super) shown_since: Option<Time>,
    /// True if the holder has been queried at its port since then.
    pub(super) queried: bool,
    /// Another host that uses the address as soon as it is free.
    pub(super) rival: Option<MacAddr>,
}

/// Kind of absence of a holder, which selects the ordered set of its lease.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Absence {
    /// Absent, and checked again after [`SETTLE`].
    Settling,
    /// A lease whose host is gone.
    Gone,
}

/// Addresses held at one port.
#[derive(Clone, Debug, Default)]
pub(super) struct PortLeases {
    /// Offered and declined addresses, oldest first.
    pub(super) passing: VecDeque<Ipv4Addr>,
    /// Addresses bound or in use, without reserved ones.
    pub(super) lasting: BTreeSet<Ipv4Addr>,
}

/// Actions on addresses for the controller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// Addresses that have become free, with the host that was refused each of them last.
    pub free: Vec<(Ipv4Addr, MacAddr)>,
    /// Holders that the host table has at another port, to be queried at their own.
    pub queries: Vec<(Place, MacAddr, Ipv4Addr)>,
}

/// Addresses of a server.
#[derive(Clone, Debug)]
pub(super) struct Leases {
    pub(super) by_ip: BTreeMap<Ipv4Addr, Lease>,
    pub(super) by_mac: BTreeMap<MacAddr, Ipv4Addr>,
    pub(super) by_port: BTreeMap<Place, PortLeases>,
    pub(super) expiry: BTreeSet<(Time, Ipv4Addr)>,
    pub(super) free: BTreeSet<(Time, Ipv4Addr)>,
    pub(super) settling: BTreeSet<(Time, Ipv4Addr)>,
    pub(super) gone: BTreeSet<(Time, Ipv4Addr)>,
    pub(super) due: Due,
    /// Addresses whose stored entry may have changed.
    changed: BTreeSet<Ipv4Addr>,
    pub(super) per_port_max: usize,
    pub(super) reclaimed: u64,
    /// First address that was never leased, as a number. Above `last` there is none left.
    pub(super) fresh: u64,
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) excluded: BTreeSet<Ipv4Addr>,
}

impl Leases {
    /// Creates a pool from `first` to `last`, without the `excluded` addresses. One port holds at
    /// most `per_port_max` of them.
    pub fn new(
        (first, last): (Ipv4Addr, Ipv4Addr),
        excluded: BTreeSet<Ipv4Addr>,
        per_port_max: usize,
    ) -> Leases {
        let first = u64::from(u32::from(first));
        Leases {
            by_ip: BTreeMap::new(),
            by_mac: BTreeMap::new(),
            by_port: BTreeMap::new(),
            expiry: BTreeSet::new(),
            free: BTreeSet::new(),
            settling: BTreeSet::new(),
            gone: BTreeSet::new(),
            due: Due::default(),
            changed: BTreeSet::new(),
            per_port_max,
            reclaimed: 0,
            fresh: first,
            first,
            last: u64::from(u32::from(last)),
            excluded,
        }
    }

    /// Removes addresses from the pool.
    pub fn withhold(&mut self, ips: impl Iterator<Item = Ipv4Addr>) {
        self.excluded.extend(ips);
    }

    pub fn iter(&self) -> impl Iterator<Item = (Ipv4Addr, &Lease)> {
        self.by_ip.iter().map(|(&ip, lease)| (ip, lease))
    }

    pub fn in_pool(&self, ip: Ipv4Addr) -> bool {
        (self.first..=self.last).contains(&u64::from(u32::from(ip))) && !self.excluded.contains(&ip)
    }

    /// Returns whether an address counts for the limit of a port: every leased address that is not
    /// reserved. An external server may lease addresses of its own pool.
    pub(super) fn counts(&self, ip: Ipv4Addr) -> bool {
        !self.excluded.contains(&ip)
    }

    /// Returns an address's state and owner.
    pub fn get(&self, ip: Ipv4Addr) -> Option<&Lease> {
        self.by_ip.get(&ip)
    }

    /// Returns the addresses whose stored entry may have changed since the last call.
    pub fn take_changed(&mut self) -> BTreeSet<Ipv4Addr> {
        core::mem::take(&mut self.changed)
    }

    /// Restores a stored address. `shown_at` is the owner's port in the host table.
    pub fn restore(&mut self, now: Time, ip: Ipv4Addr, mut lease: Lease, shown_at: Option<Place>) {
        lease.shown_at = shown_at;
        lease.shown_since = (shown_at != Some(lease.holder.place)).then_some(now);
        self.put(ip, lease);
        while u32::try_from(self.fresh).is_ok_and(|ip| self.by_ip.contains_key(&ip.into())) {
            self.fresh += 1;
        }
    }

    /// Returns the number of leases of absent hosts that were reclaimed for other clients.
    pub const fn reclaimed(&self) -> u64 {
        self.reclaimed
    }

    /// Returns the address that is offered to a client, bound to it, or in use by it.
    pub fn of(&self, mac: MacAddr) -> Option<(Ipv4Addr, &Lease)> {
        let ip = *self.by_mac.get(&mac)?;
        let lease = self.by_ip.get(&ip)?;
        (lease.state != LeaseState::Free).then_some((ip, lease))
    }

    /// Returns whether an address is bound to this client or in use by it.
    pub fn lasts_with(&self, mac: MacAddr, ip: Ipv4Addr) -> bool {
        self.by_ip.get(&ip).is_some_and(|lease| lease.is_lasting() && lease.holder.mac == mac)
    }

    /// Returns whether an address belongs to another client, or is declined.
    pub fn taken_from(&self, mac: MacAddr, ip: Ipv4Addr) -> bool {
        self.by_ip.get(&ip).is_some_and(|lease| match lease.state {
            LeaseState::Free => false,
            LeaseState::Declined => true,
            LeaseState::Offered | LeaseState::Bound | LeaseState::InUse => lease.holder.mac != mac,
        })
    }

    pub(super) fn set_free(&mut self, now: Time, ip: Ipv4Addr) {
        let Some(lease) = self.take(ip) else { return };
        if let Some(rival) = lease.rival {
            self.due.free.push((ip, rival));
        }
        if self.in_pool(ip) {
            let was_declined = lease.state == LeaseState::Declined;
            let mac = lease.holder.mac;
            self.put(ip, Lease::new(lease.holder, LeaseState::Free, now));
            if was_declined && self.by_mac.get(&mac) == Some(&ip) {
                self.by_mac.remove(&mac);
            }
        }
    }

    /// Gives an address to a client. A client has one lease: its previous address becomes free.
    pub(super) fn set(&mut self, now: Time, ip: Ipv4Addr, lease: Lease) {
        self.take(ip);
        if let Some(other) = self.by_mac.get(&lease.holder.mac).copied() {
            let held = self.by_ip.get(&other).is_some_and(|other| other.state != LeaseState::InUse);
            if held {
                self.set_free(now, other);
            }
            self.by_mac.remove(&lease.holder.mac);
        }
        self.pass(ip, lease);
    }

    /// Inserts a new address. If a port has too many offered or declined addresses, its oldest
    /// becomes free.
    pub(super) fn pass(&mut self, ip: Ipv4Addr, lease: Lease) {
        let at = lease.holder.place;
        self.put(ip, lease);
        let passing = self.by_port.get(&at).map(|port| &port.passing);
        if let Some(passing) = passing
            && passing.len() > HELD_MAX.min(self.per_port_max)
            && let Some(&oldest) = passing.front()
        {
            self.set_free(Time::ZERO, oldest);
        }
    }

    /// Inserts a new address in all indices.
    pub(super) fn put(&mut self, ip: Ipv4Addr, lease: Lease) {
        let state = lease.state;
        match state {
            LeaseState::Free => self.free.insert((lease.until, ip)),
            LeaseState::InUse => false,
            _ => self.expiry.insert((lease.until, ip)),
        };
        if let Some((absence, since)) = self.absence(ip, &lease) {
            self.absent(absence).insert((since, ip));
        }
        let lasting = lease.is_lasting() && self.counts(ip);
        if lasting || lease.is_passing() {
            let port = self.by_port.entry(lease.holder.place).or_default();
            match lasting {
                true => drop(port.lasting.insert(ip)),
                false => port.passing.push_back(ip),
            }
        }
        if state != LeaseState::Declined {
            // A held address takes precedence over one that is only remembered.
            let of_mac = self.by_mac.entry(lease.holder.mac).or_insert(ip);
            if lease.is_held() && !self.by_ip.get(of_mac).is_some_and(Lease::is_held) {
                *of_mac = ip;
            }
        }
        self.changed.insert(ip);
        self.by_ip.insert(ip, lease);
    }

    /// Removes an address from all indices.
    pub(super) fn take(&mut self, ip: Ipv4Addr) -> Option<Lease> {
        let lease = self.by_ip.remove(&ip)?;
        self.changed.insert(ip);
        self.expiry.remove(&(lease.until, ip));
        self.free.remove(&(lease.until, ip));
        if let Some((absence, since)) = self.absence(ip, &lease) {
            self.absent(absence).remove(&(since, ip));
        }
        if self.by_mac.get(&lease.holder.mac) == Some(&ip) {
            self.by_mac.remove(&lease.holder.mac);
        }
        if let Some(port) = self.by_port.get_mut(&lease.holder.place) {
            port.lasting.remove(&ip);
            port.passing.retain(|&other| other != ip);
            if port.lasting.is_empty() && port.passing.is_empty() {
                self.by_port.remove(&lease.holder.place);
            }
        }
        Some(lease)
    }

    /// Returns the set that an address is in because its host is absent from its port, and since
    /// when.
    fn absence(&self, ip: Ipv4Addr, lease: &Lease) -> Option<(Absence, Time)> {
        let since = lease.shown_since.filter(|_| lease.is_lasting())?;
        match lease.shown_at {
            Some(at) if at == lease.holder.place => None,
            None if lease.state == LeaseState::Bound => {
                self.counts(ip).then_some((Absence::Gone, since))
            }
            _ => Some((Absence::Settling, since)),
        }
    }

    fn absent(&mut self, absence: Absence) -> &mut BTreeSet<(Time, Ipv4Addr)> {
        match absence {
            Absence::Settling => &mut self.settling,
            Absence::Gone => &mut self.gone,
        }
    }
}

impl Lease {
    pub(super) const fn new(holder: Holder, state: LeaseState, until: Time) -> Lease {
        let shown_at = Some(holder.place);
        Lease { holder, state, until, shown_at, shown_since: None, queried: false, rival: None }
    }

    pub(super) fn is_held(&self) -> bool {
        self.state != LeaseState::Free
    }

    pub(super) fn is_lasting(&self) -> bool {
        matches!(self.state, LeaseState::Bound | LeaseState::InUse)
    }

    fn is_passing(&self) -> bool {
        matches!(self.state, LeaseState::Offered | LeaseState::Declined)
    }

    /// Returns whether this client may return an address: it holds it, and the host table has not
    /// had its MAC address at another port recently.
    pub(super) fn is_held_by(&self, now: Time, by: &Holder) -> bool {
        let settled = self.shown_since.is_none_or(|since| since + SETTLE <= now);
        self.is_held()
            && self.state != LeaseState::Declined
            && self.holder == *by
            && self.shown_at == Some(by.place)
            && settled
    }
}
