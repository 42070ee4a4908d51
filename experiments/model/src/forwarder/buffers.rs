//! Payload buffers and rings of the NIC.
//!
//! The buffers are those of `axon_cache`, one for each page of a packet, with the states and the
//! circular allocation of the paper (003 §3). The rings are only counted. Without payload caching,
//! the same buffers hold a packet on its way to the host, and then again on its way back.

use super::events::{Picos, micros};
use crate::hardware::{PACKET_BYTES, PAGE_BYTES, pages};
use axon_cache::{CacheConfig, Handle, OnSent, PayloadCache};
use axon_wire::Time;

/// Number of pages in the largest packet.
const PAGES_MAX: usize = PACKET_BYTES.end().div_ceil(PAGE_BYTES) as usize;

/// Content of every page, which is never read.
static CONTENT: [u8; PAGE_BYTES as usize] = [0; PAGE_BYTES as usize];

/// Page of a packet, with its length in bytes.
#[derive(Debug)]
struct Page(usize);

impl AsRef<[u8]> for Page {
    fn as_ref(&self) -> &[u8] {
        &CONTENT[..self.0]
    }
}

/// Buffers of one packet, page by page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    handles: [Handle; PAGES_MAX],
    count: usize,
}

impl Held {
    /// Value for a packet without buffers.
    pub(super) const NONE: Held = Held { handles: [Handle::NONE; PAGES_MAX], count: 0 };

    fn handles(&self) -> &[Handle] {
        &self.handles[..self.count]
    }
}

/// Buffers and ring entries.
#[derive(Debug)]
pub(super) struct Buffers {
    cache: PayloadCache<Page>,
    /// Free entries of the receive ring and of the send ring.
    receive: u32,
    send: u32,
    /// Maximum number of buffers that were held at once.
    most: u32,
    /// Integral over time of the number of buffers held, in microseconds.
    area: f64,
    at: Picos,
}

/// The handle of a packet inside is valid, because nothing is overwritten before it is sent.
const KEPT: &str = "back-pressure keeps every payload until it is sent";

impl Buffers {
    /// Creates `all` buffers, and two rings with `entries` entries each.
    pub(super) fn new(all: u32, entries: u32) -> Buffers {
        let buffers = all as usize;
        // The host gets whole packets, and it has no payloads of its own.
        let config =
            CacheConfig { buffers, send_buffers: 1, head_bytes: usize::MAX, ..Default::default() };
        let cache = PayloadCache::new(config).expect("no NIC has so many buffers");
        Buffers { cache, receive: entries, send: entries, most: 0, area: 0.0, at: 0 }
    }

    /// Takes a receive ring entry and buffers for a packet of `bytes` bytes from the link. If there
    /// are not enough, takes nothing and returns `None`.
    pub(super) fn receive(&mut self, now: Picos, bytes: u64) -> Option<Held> {
        let held = if self.receive > 0 { self.hold(now, bytes) } else { None };
        self.receive -= u32::from(held.is_some());
        held
    }

    /// Takes buffers for a packet from the host, in the same way as [`Buffers::receive`].
    pub(super) fn fetch(&mut self, now: Picos, bytes: u64) -> Option<Held> {
        self.hold(now, bytes)
    }

    /// Marks the buffers of a packet of `bytes` bytes as filled.
    pub(super) fn filled(&mut self, held: &Held, bytes: u64) {
        let mut left = bytes as usize;
        for &handle in held.handles() {
            let page = Page(left.min(CONTENT.len()));
            left -= page.0;
            self.cache.filled(handle, page).expect(KEPT);
        }
    }

    /// Records that a packet was delivered from its buffers. It was delivered to the host, or
    /// within the NIC if it came from the host. The buffers keep the packet.
    pub(super) fn delivered(&mut self, held: &Held) {
        for &handle in held.handles() {
            self.cache.delivered(handle).expect(KEPT);
        }
    }

    /// Takes a send ring entry. Returns false if there is none.
    pub(super) fn post(&mut self) -> bool {
        let has = self.send > 0;
        self.send -= u32::from(has);
        has
    }

    /// Frees the receive ring entry of a packet that the host has read.
    pub(super) fn read(&mut self) {
        self.receive += 1;
    }

