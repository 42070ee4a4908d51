//! Options and observers of a scenario run.

use crate::link::links::WireEnd;
use crate::world::PythonLoader;
use crate::world::capture::Captured;
use axon_fabric::model::DataplaneKind;
use axon_wire::{Span, Time};
use std::io::Write;
use std::ops::ControlFlow;

/// Options of a scenario run.
pub struct Options {
    /// Seed of the world; `None` uses the fabric's.
    pub seed: Option<u64>,
    /// Data plane of switches and of the controller.
    pub dataplane: DataplaneKind,
    /// Loader of Python control programs, for fabrics that have one.
    pub python: Option<PythonLoader>,
    /// Number of threads; the results do not depend on it.
    pub threads: usize,
    /// Receives the trace as lines of text, if given.
    pub trace: Option<Box<dyn Write>>,
    /// Maximum time for hosts to get their addresses and the network to get ready. The pings or the
    /// traffic then begin regardless.
    pub boot: Span,
    /// Interval between requests of an unanswered ping.
    pub interval: Span,
    /// Maximum number of requests of one ping.
    pub requests: u16,
    /// Quiet time after the last fault, before the second round.
    pub settle: Span,
    /// Maximum number of ordered pairs that ping in one round; of more, a regular subset is taken.
    pub pairs_max: usize,
    /// Duration of the run after the network is ready; `None` runs until everything is complete and
    /// the last fault is over.
    pub duration: Option<Span>,
    /// Without a duration: maximum duration of traffic that has no end, or longer if an entry sets
    /// a stop time.
    pub traffic: Span,
    /// Ports whose frames are passed to the observer.
    pub capture: Vec<WireEnd>,
    /// Initial sampling interval of every port, from when the network is ready.
    pub samples: Option<Span>,
}

impl Default for Options {
    /// Returns twenty requests 250 ms apart, 30 s to boot, 3 s to settle, at most 10,000 pairs, and
    /// 1 s of traffic.
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

/// Stage of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Hosts get their addresses, and the network gets ready.
    Boot,
    /// Round of pings.
    Pings,
    /// Faults happen, and the fabric settles.
    Faults,
    /// Hosts run the traffic of the fabric file.
    Traffic,
}

/// Progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Current stage.
    pub stage: Stage,
    /// Simulated time.
    pub now: Time,
    /// Start of the stage.
    pub began: Time,
    /// Latest end of the stage.
    pub end: Time,
    /// Number of events handled.
    pub events: u64,
    /// Number of frames that came out of a link.
    pub packet_hops: u64,
}

/// Observer of a run.
pub trait Watch {
    /// Reports the progress, at least once per millisecond of simulated time. Breaking ends the run
    /// with the returned reason; the report then covers the run so far.
    fn progress(&mut self, _progress: &Progress) -> ControlFlow<String> {
        ControlFlow::Continue(())
    }

    /// Passes the frames captured on the ports in [`Options::capture`], in order of time.
    fn captured(&mut self, _frames: Vec<Captured>) {}
}

/// Null observer.
impl Watch for () {}
