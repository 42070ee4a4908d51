//! The DHCP server (RFC 2131, paper 001 §4.2.3).
//!
//! Clients are known by their hardware address. The server is the only one of its subnet, so it is
//! authoritative: it refuses addresses that are wrong or in use by another client, and confirms an
//! address that is free. So a controller that starts with nothing in memory confirms the leases it
//! once gave, and the host table, which switches fill anew, keeps it from giving away an address
//! that another host uses.

use super::hosts::{HostTable, Place};
use super::lease::Leases;
pub use super::lease::{Lease, LeaseState};
use super::packet::{Grant, Request, reply};
use crate::config::{DhcpConfig, ServerIdentity};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use axon_node::telemetry::DhcpCounters;
use axon_wire::{MacAddr, Span, Time};
use core::net::{IpAddr, Ipv4Addr};
use ipnet::Ipv4Net;
use smoltcp::wire::DhcpMessageType;

/// What serving a request came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// The client.
    pub mac: MacAddr,
    /// The frame to send to it.
    pub reply: Option<Vec<u8>>,
    /// The address that is its own now.
    pub leased: Option<Ipv4Addr>,
    /// The address that it gave back.
    pub released: Option<Ipv4Addr>,
}

/// May a client have an address?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judgement {
    Yes,
    No,
    /// In the subnet and unused, but not for this server to lease.
    NotOurs,
}

/// The DHCP server of the fabric.
#[derive(Clone, Debug)]
pub struct DhcpServer {
    identity: ServerIdentity,
    config: DhcpConfig,
    subnet: Ipv4Net,
    leases: Leases,
    counters: DhcpCounters,
}

impl DhcpServer {
    /// A server without leases. Of the pool, what is not in the subnet, its network and
    /// broadcast address, the server's and the router's own and what is reserved are not
    /// given to anyone unasked.
    pub fn new(identity: ServerIdentity, config: &DhcpConfig) -> DhcpServer {
        // Lengths over 32 are 32.
        let subnet = Ipv4Net::new(identity.ip, config.prefix_len).unwrap_or(identity.ip.into());
        // RFC 3021 and host routes aside, the first and last addresses are not hosts'.
        let (first, last) = (subnet.network(), subnet.broadcast());
        let mut excluded: BTreeSet<Ipv4Addr> = config.reservations.values().copied().collect();
        excluded.extend([first, last, identity.ip]);
        excluded.extend(config.router);
        let (pool_first, pool_last) = (config.pool_first.max(first), config.pool_last.min(last));
        DhcpServer {
            identity,
            config: config.clone(),
            subnet,
            leases: Leases::new(pool_first, pool_last, excluded),
            counters: DhcpCounters::default(),
        }
    }

    /// The counters.
    pub fn counters(&self) -> &DhcpCounters {
        &self.counters
    }

    /// All addresses that were ever offered, and what they are now.
    pub fn leases(&self) -> impl Iterator<Item = (Ipv4Addr, &Lease)> {
        self.leases.iter()
    }

    /// Whether an address is reserved for, or leased to, another client than `mac`.
    pub fn belongs_to_another(&self, mac: MacAddr, ip: Ipv4Addr) -> bool {
        let reserved = self.config.reservations.iter().find(|(_, reserved)| **reserved == ip);
        reserved.map_or_else(|| self.leases.bound_to_another(mac, ip), |(owner, _)| *owner != mac)
    }

    /// Handles a frame that a host sent at `place`; `None` if it is no request.
    pub fn serve(
        &mut self,
        now: Time,
        place: Place,
        frame: &[u8],
        hosts: &HostTable,
    ) -> Option<Served> {
        let Some(request) = Request::parse(frame) else {
            self.counters.malformed += 1;
            return None;
        };
        self.leases.expire(now);
        let mut served = Served { mac: request.mac, reply: None, leased: None, released: None };
        match request.kind {
            DhcpMessageType::Discover => {
                served.reply = self.discover(now, place, &request, hosts);
            }
            DhcpMessageType::Request => self.request(now, &request, hosts, &mut served),
            DhcpMessageType::Decline => {
                if self.is_for_us(&request)
                    && let Some(ip) = request.requested
                    && self.leases.decline(now, place, request.mac, ip)
                {
                    self.counters.declined += 1;
                    served.released = Some(ip);
                }
            }
            DhcpMessageType::Release => {
                if self.is_for_us(&request) && self.leases.release(now, request.mac, request.ciaddr)
                {
                    self.counters.released += 1;
                    served.released = Some(request.ciaddr);
                }
            }
            DhcpMessageType::Inform if self.subnet.contains(&request.ciaddr) => {
                let grant = self.grant(Ipv4Addr::UNSPECIFIED, false);
                served.reply = Some(self.say(&request, DhcpMessageType::Ack, Some(&grant)));
                self.counters.acks += 1;
            }
            _ => self.counters.silent += 1,
        }
        Some(served)
    }

