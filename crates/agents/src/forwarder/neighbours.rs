//! Neighbour table: MAC addresses by ARP (RFC 826), and reachability.
//!
//! The agent answers requests for its own address. It requests an address that it needs, and
//! repeats the request every second, at most three times in a row. When an answer is a minute old,
//! it requests the address again, first at the known MAC address and then by broadcast (the unicast
//! poll of RFC 1122 section 2.3.2.1). Meanwhile, it uses that MAC address, and removes it only if
//! no answer comes. Watched addresses are requested every second, so that a failure is detected
//! within a few seconds. A request that finds no buffer does not count and is repeated.
//!
//! **Limits.** Anyone can make a router request unused addresses. Addresses without any answer are
//! limited to a few, and the oldest is evicted for a new one. A real neighbour answers long before
//! that. Such addresses never evict an address that has answered, however old its answer is.

use crate::agent::{Counters, Outbox};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use axon_wire::host_frame::{self, Arp, ArpOperation, Kind, classify};
use axon_wire::{MacAddr, Span, Time};
use core::net::Ipv4Addr;

/// Interval between two requests for one address.
const RETRY: Span = Span::from_secs(1);
/// Number of unanswered requests in a row after which an address counts as absent.
const TRIES_MAX: u32 = 3;
/// Age of an answer at which the address, if it is not watched, is requested again.
const AGEING: Span = Span::from_secs(60);
/// Time without requests after a request has found no buffer.
const FULL_RETRY: Span = Span::from_millis(10);
/// Number of announcements of the agent's own address at one-second intervals. Later announcements
/// come less often. A switch port may take a few seconds until it forwards.
const ANNOUNCEMENTS: u32 = 5;
/// Interval between later announcements. It is far below a bridge's ageing time (300 s).
const ANNOUNCE: Span = Span::from_secs(30);
/// Maximum number of known unwatched addresses. At the limit, the address that is due next is
/// evicted. It has the oldest answer, except for those that are being requested again.
const KNOWN_MAX: usize = 4096;
/// Maximum number of unwatched addresses without an answer.
const ASKED_MAX: usize = 64;

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    mac: Option<MacAddr>,
    /// Unanswered requests since the last answer.
    tries: u32,
    /// Time of the next request, or of giving up.
    next_at: Time,
    is_watched: bool,
}

/// State of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// Resolved to this MAC address.
    At(MacAddr),
    /// A request is pending.
    Asked,
    /// There was no answer.
    Absent,
}

/// Address that was resolved or did not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    /// Resolved to this MAC address.
    At(Ipv4Addr, MacAddr),
    /// There was no answer.
    Absent(Ipv4Addr),
}

/// Neighbour table of an agent.
#[derive(Debug)]
pub(super) struct Neighbours {
    mac: MacAddr,
    address: Ipv4Addr,
    entries: BTreeMap<Ipv4Addr, Entry>,
    /// Due time of each address.
    due: BTreeSet<(Time, Ipv4Addr)>,
    /// Unwatched addresses without an answer, oldest first.
    asked: VecDeque<Ipv4Addr>,
    /// Number of watched addresses.
    watched: usize,
    /// Time at which the next attempt to get a buffer is made.
    full_until: Time,
    /// Time of the next announcement of the agent's own address (RFC 5227 section 2.3).
    announce_at: Time,
    announced: u32,
    /// Number of evicted addresses, without and with an answer.
    gave_way: [u64; 2],
}

impl Neighbours {
    pub(crate) fn new(mac: MacAddr, address: Ipv4Addr) -> Neighbours {
        Neighbours {
            mac,
            address,
            entries: BTreeMap::new(),
            due: BTreeSet::new(),
            asked: VecDeque::new(),
            watched: 0,
            full_until: Time::ZERO,
            announce_at: Time::ZERO,
            announced: 0,
            gave_way: [0; 2],
        }
    }

    /// Watches an address, that is, requests it every second. Call this before anything else.
    pub(crate) fn watch(&mut self, address: Ipv4Addr) {
        let watched = Entry { is_watched: true, ..Entry::default() };
        if self.entries.insert(address, watched).is_none() {
            self.due.insert((watched.next_at, address));
            self.watched += 1;
        }
    }

