//! The leases of the DHCP server: the state of each address and its owner.
//!
//! An address of the pool is *offered* for seconds, *bound* for a lease, or *declined*
//! (another host answers on it) for minutes. Then it is *free* again, and its last owner gets it
//! back unless another client needed it. Addresses never given yet go
//! first, then the one that has been free longest. Of the former a client gets the one that
//! its MAC points to, if it can: a controller that has forgotten all leases then gives each
//! client what it had before, and not what another still holds.
//!
//! Everything is bounded by the pool and the reservations: the only thing that an unknown
//! client adds is an entry for an address. One host port can hold a few offers and declined
//! addresses at a time, and beyond that gives up its oldest; so a host that invents clients
//! empties no pool.

use super::hosts::Place;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use axon_wire::{MacAddr, Span, Time};
use core::net::Ipv4Addr;

/// How long an offer is held: clients request it within a second or two.
const OFFER: Span = Span::from_secs(10);
/// How long a declined address is not offered.
const QUARANTINE: Span = Span::from_secs(600);
/// Offers and declined addresses that one host port may hold.
const HELD_MAX: usize = 16;
/// Free addresses looked at for one offer; the rest wait for the next.
const TRIES_MAX: usize = 256;

/// The state of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// Offered to a client, not yet requested.
    Offered,
    /// Leased to a client.
    Bound,
    /// In use by a host without a lease.
    Declined,
    /// Leased to no client; the last owner is kept.
    Free,
}

/// The state of an address, and its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The MAC of the owner, or of the last one.
    pub mac: MacAddr,
    /// The state of the address.
    pub state: LeaseState,
    /// The end of the state; for a free address, when it became free.
    pub until: Time,
    held_at: Option<Place>,
}

/// The addresses of a server.
#[derive(Clone, Debug)]
pub(super) struct Leases {
    by_ip: BTreeMap<Ipv4Addr, Lease>,
    by_mac: BTreeMap<MacAddr, Ipv4Addr>,
    expiry: BTreeSet<(Time, Ipv4Addr)>,
    free: BTreeSet<(Time, Ipv4Addr)>,
    held: BTreeMap<Place, VecDeque<Ipv4Addr>>,
    /// The first address that was never given, as a number; past `last` there is none.
    fresh: u64,
    first: u64,
    last: u64,
    excluded: BTreeSet<Ipv4Addr>,
}

