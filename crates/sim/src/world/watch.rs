//! How a scenario is run, and who watches it.

use crate::engine::dataplane::DataplaneKind;
use crate::link::links::WireEnd;
use crate::world::PythonLoader;
use crate::world::capture::Captured;
use axon_wire::{Span, Time};
use std::io::Write;
use std::ops::ControlFlow;

/// How a scenario is run.
pub struct Options {
    /// The world's seed; the fabric's without.
    pub seed: Option<u64>,
    /// The data plane of switches and of the controller.
    pub dataplane: DataplaneKind,
    /// Starts control programs in Python, for fabrics that have one.
    pub python: Option<PythonLoader>,
    /// Threads to run on; what happens is the same with any number.
    pub threads: usize,
    /// Takes the trace as lines of text, if given.
    pub trace: Option<Box<dyn Write>>,
    /// How long hosts may take to get their addresses, and the network to get ready, before
    /// the pings or the traffic begin all the same.
    pub boot: Span,
    /// Between two requests of a ping that has no answer yet.
    pub interval: Span,
    /// Requests of one ping at most.
    pub requests: u16,
    /// Quiet time after the last fault, before the second round.
    pub settle: Span,
    /// Ordered pairs that ping in one round at most; of more, an even share is taken.
    pub pairs_max: usize,
    /// How long to go on after the network is ready; until everything is done and the last
    /// fault is over without.
    pub duration: Option<Span>,
    /// Without a duration: how long traffic that does not come to an end of its own may last,
    /// or longer if an entry says when it stops.
    pub traffic: Span,
    /// Ports whose frames the watcher is shown.
    pub capture: Vec<WireEnd>,
    /// Sample every port from when the network is ready, this often at first.
    pub samples: Option<Span>,
}

impl Default for Options {
    /// Twenty requests 250 ms apart, half a minute to boot, three seconds to settle, at most
    /// 10,000 pairs, a second of traffic.
    fn default() -> Options {
        Options {
            seed: None,
            dataplane: DataplaneKind::Software,
            python: None,
            threads: 1,
            trace: None,
            boot: Span::from_secs(30),
            interval: Span::from_millis(250),
            requests: 20,
            settle: Span::from_secs(3),
            pairs_max: 10_000,
            duration: None,
            traffic: Span::from_secs(1),
            capture: Vec::new(),
            samples: None,
        }
    }
}

/// What a run is busy with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Hosts get their addresses, and the network gets ready.
    Boot,
    /// A round of pings.
    Pings,
    /// Faults happen, and the fabric settles.
    Faults,
    /// Hosts do what the fabric file says.
    Traffic,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What it is busy with.
    pub stage: Stage,
    /// Simulated time.
    pub now: Time,
    /// When the stage began.
    pub began: Time,
    /// When it ends, at the latest.
    pub end: Time,
    /// Events handled.
    pub events: u64,
    /// Frames that came out of a link.
    pub packet_hops: u64,
}

/// An observer of a run.
pub trait Watch {
    /// Sees how far it has come, each millisecond of simulated time or more often. An answer
    /// to break ends the run, for that reason; the report holds what there is.
    fn progress(&mut self, _progress: &Progress) -> ControlFlow<String> {
        ControlFlow::Continue(())
    }

    /// Sees what the ports in [`Options::capture`] carried, in order of time.
    fn captured(&mut self, _frames: Vec<Captured>) {}
}

/// Nobody.
impl Watch for () {}
