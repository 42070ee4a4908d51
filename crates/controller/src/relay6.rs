//! DHCPv6 relay agent (RFC 8415 clause 19): forwards hosts' messages to a server that is a host of
//! the fabric, and its answers to the client's port.
//!
//! Like `relay` for DHCP. A client's message goes to the server within a relay-forward message from
//! the fabric's link-local address, with an address of the link and the client's port. Only an
//! answer of the server itself, to a remembered request, is forwarded to that port. The addresses
//! of the reply are recorded as leases: an address belongs to its host, and no other host may use
//! it.
//!
//! An address that is leased to another host is never passed on. One that another host uses without
//! a lease is passed on and not bound: the client detects the duplicate and declines it. Releases
//! and declines are passed on if they name no address leased to another host. Clients must not send
//! to the server directly, so the option that allows it is removed.

use super::conductor::Controller;
use super::hosts::{HostIndex, Learned, Place};
use super::relay_agent::Request6;
use alloc::vec::Vec;
use axon_link::effect::Effect;
use axon_wire::Time;
use axon_wire::dhcpv6::{self, CLIENT_PORT, Datagram, Message, Relayed, SERVER_PORT, kind, option};
use axon_wire::message::HostFrame;
use core::net::{IpAddr, Ipv6Addr};

impl Controller {
    /// Handles a frame of a host if it is DHCPv6; returns whether it is.
    pub(super) fn relay6_frame(
        &mut self,
        now: Time,
        place: Place,
        m: &HostFrame,
        out: &mut Vec<Effect>,
    ) -> bool {
        let Some(datagram) = Datagram::parse(&m.frame) else { return false };
        let relayed = Relayed::parse(datagram.message);
        if self.relay6.is_none() || datagram.to_port != SERVER_PORT {
            self.addresses.dhcp_mut().relaying().malformed += 1;
        } else if let Some(answer) = relayed {
            self.relay6_answer(now, place, (&datagram, &answer), out);
        } else {
            self.relay6_request(now, place, &datagram, out);
        }
        true
    }

    fn relay6_request(
        &mut self,
        now: Time,
        place: Place,
        asked: &Datagram<'_>,
        out: &mut Vec<Effect>,
    ) {
        let read = Message::parse(asked.message);
        let Some((message, addresses)) = read.and_then(|read| Some((read, read.addresses()?)))
        else {
            self.addresses.dhcp_mut().relaying().malformed += 1;
            return;
        };
        let (mac, ip) = asked.from;
        let learned = self.fwd.requested(now, place, mac, out);
        if learned == Learned::Full {
            return self.fwd.too_many_hosts(now, place, out);
        }
        let Learned::Here(host) = learned else {
            self.addresses.dhcp_mut().relaying().misplaced += 1;
            return;
        };
        let of_others = addresses.iter().any(|&(ip, _)| {
            self.addresses.leases6().holder(now, ip).is_some_and(|holder| holder != mac)
        });
        let gives_up = matches!(message.kind, kind::RELEASE | kind::DECLINE);
        if gives_up && of_others {
            self.addresses.dhcp_mut().relaying().misplaced += 1;
            return;
        }
        let wants = matches!(message.kind, kind::SOLICIT | kind::REQUEST);
        if wants
            && !self.addresses.leases6().has_one(now, mac, place)
            && !self.addresses.leases6_mut().has_room(now, place, 1)
        {
            self.addresses.dhcp_mut().relaying().port_full += 1;
            return;
        }
        let (interface, _) =
            self.names_among(self.relay6.as_ref().map(|relay| &relay.config.names), place);
        let request = Request6 { mac, ip, kind: message.kind, transaction: message.transaction };
        let Some(relay) = self.relay6.as_mut() else { return };
        let forward = Relayed {
            kind: kind::RELAY_FORWARD,
            hops: 0,
            link: relay.config.link,
            peer: ip,
            interface: interface.as_bytes(),
            message: asked.message,
        };
        let forward = forward.emit();
        let fits = forward.len() <= dhcpv6::MESSAGE_BYTES_MAX;
        if !fits || !relay.admit(now, place, request) {
            self.addresses.dhcp_mut().relaying().relay_limited += 1;
            return;
        }
        if gives_up {
            for (ip, _) in addresses {
                self.give_up_v6(now, host, ip, out);
            }
        }
        self.send_to_server6(&forward, out);
    }

    /// Records that a host no longer has a lease of an address.
    fn give_up_v6(&mut self, now: Time, host: HostIndex, ip: Ipv6Addr, out: &mut Vec<Effect>) {
        if self.addresses.leases6().holder(now, ip).is_some() {
            self.addresses.leases6_mut().remove(ip);
            self.addresses.disown(&mut self.fwd, now, host, IpAddr::V6(ip), out);
            self.fwd.cut_off(host, out);
            self.addresses.dhcp_mut().relaying().released += 1;
        }
    }

    fn send_to_server6(&mut self, message: &[u8], out: &mut Vec<Effect>) {
        let Some(relay) = &self.relay6 else { return };
        let config = &relay.config;
        let ports = (SERVER_PORT, SERVER_PORT);
        let frame = dhcpv6::frame(relay.own, (config.mac, config.ip), ports, message);
        let place = self.fwd.net.place_or(config.mac, config.at);
        match place.is_some_and(|place| self.send_to_port(place, frame, out)) {
            true => self.addresses.dhcp_mut().relaying().relayed += 1,
            false => self.addresses.dhcp_mut().relaying().relay_limited += 1,
        }
    }

