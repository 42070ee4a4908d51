//! Worlds of layer 2 alone: switches' data planes, sources of frames that obey flow control, and
//! sinks. No control plane and no hosts' protocols, for what is to be seen without any other
//! flow control beside it (paper 002 §7.3), frame by frame.
//!
//! A source makes a frame at each of its intervals, whether it may send or not; what waits in it
//! goes out at line rate when it may. Its frames carry their route, so no switch needs tables.

mod ends;
mod switch;

use crate::Engine;
use crate::engine::station::Body;
use crate::link::links::WireEnd;
use axon_fabric::model::Wire;
use axon_plane::dcb::DcbConfig;
use axon_plane::qcn::{RateLimiter, RpConfig};
use axon_plane::{Drop, Note};
use axon_wire::priority::Priority;
use axon_wire::{Bytes, MacAddr, PortNo, Rate, Span, Time};
use ends::{Sender, Taker};
use std::collections::BTreeMap;
use std::sync::mpsc;
use switch::Switch;

/// Preamble, FCS and gap: what a frame costs on the wire beside its bytes.
pub const OVERHEAD_BYTES: u64 = 24;
/// Of sources and sinks.
const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xaa]);

/// What a world is made of.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Switches, all of whose ports may be used.
    pub switches: Vec<DcbConfig>,
    /// Wires between switches: a switch, by number, and a port, at either end.
    pub links: Vec<[(usize, PortNo); 2]>,
    /// What sends.
    pub sources: Vec<Source>,
    /// Where frames end.
    pub sinks: Vec<Sink>,
    /// Sources obey congestion notification with a reaction point each, if they do.
    pub reaction: Option<RpConfig>,
    /// Of all wires.
    pub rate: Rate,
    /// Of all wires, one way.
    pub latency: Span,
}

/// A source of frames.
#[derive(Clone, Debug)]
pub struct Source {
    /// Where it is plugged in: a switch, by number, and a port.
    pub at: (usize, PortNo),
    /// The ports that its frames leave by, one at each switch.
    pub route: Vec<PortNo>,
    /// Of its frames.
    pub priority: Priority,
    /// Length of its frames without FCS, their header included.
    pub frame_bytes: usize,
    /// What it sends, in order of time.
    pub phases: Vec<Phase>,
}

/// What a source sends for a while.
#[derive(Clone, Copy, Debug)]
pub struct Phase {
    /// From then,
    pub from: Time,
    /// until then.
    pub until: Time,
    /// A frame each so long; zero for as fast as the wire takes them.
    pub interval: Span,
}

/// Where frames end.
#[derive(Clone, Copy, Debug)]
pub struct Sink {
    /// Where it is plugged in: a switch, by number, and a port.
    pub at: (usize, PortNo),
    /// It floods the switch with stops, if it does.
    pub storm: Option<Storm>,
}

/// A storm of stops: one behind the other.
#[derive(Clone, Copy, Debug)]
pub struct Storm {
    /// What the switch is to stop.
    pub priority: Priority,
    /// From then,
    pub from: Time,
    /// until then.
    pub until: Time,
    /// Each time that so long has passed, one of them lets the priority go on instead, and the
    /// next stops it again: a frame gets through. Never if not said.
    pub breaks: Option<Span>,
}

impl Sink {
    /// One that never stops anybody.
    pub fn quiet(at: (usize, PortNo)) -> Sink {
        Sink { at, storm: None }
    }
}

/// A frame on a wire: when it began to arrive, and its bytes there, overhead included.
pub type Passed = (Time, u64);

/// What was seen.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// What came from each source.
    pub sources: Vec<Vec<Passed>>,
    /// What came to each sink.
    pub sinks: Vec<Vec<Passed>>,
    /// By switch and port: when its peer was told to stop; not when that was told again.
    pub stops: Vec<Vec<Vec<Time>>>,
    /// Frames that ended in switches, flow control aside.
    pub lost: BTreeMap<Drop, u64>,
    /// The most bytes that waited for any one port of each switch.
    pub queued_bytes_max: Vec<u64>,
    /// What switches had to say, by number.
    pub notes: Vec<(Time, usize, Note)>,
}

impl Seen {
    /// All frames that ended in switches.
    pub fn all_lost(&self) -> u64 {
        self.lost.values().sum()
    }
}

/// What a node has seen.
enum Event {
    /// A frame came from a source.
    From(usize, Passed),
    /// A frame came to a sink.
    To(usize, Passed),
    /// A switch told the peer of a port to stop.
    Stop(usize, PortNo, Time),
    /// A frame ended in a switch.
    Lost(Drop),
    /// More waits for a port of a switch than ever before.
    Queued(usize, u64),
}

impl Plan {
    /// Runs the world from its beginning until `end`.
    ///
    /// # Panics
    /// If the reaction point has a [fault](RpConfig::check), or a switch's configuration has one.
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
            engine.plug(a, b, wire);
        }
        for (index, config) in self.switches.iter().enumerate() {
            let body = Switch::new(index, self, config.clone(), log.clone());
            engine.power_on(index, Body::Other(Box::new(body)));
        }
        for (index, source) in self.sources.iter().enumerate() {
            let mac = MacAddr([2, 0, 0, 0, 2, index as u8]);
            let limiter = self.reaction.map(|config| {
                RateLimiter::new(config, Bytes(0), seed << 8 | index as u64)
                    .expect("a configuration that was checked")
            });
            let body = Sender::new(source.clone(), self.rate, mac, limiter);
            engine.power_on(switches + index, Body::Other(Box::new(body)));
        }
        for (index, sink) in self.sinks.iter().enumerate() {
            let body = Taker::new(index, sink.storm, log.clone());
            engine.power_on(switches + sources + index, Body::Other(Box::new(body)));
        }
        engine.run(end);
        let mut seen = self.seen(events.try_iter());
        seen.notes = std::mem::take(&mut engine.notes);
        seen
    }

    /// The ends of all wires, by station: switches first, then sources, then sinks.
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
            stops: self.switches.iter().map(ports).collect(),
            queued_bytes_max: vec![0; self.switches.len()],
            ..Seen::default()
        };
        for event in events {
            match event {
                Event::From(source, passed) => seen.sources[source].push(passed),
                Event::To(sink, passed) => seen.sinks[sink].push(passed),
                Event::Stop(switch, port, at) => seen.stops[switch][port.index()].push(at),
                Event::Lost(reason) => *seen.lost.entry(reason).or_default() += 1,
                Event::Queued(switch, bytes) => seen.queued_bytes_max[switch] = bytes,
            }
        }
        seen
    }
}
