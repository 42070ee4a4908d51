//! Guard against hosts that configure other hosts: frames of unauthorised senders are dropped and
//! counted.
//!
//! A host's broadcast is not forwarded, so such a frame reaches a victim by unicast only, over a
//! route that exists already, because the data plane checks only MAC addresses. The first frame,
//! every broadcast and every multicast reach the edge.

use super::context::Cx;
use super::dhcpv6::{Dhcpv6, refusal};
use super::hosts::Hosts;
use super::outcome::Outcome;
use super::ping::Ping;
use super::ra::Advertising;
use axon_node::Drop;
use axon_wire::dhcpv6::{Datagram, SERVER_PORT};
use axon_wire::router::{self, Router};
use axon_wire::{MacAddr, PortNo, host_frame};

/// Services of the edge for the configuration of hosts, and ping.
#[derive(Clone, Debug, Default)]
pub(super) struct Services {
    pub(super) advertising: Advertising,
    pub(super) ping: Ping,
    dhcpv6: Dhcpv6,
}

impl Services {
    /// Serves or refuses a host's frame for the configuration of hosts. `None` if it is another
    /// frame, or its sender is authorised.
    pub(super) fn configuration(
        &mut self,
        cx: &mut Cx,
        hosts: &Hosts,
        (port, source): (PortNo, MacAddr),
        frame: &[u8],
    ) -> Option<Result<Outcome, Drop>> {
        if hosts.is_uplink(port)
            && let Some(refused) = self.configuration_outside(cx, frame)
        {
            return Some(Err(refused));
        }
        if host_frame::is_dhcp_server(frame) && cx.settings.services.dhcp_server != Some(source) {
            cx.counters.dhcp_servers_refused += 1;
            return Some(Err(refusal(frame)));
        }
        if let Some(done) = self.dhcpv6.serve(cx, port, frame) {
            return Some(done);
        }
        let ipv6 = cx.settings.services.ipv6.as_ref()?;
        match router::classify(frame)? {
            Router::Solicitation(asks) => {
                Some(self.advertising.solicited(cx, port, (source, asks)))
            }
            Router::BadSolicitation => Some(Err(Drop::Malformed)),
            Router::Advertisement if ipv6.router_host == Some(source) => None,
            Router::Advertisement => {
                cx.counters.advertisements_refused += 1;
                Some(Err(refusal(frame)))
            }
        }
    }

    /// Drops configuration frames to or from an external network: its services and the fabric's are
    /// separate.
    fn configuration_outside(&self, cx: &mut Cx, frame: &[u8]) -> Option<Drop> {
        let serves = host_frame::is_dhcp_server(frame) || host_frame::is_to_dhcpv6_client(frame);
        cx.counters.dhcp_servers_refused += u64::from(serves);
        let asks = host_frame::classify(frame) == host_frame::Kind::DhcpClient
            || Datagram::parse(frame).is_some_and(|datagram| datagram.to_port == SERVER_PORT);
        let solicits = || matches!(router::classify(frame), Some(Router::Solicitation(_)));
        (serves || asks || solicits()).then(|| refusal(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::super::ra::tests::{advertised, config};
    use super::super::testing::*;
    use super::*;
    use crate::config::{EdgeServices, PortPolicy};
    use crate::effect::Effect;
    use axon_wire::nd;

    #[test]
    fn only_the_dhcp_server_of_the_file_answers_clients() {
        let mut bench = Bench::new();
        let offer = |to, from| dhcp_frame(to, mac(from), (67, 68), b"offer");
        for (to, reason) in [(MacAddr::BROADCAST, Drop::Broadcast), (mac(9), Drop::Refused)] {
            let effects = bench.frame(0, &offer(to, 1));
            assert!(!effects.iter().any(|effect| matches!(effect, Effect::ToController(_))));
            assert_eq!(bench.last_drop(), Some(reason));
        }
        assert_eq!(bench.edge.counters().dhcp_servers_refused, 2);
        bench.edge.plain_mut().settings().services.dhcp_server = Some(mac(2));
        bench.frame(1, &offer(mac(9), 2));
        assert_eq!(bench.edge.counters().dhcp_servers_refused, 2, "it is the server");
        bench.frame(0, &offer(mac(9), 1));
        assert_eq!(bench.edge.counters().dhcp_servers_refused, 3);
    }

    #[test]
    fn no_dhcp_and_no_router_discovery_passes_an_uplink() {
        use axon_wire::{dhcpv6, router};
        let mut edge_config = Bench::config(1000, 4);
        edge_config.ports = [PortPolicy { uplink: true, ..PortPolicy::default() }].into();
        let mut bench = Bench::on(TestDevice::new(8), edge_config);
        bench.edge.plain_mut().settings().services =
            EdgeServices { ipv6: Some(config().into()), ..EdgeServices::default() };
        bench.edge.plain_mut().settings().services.dhcp_server = Some(mac(1));
        let local = (mac(1), nd::link_local(mac(1)));
        let asks = [
            dhcp_frame(MacAddr::BROADCAST, mac(1), (68, 67), b"discover"),
            dhcp_frame(MacAddr::BROADCAST, mac(1), (67, 68), b"offer"),
            dhcpv6::frame(local, dhcpv6::all_servers(), (546, 547), &[1, 0, 0, 1]),
            dhcpv6::frame(local, (mac(2), local.1), (547, 546), &[7, 0, 0, 1]),
            router::solicitation_frame((mac(1), None)),
        ];
        for (number, frame) in asks.iter().enumerate() {
            let dropped = bench.dropped.len();
            let effects = bench.frame(0, frame);
            let says =
                |effect: &Effect| matches!(effect, Effect::ToController(_) | Effect::Host { .. });
            assert!(!effects.iter().any(says), "{number}: {effects:?}");
            assert_eq!(bench.dropped.len(), dropped + 1, "{number}");
        }
        assert_eq!(bench.edge.counters().dhcp_servers_refused, 2);
        for port in 0..2 {
            bench.port(port, None);
            bench.port(port, Some(axon_node::PortKind::Host));
        }
        let sent = advertised(&bench.pass(axon_wire::Span::from_secs(30)));
        assert!(!sent.is_empty() && sent.iter().all(|(port, _)| *port == PortNo(1)), "{sent:?}");
        // Other frames are handled as usual.
        assert!(!bench.frame(0, &arp_request(1, 9)).is_empty());
    }

    #[test]
    fn advertisements_of_hosts_that_are_no_router_are_refused_and_counted() {
        let mut bench = Bench::new();
        let forged = |from: u8, to| {
            let by = (mac(from), nd::link_local(mac(from)));
            config().advertisement.frame(by, to)
        };
        bench.frame(0, &forged(1, None));
        assert_eq!(bench.edge.counters().advertisements_refused, 0, "none are asked for");
        bench.edge.plain_mut().settings().services =
            EdgeServices { ipv6: Some(config().into()), ..EdgeServices::default() };
        let victim = Some((mac(2), nd::link_local(mac(2))));
        for (to, reason) in [(None, Drop::Broadcast), (victim, Drop::Refused)] {
            let effects = bench.frame(0, &forged(1, to));
            assert!(advertised(&effects).is_empty());
            assert_eq!(bench.last_drop(), Some(reason));
        }
        assert_eq!(bench.edge.counters().advertisements_refused, 2);
        // The guard does not check the router's own advertisements.
        bench.frame(1, &forged(7, None));
        assert_eq!(bench.edge.counters().advertisements_refused, 2);
    }
}
