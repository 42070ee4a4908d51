//! Host table: the location of each host, and the addresses it owns.
//!
//! A switch *claims* a host by reporting it on its reliable stream, and withdraws the claim on the
//! same stream. The streams of different switches are not ordered relative to one another. So a
//! host that moves may be claimed by two switches for a while, and the older claim may be withdrawn
//! before or after the newer one is made. All claims are kept. The newest one is the host's
//! location. When it is withdrawn, the next newest takes its place. So a late message from the old
//! switch cannot remove the host.
//!
//! A claim from the controller's store, or of a switch's previous incarnation, is *remembered*. It
//! is provisional until the switch reports the host, and is withdrawn after a timeout if the switch
//! does not.
//!
//! Requests (datagrams) only add hosts that no switch has claimed yet. Such a claim expires unless
//! a report confirms it, so a late request has no lasting effect.

mod claimed;
mod remembered;

use super::bounds::{HOSTS_PER_PORT_MAX, HOSTS_PER_SWITCH_MAX};
use super::changed::Changed;
use super::topology::SwitchIndex;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_link::config::IPS_PER_HOST_MAX;
use axon_wire::{MacAddr, PortNo, Span, Time};
use claimed::Claimed;
use core::net::IpAddr;

/// Minimum interval between two queries at the older one of two claimed locations.
const VERIFY_PAUSE: Span = Span::from_secs(1);
/// Lifetime of a claim that was made by a request and that no report has confirmed.
const UNCONFIRMED: Span = Span::from_secs(5);
/// Maximum number of claims kept for one host; the oldest is evicted.
const CLAIMS_MAX: usize = 8;

/// Host port on a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Switch index.
    pub switch: SwitchIndex,
    /// Port number.
    pub port: PortNo,
}

impl Place {
    /// The lowest place in the order.
    pub(super) const FIRST: Place = Place { switch: SwitchIndex(0), port: PortNo(0) };

    /// The highest place in the order.
    pub(super) const LAST: Place = Place { switch: SwitchIndex(u32::MAX), port: PortNo(u16::MAX) };

    const fn key(self) -> (SwitchIndex, PortNo) {
        (self.switch, self.port)
    }
}

/// Index of a host in the host table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostIndex(pub u32);

impl HostIndex {
    /// Returns the index as `usize`.
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Entry of the host table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// MAC address.
    pub mac: MacAddr,
    /// IP addresses, newest last.
    pub ips: Vec<IpAddr>,
    /// Claims, never empty. The last is the location of the host.
    claims: Vec<Claim>,
    /// Time when a move was last verified.
    verified_at: Option<Time>,
    /// Location that was queried at that time, until the host is reported from there.
    queried: Option<Place>,
    /// Time of the next query.
    verify_due: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Claim {
    place: Place,
    /// Expiry of the claim. `None` for a report, and for a remembered claim until its switch is
    /// first received.
    until: Option<Time>,
    /// True if the claim comes from the store or from an earlier incarnation of its switch, and no
    /// report has followed.
    remembered: bool,
}

impl Host {
    /// Returns the location of the host: its newest claim.
    pub fn place(&self) -> Place {
        self.claims[self.claims.len() - 1].place
    }

    /// Returns whether a switch claims the host at a place, even if another switch has a newer
    /// claim.
    pub(super) fn is_claimed_at(&self, place: Place) -> bool {
        self.claims.iter().any(|claim| claim.place == place)
    }

    /// Returns the location that was queried last, until the host is reported from there.
    pub(super) fn queried(&self) -> Option<Place> {
        self.queried
    }

    /// Returns whether the location comes from the store or from an earlier incarnation of its
    /// switch, and no report has followed.
    pub fn is_provisional(&self) -> bool {
        self.claims[self.claims.len() - 1].remembered
    }

    /// Returns whether the location is stored. A location known only from a request is not.
    pub(super) fn is_kept(&self) -> bool {
        let claim = &self.claims[self.claims.len() - 1];
        claim.remembered || claim.until.is_none()
    }
}

/// Result of learning a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learned {
    /// The MAC address is not that of a host, or a request cannot move the host.
    Refused,
    /// The switch or the port has the maximum number of claims already.
    Full,
    /// The host is at its old location, or it is new.
    Here(HostIndex),
    /// The host has moved.
    Moved(HostIndex),
}

