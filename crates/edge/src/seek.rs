//! Search among the hosts of this switch for an address of an unknown host, or one that two hosts
//! claim. For the controller's part see `crates/controller/src/{seeking,conflicts}.rs`.
//!
//! The query is a broadcast ARP request (RFC 826), or a solicitation to the solicited-node group of
//! an IPv6 address (RFC 4861), from the server's identity, as probes are. An answer reaches the
//! control plane, because that MAC address never has a route. The answering host is learned and
//! reported, or reported again if the controller had its address before. The controller limits its
//! rate; the limit here bounds the load on hosts even if it does not.
//!
//! **New ports.** A port may become a host port while the controller searches for addresses.
//! A host whose cable is moved to another port is at no port for a moment. Its old switch loses the
//! carrier and removes its routes, the next frame for it makes the controller search for it, and
//! all edges query without success, because the cable is unplugged. The next round of
//! queries is a second away. So each edge stores the addresses that it queried for. It queries the
//! hosts of a port for them as soon as the port is a host port, and a few more times in the half
//! second that a NIC may take to come up. So even a silent host is found as early as possible.

use super::context::{Cx, Timer};
use crate::effect::Effect;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_link::bucket::{Bucket, Rate};
use axon_wire::message::Seek;
use axon_wire::{MacAddr, PortNo, Span, Time};
use core::net::IpAddr;

/// Rate of queries to the hosts of this switch: twice the controller's.
const QUESTIONS: Rate = Rate { every: Span::from_millis(2), burst: 2_048 };
/// Number of times a new host port is queried for each address.
const TRIES: u32 = 5;
/// Time for which an address is stored, longer than the controller's pause between rounds.
const REMEMBERED: Span = Span::from_secs(6);
/// Maximum number of stored addresses; another one replaces the oldest.
const SOUGHT_MAX: usize = 64;

/// Addresses searched for recently, and the ports queried for them.
#[derive(Clone, Debug, Default)]
pub(super) struct Search {
    /// Bucket for the queries.
    questions: Bucket,
    /// Expiry of each address.
    until: BTreeMap<IpAddr, Time>,
    /// New host ports, with their number of queries.
    asked: BTreeMap<PortNo, u32>,
    /// Host ports, and since when they are.
    since: BTreeMap<PortNo, Time>,
}

impl Search {
    /// Handles the controller's search for the hosts that have this address. Returns whether
    /// they are queried.
    pub(super) fn seek(&mut self, cx: &mut Cx, m: Seek) -> bool {
        let Some(question) = cx.settings.question(MacAddr::BROADCAST, m.ip) else {
            cx.counters.messages_ignored += 1;
            return false;
        };
        cx.counters.seeks += 1;
        self.remember(cx.now, m.ip);
        if !self.questions.has(cx.now, QUESTIONS) {
            cx.counters.seeks_limited += 1;
            return false;
        }
        self.questions.take(cx.now, QUESTIONS);
        let ports = (0..cx.ports.count()).map(PortNo).filter(|&port| cx.ports.is_host(port));
        for port in ports.filter(|&port| cx.ports.is_up(port) && Some(port) != m.except) {
            cx.out.push(Effect::Host { port, frame: question.clone() });
            self.repeat_later(cx, port);
        }
        true
    }

    /// Handles a port that has become a host port, or is no longer one.
    pub(super) fn port_changed(&mut self, cx: &mut Cx, port: PortNo) {
        cx.agenda.cancel(Timer::Sought(port));
        self.asked.remove(&port);
        if cx.ports.is_host(port) {
            self.since.entry(port).or_insert(cx.now);
        } else {
            self.since.remove(&port);
        }
        if cx.ports.is_host(port) && !self.until.is_empty() {
            self.asked.insert(port, 0);
            self.due(cx, port);
        }
    }

    /// Handles a query of the hosts of a port for an address. If the port has just become a host
    /// port, the query may have been too early and is repeated.
    fn repeat_later(&mut self, cx: &mut Cx, port: PortNo) {
        let wait = cx.settings.retry * u64::from(TRIES);
        let is_new = self.since.get(&port).is_some_and(|since| cx.now.since(*since) < wait);
        if is_new && !self.asked.contains_key(&port) {
            self.asked.insert(port, 1);
            cx.agenda.set(Timer::Sought(port), cx.now + cx.settings.retry);
        }
    }

    /// Queries the hosts of a port for all stored addresses, or ends that.
    pub(super) fn due(&mut self, cx: &mut Cx, port: PortNo) {
        self.until.retain(|_, until| *until > cx.now);
        let goes_on = !self.until.is_empty() && cx.ports.is_host(port);
        let asked = self.asked.get_mut(&port);
        let Some(tries) = asked.filter(|tries| goes_on && **tries < TRIES) else {
            self.asked.remove(&port);
            return;
        };
        *tries += 1;
        let pause = cx.settings.retry * u64::from(*tries);
        let ips = self.until.keys();
        let questions = ips.filter_map(|&ip| cx.settings.question(MacAddr::BROADCAST, ip));
        for frame in questions.collect::<Vec<_>>() {
            if !self.questions.has(cx.now, QUESTIONS) {
                cx.counters.seeks_limited += 1;
                break;
            }
            self.questions.take(cx.now, QUESTIONS);
            cx.out.push(Effect::Host { port, frame });
        }
        cx.agenda.set(Timer::Sought(port), cx.now + pause);
    }

