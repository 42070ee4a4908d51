//! Measures the cost of the payload cache per packet on one core: `cargo bench -p axon-cache`.
//!
//! Payloads are empty vectors, so the measurement covers only the cache, and neither the copy of a
//! head nor the memory of a frame. An agent has `depth` payloads and answers the oldest, or eight
//! in another order. The best of many passes counts, because other work on the machine only ever
//! adds time.

use axon_cache::{CacheConfig, Handle, OnSent, PayloadCache};
use axon_wire::{FrameBuf, Time};
use std::hint::black_box;
use std::time::Instant;

/// Number of packets in a pass. It is a multiple of every depth, and low enough for one time slice
/// on a busy machine.
const PACKETS: usize = 8_192;
const PASSES: usize = 2_000;
/// Order in which an agent answers eight payloads.
const ORDER: [usize; 8] = [3, 0, 5, 1, 7, 2, 6, 4];

/// Treatment of each payload.
#[derive(Clone, Copy)]
enum Way {
    Send,
    SendReordered,
    Release,
    Keep,
    Steps,
    Forged,
}

fn main() {
    let ways = [
        ("receive and send", Way::Send),
        ("receive and send, reordered", Way::SendReordered),
        ("receive and release", Way::Release),
        ("receive, send and keep", Way::Keep),
        ("the same in steps", Way::Steps),
        ("a forged handle besides", Way::Forged),
    ];
    for (buffers, depth) in [(384, 64), (16_384, 4_096)] {
        for (name, way) in ways {
            let best = (0..PASSES).map(|_| pass(buffers, depth, way)).fold(f64::MAX, f64::min);
            println!("{name:30} {buffers:6} buffers, {depth:5} held: {best:6.1} ns a packet");
        }
    }
}

/// Runs one pass. Returns the time per packet, in nanoseconds.
fn pass(buffers: usize, depth: usize, way: Way) -> f64 {
    let config = CacheConfig { buffers, seed: 1, ..CacheConfig::default() };
    let mut cache = PayloadCache::new(config).expect("a cache");
    let mut frame = Some(FrameBuf::from_vec(Vec::new(), 0));
    let mut handles: Vec<Handle> = Vec::with_capacity(depth);
    for _ in 0..depth {
        let frame = FrameBuf::from_vec(Vec::new(), 0);
        handles.push(cache.receive(Time::ZERO, frame).expect("room").handle);
    }
    let start = Instant::now();
    for packet in 0..PACKETS {
        let place = match way {
            Way::SendReordered => (packet - packet % 8 + ORDER[packet % 8]) % depth,
            _ => packet % depth,
        };
        let handle = handles[place];
        let next = answer(&mut cache, handle, way).or_else(|| frame.take());
        let next = next.unwrap_or_else(|| FrameBuf::from_vec(Vec::new(), 0));
        let attached = cache.receive(Time::ZERO, next).expect("room");
        handles[place] = attached.handle;
        frame = attached.evicted;
    }
    let nanos = start.elapsed().as_nanos() as f64;
    let answered = cache.counters().hits + cache.counters().released;
    assert_eq!(answered, PACKETS as u64, "every answer is accepted");
    nanos / PACKETS as f64
}

fn answer(cache: &mut PayloadCache<FrameBuf>, handle: Handle, way: Way) -> Option<FrameBuf> {
    match way {
        Way::Send | Way::SendReordered => cache.send(handle, 64).ok(),
        Way::Release => cache.release(handle).ok(),
        Way::Keep => {
            black_box(cache.send_kept(handle, 64).is_ok());
            None
        }
        Way::Steps => {
            black_box(cache.begin_send(handle, 64, OnSent::Free).is_ok());
            cache.end_send(handle).ok().flatten()
        }
        Way::Forged => {
            black_box(cache.send(Handle::from_raw(handle.raw() ^ 1 << 40), 64).is_err());
            cache.send(handle, 64).ok()
        }
    }
}
