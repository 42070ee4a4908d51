//! Address allocation: the operations on leases that the DHCP server and the host table need.

use super::hosts::Place;
use super::leases4::{Holder, Lease, LeaseState, Leases};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use axon_wire::{MacAddr, Span, Time};
use core::net::{IpAddr, Ipv4Addr};

/// Duration of an offer. A client requests the offered address within a second or two.
const OFFER: Span = Span::from_secs(10);
/// Time for which a declined address is not offered.
const QUARANTINE: Span = Span::from_secs(600);
/// Time for which a host must be gone before its lease is reclaimed for a client at another port.
/// It is about as long as a reboot.
const RECLAIM: Span = Span::from_secs(60);
/// Maximum number of addresses examined for one offer. The next offer continues from there.
const TRIES_MAX: usize = 256;

/// Maximum number of offered and declined addresses at one host port.
const HELD_MAX: usize = 16;

/// Actions on addresses for the controller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// Addresses that have become free, each with the host that was last refused it, if any.
    pub free: Vec<(Ipv4Addr, MacAddr)>,
    /// Holders that the host table has at another port. They are to be queried at the port of their
    /// lease.
    pub queries: Vec<(Place, MacAddr, Ipv4Addr)>,
}

/// Leases of a server, together with its address pool.
#[derive(Clone, Debug)]
pub(super) struct Allocation {
    leases: Leases,
    /// First and last address of the pool, as numbers.
    first: u64,
    last: u64,
    /// First address that was never leased, as a number. A number above `last` means that there is
    /// none left.
    fresh: u64,
    per_port_max: usize,
    due: Due,
    reclaimed: u64,
}

impl Allocation {
    /// Creates a pool from `first` to `last`, without the `excluded` addresses. One port holds at
    /// most `per_port_max` of them.
    pub(crate) fn new(
        (first, last): (Ipv4Addr, Ipv4Addr),
        excluded: BTreeSet<Ipv4Addr>,
        per_port_max: usize,
    ) -> Allocation {
        let first = u64::from(u32::from(first));
        Allocation {
            leases: Leases::new(excluded),
            first,
            last: u64::from(u32::from(last)),
            fresh: first,
            per_port_max,
            due: Due::default(),
            reclaimed: 0,
        }
    }

    /// Returns the leases.
    pub(crate) const fn leases(&self) -> &Leases {
        &self.leases
    }

    /// Returns the leases for a change that allocates no address.
    pub(crate) const fn leases_mut(&mut self) -> &mut Leases {
        &mut self.leases
    }

    pub(crate) fn in_pool(&self, ip: Ipv4Addr) -> bool {
        (self.first..=self.last).contains(&u64::from(u32::from(ip))) && self.leases.counts(ip)
    }

    /// Restores a stored address. `shown_at` is the owner's port in the host table.
    pub(crate) fn restore(
        &mut self,
        now: Time,
        ip: Ipv4Addr,
        mut lease: Lease,
        shown_at: Option<Place>,
    ) {
        lease.shown_at = shown_at;
        lease.shown_since = (shown_at != Some(lease.holder.place)).then_some(now);
        self.leases.put(ip, lease);
        let is_known = |ip: u32| self.leases.get(ip.into()).is_some();
        while u32::try_from(self.fresh).is_ok_and(is_known) {
            self.fresh += 1;
        }
    }

    /// Returns the number of leases of absent hosts that were reclaimed for other clients.
    pub(crate) const fn reclaimed(&self) -> u64 {
        self.reclaimed
    }

    fn set_free(&mut self, now: Time, ip: Ipv4Addr) {
        let Some(lease) = self.leases.take(ip) else { return };
        if let Some(rival) = lease.rival {
            self.due.free.push((ip, rival));
        }
        if self.in_pool(ip) {
            let was_declined = lease.state == LeaseState::Declined;
            let mac = lease.holder.mac;
            self.leases.put(ip, Lease::new(lease.holder, LeaseState::Free, now));
            if was_declined {
                self.leases.unlink(mac, ip);
            }
        }
    }

    /// Gives an address to a client. A client has one lease, so its previous address becomes free.
    fn set(&mut self, now: Time, ip: Ipv4Addr, lease: Lease) {
        self.leases.take(ip);
        let mac = lease.holder.mac;
        if let Some(other) = self.leases.last_of(mac) {
            if self.leases.get(other).is_some_and(|other| other.state != LeaseState::InUse) {
                self.set_free(now, other);
            }
            self.leases.unlink(mac, other);
        }
        self.pass(ip, lease);
    }

