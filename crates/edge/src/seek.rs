//! Search among the hosts of this switch for an address of an unknown host, or one that two hosts
//! claim. For the controller's part see `controller/seek.rs` and `controller/owning.rs`.
//!
//! The query is a broadcast ARP request (RFC 826), or a solicitation to the solicited-node group of
//! an IPv6 address (RFC 4861), from the server's identity, as probes are. An answer reaches the
//! control plane, because that MAC address never has a route. The answering host is learned and
//! reported, or reported again if the controller had its address before. The controller limits its
//! rate; the limit here bounds the load on hosts even if it does not.

use super::context::Cx;
use super::parts::Parts;
use axon_link::bucket::Rate;
use axon_link::effect::Effect;
use axon_wire::message::Seek;
use axon_wire::{MacAddr, PortNo, Span};

/// Rate of queries to the hosts of this switch: twice the controller's.
pub(super) const QUESTIONS: Rate = Rate { every: Span::from_millis(2), burst: 2_048 };

impl Parts {
    /// Handles the controller's search for the hosts that have this address.
    pub(super) fn seek(&mut self, cx: &mut Cx, m: Seek) {
        let Some(question) = cx.settings.question(MacAddr::BROADCAST, m.ip) else {
            cx.counters.messages_ignored += 1;
            return;
        };
        cx.counters.seeks += 1;
        self.sought.remember(cx.now, m.ip);
        if !self.questions.has(cx.now, QUESTIONS) {
            cx.counters.seeks_limited += 1;
            return;
        }
        self.questions.take(cx.now, QUESTIONS);
        self.hosts.withdraw(m.ip);
        let hosts = (0..cx.ports.count()).map(PortNo).filter(|&port| cx.ports.is_host(port));
        for port in hosts.filter(|&port| cx.ports.is_up(port) && Some(port) != m.except) {
            cx.out.push(Effect::Host { port, frame: question.clone() });
            self.sought_later(cx, port);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use alloc::vec::Vec;
    use axon_node::PortKind;
    use axon_wire::host_frame;
    use axon_wire::message::Item;
    use smoltcp::wire::ArpOperation;

    fn seek(bench: &mut Bench, host: u8, except: Option<u16>) -> Vec<Effect> {
        let m = Seek { ip: ip(host).into(), except: except.map(PortNo) };
        bench.call(|edge, now, tables, out| edge.seek(now, m, tables, out))
    }

    #[test]
    fn all_host_ports_but_one_are_asked_and_who_answers_is_learned_and_reported() {
        let mut bench = Bench::new();
        let questions = arps(&seek(&mut bench, 9, Some(1)));
        let ports: Vec<PortNo> = questions.iter().map(|(port, _)| *port).collect();
        assert_eq!(ports, [PortNo(0), PortNo(2)], "port 3 is an Axon port");
        for (_, arp) in questions {
            assert_eq!((arp.operation, arp.target_ip), (ArpOperation::Request, ip(9)));
            assert_eq!((arp.sender_mac, arp.sender_ip), (SERVER.mac, SERVER.ip));
        }
        let answer = host_frame::reply(mac(9), ip(9), SERVER.mac, SERVER.ip);
        let effects = bench.frame(2, &answer);
        let (port, mac, ips) = (PortNo(2), mac(9), [ip(9).into()].into());
        assert!(effects.contains(&Effect::Report(Item::HostSeen { port, mac, ips })));
        bench.port(0, Some(PortKind::Unknown));
        assert_eq!(arps(&seek(&mut bench, 8, None)).len(), 2);
        assert_eq!(bench.edge.counters().seeks, 2);
    }

    #[test]
    fn an_address_that_the_controller_has_lost_is_reported_again_when_its_host_answers() {
        let mut bench = Bench::new();
        let says = |last| host_frame::reply(mac(9), ip(last), SERVER.mac, SERVER.ip);
        let (port, mac) = (PortNo(2), mac(9));
        bench.frame(2, &says(9));
        bench.frame(2, &says(10));
        assert!(!bench.frame(2, &says(9)).iter().any(|e| matches!(e, Effect::Report(_))));
        seek(&mut bench, 9, None);
        let reports = |effects: Vec<Effect>| {
            let reports = effects.into_iter().filter(|e| matches!(e, Effect::Report(_)));
            reports.collect::<Vec<_>>()
        };
        assert_eq!(reports(bench.frame(2, &says(10))), [], "of another address");
        let seen = Item::HostSeen { port, mac, ips: [ip(9).into()].into() };
        assert_eq!(reports(bench.frame(2, &says(9))), [Effect::Report(seen)]);
        assert_eq!(reports(bench.frame(2, &says(9))), []);
    }

    #[test]
    fn each_of_two_hosts_with_one_address_is_reported_again() {
        let mut bench = Bench::new();
        let says = |n| host_frame::reply(mac(n), ip(9), SERVER.mac, SERVER.ip);
        bench.frame(0, &says(1));
        bench.frame(2, &says(2));
        seek(&mut bench, 9, Some(2));
        let mut reported = |port, n| {
            let effects = bench.frame(port, &says(n));
            effects.iter().filter(|e| matches!(e, Effect::Report(_))).count()
        };
        // Claims of the two hosts are counted separately.
        assert_eq!([reported(2, 2), reported(2, 2), reported(0, 1), reported(0, 1)], [1, 0, 1, 0]);
    }

    #[test]
    fn an_answer_is_taken_only_with_the_checks_of_any_arp() {
        let mut bench = Bench::new();
        seek(&mut bench, 9, None);
        let mut forged = host_frame::reply(mac(9), ip(9), SERVER.mac, SERVER.ip);
        forged[22..28].copy_from_slice(&mac(5).0);
        bench.frame(0, &forged);
        assert_eq!(bench.last_drop(), Some(axon_node::Drop::Refused));
        assert!(bench.edge.hosts().all(|(_, host)| host.ips.is_empty()));
    }

    #[test]
    fn too_many_questions_and_those_for_nobody_are_not_asked() {
        let mut bench = Bench::new();
        let asked: usize = (0..3_000).map(|_| seek(&mut bench, 9, None).len()).sum();
        let burst = QUESTIONS.burst as usize;
        assert_eq!(asked, 3 * burst, "three host ports");
        let counters = bench.edge.counters();
        assert_eq!((counters.seeks, counters.seeks_limited), (3_000, 3_000 - burst as u64));
        assert_eq!(seek(&mut bench, 254, None), [], "the server's own");
        assert_eq!(bench.edge.counters().messages_ignored, 1);
    }
}
