//! In-network cache (paper 004, section 6.1). It answers requests next to the switch, without load
//! on the server or on the links to it.
//!
//! A request for a server is looked up by its ID or key. A hit is answered at once, and the request
//! is dropped. A miss goes on to the server, and its answer is stored on the way back. The least
//! recently used answers are evicted for new ones.
//!
//! **Writes.** A write removes its key. A reply that the server sent before the write reached it
//! may pass after that, so replies with that key are not stored for a second (`SETTLE`). The
//! cache does not see a write that takes another path or uses TCP, so the time to live of an entry
//! bounds the age of an answer. A write in fragments has no readable key, so it removes all keys.
//!
//! **Forgery.** Only the reply to a request that has just gone on to its server is stored, and only
//! once. A host that sees requests and can send as the server can still answer first, as it can
//! without a cache, because an agent does not know the ingress port of a frame.

mod memcached;
mod store;

use crate::agent::{Agent, Counters, Event, Outbox};
use crate::packet::{Ends, Ipv4, UDP, UDP_BYTES, pseudo, udp};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_cache::Handle;
use axon_wire::{Bytes, Span, Time};
use memcached::Request;
use serde::{Deserialize, Serialize};
use store::Store;

/// Time after a write in which answers with its key are not stored. It is longer than any earlier
/// answer is in flight.
pub(crate) const SETTLE: Span = Span::from_secs(1);
/// Maximum number of recently written keys. Beyond it, nothing is stored.
const WRITTEN_MAX: usize = 4096;
/// Maximum number of replies that are being fetched. Beyond it, nothing is stored.
const FILLS_MAX: usize = 4096;
/// Maximum number of requests that wait for their reply. Beyond it, the replies to further requests
/// are not stored.
const ASKED_MAX: usize = 65_536;
/// Lifetime of a request. A reply that comes later is not stored.
const REPLY_WAIT: Span = Span::from_secs(1);
/// Timeout for fetching a reply, because the switch may have reclaimed its packet.
const FETCH_WAIT: Span = Span::from_secs(1);

/// Protocol that identifies and matches requests and replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// ID at the same offset of request and reply, as in the packets of paper 004, section 6.1.
    /// There are no writes.
    Id {
        /// Offset of the ID in the UDP payload, in bytes.
        offset: usize,
        /// Length of the ID in bytes, 1 or more.
        bytes: usize,
    },
    /// Text protocol of memcached over UDP.
    Memcached,
}

/// Configuration of an in-network cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InNetworkCacheConfig {
    /// Protocol.
    pub protocol: Protocol,
    /// UDP port of the servers.
    pub port: u16,
    /// Maximum size in bytes, the memory of the entries included.
    pub bytes_max: Bytes,
    /// Time to live of an answer; unlimited if `None`.
    pub ttl: Option<Span>,
}

impl InNetworkCacheConfig {
    /// Configuration for the paper's protocol: an ID of eight bytes at the front of the UDP
    /// payload, UDP port 5000, and 64 MiB.
    pub const ID: InNetworkCacheConfig = InNetworkCacheConfig {
        protocol: Protocol::Id { offset: 0, bytes: 8 },
        port: 5000,
        bytes_max: Bytes(64 << 20),
        ttl: None,
    };
    /// Configuration for memcached: its port 11211, 64 MiB, and a time to live of ten seconds,
    /// because only the server knows when an item expires.
    pub const MEMCACHED: InNetworkCacheConfig = InNetworkCacheConfig {
        protocol: Protocol::Memcached,
        port: 11211,
        bytes_max: Bytes(64 << 20),
        ttl: Some(Span::from_secs(10)),
    };

    /// Returns the head length, in bytes, that is required to parse any request, and any reply by
    /// its ID or key. It covers the headers with a tag, and the payload up to the end of the ID or
    /// of the longest key, and is at least 128.
    pub fn head_bytes(&self) -> usize {
        // Ethernet with a tag, IPv4 and UDP.
        let headers = 18 + 20 + UDP_BYTES;
        match self.protocol {
            Protocol::Id { offset, bytes } => (headers + offset + bytes).max(128),
            Protocol::Memcached => headers + 338,
        }
    }
}

/// Reply whose payload is being fetched.
#[derive(Debug)]
struct Fill {
    key: Vec<u8>,
    ends: Ends,
    /// Timeout of the fetch.
    until: Time,
}

/// Counters of the cache.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    hits: u64,
    misses: u64,
    fills: u64,
    evicted: u64,
    invalidated: u64,
    no_room: u64,
    other: u64,
    unasked: u64,
    saved_bytes: u64,
}