    /// Inserts a new address. If a port has too many offered or declined addresses, the oldest of
    /// them becomes free.
    fn pass(&mut self, ip: Ipv4Addr, lease: Lease) {
        let at = lease.holder.place;
        self.leases.put(ip, lease);
        if let Some(oldest) = self.leases.surplus_at(at, HELD_MAX.min(self.per_port_max)) {
            self.set_free(Time::ZERO, oldest);
        }
    }

    /// Ends the leases and states that expire by `now`, and handles hosts that have moved or are
    /// gone.
    pub(crate) fn expire(&mut self, now: Time) {
        while let Some((until, ip)) = self.leases.next_expiry()
            && until <= now
        {
            self.run_out(until, ip);
        }
        while let Some((until, ip)) = self.leases.next_settled()
            && until <= now
        {
            self.settle(now, ip);
        }
    }

    /// Returns when to call [`Allocation::expire`] next, if nothing else happens.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.leases.next_settled().map(|(until, _)| until)
    }

    /// Returns the actions that have become due since the last call.
    pub(crate) fn take_due(&mut self) -> Due {
        core::mem::take(&mut self.due)
    }

    /// Returns whether a port may hold one more address, if necessary after the lease of a host
    /// that is gone has been reclaimed.
    pub(crate) fn has_room(&self, now: Time, at: Place) -> bool {
        self.leases.lasting_at(at) < self.per_port_max
            || self.leases.longest_gone_at(now, at).is_some()
    }

    /// Offers a pool address. In order of preference, it is the client's own address, its last one,
    /// the requested one, the one derived from its MAC address, or the next free one. Returns
    /// `None` if there is none.
    pub(crate) fn offer(
        &mut self,
        now: Time,
        to: Holder,
        requested: Option<Ipv4Addr>,
    ) -> Option<Ipv4Addr> {
        let mac = to.mac;
        let own = self.leases.last_of(mac);
        let pointed_to = Some(self.pointed_to(mac)).filter(|ip| self.leases.get(*ip).is_none());
        let mut wanted = [own, requested, pointed_to].into_iter().flatten();
        let ip = match wanted.find(|ip| self.in_pool(*ip) && !self.leases.taken_from(mac, *ip)) {
            Some(ip) => ip,
            None => self.next_free(now)?,
        };
        // Offering a client its own address does not change its lease.
        if !self.leases.lasts_with(mac, ip) {
            self.set(now, ip, Lease::new(to, LeaseState::Offered, now + OFFER));
        }
        Some(ip)
    }

    /// Derives an address from the serial part of a MAC address, so that consecutive MAC addresses
    /// yield consecutive IP addresses.
    fn pointed_to(&self, mac: MacAddr) -> Ipv4Addr {
        let [_, _, _, d, e, f] = mac.0;
        let number = u64::from(u32::from_be_bytes([0, d, e, f]));
        let size = (self.last + 1).saturating_sub(self.first).max(1);
        Ipv4Addr::from((self.first + (number + size - 1) % size) as u32)
    }

    fn next_free(&mut self, now: Time) -> Option<Ipv4Addr> {
        for _ in 0..TRIES_MAX {
            let ip = if self.fresh <= self.last {
                let ip = Ipv4Addr::from(self.fresh as u32);
                self.fresh += 1;
                ip
            } else if let Some(ip) = self.leases.longest_free() {
                return Some(ip);
            } else {
                let (since, ip) = self.leases.longest_gone()?;
                if since + RECLAIM > now {
                    return None;
                }
                self.reclaim(now, ip);
                ip
            };
            if self.in_pool(ip) && self.leases.get(ip).is_none_or(|lease| !lease.is_held()) {
                return Some(ip);
            }
        }
        None
    }

    /// Leases an address to a client for the duration `lease`. A client that already has the
    /// address keeps its port. Returns `false` if the port holds the maximum number of addresses.
    pub(crate) fn bind(&mut self, now: Time, to: Holder, ip: Ipv4Addr, lease: Span) -> bool {
        let mut bound = Lease::new(to, LeaseState::Bound, now + lease);
        if let Some(before) = self.leases.get(ip)
            && before.is_lasting()
            && before.holder.mac == bound.holder.mac
        {
            if before.holder.place != bound.holder.place {
                bound.holder = before.holder.clone();
            }
            (bound.shown_at, bound.shown_since) = (before.shown_at, before.shown_since);
            bound.rival = before.rival;
        } else if self.leases.counts(ip) && !self.make_room(now, bound.holder.place) {
            return false;
        }
        self.set(now, ip, bound);
        true
    }

    /// Quarantines an address, if it is offered or leased to this client. Returns whether it was.
    pub(crate) fn decline(&mut self, now: Time, by: &Holder, ip: Ipv4Addr) -> bool {
        let given = |lease: &&Lease| lease.state != LeaseState::InUse && lease.is_held_by(now, by);
        let own = self.leases.get(ip).filter(given).is_some();
        if own {
            self.leases.take(ip);
            self.pass(ip, Lease::new(by.clone(), LeaseState::Declined, now + QUARANTINE));
        }
        own
    }

    /// Frees an address, if it is leased to this client. Returns whether it was.
    pub(crate) fn release(&mut self, now: Time, by: &Holder, ip: Ipv4Addr) -> bool {
        let own = self
            .leases
            .get(ip)
            .is_some_and(|lease| lease.state == LeaseState::Bound && lease.is_held_by(now, by));
        if own {
            self.set_free(now, ip);
        }
        own
    }

    /// Frees the address offered to a client that has chosen another server.
    pub(crate) fn refuse(&mut self, now: Time, by: &Holder) {
        if let Some((ip, lease)) = self.leases.of(by.mac)
            && lease.state == LeaseState::Offered
            && lease.is_held_by(now, by)
        {
            self.set_free(now, ip);
        }
    }

    /// Returns whether a host may use its source address. A free address of the pool becomes the
    /// host's own. A host that is refused is next in line for the address.
    pub(crate) fn claim(&mut self, now: Time, mac: MacAddr, at: Place, ip: Ipv4Addr) -> bool {
        self.expire(now);
        if self.leases.lasts_with(mac, ip) {
            self.show(now, mac, Some(at), ip);
            return true;
        }
        if !self.leases.is_used_at(at, ip) {
            if self.leases.is_anothers(mac, at, ip) {
                self.leases.update(ip, |lease| lease.rival = Some(mac));
                return false;
            }
            if !self.in_pool(ip) {
                return true;
            }
            if !self.make_room(now, at) {
                return false;
            }
        }
        self.leases.take(ip);
        let holder = Holder { mac, client_id: Vec::new(), place: at };
        self.leases.put(ip, Lease::new(holder, LeaseState::InUse, now));
        true
    }

    /// Frees an address that was used without a lease, when its host no longer uses it.
    pub(crate) fn abandon(&mut self, now: Time, mac: MacAddr, ip: Ipv4Addr) {
        let lease = self.leases.get(ip);
        if lease.is_some_and(|l| l.state == LeaseState::InUse && l.holder.mac == mac) {
            self.set_free(now, ip);
        }
    }

    /// Records the port where the host table has a host, or that it has none. `ips` are the
    /// addresses of the host.
    pub(crate) fn shown(&mut self, now: Time, mac: MacAddr, at: Option<Place>, ips: &[IpAddr]) {
        if let Some(own) = self.leases.last_of(mac) {
            self.show(now, mac, at, own);
        }
        for ip in ips {
            if let IpAddr::V4(ip) = *ip {
                self.show(now, mac, at, ip);
            }
        }
    }

    fn show(&mut self, now: Time, mac: MacAddr, at: Option<Place>, ip: Ipv4Addr) {
        let news = |lease: &Lease| lease.is_lasting() && lease.holder.mac == mac;
        if self.leases.get(ip).is_some_and(|lease| news(lease) && lease.shown_at != at) {
            self.leases.update(ip, |lease| {
                (lease.shown_at, lease.shown_since, lease.queried) = (at, Some(now), false);
            });
        }
    }

    /// Ends an offer, a lease or a quarantine. A host that is still present continues to use its
    /// address without a lease.
    fn run_out(&mut self, now: Time, ip: Ipv4Addr) {
        match self.leases.get(ip) {
            Some(lease) if lease.state == LeaseState::Bound && lease.shown_at.is_some() => {
                let in_use = (LeaseState::InUse, now);
                self.leases.update(ip, |lease| (lease.state, lease.until) = in_use);
            }
            _ => self.set_free(now, ip),
        }
    }

    /// Handles a host that has been gone from its port, or has been at another port, for long
    /// enough to count.
    fn settle(&mut self, now: Time, ip: Ipv4Addr) {
        let Some(lease) = self.leases.get(ip) else { return };
        let (to, queried, leased) =
            (lease.shown_at, lease.queried, lease.state == LeaseState::Bound);
        let mut room = |to| !self.leases.counts(ip) || self.make_room(now, to);
        let to = to.filter(|&to| !queried || room(to));
        let Some(mut lease) = self.leases.take(ip) else { return };
        match to {
            Some(_) if !queried => {
                self.due.queries.push((lease.holder.place, lease.holder.mac, ip));
                (lease.queried, lease.shown_since) = (true, Some(now));
            }
            Some(to) => (lease.holder.place, lease.shown_since) = (to, None),
            // The host is gone, or its new port has no room.
            None => lease.shown_at = None,
        }
        self.leases.put(ip, lease);
        if to.is_none() && !leased {
            self.set_free(now, ip);
        }
    }

    fn make_room(&mut self, now: Time, at: Place) -> bool {
        if self.leases.lasting_at(at) < self.per_port_max {
            return true;
        }
        let gone = self.leases.longest_gone_at(now, at);
        gone.into_iter().for_each(|ip| self.reclaim(now, ip));
        gone.is_some()
    }

    fn reclaim(&mut self, now: Time, ip: Ipv4Addr) {
        self.reclaimed += 1;
        self.set_free(now, ip);
    }
}

