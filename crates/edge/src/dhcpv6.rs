//! DHCPv6 at the edge (RFC 8415): hosts' messages are terminated here.
//!
//! With a server among the hosts, a client's message goes to the controller, which is the relay
//! agent and receives the server's messages. Without one, the edge answers information requests
//! with the settings of its router advertisements, and no addresses are assigned. No host may be a
//! relay agent, or send directly to clients or to the server; such messages are refused.

use super::context::Cx;
use super::outcome::Outcome;
use crate::config::Ipv6Config;
use crate::effect::Effect;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_link::bucket::{Bucket, Rate};
use axon_node::Drop;
use axon_wire::dhcpv6::{self, Datagram, SERVER_PORT, kind, option};
use axon_wire::message::{HostFrame, Message};
use axon_wire::{MacAddr, PortNo, Span, host_frame, router};
use core::net::Ipv6Addr;

/// Rate of answers to information requests of the hosts of one port.
const ANSWERS: Rate = Rate { every: Span::from_millis(100), burst: 20 };
/// Refresh time of the information in seconds: the minimum of RFC 8415 clause 7.6.
const REFRESH_SECONDS: u32 = 600;

/// DHCPv6 of the hosts.
#[derive(Clone, Debug, Default)]
pub(super) struct Dhcpv6 {
    /// Bucket for the answers to the hosts of each port.
    informed: BTreeMap<PortNo, Bucket>,
}

impl Dhcpv6 {
    /// Serves or refuses a DHCPv6 frame; `None` if it is another frame.
    pub(super) fn serve(
        &mut self,
        cx: &mut Cx,
        port: PortNo,
        frame: &[u8],
    ) -> Option<Result<Outcome, Drop>> {
        let server = cx.settings.services.ipv6.as_ref()?.dhcp.as_ref()?.server;
        if host_frame::is_to_dhcpv6_client(frame) {
            cx.counters.dhcp_servers_refused += 1;
            return Some(Err(refusal(frame)));
        }
        let datagram = Datagram::parse(frame).filter(|datagram| datagram.to_port == SERVER_PORT)?;
        let (source, own) = (datagram.from.0, cx.settings.link_local());
        let mac = MacAddr::destination_of(frame)?;
        let to_all = (mac, datagram.to) == dhcpv6::all_servers();
        let to_us = to_all || (mac, datagram.to) == (cx.settings.server.mac, own);
        let kind = *datagram.message.first()?;
        Some(match kind {
            kind::RELAY_REPLY if to_us && server == Some(source) => self.pass_on(cx, port, frame),
            kind::RELAY_REPLY => {
                cx.counters.dhcp_servers_refused += 1;
                Err(refusal(frame))
            }
            _ if !to_us || !is_of_client(kind) => Err(refusal(frame)),
            _ if !datagram.from.1.is_unicast_link_local() || datagram.from.1 == own => {
                Err(refusal(frame))
            }
            _ if server.is_some() => self.pass_on(cx, port, frame),
            kind::INFORMATION_REQUEST => self.inform(cx, port, &datagram),
            _ => Ok(Outcome::Served),
        })
    }

    fn pass_on(&self, cx: &mut Cx, port: PortNo, frame: &[u8]) -> Result<Outcome, Drop> {
        let frame = frame.to_vec();
        cx.out.push(Effect::ToController(Message::DhcpRelay(HostFrame { port, frame })));
        Ok(Outcome::Served)
    }

    /// Answers an information request (RFC 8415 clause 18.3.6).
    fn inform(&mut self, cx: &mut Cx, port: PortNo, asked: &Datagram<'_>) -> Result<Outcome, Drop> {
        let Some(ipv6) = cx.settings.services.ipv6.as_ref() else { return Ok(Outcome::Served) };
        let mac = cx.settings.server.mac;
        let Some(message) = information(ipv6, mac, asked.message) else {
            return Err(Drop::Malformed);
        };
        let answers = self.informed.entry(port).or_default();
        if !answers.has(cx.now, ANSWERS) {
            cx.counters.advertisements_limited += 1;
            return Err(Drop::Refused);
        }
        answers.take(cx.now, ANSWERS);
        let own = (mac, cx.settings.link_local());
        let ports = (SERVER_PORT, dhcpv6::CLIENT_PORT);
        let frame = dhcpv6::frame(own, asked.from, ports, &message);
        cx.out.push(Effect::Host { port, frame });
        Ok(Outcome::Served)
    }
}

