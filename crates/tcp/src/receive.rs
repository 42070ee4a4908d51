//! The receiving half: reassembly, and the content and timing of acknowledgements.
//!
//! The payload is a byte count, so out-of-order data costs one block of numbers. The window never
//! shrinks: its right edge only moves forward (RFC 9293 §3.8.6).

use crate::config::Config;
use crate::segment::{Flags, Mark, Sacks, Segment, Seq};
use alloc::vec::Vec;
use axon_wire::{Span, Time};
use core::ops::Range;

/// Maximum number of blocks. Data that would need one more is discarded as if lost.
const BLOCKS_MAX: usize = 1024;

/// Echo mode of congestion marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Echo {
    /// No echo: ECN was not negotiated.
    #[default]
    None,
    /// ECE from a mark until CWR arrives (RFC 3168 §6.1.3).
    Latched,
    /// ECE exactly for the marked segments (RFC 8257 §3.2).
    Exact,
}

/// Acknowledgement that was due before the last segment, and is sent before all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Early {
    pub(crate) ack: Seq,
    pub(crate) echo: bool,
}

/// Advertised window.
#[derive(Clone, Debug, Default)]
struct Window {
    /// Right edge.
    edge: Seq,
    buffer: u32,
    /// Bytes received in order that the application has not read.
    unread: u32,
    scale: u8,
    /// True if the peer's SYN carries the window scale option.
    scaled: bool,
    mss: u32,
    /// True if a scaled window has been advertised. A SYN advertises at most 64 KiB.
    shown: bool,
}

/// Data received out of order.
#[derive(Clone, Debug, Default)]
struct Blocks {
    /// Received blocks beyond the next number, the most recently changed first (RFC 2018 §4).
    blocks: Vec<(Seq, Seq)>,
    /// Duplicate data to report (RFC 2883).
    duplicate: Option<(Seq, Seq)>,
}

/// Congestion marks and their echo.
#[derive(Clone, Debug, Default)]
struct Marks {
    echo: Echo,
    /// True if to send ECE: latched, or the mark of the last segment.
    experienced: bool,
    early: Option<Early>,
}

/// Acknowledgement to send.
#[derive(Clone, Debug, Default)]
struct Pending {
    delay: Option<Span>,
    /// Payload of the largest segment received, in bytes.
    largest: u32,
    /// Bytes received since the last acknowledgement.
    unacknowledged: u32,
    /// Deadline of the delayed acknowledgement.
    due: Option<Time>,
    /// True if an acknowledgement is due at once.
    at_once: bool,
}

/// Receiver of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Receiver {
    /// Next number expected (RCV.NXT).
    next: Seq,
    window: Window,
    blocks: Blocks,
    /// Number of the FIN, once one has arrived.
    fin: Option<Seq>,
    sack: bool,
    marks: Marks,
    pending: Pending,
}

impl Receiver {
    /// Returns a receiver before the peer's SYN, with its window and the shift that fits it in 16
    /// bits.
    pub(crate) fn new(config: &Config) -> Receiver {
        let buffer = config.window();
        let bits = u32::BITS - buffer.leading_zeros();
        let scale = bits.saturating_sub(16).min(14) as u8;
        let mss = u32::from(config.mss);
        Receiver {
            window: Window { buffer, scale, mss, ..Window::default() },
            pending: Pending { delay: config.ack_delay, ..Pending::default() },
            ..Receiver::default()
        }
    }

    /// Initializes the receiver from the peer's SYN. `next` is the number after it.
    pub(crate) fn begin(&mut self, next: Seq, scaled: bool, sack: bool, echo: Echo) {
        (self.next, self.window.edge, self.sack, self.marks.echo) = (next, next, sack, echo);
        self.window.scaled = scaled;
        if !scaled {
            self.window.scale = 0;
            self.window.buffer = self.window.buffer.min(u32::from(u16::MAX));
        }
    }

    /// Returns the next number expected.
    pub(crate) fn next(&self) -> Seq {
        self.next
    }

    /// Returns the shift of the window field for the option of a SYN. A SYN that `answers` has the
    /// option only if the peer's has.
    pub(crate) fn scale(&self, answers: bool) -> Option<u8> {
        (!answers || self.window.scaled).then_some(self.window.scale)
    }

