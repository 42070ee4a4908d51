//! Queries for hosts that were at this switch before.
//!
//! A host that only receives would stay unknown once it has been removed, and no other host could
//! reach it. So every removed host with an address is listed and queried by ARP: when its port has
//! carrier again, when it no longer answered, when another port has received its MAC address, when
//! the switch has restarted (then the controller has the list), and when the controller has to
//! verify a move. A host that answers is learned and reported as usual. The query interval grows to
//! that of probes, and the queries end after about an hour.

use super::context::{Cx, Timer};
use super::hosts::Hosts;
use crate::effect::Effect;
use alloc::collections::BTreeMap;
use axon_wire::{MacAddr, PortNo};
use core::net::IpAddr;

/// Number of queries before a host is given up: an hour at the rate of probes.
const TRIES: u64 = 720;
/// Number of queries before a host known at another port is given up: about four seconds.
const TRIES_ELSEWHERE: u64 = 12;
/// Maximum number of listed hosts of one port. A full port drops the host with the most queries, so
/// that no port takes room from others.
const RECALLS_PER_PORT_MAX: usize = 256;

/// Port and MAC address of a listed host.
type Key = (PortNo, MacAddr);

/// Listed hosts of each port.
#[derive(Clone, Debug, Default)]
pub(super) struct Recalls {
    of: BTreeMap<Key, Recall>,
}

/// A previous local host that is queried for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recall {
    ip: IpAddr,
    tries: u64,
    /// True if it is queried because another port has received its MAC address.
    pub(super) moved: bool,
}

impl Recalls {
    /// Handles the controller's request to query a host on `port`. The address that the host has
    /// here takes precedence over `ip`, which another station may have claimed in its name.
    pub(super) fn recall(&mut self, cx: &mut Cx, hosts: &Hosts, (port, mac): Key, ip: IpAddr) {
        let sane = cx.ports.kind(port).is_some()
            && cx.settings.is_host_mac(mac)
            && cx.settings.is_host_ip(ip);
        let here = hosts.get(mac).filter(|host| host.port == port);
        let own = here.and_then(|host| host.ips.newest());
        if sane {
            self.remember(cx, port, mac, own.unwrap_or(ip));
            self.due(cx, hosts, (port, mac));
        } else {
            cx.counters.messages_ignored += 1;
        }
    }

    /// Lists a host that was on `port`.
    fn remember(&mut self, cx: &mut Cx, port: PortNo, mac: MacAddr, ip: IpAddr) {
        if !self.of.contains_key(&(port, mac)) {
            let on_port = self.of.range(of_port(port));
            let most_queried = on_port.clone().max_by_key(|(_, recall)| recall.tries);
            if let Some((&(_, oldest), _)) = most_queried
                && on_port.count() >= RECALLS_PER_PORT_MAX
            {
                self.end(cx, port, oldest);
            }
        }
        self.of.insert((port, mac), Recall { ip, tries: 0, moved: false });
    }

    /// Lists a removed host, which is queried later.
    pub(super) fn later(&mut self, cx: &mut Cx, port: PortNo, mac: MacAddr, ip: IpAddr) {
        self.remember(cx, port, mac, ip);
        if cx.ports.is_host(port) {
            cx.agenda.set(Timer::Recall(port, mac), cx.now + cx.settings.host_probe);
        }
    }

    /// Queries the listed hosts of a port that has become a host port. At any other port the
    /// queries end.
    pub(super) fn port_changed(&mut self, cx: &mut Cx, hosts: &Hosts, port: PortNo) {
        let macs: alloc::vec::Vec<_> = self.of.range(of_port(port)).map(|(key, _)| key.1).collect();
        for mac in macs {
            if let Some(recall) = self.of.get_mut(&(port, mac)) {
                recall.tries = 0;
            }
            self.due(cx, hosts, (port, mac));
        }
    }

    /// Ends the queries for a host that was received on `port`; returns their state.
    pub(super) fn end(&mut self, cx: &mut Cx, port: PortNo, mac: MacAddr) -> Option<Recall> {
        cx.agenda.cancel(Timer::Recall(port, mac));
        self.of.remove(&(port, mac))
    }

    /// Returns whether a host known on `port` is being queried there and has not answered yet: the
    /// controller has it elsewhere. Other hosts of the port, such as behind a bridge, may look for
    /// it there.
    pub(super) fn seems_moved(&self, port: PortNo, mac: MacAddr) -> bool {
        self.of.contains_key(&(port, mac))
    }

