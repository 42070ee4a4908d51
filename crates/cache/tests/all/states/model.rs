//! Plain, slow model of a cache, written from the documentation. It searches linearly and stores
//! each fact separately. It has no pending count, no generations, no set of free buffers and no
//! queue.

use axon_cache::{CacheConfig, CacheCounters, HandleFault, OnSent, Side, State};
use axon_wire::{Span, Time};
use std::collections::{HashSet, VecDeque};

/// Number of a payload, and its length in bytes.
pub type Stored = (usize, usize);

/// Current or last contents of a buffer.
#[derive(Clone, Copy, Default)]
struct Entry {
    handle: Option<u64>,
    payload: Option<Stored>,
    /// Number of buffers that were given away before this one.
    order: u64,
    since: Time,
    /// True while the payload is arriving.
    comes: bool,
    /// True until the head has been sent to the agent.
    goes: bool,
    /// Number of transmissions in progress.
    sending: u32,
    /// True until the agent has answered.
    unanswered: bool,
    /// True if the payload leaves once its transfers have ended.
    leaves: bool,
    /// True if the agent brought the payload and it has not been sent yet.
    own: bool,
}

impl Entry {
    fn moves(&self) -> bool {
        self.comes || self.goes || self.sending > 0
    }

    fn in_use(&self) -> bool {
        self.moves() || self.unanswered
    }

    /// Empties the buffer. The handle remains, and is recognised as an old one.
    fn empty(&mut self) -> Option<Stored> {
        let was = std::mem::replace(self, Entry { handle: self.handle, ..Entry::default() });
        was.payload
    }

    fn settle(&mut self) -> Option<Stored> {
        if self.leaves && !self.moves() { self.empty() } else { None }
    }
}

/// Model of one agent's cache.
pub struct Model {
    /// Buffers in ring order, starting at the position of the next search.
    receive: VecDeque<Entry>,
    send: VecDeque<Entry>,
    issued: HashSet<u64>,
    head_bytes: usize,
    hold_max: Option<Span>,
    given: u64,
    /// Number of times that a buffer was given away while others before it on the ring were in use.
    pub passed: u64,
    pub counters: CacheCounters,
}

impl Model {
    pub fn new(config: CacheConfig) -> Model {
        Model {
            receive: vec![Entry::default(); config.buffers].into(),
            send: vec![Entry::default(); config.send_buffers].into(),
            issued: HashSet::new(),
            head_bytes: config.head_bytes,
            hold_max: config.hold_max,
            given: 0,
            passed: 0,
            counters: CacheCounters::default(),
        }
    }

    fn part(&mut self, side: Side) -> &mut VecDeque<Entry> {
        match side {
            Side::Receive => &mut self.receive,
            Side::Send => &mut self.send,
        }
    }

    pub fn room(&self) -> usize {
        self.receive.iter().filter(|entry| !entry.in_use()).count()
    }

    pub fn send_room(&self) -> usize {
        self.send.iter().filter(|entry| !entry.in_use()).count()
    }

    pub fn in_use(&self) -> usize {
        self.receive.iter().filter(|entry| entry.in_use()).count()
    }

    pub fn send_in_use(&self) -> usize {
        self.send.iter().filter(|entry| entry.in_use()).count()
    }

    /// Number of buffers that are not free.
    pub fn taken(&self) -> usize {
        let all = self.receive.iter().chain(&self.send);
        all.filter(|entry| entry.payload.is_some() || entry.moves()).count()
    }

    /// Finds the entry for a handle.
    fn find(&mut self, handle: u64) -> Result<&mut Entry, HandleFault> {
        let known = self.issued.contains(&handle);
        let mut all = self.receive.iter_mut().chain(&mut self.send);
        let other = if known { HandleFault::Reallocated } else { HandleFault::Forged };
        all.find(|entry| entry.handle == Some(handle)).ok_or(other)
    }

    pub fn state(&mut self, handle: u64) -> Result<State, HandleFault> {
        let entry = self.find(handle)?;
        Ok(match (entry.payload.is_some(), entry.moves()) {
            (false, false) => State::Free,
            (false, true) => State::Fill,
            (true, false) => State::Valid,
            (true, true) => State::Drain,
        })
    }

    /// Finds the entry for a handle that the agent presents, and its payload.
    fn asked(&mut self, handle: u64, send: bool) -> Result<(&mut Entry, Stored), HandleFault> {
        let fault = match self.find(handle) {
            Err(fault) => fault,
            Ok(entry) if entry.leaves => HandleFault::Gone,
            Ok(Entry { payload: Some(_), .. }) => {
                let entry = self.find(handle)?;
                let stored = entry.payload.ok_or(HandleFault::Gone)?;
                return Ok((entry, stored));
            }
            Ok(entry) if entry.comes => HandleFault::InTransfer,
            Ok(_) => HandleFault::Gone,
        };
        match fault {
            HandleFault::Reallocated if send => self.counters.misses += 1,
            HandleFault::Forged => self.counters.forged += 1,
            HandleFault::InTransfer => self.counters.in_transfer += 1,
            _ => self.counters.stale += 1,
        }
        Err(fault)
    }

