//! Reliable, ordered stream between incarnations of a switch and a controller.
//!
//! Items are numbered from 0 in each direction and sent in segments. The receiver answers with the
//! next number it expects. All unacknowledged items are sent again at growing intervals, without
//! limit (go-back-N). The items of one segment are in one VLAN, which its message names. A stream
//! ends with the incarnation of either end.
//!
//! The queue to an unreachable switch is bounded: a newer item replaces an unsent item about the
//! same route or host, and addresses of the host that were not sent are kept. A controller, which
//! does not trust switches, also limits the number of items ([`Stream::has_room_for`]).

use crate::config::IPS_PER_HOST_MAX;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use axon_wire::message::{Item, RoutePath, Segment};
use axon_wire::vlan::VlanId;
use axon_wire::{Incarnation, MacAddr, PortNo, Span, Time};
use core::net::IpAddr;

/// Maximum items in one segment. An item is below 60 bytes plus two bytes for each hop.
const SEGMENT_ITEMS_MAX: usize = 16;
/// Maximum hops in one segment, so that long routes make short segments.
pub const SEGMENT_HOPS_MAX: usize = 300;
/// Maximum number of unacknowledged items in flight.
const IN_FLIGHT_MAX: usize = 256;
/// Upper limit of the retry interval, as a multiple of the first one.
const BACKOFF_MAX: u64 = 16;

/// One end of a reliable stream.
#[derive(Clone, Debug)]
pub struct Stream {
    peer: Incarnation,
    retry: Span,
    /// Number of `queue[0]`, the first unacknowledged item.
    base: u64,
    /// Number of items of `queue` sent at least once.
    in_flight: usize,
    /// Number of items of `queue` sent since the last timeout.
    cursor: usize,
    queue: VecDeque<(VlanId, Item)>,
    /// Numbers of unsent items, by subject.
    unsent: BTreeMap<(VlanId, About), u64>,
    expected: u64,
    ack_due: bool,
    resend_at: Option<Time>,
    backoff: u64,
}

/// Subject of an item within its VLAN.
type About = (Subject, PortNo, MacAddr);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Host,
    /// A route, for frames of one source or of any.
    Route(Option<MacAddr>),
    Load,
    Backup(Option<MacAddr>),
    Member(IpAddr),
    Sender(IpAddr),
    List(IpAddr),
    Bond,
}

impl Stream {
    /// Creates the stream to `peer`; unanswered items are sent again after `retry`.
    pub fn new(peer: Incarnation, retry: Span) -> Stream {
        Stream {
            peer,
            retry,
            base: 0,
            in_flight: 0,
            cursor: 0,
            queue: VecDeque::new(),
            unsent: BTreeMap::new(),
            expected: 0,
            ack_due: false,
            resend_at: None,
            backoff: 1,
        }
    }

    /// Returns the incarnation at the other end.
    pub fn peer(&self) -> Incarnation {
        self.peer
    }

