//! Queries at a port that becomes a host port while the controller searches for addresses.
//!
//! A host whose cable is moved to another port is at no port for a moment. Its old switch loses the
//! carrier and removes its routes, the next frame for it makes the controller search for it, and
//! all edges query (`seek.rs`) without success, because the cable is unplugged. The next round of
//! queries is a second away. So each edge stores the addresses that it queried for. It queries the
//! hosts of a port for them as soon as the port is a host port, and a few more times in the half
//! second that a NIC may take to come up. So even a silent host is found as early as possible.

use super::context::{Cx, Timer};
use super::parts::Parts;
use super::seek::QUESTIONS;
use alloc::vec::Vec;
use axon_link::effect::Effect;
use axon_wire::{MacAddr, PortNo};

/// Number of times a port is queried for each of them.
const TRIES: u32 = 5;

impl Parts {
    /// Handles a port that has become a host port, or is no longer one.
    pub(super) fn sought_at(&mut self, cx: &mut Cx, port: PortNo) {
        cx.agenda.cancel(Timer::Sought(port));
        self.sought.asked.remove(&port);
        if cx.ports.is_host(port) {
            self.sought.since.entry(port).or_insert(cx.now);
        } else {
            self.sought.since.remove(&port);
        }
        if cx.ports.is_host(port) && !self.sought.until.is_empty() {
            self.sought.asked.insert(port, 0);
            self.sought_due(cx, port);
        }
    }

    /// Handles a query of the hosts of a port for an address. If the port has just become a host
    /// port, the query may have been too early and is repeated.
    pub(super) fn sought_later(&mut self, cx: &mut Cx, port: PortNo) {
        let wait = cx.settings.retry * u64::from(TRIES);
        let is_new = self.sought.since.get(&port).is_some_and(|since| cx.now.since(*since) < wait);
        if is_new && !self.sought.asked.contains_key(&port) {
            self.sought.asked.insert(port, 1);
            cx.agenda.set(Timer::Sought(port), cx.now + cx.settings.retry);
        }
    }

    /// Queries the hosts of a port for all stored addresses, or ends that.
    pub(super) fn sought_due(&mut self, cx: &mut Cx, port: PortNo) {
        self.sought.until.retain(|_, until| *until > cx.now);
        let goes_on = !self.sought.until.is_empty() && cx.ports.is_host(port);
        let asked = self.sought.asked.get_mut(&port);
        let Some(tries) = asked.filter(|tries| goes_on && **tries < TRIES) else {
            self.sought.asked.remove(&port);
            return;
        };
        *tries += 1;
        let pause = cx.settings.retry * u64::from(*tries);
        let ips = self.sought.until.keys();
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
}

#[cfg(test)]
mod tests {
    use super::super::sought::SOUGHT_MAX;
    use super::super::testing::*;
    use super::*;
    use axon_node::PortKind;
    use axon_wire::Span;
    use axon_wire::host_frame;
    use axon_wire::message::{Item, Seek};
    use core::net::Ipv4Addr;

    fn seek(bench: &mut Bench, ip: Ipv4Addr) -> Vec<Effect> {
        let m = Seek { ip: ip.into(), except: None };
        bench.call(|edge, now, tables, out| edge.seek(now, m, tables, out))
    }

    #[test]
    fn a_port_that_becomes_a_host_port_is_asked_for_what_is_sought_until_it_is_found() {
        let mut bench = Bench::new();
        bench.port(2, None);
        seek(&mut bench, ip(9));
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
        seek(&mut bench, ip(9));
        let first = arps(&bench.port(2, Some(PortKind::Host))).len();
        let later = arps(&bench.pass(Span::from_secs(20))).len();
        assert_eq!((first + later) as u32, TRIES);
        assert!(bench.edge.parts.sought.asked.is_empty());
        assert_eq!(bench.port(1, None), []);
        assert_eq!(bench.port(1, Some(PortKind::Host)), [], "6 s are over");
        bench.pass(Span::from_secs(1));
        // A port that is no longer a host port is not queried again.
        seek(&mut bench, ip(9));
        bench.port(2, None);
        bench.port(2, Some(PortKind::Host));
        bench.port(2, None);
        assert_eq!(arps(&bench.pass(Span::from_secs(1))).len(), 0);
        assert!(bench.edge.parts.sought.asked.is_empty());
    }

    #[test]
    fn a_port_that_is_new_when_an_address_is_sought_is_asked_again() {
        let mut bench = Bench::new();
        bench.pass(Span::from_secs(1));
        bench.port(2, None);
        bench.port(2, Some(PortKind::Host));
        bench.pass(Span::from_millis(100));
        assert_eq!(arps(&seek(&mut bench, ip(9))).len(), 3, "three host ports");
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
            seek(&mut bench, Ipv4Addr::from(0x0a00_0100 + n));
        }
        assert_eq!(bench.edge.parts.sought.until.len(), SOUGHT_MAX);
        let asked = arps(&bench.port(2, Some(PortKind::Host)));
        assert_eq!(asked.len(), SOUGHT_MAX);
        let newest = Ipv4Addr::from(0x0a00_0100 + 299);
        assert!(asked.iter().any(|(_, arp)| arp.target_ip == newest));
    }
}
