//! Hosts of an earlier life of this switch, asked for again.
//!
//! A switch that has restarted knows no host until one sends something; a server that only
//! listens would stay unknown, and nobody could reach it. The controller remembers who was
//! where. The switch asks each such host by ARP, a few times, once its port has become a host
//! port; a host that answers is learned like any other, and one that does not is forgotten.

use super::{Cx, Edge, Timer, packet};
use crate::effect::Effect;
use axon_wire::{MacAddr, PortNo};
use core::net::Ipv4Addr;

/// Questions, and waits for the port, before a host is given up.
const TRIES: u32 = 16;
/// Hosts of one switch that are asked for at once.
const RECALLS_MAX: usize = 4096;

/// A host that is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recall {
    ip: Ipv4Addr,
    tries: u32,
}

impl Edge {
    /// The controller remembers a host on `port`.
    pub(super) fn recall(&mut self, cx: &mut Cx, port: PortNo, mac: MacAddr, ip: Ipv4Addr) {
        let sane = port.index() < self.host_ports.len()
            && self.is_host_mac(mac)
            && packet::is_host_ip(ip)
            && self.recalls.len() < RECALLS_MAX;
        if !sane {
            self.counters.messages_ignored += 1;
            return;
        }
        self.recalls.insert((port, mac), Recall { ip, tries: 0 });
        self.recall_due(cx, port, mac);
    }

    /// Asks, waits for the port, or gives up.
    pub(super) fn recall_due(&mut self, cx: &mut Cx, port: PortNo, mac: MacAddr) {
        let key = (port, mac);
        let Some(recall) = self.recalls.get_mut(&key) else { return };
        recall.tries += 1;
        let (ip, tries) = (recall.ip, recall.tries);
        if tries > TRIES || self.hosts.get(mac).is_some() {
            self.recalls.remove(&key);
            return;
        }
        if self.is_host_port(port) {
            let frame = packet::request(self.server.mac, self.server.ip, mac, ip);
            cx.out.push(Effect::Host { port, frame });
        }
        let pause = self.retry * u64::from(tries);
        self.agenda.set(Timer::Recall(port, mac), cx.now + pause);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use axon_wire::message::Item;
    use core::net::IpAddr;

    fn remembered(bench: &mut Bench, port: u16, host: u8) -> alloc::vec::Vec<Effect> {
        bench.item(Item::AskHost { port: PortNo(port), mac: mac(host), ip: IpAddr::V4(ip(host)) })
    }

    fn questions(effects: &[Effect]) -> usize {
        arps(effects).len()
    }

    #[test]
    fn a_host_that_only_listens_is_found_again() {
        let mut bench = Bench::new();
        assert_eq!(questions(&remembered(&mut bench, 0, 7)), 1);
        let answer = packet::reply(mac(7), ip(7), SERVER.mac, SERVER.ip);
        let effects = bench.frame(0, &answer);
        let seen = |effect: &Effect| matches!(effect, Effect::Report(Item::HostSeen { .. }));
        assert!(effects.iter().any(seen));
        let later = bench.pass(axon_wire::Span::from_secs(2));
        assert_eq!(questions(&later), 0, "whoever has answered is not asked again");
        assert!(bench.edge.recalls.is_empty());
    }

    #[test]
    fn a_host_that_is_gone_is_given_up_and_one_on_an_axon_port_is_not_asked() {
        let mut bench = Bench::new();
        let asked = questions(&remembered(&mut bench, 0, 7));
        assert_eq!(questions(&remembered(&mut bench, 3, 8)), 0);
        let later = bench.pass(axon_wire::Span::from_secs(60));
        assert_eq!(asked + questions(&later), TRIES as usize);
        assert!(bench.edge.recalls.is_empty());
    }

    #[test]
    fn nonsense_from_the_controller_is_ignored() {
        let mut bench = Bench::new();
        remembered(&mut bench, 900, 7);
        let server = Item::AskHost { port: PortNo(0), mac: SERVER.mac, ip: IpAddr::V4(ip(7)) };
        bench.item(server);
        assert!(bench.edge.recalls.is_empty());
        assert_eq!(bench.edge.counters().messages_ignored, 2);
    }
}
