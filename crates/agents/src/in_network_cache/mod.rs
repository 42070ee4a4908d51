//! A cache in the network (paper 004, section 6.1): requests are answered beside the switch, and do
//! not load the server nor the links to it.
//!
//! In plain English: a request for a server is looked up by the ID or the key in it. What is here
//! is sent back at once, and the request goes no further. What is not goes on to the server; the
//! answer passes by here on its way back, so that it can be kept. The least recently used answers
//! make room for new ones.
//!
//! **Writes.** A write that passes by takes its key out. A reply that the server had sent before
//! the write reached it may still pass after that, so replies with that key are not kept for a
//! second ([`SETTLE`]). A write that takes another way, or TCP, is not seen: an entry's time to
//! live bounds for how long an old answer may be given. A write in fragments has no key that is
//! read here, so it takes all keys out.
//!
//! **Forgery.** Only the reply to a request that has just gone on to its server is kept, once. Who
//! sees requests and can send as the server can still answer first, as it can without a cache; an
//! agent does not know by which port a frame has come.

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

/// How long after a write no answer with its key is kept: longer than any answer of before the
/// write is on its way.
pub const SETTLE: Span = Span::from_secs(1);
/// Keys that were just written, at most; while there are more, nothing is kept.
const WRITTEN_MAX: usize = 4096;
/// Replies that are being fetched, at most; while there are more, nothing is kept.
const FILLS_MAX: usize = 4096;
/// Requests that wait for their reply, at most; while there are more, their replies are not kept.
const ASKED_MAX: usize = 65_536;
/// How long a request waits: a reply that comes later is not kept.
const REPLY_WAIT: Span = Span::from_secs(1);
/// How long a reply is fetched: one that its switch has taken back meanwhile never comes.
const FETCH_WAIT: Span = Span::from_secs(1);

/// How requests and replies are distinguished and matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// An ID at the same place of request and reply, as the packets of paper 004, section 6.1, have
    /// it. Nothing is ever written.
    Id {
        /// Where it begins, in bytes from the first of the UDP payload.
        offset: usize,
        /// Its length in bytes, 1 or more.
        bytes: usize,
    },
    /// The text protocol of memcached over UDP.
    Memcached,
}

/// The settings of an in-network cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InNetworkCacheConfig {
    /// The protocol.
    pub protocol: Protocol,
    /// The servers' UDP port.
    pub port: u16,
    /// What it may keep, in bytes, the entries' own memory included.
    pub bytes_max: Bytes,
    /// How long an answer is given; for as long as there is room without.
    pub ttl: Option<Span>,
}

impl InNetworkCacheConfig {
    /// An ID of eight bytes at the front of the UDP payload, at UDP port 5000, and 64 MiB.
    pub const ID: InNetworkCacheConfig = InNetworkCacheConfig {
        protocol: Protocol::Id { offset: 0, bytes: 8 },
        port: 5000,
        bytes_max: Bytes(64 << 20),
        ttl: None,
    };
    /// Memcached at its port 11211, 64 MiB, for ten seconds: when an item expires is known to
    /// the server only.
    pub const MEMCACHED: InNetworkCacheConfig = InNetworkCacheConfig {
        protocol: Protocol::Memcached,
        port: 11211,
        bytes_max: Bytes(64 << 20),
        ttl: Some(Span::from_secs(10)),
    };

    /// Bytes of head that the agent needs to know any request, and any reply by its ID or key:
    /// headers with a tag, and what stands before the end of the ID or of the longest key. 128 at
    /// least.
    pub fn head_bytes(&self) -> usize {
        // Ethernet and tag, IPv4 and UDP.
        let headers = 18 + 20 + UDP_BYTES;
        match self.protocol {
            Protocol::Id { offset, bytes } => (headers + offset + bytes).max(128),
            Protocol::Memcached => headers + 338,
        }
    }
}

/// A reply whose payload was asked for.
#[derive(Debug)]
struct Fill {
    key: Vec<u8>,
    ends: Ends,
    /// When it may be given up.
    until: Time,
}

/// What it has counted.
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

/// A cache in the network.
#[derive(Debug)]
pub struct InNetworkCache {
    config: InNetworkCacheConfig,
    store: Store,
    fills: BTreeMap<Handle, Fill>,
    /// Requests that have gone on to their server, by key and client, and until when their reply is
    /// kept.
    asked: BTreeMap<Vec<u8>, Time>,
    /// Until when answers with a key are not kept.
    written: BTreeMap<Vec<u8>, Time>,
    /// Until when no answer is kept.
    nothing_until: Time,
    counts: Counts,
}

/// A datagram to or from a server.
struct Datagram<'a> {
    ends: Ends,
    /// Where its UDP header begins in the frame, and where the datagram ends.
    at: usize,
    end: usize,
    /// As much of its UDP payload as the head has.
    payload: &'a [u8],
    /// All of it is in the head, and its checksum holds.
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

/// Whether the length and the checksum of a whole UDP datagram, header included, are right.
fn is_sound(segment: &[u8], ends: &Ends) -> bool {
    let Some(&[.., high, low, sum_high, sum_low]) = segment.first_chunk::<UDP_BYTES>() else {
        return false;
    };
    usize::from(u16::from_be_bytes([high, low])) == segment.len()
        && ([sum_high, sum_low] == [0, 0] || pseudo(segment, ends.addresses, UDP) == u16::MAX)
}

impl InNetworkCache {
    /// An empty cache.
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

    /// The key of the store for a name at a server.
    fn key(ends: &Ends, name: &[u8]) -> Vec<u8> {
        [&ends.addresses.1.octets(), name].concat()
    }

    fn id<'a>(&self, payload: &'a [u8]) -> Option<&'a [u8]> {
        match self.config.protocol {
            Protocol::Id { offset, bytes } => payload.get(offset..offset.checked_add(bytes)?),
            Protocol::Memcached => None,
        }
    }

    /// The answer to a request, if it is here.
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

    /// The name of a request: its key and its client.
    fn of_client(key: &[u8], ends: &Ends) -> Vec<u8> {
        [key, &ends.addresses.0.octets(), &ends.ports.0.to_be_bytes()].concat()
    }

    /// Remembers a request that goes on to its server.
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

    /// Keeps a whole UDP datagram, header included, that a server has sent.
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

    /// Whether a frame is a piece of a datagram for a server, which may be a write.
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
                // Without room the server has to answer.
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
