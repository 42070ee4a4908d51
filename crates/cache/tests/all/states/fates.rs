//! Checks invariants of every payload, independent of the states of buffers.
//!
//! The checker records only the agent and the handle for which each payload entered, and how the
//! payload left. It asserts that no payload is sent stale, sent twice, sent to another agent, or
//! lost.

use std::collections::HashSet;

/// Fate of one payload.
#[derive(Clone, Copy, Debug)]
struct Fate {
    agent: usize,
    handle: Option<u64>,
    /// Number of times that the payload was sent.
    sent: u32,
    /// True after the last transmission of the payload.
    spent: bool,
    /// True once the payload has left the cache.
    out: bool,
}

/// Payloads of a run, by number.
#[derive(Default)]
pub struct Fates {
    all: Vec<Fate>,
    handles: HashSet<u64>,
}

impl Fates {
    /// Enters a new payload for `agent`. Returns the number of the payload.
    pub fn enter(&mut self, agent: usize) -> usize {
        self.all.push(Fate { agent, handle: None, sent: 0, spent: false, out: false });
        self.all.len() - 1
    }

    /// Records a handle that a cache gave out. It must be new for all agents.
    pub fn give_out(&mut self, handle: u64) {
        assert!(self.handles.insert(handle), "handle {handle:#x} was given out before");
    }

    /// Binds a payload to a handle.
    pub fn bind(&mut self, number: usize, handle: u64) {
        let fate = &mut self.all[number];
        assert_eq!(fate.handle.replace(handle), None, "payload {number} got another handle");
    }

    /// Records that a payload is sent because `agent` presented `handle`.
    pub fn send(&mut self, number: usize, agent: usize, handle: u64, for_good: bool) {
        let fate = &mut self.all[number];
        assert_eq!(fate.agent, agent, "payload {number} sent for another agent");
        assert_eq!(fate.handle, Some(handle), "payload {number} sent stale, by another handle");
        assert!(!fate.spent, "payload {number} sent twice");
        assert!(!fate.out, "payload {number} sent after it was given back");
        fate.sent += 1;
        fate.spent = for_good;
    }

    /// Records that a payload leaves the cache after its last transmission.
    pub fn end(&mut self, number: usize, agent: usize) {
        assert!(self.all[number].spent, "payload {number} was not sent for good");
        self.come_out(number, agent);
    }

    /// Records that a payload is evicted to make room for another. It must have been sent before.
    pub fn evict(&mut self, number: usize, agent: usize) {
        assert!(self.all[number].sent > 0, "payload {number} evicted unread");
        self.come_out(number, agent);
    }

    /// Records that a payload leaves the cache because it was released, expired, replaced, reset,
    /// or not accepted.
    pub fn come_out(&mut self, number: usize, agent: usize) {
        let fate = &mut self.all[number];
        assert_eq!(fate.agent, agent, "payload {number} came out of the cache of another agent");
        assert!(!fate.out, "payload {number} came out twice");
        fate.out = true;
    }

    /// Asserts that no cache holds a payload any more.
    pub fn finish(&self) {
        let lost = self.all.iter().position(|fate| !fate.out);
        assert_eq!(lost, None, "a payload is lost: {:?}", lost.map(|number| self.all[number]));
    }
}
