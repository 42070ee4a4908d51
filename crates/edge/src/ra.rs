//! Router advertisements of the edge (RFC 4861 clause 6.2, RFC 4862, RFC 8106): hosts get a prefix,
//! a router, name servers and the MTU without multicast through the fabric.
//!
//! Every host port gets three advertisements within seconds of coming up and then one in each
//! interval, at an offset of its own. A solicitation is answered at once, by unicast if the host
//! has an address already, within a rate for each port. All edges send the same content, each to
//! its own hosts only.
//!
//! Hosts take the sender's address as that of their router. So the advertisement is sent from the
//! address of the router, wherever that is, without a MAC address: hosts resolve the address as
//! usual. Without a router the edge sends from its own address with a router lifetime of zero.

use super::context::{Cx, Timer};
use super::hosts::Hosts;
use super::outcome::Outcome;
use crate::config::Ipv6Config;
use crate::effect::Effect;
use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use axon_link::bucket::{Bucket, Rate};
use axon_node::Drop;
use axon_wire::{MacAddr, PortNo, Span};
use core::net::Ipv6Addr;

/// Rate of answers to solicitations of the hosts of one port.
const ANSWERS: Rate = Rate { every: Span::from_millis(500), burst: 20 };
/// Number of advertisements of a new port at short intervals (RFC 4861 clause 10,
/// `MAX_INITIAL_RTR_ADVERTISEMENTS`).
const INITIAL: u8 = 3;
/// Interval between these; shorter than the standard's 16 s, because each goes to one port only.
const INITIAL_INTERVAL: Span = Span::from_secs(4);
/// Delay of the first one after the port becomes a host port.
const FIRST_AFTER: Span = Span::from_millis(100);
/// Minimum interval, whatever is configured.
const INTERVAL_MIN: Span = Span::from_secs(1);

impl Ipv6Config {
    /// Builds the frame for one host or all hosts, from a switch or its router.
    fn frame(
        &self,
        own: (MacAddr, Ipv6Addr),
        to: Option<(MacAddr, Ipv6Addr)>,
    ) -> alloc::vec::Vec<u8> {
        self.advertisement.frame((own.0, self.router.unwrap_or(own.1)), to)
    }
}

/// Ports that receive advertisements: at most all ports with carrier and hosts.
#[derive(Clone, Debug, Default)]
pub(super) struct Advertising {
    ports: BTreeMap<PortNo, Port>,
}

impl Advertising {
    /// Returns the number of ports that receive advertisements.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.ports.len()
    }
}

/// Advertising state of a port.
#[derive(Clone, Debug, Default)]
struct Port {
    /// Number of unsolicited advertisements sent, up to 255.
    sent: u8,
    /// Bucket for answers to solicitations.
    answers: Bucket,
}

impl Advertising {
    /// Handles a port that has become a host port, or is no longer one.
    pub(super) fn port_changed(&mut self, cx: &mut Cx, hosts: &Hosts, port: PortNo) {
        if cx.settings.services.ipv6.is_none() || hosts.is_uplink(port) {
            return;
        }
        if !cx.ports.is_host(port) {
            self.ports.remove(&port);
            cx.agenda.cancel(Timer::Advertise(port));
        } else if let Entry::Vacant(place) = self.ports.entry(port) {
            place.insert(Port::default());
            cx.agenda.set(Timer::Advertise(port), cx.now + FIRST_AFTER);
        }
    }

    /// Sends an unsolicited advertisement that is due.
    pub(super) fn due(&mut self, cx: &mut Cx, hosts: &Hosts, port: PortNo) {
        let (Some(ipv6), Some(of_port)) = (&cx.settings.services.ipv6, self.ports.get_mut(&port))
        else {
            return;
        };
        of_port.sent = of_port.sent.saturating_add(1);
        let interval = ipv6.interval.max(INTERVAL_MIN);
        let wait = match of_port.sent {
            0..INITIAL => INITIAL_INTERVAL.min(interval),
            // From here on, ports that came up together are spread over the interval.
            INITIAL => Span::from_ticks(interval.ticks() / 32 * (u64::from(port.0) % 16 + 16)),
            _ => interval,
        };
        cx.agenda.set(Timer::Advertise(port), cx.now + wait);
        let is_routers = ipv6.router_host.is_some_and(|mac| hosts.is_on(mac, port));
        if !is_routers {
            self.advertise(cx, port, None);
        }
    }

    /// Answers a host's router solicitation.
    pub(super) fn solicited(
        &mut self,
        cx: &mut Cx,
        port: PortNo,
        (mac, source): (MacAddr, Option<Ipv6Addr>),
    ) -> Result<Outcome, Drop> {
        let is_router =
            cx.settings.services.ipv6.as_ref().is_some_and(|ipv6| ipv6.router_host == Some(mac));
        if is_router {
            return Ok(Outcome::Served);
        }
        let of_port = self.ports.get_mut(&port);
        let Some(of_port) = of_port.filter(|of_port| of_port.answers.has(cx.now, ANSWERS)) else {
            cx.counters.advertisements_limited += 1;
            return Err(Drop::Refused);
        };
        of_port.answers.take(cx.now, ANSWERS);
        self.advertise(cx, port, source.map(|source| (mac, source)));
        Ok(Outcome::Served)
    }

