//! Looking at an engine.

use crate::engine::{Engine, Event};
use crate::links::{Link, LinkId, WireEnd};
use crate::station::{Accounts, Station};
use crate::trace::Trace;
use axon_plane::Note;
use axon_wire::Time;

impl Engine {
    /// Simulated time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The stations, in the order they were added.
    pub fn stations(&self) -> &[Station] {
        &self.stations
    }

    /// One station, to change what stands there from outside. Call [`Engine::nudge`] after.
    pub fn station_mut(&mut self, station: usize) -> &mut Station {
        &mut self.stations[station]
    }

    /// The links, in the order of their ids.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The link at a port, and which end of it is there.
    pub fn link_at(&self, end: WireEnd) -> Option<(LinkId, usize)> {
        self.stations.get(end.station)?.jacks.get(end.port.index())?.link
    }

    /// What the stations have said, in order: when, who, what.
    pub fn notes(&self) -> &[(Time, usize, Note)] {
        &self.notes
    }

    /// Forgets what the stations have said so far.
    pub fn clear_notes(&mut self) {
        self.notes.clear();
    }

    /// The trace.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// The trace, to flush it.
    pub fn trace_mut(&mut self) -> &mut Trace {
        &mut self.trace
    }

    /// The hash of all that has happened.
    pub fn trace_hash(&self) -> u64 {
        self.trace.hash()
    }

    /// Events handled.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Frames that came out of a link.
    pub fn packet_hops(&self) -> u64 {
        self.packet_hops
    }

    /// What has passed between the world and all its stations, over all their lives.
    pub fn accounts(&self) -> Accounts {
        let mut sum = Accounts::default();
        self.stations.iter().for_each(|station| sum.add(&station.accounts()));
        sum
    }

    /// Frames that were sent on ports with nothing plugged in.
    pub(crate) fn sent_nowhere(&self) -> u64 {
        self.sent_nowhere
    }

    /// Arrivals that are still to come.
    pub(crate) fn arrivals_to_come(&self) -> u64 {
        self.queue.iter().filter(|event| matches!(event, Event::Arrive { .. })).count() as u64
    }
}
