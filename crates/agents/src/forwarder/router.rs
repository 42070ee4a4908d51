//! Plain IPv4 router on one port (RFC 1812): longest prefix match, TTL, and MAC address of the next
//! hop.
//!
//! While the next hop is being resolved, the agent holds the packet, whose payload stays in the
//! switch's buffer. Only a few packets may wait, for one next hop and in total. Beyond these
//! limits, the oldest is dropped (RFC 1122 section 2.3.2.2 requires saving the latest).

use super::neighbours::{Known, Neighbours};
use super::rewrite;
use crate::agent::{Counters, Outbox};
use crate::packet::{Ends, IPV4_BYTES, Ipv4, ipv4, sum};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use axon_cache::Handle;
use axon_wire::{MacAddr, Span, Time};
use core::net::Ipv4Addr;
use serde::{Deserialize, Serialize};

/// Maximum number of packets queued for one next hop. It is the limit of Linux before version 3.3
/// (`unres_qlen`).
const WAITING_MAX: usize = 3;
/// Maximum number of packets queued in total: a quarter of the 384 default payload buffers of an
/// agent port. An agent does not know the number of buffers at its port. A port with fewer than
/// twice this limit has little room left.
const ALL_WAITING_MAX: usize = 96;
/// Minimum interval between ICMP messages (RFC 1812 section 4.3.2.8).
const ICMP_INTERVAL: Span = Span::from_millis(1);
/// IP protocol number of ICMP.
const ICMP: u8 = 1;
/// ICMP types and codes (RFC 792).
const NET_UNREACHABLE: [u8; 2] = [3, 0];
const HOST_UNREACHABLE: [u8; 2] = [3, 1];
const TTL_EXPIRED: [u8; 2] = [11, 0];
/// Number of bytes after the packet's IP header that an ICMP message quotes.
const QUOTED_BYTES: usize = 8;

/// Route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteTo {
    /// First address of the prefix; bits beyond its length are ignored.
    pub prefix: Ipv4Addr,
    /// Length of the prefix in bits, 0 to 32.
    pub length: u8,
    /// Next hop; `None` for the destination itself.
    pub via: Option<Ipv4Addr>,
}

/// Routing table with longest prefix match.
#[derive(Debug, Default)]
struct Routes {
    /// Next hop, by prefix length and prefix bits.
    by_prefix: BTreeMap<(u8, u32), Option<Ipv4Addr>>,
}

/// Returns the bits of an address that a prefix of this length covers.
const fn prefix_bits(address: Ipv4Addr, length: u8) -> u32 {
    match u32::MAX.checked_shl(32 - length as u32) {
        Some(mask) => address.to_bits() & mask,
        None => 0,
    }
}

impl Routes {
    fn new(routes: &[RouteTo]) -> Routes {
        let entry = |to: &RouteTo| {
            let length = to.length.min(32);
            ((length, prefix_bits(to.prefix, length)), to.via)
        };
        Routes { by_prefix: routes.iter().map(entry).collect() }
    }

    fn next_hop(&self, address: Ipv4Addr) -> Option<Ipv4Addr> {
        let longest_first = (0..=32).rev();
        let mut all = longest_first.map(|length| (length, prefix_bits(address, length)));
        let via = all.find_map(|prefix| self.by_prefix.get(&prefix))?;
        Some(via.unwrap_or(address))
    }
}

/// Counters of the router.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    forwarded: u64,
    no_route: u64,
    ttl_expired: u64,
    unresolved: u64,
    gave_way: u64,
    icmp: u64,
}

/// Router.
#[derive(Debug)]
pub(super) struct Router {
    mac: MacAddr,
    address: Ipv4Addr,
    routes: Routes,
    /// Queued packets with their next hops, oldest first.
    waiting: VecDeque<(Ipv4Addr, Handle)>,
    icmp_at: Time,
    counts: Counts,
}

