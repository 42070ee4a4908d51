//! The receiving half: what has arrived, what is to be acknowledged, and when.
//!
//! The payload is a number of bytes, so that what arrives out of order costs a block of numbers.
//! The window never shrinks: its right edge only moves forward (RFC 9293 §3.8.6).

use crate::config::Config;
use crate::segment::{Flags, Mark, Sacks, Segment, Seq};
use alloc::vec::Vec;
use axon_wire::{Span, Time};

/// Blocks that are kept at most; what would be one more is not taken, as if it had been lost.
const BLOCKS_MAX: usize = 1024;

/// How marks are echoed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Echo {
    /// Not: ECN was not agreed upon.
    #[default]
    None,
    /// ECE from a mark until CWR comes (RFC 3168 §6.1.3).
    Latched,
    /// ECE for segments with a mark and for no others (RFC 8257 §3.2).
    Exact,
}

/// An acknowledgement that is to leave before all others, as it was due before the last segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Early {
    pub(crate) ack: Seq,
    pub(crate) echo: bool,
}

/// The receiver of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Receiver {
    /// The next number expected (RCV.NXT).
    pub(crate) next: Seq,
    /// The right edge of the window that the peer knows.
    edge: Seq,
    buffer: u32,
    /// Of those the application has not read.
    unread: u32,
    pub(crate) scale: u8,
    mss: u32,
    /// Bytes of the largest segment that has come.
    largest: u32,
    /// What has arrived beyond `next`, the block that changed last first (RFC 2018 §4).
    blocks: Vec<(Seq, Seq)>,
    /// Where the stream ends, once a FIN has come.
    fin: Option<Seq>,
    /// What has arrived twice, to be reported (RFC 2883).
    duplicate: Option<(Seq, Seq)>,
    sack: bool,
    delay: Option<Span>,
    pub(crate) echo: Echo,
    /// ECE is to be sent: latched, or the state of the last segment.
    pub(crate) experienced: bool,
    early: Option<Early>,
    /// Bytes that have arrived since the last acknowledgement.
    unacknowledged: u32,
    /// When they are acknowledged at the latest.
    due: Option<Time>,
    /// An acknowledgement is to leave at once.
    at_once: bool,
    /// A scaled window was sent: that of a SYN says 64 KiB at most.
    shown: bool,
}

impl Receiver {
    /// Before the peer's SYN has come: a window, and a shift that lets 16 bits say it.
    pub(crate) fn new(config: &Config) -> Receiver {
        let buffer = config.window();
        let bits = u32::BITS - buffer.leading_zeros();
        Receiver {
            buffer,
            scale: bits.saturating_sub(16).min(14) as u8,
            mss: u32::from(config.mss),
            delay: config.ack_delay,
            ..Receiver::default()
        }
    }

    /// The peer's SYN has come: `next` is the number after it.
    pub(crate) fn begin(&mut self, next: Seq, scaled: bool, sack: bool, echo: Echo) {
        (self.next, self.edge, self.sack, self.echo) = (next, next, sack, echo);
        if !scaled {
            self.scale = 0;
            self.buffer = self.buffer.min(u32::from(u16::MAX));
        }
    }

    /// Bytes of memory beyond the struct.
    pub(crate) fn memory(&self) -> usize {
        self.blocks.capacity() * size_of::<(Seq, Seq)>()
    }

