//! The payload buffers and the rings of the NIC, as counts.
//!
//! This is the place of the payload cache. Here it is counted only: in the order of the forwarder,
//! first in, first out, with back-pressure before anything unread would be evicted, a cached
//! payload is always found, so that a count is all that timing depends on.

use super::events::{Picos, micros};

/// Buffers and ring entries.
#[derive(Debug)]
pub(super) struct Buffers {
    all: u32,
    free: u32,
    /// Free entries of the receive ring and of the send ring.
    receive: u32,
    send: u32,
    /// The most buffers that were held at once.
    most: u32,
    /// Buffers held by microseconds.
    area: f64,
    at: Picos,
}

impl Buffers {
    /// `all` buffers, and `entries` in each ring.
    pub(super) fn new(all: u32, entries: u32) -> Buffers {
        Buffers { all, free: all, receive: entries, send: entries, most: 0, area: 0.0, at: 0 }
    }

    /// Takes a receive ring entry and `pages` buffers for a packet from the link. False, and
    /// nothing is taken, if there are not enough.
    pub(super) fn receive(&mut self, now: Picos, pages: u32) -> bool {
        let has = self.receive > 0 && self.hold(now, pages);
        self.receive -= u32::from(has);
        has
    }

    /// Takes `pages` buffers for a packet from the host, as [`Buffers::receive`].
    pub(super) fn fetch(&mut self, now: Picos, pages: u32) -> bool {
        self.hold(now, pages)
    }

    /// Takes a send ring entry. False if there is none.
    pub(super) fn post(&mut self) -> bool {
        let has = self.send > 0;
        self.send -= u32::from(has);
        has
    }

    /// The host has read a packet: its receive ring entry is free.
    pub(super) fn read(&mut self) {
        self.receive += 1;
    }

    /// A packet is on the link: its send ring entry is free.
    pub(super) fn sent(&mut self) {
        self.send += 1;
    }

    /// `pages` buffers are free again.
    pub(super) fn release(&mut self, now: Picos, pages: u32) {
        self.account(now);
        self.free += pages;
        debug_assert!(self.free <= self.all, "a buffer is free twice");
    }

    /// The most buffers that were held at once since the last call.
    pub(super) fn take_most(&mut self) -> u32 {
        std::mem::replace(&mut self.most, self.all - self.free)
    }

    /// Buffers held by microseconds, until `now`.
    pub(super) fn area(&mut self, now: Picos) -> f64 {
        self.account(now);
        self.area
    }

    fn hold(&mut self, now: Picos, pages: u32) -> bool {
        if self.free < pages {
            return false;
        }
        self.account(now);
        self.free -= pages;
        self.most = self.most.max(self.all - self.free);
        true
    }

    fn account(&mut self, now: Picos) {
        self.area += f64::from(self.all - self.free) * micros(now - self.at);
        self.at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_enough_buffers_or_an_entry_nothing_is_taken() {
        let mut buffers = Buffers::new(4, 2);
        assert!(buffers.receive(0, 3));
        assert!(!buffers.receive(0, 2));
        assert!(buffers.receive(0, 1));
        buffers.release(1_000_000, 4);
        // Both entries are taken.
        assert!(!buffers.receive(1_000_000, 1));
        buffers.read();
        assert!(buffers.receive(1_000_000, 1));
        assert_eq!(buffers.area(3_000_000), 4.0 + 2.0);
        assert_eq!((buffers.take_most(), buffers.take_most()), (4, 1));
        assert!(buffers.post() && buffers.post() && !buffers.post());
        buffers.sent();
        assert!(buffers.post());
    }
}
