//! A part of the world that one thread runs: stations, and the events that are for them.
//!
//! In plain English: take the earliest event, hand it to the station it is for
//! (`adapter.rs`), repeat.

use crate::engine::prefetch;
use crate::engine::queue::{Key, Queue};
use crate::engine::station::Station;
use crate::engine::trace::Line;
use axon_plane::{Action, Note};
use axon_wire::{FrameBuf, PortNo, Time};

/// Stations of a shard above which what an event needs is fetched in advance.
const LARGE: usize = 256;

/// Something to come for the station in slot `station` of its shard.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) station: u32,
    pub(crate) kind: Kind,
}

/// What it is.
#[derive(Debug)]
pub(crate) enum Kind {
    /// A frame comes in by `port`, if the carrier there is still this one.
    Arrive { port: PortNo, intact: bool, carrier: u32, complete_at: Time, frame: FrameBuf },
    /// A wire that the station waits for is free.
    TxDone,
    /// It wanted to be called, if it is still armed for this instant.
    Wake,
}

/// Something for another shard.
pub(crate) type Parcel = (Key, Event);

/// What the stations of a shard have in common.
pub(crate) struct Common {
    /// Of the shard.
    pub(crate) number: u32,
    /// The slot of the station that is being called.
    pub(crate) slot: u32,
    pub(crate) now: Time,
    pub(crate) packet_hops: u64,
    /// Lines of text are wanted.
    pub(crate) written: bool,
    /// Some stations have [`Taps`](crate::world::capture::Taps).
    pub(crate) watched: bool,
    /// Every `TxDone` is an event: for tests, which must not see a difference.
    pub(crate) eager: bool,
    /// What the node that is being called asks for.
    pub(crate) out: Vec<Action<FrameBuf>>,
    pub(crate) queue: Queue<Event>,
    /// For the other shards, by number.
    pub(crate) outbox: Vec<Vec<Parcel>>,
    pub(crate) notes: Vec<(Time, u32, Note)>,
    pub(crate) lines: Vec<Line>,
}

/// Stations and their events.
pub(crate) struct Shard {
    pub(crate) stations: Vec<Station>,
    pub(crate) events: u64,
    pub(crate) common: Common,
}

impl Shard {
    pub(crate) fn new(number: u32, written: bool) -> Shard {
        let common = Common {
            number,
            slot: 0,
            now: Time::ZERO,
            packet_hops: 0,
            written,
            watched: false,
            eager: false,
            out: Vec::new(),
            queue: Queue::default(),
            outbox: Vec::new(),
            notes: Vec::new(),
            lines: Vec::new(),
        };
        Shard { stations: Vec::new(), events: 0, common }
    }

    /// Handles the earliest event, if it is due at or before `limit`.
    #[inline]
    pub(crate) fn step(&mut self, limit: Time) -> bool {
        if self.stations.len() >= LARGE && self.common.queue.begin(limit) {
            prefetch::read(self.common.queue.begun(), &self.stations);
        }
        let Some((key, event)) = self.common.queue.pop_until(limit) else {
            return false;
        };
        self.common.now = key.time;
        self.meet(event);
        true
    }

    /// Handles an event now.
    #[inline]
    pub(crate) fn meet(&mut self, event: Event) {
        self.events += 1;
        self.common.slot = event.station;
        self.stations[event.station as usize].meet(event.kind, &mut self.common);
    }

    /// The station in a slot, and what it needs to be called.
    pub(crate) fn call(&mut self, slot: u32) -> (&mut Station, &mut Common) {
        self.common.slot = slot;
        (&mut self.stations[slot as usize], &mut self.common)
    }
}