/// Result of withdrawing a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withdrawn {
    /// Nothing has changed, because the host is unknown or at another location.
    Nothing,
    /// The host is now at the location of an older claim.
    Moved(HostIndex),
    /// No claim is left. Call `HostTable::forget` once the flows of the host are removed.
    Gone(HostIndex),
}

/// Table of all hosts in the fabric.
#[derive(Clone, Debug)]
pub struct HostTable {
    server: (MacAddr, IpAddr),
    by_mac: BTreeMap<MacAddr, HostIndex>,
    by_ip: BTreeMap<IpAddr, HostIndex>,
    slots: Vec<Option<Host>>,
    free: Vec<HostIndex>,
    unconfirmed: BTreeSet<(Time, MacAddr, Place)>,
    /// Hosts whose last move is to be verified, with the times of verification.
    unverified: BTreeSet<(Time, MacAddr)>,
    /// Hosts whose stored entry may have changed.
    changed: Changed,
    /// True if any host was restored from the store.
    remembers: bool,
    /// Number of claims of each switch and port.
    claims: Claimed,
}

/// Result of assigning an address to a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owned {
    /// Previous owner of the address. Edges must stop answering ARP for it.
    pub before: Option<HostIndex>,
    /// Address that the host has lost because it had too many.
    pub surplus: Option<IpAddr>,
}

impl HostTable {
    /// Creates an empty table. The server's MAC and IP addresses belong to no host.
    pub(crate) fn new(server_mac: MacAddr, server_ip: IpAddr) -> HostTable {
        HostTable {
            server: (server_mac, server_ip),
            by_mac: BTreeMap::new(),
            by_ip: BTreeMap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            unconfirmed: BTreeSet::new(),
            unverified: BTreeSet::new(),
            changed: Changed::default(),
            remembers: false,
            claims: Claimed::default(),
        }
    }

    /// Returns the hosts whose stored entry may have changed since the last call, sorted by MAC
    /// address.
    pub(super) fn take_changed(&mut self) -> Vec<MacAddr> {
        self.changed.take()
    }

    /// Returns the number of hosts.
    pub fn len(&self) -> usize {
        self.by_mac.len()
    }

