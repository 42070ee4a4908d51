//! DHCP relay agent. It forwards requests from hosts to a DHCP server that is a host in the fabric,
//! and forwards the answers to the client's port (RFC 2131, RFC 1542, RFC 3046).
//!
//! An edge sends every DHCP message to the controller. A client's message is remembered for a
//! while. It is sent on to the server as unicast, from the fabric's own address, by the server's
//! switch. The server answers to that address, and the edge passes the answer to the controller. It
//! is forwarded to the client's port only if it comes from the server itself and answers a
//! remembered request. An acknowledgement is recorded as a lease. The address is then bound to the
//! MAC address and port, and no other host may use it.
//!
//! An address that the client cannot have is not passed on, and the client gets a DHCPNAK. The
//! server gets a message in the client's name, which is a DHCPDECLINE if another host uses the
//! address, or a DHCPRELEASE if the client's port holds the maximum number of addresses. It gets no
//! message if it has already leased the address to another host, because a client that uses the
//! identifier of another host must not cost that host its address. A client's own releases and
//! declines are passed on if it holds the address.
//!
//! All state is bounded. There are limits for the number of remembered requests and for the rate of
//! messages to the server, both for each port and in total.

use super::addresses::Addresses;
use super::dhcp::{Given, Holder};
use super::fabric::Fabric;
use super::forwarding::Forwarding;
use super::hosts::{Learned, Place};
use super::packet::{Request, datagram, message_of, reply};
use super::relayed::{self, Answer, Via};
use super::transactions::{Transactions, Waiting};
use crate::config::RelayConfig;
use crate::effect::Effect;
use alloc::string::String;
use alloc::vec::Vec;
use axon_link::config::ServerIdentity;
use axon_wire::{MacAddr, Span, Time};
use core::net::{IpAddr, Ipv4Addr};
use smoltcp::wire::{DHCP_CLIENT_PORT, DHCP_SERVER_PORT, DhcpMessageType};

/// Maximum duration of a lease, in seconds. A longer one counts as infinite.
const LEASE_SECONDS_MAX: u32 = 1_000_000;

/// DHCP relay agent.
#[derive(Clone, Debug)]
pub(super) struct Relay {
    config: RelayConfig,
    /// Own addresses of the agent, which are those of the fabric.
    own: (MacAddr, Ipv4Addr),
    requests: Transactions<(MacAddr, u32), Request>,
}

impl Relay {
    pub(super) const fn new(config: RelayConfig, own: ServerIdentity) -> Relay {
        Relay { config, own: (own.mac, own.ip), requests: Transactions::new() }
    }

    /// Returns whether a request may go to the server. Remembers the request if it expects an
    /// answer.
    fn admit(&mut self, now: Time, place: Place, request: &Request) -> bool {
        let unanswered =
            matches!(request.kind, DhcpMessageType::Release | DhcpMessageType::Decline);
        let answered = (!unanswered).then(|| request.clone());
        self.requests.admit(now, place, (request.mac, request.xid), answered)
    }

    /// Returns the request to which an answer belongs, if there is one.
    fn answered(&mut self, now: Time, answer: &Answer) -> Option<Waiting<Request>> {
        let of = (answer.mac, answer.xid);
        let waiting = self.requests.waiting(now, of)?.clone();
        // After an offer, the client continues with the same transaction ID.
        if answer.kind != u8::from(DhcpMessageType::Offer) {
            self.requests.forget(of);
        }
        Some(waiting)
    }

    /// Handles a DHCP frame from a host. The server is another host.
    pub(super) fn frame(
        &mut self,
        fwd: &mut Forwarding,
        addresses: &mut Addresses,
        now: Time,
        place: Place,
        frame: &[u8],
        out: &mut Vec<Effect>,
    ) {
        let own = self.own;
        match Answer::parse(frame, own.1) {
            Some(answer) => self.answer(fwd, addresses, now, place, &answer, out),
            None => self.request(fwd, addresses, now, place, frame, out),
        }
        addresses.settle(fwd, now, out);
    }

    fn request(
        &mut self,
        fwd: &mut Forwarding,
        addresses: &mut Addresses,
        now: Time,
        place: Place,
        frame: &[u8],
        out: &mut Vec<Effect>,
    ) {
        let Some(request) = addresses.dhcp_mut().read(frame) else { return };
        let learned = fwd.requested(now, place, request.mac, out);
        if learned == Learned::Full {
            return fwd.bounds.too_many_hosts(now, &fwd.net, place, out);
        }
        let Learned::Here(host) = learned else {
            addresses.dhcp_mut().relaying().misplaced += 1;
            return;
        };
        let client = Holder { mac: request.mac, client_id: request.client_id.clone(), place };
        if !addresses.dhcp_mut().may_relay(now, &client, &request) {
            return;
        }
        if matches!(request.kind, DhcpMessageType::Release | DhcpMessageType::Decline) {
            let done = addresses.dhcp_mut().serve(now, place, true, &request);
            let Some(ip) = done.released else { return };
            addresses.disown(fwd, now, host, IpAddr::V4(ip), out);
            fwd.cut_off(host, out);
        }
        let (circuit, remote) = self.names(fwd.net.fabric(), place);
        let via = self.via(&circuit, &remote);
        let Some(message) =
            message_of(frame).and_then(|(_, message)| relayed::send_to_server(message, &via))
        else {
            addresses.dhcp_mut().relaying().malformed += 1;
            return;
        };
        match self.admit(now, place, &request) {
            true => self.send_to_server(fwd, addresses, &message, out),
            false => addresses.dhcp_mut().relaying().relay_limited += 1,
        }
    }