    /// Finds the payload of a handle that the agent presents. It must have no pending transfers.
    fn asked_at_rest(&mut self, handle: u64, send: bool) -> Result<Stored, HandleFault> {
        let (entry, stored) = self.asked(handle, send)?;
        if entry.moves() {
            self.counters.in_transfer += 1;
            return Err(HandleFault::InTransfer);
        }
        Ok(stored)
    }

    /// Gives the next buffer to the payload whose handle [`name`](Model::name) records later.
    /// Returns the evicted payload, if any, or `None` if there is no room.
    fn attach(&mut self, side: Side, entry: Entry) -> Option<Option<Stored>> {
        let part = self.part(side);
        let Some(at) = part.iter().position(|entry| !entry.in_use()) else {
            match side {
                Side::Receive => self.counters.full += 1,
                Side::Send => self.counters.send_full += 1,
            }
            return None;
        };
        // The buffers before it are skipped and become the last ones on the ring.
        part.rotate_left(at);
        let next = part.pop_front().unwrap_or_default();
        self.passed += u64::from(at > 0);
        self.given += 1;
        let order = self.given;
        self.part(side).push_back(Entry { order, ..entry });
        match side {
            Side::Receive => self.counters.received += 1,
            Side::Send => self.counters.brought += 1,
        }
        self.counters.evicted += u64::from(next.payload.is_some());
        self.watch();
        Some(next.payload)
    }

    /// Records the maximum number of buffers in use.
    fn watch(&mut self) {
        let (in_use, send_in_use) = (self.in_use() as u64, self.send_in_use() as u64);
        self.counters.in_use_max = self.counters.in_use_max.max(in_use);
        self.counters.send_in_use_max = self.counters.send_in_use_max.max(send_in_use);
    }

    /// Records the handle that the cache issued for the payload attached last.
    pub fn name(&mut self, side: Side, handle: u64) {
        self.issued.insert(handle);
        if let Some(entry) = self.part(side).back_mut() {
            entry.handle = Some(handle);
        }
    }

    pub fn receive(&mut self, now: Time, stored: Stored) -> Option<Option<Stored>> {
        let payload = Some(stored);
        let entry = Entry { payload, since: now, unanswered: true, ..Entry::default() };
        let evicted = self.attach(Side::Receive, entry)?;
        self.counters.copied_to_agent_bytes += stored.1.min(self.head_bytes) as u64;
        Some(evicted)
    }

    pub fn bring(&mut self, now: Time, stored: Stored) -> Option<Option<Stored>> {
        let payload = Some(stored);
        let entry = Entry { payload, since: now, unanswered: true, own: true, ..Entry::default() };
        let evicted = self.attach(Side::Send, entry)?;
        self.counters.copied_from_agent_bytes += stored.1 as u64;
        Some(evicted)
    }

    pub fn begin_receive(&mut self, now: Time) -> Option<Option<Stored>> {
        let (since, comes, goes, unanswered) = (now, true, true, true);
        self.attach(Side::Receive, Entry { since, comes, goes, unanswered, ..Entry::default() })
    }

    pub fn begin_own(&mut self, now: Time, on_sent: OnSent) -> Option<Option<Stored>> {
        let leaves = on_sent == OnSent::Free;
        let entry = Entry { since: now, comes: true, leaves, ..Entry::default() };
        let evicted = self.attach(Side::Send, entry)?;
        self.counters.own += 1;
        Some(evicted)
    }

    pub fn filled(&mut self, handle: u64, stored: Stored) -> Result<(), HandleFault> {
        let entry = self.find(handle)?;
        if !entry.comes {
            return Err(HandleFault::NoTransfer);
        }
        (entry.comes, entry.payload) = (false, Some(stored));
        if !entry.goes {
            entry.sending = 1;
            self.counters.copied_from_agent_bytes += stored.1 as u64;
        }
        Ok(())
    }

    /// If the payload of a handle is in transmission without a request for it, returns whether that
    /// is its last transmission. Otherwise, returns `None`.
    pub fn counts_as_sent(&mut self, handle: u64) -> Option<bool> {
        let entry = self.find(handle).ok()?;
        (entry.sending == 1 && !entry.goes).then_some(entry.leaves)
    }

    pub fn delivered(&mut self, handle: u64) -> Result<Option<Stored>, HandleFault> {
        let head_bytes = self.head_bytes;
        let entry = self.find(handle)?;
        let Some(stored) = entry.payload.filter(|_| entry.goes) else {
            return Err(HandleFault::NoTransfer);
        };
        entry.goes = false;
        let out = entry.settle();
        self.counters.copied_to_agent_bytes += stored.1.min(head_bytes) as u64;
        self.counters.sent_for_good += u64::from(out.is_some());
        Ok(out)
    }

