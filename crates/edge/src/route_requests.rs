//! Route requests to the controller: phase I of Axon-ARP at the source switch (paper 001 §4.2.2).
//! Open requests, and those that failed recently.

use super::answers::Requester;
use super::context::{Cx, Timer};
use crate::effect::Effect;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_wire::message::{ArpRequest, Message, Target};
use axon_wire::{MacAddr, PortNo, Span, Time};
use core::net::{IpAddr, Ipv4Addr};

/// Maximum number of requests of one port in flight. Frames that would start more are dropped.
pub(super) const SETUPS_PER_PORT_MAX: usize = 128;
/// Maximum number of ARP requests answered by one set-up. Further hosts on the port repeat theirs.
pub(super) const REQUESTERS_MAX: usize = 8;
/// Maximum number of failures remembered in each VLAN.
pub(super) const FAILURES_MAX: usize = 4096;
/// Time for which a target that was not found is not requested again. It doubles with each failure.
const BACKOFF_FIRST: Span = Span::from_secs(1);
/// Maximum number of these doublings. A failure expires after the same time again.
const BACKOFF_DOUBLINGS_MAX: u32 = 2;
/// Maximum number of doublings of the retry interval.
const RETRY_DOUBLINGS_MAX: u32 = 4;

/// Port that needs a route, target IP or MAC address, and requesting host: another host of the port
/// may not be allowed the route.
pub(super) type Key = (PortNo, Target, MacAddr);

/// A route request that the controller has not answered.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    id: u32,
    source_ip: Option<IpAddr>,
    /// Destination IP address of the frame that needs the route, if it was looked up by MAC
    /// address.
    pub(super) hint: Option<IpAddr>,
    /// True if a table entry is reserved: counted for an IP address, by MAC for a MAC address.
    pub(super) held: bool,
    pub(super) requesters: Vec<Requester>,
    tries: u32,
    until: Time,
}

/// All set-ups of a VLAN, and those that failed recently.
#[derive(Clone, Debug)]
pub(super) struct Setups {
    next_id: u32,
    open: BTreeMap<Key, Setup>,
    open_on: BTreeMap<PortNo, usize>,
    failed: BTreeMap<Key, Failure>,
}

/// A target that was not found.
#[derive(Clone, Copy, Debug)]
struct Failure {
    times: u32,
    until: Time,
}

impl Setups {
    pub(super) fn new() -> Setups {
        Setups {
            next_id: 0,
            open: BTreeMap::new(),
            open_on: BTreeMap::new(),
            failed: BTreeMap::new(),
        }
    }

    pub(super) fn count_on(&self, port: PortNo) -> usize {
        self.open_on.get(&port).copied().unwrap_or(0)
    }

    pub(super) fn count(&self) -> usize {
        self.open.len()
    }

    pub(super) fn contains(&self, key: Key) -> bool {
        self.open.contains_key(&key)
    }

    fn insert(&mut self, key: Key, setup: Setup) {
        if self.open.insert(key, setup).is_none() {
            *self.open_on.entry(key.0).or_default() += 1;
        }
    }

    fn remove(&mut self, key: Key) -> Option<Setup> {
        let setup = self.open.remove(&key)?;
        if let Some(count) = self.open_on.get_mut(&key.0) {
            *count -= 1;
            if *count == 0 {
                self.open_on.remove(&key.0);
            }
        }
        Some(setup)
    }

    /// Returns the open set-ups of a port for one target, of one host or of all.
    pub(super) fn towards(
        &self,
        (port, target): (PortNo, Target),
        source: Option<MacAddr>,
    ) -> Vec<Key> {
        let (from, to) = source.map_or((MacAddr([0; 6]), MacAddr::BROADCAST), |mac| (mac, mac));
        let range = (port, target, from)..=(port, target, to);
        self.open.range(range).map(|(&key, _)| key).collect()
    }

    /// Handles phase I. Reserves an entry in the source port's table and sends a request to the
    /// controller. It is repeated until it is answered or times out.
    ///
    /// For an IP address the MAC address is still unknown, so the entry is only counted. Without a
    /// free entry the set-up continues, and software will keep its route. There is one set-up for
    /// each (port, target, source) at a time, and a pause after each failure: another host of the
    /// port may be allowed a route that this one is denied. `hint` is the destination IP address of
    /// a frame that is looked up by MAC address. Returns whether a set-up is in flight now.
    pub(super) fn begin(
        &mut self,
        cx: &mut Cx,
        key: Key,
        source_ip: Option<IpAddr>,
        hint: Option<IpAddr>,
    ) -> bool {
        if self.contains(key) {
            return true;
        }
        let pausing = self.failed.get(&key).is_some_and(|failure| cx.now < failure.until);
        if pausing || self.count_on(key.0) >= SETUPS_PER_PORT_MAX {
            cx.counters.setups_refused += 1;
            return false;
        }
        self.next_id = self.next_id.wrapping_add(1);
        let setup = Setup {
            id: self.next_id,
            source_ip,
            hint,
            held: hold(cx, key),
            requesters: Vec::new(),
            tries: 0,
            until: cx.now + cx.settings.arp_wait,
        };
        self.insert(key, setup);
        cx.counters.setups_begun += 1;
        self.send_request(cx, key);
        true
    }

