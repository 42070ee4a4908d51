//! State of the DHCP and DHCPv6 relay agents: their server, and its outstanding requests. See
//! `relay` and `relay6`.

use super::hosts::Place;
use super::packet::Request;
use super::relayed::Answer;
use super::transactions::{Transactions, Waiting};
use crate::config::{Dhcpv6Relay, RelayConfig};
use axon_link::config::ServerIdentity;
use axon_wire::dhcpv6::kind;
use axon_wire::{MacAddr, Time, nd};
use core::net::{Ipv4Addr, Ipv6Addr};
use smoltcp::wire::DhcpMessageType;

/// Relay agent of DHCP.
#[derive(Clone, Debug)]
pub(super) struct Relay {
    pub(super) config: RelayConfig,
    /// The agent's addresses: those of the fabric.
    pub(super) own: (MacAddr, Ipv4Addr),
    requests: Transactions<(MacAddr, u32), Request>,
}

impl Relay {
    pub(super) const fn new(config: RelayConfig, own: ServerIdentity) -> Relay {
        Relay { config, own: (own.mac, own.ip), requests: Transactions::new() }
    }

    /// Returns whether a request may go to the server; remembers it if it expects an answer.
    pub(super) fn admit(&mut self, now: Time, place: Place, request: &Request) -> bool {
        let unanswered =
            matches!(request.kind, DhcpMessageType::Release | DhcpMessageType::Decline);
        let answered = (!unanswered).then(|| request.clone());
        self.requests.admit(now, place, (request.mac, request.xid), answered)
    }

    /// Returns the request that an answer is for.
    pub(super) fn answered(&mut self, now: Time, answer: &Answer) -> Option<Waiting<Request>> {
        let of = (answer.mac, answer.xid);
        let waiting = self.requests.waiting(now, of)?.clone();
        // After an offer the client continues with the same transaction ID.
        if answer.kind != u8::from(DhcpMessageType::Offer) {
            self.requests.forget(of);
        }
        Some(waiting)
    }
}

/// Relay agent of DHCPv6.
#[derive(Clone, Debug)]
pub(super) struct Relay6 {
    pub(super) config: Dhcpv6Relay,
    /// The agent's addresses: those of the fabric.
    pub(super) own: (MacAddr, Ipv6Addr),
    requests: Transactions<(Ipv6Addr, u32), Request6>,
}

/// A DHCPv6 client's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request6 {
    /// Client, and source address of its request.
    pub(super) mac: MacAddr,
    pub(super) ip: Ipv6Addr,
    /// Message type and transaction ID.
    pub(super) kind: u8,
    pub(super) transaction: u32,
}

impl Relay6 {
    pub(super) fn new(config: Dhcpv6Relay, own: ServerIdentity) -> Relay6 {
        let own = (own.mac, nd::link_local(own.mac));
        Relay6 { config, own, requests: Transactions::new() }
    }

    /// Returns whether a request may go to the server, and remembers it.
    pub(super) fn admit(&mut self, now: Time, place: Place, request: Request6) -> bool {
        self.requests.admit(now, place, (request.ip, request.transaction), Some(request))
    }

    /// Returns the request that an answer is for, and the port of its client. An offer is not the
    /// last answer, because other servers behind this one may make more.
    pub(super) fn answered(
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
}