    /// Stores an address that the controller searches for.
    fn remember(&mut self, now: Time, ip: IpAddr) {
        self.until.retain(|_, until| *until > now);
        if self.until.len() >= SOUGHT_MAX && !self.until.contains_key(&ip) {
            let oldest = self.until.iter().min_by_key(|&(ip, until)| (*until, *ip));
            let oldest = oldest.map(|(ip, _)| *ip);
            oldest.and_then(|ip| self.until.remove(&ip));
        }
        self.until.insert(ip, now + REMEMBERED);
    }

    /// Removes an address that a host of this switch has.
    pub(super) fn found(&mut self, ip: IpAddr) {
        self.until.remove(&ip);
    }

    /// Returns the number of new host ports that are queried.
    #[cfg(test)]
    pub(super) fn asked(&self) -> usize {
        self.asked.len()
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
    use core::net::Ipv4Addr;
    use smoltcp::wire::ArpOperation;

    fn seek(bench: &mut Bench, host: u8, except: Option<u16>) -> Vec<Effect> {
        let m = Seek { ip: ip(host).into(), except: except.map(PortNo) };
        bench.call(|edge, now, tables, out| edge.untagged(now, tables, out).seek(m))
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
        assert!(bench.edge.plain().hosts().all(|(_, host)| host.ips.is_empty()));
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

    fn seek_ip(bench: &mut Bench, ip: Ipv4Addr) -> Vec<Effect> {
        let m = Seek { ip: ip.into(), except: None };
        bench.call(|edge, now, tables, out| edge.untagged(now, tables, out).seek(m))
    }

    #[test]
    fn a_port_that_becomes_a_host_port_is_asked_for_what_is_sought_until_it_is_found() {
        let mut bench = Bench::new();
        bench.port(2, None);
        seek_ip(&mut bench, ip(9));
        bench.pass(Span::from_secs(5));
        let asked = arps(&bench.port(2, Some(PortKind::Host)));
        let [(PortNo(2), arp)] = asked[..] else { panic!("{asked:?}") };
        assert_eq!((arp.target_ip, arp.sender_ip), (ip(9), SERVER.ip));
        assert_eq!(arps(&bench.pass(Span::from_millis(60))).len(), 1, "it may have been too soon");
        let effects = bench.frame(2, &host_frame::reply(mac(9), ip(9), SERVER.mac, SERVER.ip));
        let (port, mac, ips) = (PortNo(2), mac(9), [ip(9).into()].into());
        assert!(effects.contains(&Effect::Report(Item::HostSeen { port, mac, ips })));
        assert_eq!(arps(&bench.pass(Span::from_secs(1))).len(), 0, "it was found");
    }

    #[test]
    fn a_port_is_asked_some_times_and_not_for_what_was_sought_long_ago() {
        let mut bench = Bench::new();
        // The other ports are not new.
        bench.pass(Span::from_secs(1));
        bench.port(2, None);
        seek_ip(&mut bench, ip(9));
        let first = arps(&bench.port(2, Some(PortKind::Host))).len();
        let later = arps(&bench.pass(Span::from_secs(20))).len();
        assert_eq!((first + later) as u32, TRIES);
        assert!(bench.edge.plain().parts().learning().search().asked.is_empty());
        assert_eq!(bench.port(1, None), []);
        assert_eq!(bench.port(1, Some(PortKind::Host)), [], "6 s are over");
        bench.pass(Span::from_secs(1));
        // A port that is no longer a host port is not queried again.
        seek_ip(&mut bench, ip(9));
        bench.port(2, None);
        bench.port(2, Some(PortKind::Host));
        bench.port(2, None);
        assert_eq!(arps(&bench.pass(Span::from_secs(1))).len(), 0);
        assert!(bench.edge.plain().parts().learning().search().asked.is_empty());
    }

    #[test]
    fn a_port_that_is_new_when_an_address_is_sought_is_asked_again() {
        let mut bench = Bench::new();
        bench.pass(Span::from_secs(1));
        bench.port(2, None);
        bench.port(2, Some(PortKind::Host));
        bench.pass(Span::from_millis(100));
        assert_eq!(arps(&seek_ip(&mut bench, ip(9))).len(), 3, "three host ports");
        let again = arps(&bench.pass(Span::from_millis(60)));
        assert_eq!(again.iter().map(|(port, _)| port.0).collect::<Vec<_>>(), [2]);
        bench.frame(2, &host_frame::reply(mac(9), ip(9), SERVER.mac, SERVER.ip));
        assert_eq!(arps(&bench.pass(Span::from_secs(1))).len(), 0, "it was found");
    }

    #[test]
    fn as_many_addresses_are_remembered_as_there_is_room_for_the_newest() {
        let mut bench = Bench::new();
        bench.port(2, None);
        for n in 0..300u32 {
            bench.pass(Span::from_millis(10));
            seek_ip(&mut bench, Ipv4Addr::from(0x0a00_0100 + n));
        }
        assert_eq!(bench.edge.plain().parts().learning().search().until.len(), SOUGHT_MAX);
        let asked = arps(&bench.port(2, Some(PortKind::Host)));
        assert_eq!(asked.len(), SOUGHT_MAX);
        let newest = Ipv4Addr::from(0x0a00_0100 + 299);
        assert!(asked.iter().any(|(_, arp)| arp.target_ip == newest));
    }
}
