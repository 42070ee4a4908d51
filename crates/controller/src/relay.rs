//! DHCP relay agent: forwards hosts' requests to a DHCP server that is a host of the fabric, and
//! its answers to the client's port (RFC 2131, RFC 1542, RFC 3046).
//!
//! An edge sends every DHCP message to the controller. A client's message is remembered for a while
//! and sent on as unicast to the server, from the fabric's own address, by the server's switch. The
//! server answers to that address, whose frames reach the controller through the edge. Only an
//! answer of the server itself, to a remembered request, is forwarded to the client's port. An
//! acknowledgement is recorded as a lease: the address is bound to the MAC address and port, and no
//! other host may use it.
//!
//! An address that the client cannot have is not passed on, and the client gets a DHCPNAK. The
//! server gets a message in the client's name: a DHCPDECLINE if another host uses the address, a
//! DHCPRELEASE if the client's port holds the maximum. It gets none if it has leased the address to
//! another host before: a client with the identifier of another host must not cost that host its
//! address. Releases and declines are passed on if their sender holds the address.
//!
//! All state is bounded: the number of remembered requests and the rate of messages to the server,
//! for each port and in total.

use super::conductor::Controller;
use super::dhcp::{Given, Holder};
use super::hosts::{Learned, Place};
use super::packet::{Request, datagram, message_of, reply};
use super::relayed::{self, Answer, Via};
use super::transactions::Waiting;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use axon_link::effect::Effect;
use axon_wire::message::{HostFrame, Message};
use axon_wire::{MacAddr, NodeId, Span, Time};
use core::net::{IpAddr, Ipv4Addr};
use smoltcp::wire::{DHCP_CLIENT_PORT, DHCP_SERVER_PORT, DhcpMessageType};

/// Maximum lease in seconds; a longer one counts as infinite.
const LEASE_SECONDS_MAX: u32 = 1_000_000;

impl Controller {
    /// Handles a DHCP frame of a host if the server is another host.
    pub(super) fn relay_frame(
        &mut self,
        now: Time,
        place: Place,
        frame: &[u8],
        out: &mut Vec<Effect>,
    ) {
        let Some(own) = self.relay.as_ref().map(|relay| relay.own) else { return };
        match Answer::parse(frame, own.1) {
            Some(answer) => self.relay_answer(now, place, &answer, out),
            None => self.relay_request(now, place, frame, out),
        }
        self.addresses.settle(&mut self.fwd, now, out);
    }

    fn relay_request(&mut self, now: Time, place: Place, frame: &[u8], out: &mut Vec<Effect>) {
        let Some(request) = self.addresses.dhcp_mut().read(frame) else { return };
        let learned = self.fwd.requested(now, place, request.mac, out);
        if learned == Learned::Full {
            return self.fwd.too_many_hosts(now, place, out);
        }
        let Learned::Here(host) = learned else {
            self.addresses.dhcp_mut().relaying().misplaced += 1;
            return;
        };
        let client = Holder { mac: request.mac, client_id: request.client_id.clone(), place };
        if !self.addresses.dhcp_mut().may_relay(now, &client, &request) {
            return;
        }
        if matches!(request.kind, DhcpMessageType::Release | DhcpMessageType::Decline) {
            let done = self.addresses.dhcp_mut().serve(now, place, true, &request);
            let Some(ip) = done.released else { return };
            self.addresses.disown(&mut self.fwd, now, host, IpAddr::V4(ip), out);
            self.fwd.cut_off(host, out);
        }
        let (circuit, remote) = self.names(place);
        let message = message_of(frame).zip(self.via(&circuit, &remote));
        let Some(message) =
            message.and_then(|((_, message), via)| relayed::send_to_server(message, &via))
        else {
            self.addresses.dhcp_mut().relaying().malformed += 1;
            return;
        };
        match self.relay.as_mut().is_some_and(|relay| relay.admit(now, place, &request)) {
            true => self.send_to_server(&message, out),
            false => self.addresses.dhcp_mut().relaying().relay_limited += 1,
        }
    }

    /// Returns the names of a port and its switch, for the server.
    fn names(&self, place: Place) -> (String, String) {
        let names = self.relay.as_ref().map(|relay| &relay.config.names);
        self.names_among(names, place)
    }

    /// Returns the names of a port and its switch from `names`; a switch without a name is shown by
    /// its number.
    pub(super) fn names_among(
        &self,
        names: Option<&BTreeMap<NodeId, String>>,
        place: Place,
    ) -> (String, String) {
        let node = self.fwd.net.fabric().node(place.switch);
        let name = names.and_then(|names| names.get(&node));
        let switch = name.cloned().unwrap_or_else(|| node.to_string());
        (format!("{switch}-{}", place.port), switch)
    }

    fn via<'a>(&self, circuit: &'a str, remote: &'a str) -> Option<Via<'a>> {
        let relay = self.relay.as_ref()?;
        Some(Via { relay: relay.own.1, server: relay.config.ip, circuit, remote })
    }