    /// Whether the peer has sent all, and all of it has arrived.
    pub(crate) fn is_finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.next == fin + 1)
    }

    /// Whether a segment lies in the window (RFC 9293 §3.10.7.4, first check).
    pub(crate) fn accepts(&self, segment: &Segment) -> bool {
        let (window, length) = (self.edge.since(self.next), segment.length());
        let within = |seq: Seq| seq.since(self.next) < window;
        if length == 0 {
            return segment.seq == self.next || within(segment.seq);
        }
        let last = segment.seq + (length - 1);
        let spans = !segment.seq.is_after(self.next) && !last.is_before(self.next);
        window > 0 && (within(segment.seq) || within(last) || spans)
    }

    /// A segment outside of the window: what it repeats is reported (RFC 2883 §4).
    pub(crate) fn refuse(&mut self, segment: &Segment) {
        let to = (segment.seq + segment.bytes).min(self.next);
        if segment.bytes > 0 && segment.seq.is_before(to) {
            self.duplicate = Some((segment.seq, to));
        }
        self.at_once = true;
    }

    /// An acknowledgement leaves at once.
    pub(crate) fn acknowledge(&mut self) {
        self.at_once = true;
    }

    /// Takes the marks of a segment with payload (RFC 3168 §6.1.3, RFC 8257 §3.2).
    fn take_mark(&mut self, segment: &Segment) {
        let marked = segment.mark == Mark::Experienced;
        match self.echo {
            Echo::None => {}
            Echo::Latched => {
                self.experienced = marked || self.experienced && !segment.flags.has(Flags::CWR);
            }
            Echo::Exact if marked != self.experienced => {
                if self.unacknowledged > 0 {
                    self.early = Some(Early { ack: self.next, echo: self.experienced });
                    self.unacknowledged = 0;
                }
                self.experienced = marked;
                // Of a segment that begins a run of marks the sender learns at once.
                self.at_once |= marked;
            }
            Echo::Exact => {}
        }
    }

    /// Takes the payload and the FIN of a segment in the window. How many bytes came in order.
    pub(crate) fn take(&mut self, now: Time, segment: &Segment) -> u32 {
        if segment.length() == 0 {
            return 0;
        }
        if segment.bytes > 0 {
            self.take_mark(segment);
        }
        let end = segment.seq + segment.bytes;
        if segment.flags.has(Flags::FIN) && !end.is_after(self.edge) && self.fin.is_none() {
            self.fin = Some(end);
        }
        let (from, to) = (segment.seq, end.min(self.edge));
        let to = self.fin.map_or(to, |fin| to.min(fin));
        if from.is_before(self.next) && segment.bytes > 0 {
            self.duplicate = Some((from, to.min(self.next)));
            self.at_once = true;
        }
        let (from, before) = (from.max(self.next), self.next);
        if from.is_before(to) {
            self.insert(from, to);
        }
        let bytes = self.next.since(before);
        self.unread = self.unread.saturating_add(bytes);
        if self.fin == Some(self.next) {
            self.next = self.next + 1;
            self.edge = self.edge.max(self.next);
            self.at_once = true;
        }
        self.plan(now, segment, bytes);
        bytes
    }

    /// Decides when to acknowledge (RFC 9293 §3.8.6.3, RFC 5681 §4.2): at once what is out of order
    /// or fills a gap, otherwise every second full segment, or after a while.
    fn plan(&mut self, now: Time, segment: &Segment, bytes: u32) {
        let in_order = bytes == segment.bytes && self.blocks.is_empty();
        self.unacknowledged = self.unacknowledged.saturating_add(segment.bytes);
        self.largest = self.largest.max(segment.bytes);
        let many = self.unacknowledged >= self.largest.saturating_mul(2);
        match self.delay {
            Some(delay) if in_order && !many => {
                let at = now + delay;
                self.due = Some(self.due.map_or(at, |due| due.min(at)));
            }
            _ => self.at_once = true,
        }
    }

    fn insert(&mut self, mut from: Seq, mut to: Seq) {
        if from == self.next {
            self.next = to;
        } else {
            let touches = |&(a, b): &(Seq, Seq)| !a.is_after(to) && !b.is_before(from);
            let covered = |&(a, b): &(Seq, Seq)| !a.is_after(from) && !b.is_before(to);
            if let Some(&block) = self.blocks.iter().find(|block| covered(block)) {
                self.duplicate = Some((from, to));
                (from, to) = block;
            } else if self.blocks.len() >= BLOCKS_MAX && !self.blocks.iter().any(touches) {
                return;
            }
            // Blocks do not touch each other, so one pass joins all that the new one touches.
            let (mut first, mut last) = (from, to);
            self.blocks.retain(|block| {
                let joined = !block.0.is_after(to) && !block.1.is_before(from);
                if joined {
                    (first, last) = (first.min(block.0), last.max(block.1));
                }
                !joined
            });
            self.blocks.insert(0, (first, last));
        }
        let next = &mut self.next;
        while let Some(index) = self.blocks.iter().position(|block| !block.0.is_after(*next)) {
            *next = self.blocks.remove(index).1.max(*next);
        }
        if self.blocks.is_empty() {
            self.blocks = Vec::new();
        }
    }

    /// The application reads all that has arrived in order; how many bytes those are. The peer
    /// learns that the window opens where that is much (RFC 9293 §3.8.6.2.2).
    pub(crate) fn read(&mut self) -> u32 {
        let bytes = core::mem::take(&mut self.unread);
        let edge = self.next + self.buffer;
        let opened = if edge.is_after(self.edge) { edge.since(self.edge) } else { 0 };
        let known = self.edge.since(self.next);
        let closing = known < self.mss && opened >= self.mss.min(self.buffer / 2);
        let much = self.shown && opened >= (self.buffer / 2).max(2 * self.mss);
        self.at_once |= bytes > 0 && (closing || much) && !self.is_finished();
        bytes
    }

    /// Whether an acknowledgement is to leave now.
    pub(crate) fn owes(&self, now: Time) -> bool {
        self.at_once || self.due.is_some_and(|due| due <= now)
    }

    /// When an acknowledgement is due.
    pub(crate) fn deadline(&self) -> Option<Time> {
        if self.at_once || self.early.is_some() { Some(Time::ZERO) } else { self.due }
    }

    /// The acknowledgement that is to leave before all others.
    pub(crate) fn take_early(&mut self) -> Option<Early> {
        self.early.take()
    }

    /// The window to write into a segment that leaves now, and moves the edge.
    pub(crate) fn window(&mut self, scaled: bool) -> u16 {
        let scale = if scaled { self.scale } else { 0 };
        self.shown |= scaled;
        let free = self.next + self.buffer.saturating_sub(self.unread);
        let window = free.max(self.edge).since(self.next);
        // Rounded up, for the edge must not move back.
        let shown = window.div_ceil(1 << scale).min(u32::from(u16::MAX));
        self.edge = self.edge.max(self.next + (shown << scale));
        shown as u16
    }

    /// An acknowledgement leaves: nothing is owed any more.
    pub(crate) fn acknowledged(&mut self) {
        (self.unacknowledged, self.due, self.at_once) = (0, None, false);
    }

    /// The blocks of a segment that leaves: one that arrived twice first (RFC 2883 §4).
    pub(crate) fn sacks(&self) -> Sacks {
        let mut sacks = Sacks::default();
        if self.sack {
            self.duplicate
                .into_iter()
                .chain(self.blocks.iter().copied())
                .for_each(|block| sacks.push(block));
        }
        sacks
    }

    /// What arrived twice was reported.
    pub(crate) fn reported(&mut self) {
        self.duplicate = None;
    }
}
