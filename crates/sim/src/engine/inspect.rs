//! Read access to the state of an engine.

use crate::engine::Engine;
use crate::engine::accounts::Accounts;
use crate::engine::event::Kind;
use crate::engine::station::Station;
use crate::engine::trace::{self, Trace};
use crate::link::classes::ClassBytes;
use crate::link::links::{Fates, Link, LinkId, WireEnd};
use crate::link::port::CableEnd;
use axon_node::Note;
use axon_wire::Time;

impl Engine {
    /// Returns the simulated time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns the stations, in the order they were added.
    pub fn stations(&self) -> impl ExactSizeIterator<Item = &Station> {
        self.places.iter().map(|at| &self.shards[at.shard as usize].stations[at.slot as usize])
    }

    /// Returns a station by number.
    pub fn station(&self, number: usize) -> Option<&Station> {
        let at = self.places.get(number)?;
        self.shards[at.shard as usize].stations.get(at.slot as usize)
    }

    /// Returns a station by number for external changes. Call [`Engine::nudge`] afterwards.
    ///
    /// # Panics
    /// If there is no such station.
    pub fn station_mut(&mut self, number: usize) -> &mut Station {
        let at = self.places[number];
        &mut self.shards[at.shard as usize].stations[at.slot as usize]
    }

    /// Returns the links, in the order of their ids.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Returns the fates of the frames that end `side` of a link sent.
    ///
    /// # Panics
    /// If there is no such link.
    pub fn fates(&self, link: LinkId, side: usize) -> Fates {
        let past = self.links[link.0].past.as_ref();
        let mut fates = past.map_or_else(Fates::default, |past| past[side]);
        if let Some(cable) = self.cable_end_at(link, side) {
            fates.add(&cable.fates_from_here());
        }
        if let Some(cable) = self.cable_end_at(link, 1 - side) {
            fates.add(&cable.fates_to_here());
        }
        fates
    }

    /// Returns the bytes sent by end `side` of a link, by class, if they are counted.
    ///
    /// # Panics
    /// If there is no such link.
    pub fn class_bytes(&self, link: LinkId, side: usize) -> Option<&ClassBytes> {
        self.cable_end_at(link, side)?.classes.as_deref()
    }

    /// Returns one end of a link, unless it is pulled.
    pub(crate) fn cable_end_at(&self, link: LinkId, side: usize) -> Option<&CableEnd> {
        let end = self.links[link.0].ends[side];
        let port_state = self.station(end.station)?.adapter.ports.get(end.port.index())?;
        port_state.cable.as_ref().filter(|cable| cable.rare.link == link)
    }

    /// Returns the link at a port and which of its ends is there.
    pub fn link_at(&self, end: WireEnd) -> Option<(LinkId, usize)> {
        let cable =
            self.station(end.station)?.adapter.ports.get(end.port.index())?.cable.as_ref()?;
        Some((cable.rare.link, cable.rare.side))
    }

    /// Returns the stations' notes as time, station and note, ordered by time and station.
    pub fn notes(&self) -> &[(Time, usize, Note)] {
        &self.notes
    }

    /// Returns the trace text.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Returns the trace text mutably, to flush it.
    pub fn trace_mut(&mut self) -> &mut Trace {
        &mut self.trace
    }

    /// Returns the hash of the whole trace.
    pub fn trace_hash(&self) -> u64 {
        let stations = self.stations().map(|station| &station.adapter.trace);
        trace::combine(stations.chain([&self.world_trace]))
    }

    /// Returns the number of events handled.
    pub fn events(&self) -> u64 {
        self.shards.iter().map(|shard| shard.events).sum::<u64>() + self.world_trace.events()
    }

    /// Returns the number of frames that came out of a link.
    pub fn packet_hops(&self) -> u64 {
        self.shards.iter().map(|shard| shard.common.packet_hops).sum()
    }

    /// Returns the total counters of all stations, over all their incarnations.
    pub fn accounts(&self) -> Accounts {
        let mut sum = Accounts::default();
        self.stations().for_each(|station| sum.add(&station.accounts()));
        sum
    }

    /// Returns the number and bytes of frames that will arrive under the current carrier, by link
    /// and by the side that sent them.
    pub(crate) fn arrivals_to_come(&self) -> Vec<[(u64, u64); 2]> {
        let mut sums = vec![[(0, 0); 2]; self.links.len()];
        for shard in &self.shards {
            for event in shard.common.queue.iter() {
                let Kind::Arrive { port, carrier, frame, .. } = &event.kind else { continue };
                let port_state =
                    &shard.stations[event.station as usize].adapter.ports[port.index()];
                if let Some(cable) =
                    port_state.cable.as_ref().filter(|cable| cable.carrier == *carrier)
                {
                    let (frames, bytes) = &mut sums[cable.rare.link.0][1 - cable.rare.side];
                    *frames += 1;
                    *bytes += frame.length() as u64;
                }
            }
        }
        sums
    }
}
