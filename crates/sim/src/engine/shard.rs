//! A shard: the stations that one thread runs, and their events.
//!
//! A shard repeatedly takes its earliest event and delivers it to its station (`adapter.rs`).

use crate::engine::event::{Common, Event};
use crate::engine::prefetch;
use crate::engine::station::Station;
use axon_wire::Time;

/// Number of stations in a shard from which event data is prefetched.
const LARGE: usize = 256;

/// Stations and their events.
pub(crate) struct Shard {
    pub(crate) stations: Vec<Station>,
    pub(crate) events: u64,
    pub(crate) common: Common,
}

impl Shard {
    pub(crate) fn new(number: u32, written: bool) -> Shard {
        let common = Common::new(number, written);
        Shard { stations: Vec::new(), events: 0, common }
    }

    /// Adds a station in the next slot.
    pub(crate) fn add(&mut self, station: Station) {
        self.stations.push(station);
    }

    #[inline]
    fn is_large(&self) -> bool {
        self.stations.len() >= LARGE
    }

    /// Handles the earliest event, if it is due at or before `limit`.
    #[inline]
    pub(crate) fn step(&mut self, limit: Time) -> bool {
        if self.is_large() && self.common.queue.begin(limit) {
            prefetch::read(&self.common.queue, &self.stations);
        }
        let Some((key, event)) = self.common.queue.pop_until(limit) else {
            return false;
        };
        self.common.now = key.time;
        self.handle(event);
        true
    }

    /// Handles an event now.
    #[inline]
    pub(crate) fn handle(&mut self, event: Event) {
        self.events += 1;
        self.common.slot = event.station;
        self.stations[event.station as usize].handle(event.kind, &mut self.common);
    }

    /// Returns the station in a slot and the state needed to call it.
    pub(crate) fn call(&mut self, slot: u32) -> (&mut Station, &mut Common) {
        self.common.slot = slot;
        (&mut self.stations[slot as usize], &mut self.common)
    }
}