#[cfg(test)]
mod tests {
    use super::super::topology::SwitchIndex;
    use super::*;
    use alloc::collections::BTreeMap;
    use axon_wire::PortNo;

    fn ip(last: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, last)
    }

    /// Returns a client at a port.
    fn at(port: u16, number: u32) -> Holder {
        let [a, b, c, d] = number.to_be_bytes();
        let place = Place { switch: SwitchIndex(0), port: PortNo(port) };
        Holder { mac: MacAddr([2, 0, a, b, c, d]), client_id: Vec::new(), place }
    }

    fn pool(first: u8, last: u8) -> Allocation {
        Allocation::new((ip(first), ip(last)), BTreeSet::new(), 16)
    }

    #[test]
    fn a_client_gets_its_old_address_back_until_another_needs_it() {
        let mut leases = pool(1, 2);
        let now = Time::ZERO;
        assert_eq!(leases.offer(now, at(0, 1), None), Some(ip(1)));
        leases.bind(now, at(0, 1), ip(1), Span::from_secs(60));
        leases.shown(now, at(0, 1).mac, None, &[]);
        let later = now + Span::from_secs(61);
        leases.expire(later);
        assert_eq!(leases.offer(later, at(0, 2), None), Some(ip(2)));
        assert_eq!(leases.offer(later, at(0, 1), None), Some(ip(1)));
        assert_eq!(leases.offer(later, at(0, 3), None), None);
        leases.expire(later + OFFER);
        assert_eq!(leases.offer(later + OFFER, at(0, 3), None), Some(ip(1)));
    }

    #[test]
    fn a_pool_that_forgot_everything_gives_clients_what_they_had() {
        let give = |order: &mut dyn Iterator<Item = u32>| {
            let mut leases = pool(1, 200);
            order
                .map(|number| (number, leases.offer(Time::ZERO, at(0, number), None)))
                .collect::<BTreeMap<_, _>>()
        };
        assert_eq!(give(&mut (0..150)), give(&mut (0..150).rev()));
    }

    #[test]
    fn a_port_that_invents_clients_holds_few_offers_and_little_memory() {
        let mut leases = pool(1, 40);
        for number in 0..10_000 {
            assert!(leases.offer(Time::ZERO, at(0, number), None).is_some());
        }
        let [all, clients, passing] = leases.leases().sizes(at(0, 0).place);
        assert!(passing == 16 && all <= 40 && clients <= 40);
        assert!(leases.offer(Time::ZERO, at(1, 77_777), None).is_some());
    }

    #[test]
    fn a_declined_address_is_left_alone_for_a_while() {
        let mut leases = pool(1, 2);
        let now = Time::ZERO;
        leases.offer(now, at(0, 1), None);
        assert!(!leases.decline(now, &at(0, 2), ip(1)), "not its address");
        assert!(leases.decline(now, &at(0, 1), ip(1)));
        assert_eq!(leases.offer(now, at(0, 1), Some(ip(1))), Some(ip(2)));
        leases.expire(now + QUARANTINE);
        assert!(!leases.leases().taken_from(at(0, 2).mac, ip(1)));
    }

    #[test]
    fn a_host_that_answers_on_a_declined_address_uses_it() {
        let mut leases = pool(1, 2);
        leases.offer(Time::ZERO, at(0, 1), None);
        assert!(leases.decline(Time::ZERO, &at(0, 1), ip(1)));
        assert!(leases.claim(Time::ZERO, at(1, 2).mac, at(1, 2).place, ip(1)));
        leases.expire(Time::ZERO + QUARANTINE);
        assert!(leases.leases().taken_from(at(0, 1).mac, ip(1)));
    }
}
