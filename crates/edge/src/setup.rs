//! Route requests to the controller: phase I of Axon-ARP at the source switch (paper 001 §4.2.2).

use super::context::{Cx, Timer};
use super::flows::Flows;
use super::parts::Parts;
use super::places::Key;
use super::setups::{Failure, Key as SetupKey, Requester, Setup, of_port};
use alloc::vec::Vec;
use axon_link::effect::Effect;
use axon_node::RouteKey;
use axon_wire::message::{ArpRequest, Message, Target};
use axon_wire::{MacAddr, PortNo, Span};
use core::net::IpAddr;

/// Maximum number of requests of one port in flight. Frames that would start more are dropped.
pub(super) const SETUPS_PER_PORT_MAX: usize = 128;
/// Maximum number of ARP requests answered by one set-up. Further hosts on the port repeat theirs.
pub(super) const REQUESTERS_MAX: usize = 8;
/// Maximum number of failures remembered over the whole switch.
pub(super) const FAILURES_MAX: usize = 4096;
/// Time for which a target that was not found is not requested again. It doubles with each failure.
const BACKOFF_FIRST: Span = Span::from_secs(1);
/// Maximum number of these doublings. A failure expires after the same time again.
const BACKOFF_DOUBLINGS_MAX: u32 = 2;
/// Maximum number of doublings of the retry interval.
const RETRY_DOUBLINGS_MAX: u32 = 4;

impl Parts {
    /// Answers an ARP request or a solicitation for an address: at once for an existing flow,
    /// otherwise after a set-up.
    ///
    /// The hosts of a port share their routes, except those for one of them. A host on the same
    /// port has received the request itself, so the edge does not answer for it, unless it seems to
    /// have moved.
    pub(super) fn resolve(
        &mut self,
        cx: &mut Cx,
        port: PortNo,
        requester: Requester,
        wanted: IpAddr,
    ) {
        let neighbour = |mac| {
            mac != requester.mac
                && !self.recalls.seems_moved(port, mac)
                && self.hosts.get(mac).is_some_and(|host| host.ips.contains(wanted))
        };
        if self.hosts.on_port(port).any(neighbour) {
            return;
        }
        if let Some(mac) = self.flows.mac_of(port, requester.mac, wanted) {
            cx.counters.arp_cached += 1;
            self.show(cx, port, requester, mac, wanted);
            return;
        }
        let key = (port, Target::Ip(wanted), requester.mac);
        let source_ip = (!requester.ip.is_unspecified()).then_some(requester.ip);
        if !self.begin(cx, key, source_ip, None) {
            return;
        }
        let Some(setup) = self.setups.open.get_mut(&key) else {
            return;
        };
        if setup.requesters.len() < REQUESTERS_MAX && !setup.requesters.contains(&requester) {
            setup.requesters.push(requester);
        }
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
        key: SetupKey,
        source_ip: Option<IpAddr>,
        hint: Option<IpAddr>,
    ) -> bool {
        if self.setups.contains(key) {
            return true;
        }
        let pausing = self.setups.failed.get(&key).is_some_and(|failure| cx.now < failure.until);
        if pausing || self.setups.count_on(key.0) >= SETUPS_PER_PORT_MAX {
            cx.counters.setups_refused += 1;
            return false;
        }
        self.setups.next_id = self.setups.next_id.wrapping_add(1);
        let setup = Setup {
            id: self.setups.next_id,
            source_ip,
            hint,
            held: self.flows.hold(key),
            requesters: Vec::new(),
            tries: 0,
            until: cx.now + cx.settings.arp_wait,
        };
        self.setups.insert(key, setup);
        cx.counters.setups_begun += 1;
        self.send_request(cx, key);
        true
    }

