//! Load balancer: one service at one address, which several backends serve.
//!
//! **Both addresses are rewritten** (full NAT). A backend sees the balancer as its client. Its
//! answers therefore return without any configuration of clients or backends, and no route has to
//! lead through the agent. The price is that a backend does not see the address of its client.
//! Direct server return would save the return path, but each backend would need the address of the
//! service.
//!
//! A new connection goes to the backend with the highest hash of client and backend (rendezvous
//! hashing, D. Thaler and C. Ravishankar, IEEE/ACM Transactions on Networking 6(1), 1998). When a
//! backend goes down, only its own connections move.

use super::connections::{CONNECTIONS_MAX, Connections, Refused};
use super::rewrite::{self, Rewrite};
use super::stage::{Flags, Side};
use super::table::Client;
use crate::agent::{Counters, Outbox};
use crate::packet::{Ipv4, TCP};
use alloc::vec::Vec;
use axon_cache::Handle;
use axon_node::random::Random;
use axon_wire::{MacAddr, Span, Time};
use core::net::Ipv4Addr;
use serde::{Deserialize, Serialize};

/// Server behind a load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backend {
    /// IPv4 address.
    pub address: Ipv4Addr,
    /// Port.
    pub port: u16,
}

/// Configuration of a load balancer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BalancerConfig {
    /// IP protocol number: 6 for TCP, 17 for UDP.
    pub protocol: u8,
    /// Port of the service.
    pub port: u16,
    /// Servers.
    pub backends: Vec<Backend>,
    /// Idle time after which a connection ends. RFC 4787 REQ-5 recommends five minutes for UDP; RFC
    /// 5382 REQ-5 requires two hours and four minutes for TCP.
    pub idle: Span,
    /// Maximum number of connections, 1 to 64,511. A quarter of these may be half-open, and one
    /// client address may have a sixteenth, but at least 16.
    pub connections_max: usize,
}

impl BalancerConfig {
    /// Returns a service with these servers, the idle times of the RFCs, and the highest maximum
    /// number of connections.
    pub fn new(protocol: u8, port: u16, backends: Vec<Backend>) -> BalancerConfig {
        let minutes = if protocol == TCP { 124 } else { 5 };
        let idle = Span::from_secs(minutes * 60);
        BalancerConfig { protocol, port, backends, idle, connections_max: CONNECTIONS_MAX }
    }
}

/// Counters of the balancer.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    to_backends: u64,
    to_clients: u64,
    opened: u64,
    moved: u64,
    no_backend: u64,
    no_connection: u64,
    full: u64,
    client_full: u64,
}

/// Load balancer.
#[derive(Debug)]
pub(super) struct Balancer {
    config: BalancerConfig,
    /// MAC address of each backend while it is up.
    macs: Vec<Option<MacAddr>>,
    connections: Connections,
    counts: Counts,
}

/// Addresses of the agent itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Own {
    pub mac: MacAddr,
    pub address: Ipv4Addr,
}

impl Balancer {
    pub(crate) fn new(config: BalancerConfig) -> Balancer {
        Balancer {
            macs: alloc::vec![None; config.backends.len()],
            connections: Connections::new(
                config.protocol == TCP,
                config.connections_max,
                config.idle,
                config.port,
            ),
            counts: Counts::default(),
            config,
        }
    }

    pub(crate) fn backends(&self) -> impl Iterator<Item = Ipv4Addr> {
        self.config.backends.iter().map(|backend| backend.address)
    }

    /// Records that a backend has this MAC address, or is down if it is `None`.
    pub(crate) fn settle(&mut self, address: Ipv4Addr, mac: Option<MacAddr>) {
        for (backend, known) in self.config.backends.iter().zip(&mut self.macs) {
            if backend.address == address {
                *known = mac;
            }
        }
    }

    /// Returns the index of the backend for a new connection: the backend with the highest hash
    /// among those that are up.
    fn choose(&self, client: Client) -> Option<usize> {
        let up = (0..self.macs.len()).filter(|&index| self.macs[index].is_some());
        up.max_by_key(|&index| (weight(client, &self.config.backends[index]), index))
    }

    /// Processes a packet for the agent's address. The packet is rewritten and forwarded, or
    /// dropped.
    pub(crate) fn packet(
        &mut self,
        now: Time,
        own: Own,
        handle: Handle,
        ip: &Ipv4,
        out: &mut dyn Outbox,
    ) {
        let Some(head) = out.head(handle) else { return };
        let rewrite = self.way(now, own, head, ip);
        let passes = rewrite.is_some_and(|rewrite| rewrite::apply(head, ip, &rewrite));
        if passes { out.forward(handle) } else { out.drop(handle) }
    }