    /// Returns the state of an address, and requests the address if it is unknown. The second value
    /// is an address that was evicted.
    pub(crate) fn resolve(&mut self, now: Time, address: Ipv4Addr) -> (Known, Option<Ipv4Addr>) {
        if let Some(entry) = self.entries.get(&address) {
            let known = match entry.mac {
                Some(mac) => Known::At(mac),
                None if entry.tries < TRIES_MAX || !entry.is_watched => Known::Asked,
                None => Known::Absent,
            };
            return (known, None);
        }
        let oldest = self.asked.front().copied().filter(|_| self.asked.len() >= ASKED_MAX);
        if let Some(oldest) = oldest {
            self.forget(oldest);
            self.gave_way[0] += 1;
        }
        self.entries.insert(address, Entry { next_at: now, ..Entry::default() });
        self.due.insert((now, address));
        self.asked.push_back(address);
        (Known::Asked, oldest)
    }

    /// Processes an ARP packet. Returns the address that it resolves, if any.
    pub(crate) fn receive(
        &mut self,
        now: Time,
        arp: &Arp,
        out: &mut dyn Outbox,
    ) -> Option<Settled> {
        let Arp { operation, sender_mac, sender_ip, target_ip, .. } = *arp;
        if operation == ArpOperation::Request && target_ip == self.address {
            // If there is no room for the answer, the sender repeats its request.
            let _ = out.send(&host_frame::reply(self.mac, self.address, sender_mac, sender_ip));
        }
        let entry = self.entries.get_mut(&sender_ip).filter(|_| sender_mac.is_unicast())?;
        let before = entry.next_at;
        let is_new = entry.mac.replace(sender_mac).is_none() && !entry.is_watched;
        entry.tries = 0;
        entry.next_at = now + if entry.is_watched { RETRY } else { AGEING };
        self.due.remove(&(before, sender_ip));
        self.due.insert((entry.next_at, sender_ip));
        if is_new {
            self.asked.retain(|asked| *asked != sender_ip);
            self.make_room(sender_ip);
        }
        Some(Settled::At(sender_ip, sender_mac))
    }

    /// Evicts the answer that is due first if there is one too many. The newest answer is due last.
    fn make_room(&mut self, newest: Ipv4Addr) {
        if self.entries.len() - self.asked.len() - self.watched <= KNOWN_MAX {
            return;
        }
        // Only a few come before it: those without an answer, and the watched ones.
        let is_known = |address: &Ipv4Addr| {
            let entry = self.entries.get(address);
            entry.is_some_and(|entry| entry.mac.is_some() && !entry.is_watched)
        };
        let all = self.due.iter().map(|&(_, address)| address);
        if let Some(oldest) = all.filter(|&address| address != newest).find(is_known) {
            self.forget(oldest);
            self.gave_way[1] += 1;
        }
    }

    fn forget(&mut self, address: Ipv4Addr) {
        let Some(entry) = self.entries.remove(&address) else { return };
        self.due.remove(&(entry.next_at, address));
        if entry.mac.is_none() {
            self.asked.retain(|asked| *asked != address);
        }
    }

    /// Sends due requests. Returns the addresses that did not answer.
    pub(crate) fn timeout(&mut self, now: Time, out: &mut dyn Outbox) -> Vec<Settled> {
        let own = (self.mac, self.address);
        let request = |to, target| host_frame::request(own.0, own.1, to, target);
        if self.announce_at <= now {
            let is_sent = out.send(&request(MacAddr::BROADCAST, self.address)).is_ok();
            self.announced = self.announced.saturating_add(u32::from(is_sent));
            let is_often = self.announced < ANNOUNCEMENTS || !is_sent;
            self.announce_at = now + if is_often { RETRY } else { ANNOUNCE };
        }
        let mut settled = Vec::new();
        while self.full_until <= now {
            let Some(&(due_at, target)) = self.due.first().filter(|(at, _)| *at <= now) else {
                break;
            };
            let Some(entry) = self.entries.get_mut(&target) else { break };
            if entry.tries == TRIES_MAX && !entry.is_watched {
                // If the MAC address was known, no packet waits for the address.
                if entry.mac.is_none() {
                    settled.push(Settled::Absent(target));
                }
                self.forget(target);
                continue;
            }
            if entry.tries == TRIES_MAX && entry.mac.take().is_some() {
                settled.push(Settled::Absent(target));
            }
            let known = entry.mac.filter(|_| entry.tries == 0 && !entry.is_watched);
            if out.send(&request(known.unwrap_or(MacAddr::BROADCAST), target)).is_err() {
                self.full_until = now + FULL_RETRY;
                break;
            }
            entry.tries = (entry.tries + 1).min(TRIES_MAX);
            entry.next_at = now + RETRY;
            self.due.remove(&(due_at, target));
            self.due.insert((now + RETRY, target));
        }
        settled
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        let first = self.due.first().map(|&(at, _)| at.max(self.full_until));
        [first, Some(self.announce_at)].into_iter().flatten().min()
    }

