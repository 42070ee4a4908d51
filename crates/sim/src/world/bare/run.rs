//! Builds a layer 2 world from its plan and runs it.

use super::ends::{Sender, Taker};
use super::plan::{Event, Plan, Seen};
use super::switch::Switch;
use crate::Engine;
use crate::engine::station::StationNode;
use crate::link::links::WireEnd;
use axon_fabric::model::Wire;
use axon_plane::dcb::DcbConfig;
use axon_plane::qcn::RateLimiter;
use axon_wire::{Bytes, MacAddr, PortNo, Time};
use std::sync::mpsc;

impl Plan {
    /// Runs the world from its beginning until `end`.
    ///
    /// # Panics
    /// If the reaction point has a [fault](axon_plane::qcn::RpConfig::check), or a switch's
    /// configuration has one.
    pub fn run(&self, end: Time, seed: u64) -> Seen {
        let (log, events) = mpsc::channel();
        let mut engine = Engine::new(seed, None);
        let (switches, sources) = (self.switches.len(), self.sources.len());
        for station in 0..switches + sources + self.sinks.len() {
            engine.add_station(&format!("n{station}"));
        }
        let wire = Wire {
            rate: self.rate,
            latency: self.latency,
            loss_ppm: 0,
            bit_errors_per_1e15: 0,
            queue: Bytes(1 << 40),
        };
        for [a, b] in self.wires() {
            let [a, b] = [a, b].map(|(station, port)| WireEnd { station, port });
            engine.connect(a, b, wire);
        }
        for (index, config) in self.switches.iter().enumerate() {
            let node = Switch::new(index, self, config.clone(), log.clone());
            engine.power_on(index, StationNode::Other(Box::new(node)));
        }
        for (index, source) in self.sources.iter().enumerate() {
            let mac = MacAddr([2, 0, 0, 0, 2, index as u8]);
            let limiter = self.reaction.map(|config| {
                RateLimiter::new(config, Bytes(0), seed << 8 | index as u64)
                    .expect("a configuration that was checked")
            });
            let node = Sender::new(source.clone(), self.rate, mac, limiter);
            engine.power_on(switches + index, StationNode::Other(Box::new(node)));
        }
        for (index, sink) in self.sinks.iter().enumerate() {
            let node = Taker::new(index, sink.storm, log.clone());
            engine.power_on(switches + sources + index, StationNode::Other(Box::new(node)));
        }
        engine.run(end);
        let mut seen = self.seen(events.try_iter());
        seen.notes = engine.notes().to_vec();
        seen
    }

    /// Returns the ends of all wires, by station: switches first, then sources, then sinks.
    fn wires(&self) -> Vec<[(usize, PortNo); 2]> {
        let sources = self.sources.iter().map(|source| source.at);
        let ends = sources.chain(self.sinks.iter().map(|sink| sink.at)).enumerate();
        let ends = ends.map(|(index, at)| [at, (self.switches.len() + index, PortNo(0))]);
        self.links.iter().copied().chain(ends).collect()
    }

    fn seen(&self, events: impl Iterator<Item = Event>) -> Seen {
        let ports = |config: &DcbConfig| vec![Vec::new(); config.rates.len()];
        let mut seen = Seen {
            sources: vec![Vec::new(); self.sources.len()],
            sinks: vec![Vec::new(); self.sinks.len()],
            xoffs: self.switches.iter().map(ports).collect(),
            queued_bytes_max: vec![0; self.switches.len()],
            ..Seen::default()
        };
        for event in events {
            match event {
                Event::From(source, passed) => seen.sources[source].push(passed),
                Event::To(sink, passed) => seen.sinks[sink].push(passed),
                Event::Xoff(switch, port, at) => seen.xoffs[switch][port.index()].push(at),
                Event::Lost(reason) => *seen.lost.entry(reason).or_default() += 1,
                Event::Queued(switch, bytes) => seen.queued_bytes_max[switch] = bytes,
            }
        }
        seen
    }
}
