//! DHCPv6 relay agent (RFC 8415 clause 19). It forwards messages from hosts to a server that is a
//! host in the fabric, and forwards the answers to the client's port.
//!
//! It works like `relay` for DHCP. A client's message goes to the server inside a relay-forward
//! message from the fabric's link-local address. The relay-forward message contains an address of
//! the link and the client's port. An answer is forwarded to that port only if it comes from the
//! server itself and answers a remembered request. The addresses in the reply are recorded as
//! leases. Such an address belongs to its host, and no other host may use it.
//!
//! An address that is leased to another host is never passed on. One that another host uses without
//! a lease is passed on but not bound. The client then detects the duplicate and declines it.
//! Releases and declines are passed on if they name no address leased to another host. Clients must
//! not send to the server directly, so the option that allows it is removed.

use super::addresses::Addresses;
use super::fabric::Fabric;
use super::forwarding::Forwarding;
use super::hosts::{HostIndex, Learned, Place};
use super::transactions::Transactions;
use crate::config::Dhcpv6Relay;
use crate::effect::Effect;
use alloc::vec::Vec;
use axon_link::config::ServerIdentity;
use axon_wire::Time;
use axon_wire::dhcpv6::{self, CLIENT_PORT, Datagram, Message, Relayed, SERVER_PORT, kind, option};
use axon_wire::{MacAddr, nd};
use core::net::{IpAddr, Ipv6Addr};

/// DHCPv6 relay agent.
#[derive(Clone, Debug)]
pub(super) struct Relay6 {
    config: Dhcpv6Relay,
    /// Own addresses of the agent, which are those of the fabric.
    own: (MacAddr, Ipv6Addr),
    requests: Transactions<(Ipv6Addr, u32), Request6>,
}

/// Request from a DHCPv6 client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Request6 {
    /// MAC address of the client, and source address of its request.
    mac: MacAddr,
    ip: Ipv6Addr,
    /// Message type and transaction ID.
    kind: u8,
    transaction: u32,
}

impl Relay6 {
    pub(super) fn new(config: Dhcpv6Relay, own: ServerIdentity) -> Relay6 {
        let own = (own.mac, nd::link_local(own.mac));
        Relay6 { config, own, requests: Transactions::new() }
    }

    /// Returns whether a request may go to the server. If so, remembers it.
    fn admit(&mut self, now: Time, place: Place, request: Request6) -> bool {
        self.requests.admit(now, place, (request.ip, request.transaction), Some(request))
    }

    /// Returns the request to which an answer belongs, and the port of its client. An offer is not
    /// the last answer, because other servers behind this one may make more offers.
    fn answered(
        &mut self,
        now: Time,
        (client, transaction, answer): (Ipv6Addr, u32, u8),
    ) -> Option<(Place, Request6)> {
        let of = (client, transaction);
        let waiting = self.requests.waiting(now, of)?;
        let found = (waiting.place, waiting.request);
        if answer != kind::ADVERTISE {
            self.requests.forget(of);
        }
        Some(found)
    }

    /// Handles a DHCPv6 frame from a host.
    pub(super) fn frame(
        &mut self,
        fwd: &mut Forwarding,
        addresses: &mut Addresses,
        now: Time,
        place: Place,
        datagram: &Datagram<'_>,
        out: &mut Vec<Effect>,
    ) {
        if datagram.to_port != SERVER_PORT {
            addresses.dhcp_mut().relaying().malformed += 1;
        } else if let Some(answer) = Relayed::parse(datagram.message) {
            self.answer(fwd, addresses, now, place, (datagram, &answer), out);
        } else {
            self.request(fwd, addresses, now, place, datagram, out);
        }
    }

