//! The leases of the DHCP server: the state of each address, its holder, and the holder's port.
//!
//! An address of the pool is *offered* for seconds, *bound* for a lease, *in use* by a host that
//! has no lease (it sends ARP from it), or *declined* (another host answers on it) for minutes.
//! Then it is *free* again, and its last owner gets it back unless another client needed it.
//! Addresses never given yet go first, then the one that has been free longest. Of the former a
//! client gets the one that its MAC points to, if it can: a controller that has forgotten all
//! leases then gives each client what it had before, and not what another still holds.
//!
//! This table alone says whose an address of the pool is: the host table enters an address with a
//! host only after `Leases::claim`. The holder of an address is a MAC with a client identifier
//! at a port. Only it releases or declines the address, and only while the host table has shown
//! its MAC nowhere else for [`SETTLE`]. A holder that is at another port for so long is queried at
//! its own, and has moved if it does not answer.
//!
//! Everything is bounded by the pool and the reservations: the only thing that an unknown client
//! adds is an entry for an address. One port holds a bounded number of addresses of the pool.
//! Where it needs more, and where the pool is empty, leases of hosts that are gone are reclaimed.

use super::hosts::Place;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use axon_wire::{MacAddr, Span, Time};
use core::net::Ipv4Addr;

/// How long a host must be gone from its port, or at another one, before that counts. A host whose
/// MAC another port has used is asked and back within two seconds.
pub(super) const SETTLE: Span = Span::from_secs(10);
/// Offers and declined addresses that one host port may hold.
const HELD_MAX: usize = 16;

/// The state of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// Offered to a client, not yet requested.
    Offered,
    /// Leased to a client.
    Bound,
    /// Used by a host without a lease, or longer than its lease.
    InUse,
    /// Not to be given out: its client found that another host uses it.
    Declined,
    /// Leased to no client; the last owner is kept.
    Free,
}

/// The client that an address belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its MAC address.
    pub mac: MacAddr,
    /// Its client identifier (RFC 2132 §9.14); empty without one.
    pub client_id: Vec<u8>,
    /// Its port.
    pub place: Place,
}

/// The state of an address, and its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The owner, or the last one.
    pub holder: Holder,
    /// The state of the address.
    pub state: LeaseState,
    /// [`LeaseState::Offered`], [`LeaseState::Bound`] and [`LeaseState::Declined`]: when the state
    /// ends. [`LeaseState::InUse`] and [`LeaseState::Free`]: when it began.
    pub until: Time,
    /// Where the host table shows the holder's MAC.
    pub(super) shown_at: Option<Place>,
    /// Since when; `None` for ever.
    pub(super) shown_since: Option<Time>,
    /// Whether the holder has been queried at its port since then.
    pub(super) queried: bool,
    /// Another host that uses the address as soon as it is free.
    pub(super) rival: Option<MacAddr>,
}

/// Which ordered set an entry with a deadline or an age stands in, besides `expiry` and `free`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Absence {
    /// To be looked at when it has lasted for [`SETTLE`].
    Settling,
    /// A lease whose host is gone.
    Gone,
}

/// The addresses that belong to one port.
#[derive(Clone, Debug, Default)]
pub(super) struct PortLeases {
    /// Offered and declined, oldest first.
    pub(super) passing: VecDeque<Ipv4Addr>,
    /// Addresses that are bound or in use, without reserved ones.
    pub(super) lasting: BTreeSet<Ipv4Addr>,
}

/// What the controller has to do about addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// Addresses that have become free, with the host that was refused each of them last.
    pub free: Vec<(Ipv4Addr, MacAddr)>,
    /// Holders that the host table shows at another port, to be queried at their own.
    pub queries: Vec<(Place, MacAddr, Ipv4Addr)>,
}

/// The addresses of a server.
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
    /// Addresses whose entry in the store may have changed.
    changed: BTreeSet<Ipv4Addr>,
    pub(super) per_port_max: usize,
    pub(super) reclaimed: u64,
    /// The first address that was never given, as a number; past `last` there is none.
    pub(super) fresh: u64,
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) excluded: BTreeSet<Ipv4Addr>,
}

