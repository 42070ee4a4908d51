//! What must hold of every payload, whatever the states of buffers are.
//!
//! This knows nothing of buffers: only which payload entered for which agent under which handle,
//! and how it left. It holds that none is sent stale, twice, to another agent, or is lost.

use std::collections::HashSet;

/// What became of one payload.
#[derive(Clone, Copy, Debug)]
struct Fate {
    agent: usize,
    handle: Option<u64>,
    /// How often it was sent.
    sent: u32,
    /// It was sent for the last time.
    spent: bool,
    /// It came out of the cache.
    out: bool,
}

/// The payloads of a run, by number.
#[derive(Default)]
pub struct Fates {
    all: Vec<Fate>,
    handles: HashSet<u64>,
}

impl Fates {
    /// The number of a new payload for `agent`.
    pub fn enter(&mut self, agent: usize) -> usize {
        self.all.push(Fate { agent, handle: None, sent: 0, spent: false, out: false });
        self.all.len() - 1
    }

    /// A cache gave out this handle. It must be new, for whichever agent.
    pub fn give_out(&mut self, handle: u64) {
        assert!(self.handles.insert(handle), "handle {handle:#x} was given out before");
    }

    /// A payload is bound to a handle.
    pub fn bind(&mut self, number: usize, handle: u64) {
        let fate = &mut self.all[number];
        assert_eq!(fate.handle.replace(handle), None, "payload {number} got another handle");
    }

    /// A payload is sent because `agent` presented `handle`.
    pub fn send(&mut self, number: usize, agent: usize, handle: u64, for_good: bool) {
        let fate = &mut self.all[number];
        assert_eq!(fate.agent, agent, "payload {number} sent for another agent");
        assert_eq!(fate.handle, Some(handle), "payload {number} sent stale, by another handle");
        assert!(!fate.spent, "payload {number} sent twice");
        assert!(!fate.out, "payload {number} sent after it was given back");
        fate.sent += 1;
        fate.spent = for_good;
    }

    /// A payload comes out after it was sent for good.
    pub fn end(&mut self, number: usize, agent: usize) {
        assert!(self.all[number].spent, "payload {number} was not sent for good");
        self.come_out(number, agent);
    }

    /// A payload comes out, to make room for another one: it must have been sent before.
    pub fn evict(&mut self, number: usize, agent: usize) {
        assert!(self.all[number].sent > 0, "payload {number} evicted unread");
        self.come_out(number, agent);
    }

    /// A payload comes out: released, expired, replaced, reset, or not taken at all.
    pub fn come_out(&mut self, number: usize, agent: usize) {
        let fate = &mut self.all[number];
        assert_eq!(fate.agent, agent, "payload {number} came out of the cache of another agent");
        assert!(!fate.out, "payload {number} came out twice");
        fate.out = true;
    }

    /// Nothing is in any cache any more.
    pub fn finish(&self) {
        let lost = self.all.iter().position(|fate| !fate.out);
        assert_eq!(lost, None, "a payload is lost: {:?}", lost.map(|number| self.all[number]));
    }
}
