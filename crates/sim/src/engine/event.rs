//! Events, and what the stations of a shard have in common.

use crate::engine::queue::{Key, Queue};
use crate::engine::trace::Line;
use axon_node::{Action, Note, Reply};
use axon_wire::{FrameBuf, PortNo, Time};

/// Something to come for the station in slot `station` of its shard.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) station: u32,
    pub(crate) kind: Kind,
}

/// What it is.
#[derive(Debug)]
pub(crate) enum Kind {
    /// A frame comes in by `port`, if the carrier there is still this one.
    Arrive { port: PortNo, intact: bool, carrier: u32, complete_at: Time, frame: FrameBuf },
    /// A wire that the station waits for is free.
    TxDone,
    /// It wanted to be called, if it is still armed for this instant.
    Wake,
    /// An agent is shown the lengths of its switch's queues as they were when the frame was sent
    /// that comes next by its port, if the carrier there is still this one.
    Queues { carrier: u32, bytes: Box<[u64]> },
}

/// Something for another shard.
pub(crate) type Parcel = (Key, Event);

/// What makes the engine fast and must not show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Without {
    /// Every `TxDone` is an event.
    pub(crate) lazy_tx_done: bool,
    /// Every frame is stored whole where it is sent.
    pub(crate) light_frames: bool,
    /// Every input is handled by the node: none is [passed](axon_node::Node::pass) or
    /// [absorbed](axon_node::Node::absorb).
    pub(crate) passing: bool,
}

/// What the stations of a shard have in common.
pub(crate) struct Common {
    /// Of the shard.
    pub(crate) number: u32,
    /// The slot of the station that is being called.
    pub(crate) slot: u32,
    pub(crate) now: Time,
    pub(crate) packet_hops: u64,
    /// Lines of text are wanted.
    pub(crate) written: bool,
    /// Some stations have [`Taps`](crate::engine::taps::Taps).
    pub(crate) watched: bool,
    /// What tests switch off, and must not see a difference.
    pub(crate) without: Without,
    /// What the node that is being called asks for.
    pub(crate) out: Vec<Action>,
    pub(crate) queue: Queue<Event>,
    /// For the other shards, by number.
    pub(crate) outbox: Vec<Vec<Parcel>>,
    pub(crate) notes: Vec<(Time, u32, Note)>,
    /// The answer to the command that was just delivered.
    pub(crate) reply: Option<Reply>,
    pub(crate) lines: Vec<Line>,
}

impl Common {
    /// Whether somebody looks at what happens.
    #[inline]
    pub(crate) fn is_shown(&self) -> bool {
        self.written || self.watched
    }

    /// Of shard `number`, at time zero, with nothing to come.
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
