//! Tests of the in-network cache, which answers requests next to the switch.

use crate::port::{Port, SERVER, datagram, ends};
use axon_agents::node::PayloadMode;
use axon_agents::packet::{Ends, Ipv4, UDP, pseudo};
use axon_agents::{
    Agent, AgentPortConfig, Event, Full, Handle, InNetworkCache, InNetworkCacheConfig, Outbox,
    Packet,
};
use axon_wire::{Bytes, Span, Time};

type CachePort = Port<InNetworkCache>;

fn cache(config: InNetworkCacheConfig, payload: PayloadMode) -> CachePort {
    let mut port = AgentPortConfig { payload, ..AgentPortConfig::default() };
    port.cache.head_bytes = config.head_bytes();
    Port::new(port, InNetworkCache::new(config))
}

/// Builds the paper's request: 128 bytes on the wire with an ID in front of its payload.
fn request(id: u64) -> Vec<u8> {
    let mut payload = id.to_be_bytes().to_vec();
    payload.resize(128 - 4 - 42, 0);
    datagram(&ends(4000, 5000), &payload)
}

/// Builds the paper's reply of 1,514 bytes.
fn reply(id: u64) -> Vec<u8> {
    let mut payload = id.to_be_bytes().to_vec();
    payload.extend((0..1514 - 42 - 8).map(|byte| (byte as u64 ^ id) as u8));
    datagram(&ends(4000, 5000).reversed(), &payload)
}

/// Makes a client request an item and the server send its reply.
fn learn(port: &mut CachePort, id: u64) {
    port.give(&request(id));
    port.give(&reply(id));
}

#[test]
fn a_reply_that_has_passed_answers_the_next_request_and_only_a_request_with_its_id() {
    for payload in [PayloadMode::Cached, PayloadMode::Copied] {
        let mut port = cache(InNetworkCacheConfig::ID, payload);
        assert_eq!(port.give(&request(1)), [request(1)], "a miss goes on to the server");
        assert_eq!(port.give(&reply(1)), [reply(1)], "a reply goes on to the client");
        assert_eq!(port.give(&request(1)), [reply(1)], "a hit does not reach the server");
        assert_eq!(port.give(&request(2)), [request(2)]);
        let counts = ["hits", "misses", "fills", "saved_bytes"].map(|name| port.count(name));
        assert_eq!(counts, [1, 2, 1, 1514]);
    }
}

#[test]
fn an_answer_goes_to_whoever_asks_with_his_own_addresses() {
    let mut port = cache(InNetworkCacheConfig::ID, PayloadMode::Cached);
    learn(&mut port, 7);
    let mut other = ends(4321, 5000);
    (other.macs.0.0[5], other.addresses.0) = (9, [10, 0, 0, 9].into());
    let mut asked = 7_u64.to_be_bytes().to_vec();
    asked.push(1);
    let [answer] = &port.give(&datagram(&other, &asked))[..] else { panic!("one answer") };
    let ip = Ipv4::parse(answer).unwrap();
    assert_eq!(Ends::of(answer, &ip), Some(other.reversed()));
    assert_eq!(answer[42..], reply(7)[42..]);
    assert_eq!(pseudo(&answer[34..ip.end], (ip.source, ip.destination), UDP), u16::MAX);
    // The same ID at another server is a different item.
    let mut elsewhere = ends(4000, 5000);
    elsewhere.addresses.1 = [10, 0, 0, 3].into();
    let asked = datagram(&elsewhere, &7_u64.to_be_bytes());
    assert_eq!(port.give(&asked), [asked]);
}

#[test]
fn a_damaged_reply_is_not_kept_and_other_packets_pass_untouched() {
    let mut port = cache(InNetworkCacheConfig::ID, PayloadMode::Cached);
    port.give(&request(3));
    let mut damaged = reply(3);
    damaged[900] ^= 1;
    assert_eq!(port.give(&damaged), [damaged], "it is the client's to judge");
    assert_eq!(port.give(&request(3)), [request(3)]);
    let mut padded = request(3);
    padded[10..].fill(0xa5);
    for other in [datagram(&ends(1, 2), b"else"), padded, vec![0; 14], vec![1; 3]] {
        assert_eq!(port.give(&other), std::slice::from_ref(&other));
    }
    assert_eq!((port.count("fills"), port.count("hits"), port.count("other")), (0, 0, 4));
}