    /// Begins the transmission of a packet from its buffers.
    pub(super) fn begin_send(&mut self, held: &Held) {
        for &handle in held.handles() {
            self.cache.begin_send(handle, 0, OnSent::Free).expect(KEPT);
        }
    }

    /// Frees the buffers and the send ring entry of a packet that was transmitted.
    pub(super) fn sent(&mut self, now: Picos, held: &Held) {
        self.account(now);
        for &handle in held.handles() {
            self.cache.end_send(handle).expect(KEPT);
        }
        self.send += 1;
    }

    /// Frees the buffers of a packet that was not sent.
    pub(super) fn release(&mut self, now: Picos, held: &Held) {
        self.account(now);
        for &handle in held.handles() {
            self.cache.release(handle).expect(KEPT);
        }
    }

    /// Returns the maximum number of buffers that were held at once since the last call.
    pub(super) fn take_most(&mut self) -> u32 {
        let in_use = self.in_use();
        std::mem::replace(&mut self.most, in_use)
    }

    /// Returns the integral of the number of buffers held until `now`, in microseconds.
    pub(super) fn area(&mut self, now: Picos) -> f64 {
        self.account(now);
        self.area
    }

    fn in_use(&self) -> u32 {
        self.cache.in_use() as u32
    }

    fn hold(&mut self, now: Picos, bytes: u64) -> Option<Held> {
        let count = pages(bytes) as usize;
        if self.cache.room() < count {
            return None;
        }
        self.account(now);
        let mut held = Held { count, ..Held::NONE };
        for handle in &mut held.handles[..count] {
            // A tick is 10 ps. Nothing expires in this model.
            let attached = self.cache.begin_receive(Time::from_ticks(now / 10));
            *handle = attached.expect("there is room").handle;
        }
        self.most = self.most.max(self.in_use());
        Some(held)
    }

    fn account(&mut self, now: Picos) {
        self.area += f64::from(self.in_use()) * micros(now - self.at);
        self.at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_the_host(buffers: &mut Buffers, now: Picos, bytes: u64) -> Option<Held> {
        let held = buffers.receive(now, bytes)?;
        buffers.filled(&held, bytes);
        buffers.delivered(&held);
        Some(held)
    }

    fn numbers(held: &Held) -> Vec<usize> {
        held.handles().iter().map(|handle| handle.number()).collect()
    }

    #[test]
    fn without_enough_buffers_or_an_entry_nothing_is_taken() {
        let mut buffers = Buffers::new(4, 2);
        let three = at_the_host(&mut buffers, 0, 2 * PAGE_BYTES + 1).unwrap();
        assert_eq!(buffers.receive(0, PAGE_BYTES + 1), None);
        let one = at_the_host(&mut buffers, 0, 64).unwrap();
        buffers.release(1_000_000, &three);
        buffers.release(1_000_000, &one);
        // Both entries are taken.
        assert_eq!(buffers.receive(1_000_000, 64), None);
        buffers.read();
        assert!(buffers.receive(1_000_000, 64).is_some());
        assert_eq!(buffers.area(3_000_000), 4.0 + 2.0);
        assert_eq!((buffers.take_most(), buffers.take_most()), (4, 1));
        assert!(buffers.post() && buffers.post() && !buffers.post());
        buffers.sent(3_000_000, &Held::NONE);
        assert!(buffers.post());
    }

    #[test]
    fn the_next_buffer_is_the_next_one_on_the_ring_that_is_not_in_use() {
        let mut buffers = Buffers::new(4, 64);
        let first = at_the_host(&mut buffers, 0, 2 * PAGE_BYTES).unwrap();
        let second = at_the_host(&mut buffers, 0, PAGE_BYTES).unwrap();
        assert_eq!((numbers(&first), numbers(&second)), (vec![0, 1], vec![2]));
        buffers.begin_send(&first);
        assert_eq!(buffers.receive(0, 2 * PAGE_BYTES), None, "it is on its way to the link");
        buffers.sent(0, &first);
        let third = at_the_host(&mut buffers, 0, 3 * PAGE_BYTES).unwrap();
        assert_eq!(numbers(&third), [3, 0, 1], "past the one that is held");
        assert_eq!(buffers.cache.counters().hits, 2);
    }
}
