//! Leases of the DHCP server: the state of each address, its holder, and the holder's port.
//!
//! An address in the pool is *offered* for seconds, *bound* for the duration of a lease, *in use*
//! by a host without a lease (which sends ARP from it), or *declined* for minutes (because another
//! host answers for it). Afterwards it is *free* again, and its last owner gets it back unless
//! another client has needed it. Addresses that were never leased are given out first, then the one
//! that has been free longest. Of the former, a client gets the one derived from its MAC address,
//! if possible. So a controller that has lost its leases gives each client its previous address,
//! and not one that another host still has.
//!
//! This table is the authority on the owner of a pool address. The host table assigns an address to
//! a host only after `Allocation::claim` has allowed it. The holder of an address is identified by
//! MAC address, client identifier and port. Only the holder can release or decline the address, and
//! only while the host table has had its MAC address at no other port for [`SETTLE`]. A holder that
//! has been at another port for that long is queried at the port of its lease. If it does not
//! answer, it has moved.
//!
//! All state is bounded by the pool and the reservations, because an unknown client adds only an
//! entry for an address. One port holds a bounded number of pool addresses. If it needs more, or if
//! the pool is empty, leases of hosts that are gone are reclaimed.

use super::hosts::Place;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use axon_wire::{MacAddr, Span, Time};
use core::net::Ipv4Addr;

/// Time for which a host must be gone from its port, or be at another port, before that counts. If
/// another host uses its MAC address at another port, the host is queried and back within two
/// seconds.
pub(super) const SETTLE: Span = Span::from_secs(10);

/// State of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// Offered to a client that has not requested it yet.
    Offered,
    /// Leased to a client.
    Bound,
    /// Used by a host that has no lease, or that has outlasted its lease.
    InUse,
    /// Not leased, because its client found that another host uses it.
    Declined,
    /// Leased to no client. The last owner is recorded.
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

/// State of an address, together with its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Current or last owner.
    pub holder: Holder,
    /// State of the address.
    pub state: LeaseState,
    /// For [`LeaseState::Offered`], [`LeaseState::Bound`] and [`LeaseState::Declined`], the end of
    /// the state. For [`LeaseState::InUse`] and [`LeaseState::Free`], its beginning.
    pub until: Time,
    /// Port where the host table has the holder's MAC address, if any.
    pub(super) shown_at: Option<Place>,
    /// Start of the time at that port, or `None` if the holder has always been there.
    pub(super) shown_since: Option<Time>,
    /// True if the holder has been queried at its port since then.
    pub(super) queried: bool,
    /// Another host that uses the address as soon as it is free.
    pub(super) rival: Option<MacAddr>,
}

/// Kind of a holder's absence, which selects the ordered set that contains its lease.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Absence {
    /// Absent, to be checked again after [`SETTLE`].
    Settling,
    /// Leased to a host that is gone.
    Gone,
}

/// Addresses held at one port.
#[derive(Clone, Debug, Default)]
struct PortLeases {
    /// Offered and declined addresses, oldest first.
    passing: VecDeque<Ipv4Addr>,
    /// Addresses that are bound or in use, without reserved ones.
    lasting: BTreeSet<Ipv4Addr>,
}

/// Table of leases with its indices.
#[derive(Clone, Debug, Default)]
pub(super) struct Leases {
    by_ip: BTreeMap<Ipv4Addr, Lease>,
    by_mac: BTreeMap<MacAddr, Ipv4Addr>,
    by_port: BTreeMap<Place, PortLeases>,
    expiry: BTreeSet<(Time, Ipv4Addr)>,
    free: BTreeSet<(Time, Ipv4Addr)>,
    settling: BTreeSet<(Time, Ipv4Addr)>,
    gone: BTreeSet<(Time, Ipv4Addr)>,
    /// Addresses whose stored entry may have changed.
    changed: BTreeSet<Ipv4Addr>,
    /// Addresses that no client gets from the pool, and that do not count towards the limit of a
    /// port.
    excluded: BTreeSet<Ipv4Addr>,
}

/// Queries.
impl Leases {
    /// Creates a table without leases.
    pub(crate) fn new(excluded: BTreeSet<Ipv4Addr>) -> Leases {
        Leases { excluded, ..Leases::default() }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Ipv4Addr, &Lease)> {
        self.by_ip.iter().map(|(&ip, lease)| (ip, lease))
    }

    /// Returns whether an address counts towards the limit of a port. Every leased address does
    /// unless it is reserved, because an external server may lease addresses from its own pool.
    pub(crate) fn counts(&self, ip: Ipv4Addr) -> bool {
        !self.excluded.contains(&ip)
    }

    /// Returns the state and the owner of an address.
    pub(crate) fn get(&self, ip: Ipv4Addr) -> Option<&Lease> {
        self.by_ip.get(&ip)
    }