    fn request(
        &mut self,
        fwd: &mut Forwarding,
        addresses: &mut Addresses,
        now: Time,
        place: Place,
        asked: &Datagram<'_>,
        out: &mut Vec<Effect>,
    ) {
        let read = Message::parse(asked.message);
        let Some((message, ips)) = read.and_then(|read| Some((read, read.addresses()?))) else {
            addresses.dhcp_mut().relaying().malformed += 1;
            return;
        };
        let (mac, ip) = asked.from;
        let learned = fwd.requested(now, place, mac, out);
        if learned == Learned::Full {
            return fwd.bounds.too_many_hosts(now, &fwd.net, place, out);
        }
        let Learned::Here(host) = learned else {
            addresses.dhcp_mut().relaying().misplaced += 1;
            return;
        };
        let of_others = ips.iter().any(|&(ip, _)| {
            addresses.leases6().holder(now, ip).is_some_and(|holder| holder != mac)
        });
        let gives_up = matches!(message.kind, kind::RELEASE | kind::DECLINE);
        if gives_up && of_others {
            addresses.dhcp_mut().relaying().misplaced += 1;
            return;
        }
        let wants = matches!(message.kind, kind::SOLICIT | kind::REQUEST);
        if wants
            && !addresses.leases6().has_one(now, mac, place)
            && !addresses.leases6_mut().has_room(now, place, 1)
        {
            addresses.dhcp_mut().relaying().port_full += 1;
            return;
        }
        let (interface, _) = fwd.net.fabric().names_among(&self.config.names, place);
        let request = Request6 { mac, ip, kind: message.kind, transaction: message.transaction };
        let forward = Relayed {
            kind: kind::RELAY_FORWARD,
            hops: 0,
            link: self.config.link,
            peer: ip,
            interface: interface.as_bytes(),
            message: asked.message,
        };
        let forward = forward.emit();
        let fits = forward.len() <= dhcpv6::MESSAGE_BYTES_MAX;
        if !fits || !self.admit(now, place, request) {
            addresses.dhcp_mut().relaying().relay_limited += 1;
            return;
        }
        if gives_up {
            for (ip, _) in ips {
                self.give_up_v6(fwd, addresses, now, host, ip, out);
            }
        }
        self.send_to_server6(fwd, addresses, &forward, out);
    }

    /// Records that a host no longer leases an address.
    fn give_up_v6(
        &mut self,
        fwd: &mut Forwarding,
        addresses: &mut Addresses,
        now: Time,
        host: HostIndex,
        ip: Ipv6Addr,
        out: &mut Vec<Effect>,
    ) {
        if addresses.leases6().holder(now, ip).is_some() {
            addresses.leases6_mut().remove(ip);
            addresses.disown(fwd, now, host, IpAddr::V6(ip), out);
            fwd.cut_off(host, out);
            addresses.dhcp_mut().relaying().released += 1;
        }
    }

    fn send_to_server6(
        &mut self,
        fwd: &mut Forwarding,
        addresses: &mut Addresses,
        message: &[u8],
        out: &mut Vec<Effect>,
    ) {
        let config = &self.config;
        let ports = (SERVER_PORT, SERVER_PORT);
        let frame = dhcpv6::frame(self.own, (config.mac, config.ip), ports, message);
        let place = fwd.net.place_or(config.mac, config.at);
        match place.is_some_and(|place| addresses.send(fwd, place, frame, out)) {
            true => addresses.dhcp_mut().relaying().relayed += 1,
            false => addresses.dhcp_mut().relaying().relay_limited += 1,
        }
    }