    /// Queries a host at the port that it has left, since another port has received its MAC
    /// address.
    pub(super) fn moved(&mut self, cx: &mut Cx, hosts: &Hosts, (port, mac): Key) {
        if let Some(recall) = self.of.get_mut(&(port, mac)) {
            recall.moved = true;
            self.due(cx, hosts, (port, mac));
        }
    }

    /// Returns the listed hosts: port and MAC address.
    #[cfg(test)]
    pub(super) fn keys(&self) -> impl Iterator<Item = Key> {
        self.of.keys().copied()
    }

    /// Sends the next query, or gives up.
    pub(super) fn due(&mut self, cx: &mut Cx, hosts: &Hosts, (port, mac): Key) {
        let key = (port, mac);
        let Some(recall) = self.of.get_mut(&key) else { return };
        let elsewhere = hosts.get(mac).is_some_and(|host| host.port != port);
        if recall.tries >= if elsewhere { TRIES_ELSEWHERE } else { TRIES } {
            self.end(cx, port, mac);
            return;
        }
        if !cx.ports.is_host(port) {
            cx.agenda.cancel(Timer::Recall(port, mac));
            return;
        }
        recall.tries += 1;
        let pause = cx.settings.host_probe.min(cx.settings.retry * recall.tries);
        let ip = recall.ip;
        cx.out.extend(cx.settings.question(mac, ip).map(|frame| Effect::Host { port, frame }));
        cx.agenda.set(Timer::Recall(port, mac), cx.now + pause);
    }
}