impl Leases {
    /// A pool from `first` to `last`, without the `excluded` addresses. One port holds at most
    /// `per_port_max` of them.
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

    /// Takes addresses out of the pool.
    pub fn withhold(&mut self, ips: impl Iterator<Item = Ipv4Addr>) {
        self.excluded.extend(ips);
    }

    pub fn iter(&self) -> impl Iterator<Item = (Ipv4Addr, &Lease)> {
        self.by_ip.iter().map(|(&ip, lease)| (ip, lease))
    }

    pub fn in_pool(&self, ip: Ipv4Addr) -> bool {
        (self.first..=self.last).contains(&u64::from(u32::from(ip))) && !self.excluded.contains(&ip)
    }

    /// Whether an address is one of those of which a port holds so many: all that are leased and
    /// not somebody's by reservation. A server that is a host may have leased it out of a pool of
    /// its own.
    pub(super) fn counts(&self, ip: Ipv4Addr) -> bool {
        !self.excluded.contains(&ip)
    }

    /// An address and its owner.
    pub fn get(&self, ip: Ipv4Addr) -> Option<&Lease> {
        self.by_ip.get(&ip)
    }

    /// The addresses whose entry in the store may have changed since the last call.
    pub fn take_changed(&mut self) -> BTreeSet<Ipv4Addr> {
        core::mem::take(&mut self.changed)
    }

    /// Enters an address as the store held it. `shown_at` is where the host table has the owner.
    pub fn restore(&mut self, now: Time, ip: Ipv4Addr, mut lease: Lease, shown_at: Option<Place>) {
        lease.shown_at = shown_at;
        lease.shown_since = (shown_at != Some(lease.holder.place)).then_some(now);
        self.put(ip, lease);
        while u32::try_from(self.fresh).is_ok_and(|ip| self.by_ip.contains_key(&ip.into())) {
            self.fresh += 1;
        }
    }

    /// Leases of hosts that were gone, given up for other clients.
    pub const fn reclaimed(&self) -> u64 {
        self.reclaimed
    }

    /// The address that is offered to a client, bound to it, or in use by it.
    pub fn of(&self, mac: MacAddr) -> Option<(Ipv4Addr, &Lease)> {
        let ip = *self.by_mac.get(&mac)?;
        let lease = self.by_ip.get(&ip)?;
        (lease.state != LeaseState::Free).then_some((ip, lease))
    }

    /// Whether an address is bound to this client or in use by it.
    pub fn lasts_with(&self, mac: MacAddr, ip: Ipv4Addr) -> bool {
        self.by_ip.get(&ip).is_some_and(|lease| lease.is_lasting() && lease.holder.mac == mac)
    }

    /// Whether an address belongs to another client, or is declined.
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

    /// Gives an address to a client. It has one by lease: the one before becomes free, and
    /// nobody's.
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

    /// Enters an address, which was not there. A port that has too many that are offered or
    /// declined gives up its oldest.
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

    /// Enters an address, which was not there, everywhere.
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
            // An address that is held goes before one that is only remembered.
            let of_mac = self.by_mac.entry(lease.holder.mac).or_insert(ip);
            if lease.is_held() && !self.by_ip.get(of_mac).is_some_and(Lease::is_held) {
                *of_mac = ip;
            }
        }
        self.changed.insert(ip);
        self.by_ip.insert(ip, lease);
    }

    /// Removes an address everywhere.
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

    /// Which set an address stands in because its host is not at its port, and since when.
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

    /// Whether an address is this client's to give back: it holds it, and the host table has shown
    /// its MAC at no other port of late.
    pub(super) fn is_held_by(&self, now: Time, by: &Holder) -> bool {
        let settled = self.shown_since.is_none_or(|since| since + SETTLE <= now);
        self.is_held()
            && self.state != LeaseState::Declined
            && self.holder == *by
            && self.shown_at == Some(by.place)
            && settled
    }
}