    /// Returns the address that a client holds or held last.
    pub(crate) fn last_of(&self, mac: MacAddr) -> Option<Ipv4Addr> {
        self.by_mac.get(&mac).copied()
    }

    /// Returns the address that is offered to a client, bound to it, or in use by it.
    pub(crate) fn of(&self, mac: MacAddr) -> Option<(Ipv4Addr, &Lease)> {
        let ip = self.last_of(mac)?;
        let lease = self.by_ip.get(&ip)?;
        lease.is_held().then_some((ip, lease))
    }

    /// Returns whether an address is bound to this client or in use by it.
    pub(crate) fn lasts_with(&self, mac: MacAddr, ip: Ipv4Addr) -> bool {
        self.by_ip.get(&ip).is_some_and(|lease| lease.is_lasting() && lease.holder.mac == mac)
    }

    /// Returns whether an address belongs to another client, or is declined.
    pub(crate) fn taken_from(&self, mac: MacAddr, ip: Ipv4Addr) -> bool {
        self.by_ip.get(&ip).is_some_and(|lease| match lease.state {
            LeaseState::Free => false,
            LeaseState::Declined => true,
            LeaseState::Offered | LeaseState::Bound | LeaseState::InUse => lease.holder.mac != mac,
        })
    }

    /// Returns whether an address belongs to another host, so that a claim by this host is refused.
    pub(crate) fn is_anothers(&self, mac: MacAddr, at: Place, ip: Ipv4Addr) -> bool {
        let is_declined = |lease: &Lease| lease.state == LeaseState::Declined;
        let is_declined = self.by_ip.get(&ip).is_some_and(is_declined);
        self.taken_from(mac, ip) && !is_declined && !self.is_used_at(at, ip)
    }

    /// Returns whether a host at a port uses an address without a lease. Another host at the same
    /// port may then take the address.
    pub(crate) fn is_used_at(&self, at: Place, ip: Ipv4Addr) -> bool {
        let lease = self.by_ip.get(&ip);
        lease.is_some_and(|l| l.state == LeaseState::InUse && l.holder.place == at)
    }

    /// Returns the number of addresses at a port that are bound or in use, without reserved ones.
    pub(crate) fn lasting_at(&self, at: Place) -> usize {
        self.by_port.get(&at).map_or(0, |port| port.lasting.len())
    }

    /// Returns the oldest offered or declined address at a port that has more than `max` of them.
    pub(crate) fn surplus_at(&self, at: Place, max: usize) -> Option<Ipv4Addr> {
        let passing = &self.by_port.get(&at)?.passing;
        passing.front().copied().filter(|_| passing.len() > max)
    }

    /// Returns the address at a port whose host has been gone longest, if that is at least
    /// [`SETTLE`].
    pub(crate) fn longest_gone_at(&self, now: Time, at: Place) -> Option<Ipv4Addr> {
        let lasting = self.by_port.get(&at)?.lasting.iter();
        let gone = lasting.filter_map(|ip| {
            let lease = self.by_ip.get(ip).filter(|lease| lease.shown_at.is_none())?;
            Some((lease.shown_since?, *ip))
        });
        gone.min().filter(|&(since, _)| since + SETTLE <= now).map(|(_, ip)| ip)
    }

    /// Returns the lease whose host has been gone longest, and the time since when it has been.
    pub(crate) fn longest_gone(&self) -> Option<(Time, Ipv4Addr)> {
        self.gone.first().copied()
    }

    /// Returns the address that has been free longest.
    pub(crate) fn longest_free(&self) -> Option<Ipv4Addr> {
        self.free.first().map(|&(_, ip)| ip)
    }

    /// Returns the time of the next expiry of a state, and the address concerned.
    pub(crate) fn next_expiry(&self) -> Option<(Time, Ipv4Addr)> {
        self.expiry.first().copied()
    }

    /// Returns when the next absent holder will have been absent for [`SETTLE`], and its address.
    pub(crate) fn next_settled(&self) -> Option<(Time, Ipv4Addr)> {
        self.settling.first().map(|&(since, ip)| (since + SETTLE, ip))
    }

    /// Returns the set that an address belongs to because its host is absent from its port, and the
    /// start of that absence.
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
}

/// Changes.
impl Leases {
    /// Removes addresses from the pool.
    pub(crate) fn withhold(&mut self, ips: impl Iterator<Item = Ipv4Addr>) {
        self.excluded.extend(ips);
    }

    /// Returns the addresses whose stored entry may have changed since the last call.
    pub(crate) fn take_changed(&mut self) -> BTreeSet<Ipv4Addr> {
        core::mem::take(&mut self.changed)
    }