fn of_port(port: PortNo) -> core::ops::RangeInclusive<Key> {
    (port, MacAddr([0; 6]))..=(port, MacAddr::BROADCAST)
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use alloc::vec::Vec;
    use axon_node::PortKind;
    use axon_wire::Span;
    use axon_wire::host_frame;
    use axon_wire::message::Item;
    use core::net::Ipv4Addr;

    fn asked_for(bench: &mut Bench, port: u16, host: u8) -> Vec<Effect> {
        bench.item(Item::AskHost { port: PortNo(port), mac: mac(host), ip: IpAddr::V4(ip(host)) })
    }

    fn answer(host: u8) -> Vec<u8> {
        host_frame::reply(mac(host), ip(host), SERVER.mac, SERVER.ip)
    }

    fn listed(bench: &Bench) -> Vec<Key> {
        bench.edge.plain().parts().learning().recalls().keys().collect()
    }

    fn seen(effects: &[Effect]) -> usize {
        let seen = |effect: &&Effect| matches!(effect, Effect::Report(Item::HostSeen { .. }));
        effects.iter().filter(seen).count()
    }

    #[test]
    fn a_host_that_only_listens_is_found_again_after_a_restart_of_its_switch() {
        let mut bench = Bench::new();
        assert_eq!(arps(&asked_for(&mut bench, 0, 7)).len(), 1);
        assert!(seen(&bench.frame(0, &answer(7))) > 0);
        assert!(listed(&bench).is_empty(), "whoever has answered is not asked again");
    }

    #[test]
    fn a_host_that_only_listens_is_found_again_when_its_cable_is_back() {
        let mut bench = Bench::new();
        bench.host(0, 7);
        bench.port(0, None);
        assert_eq!(bench.edge.plain().hosts().count(), 0);
        bench.pass(Span::from_secs(60));
        assert_eq!(arps(&bench.port(0, Some(PortKind::Host))).len(), 1);
        assert!(seen(&bench.frame(0, &answer(7))) > 0);
    }

    #[test]
    fn a_host_that_is_said_to_have_moved_and_has_not_is_reported_again() {
        let mut bench = Bench::new();
        bench.host(0, 7);
        assert_eq!(seen(&bench.frame(0, &answer(7))), 0, "nothing new");
        assert_eq!(arps(&asked_for(&mut bench, 0, 7)).len(), 1);
        assert_eq!(seen(&bench.frame(0, &answer(7))), 1);
    }

    #[test]
    fn a_host_whose_mac_another_port_has_used_is_queried_at_its_own_and_comes_back() {
        let mut bench = Bench::new();
        bench.host(0, 7);
        bench.pass(Span::from_secs(1));
        let effects = bench.frame(1, &udp_frame(mac(9), mac(7), 0));
        let [(PortNo(0), arp)] = arps(&effects)[..] else { panic!("{effects:?}") };
        assert_eq!(arp.target_ip, ip(7));
        assert_eq!(seen(&bench.frame(0, &answer(7))), 0, "too soon");
        assert!(!arps(&bench.pass(Span::from_millis(210))).is_empty(), "so it is queried again");
        let effects = bench.frame(0, &answer(7));
        assert!(seen(&effects) > 0);
        assert_eq!(arps(&effects).len(), 0, "nobody else is queried");
        assert_eq!(bench.edge.plain().hosts().next().unwrap().1.port, PortNo(0));
    }

    #[test]
    fn others_at_its_port_look_elsewhere_for_a_host_that_the_controller_has_elsewhere() {
        let mut bench = Bench::new();
        bench.host(0, 1);
        bench.host(0, 7);
        let frame = udp_frame(mac(7), mac(1), 0);
        assert_eq!(bench.frame(0, &frame), []);
        assert_eq!(bench.last_drop(), Some(axon_node::Drop::Refused), "it is at the same port");
        asked_for(&mut bench, 0, 7);
        let request = asked(&bench.frame(0, &frame));
        assert_eq!(request.target, axon_wire::message::Target::Mac(mac(7)));
        let request = asked(&bench.frame(0, &arp_request(1, 7)));
        assert_eq!(request.target, axon_wire::message::Target::Ip(ip(7).into()));
        // The host is still there.
        bench.frame(0, &answer(7));
        bench.host(0, 2);
        bench.frame(0, &udp_frame(mac(7), mac(2), 0));
        assert_eq!(bench.last_drop(), Some(axon_node::Drop::Refused));
        assert_eq!(bench.frame(0, &arp_request(2, 7)), [], "it answers for itself");
    }

    #[test]
    fn a_host_that_has_moved_is_queried_at_its_old_port_for_a_few_seconds() {
        let mut bench = Bench::new();
        bench.host(0, 7);
        bench.pass(Span::from_secs(1));
        let first = arps(&bench.frame(1, &udp_frame(mac(9), mac(7), 0))).len();
        let later = bench.pass(Span::from_secs(60));
        assert_eq!((first + arps(&later).len()) as u64, TRIES_ELSEWHERE);
        assert!(listed(&bench).is_empty());
    }

    #[test]
    fn a_host_is_queried_for_the_address_that_it_has_here() {
        let mut bench = Bench::new();
        bench.host(0, 7);
        let ask = Item::AskHost { port: PortNo(0), mac: mac(7), ip: IpAddr::V4(ip(66)) };
        let effects = bench.item(ask);
        assert_eq!(arps(&effects)[0].1.target_ip, ip(7));
    }

    #[test]
    fn a_host_that_is_gone_is_given_up_and_one_on_an_axon_port_is_not_asked() {
        let mut bench = Bench::new();
        let first = arps(&asked_for(&mut bench, 0, 7)).len();
        assert_eq!(arps(&asked_for(&mut bench, 3, 8)).len(), 0);
        let later = bench.pass(Span::from_secs(7200));
        assert_eq!((first + arps(&later).len()) as u64, TRIES);
        assert_eq!(listed(&bench).len(), 1, "the one whose port is no host port");
    }

    #[test]
    fn one_port_cannot_take_the_places_of_others_in_the_list() {
        let mut bench = Bench::new();
        let mac = |n: u32| {
            let [_, a, b, c] = n.to_be_bytes();
            MacAddr([2, 0, 7, a, b, c])
        };
        for n in 0..5_000u32 {
            let ip = IpAddr::V4(Ipv4Addr::from(0x0a00_0100 + n));
            bench.item(Item::AskHost { port: PortNo(0), mac: mac(n), ip });
        }
        let on_first = listed(&bench).iter().filter(|(port, _)| *port == PortNo(0)).count();
        assert_eq!(on_first, RECALLS_PER_PORT_MAX);
        assert_eq!(arps(&asked_for(&mut bench, 1, 8)).len(), 1, "another port has room");
        let newest = (PortNo(0), mac(4_999));
        assert!(listed(&bench).contains(&newest), "it replaced another");
    }

    #[test]
    fn nonsense_from_the_controller_is_ignored() {
        let mut bench = Bench::new();
        asked_for(&mut bench, 900, 7);
        let server = Item::AskHost { port: PortNo(0), mac: SERVER.mac, ip: IpAddr::V4(ip(7)) };
        bench.item(server);
        assert!(listed(&bench).is_empty());
        assert_eq!(bench.edge.counters().messages_ignored, 2);
    }
}