    /// Returns the names of a port and its switch, as the server sees them.
    fn names(&self, fabric: &Fabric, place: Place) -> (String, String) {
        fabric.names_among(&self.config.names, place)
    }

    fn via<'a>(&self, circuit: &'a str, remote: &'a str) -> Via<'a> {
        Via { relay: self.own.1, server: self.config.ip, circuit, remote }
    }

    /// Sends a message to the server, at the port where the server was seen or is configured.
    fn send_to_server(
        &mut self,
        fwd: &mut Forwarding,
        addresses: &mut Addresses,
        message: &[u8],
        out: &mut Vec<Effect>,
    ) {
        let (mac, ip) = (self.config.mac, self.config.ip);
        let place = fwd.net.place_or(mac, self.config.at);
        let frame = datagram(self.own, (mac, ip), DHCP_SERVER_PORT, message);
        let sent = place.is_some_and(|place| addresses.send(fwd, place, frame, out));
        match sent {
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
        answer: &Answer,
        out: &mut Vec<Effect>,
    ) {
        let (own, server) = (self.own, (self.config.mac, self.config.ip));
        let here = answer.from == server
            && matches!(fwd.requested(now, place, server.0, out), Learned::Here(_));
        if !here {
            addresses.dhcp_mut().relaying().relay_refused += 1;
            return;
        }
        let waiting = self.answered(now, answer);
        let client = waiting.and_then(|waiting| {
            let host = fwd.net.hosts().by_mac(answer.mac)?;
            let at = fwd.net.hosts().get(host)?.place();
            (at == waiting.place).then_some((waiting, host))
        });
        let Some((Waiting { place: at, request, .. }, host)) = client else {
            addresses.dhcp_mut().relaying().relay_unmatched += 1;
            return;
        };
        let is_lease = answer.kind == u8::from(DhcpMessageType::Ack) && !answer.ip.is_unspecified();
        if is_lease {
            let seconds = answer.lease_seconds.unwrap_or(0).clamp(1, LEASE_SECONDS_MAX);
            let holder =
                Holder { mac: request.mac, client_id: request.client_id.clone(), place: at };
            let lease = Span::from_secs(seconds.into());
            let in_use = !fwd.net.may_own(host, request.mac, answer.ip.into())
                || !fwd.net.may_be_gateway(at, answer.ip.into())
                || fwd.net.hosts().by_ip(answer.ip.into()).is_some_and(|other| other != host);
            let given = addresses.dhcp_mut().given(now, holder, (answer.ip, in_use), lease);
            if given != Given::Bound {
                return self.conflict(fwd, addresses, at, &request, (answer.ip, given), out);
            }
            addresses.own(fwd, now, host, IpAddr::V4(answer.ip), out);
        }
        let Some(message) = answer.to_client(own.1) else {
            addresses.dhcp_mut().relaying().relay_unmatched += 1;
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
        if addresses.send(fwd, at, frame, out) {
            addresses.dhcp_mut().relaying().returned += 1;
        }
    }

    /// Handles an address from the server that the client cannot have, and answers the client.
    fn conflict(
        &mut self,
        fwd: &mut Forwarding,
        addresses: &mut Addresses,
        at: Place,
        request: &Request,
        (ip, why): (Ipv4Addr, Given),
        out: &mut Vec<Effect>,
    ) {
        match why {
            Given::PortFull => addresses.dhcp_mut().relaying().port_full += 1,
            _ => addresses.dhcp_mut().relaying().relay_conflicts += 1,
        }
        let own = self.own;
        let frame = reply(request, DhcpMessageType::Nak, own, None);
        addresses.send(fwd, at, frame, out);
        let (circuit, remote) = self.names(fwd.net.fabric(), at);
        let via = self.via(&circuit, &remote);
        let message = match why {
            Given::InUse => relayed::decline(request, ip, &via),
            Given::PortFull => relayed::release(request, ip, &via),
            Given::Bound | Given::Leased => None,
        };
        if let Some(message) = message {
            self.send_to_server(fwd, addresses, &message, out);
        }
    }
}