impl Router {
    pub(crate) fn new(mac: MacAddr, address: Ipv4Addr, routes: &[RouteTo]) -> Router {
        Router {
            mac,
            address,
            routes: Routes::new(routes),
            waiting: VecDeque::new(),
            icmp_at: Time::ZERO,
            counts: Counts::default(),
        }
    }

    /// Processes a packet for another address. The packet is forwarded, queued or dropped.
    pub(crate) fn packet(
        &mut self,
        now: Time,
        neighbours: &mut Neighbours,
        handle: Handle,
        ip: &Ipv4,
        out: &mut dyn Outbox,
    ) {
        if ip.ttl <= 1 {
            self.counts.ttl_expired += 1;
            return self.refuse(now, handle, TTL_EXPIRED, out);
        }
        let Some(next_hop) = self.routes.next_hop(ip.destination) else {
            self.counts.no_route += 1;
            return self.refuse(now, handle, NET_UNREACHABLE, out);
        };
        let (known, asked_no_more) = neighbours.resolve(now, next_hop);
        if let Some(address) = asked_no_more {
            self.give_up(address, out);
        }
        match known {
            Known::At(mac) => self.forward(mac, handle, out),
            Known::Asked => self.wait(next_hop, handle, out),
            Known::Absent => {
                self.counts.unresolved += 1;
                self.refuse(now, handle, HOST_UNREACHABLE, out);
            }
        }
    }

    /// Queues a packet for its next hop. At the limit, the oldest packet is dropped.
    fn wait(&mut self, next_hop: Ipv4Addr, handle: Handle, out: &mut dyn Outbox) {
        let same = self.waiting.iter().filter(|(to, _)| *to == next_hop).count();
        let oldest = if same >= WAITING_MAX {
            self.waiting.iter().position(|(to, _)| *to == next_hop)
        } else {
            (self.waiting.len() >= ALL_WAITING_MAX).then_some(0)
        };
        if let Some((_, oldest)) = oldest.and_then(|at| self.waiting.remove(at)) {
            self.counts.gave_way += 1;
            out.drop(oldest);
        }
        self.waiting.push_back((next_hop, handle));
    }

    /// Removes the packets queued for a next hop, in order.
    fn waiting_for(&mut self, next_hop: Ipv4Addr) -> Vec<Handle> {
        let same = self.waiting.iter().filter(|(to, _)| *to == next_hop);
        let handles = same.map(|(_, handle)| *handle).collect();
        self.waiting.retain(|(to, _)| *to != next_hop);
        handles
    }

    /// Drops the packets queued for an evicted next hop.
    fn give_up(&mut self, next_hop: Ipv4Addr, out: &mut dyn Outbox) {
        for handle in self.waiting_for(next_hop) {
            self.counts.gave_way += 1;
            out.drop(handle);
        }
    }

    /// Forwards or drops the packets queued for a next hop that was resolved or did not answer.
    pub(crate) fn settle(
        &mut self,
        now: Time,
        next_hop: Ipv4Addr,
        mac: Option<MacAddr>,
        out: &mut dyn Outbox,
    ) {
        for handle in self.waiting_for(next_hop) {
            match mac {
                Some(mac) => self.forward(mac, handle, out),
                None => {
                    self.counts.unresolved += 1;
                    self.refuse(now, handle, HOST_UNREACHABLE, out);
                }
            }
        }
    }

    fn forward(&mut self, to: MacAddr, handle: Handle, out: &mut dyn Outbox) {
        // The switch may have reclaimed the packet in the meantime.
        let Some(head) = out.head(handle) else { return };
        let Some(ip) = Ipv4::parse(head) else { return out.drop(handle) };
        rewrite::decrement_ttl(head, &ip);
        rewrite::set_macs(head, (self.mac, to));
        self.counts.forwarded += 1;
        out.forward(handle);
    }