    fn relay6_answer(
        &mut self,
        now: Time,
        place: Place,
        (datagram, answer): (&Datagram<'_>, &Relayed<'_>),
        out: &mut Vec<Effect>,
    ) {
        let Some(relay) = &self.relay6 else { return };
        let server = (relay.config.mac, relay.config.ip);
        let ours = answer.kind == kind::RELAY_REPLY
            && (answer.hops, answer.link) == (0, relay.config.link);
        let here = datagram.from == server
            && matches!(self.fwd.requested(now, place, server.0, out), Learned::Here(_));
        if !here {
            self.addresses.dhcp_mut().relaying().relay_refused += 1;
            return;
        }
        let message = Message::parse(answer.message)
            .filter(|message| ours && matches!(message.kind, kind::ADVERTISE | kind::REPLY));
        let found = message.and_then(|message| {
            let of = (answer.peer, message.transaction, message.kind);
            let (at, request) = self.relay6.as_mut()?.answered(now, of)?;
            let host = self.fwd.net.hosts().by_mac(request.mac)?;
            let names = self.relay6.as_ref().map(|relay| &relay.config.names);
            let is_there = self.fwd.net.hosts().get(host)?.place() == at
                && self.names_among(names, at).0.as_bytes() == answer.interface;
            is_there.then_some((message, (at, host, request)))
        });
        let Some((message, (at, host, request))) = found else {
            self.addresses.dhcp_mut().relaying().relay_unmatched += 1;
            return;
        };
        if message.kind == kind::REPLY && !self.enter_v6(now, (at, host, request), &message, out) {
            return;
        }
        let message = to_client(&message);
        let Some(relay) = &self.relay6 else { return };
        let to = (request.mac, request.ip);
        let frame = dhcpv6::frame(relay.own, to, (SERVER_PORT, CLIENT_PORT), &message);
        if self.send_to_port(at, frame, out) {
            self.addresses.dhcp_mut().relaying().returned += 1;
        }
    }

    /// Records the addresses of a reply. Returns `false` if its client cannot have them.
    fn enter_v6(
        &mut self,
        now: Time,
        (at, host, request): (Place, HostIndex, Request6),
        message: &Message<'_>,
        out: &mut Vec<Effect>,
    ) -> bool {
        use kind::{REBIND, RENEW, REQUEST, SOLICIT};
        if !matches!(request.kind, SOLICIT | REQUEST | RENEW | REBIND) {
            return true;
        }
        let Some(addresses) = message.addresses() else {
            self.addresses.dhcp_mut().relaying().relay_unmatched += 1;
            return false;
        };
        let holder = |ip| self.addresses.leases6().holder(now, ip);
        if addresses.iter().any(|&(ip, _)| holder(ip).is_some_and(|mac| mac != request.mac)) {
            self.addresses.dhcp_mut().relaying().relay_conflicts += 1;
            return false;
        }
        let new = addresses.iter().filter(|&&(ip, valid)| valid > 0 && holder(ip).is_none());
        let new = new.count();
        if !self.addresses.leases6_mut().has_room(now, at, new) {
            self.addresses.dhcp_mut().relaying().port_full += 1;
            if let Some(release) = self.release_of(message, &request, at) {
                self.send_to_server6(&release, out);
            }
            return false;
        }
        for (ip, valid) in addresses {
            let in_use = self.fwd.net.hosts().by_ip(ip.into()).is_some_and(|other| other != host);
            if valid == 0 {
                self.give_up_v6(now, host, ip, out);
            } else if in_use {
                self.addresses.dhcp_mut().relaying().relay_conflicts += 1;
            } else {
                self.addresses.leases6_mut().bind(now, ip, (request.mac, at), valid);
                self.addresses.own(&mut self.fwd, now, host, ip.into(), out);
            }
        }
        true
    }

    /// Builds a release of the addresses in a reply, in the client's name.
    fn release_of(&self, reply: &Message<'_>, by: &Request6, at: Place) -> Option<Vec<u8>> {
        let relay = self.relay6.as_ref()?;
        let mut options = Vec::new();
        for (code, data) in dhcpv6::options(reply.options).flatten() {
            if matches!(code, option::CLIENT_ID | option::SERVER_ID | option::IA_NA | option::IA_TA)
            {
                dhcpv6::push(&mut options, code, data);
            }
        }
        dhcpv6::push(&mut options, option::ELAPSED_TIME, &[0, 0]);
        let transaction = reply.transaction;
        let release = Message { kind: kind::RELEASE, transaction, options: &options }.emit();
        let (interface, _) = self.names_among(Some(&relay.config.names), at);
        let forward = Relayed {
            kind: kind::RELAY_FORWARD,
            hops: 0,
            link: relay.config.link,
            peer: by.ip,
            interface: interface.as_bytes(),
            message: &release,
        };
        Some(forward.emit())
    }
}

/// Builds the message for the client: the server's message without the option that allows sending
/// to the server directly.
fn to_client(message: &Message<'_>) -> Vec<u8> {
    let mut options = Vec::new();
    for (code, data) in dhcpv6::options(message.options).flatten() {
        if code != option::UNICAST {
            dhcpv6::push(&mut options, code, data);
        }
    }
    Message { options: &options, ..*message }.emit()
}