    /// Returns whether to send ECE.
    pub(crate) fn echoes(&self) -> bool {
        self.marks.experienced
    }

    /// Returns the heap memory in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.blocks.blocks.capacity() * size_of::<(Seq, Seq)>()
    }

    /// Returns whether all the peer's data and its FIN have arrived.
    pub(crate) fn is_finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.next == fin + 1)
    }

    /// Returns whether a segment lies in the window (RFC 9293 §3.10.7.4, first check).
    pub(crate) fn accepts(&self, segment: &Segment) -> bool {
        let (window, length) = (self.window.edge.since(self.next), segment.length());
        let within = |seq: Seq| seq.since(self.next) < window;
        if length == 0 {
            return segment.seq == self.next || within(segment.seq);
        }
        let last = segment.seq + (length - 1);
        let spans = !segment.seq.is_after(self.next) && !last.is_before(self.next);
        window > 0 && (within(segment.seq) || within(last) || spans)
    }

    /// Records a segment outside the window; its duplicate data is reported (RFC 2883 §4).
    pub(crate) fn refuse(&mut self, segment: &Segment) {
        let to = (segment.seq + segment.bytes).min(self.next);
        if segment.bytes > 0 && segment.seq.is_before(to) {
            self.blocks.duplicate = Some((segment.seq, to));
        }
        self.pending.at_once = true;
    }

    /// Schedules an immediate acknowledgement.
    pub(crate) fn acknowledge(&mut self) {
        self.pending.at_once = true;
    }

    /// Processes payload and FIN of a segment in the window. Returns the number of bytes that came
    /// in order, and the part of the payload that is kept, which lies in the window.
    pub(crate) fn take(&mut self, now: Time, segment: &Segment) -> (u32, Range<u32>) {
        if segment.length() == 0 {
            return (0, 0..0);
        }
        if segment.bytes > 0 {
            self.marks.take(segment, self.next, &mut self.pending);
        }
        let end = segment.seq + segment.bytes;
        if segment.flags.has(Flags::FIN) && !end.is_after(self.window.edge) && self.fin.is_none() {
            self.fin = Some(end);
        }
        let (from, to) = (segment.seq, end.min(self.window.edge));
        let to = self.fin.map_or(to, |fin| to.min(fin));
        if from.is_before(self.next) && segment.bytes > 0 {
            self.blocks.duplicate = Some((from, to.min(self.next)));
            self.pending.at_once = true;
        }
        let (from, before) = (from.max(self.next), self.next);
        let kept = match from.is_before(to) && self.blocks.insert(&mut self.next, from, to) {
            true => from.since(segment.seq)..to.since(segment.seq),
            false => 0..0,
        };
        let bytes = self.next.since(before);
        self.window.unread = self.window.unread.saturating_add(bytes);
        if self.fin == Some(self.next) {
            self.next = self.next + 1;
            self.window.edge = self.window.edge.max(self.next);
            self.pending.at_once = true;
        }
        let in_order = bytes == segment.bytes && self.blocks.blocks.is_empty();
        self.pending.plan(now, segment.bytes, in_order);
        (bytes, kept)
    }

    /// Reads at most `limit` bytes that have arrived in order and returns their number. Advertises
    /// the window if it has opened far enough (RFC 9293 §3.8.6.2.2).
    pub(crate) fn read(&mut self, limit: u32) -> u32 {
        let window = &mut self.window;
        let bytes = window.unread.min(limit);
        window.unread -= bytes;
        let edge = self.next + window.buffer.saturating_sub(window.unread);
        let opened = if edge.is_after(window.edge) { edge.since(window.edge) } else { 0 };
        let known = window.edge.since(self.next);
        let closing = known < window.mss && opened >= window.mss.min(window.buffer / 2);
        let much = window.shown && opened >= (window.buffer / 2).max(2 * window.mss);
        self.pending.at_once |= bytes > 0 && (closing || much) && !self.is_finished();
        bytes
    }

    /// Returns whether an acknowledgement is due.
    pub(crate) fn owes(&self, now: Time) -> bool {
        self.pending.at_once || self.pending.due.is_some_and(|due| due <= now)
    }

    /// Returns when an acknowledgement is due.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let at_once = self.pending.at_once || self.marks.early.is_some();
        if at_once { Some(Time::ZERO) } else { self.pending.due }
    }

    /// Takes the acknowledgement that is sent before all others.
    pub(crate) fn take_early(&mut self) -> Option<Early> {
        self.marks.early.take()
    }

    /// Returns the window field of a segment sent now, and advances the right edge. That of a SYN
    /// is not scaled.
    pub(crate) fn window(&mut self, syn: bool) -> u16 {
        let state = &mut self.window;
        let scaled = state.scaled && !syn;
        let scale = if scaled { state.scale } else { 0 };
        state.shown |= scaled;
        let free = self.next + state.buffer.saturating_sub(state.unread);
        let window = free.max(state.edge).since(self.next);
        // Rounded up: the edge must not move back.
        let shown = window.div_ceil(1 << scale).min(u32::from(u16::MAX));
        state.edge = state.edge.max(self.next + (shown << scale));
        shown as u16
    }

    /// Records a sent acknowledgement and clears the pending one.
    pub(crate) fn acknowledged(&mut self) {
        self.pending = Pending { unacknowledged: 0, due: None, at_once: false, ..self.pending };
    }

    /// Returns the SACK blocks of an outgoing segment, a duplicate first (RFC 2883 §4).
    pub(crate) fn sacks(&self) -> Sacks {
        let mut sacks = Sacks::default();
        if self.sack {
            self.blocks
                .duplicate
                .into_iter()
                .chain(self.blocks.blocks.iter().copied())
                .for_each(|block| sacks.push(block));
        }
        sacks
    }

    /// Records that the duplicate was reported.
    pub(crate) fn reported(&mut self) {
        self.blocks.duplicate = None;
    }
}

