//! Set-ups at the source switch, from a host's request to phase IV of Axon-ARP (paper 001 §4.2.2).

use super::answers::Requester;
use super::context::Cx;
use super::flows::Verdict;
use super::parts::Parts;
use super::places::Key;
use super::setup::Key as SetupKey;
use alloc::vec::Vec;
use axon_link::effect::Effect;
use axon_node::RouteKey;
use axon_wire::message::{ArpReply, Target};
use axon_wire::{PortNo, Route};
use core::net::IpAddr;

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
            self.flows.show(cx, port, requester, mac, wanted);
            return;
        }
        let key = (port, Target::Ip(wanted), requester.mac);
        let source_ip = (!requester.ip.is_unspecified()).then_some(requester.ip);
        if self.setups.begin(cx, &mut self.flows, key, source_ip, None) {
            self.setups.wait(key, requester);
        }
    }

    /// Handles the expired timer of a set-up: sends the request again or gives up.
    pub(super) fn setup_due(&mut self, cx: &mut Cx, key: SetupKey) {
        if self.setups.due(cx, key) {
            let requesters = self.end_setup(cx, key);
            self.claim(cx, key, &requesters);
            self.setups.remember_failure(cx, key);
        }
    }

    /// Ends a set-up without a route: its entry is freed and its frames are dropped. Returns the
    /// hosts that waited for it.
    pub(super) fn end_setup(&mut self, cx: &mut Cx, key: SetupKey) -> Vec<Requester> {
        let Some(setup) = self.setups.take(cx, key) else {
            return Vec::new();
        };
        let (port, target, source) = key;
        match target {
            Target::Ip(_) if setup.held => self.flows.tables.release(port),
            Target::Ip(_) => {}
            Target::Mac(mac) => {
                let to = RouteKey::to(mac);
                self.unreserve((port, to));
                let key = to.from_source(Some(source));
                cx.out.push(Effect::Abandon { ingress: port, key });
            }
        }
        self.flows.promote(cx, port);
        setup.requesters
    }

    /// Frees a reserved entry, unless a route, a set-up or a query needs it.
    pub(super) fn unreserve(&mut self, key: Key) {
        let (port, RouteKey { destination, source, .. }) = key;
        let is_any = source.is_none();
        let wanted = || self.setups.towards((port, Target::Mac(destination)), None);
        let wanted = is_any && !wanted().is_empty();
        if !self.flows.is_placed(key) && !wanted && !self.queries.is_for(key) {
            self.flows.tables.free(key);
        }
    }

    /// Handles phase IV. The reserved entry gets its route. Hosts that sent ARP requests get their
    /// replies, from the target's own MAC address. Then the queued frames leave in order.
    pub(super) fn phase_four(&mut self, cx: &mut Cx, m: &ArpReply) {
        let port = m.source_port;
        if !cx.controller.is_current(m.stamp) || !self.hosts.is_on(m.source_mac, port) {
            cx.counters.messages_ignored += 1;
            return;
        }
        let target_ip = m.target_ip;
        let source = m.target_by_pair.then_some(m.source_mac);
        let route = (port, RouteKey::to(m.target_mac).from_source(source));
        let by_ip = target_ip.or_else(|| self.setups.asked_ip(port, m.id));
        let answered = by_ip.map(|ip| self.setups.towards((port, Target::Ip(ip)), source));
        let answered = answered.unwrap_or_default();
        let held = self.setups.release(&mut self.flows, &answered);
        let verdict =
            self.flows.set_route(cx, &self.hosts, route, m.stamp, &m.to_target, target_ip);
        if matches!(verdict, Verdict::Removed | Verdict::Unusable) {
            // A later decision has removed the route. The next retry requests a new one.
            cx.counters.messages_ignored += 1;
            self.setups.hold_again(&mut self.flows, held);
            return;
        }
        for (key, ip) in answered.into_iter().zip(by_ip.into_iter().cycle()) {
            let Some(setup) = self.setups.take(cx, key) else { continue };
            cx.counters.setups_done += 1;
            for requester in setup.requesters {
                self.flows.show(cx, port, requester, m.target_mac, ip);
            }
        }
        self.route_ready(cx, route, &m.to_target);
        self.flows.promote(cx, port);
    }

    /// Sends the frames queued for a route. `route` is used if no table had room for it.
    pub(super) fn route_ready(&mut self, cx: &mut Cx, key: Key, route: &Route) {
        let (port, to) = key;
        let target = Target::Mac(to.destination);
        for (_, _, host) in self.setups.towards((port, target), to.source) {
            let Some(setup) = self.setups.take(cx, (port, target, host)) else { continue };
            // The host has used the destination's own MAC address.
            self.correct(cx, host, key, setup.hint);
            self.unreserve((port, RouteKey::to(to.destination)));
            cx.counters.setups_done += 1;
            let taken = self.flows.key_of(port, host, to.destination);
            let route = self.flows.get(taken).map_or(route, |flow| &flow.route).clone();
            let key = RouteKey::to(to.destination).from_source(Some(host));
            cx.out.push(Effect::Release { ingress: port, key, route });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use axon_node::Note;
    use axon_wire::{MacAddr, host_frame};
    use core::net::Ipv4Addr;
    use smoltcp::wire::ArpOperation;

    #[test]
    fn the_reply_installs_the_route_before_the_host_is_answered_and_frames_go() {
        let mut bench = Bench::new();
        bench.host(0, 1);
        let request = asked(&bench.frame(0, &arp_request(1, 9)));
        bench.frame(0, &udp_frame(mac(9), mac(1), 1));
        bench.frame(0, &udp_frame(mac(9), mac(1), 2));
        let effects = bench.reply(answer_to(request, 1));
        let route = Route::from([3, 4]);
        assert_eq!(bench.placed(0, 9), Some(route.clone()));
        assert_eq!(bench.places(0), 1, "both reservations became the one route");
        let forwarded = |content| (PortNo(0), route.clone(), udp_frame(mac(9), mac(1), content));
        let (port, destination) = (PortNo(0), mac(9));
        let frame = host_frame::reply(mac(9), ip(9), mac(1), ip(1));
        assert_eq!(
            effects,
            [Effect::Note(Note::RouteSet { port, destination }), Effect::Host { port, frame }]
        );
        assert_eq!(bench.sent, [forwarded(1), forwarded(2)]);
        assert_eq!((bench.edge.setups(), bench.waiting_bytes()), (0, 0));
    }

    #[test]
    fn an_existing_flow_is_answered_from_the_cache_also_by_unicast() {
        let mut bench = Bench::new();
        bench.host(0, 1);
        let request = asked(&bench.frame(0, &arp_request(1, 9)));
        bench.reply(answer_to(request, 1));
        let unicast = host_frame::request(mac(1), ip(1), mac(9), ip(9));
        for frame in [arp_request(1, 9), unicast] {
            let effects = bench.frame(0, &frame);
            let [(PortNo(0), arp)] = arps(&effects)[..] else { panic!("{effects:?}") };
            assert_eq!(arp.operation, ArpOperation::Reply);
            assert_eq!((arp.sender_mac, arp.sender_ip), (mac(9), ip(9)));
            assert_eq!((arp.target_mac, effects.len()), (mac(1), 1));
        }
        bench.remove_route(0, 9, 2);
        asked(&bench.frame(0, &arp_request(1, 9)));
    }

    #[test]
    fn a_full_memory_sends_by_the_slow_path_until_there_is_room() {
        let mut bench = Bench::with(1, 1000, 4);
        bench.host(0, 1);
        bench.set_route(0, 7, 1, 3);
        let request = asked(&bench.frame(0, &arp_request(1, 9)));
        let effects = bench.reply(answer_to(request, 2));
        assert_eq!(arps(&effects).len(), 1, "the host is answered all the same");
        assert_eq!(bench.placed(0, 9), None);
        let frame = udp_frame(mac(9), mac(1), 1);
        let route = Route::from([3, 4]);
        assert_eq!(bench.frame(0, &frame), []);
        assert_eq!(bench.sent, [(PortNo(0), route.clone(), frame)], "by the slow path");
        bench.remove_route(0, 7, 3);
        assert_eq!(bench.placed(0, 9), Some(route));
    }

    #[test]
    fn a_late_reply_never_replaces_a_newer_route_or_removal() {
        for newer_is_a_route in [true, false] {
            let mut bench = Bench::new();
            bench.host(0, 1);
            let request = asked(&bench.frame(0, &arp_request(1, 9)));
            if newer_is_a_route {
                bench.set_route(0, 9, 8, 2);
            } else {
                bench.remove_route(0, 9, 8);
            }
            let answered = arps(&bench.reply(answer_to(request, 7))).len();
            let expected = newer_is_a_route.then(|| Route::from([2]));
            assert_eq!(bench.placed(0, 9), expected);
            assert_eq!(answered, usize::from(newer_is_a_route));
            assert_eq!(bench.edge.setups(), usize::from(!newer_is_a_route));
        }
    }

    #[test]
    fn a_probe_of_an_address_is_answered_for_another_host_only() {
        let mut bench = Bench::new();
        let unspecified = Ipv4Addr::UNSPECIFIED;
        let probe = host_frame::request(mac(1), unspecified, MacAddr::BROADCAST, ip(9));
        let request = asked(&bench.frame(0, &probe));
        assert_eq!(request.source_ip, None);
        let mut own = answer_to(request, 1);
        own.target_mac = mac(1);
        assert_eq!(arps(&bench.reply(own)), []);

        let mut bench = Bench::new();
        let request = asked(&bench.frame(0, &probe));
        let effects = bench.reply(answer_to(request, 1));
        let [(PortNo(0), arp)] = arps(&effects)[..] else { panic!("{effects:?}") };
        assert_eq!((arp.sender_mac, arp.target_ip), (mac(9), unspecified));
    }

    #[test]
    fn several_hosts_on_a_port_are_answered_together() {
        let mut bench = Bench::new();
        bench.host(0, 1);
        bench.host(0, 2);
        let request = asked(&bench.frame(0, &arp_request(1, 9)));
        // Another host of the port may be denied it.
        asked(&bench.frame(0, &arp_request(2, 9)));
        let effects = bench.reply(answer_to(request, 1));
        let answered: Vec<_> = arps(&effects).iter().map(|(_, arp)| arp.target_mac).collect();
        assert_eq!(answered, [mac(1), mac(2)]);
        assert_eq!(bench.frame(0, &arp_request(1, 2)), [], "they reach one another");
    }

    #[test]
    fn without_any_room_a_route_still_serves_the_frames_that_waited_for_it() {
        let mut bench = Bench::with(0, 1000, 4);
        bench.host(0, 1);
        let frame = udp_frame(mac(9), mac(1), 1);
        for number in 1..3 {
            let request = asked(&bench.frame(0, &frame));
            assert_eq!(bench.reply(answer_to(request, number)), []);
            let forwarded = (PortNo(0), Route::from([3, 4]), frame.clone());
            assert_eq!(bench.sent.pop(), Some(forwarded));
        }
        assert_eq!(bench.edge.flows().count(), 0);
    }
}