    fn send_request(&mut self, cx: &mut Cx, key: SetupKey) {
        let Some(setup) = self.setups.open.get_mut(&key) else {
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

    /// Handles the expired timer of a set-up: sends the request again or gives up.
    pub(super) fn setup_due(&mut self, cx: &mut Cx, key: SetupKey) {
        let Some(setup) = self.setups.open.get(&key) else {
            return;
        };
        if cx.now < setup.until {
            return self.send_request(cx, key);
        }
        cx.counters.setups_failed += 1;
        let requesters = setup.requesters.clone();
        self.end_setup(cx, key);
        self.claim(cx, key, &requesters);
        let times = self.setups.failed.get(&key).map_or(0, |failure| failure.times);
        if times == 0 && self.setups.failed.len() >= FAILURES_MAX {
            return;
        }
        let until = cx.now + BACKOFF_FIRST * (1 << times.min(BACKOFF_DOUBLINGS_MAX));
        let times = times.saturating_add(1);
        self.setups.failed.insert(key, Failure { times, until });
        let forgotten = until + BACKOFF_FIRST * (1 << BACKOFF_DOUBLINGS_MAX);
        cx.agenda.set(Timer::Failed(key.0, key.1, key.2), forgotten);
    }

    /// Drops an expired failure.
    pub(super) fn forget_failure(&mut self, key: SetupKey) {
        self.setups.failed.remove(&key);
    }

    /// Clears all failures and repeats all requests, because the controller has become reachable.
    pub(super) fn ask_again(&mut self, cx: &mut Cx) {
        while let Some((key, _)) = self.setups.failed.pop_first() {
            cx.agenda.cancel(Timer::Failed(key.0, key.1, key.2));
        }
        let keys: Vec<_> = self.setups.open.keys().copied().collect();
        for key in keys {
            if let Some(setup) = self.setups.open.get_mut(&key) {
                setup.tries = 0;
                setup.until = cx.now + cx.settings.arp_wait;
            }
            self.send_request(cx, key);
        }
    }

    /// Ends a set-up without a route: its entry is freed and its frames are dropped.
    fn end_setup(&mut self, cx: &mut Cx, key: SetupKey) {
        let Some(setup) = self.setups.remove(key) else {
            return;
        };
        let (port, target, source) = key;
        cx.agenda.cancel(Timer::Setup(port, target, source));
        match target {
            Target::Ip(_) if setup.held => self.flows.placing.release(port),
            Target::Ip(_) => {}
            Target::Mac(mac) => {
                let to = RouteKey::to(mac);
                self.unreserve((port, to));
                let key = to.from_source(Some(source));
                cx.out.push(Effect::Abandon { ingress: port, key });
            }
        }
        self.flows.promote(cx, port);
    }

    /// Frees a reserved entry, unless a route, a set-up or a query needs it.
    pub(super) fn unreserve(&mut self, key: Key) {
        let (port, RouteKey { destination, source, .. }) = key;
        let is_any = source.is_none();
        let wanted = || self.setups.towards((port, Target::Mac(destination)), None);
        let wanted = is_any && !wanted().is_empty();
        if !self.flows.is_placed(key) && !wanted && !self.is_query_for(key) {
            self.flows.placing.free(key);
        }
    }

    /// Ends the set-ups that a host has started.
    pub(super) fn end_setups_of(&mut self, cx: &mut Cx, port: PortNo, mac: MacAddr) {
        let of_port = self.setups.open.range(of_port(port)).map(|(&key, _)| key);
        let keys: Vec<_> = of_port.filter(|key| key.2 == mac).collect();
        for key in keys {
            self.end_setup(cx, key);
        }
    }
}

impl Flows {
    /// Reserves an entry for the target of a set-up; `false` if the table is full. It is not known
    /// yet whether the route will be for all hosts of the port.
    pub(super) fn hold(&mut self, key: SetupKey) -> bool {
        match key {
            (port, Target::Ip(_), _) => self.placing.hold(port),
            (port, Target::Mac(mac), _) => self.placing.reserve((port, mac.into())),
        }
    }
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
        assert_eq!(bench.edge.setups(), SETUPS_PER_PORT_MAX);
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
        assert_eq!((bench.edge.setups(), bench.places(0)), (0, 1));
        bench.pass(Span::from_secs(2));
        assert!(bench.is_empty());
    }
}