    /// RFC 2131 §4.3.1.
    fn discover(
        &mut self,
        now: Time,
        place: Place,
        request: &Request,
        hosts: &HostTable,
    ) -> Option<Vec<u8>> {
        let mac = request.mac;
        let unused = |ip| !used_by_another(hosts, mac, ip);
        let ip = match self.config.reservations.get(&mac) {
            Some(&ip) => Some(ip).filter(|&ip| unused(ip)),
            None => self.leases.offer(now, place, mac, request.requested, unused),
        };
        let Some(ip) = ip else {
            self.counters.exhausted += 1;
            return None;
        };
        self.counters.offers += 1;
        let grant = self.grant(ip, true);
        Some(self.say(request, DhcpMessageType::Offer, Some(&grant)))
    }

    /// RFC 2131 §4.3.2. With a server identifier the client has chosen among offers;
    /// without one it names an address that it had (INIT-REBOOT), or has (renewing and
    /// rebinding, in `ciaddr`).
    fn request(&mut self, now: Time, request: &Request, hosts: &HostTable, served: &mut Served) {
        let mac = request.mac;
        if !self.is_for_us(request) {
            self.leases.refuse(now, mac);
            self.counters.silent += 1;
            return;
        }
        let had = Some(request.ciaddr).filter(|ip| !ip.is_unspecified());
        let Some(ip) = request.requested.or(had) else {
            self.counters.silent += 1;
            return;
        };
        match self.judge(mac, ip, hosts) {
            Judgement::Yes => {
                self.leases.bind(now, mac, ip, self.config.lease);
                self.counters.acks += 1;
                let grant = self.grant(ip, true);
                served.reply = Some(self.say(request, DhcpMessageType::Ack, Some(&grant)));
                served.leased = Some(ip);
            }
            Judgement::NotOurs if request.server.is_none() => self.counters.silent += 1,
            Judgement::No | Judgement::NotOurs => {
                self.counters.naks += 1;
                served.reply = Some(self.say(request, DhcpMessageType::Nak, None));
            }
        }
    }

    fn judge(&self, mac: MacAddr, ip: Ipv4Addr, hosts: &HostTable) -> Judgement {
        let mismatch = match (self.config.reservations.get(&mac), self.leases.of(mac)) {
            (Some(&reserved), _) => reserved != ip,
            (None, Some((bound, LeaseState::Bound))) => bound != ip,
            (None, _) => false,
        };
        let reserved = self.config.reservations.get(&mac) == Some(&ip);
        if mismatch || !self.subnet.contains(&ip) || used_by_another(hosts, mac, ip) {
            return Judgement::No;
        }
        if reserved {
            return Judgement::Yes;
        }
        let others = self.config.reservations.values().any(|&other| other == ip);
        if others || ip == self.identity.ip || self.leases.taken_from(mac, ip) {
            return Judgement::No;
        }
        if self.leases.in_pool(ip) { Judgement::Yes } else { Judgement::NotOurs }
    }

    /// Whether the request names this server, or none.
    fn is_for_us(&self, request: &Request) -> bool {
        request.server.is_none_or(|server| server == self.identity.ip)
    }

    fn grant(&self, address: Ipv4Addr, lease: bool) -> Grant<'_> {
        Grant {
            address,
            lease_seconds: lease.then(|| whole_seconds(self.config.lease)),
            mask: self.subnet.netmask(),
            broadcast: self.subnet.broadcast(),
            router: self.config.router,
            dns: &self.config.dns,
        }
    }

    fn say(&self, to: &Request, kind: DhcpMessageType, grant: Option<&Grant<'_>>) -> Vec<u8> {
        reply(to, kind, (self.identity.mac, self.identity.ip), grant)
    }
}

/// A lease in seconds, at least one; what does not fit is for ever (RFC 2132 §9.2).
fn whole_seconds(lease: Span) -> u32 {
    u32::try_from(lease.as_millis() / 1_000).unwrap_or(u32::MAX).max(1)
}

/// Whether the host table shows an address with a host other than `mac`.
fn used_by_another(hosts: &HostTable, mac: MacAddr, ip: Ipv4Addr) -> bool {
    let owner = hosts.by_ip(IpAddr::V4(ip)).and_then(|owner| hosts.get(owner));
    owner.is_some_and(|owner| owner.mac != mac)
}