    /// Returns whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.by_mac.is_empty()
    }

    /// Returns all hosts, sorted by MAC address.
    pub fn iter(&self) -> impl Iterator<Item = (HostIndex, &Host)> {
        self.by_mac.values().filter_map(|&index| Some((index, self.get(index)?)))
    }

    /// Returns the host with this index, if there is one.
    pub fn get(&self, index: HostIndex) -> Option<&Host> {
        self.slots.get(index.index())?.as_ref()
    }

    /// Returns the host with this MAC address.
    pub fn by_mac(&self, mac: MacAddr) -> Option<HostIndex> {
        self.by_mac.get(&mac).copied()
    }

    /// Returns the host that owns this address.
    pub fn by_ip(&self, ip: IpAddr) -> Option<HostIndex> {
        self.by_ip.get(&ip).copied()
    }

    /// Records a report from a switch that `mac` is at `place`.
    pub(crate) fn report(&mut self, place: Place, mac: MacAddr) -> Learned {
        let Some(index) = self.by_mac(mac) else {
            return self.add(place, mac, None);
        };
        let full = self.is_full(place);
        let Some(host) = self.slots[index.index()].as_mut() else {
            return Learned::Refused;
        };
        let before = host.place();
        if let Some(at) = host.claims.iter().position(|claim| claim.place == place) {
            let claim = host.claims.remove(at);
            if let Some(until) = claim.until {
                self.unconfirmed.remove(&(until, mac, place));
                self.changed.push(mac);
            }
        } else if full {
            return Learned::Full;
        } else {
            self.claims.add(place.key(), mac);
        }
        if before != place {
            self.changed.push(mac);
        }
        host.claims.push(Claim { place, until: None, remembered: false });
        if host.claims.len() > CLAIMS_MAX {
            let oldest = host.claims.remove(0);
            self.claims.remove(oldest.place.key(), mac);
            if let Some(until) = oldest.until {
                self.unconfirmed.remove(&(until, mac, oldest.place));
            }
        }
        if before == place { Learned::Here(index) } else { Learned::Moved(index) }
    }

    /// Records a request that `mac` has sent at `place`.
    pub(crate) fn request(&mut self, now: Time, place: Place, mac: MacAddr) -> Learned {
        match self.by_mac(mac) {
            None => self.add(place, mac, Some(now + UNCONFIRMED)),
            Some(index) if self.get(index).is_some_and(|host| host.place() == place) => {
                Learned::Here(index)
            }
            Some(_) => Learned::Refused,
        }
    }

    /// Returns whether a port or its switch has the maximum number of claims.
    fn is_full(&self, place: Place) -> bool {
        self.is_port_full(place) || self.claims_of(place.switch) >= HOSTS_PER_SWITCH_MAX
    }

    /// Returns whether a port has the maximum number of claims.
    pub(super) fn is_port_full(&self, place: Place) -> bool {
        self.claims.at(place.key()) >= HOSTS_PER_PORT_MAX
    }

    /// Returns the number of claims by a switch, over all its ports.
    pub fn claims_of(&self, switch: SwitchIndex) -> usize {
        self.claims.of(switch)
    }

    /// Returns the hosts located at this port, sorted by MAC address.
    pub(crate) fn hosts_at(&self, place: Place) -> impl Iterator<Item = &Host> {
        let claimed = self.claims.hosts_at(place.key());
        let hosts = claimed.filter_map(|mac| self.get(self.by_mac(mac)?));
        hosts.filter(move |host| host.place() == place)
    }

    fn add(&mut self, place: Place, mac: MacAddr, until: Option<Time>) -> Learned {
        if !mac.is_unicast() || mac == self.server.0 {
            return Learned::Refused;
        }
        if self.is_full(place) {
            return Learned::Full;
        }
        self.claims.add(place.key(), mac);
        let host = Host {
            mac,
            ips: Vec::new(),
            claims: [Claim { place, until, remembered: false }].into(),
            verified_at: None,
            queried: None,
            verify_due: None,
        };
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            HostIndex((self.slots.len() - 1) as u32)
        });
        self.slots[index.index()] = Some(host);
        self.by_mac.insert(mac, index);
        self.changed.push(mac);
        if let Some(until) = until {
            self.unconfirmed.insert((until, mac, place));
        }
        Learned::Here(index)
    }

    /// Returns the location of a host before its last move, with the address to query. Returns
    /// `None` if there is nothing to query, or if the move is the answer to the last query and came
    /// within a second. The next query is deferred if the last one was less than a second ago, see
    /// `HostTable::verify_due`.
    ///
    /// A host that returns later than that has moved again. The location that it has left must then
    /// be queried, because otherwise the edge there would not report the host when it returns.
    pub fn verify(&mut self, now: Time, index: HostIndex) -> Option<(MacAddr, Place, IpAddr)> {
        let host = self.slots.get_mut(index.index())?.as_mut()?;
        if let Some(due) = host.verify_due.take() {
            self.unverified.remove(&(due, host.mac));
        }
        let place = host.claims[host.claims.len() - 1].place;
        let soon = host.verified_at.is_some_and(|at| now.since(at) < VERIFY_PAUSE);
        if host.queried.take_if(|queried| *queried == place).is_some() && soon {
            return None;
        }
        let before = host.claims.iter().rev().nth(1)?.place;
        let ip = *host.ips.last()?;
        if let Some(at) = host.verified_at.filter(|&at| now.since(at) < VERIFY_PAUSE) {
            host.verify_due = Some(at + VERIFY_PAUSE);
            self.unverified.insert((at + VERIFY_PAUSE, host.mac));
            return None;
        }
        (host.verified_at, host.queried) = (Some(now), Some(before));
        Some((host.mac, before, ip))
    }

    /// Records that a host has been queried at a place. Its next report from there is the answer
    /// and is not verified.
    pub(crate) fn queried(&mut self, now: Time, mac: MacAddr, at: Place) {
        let slot = self.by_mac(mac).and_then(|index| self.slots.get_mut(index.index()));
        if let Some(host) = slot.and_then(Option::as_mut) {
            (host.verified_at, host.queried) = (Some(now), Some(at));
        }
    }

    /// Returns a host whose last move is to be verified now, if there is one.
    pub(crate) fn verify_due(&self, now: Time) -> Option<HostIndex> {
        let &(due, mac) = self.unverified.first()?;
        self.by_mac(mac).filter(|_| due <= now)
    }

    /// Makes `index` the owner of `ip`. A host with too many addresses loses its oldest, but never
    /// `keep`.
    pub(crate) fn own(&mut self, index: HostIndex, ip: IpAddr, keep: Option<IpAddr>) -> Owned {
        let plain = match ip {
            IpAddr::V4(ip) => !ip.is_broadcast(),
            IpAddr::V6(_) => true,
        };
        let usable = plain && !ip.is_unspecified() && !ip.is_multicast() && !ip.is_loopback();
        if !usable || ip == self.server.1 || self.by_ip(ip) == Some(index) {
            return Owned::default();
        }
        let before = self.by_ip(ip);
        if let Some(before) = before {
            self.disown(before, ip);
        }
        let Some(host) = self.slots.get_mut(index.index()).and_then(Option::as_mut) else {
            return Owned { before, surplus: None };
        };
        host.ips.push(ip);
        let full = host.ips.len() > IPS_PER_HOST_MAX;
        let oldest = host.ips.iter().position(|&other| Some(other) != keep).filter(|_| full);
        let surplus = oldest.map(|at| host.ips.remove(at));
        self.by_ip.insert(ip, index);
        self.changed.push(host.mac);
        if let Some(oldest) = surplus {
            self.by_ip.remove(&oldest);
        }
        Owned { before, surplus }
    }

    /// Removes the address `ip` from `index`.
    pub(crate) fn disown(&mut self, index: HostIndex, ip: IpAddr) {
        if self.by_ip(ip) == Some(index) {
            self.by_ip.remove(&ip);
        }
        if let Some(host) = self.slots.get_mut(index.index()).and_then(Option::as_mut) {
            host.ips.retain(|&other| other != ip);
            self.changed.push(host.mac);
        }
    }

    /// Withdraws the claim for `mac` at `place`.
    pub(crate) fn withdraw(&mut self, place: Place, mac: MacAddr) -> Withdrawn {
        let Some(index) = self.by_mac(mac) else {
            return Withdrawn::Nothing;
        };
        let Some(host) = self.slots[index.index()].as_mut() else {
            return Withdrawn::Nothing;
        };
        let Some(at) = host.claims.iter().position(|claim| claim.place == place) else {
            return Withdrawn::Nothing;
        };
        let current = at + 1 == host.claims.len();
        if let Some(until) = host.claims[at].until {
            self.unconfirmed.remove(&(until, mac, place));
        }
        if host.claims.len() == 1 {
            return Withdrawn::Gone(index);
        }
        host.claims.remove(at);
        self.claims.remove(place.key(), mac);
        self.changed.push(mac);
        if current { Withdrawn::Moved(index) } else { Withdrawn::Nothing }
    }

    /// Removes a host and its addresses.
    pub(crate) fn forget(&mut self, index: HostIndex) {
        let Some(host) = self.slots.get_mut(index.index()).and_then(Option::take) else {
            return;
        };
        self.by_mac.remove(&host.mac);
        self.changed.push(host.mac);
        if let Some(due) = host.verify_due {
            self.unverified.remove(&(due, host.mac));
        }
        for ip in &host.ips {
            self.by_ip.remove(ip);
        }
        for claim in &host.claims {
            self.claims.remove(claim.place.key(), host.mac);
            if let Some(until) = claim.until {
                self.unconfirmed.remove(&(until, host.mac, claim.place));
            }
        }
        self.free.push(index);
    }

    /// Returns all claims by a switch, including superseded ones.
    pub(crate) fn claimed_by(&self, switch: SwitchIndex) -> Vec<(Place, MacAddr)> {
        let hosts = self.iter().map(|(_, host)| host);
        hosts
            .flat_map(|host| host.claims.iter().map(|claim| (claim.place, host.mac)))
            .filter(|(place, _)| place.switch == switch)
            .collect()
    }

    /// Returns when the next unconfirmed claim expires, or the next move must be verified.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let runs_out = self.unconfirmed.first().map(|&(until, _, _)| until);
        let due = self.unverified.first().map(|&(due, _)| due);
        [runs_out, due].into_iter().flatten().min()
    }

    /// Returns a claim that has expired by `now` and is to be withdrawn.
    pub(crate) fn run_out(&mut self, now: Time) -> Option<(Place, MacAddr)> {
        let first = self.unconfirmed.first().filter(|&&(until, _, _)| until <= now);
        let &(until, mac, place) = first?;
        self.unconfirmed.remove(&(until, mac, place));
        Some((place, mac))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);

    fn at(switch: u32, port: u16) -> Place {
        Place { switch: SwitchIndex(switch), port: PortNo(port) }
    }

    fn ip(last: u8) -> IpAddr {
        IpAddr::V4(Ipv4Addr::new(10, 0, 0, last))
    }

    fn table() -> HostTable {
        HostTable::new(MacAddr([2, 9, 9, 9, 9, 9]), ip(254))
    }

    fn place(table: &HostTable) -> Option<Place> {
        Some(table.get(table.by_mac(MAC)?)?.place())
    }

    #[test]
    fn the_word_of_an_old_place_does_not_remove_the_newer_one() {
        let mut table = table();
        table.report(at(1, 1), MAC);
        assert!(matches!(table.report(at(2, 1), MAC), Learned::Moved(_)));
        assert_eq!(table.withdraw(at(1, 1), MAC), Withdrawn::Nothing);
        assert_eq!(place(&table), Some(at(2, 1)));
        assert!(matches!(table.withdraw(at(2, 1), MAC), Withdrawn::Gone(_)));
    }

    #[test]
    fn a_move_is_verified_at_the_place_before_unless_it_is_the_answer() {
        let mut table = table();
        let Learned::Here(host) = table.report(at(1, 1), MAC) else { panic!() };
        table.own(host, ip(1), None);
        let mut now = Time::ZERO;
        let mut moved = |to, after: Span| {
            now += after;
            table.report(to, MAC);
            table.verify(now, host).map(|(_, before, _)| before)
        };
        let (here, there) = (at(1, 1), at(2, 1));
        assert_eq!(moved(there, Span::ZERO), Some(here));
        assert_eq!(moved(here, Span::from_millis(60)), None, "it was there all the time");
        // A host that slowly moves back and forth.
        for _ in 0..3 {
            assert_eq!(moved(there, Span::from_secs(3)), Some(here));
            assert_eq!(moved(here, Span::from_secs(3)), Some(there));
        }
    }

    #[test]
    fn a_late_report_of_an_old_place_loses_to_the_claim_that_stands() {
        let mut table = table();
        table.report(at(2, 1), MAC);
        table.report(at(1, 1), MAC);
        assert!(matches!(table.withdraw(at(1, 1), MAC), Withdrawn::Moved(_)));
        assert_eq!(place(&table), Some(at(2, 1)));
    }

    #[test]
    fn a_request_moves_nobody_and_its_claim_runs_out() {
        let mut table = table();
        table.request(Time::ZERO, at(1, 1), MAC);
        assert_eq!(table.request(Time::ZERO, at(2, 1), MAC), Learned::Refused);
        let until = table.deadline().unwrap();
        assert_eq!(table.run_out(until - Span::from_nanos(1)), None);
        assert_eq!(table.run_out(until), Some((at(1, 1), MAC)));
        table.report(at(1, 1), MAC);
        assert_eq!(table.deadline(), None);
        assert_eq!(place(&table), Some(at(1, 1)));
    }

    #[test]
    fn a_claim_by_request_that_reports_have_displaced_does_not_run_out() {
        let mut table = table();
        table.request(Time::ZERO, at(1, 1), MAC);
        let until = table.deadline().unwrap();
        for port in 0..CLAIMS_MAX as u16 {
            table.report(at(2, port), MAC);
        }
        assert_eq!((table.deadline(), table.run_out(until)), (None, None));
    }

    #[test]
    fn an_address_has_one_owner_whom_it_was_given_last() {
        let mut table = table();
        let Learned::Here(first) = table.report(at(1, 1), MAC) else { panic!() };
        let other = MacAddr([2, 0, 0, 0, 0, 2]);
        let Learned::Here(second) = table.report(at(1, 2), other) else { panic!() };
        table.own(first, ip(1), None);
        table.own(second, ip(1), None);
        assert_eq!(table.by_ip(ip(1)), Some(second));
        assert!(table.get(first).unwrap().ips.is_empty());
        table.own(second, ip(254), None);
        assert_eq!(table.by_ip(ip(254)), None, "nobody takes the server's address");
        for last in 10..30 {
            table.own(second, ip(last), None);
        }
        assert_eq!(table.get(second).unwrap().ips.len(), IPS_PER_HOST_MAX);
        assert_eq!(table.by_ip(ip(10)), None);
        table.forget(second);
        assert_eq!((table.by_ip(ip(29)), table.len()), (None, 1));
    }

    #[test]
    fn a_group_address_or_the_servers_is_no_host() {
        let mut table = table();
        assert_eq!(table.report(at(1, 1), MacAddr::BROADCAST), Learned::Refused);
        assert_eq!(table.report(at(1, 1), MacAddr([2, 9, 9, 9, 9, 9])), Learned::Refused);
        assert!(table.is_empty());
    }
}
