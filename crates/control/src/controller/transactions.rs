//! The requests that a DHCP server which is a host has to answer; see `relay`.

use super::hosts::Place;
use super::packet::Request;
use super::relayed::Answer;
use crate::bucket::{Bucket, Rate};
use crate::config::{RelayConfig, ServerIdentity};
use alloc::collections::{BTreeMap, BTreeSet};
use axon_wire::{MacAddr, Span, Time};
use core::net::Ipv4Addr;
use smoltcp::wire::DhcpMessageType;

/// How long an answer is waited for.
const WAIT: Span = Span::from_secs(10);
/// Requests that are remembered: of one port, and together.
const WAITING_PER_PORT_MAX: usize = 16;
const WAITING_MAX: usize = 4_096;
/// Requests to the server.
const REQUESTS: Rate = Rate { every: Span::from_millis(1), burst: 1_000 };

/// The requests that the server has to answer.
#[derive(Clone, Debug)]
pub(super) struct Relay {
    pub(super) config: RelayConfig,
    /// The relay agent's own address: the fabric's.
    pub(super) own: (MacAddr, Ipv4Addr),
    waiting: BTreeMap<Transaction, Waiting>,
    /// When each of them is forgotten.
    until: BTreeSet<(Time, Transaction)>,
    at_port: BTreeMap<Place, usize>,
    requests: Bucket,
}

/// A client and its number for a conversation.
type Transaction = (MacAddr, u32);

/// A request that waits for its answer.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    until: Time,
    /// The port of the client.
    pub(super) place: Place,
    pub(super) request: Request,
}

impl Relay {
    pub(super) fn new(config: RelayConfig, own: ServerIdentity) -> Relay {
        Relay {
            config,
            own: (own.mac, own.ip),
            waiting: BTreeMap::new(),
            until: BTreeSet::new(),
            at_port: BTreeMap::new(),
            requests: Bucket::default(),
        }
    }

    /// Remembers a request. Returns `false` if there are too many.
    pub(super) fn remember(&mut self, now: Time, place: Place, request: &Request) -> bool {
        while let Some(&(until, of)) = self.until.first()
            && until <= now
        {
            self.forget(of);
        }
        let of = (request.mac, request.xid);
        self.forget(of);
        let at_port = self.at_port.get(&place).copied().unwrap_or(0);
        let full = at_port >= WAITING_PER_PORT_MAX || self.waiting.len() >= WAITING_MAX;
        if full || !self.requests.has(now, REQUESTS) {
            return false;
        }
        self.requests.take(now, REQUESTS);
        let until = now + WAIT;
        self.until.insert((until, of));
        self.at_port.insert(place, at_port + 1);
        self.waiting.insert(of, Waiting { until, place, request: request.clone() });
        true
    }

    fn forget(&mut self, of: Transaction) {
        let Some(waiting) = self.waiting.remove(&of) else { return };
        self.until.remove(&(waiting.until, of));
        match self.at_port.get_mut(&waiting.place) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(self.at_port.remove(&waiting.place)),
        }
    }

    /// The request that an answer is for.
    pub(super) fn answered(&mut self, now: Time, answer: &Answer) -> Option<Waiting> {
        let of = (answer.mac, answer.xid);
        let waiting = self.waiting.get(&of).filter(|waiting| now < waiting.until)?.clone();
        // The client goes on with the same number after an offer.
        if answer.kind != u8::from(DhcpMessageType::Offer) {
            self.forget(of);
        }
        Some(waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::super::topology::SwitchIndex;
    use super::*;
    use alloc::vec::Vec;
    use axon_wire::{NodeId, PortNo};

    fn relay() -> Relay {
        let (ip, mac) = (Ipv4Addr::new(10, 0, 0, 9), MacAddr([2, 0, 0, 0, 0, 9]));
        let at = (NodeId(1), PortNo(0));
        let own = ServerIdentity { mac: MacAddr([2; 6]), ip: Ipv4Addr::new(10, 0, 0, 1) };
        Relay::new(RelayConfig { ip, mac, at, names: BTreeMap::new() }, own)
    }

    fn request(number: u32) -> Request {
        let [a, b, c, d] = number.to_be_bytes();
        Request {
            kind: DhcpMessageType::Discover,
            mac: MacAddr([2, 0, a, b, c, d]),
            xid: number,
            ciaddr: Ipv4Addr::UNSPECIFIED,
            broadcast: false,
            requested: None,
            server: None,
            client_id: Vec::new(),
        }
    }

    fn port(number: u16) -> Place {
        Place { switch: SwitchIndex(0), port: PortNo(number) }
    }

    #[test]
    fn requests_without_an_answer_are_bounded_and_forgotten() {
        let (mut relay, now) = (relay(), Time::ZERO);
        let kept = |relay: &mut Relay, now, at: u16, numbers: core::ops::Range<u32>| {
            numbers.filter(|&number| relay.remember(now, port(at), &request(number))).count()
        };
        assert_eq!(kept(&mut relay, now, 0, 0..1_000), WAITING_PER_PORT_MAX);
        assert_eq!(kept(&mut relay, now, 0, 0..4), 4, "the same again");
        for at in 1..1_000_u32 {
            let later = now + Span::from_millis(u64::from(at) * 10);
            kept(&mut relay, later, at as u16, at * 100..at * 100 + 20);
            assert!(relay.waiting.len() <= WAITING_MAX);
        }
        assert_eq!(relay.waiting.len(), WAITING_MAX);
        let later = now + WAIT * 3;
        assert_eq!(kept(&mut relay, later, 0, 0..1), 1);
        let sizes = (relay.waiting.len(), relay.until.len(), relay.at_port.len());
        assert_eq!(sizes, (1, 1, 1));
    }
}