    /// Returns the number of items that the other end has not acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.queue.len()
    }

    /// Returns the number of the next item put on the stream.
    pub fn end(&self) -> u64 {
        self.base + self.queue.len() as u64
    }

    /// Returns whether the other end has acknowledged all items before this number.
    pub fn is_acknowledged(&self, before: u64) -> bool {
        self.base >= before
    }

    /// Returns whether an item can be put on the stream without exceeding `most` items.
    pub fn has_room_for(&self, (vlan, item): (VlanId, &Item), most: usize) -> bool {
        self.queue.len() < most || self.unsent.contains_key(&(vlan, about(item)))
    }

    /// Puts an item about hosts of a VLAN on the stream.
    pub fn push(&mut self, vlan: VlanId, item: Item) {
        let key = (vlan, about(&item));
        if let (_, (Subject::List(_), ..)) = key {
            // The parts of a list stay together, in order.
            return self.queue.push_back((vlan, item));
        }
        if let Some(&number) = self.unsent.get(&key) {
            let (_, unsent) = &mut self.queue[(number - self.base) as usize];
            let before = core::mem::replace(unsent, item);
            keep_addresses(unsent, before);
            return;
        }
        self.unsent.insert(key, self.base + self.queue.len() as u64);
        self.queue.push_back((vlan, item));
    }

    /// Handles a segment of the other end; returns the items that are next in order.
    pub fn receive(&mut self, now: Time, segment: Segment) -> Vec<Item> {
        self.acknowledge(now, segment.ack);
        if segment.items.is_empty() {
            return Vec::new();
        }
        self.ack_due = true;
        let Some(known) = self.expected.checked_sub(segment.first) else {
            return Vec::new();
        };
        let fresh: Vec<Item> =
            segment.items.into_iter().skip(usize::try_from(known).unwrap_or(usize::MAX)).collect();
        self.expected += fresh.len() as u64;
        fresh
    }

    fn acknowledge(&mut self, now: Time, ack: u64) {
        let Some(count) = ack.checked_sub(self.base) else {
            return;
        };
        if count == 0 || count > self.in_flight as u64 {
            return;
        }
        let count = count as usize;
        self.queue.drain(..count);
        self.base = ack;
        self.in_flight -= count;
        self.cursor = self.cursor.saturating_sub(count);
        self.backoff = 1;
        self.resend_at = (self.in_flight > 0).then(|| now + self.retry);
    }

    /// Returns whether [`Stream::poll`] has something to send now.
    pub fn wants(&self, now: Time) -> bool {
        self.ack_due
            || self.cursor < self.queue.len().min(IN_FLIGHT_MAX)
            || self.resend_at.is_some_and(|at| at <= now)
    }

    /// Returns the next segment to send, with its VLAN, if any. Call until it returns `None`.
    pub fn poll(&mut self, now: Time) -> Option<(VlanId, Segment)> {
        if self.resend_at.is_some_and(|at| at <= now) {
            self.cursor = 0;
            self.backoff = (self.backoff * 2).min(BACKOFF_MAX);
            self.resend_at = None;
        }
        let (vlan, items) = self.next_items();
        if items.is_empty() && !self.ack_due {
            return None;
        }
        let first = self.base + self.cursor as u64;
        self.cursor += items.len();
        while self.in_flight < self.cursor {
            let (vlan, item) = &self.queue[self.in_flight];
            self.unsent.remove(&(*vlan, about(item)));
            self.in_flight += 1;
        }
        if !items.is_empty() && self.resend_at.is_none() {
            self.resend_at = Some(now + self.retry * self.backoff);
        }
        self.ack_due = false;
        Some((vlan, Segment { first, ack: self.expected, items }))
    }

    /// Returns the items of the next segment and their VLAN.
    fn next_items(&self) -> (VlanId, Vec<Item>) {
        let mut hops = 0;
        let end = self.queue.len().min(IN_FLIGHT_MAX);
        let next = self.queue.range(self.cursor.min(end)..end).take(SEGMENT_ITEMS_MAX);
        let vlan = next.clone().next().map_or(VlanId::NONE, |&(vlan, _)| vlan);
        let items = next.take_while(|(of, item)| {
            let first = hops == 0;
            hops += hop_count(item);
            *of == vlan && (first || hops <= SEGMENT_HOPS_MAX)
        });
        (vlan, items.map(|(_, item)| item.clone()).collect())
    }

    /// Returns when [`Stream::poll`] next has something to send.
    pub fn deadline(&self) -> Option<Time> {
        self.resend_at
    }
}

/// Moves the addresses of a replaced, unsent host report into the newer report. A host report
/// carries only addresses that earlier ones did not.
fn keep_addresses(item: &mut Item, before: Item) {
    let (Item::HostSeen { ips, .. }, Item::HostSeen { ips: mut all, .. }) = (item, before) else {
        return;
    };
    all.retain(|ip| !ips.contains(ip));
    all.append(ips);
    all.drain(..all.len().saturating_sub(IPS_PER_HOST_MAX));
    *ips = all;
}

/// Returns the size of the lists in an item, in hops.
pub fn hop_count(item: &Item) -> usize {
    match item {
        Item::SetRoute { route, .. } | Item::BackupUsed { route, .. } => route.hops.len(),
        Item::SetBackup { primary, backup, .. } => {
            // A switch takes at most ten bytes, as five hops do.
            let size = |path: &RoutePath| path.route.hops.len() + path.switches.len() * 5;
            size(primary) + backup.as_ref().map_or(0, size)
        }
        // A port takes at most eight bytes, as four hops do.
        Item::PortLoad { ports, .. } => ports.len() * 4,
        // An address takes at most 17 bytes.
        Item::HostSeen { ips, .. } => ips.len() * 9,
        Item::GroupHosts { hosts, .. } => hosts.len() * 3,
        _ => 0,
    }
}