#[test]
fn the_least_recently_used_reply_makes_room() {
    let config = InNetworkCacheConfig { bytes_max: Bytes(3 * 1700), ..InNetworkCacheConfig::ID };
    let mut port = cache(config, PayloadMode::Cached);
    (1..=3).for_each(|id| learn(&mut port, id));
    assert_eq!(port.give(&request(1)), [reply(1)]);
    learn(&mut port, 4);
    let hit = [1, 2, 3, 4].map(|id| port.give(&request(id)) == [reply(id)]);
    assert_eq!(hit, [true, false, true, true]);
    assert_eq!((port.count("evicted"), port.count("entries")), (1, 3));
}

#[test]
fn a_hit_without_room_for_its_answer_goes_to_the_server() {
    let mut port = cache(InNetworkCacheConfig::ID, PayloadMode::Cached);
    learn(&mut port, 1);
    port.wire = false;
    for _ in 0..5 {
        port.give(&request(1));
    }
    assert_eq!(port.count("hits"), 5, "one on the wire, four in the send segment");
    port.give(&request(1));
    assert_eq!((port.count("hits"), port.count("no_room")), (5, 1));
    (0..5).for_each(|_| port.tx_done());
    assert_eq!(port.sent.last(), Some(&request(1)), "it was forwarded");
}

fn command(text: &str) -> Vec<u8> {
    let header = [0x12, 0x34, 0, 0, 0, 1, 0, 0];
    datagram(&ends(4000, 11211), &[&header, text.as_bytes()].concat())
}

fn answer(id: [u8; 2], text: &str) -> Vec<u8> {
    let header = [id[0], id[1], 0, 0, 0, 1, 0, 0];
    datagram(&ends(4000, 11211).reversed(), &[&header, text.as_bytes()].concat())
}

const VALUE: &str = "VALUE k 0 5\r\nhello\r\nEND\r\n";

fn learn_value(port: &mut CachePort) {
    port.give(&command("get k\r\n"));
    port.give(&answer([9, 9], VALUE));
}

#[test]
fn a_reply_that_nobody_asked_for_is_not_kept_nor_one_for_somebody_else() {
    let mut port = cache(InNetworkCacheConfig::ID, PayloadMode::Cached);
    assert_eq!(port.give(&reply(1)), [reply(1)], "it is the client's to judge");
    let mut other = ends(4001, 5000);
    other.addresses.0 = [10, 0, 0, 9].into();
    port.give(&datagram(&other, &1_u64.to_be_bytes()));
    port.give(&reply(1));
    assert_eq!(port.give(&request(1)), [request(1)]);
    port.wait(Span::from_secs(1));
    port.give(&reply(1));
    assert_eq!((port.count("fills"), port.count("unasked")), (0, 3), "the last came too late");
    learn(&mut port, 1);
    port.give(&reply(1));
    assert_eq!((port.count("fills"), port.count("unasked")), (1, 4), "one reply a request");
}

#[test]
fn a_write_in_fragments_ends_all_entries() {
    let mut port = cache(InNetworkCacheConfig::MEMCACHED, PayloadMode::Cached);
    learn_value(&mut port);
    let mut first = command("set k 0 0 4000\r\nnew");
    // Sets the flag for more fragments, which adds 0x2000 to the header, and subtracts that from
    // the checksum.
    first[20] |= 0x20;
    let sum = u16::from_be_bytes([first[24], first[25]]);
    let sum = sum.checked_sub(0x2000).unwrap_or_else(|| sum.wrapping_sub(0x2001));
    first[24..26].copy_from_slice(&sum.to_be_bytes());
    assert_eq!(port.give(&first), std::slice::from_ref(&first));
    let get = command("get k\r\n");
    assert_eq!(port.give(&get), [get]);
    assert_eq!(port.count("invalidated"), 1);
}