/// Returns the drop reason for a host's server frame. A broadcast or multicast is never forwarded,
/// whoever sends it.
pub(super) fn refusal(frame: &[u8]) -> Drop {
    match MacAddr::destination_of(frame) {
        Some(to) if to.is_multicast() => Drop::Broadcast,
        _ => Drop::Refused,
    }
}

/// Returns whether only clients send this type of message.
const fn is_of_client(kind: u8) -> bool {
    use kind::{CONFIRM, DECLINE, INFORMATION_REQUEST, REBIND, RELEASE, RENEW, REQUEST, SOLICIT};
    matches!(
        kind,
        SOLICIT | REQUEST | CONFIRM | RENEW | REBIND | RELEASE | DECLINE | INFORMATION_REQUEST
    )
}

/// Builds the reply to an information request. `None` if it requests addresses or another server
/// (RFC 8415 clause 16.12), or is malformed.
fn information(ipv6: &Ipv6Config, server: MacAddr, request: &[u8]) -> Option<Vec<u8>> {
    let request = dhcpv6::Message::parse(request)?;
    let has = |code| dhcpv6::find(request.options, code);
    let wants_address = [option::IA_NA, option::IA_TA, option::IA_PD];
    let own = dhcpv6::duid(server);
    if wants_address.into_iter().any(|code| has(code).is_some())
        || has(option::SERVER_ID).is_some_and(|asked| asked != own)
    {
        return None;
    }
    let mut options = Vec::new();
    dhcpv6::push(&mut options, option::SERVER_ID, &own);
    if let Some(client) = has(option::CLIENT_ID) {
        dhcpv6::push(&mut options, option::CLIENT_ID, client);
    }
    let says = &ipv6.advertisement;
    if !says.dns.is_empty() {
        let dns: Vec<u8> = says.dns.iter().flat_map(Ipv6Addr::octets).collect();
        dhcpv6::push(&mut options, option::DNS, &dns);
    }
    if let Some(domain) = &says.domain {
        dhcpv6::push(&mut options, option::DOMAINS, &router::encoded_name(domain));
    }
    dhcpv6::push(&mut options, option::REFRESH_TIME, &REFRESH_SECONDS.to_be_bytes());
    let reply =
        dhcpv6::Message { kind: kind::REPLY, transaction: request.transaction, options: &options };
    Some(reply.emit())
}

#[cfg(test)]
mod tests {
    use super::super::ra::tests::config;
    use super::super::testing::*;
    use super::*;
    use crate::config::{Dhcpv6Config, EdgeServices};
    use axon_wire::nd;

