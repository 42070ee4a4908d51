//! Events, and the state shared by the stations of a shard.

use crate::engine::queue::{Key, Queue};
use crate::engine::trace::Line;
use axon_node::{Action, Note, Reply};
use axon_wire::{FrameBuf, PortNo, Time};

/// Future event of the station in slot `station` of its shard.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) station: u32,
    pub(crate) kind: Kind,
}

/// Kind of event.
#[derive(Debug)]
pub(crate) enum Kind {
    /// A frame arrives at `port`, if the port still has this carrier.
    Arrive { port: PortNo, intact: bool, carrier: u32, complete_at: Time, frame: FrameBuf },
    /// An awaited wire is free.
    TxDone,
    /// A requested wake-up, valid if still armed for this instant.
    Wake,
    /// Queue lengths of a switch for its agent, taken when the next frame on this port was sent;
    /// valid if the port still has this carrier.
    Queues { carrier: u32, bytes: Box<[u64]> },
}

/// Event for another shard.
pub(crate) type Parcel = (Key, Event);

/// Optimizations to disable. They must not change any result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Without {
    /// Delivers every input to the node, and makes every `TxDone` an event; see
    /// [`Shortcuts`](axon_node::Shortcuts).
    pub(crate) shortcuts: bool,
    /// Stores every frame whole at its sender.
    pub(crate) light_frames: bool,
}

/// State shared by the stations of a shard.
pub(crate) struct Common {
    /// Shard number.
    pub(crate) number: u32,
    /// Slot of the station that is being called.
    pub(crate) slot: u32,
    pub(crate) now: Time,
    pub(crate) packet_hops: u64,
    /// True if trace text is enabled.
    pub(crate) written: bool,
    /// True if any station has [`Taps`](crate::engine::taps::Taps).
    pub(crate) watched: bool,
    /// Optimizations disabled by tests.
    pub(crate) without: Without,
    /// Actions of the node that is being called.
    pub(crate) out: Vec<Action>,
    pub(crate) queue: Queue<Event>,
    /// Events for the other shards, by shard number.
    pub(crate) outbox: Vec<Vec<Parcel>>,
    pub(crate) notes: Vec<(Time, u32, Note)>,
    /// Reply to the command that was just delivered.
    pub(crate) reply: Option<Reply>,
    pub(crate) lines: Vec<Line>,
}

impl Common {
    /// Returns whether trace text or captures are enabled.
    #[inline]
    pub(crate) fn is_shown(&self) -> bool {
        self.written || self.watched
    }

    /// Returns the state of shard `number` at time zero, without events.
    pub(crate) fn new(number: u32, written: bool) -> Common {
        Common {
            number,
            slot: 0,
            now: Time::ZERO,
            packet_hops: 0,
            written,
            watched: false,
            without: Without::default(),
            out: Vec::new(),
            queue: Queue::default(),
            outbox: Vec::new(),
            notes: Vec::new(),
            reply: None,
            lines: Vec::new(),
        }
    }
}
