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

/// Receiver of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Receiver {
    /// Next number expected (RCV.NXT).
    pub(crate) next: Seq,
    /// Right edge of the advertised window.
    edge: Seq,
    buffer: u32,
    /// Bytes received in order that the application has not read.
    unread: u32,
    pub(crate) scale: u8,
    mss: u32,
    /// Payload of the largest segment received, in bytes.
    largest: u32,
    /// Received blocks beyond `next`, the most recently changed first (RFC 2018 §4).
    blocks: Vec<(Seq, Seq)>,
    /// Number of the FIN, once one has arrived.
    fin: Option<Seq>,
    /// Duplicate data to report (RFC 2883).
    duplicate: Option<(Seq, Seq)>,
    sack: bool,
    delay: Option<Span>,
    pub(crate) echo: Echo,
    /// True if to send ECE: latched, or the mark of the last segment.
    pub(crate) experienced: bool,
    early: Option<Early>,
    /// Bytes received since the last acknowledgement.
    unacknowledged: u32,
    /// Deadline of the delayed acknowledgement.
    due: Option<Time>,
    /// True if an acknowledgement is due at once.
    at_once: bool,
    /// True if a scaled window has been advertised. A SYN advertises at most 64 KiB.
    shown: bool,
}

impl Receiver {
    /// Returns a receiver before the peer's SYN, with its window and the shift that fits it in 16
    /// bits.
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

    /// Initializes the receiver from the peer's SYN. `next` is the number after it.
    pub(crate) fn begin(&mut self, next: Seq, scaled: bool, sack: bool, echo: Echo) {
        (self.next, self.edge, self.sack, self.echo) = (next, next, sack, echo);
        if !scaled {
            self.scale = 0;
            self.buffer = self.buffer.min(u32::from(u16::MAX));
        }
    }

    /// Returns the heap memory in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.blocks.capacity() * size_of::<(Seq, Seq)>()
    }

    /// Returns whether all the peer's data and its FIN have arrived.
    pub(crate) fn is_finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.next == fin + 1)
    }

    /// Returns whether a segment lies in the window (RFC 9293 §3.10.7.4, first check).
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

    /// Records a segment outside the window; its duplicate data is reported (RFC 2883 §4).
    pub(crate) fn refuse(&mut self, segment: &Segment) {
        let to = (segment.seq + segment.bytes).min(self.next);
        if segment.bytes > 0 && segment.seq.is_before(to) {
            self.duplicate = Some((segment.seq, to));
        }
        self.at_once = true;
    }

    /// Schedules an immediate acknowledgement.
    pub(crate) fn acknowledge(&mut self) {
        self.at_once = true;
    }

    /// Processes the ECN mark of a segment with payload (RFC 3168 §6.1.3, RFC 8257 §3.2).
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
                // The start of a run of marks is acknowledged at once.
                self.at_once |= marked;
            }
            Echo::Exact => {}
        }
    }

    /// Processes payload and FIN of a segment in the window. Returns the number of bytes that came
    /// in order, and the part of the payload that is kept, which lies in the window.
    pub(crate) fn take(&mut self, now: Time, segment: &Segment) -> (u32, Range<u32>) {
        if segment.length() == 0 {
            return (0, 0..0);
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
        let kept = match from.is_before(to) && self.insert(from, to) {
            true => from.since(segment.seq)..to.since(segment.seq),
            false => 0..0,
        };
        let bytes = self.next.since(before);
        self.unread = self.unread.saturating_add(bytes);
        if self.fin == Some(self.next) {
            self.next = self.next + 1;
            self.edge = self.edge.max(self.next);
            self.at_once = true;
        }
        self.plan(now, segment, bytes);
        (bytes, kept)
    }

    /// Schedules the acknowledgement (RFC 9293 §3.8.6.3, RFC 5681 §4.2): at once for data that is
    /// out of order or fills a gap, otherwise for every second full segment or after the delay.
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

    /// Records received bytes. Returns whether they are kept: a block too many is not.
    fn insert(&mut self, mut from: Seq, mut to: Seq) -> bool {
        if from == self.next {
            self.next = to;
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
        let next = &mut self.next;
        while let Some(index) = self.blocks.iter().position(|block| !block.0.is_after(*next)) {
            *next = self.blocks.remove(index).1.max(*next);
        }
        if self.blocks.is_empty() {
            self.blocks = Vec::new();
        }
        true
    }

    /// Reads at most `limit` bytes that have arrived in order and returns their number. Advertises
    /// the window if it has opened far enough (RFC 9293 §3.8.6.2.2).
    pub(crate) fn read(&mut self, limit: u32) -> u32 {
        let bytes = self.unread.min(limit);
        self.unread -= bytes;
        let edge = self.next + self.buffer.saturating_sub(self.unread);
        let opened = if edge.is_after(self.edge) { edge.since(self.edge) } else { 0 };
        let known = self.edge.since(self.next);
        let closing = known < self.mss && opened >= self.mss.min(self.buffer / 2);
        let much = self.shown && opened >= (self.buffer / 2).max(2 * self.mss);
        self.at_once |= bytes > 0 && (closing || much) && !self.is_finished();
        bytes
    }

    /// Returns whether an acknowledgement is due.
    pub(crate) fn owes(&self, now: Time) -> bool {
        self.at_once || self.due.is_some_and(|due| due <= now)
    }

    /// Returns when an acknowledgement is due.
    pub(crate) fn deadline(&self) -> Option<Time> {
        if self.at_once || self.early.is_some() { Some(Time::ZERO) } else { self.due }
    }

    /// Takes the acknowledgement that is sent before all others.
    pub(crate) fn take_early(&mut self) -> Option<Early> {
        self.early.take()
    }

    /// Returns the window field of a segment sent now, and advances the right edge.
    pub(crate) fn window(&mut self, scaled: bool) -> u16 {
        let scale = if scaled { self.scale } else { 0 };
        self.shown |= scaled;
        let free = self.next + self.buffer.saturating_sub(self.unread);
        let window = free.max(self.edge).since(self.next);
        // Rounded up: the edge must not move back.
        let shown = window.div_ceil(1 << scale).min(u32::from(u16::MAX));
        self.edge = self.edge.max(self.next + (shown << scale));
        shown as u16
    }

    /// Records a sent acknowledgement and clears the pending one.
    pub(crate) fn acknowledged(&mut self) {
        (self.unacknowledged, self.due, self.at_once) = (0, None, false);
    }

    /// Returns the SACK blocks of an outgoing segment, a duplicate first (RFC 2883 §4).
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

    /// Records that the duplicate was reported.
    pub(crate) fn reported(&mut self) {
        self.duplicate = None;
    }
}