    /// Counts an accepted transmission.
    fn count(&mut self, handle: u64, stored: Stored, head_bytes: usize) {
        let own = self.find(handle).is_ok_and(|entry| std::mem::take(&mut entry.own));
        self.counters.copied_from_agent_bytes += head_bytes as u64;
        if own {
            self.counters.own += 1;
        } else {
            self.counters.hits += 1;
            self.counters.saved_bytes += stored.1.saturating_sub(self.head_bytes) as u64;
        }
    }

    pub fn send(&mut self, handle: u64, head_bytes: usize) -> Result<Stored, HandleFault> {
        let stored = self.asked_at_rest(handle, true)?;
        self.count(handle, stored, head_bytes);
        self.counters.sent_for_good += 1;
        self.find(handle)?.empty();
        Ok(stored)
    }

    pub fn send_kept(&mut self, handle: u64, head_bytes: usize) -> Result<Stored, HandleFault> {
        let (entry, stored) = self.asked(handle, true)?;
        entry.unanswered = false;
        self.count(handle, stored, head_bytes);
        Ok(stored)
    }

    pub fn begin_send(
        &mut self,
        handle: u64,
        head_bytes: usize,
        on_sent: OnSent,
    ) -> Result<Stored, HandleFault> {
        let (entry, stored) = self.asked(handle, true)?;
        let pending = entry.sending + u32::from(entry.goes);
        if pending == 255 {
            self.counters.in_transfer += 1;
            return Err(HandleFault::InTransfer);
        }
        entry.sending += 1;
        entry.unanswered = false;
        entry.leaves = on_sent == OnSent::Free;
        self.watch();
        self.count(handle, stored, head_bytes);
        Ok(stored)
    }

    pub fn end_send(&mut self, handle: u64) -> Result<Option<Stored>, HandleFault> {
        let entry = self.find(handle)?;
        if entry.sending == 0 {
            return Err(HandleFault::NoTransfer);
        }
        entry.sending -= 1;
        let out = entry.settle();
        self.counters.sent_for_good += u64::from(out.is_some());
        Ok(out)
    }

    pub fn release(&mut self, handle: u64) -> Result<Stored, HandleFault> {
        let stored = self.asked_at_rest(handle, false)?;
        self.find(handle)?.empty();
        self.counters.released += 1;
        Ok(stored)
    }

    /// Returns the payload if it contains the range, otherwise the length of the payload.
    pub fn fetch(
        &mut self,
        handle: u64,
        start: usize,
        end: usize,
    ) -> Result<Result<Stored, usize>, HandleFault> {
        let (_, stored) = self.asked(handle, false)?;
        if start > end || end > stored.1 {
            return Ok(Err(stored.1));
        }
        self.counters.copied_to_agent_bytes += (end - start) as u64;
        Ok(Ok(stored))
    }

    /// Returns the old payload and the evicted one. The inner error means that there is no room.
    #[allow(clippy::type_complexity)]
    pub fn replace(
        &mut self,
        now: Time,
        handle: u64,
        stored: Stored,
    ) -> Result<Option<(Stored, Option<Stored>)>, HandleFault> {
        let old = self.asked_at_rest(handle, false)?;
        if self.send_room() == 0 {
            self.counters.send_full += 1;
            return Ok(None);
        }
        self.find(handle)?.empty();
        self.counters.replaced += 1;
        Ok(self.bring(now, stored).map(|evicted| (old, evicted)))
    }

    /// Returns the oldest unanswered entry and the time at which it expires, if the entry has no
    /// pending transfers.
    fn due(&self, side: Side) -> Option<(u64, Time)> {
        let part = if side == Side::Receive { &self.receive } else { &self.send };
        let held = part.iter().filter(|entry| entry.unanswered);
        let oldest = held.min_by_key(|entry| entry.order).filter(|entry| !entry.moves())?;
        Some((oldest.handle?, oldest.since + self.hold_max?))
    }

    pub fn next_expiry(&self) -> Option<Time> {
        let due = [self.due(Side::Receive), self.due(Side::Send)];
        due.into_iter().flatten().map(|(_, at)| at).min()
    }

    pub fn expire(&mut self, now: Time) -> Option<(u64, Option<Stored>)> {
        let due = [self.due(Side::Receive), self.due(Side::Send)];
        let (handle, _) = due.into_iter().flatten().find(|(_, at)| *at <= now)?;
        self.counters.expired += 1;
        let out = self.find(handle).ok()?.empty();
        Some((handle, out))
    }

    /// Resets the cache. Returns all payloads, and the number of buffers that were in use.
    pub fn reset(&mut self) -> (Vec<usize>, usize) {
        let lost = self.in_use() + self.send_in_use();
        self.counters.reset += self.taken() as u64;
        let all = self.receive.iter_mut().chain(&mut self.send);
        (all.filter_map(Entry::empty).map(|(number, _)| number).collect(), lost)
    }
}
