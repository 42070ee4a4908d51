//! What single ports carry, for somebody who wants to look at it with other tools.

use crate::engine::Engine;
use crate::links::WireEnd;
use crate::trace::What;
use axon_wire::{PortNo, Time};

/// A frame that a port carried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// Out of the port: when it was given to the port; into it: when the node was handed it.
    pub at: Time,
    /// Whose port.
    pub station: usize,
    /// Which port.
    pub port: PortNo,
    /// Whether it went out.
    pub outbound: bool,
    /// Its bytes, without FCS.
    pub frame: Vec<u8>,
}

/// The ports of one station that are looked at, and what they carried since the last look.
#[derive(Debug, Default)]
pub(crate) struct Taps {
    ports: Vec<PortNo>,
    frames: Vec<Captured>,
}

impl Taps {
    /// Keeps a copy of a frame that came in or went out by one of the ports.
    pub(crate) fn see(&mut self, at: Time, station: u32, port: PortNo, what: What<'_>) {
        let (frame, outbound) = match what {
            What::Sent(frame) => (frame, true),
            What::Received(frame) => (frame, false),
            _ => return,
        };
        if self.ports.contains(&port) {
            let (station, frame) = (station as usize, frame.to_vec());
            self.frames.push(Captured { at, station, port, outbound, frame });
        }
    }
}

impl Engine {
    /// Keeps a copy of each frame that a port carries from now on, until
    /// [`Engine::take_captured`]. How many threads there are is settled before.
    ///
    /// # Panics
    /// If there is no such station.
    pub fn capture(&mut self, end: WireEnd) {
        self.shards.iter_mut().for_each(|shard| shard.watched = true);
        let taps = self.station_mut(end.station).taps.get_or_insert_default();
        if !taps.ports.contains(&end.port) {
            taps.ports.push(end.port);
        }
    }

    /// What was captured since the last time, in order of time, then of stations.
    pub fn take_captured(&mut self) -> Vec<Captured> {
        let mut all = Vec::new();
        for station in self.shards.iter_mut().flat_map(|shard| &mut shard.stations) {
            if let Some(taps) = &mut station.taps {
                all.append(&mut taps.frames);
            }
        }
        all.sort_by_key(|captured| (captured.at, captured.station));
        all
    }
}