    /// Sends a message to the server, at the port where it was seen or is configured.
    fn send_to_server(&mut self, message: &[u8], out: &mut Vec<Effect>) {
        let Some(relay) = &self.relay else { return };
        let (mac, ip) = (relay.config.mac, relay.config.ip);
        let place = self.fwd.net.place_or(mac, relay.config.at);
        let frame = datagram(relay.own, (mac, ip), DHCP_SERVER_PORT, message);
        let sent = place.is_some_and(|place| self.send_to_port(place, frame, out));
        match sent {
            true => self.addresses.dhcp_mut().relaying().relayed += 1,
            false => self.addresses.dhcp_mut().relaying().relay_limited += 1,
        }
    }

    pub(super) fn send_to_port(
        &mut self,
        place: Place,
        frame: Vec<u8>,
        out: &mut Vec<Effect>,
    ) -> bool {
        let to = self.fwd.net.graph().switch(place.switch).incarnation;
        let Some(hops) = self.fwd.routes.paths_mut().path_to(&self.fwd.net, to.node) else {
            self.counters.dhcp_unreachable += 1;
            return false;
        };
        let message = Message::HostFrame(HostFrame { port: place.port, frame });
        out.push(Effect::Routed { hops, to, message });
        true
    }

    fn relay_answer(&mut self, now: Time, place: Place, answer: &Answer, out: &mut Vec<Effect>) {
        let Some(relay) = &self.relay else { return };
        let (own, server) = (relay.own, (relay.config.mac, relay.config.ip));
        let here = answer.from == server
            && matches!(self.fwd.requested(now, place, server.0, out), Learned::Here(_));
        if !here {
            self.addresses.dhcp_mut().relaying().relay_refused += 1;
            return;
        }
        let waiting = self.relay.as_mut().and_then(|relay| relay.answered(now, answer));
        let client = waiting.and_then(|waiting| {
            let host = self.fwd.net.hosts().by_mac(answer.mac)?;
            let at = self.fwd.net.hosts().get(host)?.place();
            (at == waiting.place).then_some((waiting, host))
        });
        let Some((Waiting { place: at, request, .. }, host)) = client else {
            self.addresses.dhcp_mut().relaying().relay_unmatched += 1;
            return;
        };
        let is_lease = answer.kind == u8::from(DhcpMessageType::Ack) && !answer.ip.is_unspecified();
        if is_lease {
            let seconds = answer.lease_seconds.unwrap_or(0).clamp(1, LEASE_SECONDS_MAX);
            let holder =
                Holder { mac: request.mac, client_id: request.client_id.clone(), place: at };
            let lease = Span::from_secs(seconds.into());
            let in_use = !self.fwd.net.may_own(host, request.mac, answer.ip.into())
                || !self.fwd.net.may_be_gateway(at, answer.ip.into())
                || self.fwd.net.hosts().by_ip(answer.ip.into()).is_some_and(|other| other != host);
            let given = self.addresses.dhcp_mut().given(now, holder, (answer.ip, in_use), lease);
            if given != Given::Bound {
                return self.conflict(at, &request, (answer.ip, given), out);
            }
            self.addresses.own(&mut self.fwd, now, host, IpAddr::V4(answer.ip), out);
        }
        let Some(message) = answer.to_client(own.1) else {
            self.addresses.dhcp_mut().relaying().relay_unmatched += 1;
            return;
        };
        let refused = answer.kind == u8::from(DhcpMessageType::Nak);
        let to = match request.ciaddr {
            _ if refused => (MacAddr::BROADCAST, Ipv4Addr::BROADCAST),
            ip if !ip.is_unspecified() => (request.mac, ip),
            _ if request.broadcast => (MacAddr::BROADCAST, Ipv4Addr::BROADCAST),
            _ => (request.mac, answer.ip),
        };
        let frame = datagram(own, to, DHCP_CLIENT_PORT, &message);
        if self.send_to_port(at, frame, out) {
            self.addresses.dhcp_mut().relaying().returned += 1;
        }
    }

    /// Handles an address from the server that the client cannot have.
    fn conflict(
        &mut self,
        at: Place,
        request: &Request,
        (ip, why): (Ipv4Addr, Given),
        out: &mut Vec<Effect>,
    ) {
        match why {
            Given::PortFull => self.addresses.dhcp_mut().relaying().port_full += 1,
            _ => self.addresses.dhcp_mut().relaying().relay_conflicts += 1,
        }
        let Some(own) = self.relay.as_ref().map(|relay| relay.own) else { return };
        let frame = reply(request, DhcpMessageType::Nak, own, None);
        self.send_to_port(at, frame, out);
        let (circuit, remote) = self.names(at);
        let message = self.via(&circuit, &remote).and_then(|via| match why {
            Given::InUse => relayed::decline(request, ip, &via),
            Given::PortFull => relayed::release(request, ip, &via),
            Given::Bound | Given::Leased => None,
        });
        if let Some(message) = message {
            self.send_to_server(&message, out);
        }
    }
}