impl Blocks {
    /// Records received bytes. Returns whether they are kept: a block too many is not.
    /// Advances `next` over what is in order.
    fn insert(&mut self, next: &mut Seq, mut from: Seq, mut to: Seq) -> bool {
        if from == *next {
            *next = to;
        } else {
            let touches = |&(a, b): &(Seq, Seq)| !a.is_after(to) && !b.is_before(from);
            let covered = |&(a, b): &(Seq, Seq)| !a.is_after(from) && !b.is_before(to);
            if let Some(&block) = self.blocks.iter().find(|block| covered(block)) {
                self.duplicate = Some((from, to));
                (from, to) = block;
            } else if self.blocks.len() >= BLOCKS_MAX && !self.blocks.iter().any(touches) {
                return false;
            }
            // Blocks do not touch, so one pass merges all that the new block touches.
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
        while let Some(index) = self.blocks.iter().position(|block| !block.0.is_after(*next)) {
            *next = self.blocks.remove(index).1.max(*next);
        }
        if self.blocks.is_empty() {
            self.blocks = Vec::new();
        }
        true
    }
}

impl Marks {
    /// Processes the ECN mark of a segment with payload (RFC 3168 §6.1.3, RFC 8257 §3.2).
    fn take(&mut self, segment: &Segment, next: Seq, pending: &mut Pending) {
        let marked = segment.mark == Mark::Experienced;
        match self.echo {
            Echo::None => {}
            Echo::Latched => {
                self.experienced = marked || self.experienced && !segment.flags.has(Flags::CWR);
            }
            Echo::Exact if marked != self.experienced => {
                if pending.unacknowledged > 0 {
                    self.early = Some(Early { ack: next, echo: self.experienced });
                    pending.unacknowledged = 0;
                }
                self.experienced = marked;
                // The start of a run of marks is acknowledged at once.
                pending.at_once |= marked;
            }
            Echo::Exact => {}
        }
    }
}

impl Pending {
    /// Schedules the acknowledgement (RFC 9293 §3.8.6.3, RFC 5681 §4.2): at once for data that is
    /// out of order or fills a gap, otherwise for every second full segment or after the delay.
    fn plan(&mut self, now: Time, bytes: u32, in_order: bool) {
        self.unacknowledged = self.unacknowledged.saturating_add(bytes);
        self.largest = self.largest.max(bytes);
        let many = self.unacknowledged >= self.largest.saturating_mul(2);
        match self.delay {
            Some(delay) if in_order && !many => {
                let at = now + delay;
                self.due = Some(self.due.map_or(at, |due| due.min(at)));
            }
            _ => self.at_once = true,
        }
    }
}
