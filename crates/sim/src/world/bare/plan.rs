//! Plan of a layer 2 world, and its observations.

use axon_node::{Drop, Note};
use axon_plane::dcb::DcbConfig;
use axon_plane::qcn::RpConfig;
use axon_wire::priority::Priority;
use axon_wire::{MacAddr, PortNo, Rate, Span, Time};
use std::collections::BTreeMap;

/// Preamble, FCS and gap: overhead of a frame on the wire, in bytes.
pub const OVERHEAD_BYTES: u64 = 24;
/// MAC address of sources and sinks.
pub(super) const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xaa]);

/// Plan of a layer 2 world.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Switches; all of their ports may be used.
    pub switches: Vec<DcbConfig>,
    /// Wires between switches: switch number and port of either end.
    pub links: Vec<[(usize, PortNo); 2]>,
    /// Sources.
    pub sources: Vec<Source>,
    /// Sinks.
    pub sinks: Vec<Sink>,
    /// Reaction point of each source; `None` ignores congestion notification.
    pub reaction: Option<RpConfig>,
    /// Rate of all wires.
    pub rate: Rate,
    /// One-way latency of all wires.
    pub latency: Span,
}

/// Source of frames.
#[derive(Clone, Debug)]
pub struct Source {
    /// Attachment point: switch number and port.
    pub at: (usize, PortNo),
    /// Egress ports of the frames, one at each switch.
    pub route: Vec<PortNo>,
    /// Priority of the frames.
    pub priority: Priority,
    /// Length of the frames in bytes without FCS, header included.
    pub frame_bytes: usize,
    /// Traffic phases, in order of time.
    pub phases: Vec<Phase>,
}

/// Phase of a source's traffic.
#[derive(Clone, Copy, Debug)]
pub struct Phase {
    /// Start of the phase.
    pub from: Time,
    /// End of the phase.
    pub until: Time,
    /// Interval between frames; zero for line rate.
    pub interval: Span,
}

/// Sink of frames.
#[derive(Clone, Copy, Debug)]
pub struct Sink {
    /// Attachment point: switch number and port.
    pub at: (usize, PortNo),
    /// PFC storm that the sink sends, if any.
    pub storm: Option<Storm>,
}

/// PFC storm: XOFF frames in uninterrupted succession.
#[derive(Clone, Copy, Debug)]
pub struct Storm {
    /// Paused priority.
    pub priority: Priority,
    /// Start of the storm.
    pub from: Time,
    /// End of the storm.
    pub until: Time,
    /// Interval after which one XON replaces an XOFF, so that a frame gets through; `None` for no
    /// breaks.
    pub breaks: Option<Span>,
}

impl Sink {
    /// Returns a sink that never sends XOFF.
    pub fn quiet(at: (usize, PortNo)) -> Sink {
        Sink { at, storm: None }
    }
}

/// Frame on a wire: start of arrival, and bytes including overhead.
pub type Passed = (Time, u64);

/// Observations of a run.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Frames from each source.
    pub sources: Vec<Vec<Passed>>,
    /// Frames to each sink.
    pub sinks: Vec<Vec<Passed>>,
    /// Times of XOFFs sent to the peer, by switch and port, refreshes excluded.
    pub xoffs: Vec<Vec<Vec<Time>>>,
    /// Frames that ended in switches, flow control frames excluded.
    pub lost: BTreeMap<Drop, u64>,
    /// Maximum bytes queued for any one port of each switch.
    pub queued_bytes_max: Vec<u64>,
    /// Notes of switches, with their time and the switch number.
    pub notes: Vec<(Time, usize, Note)>,
}

impl Seen {
    /// Returns the number of frames that ended in switches.
    pub fn all_lost(&self) -> u64 {
        self.lost.values().sum()
    }
}

/// Observation at a node.
pub(super) enum Event {
    /// A source sent a frame.
    From(usize, Passed),
    /// A sink received a frame.
    To(usize, Passed),
    /// A switch sent XOFF to the peer of a port.
    Xoff(usize, PortNo, Time),
    /// A switch dropped a frame.
    Lost(Drop),
    /// The queue of a port of a switch has reached a new maximum.
    Queued(usize, u64),
}