impl Leases {
    /// A pool from `first` to `last`, without the `excluded` addresses.
    pub fn new(first: Ipv4Addr, last: Ipv4Addr, excluded: BTreeSet<Ipv4Addr>) -> Leases {
        let first = u64::from(u32::from(first));
        Leases {
            by_ip: BTreeMap::new(),
            by_mac: BTreeMap::new(),
            expiry: BTreeSet::new(),
            free: BTreeSet::new(),
            held: BTreeMap::new(),
            fresh: first,
            first,
            last: u64::from(u32::from(last)),
            excluded,
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (Ipv4Addr, &Lease)> {
        self.by_ip.iter().map(|(&ip, lease)| (ip, lease))
    }

    pub fn in_pool(&self, ip: Ipv4Addr) -> bool {
        (self.first..=self.last).contains(&u64::from(u32::from(ip))) && !self.excluded.contains(&ip)
    }

    /// The address that is offered or bound to a client.
    pub fn of(&self, mac: MacAddr) -> Option<(Ipv4Addr, LeaseState)> {
        let ip = *self.by_mac.get(&mac)?;
        let state = self.by_ip.get(&ip)?.state;
        (state != LeaseState::Free).then_some((ip, state))
    }

    /// Whether an address is offered or leased to another client, or declined.
    pub fn taken_from(&self, mac: MacAddr, ip: Ipv4Addr) -> bool {
        self.by_ip.get(&ip).is_some_and(|lease| match lease.state {
            LeaseState::Free => false,
            LeaseState::Declined => true,
            LeaseState::Offered | LeaseState::Bound => lease.mac != mac,
        })
    }

    /// Whether an address is leased to another client now.
    pub fn bound_to_another(&self, mac: MacAddr, ip: Ipv4Addr) -> bool {
        let lease = self.by_ip.get(&ip);
        lease.is_some_and(|lease| lease.state == LeaseState::Bound && lease.mac != mac)
    }

    /// Frees what has run out by `now`.
    pub fn expire(&mut self, now: Time) {
        while let Some(&(until, ip)) = self.expiry.first() {
            if until > now {
                break;
            }
            self.set_free(until, ip);
        }
    }

    /// Offers an address of the pool: the client's own, its last one, the one it asks for, the one
    /// its MAC points to, or the next free one for which `usable` holds. `None` if there is none.
    pub fn offer(
        &mut self,
        now: Time,
        at: Place,
        mac: MacAddr,
        requested: Option<Ipv4Addr>,
        usable: impl Fn(Ipv4Addr) -> bool,
    ) -> Option<Ipv4Addr> {
        let own = self.by_mac.get(&mac).copied();
        let pointed_to = Some(self.pointed_to(mac)).filter(|ip| !self.by_ip.contains_key(ip));
        let mut wanted = [own, requested, pointed_to].into_iter().flatten();
        let fits = |ip: &Ipv4Addr| self.in_pool(*ip) && !self.taken_from(mac, *ip) && usable(*ip);
        let ip = match wanted.find(fits) {
            Some(ip) => ip,
            None => self.next_free(now, usable)?,
        };
        // An offer of the address that a client has bound takes nothing from its lease.
        if self.of(mac) != Some((ip, LeaseState::Bound)) {
            self.set(now, ip, Lease::new(mac, LeaseState::Offered, now + OFFER, Some(at)));
        }
        Some(ip)
    }

    /// The address that a MAC points to, by the part that its maker counts up from one: MACs
    /// in a row point to addresses in a row.
    fn pointed_to(&self, mac: MacAddr) -> Ipv4Addr {
        let [_, _, _, d, e, f] = mac.0;
        let number = u64::from(u32::from_be_bytes([0, d, e, f]));
        let size = (self.last + 1).saturating_sub(self.first).max(1);
        Ipv4Addr::from((self.first + (number + size - 1) % size) as u32)
    }

    fn next_free(&mut self, now: Time, usable: impl Fn(Ipv4Addr) -> bool) -> Option<Ipv4Addr> {
        for _ in 0..TRIES_MAX {
            let ip = if self.fresh <= self.last {
                let ip = Ipv4Addr::from(self.fresh as u32);
                self.fresh += 1;
                ip
            } else {
                self.free.pop_first()?.1
            };
            if !self.in_pool(ip) || self.by_ip.get(&ip).is_some_and(Lease::is_held) {
                continue;
            }
            if usable(ip) {
                return Some(ip);
            }
            // Somebody without a lease uses it: look again when its turn comes.
            self.free.insert((now, ip));
            let last = self.by_ip.get_mut(&ip);
            last.into_iter().for_each(|lease| lease.until = now);
        }
        None
    }

    /// Gives a client an address for that long.
    pub fn bind(&mut self, now: Time, mac: MacAddr, ip: Ipv4Addr, lease: Span) {
        self.set(now, ip, Lease::new(mac, LeaseState::Bound, now + lease, None));
    }

    /// Does not offer an address for a while, if it was this client's. Returns whether it was.
    pub fn decline(&mut self, now: Time, at: Place, mac: MacAddr, ip: Ipv4Addr) -> bool {
        let own = self.of(mac).is_some_and(|(held, _)| held == ip);
        if own {
            self.set(now, ip, Lease::new(mac, LeaseState::Declined, now + QUARANTINE, Some(at)));
            self.by_mac.remove(&mac);
        }
        own
    }

    /// Frees a client's address, if it is bound to it.
    pub fn release(&mut self, now: Time, mac: MacAddr, ip: Ipv4Addr) -> bool {
        let own = self.of(mac) == Some((ip, LeaseState::Bound));
        if own {
            self.set_free(now, ip);
        }
        own
    }

    /// Frees what is only offered to a client: it has chosen another server.
    pub fn refuse(&mut self, now: Time, mac: MacAddr) {
        if let Some((ip, LeaseState::Offered)) = self.of(mac) {
            self.set_free(now, ip);
        }
    }

    fn set_free(&mut self, now: Time, ip: Ipv4Addr) {
        let Some(lease) = self.by_ip.get(&ip).copied() else {
            return;
        };
        let declined = lease.state == LeaseState::Declined;
        self.unset(ip);
        if self.in_pool(ip) {
            self.free.insert((now, ip));
            let free = Lease { state: LeaseState::Free, until: now, held_at: None, ..lease };
            self.by_ip.insert(ip, free);
            if !declined {
                self.by_mac.insert(lease.mac, ip);
            }
        }
    }

    fn set(&mut self, now: Time, ip: Ipv4Addr, lease: Lease) {
        self.unset(ip);
        if let Some(&other) = self.by_mac.get(&lease.mac) {
            // A client has one address: the one before becomes free, and nobody's.
            self.set_free(now, other);
        }
        self.by_ip.insert(ip, lease);
        self.by_mac.insert(lease.mac, ip);
        self.expiry.insert((lease.until, ip));
        let Some(at) = lease.held_at else { return };
        let held = self.held.entry(at).or_default();
        held.push_back(ip);
        if held.len() > HELD_MAX
            && let Some(oldest) = held.front().copied()
        {
            self.set_free(Time::ZERO, oldest);
        }
    }

    /// Forgets what an address is, everywhere.
    fn unset(&mut self, ip: Ipv4Addr) {
        let Some(lease) = self.by_ip.remove(&ip) else {
            return;
        };
        self.expiry.remove(&(lease.until, ip));
        self.free.remove(&(lease.until, ip));
        if self.by_mac.get(&lease.mac) == Some(&ip) {
            self.by_mac.remove(&lease.mac);
        }
        let Some(at) = lease.held_at else { return };
        if let Some(held) = self.held.get_mut(&at) {
            held.retain(|&other| other != ip);
            if held.is_empty() {
                self.held.remove(&at);
            }
        }
    }
}

impl Lease {
    const fn new(mac: MacAddr, state: LeaseState, until: Time, held_at: Option<Place>) -> Lease {
        Lease { mac, state, until, held_at }
    }

    fn is_held(&self) -> bool {
        self.state != LeaseState::Free
    }
}

#[cfg(test)]
mod tests {
    use super::super::topology::SwitchIndex;
    use super::*;
    use axon_wire::PortNo;

    fn ip(last: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, last)
    }

    fn mac(number: u32) -> MacAddr {
        let [a, b, c, d] = number.to_be_bytes();
        MacAddr([2, 0, a, b, c, d])
    }

    fn at(port: u16) -> Place {
        Place { switch: SwitchIndex(0), port: PortNo(port) }
    }

    fn pool(first: u8, last: u8) -> Leases {
        Leases::new(ip(first), ip(last), BTreeSet::new())
    }

    #[test]
    fn a_client_gets_its_old_address_back_until_another_needs_it() {
        let mut leases = pool(1, 2);
        let now = Time::ZERO;
        assert_eq!(leases.offer(now, at(0), mac(1), None, |_| true), Some(ip(1)));
        leases.bind(now, mac(1), ip(1), Span::from_secs(60));
        let later = now + Span::from_secs(61);
        leases.expire(later);
        assert_eq!(leases.offer(later, at(0), mac(2), None, |_| true), Some(ip(2)));
        assert_eq!(leases.offer(later, at(0), mac(1), None, |_| true), Some(ip(1)));
        assert_eq!(leases.offer(later, at(0), mac(3), None, |_| true), None);
        leases.expire(later + OFFER);
        assert_eq!(leases.offer(later + OFFER, at(0), mac(3), None, |_| true), Some(ip(1)));
    }

    #[test]
    fn a_pool_that_forgot_everything_gives_clients_what_they_had() {
        let give = |order: &mut dyn Iterator<Item = u32>| {
            let mut leases = pool(1, 200);
            order
                .map(|number| {
                    let offer = leases.offer(Time::ZERO, at(0), mac(number), None, |_| true);
                    (number, offer)
                })
                .collect::<BTreeMap<_, _>>()
        };
        assert_eq!(give(&mut (0..150)), give(&mut (0..150).rev()));
    }

    #[test]
    fn a_port_that_invents_clients_holds_few_offers_and_little_memory() {
        let mut leases = pool(1, 40);
        for number in 0..10_000 {
            assert!(leases.offer(Time::ZERO, at(0), mac(number), None, |_| true).is_some());
        }
        assert_eq!(leases.held[&at(0)].len(), HELD_MAX);
        assert!(leases.by_ip.len() <= 40 && leases.by_mac.len() <= 40);
        assert_eq!(leases.expiry.len() + leases.free.len(), leases.by_ip.len());
        assert!(leases.offer(Time::ZERO, at(1), mac(77_777), None, |_| true).is_some());
    }

    #[test]
    fn a_declined_address_is_left_alone_for_a_while() {
        let mut leases = pool(1, 2);
        let now = Time::ZERO;
        leases.offer(now, at(0), mac(1), None, |_| true);
        assert!(!leases.decline(now, at(0), mac(2), ip(1)), "not its address");
        assert!(leases.decline(now, at(0), mac(1), ip(1)));
        assert_eq!(leases.offer(now, at(0), mac(1), Some(ip(1)), |_| true), Some(ip(2)));
        leases.expire(now + QUARANTINE);
        assert!(!leases.taken_from(mac(2), ip(1)));
    }

    #[test]
    fn an_address_in_use_is_passed_over_and_looked_at_again() {
        let mut leases = pool(1, 2);
        let taken = |address| address != ip(1);
        assert_eq!(leases.offer(Time::ZERO, at(0), mac(1), None, taken), Some(ip(2)));
        assert_eq!(leases.offer(Time::ZERO, at(0), mac(2), Some(ip(1)), taken), None);
        assert_eq!(leases.offer(Time::ZERO, at(0), mac(2), None, |_| true), Some(ip(1)));
    }
}
