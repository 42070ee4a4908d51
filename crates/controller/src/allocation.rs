//! Address allocation: operations of the DHCP server and the host table on leases.

use super::hosts::Place;
use super::lease::{Due, Holder, Lease, LeaseState, Leases, SETTLE};
use alloc::vec::Vec;
use axon_wire::{MacAddr, Span, Time};
use core::net::{IpAddr, Ipv4Addr};

/// Duration of an offer. Clients request it within a second or two.
const OFFER: Span = Span::from_secs(10);
/// Time for which a declined address is not offered.
const QUARANTINE: Span = Span::from_secs(600);
/// Time for which a host must be gone before its lease is reclaimed for a client of another port;
/// as long as a reboot takes.
const RECLAIM: Span = Span::from_secs(60);
/// Maximum number of addresses examined for one offer. The next offer continues from there.
const TRIES_MAX: usize = 256;

impl Leases {
    /// Ends leases and states that expire by `now`, and handles hosts that have moved or gone.
    pub fn expire(&mut self, now: Time) {
        while let Some(&(until, ip)) = self.expiry.first()
            && until <= now
        {
            self.run_out(until, ip);
        }
        while let Some(&(since, ip)) = self.settling.first()
            && since + SETTLE <= now
        {
            self.settle(now, ip);
        }
    }

    /// Returns when to call [`Leases::expire`] next, if nothing else happens.
    pub fn deadline(&self) -> Option<Time> {
        self.settling.first().map(|&(since, _)| since + SETTLE)
    }

    /// Returns the actions that have become due since the last call.
    pub fn take_due(&mut self) -> Due {
        core::mem::take(&mut self.due)
    }

    /// Returns whether a port may hold one more address, if necessary that of a host that is gone.
    pub fn has_room(&self, now: Time, at: Place) -> bool {
        let held = self.by_port.get(&at).map_or(0, |port| port.lasting.len());
        held < self.per_port_max || self.longest_gone(now, at).is_some()
    }