    fn send_request(&mut self, cx: &mut Cx, key: Key) {
        let Some(setup) = self.open.get_mut(&key) else {
            return;
        };
        let (port, target, source_mac) = key;
        cx.out.push(Effect::ToController(Message::ArpRequest(ArpRequest {
            id: setup.id,
            port,
            source_mac,
            source_ip: setup.source_ip,
            target,
            hint: setup.hint,
        })));
        let pause = cx.settings.retry * (1 << setup.tries.min(RETRY_DOUBLINGS_MAX));
        setup.tries = setup.tries.saturating_add(1);
        cx.agenda.set(Timer::Setup(port, target, source_mac), setup.until.min(cx.now + pause));
    }

    /// Handles the expired timer of a set-up: sends the request again. Returns whether it has
    /// failed instead.
    pub(super) fn due(&mut self, cx: &mut Cx, key: Key) -> bool {
        let Some(setup) = self.open.get(&key) else { return false };
        let failed = cx.now >= setup.until;
        match failed {
            true => cx.counters.setups_failed += 1,
            false => self.send_request(cx, key),
        }
        failed
    }

    /// Remembers that a target was not found.
    pub(super) fn remember_failure(&mut self, cx: &mut Cx, key: Key) {
        let times = self.failed.get(&key).map_or(0, |failure| failure.times);
        if times == 0 && self.failed.len() >= FAILURES_MAX {
            return;
        }
        let until = cx.now + BACKOFF_FIRST * (1 << times.min(BACKOFF_DOUBLINGS_MAX));
        let times = times.saturating_add(1);
        self.failed.insert(key, Failure { times, until });
        let forgotten = until + BACKOFF_FIRST * (1 << BACKOFF_DOUBLINGS_MAX);
        cx.agenda.set(Timer::Failed(key.0, key.1, key.2), forgotten);
    }

    /// Drops an expired failure.
    pub(super) fn forget_failure(&mut self, key: Key) {
        self.failed.remove(&key);
    }

    /// Clears all failures and repeats all requests, because the controller has become reachable.
    pub(super) fn ask_again(&mut self, cx: &mut Cx) {
        while let Some((key, _)) = self.failed.pop_first() {
            cx.agenda.cancel(Timer::Failed(key.0, key.1, key.2));
        }
        let keys: Vec<_> = self.open.keys().copied().collect();
        for key in keys {
            if let Some(setup) = self.open.get_mut(&key) {
                setup.tries = 0;
                setup.until = cx.now + cx.settings.arp_wait;
            }
            self.send_request(cx, key);
        }
    }

    /// Removes a set-up with its timer.
    pub(super) fn take(&mut self, cx: &mut Cx, key: Key) -> Option<Setup> {
        let setup = self.remove(key)?;
        cx.agenda.cancel(Timer::Setup(key.0, key.1, key.2));
        Some(setup)
    }

    /// Adds a host that waits for the answer of a set-up, unless there are too many.
    pub(super) fn wait(&mut self, key: Key, requester: Requester) {
        let Some(setup) = self.open.get_mut(&key) else { return };
        if setup.requesters.len() < REQUESTERS_MAX && !setup.requesters.contains(&requester) {
            setup.requesters.push(requester);
        }
    }

    /// Returns the set-ups that a host has started.
    pub(super) fn started_by(&self, port: PortNo, mac: MacAddr) -> Vec<Key> {
        let of_port = self.open.range(of_port(port)).map(|(&key, _)| key);
        of_port.filter(|key| key.2 == mac).collect()
    }

    /// Returns the address that set-up `id` of this port looks up, if there is such a set-up.
    pub(super) fn asked_ip(&self, port: PortNo, id: u32) -> Option<IpAddr> {
        let mut of_port = self.open.range(of_port(port));
        match of_port.find(|(_, setup)| setup.id == id)? {
            ((_, Target::Ip(ip), _), _) => Some(*ip),
            _ => None,
        }
    }

    /// Releases the entries that these set-ups have reserved. Returns those that had one.
    pub(super) fn release(&mut self, cx: &mut Cx, keys: &[Key]) -> Vec<Key> {
        let mut held = Vec::new();
        for &key in keys {
            let setup = self.open.get_mut(&key);
            if setup.is_some_and(|setup| core::mem::take(&mut setup.held)) {
                cx.tables.release(key.0, cx.vlan);
                held.push(key);
            }
        }
        held
    }

    /// Reserves entries for these set-ups again.
    pub(super) fn hold_again(&mut self, cx: &mut Cx, keys: Vec<Key>) {
        for key in keys {
            if let Some(setup) = self.open.get_mut(&key) {
                setup.held = hold(cx, key);
            }
        }
    }