    fn way(&mut self, now: Time, own: Own, head: &[u8], ip: &Ipv4) -> Option<Rewrite> {
        let ports = ip.ports(head).filter(|_| !ip.is_fragment);
        let Some((from, to)) = ports.filter(|_| ip.protocol == self.config.protocol) else {
            self.counts.no_connection += 1;
            return None;
        };
        let flags = flags(head, ip);
        let source = MacAddr::source_of(head)?;
        if to == self.config.port {
            return self.for_backend(now, own, (ip.source, from), source, flags);
        }
        // An answer must come from the backend to which the connection of this port belongs.
        let connection = self.connections.of_port(to);
        let backend = connection.map(|connection| self.config.backends[connection.backend]);
        let (Some(connection), Some(backend)) = (connection, backend) else {
            self.counts.no_connection += 1;
            return None;
        };
        if (backend.address, backend.port) != (ip.source, from) {
            self.counts.no_connection += 1;
            return None;
        }
        self.connections.passed(now, to, Side::Backend, flags);
        self.counts.to_clients += 1;
        Some(Rewrite {
            macs: (own.mac, connection.mac),
            addresses: (own.address, connection.client.0),
            ports: Some((self.config.port, connection.client.1)),
        })
    }

    fn for_backend(
        &mut self,
        now: Time,
        own: Own,
        client: Client,
        client_mac: MacAddr,
        flags: Flags,
    ) -> Option<Rewrite> {
        // A connection whose backend is down restarts at another backend.
        let known = self.connections.of_client(client);
        if let Some(gone) = known.filter(|known| self.macs[known.backend].is_none()) {
            self.connections.close(gone.port);
            self.counts.moved += 1;
        }
        let known = known.filter(|known| self.macs[known.backend].is_some());
        let connection = match known {
            Some(connection) => connection,
            // A reset that belongs to no connection does not open one.
            None if flags.rst => {
                self.counts.no_connection += 1;
                return None;
            }
            None => {
                let Some(backend) = self.choose(client) else {
                    self.counts.no_backend += 1;
                    return None;
                };
                match self.connections.open(now, client, client_mac, backend) {
                    Ok(connection) => {
                        self.counts.opened += 1;
                        connection
                    }
                    Err(Refused::Full) => {
                        self.counts.full += 1;
                        return None;
                    }
                    Err(Refused::ClientFull) => {
                        self.counts.client_full += 1;
                        return None;
                    }
                }
            }
        };
        self.connections.passed(now, connection.port, Side::Client, flags);
        if connection.mac != client_mac {
            self.connections.came_from(connection.port, client_mac, flags);
        }
        let Backend { address, port } = self.config.backends[connection.backend];
        self.counts.to_backends += 1;
        Some(Rewrite {
            macs: (own.mac, self.macs[connection.backend]?),
            addresses: (own.address, address),
            ports: Some((connection.port, port)),
        })
    }

    pub(crate) fn timeout(&mut self, now: Time) {
        self.connections.timeout(now);
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        self.connections.deadline()
    }

    pub(crate) fn count(&self, counters: &mut Counters) {
        let counts = &self.counts;
        let up = self.macs.iter().flatten().count() as u64;
        let ended = self.connections.ended;
        counters.extend([
            ("backends_up", up),
            ("connections", self.connections.len() as u64),
            ("client_full", counts.client_full),
            ("connections_ended", counts.moved + ended.others),
            ("connections_half_open", self.connections.half_open() as u64),
            ("connections_opened", counts.opened),
            ("full", counts.full),
            ("half_open_ended", ended.half_open),
            ("half_open_gave_way", ended.gave_way),
            ("no_backend", counts.no_backend),
            ("no_connection", counts.no_connection),
            ("to_backends", counts.to_backends),
            ("to_clients", counts.to_clients),
        ]);
    }
}

/// Returns the hash of a client and a backend.
fn weight((address, port): Client, backend: &Backend) -> u64 {
    let client = u64::from(address.to_bits()) << 16 | u64::from(port);
    let backend = u64::from(backend.address.to_bits()) << 16 | u64::from(backend.port);
    Random::new(Random::new(client).next_u64() ^ backend).next_u64()
}

/// Returns the fields of the TCP header. For another protocol or a truncated header, returns the
/// default.
fn flags(head: &[u8], ip: &Ipv4) -> Flags {
    let header = head.get(ip.payload_at..).filter(|_| ip.protocol == TCP);
    let Some(header) = header.and_then(|header| header.first_chunk::<14>()) else {
        return Flags::default();
    };
    let number = |at: usize| {
        u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let bits = header[13];
    let (fin, syn) = (bits & 1 != 0, bits & 2 != 0);
    let header_bytes = usize::from(header[12] >> 4) * 4;
    let data_bytes = ip.end.saturating_sub(ip.payload_at + header_bytes) as u32;
    Flags {
        fin,
        syn,
        rst: bits & 4 != 0,
        sequence: number(4),
        next: number(4).wrapping_add(data_bytes + u32::from(fin) + u32::from(syn)),
        acknowledged: (bits & 16 != 0).then(|| number(8)),
    }
}