#[test]
fn memcached_is_answered_with_the_id_of_the_request_until_the_entry_is_old() {
    let mut port = cache(InNetworkCacheConfig::MEMCACHED, PayloadMode::Cached);
    learn_value(&mut port);
    let expected = answer([0x12, 0x34], VALUE);
    assert_eq!(port.give(&command("get k\r\n")), [expected]);
    port.wait(Span::from_secs(10));
    assert_eq!(port.give(&command("get k\r\n")), [command("get k\r\n")]);
    // An incomplete answer, or one with several items, is not cached.
    for text in ["END\r\n", "VALUE k 0 5 77\r\nhello\r\nEND\r\n", "VALUE k 0 9\r\nhel"] {
        port.give(&answer([1, 1], text));
        assert_eq!(port.give(&command("get k\r\n")), [command("get k\r\n")], "{text}");
    }
    assert_eq!(SERVER.octets()[3], 2);
}

#[test]
fn a_write_ends_an_entry_and_an_answer_from_before_it_is_not_kept() {
    for write in ["set k 0 0 3\r\nnew\r\n", "delete k noreply\r\n", "flush_all\r\n", "what\r\n"] {
        let mut port = cache(InNetworkCacheConfig::MEMCACHED, PayloadMode::Cached);
        learn_value(&mut port);
        assert_eq!(port.give(&command(write)), [command(write)]);
        let get = command("get k\r\n");
        assert_eq!(port.give(&get), std::slice::from_ref(&get), "{write}");
        // The server answered this request before the write reached it.
        port.give(&answer([9, 9], VALUE));
        assert_eq!(port.give(&get), std::slice::from_ref(&get), "{write}");
        port.wait(Span::from_secs(1));
        learn_value(&mut port);
        assert_eq!(port.count("hits"), 0);
        assert_ne!(port.give(&get), [get], "{write}");
        assert_eq!(port.count("invalidated"), 1, "{write}");
    }
    // A write to another key keeps the entry.
    let mut port = cache(InNetworkCacheConfig::MEMCACHED, PayloadMode::Cached);
    learn_value(&mut port);
    port.give(&command("set other 0 0 3\r\nnew\r\n"));
    port.give(&command("get k\r\n"));
    assert_eq!((port.count("hits"), port.count("invalidated")), (1, 0));
}

/// Switch that never delivers fetched payloads, because it has reclaimed the packets.
struct TakesBack {
    frame: Vec<u8>,
    fetches: usize,
}

impl Outbox for TakesBack {
    fn head(&mut self, _: Handle) -> Option<&mut [u8]> {
        Some(&mut self.frame)
    }
    fn payload(&mut self, _: Handle) -> Option<&mut [u8]> {
        None
    }
    fn resize_head(&mut self, _: Handle, _: usize) -> bool {
        false
    }
    fn forward(&mut self, _: Handle) {}
    fn drop(&mut self, _: Handle) {}
    fn fetch(&mut self, _: Handle, _: usize, _: usize) {
        self.fetches += 1;
    }
    fn replace(&mut self, _: Handle, _: &[u8]) -> Result<(), Full> {
        Err(Full)
    }
    fn send(&mut self, _: &[u8]) -> Result<(), Full> {
        Err(Full)
    }
}

#[test]
fn replies_that_were_taken_back_while_they_were_fetched_are_forgotten() {
    let mut cache = InNetworkCache::new(InNetworkCacheConfig::ID);
    let mut switch = TakesBack { frame: Vec::new(), fetches: 0 };
    let mut give = |cache: &mut InNetworkCache, now, id| {
        for (frame, handle) in [(request(id), 2 * id), (reply(id), 2 * id + 1)] {
            let bytes = frame.len();
            switch.frame = frame;
            let handle = Handle::from_raw(handle);
            let packet = Packet { handle, head_bytes: bytes, frame_bytes: bytes };
            cache.handle(now, Event::Packet(packet), &mut switch);
        }
        switch.fetches
    };
    let now = Time::ZERO + Span::from_secs(5);
    let most = (0..5000).map(|id| give(&mut cache, now, id)).last();
    assert_eq!(most, Some(4096), "so many at once");
    assert_eq!(give(&mut cache, now + Span::from_secs(2), 6000), 4097);
}