/// Returns the subject of an item.
fn about(item: &Item) -> About {
    match *item {
        // Keyed by port. When a host moves, the old port reports it gone and the new one reports it
        // seen; the last report of each port holds in whatever order they arrive.
        Item::HostSeen { port, mac, .. }
        | Item::HostGone { port, mac }
        | Item::AskHost { port, mac, .. } => (Subject::Host, port, mac),
        Item::SetRoute { port, destination, source, .. }
        | Item::RemoveRoute { port, destination, source, .. } => {
            (Subject::Route(source), port, destination)
        }
        Item::SetBackup { port, destination, source, .. }
        | Item::BackupUsed { port, destination, source, .. } => {
            (Subject::Backup(source), port, destination)
        }
        Item::GroupMember { port, mac, group, .. } => (Subject::Member(group), port, mac),
        Item::AskGroup { port, mac, group, .. } => (Subject::Sender(group), port, mac),
        Item::GroupHosts { port, mac, group, .. } => (Subject::List(group), port, mac),
        Item::BondMember { port, .. } | Item::SelectMember { port, .. } => {
            (Subject::Bond, port, MacAddr([0; 6]))
        }
        Item::AskLoad { .. } => (Subject::Load, PortNo::CONTROL, MacAddr([0; 6])),
        Item::PortLoad { ref ports, .. } => {
            let first = ports.first().map_or(PortNo::CONTROL, |first| first.port);
            (Subject::Load, first, MacAddr([0; 6]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_about_one_host_in_two_vlans_do_not_replace_each_other() {
        let peer = Incarnation { node: NodeId(1), number: 1 };
        let mut stream = Stream::new(peer, Span::from_millis(10));
        let vlans = [0, 10, 20].map(|number| VlanId::new(number).unwrap());
        let mac = MacAddr([2; 6]);
        let seen = |last: u8| {
            let ips = alloc::vec![IpAddr::V4([10, 0, 0, last].into())];
            Item::HostSeen { port: PortNo(1), mac, ips }
        };
        for vlan in vlans {
            (1..3).for_each(|last| stream.push(vlan, seen(last)));
        }
        for vlan in vlans {
            let (of, segment) = stream.poll(Time::ZERO).unwrap();
            let [Item::HostSeen { ips, .. }] = &segment.items[..] else { panic!("{segment:?}") };
            assert_eq!((of, ips.len()), (vlan, 2), "the later one has both addresses");
        }
        assert_eq!(stream.poll(Time::ZERO), None);
    }
    use axon_wire::NodeId;
    use axon_wire::message::Stamp;
    use proptest::prelude::*;

    const RETRY: Span = Span::from_millis(10);

    fn stream() -> Stream {
        Stream::new(Incarnation { node: NodeId(1), number: 1 }, RETRY)
    }

    fn gone(host: u32) -> Item {
        let [a, b, c, d] = host.to_be_bytes();
        Item::HostGone { port: PortNo(0), mac: MacAddr([2, 0, a, b, c, d]) }
    }

    fn remove(number: u64) -> Item {
        let stamp = Stamp { epoch: 1, number };
        let (port, destination) = (PortNo(0), MacAddr([2; 6]));
        Item::RemoveRoute { port, destination, source: None, stamp }
    }

    #[test]
    fn a_report_that_was_not_sent_leaves_its_addresses_to_the_newer_one() {
        let seen = |first: u8, last: u8| {
            let ips = (first..=last).map(|n| core::net::Ipv4Addr::new(10, 0, 0, n).into());
            let (port, mac) = (PortNo(0), MacAddr([2; 6]));
            Item::HostSeen { port, mac, ips: ips.collect() }
        };
        let mut sender = stream();
        [seen(1, 2), seen(2, 3), seen(5, 4)]
            .into_iter()
            .for_each(|item| sender.push(VlanId::NONE, item));
        assert_eq!(sender.poll(Time::ZERO).unwrap().1.items, [seen(1, 3)]);
        sender.push(VlanId::NONE, seen(4, 4));
        (5..40).for_each(|n| sender.push(VlanId::NONE, seen(n, n)));
        let items = sender.poll(Time::ZERO).unwrap().1.items;
        assert_eq!(items, [seen(24, 39)], "what was sent is not sent again, and 16 are enough");
        sender.push(VlanId::NONE, seen(1, 1));
        let (port, mac) = (PortNo(0), MacAddr([2; 6]));
        sender.push(VlanId::NONE, Item::HostGone { port, mac });
        sender.push(VlanId::NONE, seen(2, 2));
        assert_eq!(sender.poll(Time::ZERO).unwrap().1.items, [seen(2, 2)]);
    }

    #[test]
    fn an_unsent_item_gives_way_to_a_newer_one_about_the_same_route() {
        let (mut sender, now) = (stream(), Time::ZERO);
        sender.push(VlanId::NONE, remove(1));
        let (_, first) = sender.poll(now).unwrap();
        assert_eq!(first.items, [remove(1)]);
        for number in 2..1000 {
            sender.push(VlanId::NONE, remove(number));
        }
        assert_eq!(sender.unacknowledged(), 2, "one in flight, one waiting");
        assert_eq!(sender.poll(now).unwrap().1.items, [remove(999)]);
    }

    #[test]
    fn the_route_of_one_host_and_that_of_all_do_not_replace_each_other() {
        let mut sender = stream();
        let of = |number, host: u8| match remove(number) {
            Item::RemoveRoute { port, destination, stamp, .. } => {
                let source = Some(MacAddr([2, 0, 0, 0, 0, host]));
                Item::RemoveRoute { port, destination, source, stamp }
            }
            other => other,
        };
        let all = [of(1, 1), of(2, 2), remove(3), of(4, 1)];
        all.iter().cloned().for_each(|item| sender.push(VlanId::NONE, item));
        let sent = sender.poll(Time::ZERO).unwrap().1.items;
        assert_eq!(sent.len(), 3, "the last is about the same route as the first");
        assert!(all[1..].iter().all(|item| sent.contains(item)), "{sent:?}");
    }

    #[test]
    fn a_full_stream_has_room_for_what_replaces_an_unsent_item_alone() {
        let (mut sender, now) = (stream(), Time::ZERO);
        (1..=2).for_each(|host| sender.push(VlanId::NONE, gone(host)));
        assert!(
            sender.has_room_for((VlanId::NONE, &gone(2)), 2)
                && !sender.has_room_for((VlanId::NONE, &gone(3)), 2)
        );
        sender.poll(now).unwrap();
        assert!(!sender.has_room_for((VlanId::NONE, &gone(2)), 2), "it is in flight");
        sender.receive(now, Segment { first: 0, ack: 1, items: Vec::new() });
        assert!(sender.has_room_for((VlanId::NONE, &gone(3)), 2));
    }

    #[test]
    fn silence_is_met_with_patience_that_grows_and_ends_with_an_answer() {
        let (mut sender, mut now) = (stream(), Time::ZERO);
        sender.push(VlanId::NONE, gone(1));
        sender.poll(now).unwrap();
        for times in [1, 2, 4, 8, 16, 16] {
            assert_eq!(sender.poll(now), None);
            assert_eq!(sender.deadline(), Some(now + RETRY * times));
            now = sender.deadline().unwrap();
            assert_eq!(sender.poll(now).unwrap().1.items, [gone(1)]);
        }
        let answer = Segment { first: 0, ack: 1, items: Vec::new() };
        sender.receive(now, answer);
        assert_eq!((sender.deadline(), sender.unacknowledged()), (None, 0));
    }

    #[test]
    fn an_acknowledgement_of_what_was_never_sent_changes_nothing() {
        let (mut sender, now) = (stream(), Time::ZERO);
        sender.push(VlanId::NONE, gone(1));
        sender.receive(now, Segment { first: 0, ack: 1, items: Vec::new() });
        assert_eq!(sender.poll(now).unwrap().1.items, [gone(1)]);
        sender.receive(now, Segment { first: 9, ack: u64::MAX, items: Vec::new() });
        assert_eq!(sender.unacknowledged(), 1);
    }

    proptest! {
        /// Items arrive once and in order under loss, duplication and reordering.
        #[test]
        fn every_item_arrives_once_and_in_order(
            fates in proptest::collection::vec(0u8..4, 0..300),
            count in 1u32..400,
        ) {
            let (mut alice, mut bob, mut now) = (stream(), stream(), Time::ZERO);
            let mut fates = fates.into_iter();
            let mut late: Vec<(bool, Segment)> = Vec::new();
            let mut arrived = Vec::new();
            (0..count).for_each(|host| alice.push(VlanId::NONE, gone(host)));
            for _ in 0..2000 {
                let mut sent = Vec::new();
                while let Some((_, segment)) = alice.poll(now) { sent.push((true, segment)); }
                while let Some((_, segment)) = bob.poll(now) { sent.push((false, segment)); }
                for (to_bob, segment) in sent {
                    let mut deliver = |to_bob: bool, segment: Segment| {
                        if to_bob {
                            arrived.extend(bob.receive(now, segment));
                        } else {
                            alice.receive(now, segment);
                        }
                    };
                    match fates.next().unwrap_or(0) {
                        0 => deliver(to_bob, segment),
                        1 => {}
                        2 => { deliver(to_bob, segment.clone()); deliver(to_bob, segment); }
                        _ => late.push((to_bob, segment)),
                    }
                    if late.len() > 3 {
                        let (to_bob, segment) = late.remove(0);
                        deliver(to_bob, segment);
                    }
                }
                now += Span::from_millis(3);
            }
            prop_assert_eq!(arrived, (0..count).map(gone).collect::<Vec<_>>());
            prop_assert_eq!(alice.unacknowledged(), 0);
        }
    }
}