    fn advertise(&self, cx: &mut Cx, port: PortNo, to: Option<(MacAddr, Ipv6Addr)>) {
        let own = (cx.settings.server.mac, cx.settings.link_local());
        if let Some(ipv6) = &cx.settings.services.ipv6 {
            cx.counters.advertisements += 1;
            cx.out.push(Effect::Host { port, frame: ipv6.frame(own, to) });
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::testing::*;
    use super::*;
    use crate::config::EdgeServices;
    use alloc::vec::Vec;
    use axon_node::PortKind;
    use axon_wire::nd;
    use axon_wire::router::{self, Advertisement, Router};

    /// Host 7 is the router.
    pub(in super::super) fn config() -> Ipv6Config {
        Ipv6Config {
            advertisement: Advertisement {
                router_seconds: 300,
                prefix: Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, 0),
                prefix_len: 64,
                autonomous: true,
                managed: false,
                other: false,
                valid_seconds: 86_400,
                preferred_seconds: 14_400,
                mtu: Some(1400),
                dns: Vec::new(),
                domain: None,
                dns_seconds: 300,
            },
            router: Some(nd::link_local(mac(7))),
            router_host: Some(mac(7)),
            dhcp: None,
            interval: Span::from_secs(100),
        }
    }

    /// Returns the advertisements among these effects: port and destination.
    pub(in super::super) fn advertised(effects: &[Effect]) -> Vec<(PortNo, MacAddr)> {
        let one = |effect: &Effect| match effect {
            Effect::Host { port, frame } => {
                let is = router::classify(frame) == Some(Router::Advertisement);
                Some((*port, MacAddr::destination_of(frame)?)).filter(|_| is)
            }
            _ => None,
        };
        effects.iter().filter_map(one).collect()
    }

    fn bench(config: Ipv6Config) -> Bench {
        let mut bench = Bench::new();
        bench.edge.plain_mut().settings().services =
            EdgeServices { ipv6: Some(config.into()), ..EdgeServices::default() };
        for port in 0..2 {
            bench.port(port, None);
            bench.port(port, Some(PortKind::Host));
        }
        bench
    }

    const TO_ALL: MacAddr = MacAddr([0x33, 0x33, 0, 0, 0, 1]);

    #[test]
    fn host_ports_get_three_advertisements_at_first_and_then_one_in_each_interval() {
        let mut bench = bench(config());
        let (mut at, mut all) = (0, Vec::new());
        for second in 0..400 {
            let sent = advertised(&bench.pass(Span::from_secs(1)));
            at = if sent.is_empty() { at } else { second };
            all.extend(sent);
        }
        assert!(at > 300);
        for port in 0..2 {
            let count = all.iter().filter(|sent| **sent == (PortNo(port), TO_ALL)).count();
            assert_eq!(count, 3 + 4, "port {port} of {all:?}");
        }
        assert_eq!(all.len(), 14, "hosts only");
        bench.port(0, Some(PortKind::Axon));
        let later = advertised(&bench.pass(Span::from_secs(200)));
        assert_eq!(later, [(PortNo(1), TO_ALL); 2]);
    }

    #[test]
    fn a_solicitation_is_answered_at_once_and_not_too_often() {
        let mut bench = bench(config());
        let local = nd::link_local(mac(1));
        let effects = bench.frame(0, &router::solicitation_frame((mac(1), Some(local))));
        assert_eq!(advertised(&effects), [(PortNo(0), mac(1))]);
        let unnamed = router::solicitation_frame((mac(1), None));
        assert_eq!(advertised(&bench.frame(0, &unnamed)), [(PortNo(0), TO_ALL)]);
        let more = (0..1_000).map(|_| advertised(&bench.frame(0, &unnamed)).len()).sum::<usize>();
        assert_eq!(more as u64, ANSWERS.burst - 2);
        let elsewhere = bench.frame(1, &router::solicitation_frame((mac(2), None)));
        assert_eq!(advertised(&elsewhere).len(), 1);
        let counters = bench.edge.counters();
        assert_eq!(counters.advertisements, ANSWERS.burst + 1);
        assert_eq!(counters.advertisements_limited, 1_000 - (ANSWERS.burst - 2));
    }

    #[test]
    fn it_is_sent_from_the_routers_address_and_not_to_the_router() {
        let source = |config: Ipv6Config| {
            let mut bench = bench(config);
            let effects = bench.frame(0, &router::solicitation_frame((mac(1), None)));
            let frame = effects.iter().find_map(|effect| match effect {
                Effect::Host { frame, .. } => Some(frame.clone()),
                _ => None,
            });
            Ipv6Addr::from(<[u8; 16]>::try_from(&frame.unwrap()[22..38]).unwrap())
        };
        assert_eq!(source(config()), nd::link_local(mac(7)));
        let without = Ipv6Config { router: None, router_host: None, ..config() };
        assert_eq!(source(without), nd::link_local(SERVER.mac));

        let mut bench = bench(config());
        let routers = router::solicitation_frame((mac(7), None));
        assert_eq!(advertised(&bench.frame(1, &routers)), []);
        let later = advertised(&bench.pass(Span::from_secs(30)));
        assert_eq!(later, [(PortNo(0), TO_ALL); 3], "host 7 is at port 1");
    }
}