    /// Drops a packet and sends an ICMP message to its source (RFC 792). There is no message about
    /// an ICMP packet, a fragment other than the first, or a packet that is not unicast (RFC 1812
    /// section 4.3.2.7).
    fn refuse(&mut self, now: Time, handle: Handle, why: [u8; 2], out: &mut dyn Outbox) {
        let message = out.head(handle).and_then(|head| self.message(head, why));
        if let Some(message) = message.filter(|_| now >= self.icmp_at)
            && out.send(&message).is_ok()
        {
            self.icmp_at = now + ICMP_INTERVAL;
            self.counts.icmp += 1;
        }
        out.drop(handle);
    }

    fn message(&self, head: &[u8], [kind, code]: [u8; 2]) -> Option<Vec<u8>> {
        let ip = Ipv4::parse(head)?;
        let source = MacAddr::source_of(head)?;
        let is_unicast = !ip.source.is_unspecified()
            && !ip.source.is_multicast()
            && !ip.source.is_broadcast()
            && !ip.source.is_loopback()
            && source.is_unicast();
        if ip.protocol == ICMP || ip.is_later_fragment || !is_unicast {
            return None;
        }
        let quoted = &head[ip.at..(ip.payload_at + QUOTED_BYTES).min(ip.end).min(head.len())];
        let mut header = [kind, code, 0, 0, 0, 0, 0, 0];
        let checksum = !sum(&[&header, quoted].concat());
        header[2..4].copy_from_slice(&checksum.to_be_bytes());
        let (macs, addresses) = ((self.mac, source), (self.address, ip.source));
        Some(ipv4(&Ends { macs, addresses, ports: (0, 0) }, ICMP, &[&header, quoted]))
    }

    pub(crate) fn count(&self, counters: &mut Counters) {
        let counts = &self.counts;
        counters.extend([
            ("forwarded", counts.forwarded),
            ("icmp_sent", counts.icmp),
            ("no_route", counts.no_route),
            ("ttl_expired", counts.ttl_expired),
            ("unresolved", counts.unresolved),
            ("waiting", self.waiting.len() as u64),
            ("waiting_gave_way", counts.gave_way),
        ]);
    }
}

/// Required head length of the router, in bytes: the longest IPv4 header and the quoted bytes.
pub(super) const HEAD_BYTES: usize = 18 + 3 * IPV4_BYTES + QUOTED_BYTES;

#[cfg(test)]
mod tests {
    use super::*;
    use axon_node::random::Random;

    #[test]
    fn the_longest_prefix_wins_whatever_the_routes() {
        let mut random = Random::new(9);
        for _ in 0..200 {
            let mut route = || RouteTo {
                prefix: Ipv4Addr::from_bits(0x0a00_0000 | random.next_u32() & 0xffff),
                length: (random.next_u32() % 33) as u8,
                via: Some(Ipv4Addr::from_bits(random.next_u32())),
            };
            let routes: Vec<RouteTo> = (0..40).map(|_| route()).collect();
            let table = Routes::new(&routes);
            for _ in 0..100 {
                let address = Ipv4Addr::from_bits(0x0a00_0000 | random.next_u32() & 0xffff);
                let covers = |route: &&RouteTo| {
                    let bits = u64::from(address.to_bits() ^ route.prefix.to_bits());
                    bits >> (32 - route.length) == 0
                };
                // Of two routes for one prefix, the later one wins.
                let plain = routes.iter().filter(covers).max_by_key(|route| route.length);
                assert_eq!(table.next_hop(address), plain.and_then(|route| route.via));
            }
        }
        let on_link = RouteTo { prefix: Ipv4Addr::new(10, 1, 0, 0), length: 16, via: None };
        let table = Routes::new(&[on_link]);
        let there = Ipv4Addr::new(10, 1, 2, 3);
        assert_eq!(table.next_hop(there), Some(there));
        assert_eq!(table.next_hop(Ipv4Addr::new(10, 2, 0, 1)), None);
    }
}