/// In-network cache.
#[derive(Debug)]
pub struct InNetworkCache {
    config: InNetworkCacheConfig,
    store: Store,
    fills: BTreeMap<Handle, Fill>,
    /// Forwarded requests, by key and client, with the time until which their replies are stored.
    asked: BTreeMap<Vec<u8>, Time>,
    /// Time until which answers with a key are not stored.
    written: BTreeMap<Vec<u8>, Time>,
    /// Time until which no answer is stored.
    nothing_until: Time,
    counts: Counts,
}

/// Datagram to a server or from a server.
struct Datagram<'a> {
    ends: Ends,
    /// Offset of its UDP header in the frame, in bytes.
    at: usize,
    end: usize,
    /// UDP payload, as far as the head contains it.
    payload: &'a [u8],
    /// True if the head contains the complete datagram with a valid checksum.
    is_whole: bool,
}

impl<'a> Datagram<'a> {
    fn parse(head: &'a [u8]) -> Option<Datagram<'a>> {
        let ip = Ipv4::parse(head).filter(|ip| ip.protocol == UDP && !ip.is_fragment)?;
        let ends = Ends::of(head, &ip)?;
        let segment = head.get(ip.payload_at..ip.end.min(head.len()))?;
        let payload = segment.get(UDP_BYTES..)?;
        let is_whole = ip.end <= head.len() && is_sound(segment, &ends);
        Some(Datagram { ends, at: ip.payload_at, end: ip.end, payload, is_whole })
    }
}

/// Returns whether the length and the checksum of a complete UDP datagram, including its header,
/// are valid.
fn is_sound(segment: &[u8], ends: &Ends) -> bool {
    let Some(&[.., high, low, sum_high, sum_low]) = segment.first_chunk::<UDP_BYTES>() else {
        return false;
    };
    usize::from(u16::from_be_bytes([high, low])) == segment.len()
        && ([sum_high, sum_low] == [0, 0] || pseudo(segment, ends.addresses, UDP) == u16::MAX)
}

impl InNetworkCache {
    /// Creates an empty cache.
    pub fn new(config: InNetworkCacheConfig) -> InNetworkCache {
        InNetworkCache {
            store: Store::new(config.bytes_max.0 as usize, config.ttl),
            config,
            fills: BTreeMap::new(),
            asked: BTreeMap::new(),
            written: BTreeMap::new(),
            nothing_until: Time::ZERO,
            counts: Counts::default(),
        }
    }

    /// Returns the key under which the reply for a name from a server is stored.
    fn key(ends: &Ends, name: &[u8]) -> Vec<u8> {
        [&ends.addresses.1.octets(), name].concat()
    }