    /// Host 9 is the server, or there is none.
    fn bench(server: Option<MacAddr>) -> Bench {
        let mut config = config();
        config.advertisement.dns = alloc::vec![Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, 53)];
        config.advertisement.domain = Some("lab.example".into());
        config.dhcp = Some(Dhcpv6Config { server, address: None });
        let mut bench = Bench::new();
        bench.edge.plain_mut().settings().services =
            EdgeServices { ipv6: Some(config.into()), ..EdgeServices::default() };
        bench
    }

    fn local(host: u8) -> (MacAddr, Ipv6Addr) {
        (mac(host), nd::link_local(mac(host)))
    }

    /// A message of a host, with its client identifier.
    fn message(kind: u8) -> Vec<u8> {
        let mut options = Vec::new();
        dhcpv6::push(&mut options, option::CLIENT_ID, &dhcpv6::duid(mac(1)));
        dhcpv6::Message { kind, transaction: 7, options: &options }.emit()
    }

    fn to_servers(host: u8, message: &[u8]) -> Vec<u8> {
        dhcpv6::frame(local(host), dhcpv6::all_servers(), (546, 547), message)
    }

    fn relayed(kind: u8, message: &[u8]) -> Vec<u8> {
        let link = Ipv6Addr::LOCALHOST;
        dhcpv6::Relayed { kind, hops: 0, link, peer: local(1).1, interface: b"x", message }.emit()
    }

    fn goes_to_controller(effects: &[Effect]) -> bool {
        effects.iter().any(|effect| matches!(effect, Effect::ToController(Message::DhcpRelay(_))))
    }

    #[test]
    fn clients_messages_go_to_the_controller_and_those_of_relay_agents_do_not() {
        let mut bench = bench(Some(mac(9)));
        for kind in 1..=15 {
            let frame = match kind {
                12 | 13 => to_servers(1, &relayed(kind, &message(1))),
                _ => to_servers(1, &message(kind)),
            };
            let passed = goes_to_controller(&bench.frame(0, &frame));
            assert_eq!(passed, is_of_client(kind), "kind {kind}");
        }
        assert_eq!(bench.edge.counters().dhcp_servers_refused, 1, "the relay reply");
        // From a global address, or as a relay agent by unicast to the server itself.
        let global = (mac(1), Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, 1));
        let frame = dhcpv6::frame(global, dhcpv6::all_servers(), (546, 547), &message(1));
        assert!(!goes_to_controller(&bench.frame(0, &frame)));
        let forward = relayed(kind::RELAY_FORWARD, &message(1));
        let frame = dhcpv6::frame(local(1), local(9), (547, 547), &forward);
        assert_eq!(bench.frame(0, &frame), []);
        assert_eq!(bench.last_drop(), Some(Drop::Refused));
    }

    #[test]
    fn only_the_server_answers_and_only_the_relay_agent() {
        let mut bench = bench(Some(mac(9)));
        let own = (SERVER.mac, nd::link_local(SERVER.mac));
        let reply = relayed(kind::RELAY_REPLY, &message(kind::REPLY));
        let from = |host| dhcpv6::frame(local(host), own, (547, 547), &reply);
        assert!(!goes_to_controller(&bench.frame(0, &from(1))));
        assert!(goes_to_controller(&bench.frame(1, &from(9))));
        // To clients directly, even from the server itself.
        for (host, to, reason) in [
            (1, local(2), Drop::Refused),
            (9, local(2), Drop::Refused),
            (1, (nd::group_mac(nd::solicited_node(local(2).1)), local(2).1), Drop::Broadcast),
        ] {
            let port = u16::from(host == 9);
            bench.frame(port, &dhcpv6::frame(local(host), to, (547, 546), &message(7)));
            assert_eq!(bench.last_drop(), Some(reason));
        }
        assert_eq!(bench.edge.counters().dhcp_servers_refused, 4);
    }

    #[test]
    fn without_a_server_the_edge_gives_information_and_no_addresses() {
        let mut bench = bench(None);
        let answers = |effects: &[Effect]| {
            let frames = effects.iter().filter_map(|effect| match effect {
                Effect::Host { port: PortNo(0), frame } => {
                    Datagram::parse(frame).map(|_| frame.clone())
                }
                _ => None,
            });
            frames.collect::<Vec<_>>()
        };
        let ask = to_servers(1, &message(kind::INFORMATION_REQUEST));
        let sent = answers(&bench.frame(0, &ask));
        let [frame] = &sent[..] else { panic!("{sent:?}") };
        let datagram = Datagram::parse(frame).unwrap();
        assert_eq!((datagram.to, datagram.to_port), (local(1).1, 546));
        let reply = dhcpv6::Message::parse(datagram.message).unwrap();
        assert_eq!((reply.kind, reply.transaction), (kind::REPLY, 7));
        let found = |code| dhcpv6::find(reply.options, code).unwrap().to_vec();
        assert_eq!(found(option::CLIENT_ID), dhcpv6::duid(mac(1)));
        assert_eq!(found(option::SERVER_ID), dhcpv6::duid(SERVER.mac));
        assert_eq!(found(option::DOMAINS), b"\x03lab\x07example\0");
        assert_eq!(found(option::DNS).len(), 16);
        for kind in [kind::SOLICIT, kind::REQUEST, kind::REBIND] {
            assert!(answers(&bench.frame(0, &to_servers(1, &message(kind)))).is_empty());
        }
        let more = (0..100).map(|_| answers(&bench.frame(0, &ask)).len()).sum::<usize>();
        assert_eq!(more as u64, ANSWERS.burst - 1);
        assert_eq!(bench.edge.counters().advertisements_limited, 100 - (ANSWERS.burst - 1));
    }
}