    /// Inserts a new address in all indices.
    pub(crate) fn put(&mut self, ip: Ipv4Addr, lease: Lease) {
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
            // A held address takes precedence over an address that the client had before.
            let of_mac = self.by_mac.entry(lease.holder.mac).or_insert(ip);
            if lease.is_held() && !self.by_ip.get(of_mac).is_some_and(Lease::is_held) {
                *of_mac = ip;
            }
        }
        self.changed.insert(ip);
        self.by_ip.insert(ip, lease);
    }

    /// Removes an address from all indices.
    pub(crate) fn take(&mut self, ip: Ipv4Addr) -> Option<Lease> {
        let lease = self.by_ip.remove(&ip)?;
        self.changed.insert(ip);
        self.expiry.remove(&(lease.until, ip));
        self.free.remove(&(lease.until, ip));
        if let Some((absence, since)) = self.absence(ip, &lease) {
            self.absent(absence).remove(&(since, ip));
        }
        self.unlink(lease.holder.mac, ip);
        if let Some(port) = self.by_port.get_mut(&lease.holder.place) {
            port.lasting.remove(&ip);
            port.passing.retain(|&other| other != ip);
            if port.lasting.is_empty() && port.passing.is_empty() {
                self.by_port.remove(&lease.holder.place);
            }
        }
        Some(lease)
    }

    /// Changes the lease of an address, if it has one.
    pub(crate) fn update(&mut self, ip: Ipv4Addr, change: impl FnOnce(&mut Lease)) {
        if let Some(mut lease) = self.take(ip) {
            change(&mut lease);
            self.put(ip, lease);
        }
    }

    /// Removes the record that a client has had a certain address.
    pub(crate) fn unlink(&mut self, mac: MacAddr, ip: Ipv4Addr) {
        if self.by_mac.get(&mac) == Some(&ip) {
            self.by_mac.remove(&mac);
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

    /// Returns whether this client may give back an address. It may if it holds the address and the
    /// host table has not had its MAC address at another port recently.
    pub(super) fn is_held_by(&self, now: Time, by: &Holder) -> bool {
        let settled = self.shown_since.is_none_or(|since| since + SETTLE <= now);
        self.is_held()
            && self.state != LeaseState::Declined
            && self.holder == *by
            && self.shown_at == Some(by.place)
            && settled
    }
}

#[cfg(test)]
mod tests {
    use super::super::topology::SwitchIndex;
    use super::*;
    use axon_wire::PortNo;

    impl Leases {
        /// Returns the number of all addresses, the number of clients with an address, and the
        /// number of offered and declined addresses at a port.
        ///
        /// # Panics
        /// If there is an address whose state neither ends nor is free.
        pub(crate) fn sizes(&self, at: Place) -> [usize; 3] {
            assert_eq!(self.expiry.len() + self.free.len(), self.by_ip.len());
            [self.by_ip.len(), self.by_mac.len(), self.by_port[&at].passing.len()]
        }
    }

    #[test]
    fn a_lease_leaves_no_trace_in_any_index_but_that_of_changes() {
        let place = |port| Place { switch: SwitchIndex(0), port: PortNo(port) };
        let ip = |number| Ipv4Addr::new(10, 0, 0, number);
        let states = [
            LeaseState::Offered,
            LeaseState::Bound,
            LeaseState::InUse,
            LeaseState::Declined,
            LeaseState::Free,
        ];
        let mut leases = Leases::new([ip(7)].into());
        for (number, state) in (0u8..).zip(states.iter().cycle().take(20)) {
            let mac = MacAddr([2, 0, 0, 0, 0, number % 4]);
            let holder = Holder { mac, client_id: Vec::new(), place: place(u16::from(number / 8)) };
            leases.put(ip(number), Lease::new(holder, *state, Time::ZERO));
            let at = [None, Some(place(0)), Some(place(9))][usize::from(number % 3)];
            leases.update(ip(number), |lease| {
                (lease.shown_at, lease.shown_since) = (at, Some(Time::ZERO));
            });
        }
        assert!(!leases.gone.is_empty() && !leases.settling.is_empty());
        assert!(leases.of(MacAddr([2, 0, 0, 0, 0, 1])).is_some_and(|(_, lease)| lease.is_held()));
        let all: Vec<Ipv4Addr> = leases.iter().map(|(ip, _)| ip).collect();
        assert!(all.iter().all(|&ip| leases.take(ip).is_some()));
        assert_eq!(leases.take_changed(), all.iter().copied().collect());
        let Leases { by_ip, by_mac, by_port, expiry, free, settling, gone, .. } = leases;
        assert!(by_ip.is_empty() && by_mac.is_empty() && by_port.is_empty());
        assert!([expiry, free, settling, gone].iter().all(BTreeSet::is_empty));
    }
}
