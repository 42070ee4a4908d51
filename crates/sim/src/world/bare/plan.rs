//! What a world of layer 2 is made of, and what is seen of it.

use axon_plane::dcb::DcbConfig;
use axon_plane::qcn::RpConfig;
use axon_plane::{Drop, Note};
use axon_wire::priority::Priority;
use axon_wire::{MacAddr, PortNo, Rate, Span, Time};
use std::collections::BTreeMap;

/// Preamble, FCS and gap: what a frame costs on the wire beside its bytes.
pub const OVERHEAD_BYTES: u64 = 24;
/// Of sources and sinks.
pub(super) const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xaa]);

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
    /// The reaction point of each source; without, sources ignore congestion notification.
    pub reaction: Option<RpConfig>,
    /// Of all wires.
    pub rate: Rate,
    /// Of all wires, one way.
    pub latency: Span,
}

/// A source of frames.
#[derive(Clone, Debug)]
pub struct Source {
    /// Where it is connected: a switch, by number, and a port.
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
    /// Where it is connected: a switch, by number, and a port.
    pub at: (usize, PortNo),
    /// The PFC storm that it sends, if any.
    pub storm: Option<Storm>,
}

/// A PFC storm: one XOFF behind the other.
#[derive(Clone, Copy, Debug)]
pub struct Storm {
    /// The priority that is paused.
    pub priority: Priority,
    /// From then,
    pub from: Time,
    /// until then.
    pub until: Time,
    /// Each time that so long has passed, one of them is an XON instead, and the next
    /// an XOFF again: a frame gets through. Never without.
    pub breaks: Option<Span>,
}

impl Sink {
    /// A sink that never sends XOFF.
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
    /// By switch and port: when an XOFF was sent to its peer; refreshes are left out.
    pub xoffs: Vec<Vec<Vec<Time>>>,
    /// Frames that ended in switches, flow control aside.
    pub lost: BTreeMap<Drop, u64>,
    /// The most bytes that waited for any one port of each switch.
    pub queued_bytes_max: Vec<u64>,
    /// The notes of switches, with their time and number.
    pub notes: Vec<(Time, usize, Note)>,
}

impl Seen {
    /// All frames that ended in switches.
    pub fn all_lost(&self) -> u64 {
        self.lost.values().sum()
    }
}

/// What a node has seen.
pub(super) enum Event {
    /// A frame came from a source.
    From(usize, Passed),
    /// A frame came to a sink.
    To(usize, Passed),
    /// A switch sent XOFF to the peer of a port.
    Xoff(usize, PortNo, Time),
    /// A frame ended in a switch.
    Lost(Drop),
    /// More waits for a port of a switch than ever before.
    Queued(usize, u64),
}