    fn id<'a>(&self, payload: &'a [u8]) -> Option<&'a [u8]> {
        match self.config.protocol {
            Protocol::Id { offset, bytes } => payload.get(offset..offset.checked_add(bytes)?),
            Protocol::Memcached => None,
        }
    }

    /// Returns the stored answer to a request.
    fn answer(&mut self, now: Time, datagram: &Datagram<'_>) -> Option<Vec<u8>> {
        let ends = &datagram.ends;
        let (name, header) = match self.config.protocol {
            Protocol::Id { .. } => (self.id(datagram.payload), None),
            Protocol::Memcached => match memcached::request(datagram.payload) {
                Request::Get(key) => (Some(key), Some(memcached::answer_header(datagram.payload))),
                Request::Write(key) => {
                    self.write(now, Self::key(ends, key));
                    (None, None)
                }
                Request::WriteAll => {
                    self.write_all(now);
                    (None, None)
                }
                Request::Other => (None, None),
            },
        };
        let Some(name) = name.filter(|_| datagram.is_whole) else {
            self.counts.other += 1;
            return None;
        };
        let key = Self::key(ends, name);
        let Some(value) = self.store.get(now, &key) else {
            self.counts.misses += 1;
            self.ask(now, Self::of_client(&key, ends));
            return None;
        };
        let header = header.as_ref().map_or(&[][..], |header| header);
        Some(udp(&ends.reversed(), &[header, value]))
    }

    /// Returns the name of a request, which consists of its key and its client.
    fn of_client(key: &[u8], ends: &Ends) -> Vec<u8> {
        [key, &ends.addresses.0.octets(), &ends.ports.0.to_be_bytes()].concat()
    }

    /// Records a request that goes on to its server.
    fn ask(&mut self, now: Time, request: Vec<u8>) {
        if self.asked.len() >= ASKED_MAX {
            self.asked.retain(|_, until| *until > now);
        }
        if self.asked.len() < ASKED_MAX {
            self.asked.insert(request, now + REPLY_WAIT);
        }
    }

    fn write(&mut self, now: Time, key: Vec<u8>) {
        self.counts.invalidated += u64::from(self.store.remove(&key));
        self.fills.retain(|_, fill| fill.key != key);
        if self.written.len() >= WRITTEN_MAX {
            self.written.retain(|_, until| *until > now);
        }
        if self.written.len() >= WRITTEN_MAX {
            return self.write_all(now);
        }
        self.written.insert(key, now + SETTLE);
    }

    fn write_all(&mut self, now: Time) {
        self.counts.invalidated += self.store.clear();
        self.fills.clear();
        self.written.clear();
        self.nothing_until = now + SETTLE;
    }

    fn may_keep(&self, now: Time, key: &[u8]) -> bool {
        now >= self.nothing_until && self.written.get(key).is_none_or(|until| now >= *until)
    }

    /// Stores a complete UDP datagram from a server, which includes its header.
    fn fill(&mut self, now: Time, Fill { key, ends, .. }: Fill, segment: &[u8]) {
        if !is_sound(segment, &ends) {
            return;
        }
        let payload = &segment[UDP_BYTES..];
        let value = match self.config.protocol {
            Protocol::Id { .. } => payload,
            Protocol::Memcached if memcached::is_whole_answer(payload) => {
                &payload[memcached::FRAME_HEADER_BYTES..]
            }
            Protocol::Memcached => return,
        };
        self.counts.evicted += self.store.put(now, &key, value);
        self.counts.fills += 1;
    }

    fn reply(&mut self, now: Time, handle: Handle, datagram: &Datagram<'_>) -> bool {
        let name = match self.config.protocol {
            Protocol::Id { .. } => self.id(datagram.payload),
            Protocol::Memcached => memcached::answered_key(datagram.payload),
        };
        let Some(name) = name else { return false };
        let request = datagram.ends.reversed();
        let key = Self::key(&request, name);
        let asked = self.asked.remove(&Self::of_client(&key, &request));
        if asked.is_none_or(|until| until <= now) {
            self.counts.unasked += 1;
            return false;
        }
        if self.fills.len() >= FILLS_MAX {
            self.fills.retain(|_, fill| fill.until > now);
        }
        if !self.may_keep(now, &key) || self.fills.len() >= FILLS_MAX {
            return false;
        }
        let fill = Fill { key, ends: datagram.ends, until: now + FETCH_WAIT };
        self.fills.insert(handle, fill);
        true
    }

    /// Returns whether a frame is a fragment of a datagram to a server, because that may be a
    /// write.
    fn is_piece_for_server(&self, head: &[u8]) -> bool {
        let piece = Ipv4::parse(head).filter(|ip| ip.protocol == UDP && ip.is_fragment);
        let ends = piece.and_then(|ip| Ends::of(head, &ip));
        ends.is_some_and(|ends| ends.ports.1 == self.config.port)
    }

    fn packet(&mut self, now: Time, handle: Handle, out: &mut dyn Outbox) {
        let Some(head) = out.head(handle) else { return };
        let port = self.config.port;
        if self.config.protocol == Protocol::Memcached && self.is_piece_for_server(head) {
            self.write_all(now);
        }
        let datagram = Datagram::parse(head);
        match datagram {
            Some(datagram) if datagram.ends.ports.1 == port => {
                let Some(answer) = self.answer(now, &datagram) else {
                    return out.forward(handle);
                };
                // If there is no room, the server has to answer.
                if out.send(&answer).is_err() {
                    self.counts.no_room += 1;
                    return out.forward(handle);
                }
                self.counts.hits += 1;
                self.counts.saved_bytes += answer.len() as u64;
                out.drop(handle);
            }
            Some(datagram) if datagram.ends.ports.0 == port => {
                let (at, bytes) = (datagram.at, datagram.end - datagram.at);
                if self.reply(now, handle, &datagram) {
                    out.fetch(handle, at, bytes);
                } else {
                    out.forward(handle);
                }
            }
            _ => {
                self.counts.other += 1;
                out.forward(handle);
            }
        }
    }
}

impl Agent for InNetworkCache {
    fn handle(&mut self, now: Time, event: Event<'_>, out: &mut dyn Outbox) {
        match event {
            Event::Packet(packet) => self.packet(now, packet.handle, out),
            Event::Payload { handle, bytes, .. } => {
                if let Some(fill) = self.fills.remove(&handle)
                    && self.may_keep(now, &fill.key)
                {
                    self.fill(now, fill, bytes);
                }
                out.forward(handle);
            }
            Event::Timeout => {}
        }
    }

    fn counters(&self) -> Counters {
        let counts = &self.counts;
        Counters::from([
            ("bytes", self.store.bytes() as u64),
            ("entries", self.store.len() as u64),
            ("evicted", counts.evicted),
            ("fills", counts.fills),
            ("hits", counts.hits),
            ("invalidated", counts.invalidated),
            ("misses", counts.misses),
            ("no_room", counts.no_room),
            ("other", counts.other),
            ("saved_bytes", counts.saved_bytes),
            ("unasked", counts.unasked),
        ])
    }
}