    fn answer(
        &mut self,
        fwd: &mut Forwarding,
        addresses: &mut Addresses,
        now: Time,
        place: Place,
        (datagram, answer): (&Datagram<'_>, &Relayed<'_>),
        out: &mut Vec<Effect>,
    ) {
        let server = (self.config.mac, self.config.ip);
        let ours =
            answer.kind == kind::RELAY_REPLY && (answer.hops, answer.link) == (0, self.config.link);
        let here = datagram.from == server
            && matches!(fwd.requested(now, place, server.0, out), Learned::Here(_));
        if !here {
            addresses.dhcp_mut().relaying().relay_refused += 1;
            return;
        }
        let message = Message::parse(answer.message)
            .filter(|message| ours && matches!(message.kind, kind::ADVERTISE | kind::REPLY));
        let found = message.and_then(|message| {
            let of = (answer.peer, message.transaction, message.kind);
            let (at, request) = self.answered(now, of)?;
            let host = fwd.net.hosts().by_mac(request.mac)?;
            let is_there = fwd.net.hosts().get(host)?.place() == at
                && fwd.net.fabric().names_among(&self.config.names, at).0.as_bytes()
                    == answer.interface;
            is_there.then_some((message, (at, host, request)))
        });
        let Some((message, (at, host, request))) = found else {
            addresses.dhcp_mut().relaying().relay_unmatched += 1;
            return;
        };
        if message.kind == kind::REPLY
            && !self.enter_v6(fwd, addresses, now, (at, host, request), &message, out)
        {
            return;
        }
        let message = to_client(&message);
        let to = (request.mac, request.ip);
        let frame = dhcpv6::frame(self.own, to, (SERVER_PORT, CLIENT_PORT), &message);
        if addresses.send(fwd, at, frame, out) {
            addresses.dhcp_mut().relaying().returned += 1;
        }
    }

    /// Records the addresses in a reply. Returns `false` if its client cannot have them.
    fn enter_v6(
        &mut self,
        fwd: &mut Forwarding,
        addresses: &mut Addresses,
        now: Time,
        (at, host, request): (Place, HostIndex, Request6),
        message: &Message<'_>,
        out: &mut Vec<Effect>,
    ) -> bool {
        use kind::{REBIND, RENEW, REQUEST, SOLICIT};
        if !matches!(request.kind, SOLICIT | REQUEST | RENEW | REBIND) {
            return true;
        }
        let Some(ips) = message.addresses() else {
            addresses.dhcp_mut().relaying().relay_unmatched += 1;
            return false;
        };
        let holder = |ip| addresses.leases6().holder(now, ip);
        if ips.iter().any(|&(ip, _)| holder(ip).is_some_and(|mac| mac != request.mac)) {
            addresses.dhcp_mut().relaying().relay_conflicts += 1;
            return false;
        }
        let new = ips.iter().filter(|&&(ip, valid)| valid > 0 && holder(ip).is_none());
        let new = new.count();
        if !addresses.leases6_mut().has_room(now, at, new) {
            addresses.dhcp_mut().relaying().port_full += 1;
            if let Some(release) = self.release_of(fwd.net.fabric(), message, &request, at) {
                self.send_to_server6(fwd, addresses, &release, out);
            }
            return false;
        }
        for (ip, valid) in ips {
            let in_use = fwd.net.hosts().by_ip(ip.into()).is_some_and(|other| other != host);
            if valid == 0 {
                self.give_up_v6(fwd, addresses, now, host, ip, out);
            } else if in_use {
                addresses.dhcp_mut().relaying().relay_conflicts += 1;
            } else {
                addresses.leases6_mut().bind(now, ip, (request.mac, at), valid);
                addresses.own(fwd, now, host, ip.into(), out);
            }
        }
        true
    }

    /// Builds a release for the addresses in a reply, in the client's name.
    fn release_of(
        &self,
        fabric: &Fabric,
        reply: &Message<'_>,
        by: &Request6,
        at: Place,
    ) -> Option<Vec<u8>> {
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
        let (interface, _) = fabric.names_among(&self.config.names, at);
        let forward = Relayed {
            kind: kind::RELAY_FORWARD,
            hops: 0,
            link: self.config.link,
            peer: by.ip,
            interface: interface.as_bytes(),
            message: &release,
        };
        Some(forward.emit())
    }
}

/// Builds the message for the client: the server's message without the option that lets the client
/// send to the server directly.
fn to_client(message: &Message<'_>) -> Vec<u8> {
    let mut options = Vec::new();
    for (code, data) in dhcpv6::options(message.options).flatten() {
        if code != option::UNICAST {
            dhcpv6::push(&mut options, code, data);
        }
    }
    Message { options: &options, ..*message }.emit()
}
