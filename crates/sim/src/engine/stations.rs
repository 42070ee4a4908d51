//! The stations of an engine, in shards that may run on different threads.

use crate::engine::accounts::Accounts;
use crate::engine::event::Common;
use crate::engine::place::Place;
use crate::engine::shard::Shard;
use crate::engine::station::Station;
use crate::engine::taps::Captured;
use crate::engine::threads;
use crate::engine::trace::Line;
use crate::link::links::WireEnd;
use crate::link::port::CableEnd;
use axon_node::Note;
use axon_wire::Time;

/// Stations by number. Between runs, the clocks of all shards are equal.
pub(crate) struct Stations {
    shards: Vec<Shard>,
    /// Place of each station.
    places: Vec<Place>,
}

impl Stations {
    /// Returns no stations, in one shard. `written` is whether trace text is enabled.
    pub(crate) fn new(written: bool) -> Stations {
        Stations { shards: vec![Shard::new(0, written)], places: Vec::new() }
    }

    /// Reserves space for exactly `count` more stations.
    pub(crate) fn reserve(&mut self, count: usize) {
        self.places.reserve_exact(count);
        self.shards[0].stations.reserve_exact(count);
    }

    /// Adds a station without power and returns its number.
    pub(crate) fn add(&mut self, name: &str) -> usize {
        let number = self.places.len();
        let shard = &mut self.shards[0];
        self.places.push(Place { shard: 0, slot: shard.stations.len() as u32 });
        shard.add(Station::new(name.to_owned(), number));
        number
    }

    /// Returns the simulated time.
    pub(crate) fn now(&self) -> Time {
        self.shards[0].common.now
    }

    /// Returns the stations in the order of their numbers.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &Station> {
        self.places.iter().map(|at| &self.shards[at.shard as usize].stations[at.slot as usize])
    }

    /// Returns a station by number.
    pub(crate) fn get(&self, number: usize) -> Option<&Station> {
        let at = self.places.get(number)?;
        self.shards[at.shard as usize].stations.get(at.slot as usize)
    }

    /// Returns the place of a station.
    ///
    /// # Panics
    /// If there is no such station.
    pub(crate) fn place(&self, number: usize) -> Place {
        self.places[number]
    }

    /// Returns a station by number and the state needed to call it.
    ///
    /// # Panics
    /// If there is no such station.
    pub(crate) fn call(&mut self, number: usize) -> (&mut Station, &mut Common) {
        let Place { shard, slot } = self.places[number];
        self.shards[shard as usize].call(slot)
    }

    /// Returns the cable at a port, if one is connected.
    pub(crate) fn cable(&self, end: WireEnd) -> Option<&CableEnd> {
        self.get(end.station)?.adapter().ports().get(end.port.index())?.cable.as_ref()
    }

    /// Returns the shards.
    pub(crate) fn shards(&self) -> &[Shard] {
        &self.shards
    }

    /// Returns the shards mutably, to run them.
    pub(crate) fn shards_mut(&mut self) -> &mut [Shard] {
        &mut self.shards
    }

    /// Returns the number of events handled.
    pub(crate) fn events(&self) -> u64 {
        self.shards.iter().map(|shard| shard.events).sum()
    }

    /// Returns the number of events of each station.
    pub(crate) fn events_by_station(&self) -> Vec<u64> {
        self.iter().map(|station| station.adapter().trace().events()).collect()
    }

    /// Returns the total counters of all stations, over all their incarnations.
    pub(crate) fn accounts(&self) -> Accounts {
        let mut sum = Accounts::default();
        self.iter().for_each(|station| sum.add(&station.accounts()));
        sum
    }

    /// Enables trace text.
    pub(crate) fn write_lines(&mut self) {
        self.shards.iter_mut().for_each(|shard| shard.common.written = true);
    }

    /// Takes the lines of trace text, in no particular order.
    pub(crate) fn take_lines(&mut self) -> Vec<Line> {
        self.shards.iter_mut().flat_map(|shard| std::mem::take(&mut shard.common.lines)).collect()
    }

    /// Sets the clocks of all shards. Returns the notes of the stations as time, station and note,
    /// ordered by time and station.
    pub(crate) fn settle(&mut self, now: Time) -> Vec<(Time, usize, Note)> {
        let mut notes = Vec::new();
        for shard in &mut self.shards {
            shard.common.now = now;
            // Takes the vector itself to free its memory.
            let taken = std::mem::take(&mut shard.common.notes).into_iter();
            notes.extend(taken.map(|(at, station, note)| (at, station as usize, note)));
        }
        notes.sort_by_key(|&(at, station, _)| (at, station));
        notes
    }

    /// Starts to capture the frames on a port.
    pub(crate) fn capture(&mut self, end: WireEnd) {
        self.shards.iter_mut().for_each(|shard| shard.common.watched = true);
        self.call(end.station).0.adapter_mut().taps_mut().get_or_insert_default().add(end.port);
    }

    /// Takes the frames captured since the last call, in order of time, then of stations.
    pub(crate) fn take_captured(&mut self) -> Vec<Captured> {
        let stations = self.shards.iter_mut().flat_map(|shard| &mut shard.stations);
        let taps = stations.filter_map(|station| station.adapter_mut().taps_mut().as_mut());
        let mut all: Vec<Captured> = taps.flat_map(|taps| taps.take()).collect();
        all.sort_by_key(|captured| (captured.at, captured.station));
        all
    }

    /// Moves every station and its events to its shard of `shards` by `plan`.
    pub(crate) fn spread(&mut self, shards: usize, plan: &[u32]) {
        threads::deliver(&mut self.shards);
        let old = &self.shards[0].common;
        let (now, written, watched, without) = (old.now, old.written, old.watched, old.without);
        let fresh = |number| {
            let mut shard = Shard::new(number as u32, written);
            (shard.common.now, shard.common.watched) = (now, watched);
            shard.common.without = without;
            shard.common.outbox = (0..shards).map(|_| Vec::new()).collect();
            shard
        };
        let old = std::mem::replace(&mut self.shards, (0..shards).map(fresh).collect());
        let (mut stations, mut events) = (Vec::new(), Vec::new());
        for mut shard in old {
            self.shards[0].events += shard.events;
            self.shards[0].common.packet_hops += shard.common.packet_hops;
            self.shards[0].common.lines.append(&mut shard.common.lines);
            self.shards[0].common.notes.append(&mut shard.common.notes);
            while let Some((key, event)) = shard.common.queue.pop() {
                events.push((
                    shard.stations[event.station as usize].adapter().number(),
                    key,
                    event,
                ));
            }
            stations.append(&mut shard.stations);
        }
        stations.sort_by_key(|station| station.adapter().number());
        for shard in &mut self.shards {
            let number = shard.common.number;
            let count = plan.iter().filter(|&&of| of == number).count();
            shard.stations.reserve_exact(count);
        }
        for (number, station) in stations.into_iter().enumerate() {
            let shard = &mut self.shards[plan[number] as usize];
            self.places[number] =
                Place { shard: shard.common.number, slot: shard.stations.len() as u32 };
            shard.add(station);
        }
        for (number, key, mut event) in events {
            let place = self.places[number as usize];
            event.station = place.slot;
            self.shards[place.shard as usize].common.queue.push(key, event);
        }
    }
}