    /// Offers an address of the pool: the client's own, its last one, the requested one, the one
    /// derived from its MAC address, or the next free one. `None` if there is none.
    pub fn offer(
        &mut self,
        now: Time,
        to: Holder,
        requested: Option<Ipv4Addr>,
    ) -> Option<Ipv4Addr> {
        let mac = to.mac;
        let own = self.by_mac.get(&mac).copied();
        let pointed_to = Some(self.pointed_to(mac)).filter(|ip| !self.by_ip.contains_key(ip));
        let mut wanted = [own, requested, pointed_to].into_iter().flatten();
        let ip = match wanted.find(|ip| self.in_pool(*ip) && !self.taken_from(mac, *ip)) {
            Some(ip) => ip,
            None => self.next_free(now)?,
        };
        // An offer of the client's own address does not change its lease.
        if !self.lasts_with(mac, ip) {
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
            } else if let Some(&(_, ip)) = self.free.first() {
                return Some(ip);
            } else {
                let &(since, ip) = self.gone.first()?;
                if since + RECLAIM > now {
                    return None;
                }
                self.reclaim(now, ip);
                ip
            };
            if self.in_pool(ip) && self.by_ip.get(&ip).is_none_or(|lease| !lease.is_held()) {
                return Some(ip);
            }
        }
        None
    }

    /// Leases an address to a client for `lease`. A client that has it already keeps its port.
    /// Returns `false` if the port holds the maximum.
    pub fn bind(&mut self, now: Time, to: Holder, ip: Ipv4Addr, lease: Span) -> bool {
        let mut bound = Lease::new(to, LeaseState::Bound, now + lease);
        if let Some(before) = self.by_ip.get(&ip)
            && before.is_lasting()
            && before.holder.mac == bound.holder.mac
        {
            if before.holder.place != bound.holder.place {
                bound.holder = before.holder.clone();
            }
            (bound.shown_at, bound.shown_since) = (before.shown_at, before.shown_since);
            bound.rival = before.rival;
        } else if self.counts(ip) && !self.make_room(now, bound.holder.place) {
            return false;
        }
        self.set(now, ip, bound);
        true
    }

    /// Quarantines an address, if this client holds it by an offer or a lease. Returns whether it
    /// did.
    pub fn decline(&mut self, now: Time, by: &Holder, ip: Ipv4Addr) -> bool {
        let given = |lease: &&Lease| lease.state != LeaseState::InUse && lease.is_held_by(now, by);
        let own = self.by_ip.get(&ip).filter(given).is_some();
        if own {
            self.take(ip);
            self.pass(ip, Lease::new(by.clone(), LeaseState::Declined, now + QUARANTINE));
        }
        own
    }

    /// Frees an address, if this client has a lease of it. Returns whether it did.
    pub fn release(&mut self, now: Time, by: &Holder, ip: Ipv4Addr) -> bool {
        let own = self
            .by_ip
            .get(&ip)
            .is_some_and(|lease| lease.state == LeaseState::Bound && lease.is_held_by(now, by));
        if own {
            self.set_free(now, ip);
        }
        own
    }

    /// Frees the address offered to a client, which has chosen another server.
    pub fn refuse(&mut self, now: Time, by: &Holder) {
        if let Some((ip, lease)) = self.of(by.mac)
            && lease.state == LeaseState::Offered
            && lease.is_held_by(now, by)
        {
            self.set_free(now, ip);
        }
    }

    /// Returns whether a host may use its source address. A free address of the pool becomes the
    /// host's own. A refused host is the next to get the address.
    pub fn claim(&mut self, now: Time, mac: MacAddr, at: Place, ip: Ipv4Addr) -> bool {
        self.expire(now);
        if self.lasts_with(mac, ip) {
            self.show(now, mac, Some(at), ip);
            return true;
        }
        if !self.is_used_at(at, ip) {
            if self.is_anothers(mac, at, ip) {
                if let Some(mut lease) = self.take(ip) {
                    lease.rival = Some(mac);
                    self.put(ip, lease);
                }
                return false;
            }
            if !self.in_pool(ip) {
                return true;
            }
            if !self.make_room(now, at) {
                return false;
            }
        }
        self.take(ip);
        let holder = Holder { mac, client_id: Vec::new(), place: at };
        self.put(ip, Lease::new(holder, LeaseState::InUse, now));
        true
    }

    /// Returns whether an address belongs to another host, so that a claim of this one is refused.
    pub fn is_anothers(&self, mac: MacAddr, at: Place, ip: Ipv4Addr) -> bool {
        let is_declined = |lease: &Lease| lease.state == LeaseState::Declined;
        let is_declined = self.by_ip.get(&ip).is_some_and(is_declined);
        self.taken_from(mac, ip) && !is_declined && !self.is_used_at(at, ip)
    }

    /// Returns whether a host at a port uses an address without a lease. Another host there may
    /// take it.
    fn is_used_at(&self, at: Place, ip: Ipv4Addr) -> bool {
        let lease = self.by_ip.get(&ip);
        lease.is_some_and(|l| l.state == LeaseState::InUse && l.holder.place == at)
    }

    /// Frees an address that a host without a lease no longer uses.
    pub fn abandon(&mut self, now: Time, mac: MacAddr, ip: Ipv4Addr) {
        let lease = self.by_ip.get(&ip);
        if lease.is_some_and(|l| l.state == LeaseState::InUse && l.holder.mac == mac) {
            self.set_free(now, ip);
        }
    }

    /// Records the port of a host in the host table, or that it has none. `ips` are its addresses.
    pub fn shown(&mut self, now: Time, mac: MacAddr, at: Option<Place>, ips: &[IpAddr]) {
        if let Some(&own) = self.by_mac.get(&mac) {
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
        if self.by_ip.get(&ip).is_some_and(|lease| news(lease) && lease.shown_at != at)
            && let Some(mut lease) = self.take(ip)
        {
            (lease.shown_at, lease.shown_since, lease.queried) = (at, Some(now), false);
            self.put(ip, lease);
        }
    }

    /// Ends an offer, a lease or a quarantine. A host that is still there continues to use its
    /// address without a lease.
    fn run_out(&mut self, now: Time, ip: Ipv4Addr) {
        match self.by_ip.get(&ip) {
            Some(lease) if lease.state == LeaseState::Bound && lease.shown_at.is_some() => {
                if let Some(mut lease) = self.take(ip) {
                    (lease.state, lease.until) = (LeaseState::InUse, now);
                    self.put(ip, lease);
                }
            }
            _ => self.set_free(now, ip),
        }
    }

    /// Handles a host that has been gone from its port, or at another one, for [`SETTLE`].
    fn settle(&mut self, now: Time, ip: Ipv4Addr) {
        let Some(lease) = self.by_ip.get(&ip) else { return };
        let (to, queried, leased) =
            (lease.shown_at, lease.queried, lease.state == LeaseState::Bound);
        let mut room = |to| !self.counts(ip) || self.make_room(now, to);
        let to = to.filter(|&to| !queried || room(to));
        let Some(mut lease) = self.take(ip) else { return };
        match to {
            Some(_) if !queried => {
                self.due.queries.push((lease.holder.place, lease.holder.mac, ip));
                (lease.queried, lease.shown_since) = (true, Some(now));
            }
            Some(to) => (lease.holder.place, lease.shown_since) = (to, None),
            // The host is gone, or its new port has no room.
            None => lease.shown_at = None,
        }
        self.put(ip, lease);
        if to.is_none() && !leased {
            self.set_free(now, ip);
        }
    }

    /// Returns the address at a port whose host has been gone longest, and at least for [`SETTLE`].
    fn longest_gone(&self, now: Time, at: Place) -> Option<Ipv4Addr> {
        let lasting = self.by_port.get(&at)?.lasting.iter();
        let gone = lasting.filter_map(|ip| {
            let lease = self.by_ip.get(ip).filter(|lease| lease.shown_at.is_none())?;
            Some((lease.shown_since?, *ip))
        });
        gone.min().filter(|&(since, _)| since + SETTLE <= now).map(|(_, ip)| ip)
    }

    fn make_room(&mut self, now: Time, at: Place) -> bool {
        let held = self.by_port.get(&at).map_or(0, |port| port.lasting.len());
        if held < self.per_port_max {
            return true;
        }
        let gone = self.longest_gone(now, at);
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
    use alloc::collections::{BTreeMap, BTreeSet};
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

    fn pool(first: u8, last: u8) -> Leases {
        Leases::new((ip(first), ip(last)), BTreeSet::new(), 16)
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
        assert_eq!(leases.by_port[&at(0, 0).place].passing.len(), 16);
        assert!(leases.by_ip.len() <= 40 && leases.by_mac.len() <= 40);
        assert_eq!(leases.expiry.len() + leases.free.len(), leases.by_ip.len());
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
        assert!(!leases.taken_from(at(0, 2).mac, ip(1)));
    }

    #[test]
    fn a_host_that_answers_on_a_declined_address_uses_it() {
        let mut leases = pool(1, 2);
        leases.offer(Time::ZERO, at(0, 1), None);
        assert!(leases.decline(Time::ZERO, &at(0, 1), ip(1)));
        assert!(leases.claim(Time::ZERO, at(1, 2).mac, at(1, 2).place, ip(1)));
        leases.expire(Time::ZERO + QUARANTINE);
        assert!(leases.taken_from(at(0, 1).mac, ip(1)));
    }
}
