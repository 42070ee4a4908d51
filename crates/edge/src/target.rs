//! Target switch's part of Axon-ARP: phases II and III (paper 001 §4.2.2).

use super::context::Cx;
use super::flows::Verdict;
use super::parts::Parts;
use super::queries::{Key, way_back};
use axon_link::effect::Effect;
use axon_wire::message::{ArpTarget, Message};
use axon_wire::{MacAddr, PortNo};
use core::net::IpAddr;

impl Parts {
    /// Handles phase II. Reserves an entry for the reverse route in the target port's table, then
    /// queries the target host by ARP. A target without known address cannot be queried; it is
    /// sufficient that it was learned here.
    pub(super) fn phase_two(&mut self, cx: &mut Cx, m: ArpTarget) {
        let own_port = m.source_switch.node == cx.settings.node && m.source_port == m.target_port;
        let sane =
            cx.settings.is_host_mac(m.source_mac) && m.source_mac != m.target_mac && !own_port;
        // A host at a bond may have sent by its other ports only.
        if sane && cx.controller.is_current(m.stamp) && self.bonds.is_joined(m.target_port) {
            self.learn(cx, m.target_port, m.target_mac);
        }
        if !sane
            || !cx.controller.is_current(m.stamp)
            || !self.hosts.is_on(m.target_mac, m.target_port)
        {
            cx.counters.messages_ignored += 1;
            return;
        }
        let key = (m.target_port, m.target_mac, m.source_mac);
        if self.queries.contains(key) {
            if let Some((before, after)) = self.queries.renew(key, m) {
                self.flows.tables.reserve(after);
                self.unreserve(before);
            }
            return;
        }
        if self.queries.is_full(m.target_port) {
            cx.counters.messages_ignored += 1;
            return;
        }
        self.flows.evade(cx, m.target_port, m.source_mac);
        // If the table is full, the reverse route will be kept in software.
        self.flows.tables.reserve(way_back(&m));
        let Some(target_ip) = m.target_ip else {
            return self.phase_three(cx, &m);
        };
        self.queries.start(cx, &mut self.flows, key, m, target_ip);
    }

    /// Handles the expired timer of a query: sends it again or gives up.
    pub(super) fn query_due(&mut self, cx: &mut Cx, key: Key) {
        if self.queries.due(cx, &mut self.flows, key) {
            self.end_query(cx, key);
        }
    }

    pub(super) fn end_query(&mut self, cx: &mut Cx, key: Key) {
        if let Some(m) = self.queries.take(cx, key) {
            self.unreserve(way_back(&m));
            self.flows.promote(cx, key.0);
        }
    }

    /// Handles an ARP reply of `mac` on `port`, which answers all queries for that address.
    pub(super) fn target_answered(&mut self, cx: &mut Cx, port: PortNo, mac: MacAddr, ip: IpAddr) {
        for key in self.queries.to(port, mac) {
            if !self.queries.is_about(key, ip) {
                continue;
            }
            if let Some(m) = self.queries.take(cx, key) {
                self.phase_three(cx, &m);
            }
        }
    }

