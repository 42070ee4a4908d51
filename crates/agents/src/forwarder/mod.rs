//! Forwarder of paper 003: a program that processes only headers, and forwards packets with other
//! addresses. It is a load balancer or a plain router.
//!
//! It is a host in the network, with its own MAC and IPv4 addresses, and answers ARP requests for
//! them.

mod balancer;
mod connections;
mod neighbours;
mod rewrite;
mod router;
mod stage;
mod table;

use crate::agent::{Agent, Counters, Event, Outbox};
use crate::packet::Ipv4;
use alloc::boxed::Box;
use alloc::vec::Vec;
use axon_cache::Handle;
use axon_wire::{MacAddr, Time};
pub use balancer::{Backend, BalancerConfig};
use balancer::{Balancer, Own};
pub use connections::CONNECTIONS_MAX;
use core::net::Ipv4Addr;
use neighbours::{Neighbours, Settled, arp};
pub use router::RouteTo;
use router::Router;
use serde::{Deserialize, Serialize};

/// Required head length of a forwarder, in bytes: all headers up to that of TCP, without TCP
/// options.
pub const HEAD_BYTES: usize = {
    let longest = 18 + 60 + 20;
    if longest > router::HEAD_BYTES { longest } else { router::HEAD_BYTES }
};

/// Role of a forwarder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Spreads the connections to its address over backends.
    Balancer(BalancerConfig),
    /// Routes packets to other addresses.
    Router(Vec<RouteTo>),
}

/// Configuration of a forwarder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForwarderConfig {
    /// MAC address.
    pub mac: MacAddr,
    /// IPv4 address of the service or of the router.
    pub address: Ipv4Addr,
    /// Role.
    pub role: Role,
}

#[derive(Debug)]
enum Work {
    Balancer(Box<Balancer>),
    Router(Router),
}

/// Forwarder.
#[derive(Debug)]
pub struct Forwarder {
    own: Own,
    neighbours: Neighbours,
    work: Work,
    other: u64,
}

impl Forwarder {
    /// Creates a forwarder with an empty neighbour table.
    pub fn new(config: ForwarderConfig) -> Forwarder {
        let ForwarderConfig { mac, address, role } = config;
        let mut neighbours = Neighbours::new(mac, address);
        let work = match role {
            Role::Balancer(config) => {
                let balancer = Balancer::new(config);
                balancer.backends().for_each(|backend| neighbours.watch(backend));
                Work::Balancer(Box::new(balancer))
            }
            Role::Router(routes) => Work::Router(Router::new(mac, address, &routes)),
        };
        Forwarder { own: Own { mac, address }, neighbours, work, other: 0 }
    }

    fn packet(&mut self, now: Time, handle: Handle, out: &mut dyn Outbox) {
        let Some(head) = out.head(handle) else { return };
        if let Some(arp) = arp(head) {
            out.drop(handle);
            if let Some(settled) = self.neighbours.receive(now, &arp, out) {
                self.settle(now, settled, out);
            }
            return;
        }
        let for_own = MacAddr::destination_of(head) == Some(self.own.mac);
        let ip = Ipv4::parse(head).filter(|_| for_own);
        match (ip, &mut self.work) {
            (Some(ip), Work::Balancer(balancer)) if ip.destination == self.own.address => {
                balancer.packet(now, self.own, handle, &ip, out);
            }
            (Some(ip), Work::Router(router)) if ip.destination != self.own.address => {
                router.packet(now, &mut self.neighbours, handle, &ip, out);
            }
            _ => {
                self.other += 1;
                out.drop(handle);
            }
        }
    }

    fn settle(&mut self, now: Time, settled: Settled, out: &mut dyn Outbox) {
        let (address, mac) = match settled {
            Settled::At(address, mac) => (address, Some(mac)),
            Settled::Absent(address) => (address, None),
        };
        match &mut self.work {
            Work::Balancer(balancer) => balancer.settle(address, mac),
            Work::Router(router) => router.settle(now, address, mac, out),
        }
    }
}

impl Agent for Forwarder {
    fn handle(&mut self, now: Time, event: Event<'_>, out: &mut dyn Outbox) {
        match event {
            Event::Packet(packet) => self.packet(now, packet.handle, out),
            // A forwarder fetches no payloads, so this does not occur.
            Event::Payload { handle, .. } => out.drop(handle),
            Event::Timeout => {
                for settled in self.neighbours.timeout(now, out) {
                    self.settle(now, settled, out);
                }
                if let Work::Balancer(balancer) = &mut self.work {
                    balancer.timeout(now);
                }
            }
        }
    }

    fn deadline(&self) -> Option<Time> {
        let work = match &self.work {
            Work::Balancer(balancer) => balancer.deadline(),
            Work::Router(_) => None,
        };
        [self.neighbours.deadline(), work].into_iter().flatten().min()
    }

    fn counters(&self) -> Counters {
        let mut counters = Counters::from([("other", self.other)]);
        match &self.work {
            Work::Balancer(balancer) => balancer.count(&mut counters),
            Work::Router(router) => {
                router.count(&mut counters);
                self.neighbours.count(&mut counters);
            }
        }
        counters
    }
}