    pub(crate) fn count(&self, counters: &mut Counters) {
        let known = self.entries.values().filter(|entry| entry.mac.is_some()).count();
        counters.extend([
            ("neighbours", known as u64),
            ("neighbours_asked", self.asked.len() as u64),
            ("neighbours_asked_gave_way", self.gave_way[0]),
            ("neighbours_gave_way", self.gave_way[1]),
        ]);
    }
}

/// Parses the ARP packet in a frame.
pub(super) fn arp(frame: &[u8]) -> Option<Arp> {
    match classify(frame) {
        Kind::Arp(arp) => Some(arp),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory_outbox::MemoryOutbox;

    const OWN: (MacAddr, Ipv4Addr) = (MacAddr([2, 0, 0, 0, 0, 9]), Ipv4Addr::new(10, 0, 255, 255));

    fn address(number: u32) -> Ipv4Addr {
        Ipv4Addr::from_bits(0x0a00_0000 | number)
    }

    fn mac(number: u32) -> MacAddr {
        let [a, b, c, d] = number.to_be_bytes();
        MacAddr([2, 1, a, b, c, d])
    }

    fn answer(all: &mut Neighbours, now: Time, number: u32) -> Option<Settled> {
        let reply = host_frame::reply(mac(number), address(number), OWN.0, OWN.1);
        all.receive(now, &arp(&reply).unwrap(), &mut MemoryOutbox::default())
    }

    fn agree(all: &Neighbours) {
        let due: BTreeSet<_> = all.entries.iter().map(|(&at, entry)| (entry.next_at, at)).collect();
        assert_eq!(all.due, due);
        let asked = all.entries.iter().filter(|(_, entry)| entry.mac.is_none());
        let asked: BTreeSet<_> =
            asked.filter(|(_, entry)| !entry.is_watched).map(|(&address, _)| address).collect();
        assert_eq!(all.asked.iter().copied().collect::<BTreeSet<_>>(), asked);
        assert_eq!(all.asked.len(), asked.len());
    }

    #[test]
    fn addresses_that_nobody_has_are_few_and_forgotten_and_take_no_place_of_a_neighbour() {
        let mut all = Neighbours::new(OWN.0, OWN.1);
        let mut now = Time::ZERO;
        assert_eq!(all.resolve(now, address(1)), (Known::Asked, None));
        assert_eq!(answer(&mut all, now, 1), Some(Settled::At(address(1), mac(1))));
        for number in 0..5000 {
            let probed = all.resolve(now, address(0x1_0000 + number));
            let oldest = number.checked_sub(64).map(|number| address(0x1_0000 + number));
            assert_eq!(probed, (Known::Asked, oldest));
        }
        assert_eq!(all.resolve(now, address(1)).0, Known::At(mac(1)));
        assert_eq!((all.entries.len(), all.gave_way), (65, [4936, 0]));
        // Among these addresses, a real neighbour is still resolved.
        assert_eq!(all.resolve(now, address(2)).0, Known::Asked);
        assert_eq!(answer(&mut all, now, 2), Some(Settled::At(address(2), mac(2))));
        assert_eq!(all.resolve(now, address(2)).0, Known::At(mac(2)));
        agree(&all);
        let mut sent = MemoryOutbox::default();
        for _ in 0..3 {
            assert_eq!(all.timeout(now, &mut sent), []);
            agree(&all);
            now += RETRY;
        }
        assert_eq!(sent.sent.len(), 3 * 63 + 3, "three requests each, and announcements");
        assert_eq!(all.timeout(now, &mut sent).len(), 63);
        assert_eq!(all.entries.len(), 2);
        agree(&all);
    }

    #[test]
    fn of_too_many_neighbours_the_one_with_the_oldest_answer_is_forgotten_and_no_watched_one() {
        let mut all = Neighbours::new(OWN.0, OWN.1);
        let watched = 0xffff;
        all.watch(address(watched));
        all.watch(address(watched));
        assert!(answer(&mut all, Time::ZERO, watched).is_some());
        for number in 0..KNOWN_MAX as u32 + 10 {
            let now = Time::from_nanos(u64::from(number));
            assert_eq!(all.resolve(now, address(number)), (Known::Asked, None));
            assert!(answer(&mut all, now, number).is_some());
        }
        assert_eq!((all.entries.len(), all.gave_way), (KNOWN_MAX + 1, [0, 10]));
        assert_eq!(all.resolve(Time::ZERO, address(watched)).0, Known::At(mac(watched)));
        assert_eq!(all.resolve(Time::ZERO, address(10)).0, Known::At(mac(10)));
        assert_eq!(all.resolve(Time::ZERO, address(9)).0, Known::Asked);
        agree(&all);
        assert_eq!(answer(&mut all, Time::ZERO, 9999), None, "nobody has asked for it");
    }

    /// Returns the destination MAC addresses of the requests for an address.
    fn asked_at(sent: &MemoryOutbox, number: u32) -> Vec<MacAddr> {
        let is_its = |frame: &&Vec<u8>| arp(frame).unwrap().target_ip == address(number);
        let all = sent.sent.iter().filter(is_its);
        all.map(|frame| MacAddr::destination_of(frame).unwrap()).collect()
    }

    #[test]
    fn a_neighbour_is_asked_again_where_it_was_and_forgotten_if_it_is_silent() {
        let mut all = Neighbours::new(OWN.0, OWN.1);
        all.resolve(Time::ZERO, address(1));
        answer(&mut all, Time::ZERO, 1);
        let (mut now, mut sent) = (Time::ZERO + AGEING, MemoryOutbox::default());
        assert_eq!(all.timeout(now, &mut sent), []);
        answer(&mut all, now, 1);
        now += AGEING;
        for _ in 0..3 {
            assert_eq!(all.timeout(now, &mut sent), []);
            assert_eq!(all.resolve(now, address(1)), (Known::At(mac(1)), None));
            agree(&all);
            now += RETRY;
        }
        let asked = [mac(1), mac(1), MacAddr::BROADCAST, MacAddr::BROADCAST];
        assert_eq!(asked_at(&sent, 1), asked);
        assert_eq!(all.timeout(now, &mut sent), [], "nothing has waited for it");
        assert_eq!(all.resolve(now, address(1)), (Known::Asked, None));
        agree(&all);
    }

    #[test]
    fn a_request_that_finds_no_buffer_is_no_try() {
        let mut all = Neighbours::new(OWN.0, OWN.1);
        all.watch(address(1));
        answer(&mut all, Time::ZERO, 1);
        all.resolve(Time::ZERO, address(2));
        let (mut now, mut full) =
            (Time::ZERO, MemoryOutbox { room: Some(0), ..MemoryOutbox::default() });
        while now < Time::ZERO + Span::from_secs(20) {
            assert_eq!(all.timeout(now, &mut full), []);
            assert!(all.deadline().unwrap() > now, "it does not ask without end");
            now = all.deadline().unwrap();
            agree(&all);
        }
        assert_eq!(all.resolve(now, address(1)).0, Known::At(mac(1)));
        let mut sent = MemoryOutbox::default();
        for _ in 0..40 {
            all.timeout(now, &mut sent);
            now += Span::from_millis(100);
        }
        assert_eq!(asked_at(&sent, 2).len(), TRIES_MAX as usize);
        assert_eq!(all.announced, 4, "announcements that were sent, a second apart");
        assert_eq!(all.resolve(now, address(1)).0, Known::Absent);
    }
}