    /// Handles phase III. The reverse route becomes valid, then the source switch gets its reply.
    ///
    /// The reply is sent even if a newer reverse route exists: its route towards the target carries
    /// the stamp of the message, which the source switch checks.
    fn phase_three(&mut self, cx: &mut Cx, m: &ArpTarget) {
        let back = way_back(m);
        let verdict =
            self.flows.set_route(cx, &self.hosts, back, m.stamp, &m.to_source, m.source_ip);
        if matches!(verdict, Verdict::Removed | Verdict::Unusable) {
            cx.counters.messages_ignored += 1;
            self.unreserve(back);
            return;
        }
        cx.out.push(Effect::Routed {
            hops: m.answer_by.clone(),
            to: m.source_switch,
            message: Message::ArpReply(m.reply()),
        });
        self.route_ready(cx, back, &m.to_source);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use alloc::vec::Vec;
    use axon_link::effect::Effect;
    use axon_wire::Route;
    use axon_wire::Span;
    use axon_wire::host_frame;
    use core::net::Ipv4Addr;

    /// Builds host `n`'s answer to the querying host.
    fn host_reply(n: u8, to: MacAddr, to_ip: Ipv4Addr) -> Vec<u8> {
        host_frame::reply(mac(n), ip(n), to, to_ip)
    }

    fn answers(effects: &[Effect]) -> Vec<axon_wire::message::ArpReply> {
        let reply = |effect: &Effect| match effect {
            Effect::Routed { hops, to, message: Message::ArpReply(reply) } => {
                assert_eq!((hops, *to), (&looked_for(0).answer_by, OTHER));
                Some(reply.clone())
            }
            _ => None,
        };
        effects.iter().filter_map(reply).collect()
    }

    #[test]
    fn the_route_back_is_reserved_before_the_host_is_asked() {
        let mut bench = Bench::new();
        bench.host(0, 1);
        let effects = bench.target(looked_for(1));
        assert_eq!(bench.places(0), 1);
        assert_eq!(bench.placed(0, 9), None, "reserved, not valid");
        let [(PortNo(0), arp)] = arps(&effects)[..] else { panic!("{effects:?}") };
        assert_eq!((arp.sender_mac, arp.sender_ip, arp.target_ip), (mac(9), ip(9), ip(1)));
        assert_eq!(answers(&effects), []);
    }

    #[test]
    fn the_hosts_reply_makes_the_route_valid_and_then_the_source_is_answered() {
        let mut bench = Bench::new();
        bench.host(0, 1);
        let m = looked_for(1);
        bench.target(m.clone());
        let effects = bench.frame(0, &host_reply(1, mac(9), ip(9)));
        assert_eq!(bench.placed(0, 9), Some(m.to_source));
        assert!(matches!(effects[0], Effect::Note(_)), "the route comes first");
        let [reply] = &answers(&effects)[..] else { panic!("{effects:?}") };
        assert_eq!((reply.id, reply.source_port, reply.stamp), (42, PortNo(6), stamp(1)));
        assert_eq!((reply.target_mac, &reply.to_target), (mac(1), &m.to_target));
        let cached = bench.frame(0, &arp_request(1, 9));
        assert_eq!(arps(&cached).len(), 1, "the target knows the source now");
    }

    #[test]
    fn a_reply_from_the_wrong_port_or_host_or_address_answers_nothing() {
        let mut bench = Bench::new();
        bench.host(0, 1);
        bench.host(0, 3);
        bench.host(1, 2);
        bench.target(looked_for(1));
        let mut wrong_address = host_reply(1, mac(9), ip(9));
        wrong_address[31] = 77;
        let frames = [
            (1, host_reply(1, mac(9), ip(9))),
            (0, host_reply(3, mac(9), ip(9))),
            (0, host_frame::reply(mac(3), ip(1), mac(9), ip(9))),
            (0, wrong_address),
        ];
        for (port, frame) in frames {
            assert_eq!(answers(&bench.frame(port, &frame)), []);
        }
        assert_eq!(bench.placed(0, 9), None);
    }

    #[test]
    fn a_host_that_has_a_valid_route_back_is_asked_by_the_server_identity() {
        let mut bench = Bench::new();
        bench.host(0, 1);
        bench.set_route(0, 9, 1, 5);
        let [(_, arp)] = arps(&bench.target(looked_for(2)))[..] else { panic!() };
        assert_eq!((arp.sender_mac, arp.sender_ip), (SERVER.mac, SERVER.ip));
        let effects = bench.frame(0, &host_reply(1, SERVER.mac, SERVER.ip));
        assert_eq!(answers(&effects).len(), 1);
        assert_eq!(bench.placed(0, 9), Some(Route::from([3, 6])));
    }

    #[test]
    fn an_older_request_is_answered_but_keeps_the_newer_route() {
        let mut bench = Bench::new();
        bench.host(0, 1);
        bench.set_route(0, 9, 8, 5);
        bench.target(looked_for(7));
        let effects = bench.frame(0, &host_reply(1, SERVER.mac, SERVER.ip));
        assert_eq!(answers(&effects)[0].stamp, stamp(7));
        assert_eq!(bench.placed(0, 9), Some(Route::from([5])));
    }

    #[test]
    fn an_older_request_does_not_bring_back_a_removed_route() {
        let mut bench = Bench::new();
        bench.host(0, 1);
        bench.remove_route(0, 9, 8);
        bench.target(looked_for(7));
        let effects = bench.frame(0, &host_reply(1, mac(9), ip(9)));
        assert_eq!(answers(&effects), []);
        assert!(bench.is_empty());
    }

    #[test]
    fn a_silent_target_is_asked_a_few_times_and_its_place_is_freed() {
        let mut bench = Bench::new();
        bench.host(0, 1);
        bench.target(looked_for(1));
        let asked = arps(&bench.pass(Span::from_secs(3)));
        assert!((3..8).contains(&asked.len()), "{} questions", asked.len());
        assert!(bench.is_empty());
    }

    #[test]
    fn a_host_that_is_gone_is_not_looked_for() {
        let mut bench = Bench::new();
        bench.host(1, 1);
        assert_eq!(bench.target(looked_for(1)), [], "it is on another port");
        bench.host(0, 2);
        assert_eq!(bench.target(looked_for(1)), []);
        assert!(bench.is_empty());
    }

    #[test]
    fn a_target_without_address_is_not_asked() {
        let mut bench = Bench::new();
        bench.host(0, 1);
        let effects = bench.target(ArpTarget { target_ip: None, ..looked_for(1) });
        assert_eq!((answers(&effects).len(), arps(&effects).len()), (1, 0));
        assert_eq!(bench.placed(0, 9), Some(Route::from([3, 6])));
    }
}