    #[cfg(test)]
    pub(super) fn failures(&self) -> usize {
        self.failed.len()
    }

    #[cfg(test)]
    pub(super) fn macs_on(&self, port: PortNo) -> impl Iterator<Item = MacAddr> {
        self.open.keys().filter_map(move |key| match key.1 {
            Target::Mac(mac) if key.0 == port => Some(mac),
            _ => None,
        })
    }

    #[cfg(test)]
    pub(super) fn held_on(&self, port: PortNo) -> usize {
        let held = |((on, target, _), setup): (&Key, &Setup)| {
            *on == port && matches!(target, Target::Ip(_)) && setup.held
        };
        self.open.iter().filter(|&(key, setup)| held((key, setup))).count()
    }
}

/// Reserves an entry for the target of a set-up; `false` if the table is full. It is not known yet
/// whether the route will be for all hosts of the port.
fn hold(cx: &mut Cx, (port, target, _): Key) -> bool {
    match target {
        Target::Ip(_) => cx.tables.hold(port, cx.vlan),
        Target::Mac(mac) => {
            let key = (port, cx.to(mac));
            cx.tables.reserve(key)
        }
    }
}

/// Returns the range of all keys of one port.
fn of_port(port: PortNo) -> core::ops::RangeInclusive<Key> {
    let first = (port, Target::Ip(Ipv4Addr::UNSPECIFIED.into()), MacAddr([0; 6]));
    first..=(port, Target::Mac(MacAddr::BROADCAST), MacAddr::BROADCAST)
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use axon_node::Drop;

    #[test]
    fn a_request_reserves_a_place_before_the_controller_is_asked() {
        let mut bench = Bench::new();
        bench.host(0, 1);
        let request = asked(&bench.frame(0, &arp_request(1, 9)));
        assert_eq!(bench.places(0), 1, "reserved");
        assert_eq!(request.target, Target::Ip(ip(9).into()));
        assert_eq!((request.port, request.source_mac), (PortNo(0), mac(1)));
        assert_eq!(request.source_ip, Some(ip(1).into()));
        assert_eq!(bench.frame(0, &arp_request(1, 9)), [], "one request is enough");
    }

    #[test]
    fn a_request_without_answer_is_repeated_and_then_gives_everything_back() {
        let mut bench = Bench::new();
        bench.host(0, 1);
        let first = asked(&bench.frame(0, &udp_frame(mac(9), mac(1), 1)));
        assert_eq!(first.target, Target::Mac(mac(9)));
        let again = bench.pass(Span::from_millis(50));
        assert_eq!(asked(&again), first, "the same question with the same id");
        let effects = bench.pass(Span::from_secs(3));
        assert!(effects.len() < 8, "the pauses grow");
        let frame = udp_frame(mac(9), mac(1), 1);
        assert_eq!(bench.dropped.pop(), Some((PortNo(0), Drop::NoRoute, frame.clone())));
        assert!(bench.is_empty());
        assert_eq!(bench.frame(0, &frame), [], "a pause");
        assert_eq!(bench.last_drop(), Some(Drop::NoRoute));
        bench.pass(Span::from_secs(1));
        asked(&bench.frame(0, &frame));
    }

    #[test]
    fn waiting_frames_are_bounded_and_the_newest_is_dropped() {
        let mut bench = Bench::with(8, 3 * 2 * 124, 4);
        bench.host(0, 1);
        let frame = udp_frame(mac(9), mac(1), 1);
        bench.frame(0, &frame);
        bench.frame(0, &frame);
        let newest = udp_frame(mac(9), mac(1), 2);
        assert_eq!(bench.frame(0, &newest), []);
        assert_eq!(bench.dropped, [(PortNo(0), Drop::NoRoute, newest)]);
        bench.host(1, 2);
        bench.frame(1, &udp_frame(mac(9), mac(2), 1));
        assert_eq!(bench.waiting_bytes(), 3 * 124, "the other port has its own share");
    }

    #[test]
    fn a_host_that_scans_has_a_bounded_number_of_requests() {
        let mut bench = Bench::new();
        bench.host(0, 1);
        for host in 2..=255 {
            bench.frame(0, &arp_request(1, host));
        }
        assert_eq!(bench.edge.plain().setups(), SETUPS_PER_PORT_MAX);
        assert!(bench.edge.counters().setups_refused > 0);
        bench.host(1, 2);
        asked(&bench.frame(1, &arp_request(2, 9)));
    }

    #[test]
    fn a_place_that_is_wanted_twice_is_freed_by_the_second() {
        let mut bench = Bench::new();
        bench.host(0, 1);
        bench.frame(0, &udp_frame(mac(9), mac(1), 1));
        bench.pass(Span::from_secs(2));
        bench.target(looked_for(1));
        bench.pass(Span::from_millis(1500));
        assert_eq!((bench.edge.plain().setups(), bench.places(0)), (0, 1));
        bench.pass(Span::from_secs(2));
        assert!(bench.is_empty());
    }
}
