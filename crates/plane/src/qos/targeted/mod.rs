//! Flow control by the length of a queue, with targeting (paper 002 chapter 7): selection of the
//! senders to pause, and the end of their pauses.
//!
//! A queue holds the frames for one port in one traffic class; its *sources* are the ingress ports
//! of these frames. The memory (`shared_buffer.rs`) sends XOFF to a sender when *its own* frames
//! fill their share; this module does when a *queue* is too long, regardless of the sources that
//! filled it.
//!
//! A queue has watermarks. When a frame takes it to the high one (HW), all sources with frames in
//! it are paused; the room between that watermark and `bytes_max` is for frames in flight. When it
//! has fallen to the low one (LW), all get XON. A pause without a low watermark ends when its
//! quanta expire. With targeting, a frame that takes the queue to the target watermark (TW) causes
//! a pause of selected sources only:
//!
//! - the source of a frame drawn from the queue (appendix A, `sampling.rs`), for the time of one
//!   request at most: if the others just fill the wire, the queue does not fall to the low
//!   watermark;
//! - sources with more than an even share of the frames in it (appendix B, `fair.rs`);
//! - the source of the frame itself, if fair scheduling would have left it the largest backlog (not
//!   in the paper, `max_min.rs`).
//!
//! The high watermark is the safety net of all three. The paper pauses all ports there; here it is
//! those with frames in the queue, which is the same where all send, and a port that joins above it
//! is paused at its first frame. So no sender waits for a queue that it has no frames in, and the
//! buffer dependencies of `axon prove` stay those of the routes.

mod fair;
mod max_min;
mod sampling;

use crate::ports::shared_buffer::Owner;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use axon_node::random::Random;
use axon_wire::priority::{PRIORITIES, PrioritySet};
use axon_wire::{Bytes, PortNo, Span, Time};
use max_min::MaxMin;

/// Watermarks of every queue of a switch, in bytes, and the actions at them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watermarks {
    /// LW: queue length in bytes at which all paused sources of the queue get XON. Without it each
    /// pause ends when its quanta expire, and is not repeated.
    pub low: Option<Bytes>,
    /// Selection of sources to pause before the queue is at `high`; without it, none.
    pub targeting: Option<Targeting>,
    /// HW: queue length in bytes at which all sources of the queue get XOFF. The room above it must
    /// hold the frames in flight of each of them (reference: IEEE 802.1Q annex N, paper 002
    /// equation 7.3).
    pub high: Bytes,
    /// Maximum queue length; frames beyond are dropped as [`Drop::HeadroomFull`](axon_node::Drop).
    pub bytes_max: Bytes,
}

/// Selection of sources to pause at the target watermark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Targeting {
    /// TW: queue length in bytes.
    pub target: Bytes,
    /// Criterion by which sources are selected.
    pub choice: Choice,
}

/// Criterion by which sources are selected at the target watermark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The source of a frame drawn uniformly from the queue (appendix A). It is paused for the time
    /// of one request at most.
    Sampled {
        /// Seed of the draw.
        seed: u64,
        /// Bytes that arrive at a queue above the watermark between two draws. Zero for a draw with
        /// every frame, as in appendix A; the bytes that the sources can have in flight, to see the
        /// effect of a draw before the next one.
        interval: Bytes,
    },
    /// Sources with more frames in the queue than all frames over the number of its sources
    /// (appendix B).
    FairBandwidth,
    /// The source of each arriving frame, if its fair backlog is not below the mean.
    MaxMin,
}

/// Errors in watermarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WatermarkFault {
    /// The watermarks do not rise from the low one to the longest queue.
    #[error("expected low < target < high < the longest queue")]
    Order,
}

impl Watermarks {
    /// Checks that the watermarks rise.
    ///
    /// # Errors
    /// They do not rise.
    pub fn check(&self) -> Result<(), WatermarkFault> {
        let watermarks = [self.low, self.targeting.map(|targeting| targeting.target)];
        let watermarks = watermarks.into_iter().flatten().chain([self.high, self.bytes_max]);
        let rise = watermarks.clone().zip(watermarks.skip(1)).all(|(below, above)| below < above);
        if rise { Ok(()) } else { Err(WatermarkFault::Order) }
    }
}

/// Request to the sender at a port, for these priorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SenderRequest {
    pub(crate) port: PortNo,
    pub(crate) priorities: PrioritySet,
    pub(crate) kind: RequestKind,
}

/// Kind of a request to a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// Pause until XON.
    Xoff,
    /// Pause for the time of one request.
    XoffOnce,
    /// Resume.
    Xon,
}

/// All queues of a switch.
#[derive(Clone, Debug)]
pub(crate) struct Queues {
    watermarks: Watermarks,
    /// Queues by egress port and class.
    queues: Vec<[Queue; PRIORITIES]>,
    random: Random,
    /// Arrival time of the last frame: a source whose pause expired by then gets XON.
    now: Time,
    /// Unsent requests, in order.
    requests: VecDeque<SenderRequest>,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    bytes: u64,
    frames: u64,
    /// Sources by ingress port, created at first use.
    sources: Vec<Source>,
    /// Sources paused until XON, by number.
    held: Vec<usize>,
    backlogs: MaxMin,
    /// Bytes to arrive before the next frame is drawn.
    until_draw: u64,
}

/// Frames of one ingress port in one queue.
#[derive(Clone, Copy, Debug, Default)]
struct Source {
    frames: u64,
    /// Priorities that the source pauses until XON.
    held: PrioritySet,
    /// End of a pause that is independent of the queue.
    until: Time,
}

impl Queues {
    /// Returns empty queues, with watermarks that were checked.
    pub(crate) fn new(watermarks: Watermarks, ports: usize) -> Queues {
        let seed = match watermarks.targeting.map(|targeting| targeting.choice) {
            Some(Choice::Sampled { seed, .. }) => seed,
            _ => 0,
        };
        let queues = (0..ports).map(|_| Default::default()).collect();
        Queues {
            watermarks,
            queues,
            random: Random::new(seed),
            now: Time::ZERO,
            requests: VecDeque::new(),
        }
    }

    /// Returns whether the queue may grow by `bytes` bytes.
    pub(crate) fn has_room(&self, owner: Owner, bytes: u64) -> bool {
        let queue = &self.queues[owner.egress.index()][owner.class.index()];
        queue.bytes + bytes <= self.watermarks.bytes_max.0
    }

    /// Records that a frame joins a queue, for these priorities. A pause requested now lasts for
    /// `stop`.
    pub(crate) fn arrived(
        &mut self,
        now: Time,
        (owner, priorities): (Owner, PrioritySet),
        bytes: u64,
        stop: Span,
    ) {
        self.now = now;
        let Queues { watermarks, queues, random, requests, .. } = self;
        let queue = &mut queues[owner.egress.index()][owner.class.index()];
        let source = owner.ingress.index();
        queue.join(source, bytes);
        let hold = watermarks.low.map(|_| priorities);
        let mut tell = |queue: &mut Queue, source, until| {
            let until = if hold.is_some() { until } else { now + stop };
            if let Some(kind) = queue.stop(now, source, (hold, until)) {
                requests.push_back(SenderRequest { port: PortNo(source as u16), priorities, kind });
            }
        };
        if queue.bytes >= watermarks.high.0 {
            for source in 0..queue.sources.len() {
                if queue.sources[source].frames > 0 {
                    tell(queue, source, Time::MAX);
                }
            }
            return;
        }
        let Some(targeting) = watermarks.targeting.filter(|at| queue.bytes >= at.target.0) else {
            queue.until_draw = 0;
            return;
        };
        match targeting.choice {
            Choice::Sampled { interval, .. } => {
                if queue.is_to_draw(bytes, interval) {
                    let frames = queue.sources.iter().map(|source| source.frames);
                    tell(queue, sampling::draw(random, frames, queue.frames), now + stop);
                }
            }
            Choice::FairBandwidth => {
                let sources = fair::sources(queue.sources.iter().map(|source| source.frames));
                for source in 0..queue.sources.len() {
                    if fair::exceeds(queue.sources[source].frames, queue.frames, sources) {
                        tell(queue, source, Time::MAX);
                    }
                }
            }
            Choice::MaxMin => {
                if queue.backlogs.is_large(source, queue.bytes) {
                    tell(queue, source, Time::MAX);
                }
            }
        }
    }

    /// Records that a frame has left its queue.
    pub(crate) fn left(&mut self, owner: Owner, bytes: u64) {
        let Queues { watermarks, queues, requests, now, .. } = self;
        let queue = &mut queues[owner.egress.index()][owner.class.index()];
        queue.leave(owner.ingress.index(), bytes);
        let Some(low) = watermarks.low else { return };
        if queue.held.is_empty() {
            return;
        }
        let all = queue.bytes <= low.0;
        let some = |at: Targeting| at.choice == Choice::MaxMin && queue.bytes < at.target.0;
        let some = watermarks.targeting.is_some_and(some);
        // Paused sources share the low watermark: together they keep the wire busy.
        let part = low.0 / queue.held.len() as u64;
        let Queue { held, sources, backlogs, .. } = queue;
        held.retain(|&source| {
            let over = sources[source].until <= *now;
            let goes_on = all || over || some && backlogs.of(source) <= part;
            if goes_on {
                requests.push_back(sources[source].release(source));
            }
            !goes_on
        });
    }

    /// Clears the queues of a port, whose frames move to other classes that start afresh. Paused
    /// sources get XON.
    pub(crate) fn clear(&mut self, egress: PortNo) {
        for queue in &mut self.queues[egress.index()] {
            let queue = core::mem::take(queue);
            let held = queue.held.iter().map(|&source| (source, queue.sources[source]));
            self.requests.extend(held.map(|(number, mut source)| source.release(number)));
        }
    }

    /// Takes the next request to a sender, in order.
    pub(crate) fn next_request(&mut self) -> Option<SenderRequest> {
        self.requests.pop_front()
    }
}

impl Queue {
    fn join(&mut self, source: usize, bytes: u64) {
        if source >= self.sources.len() {
            self.sources.resize_with(source + 1, Source::default);
        }
        self.bytes += bytes;
        self.frames += 1;
        self.sources[source].frames += 1;
        self.backlogs.join(source, bytes);
    }

    fn leave(&mut self, source: usize, bytes: u64) {
        self.bytes -= bytes;
        self.frames -= 1;
        self.sources[source].frames -= 1;
        self.backlogs.serve(bytes);
    }

    /// Returns whether a frame is to be drawn now that one of `bytes` has arrived.
    fn is_to_draw(&mut self, bytes: u64, interval: Bytes) -> bool {
        let now = self.until_draw == 0;
        self.until_draw = if now { interval.0 } else { self.until_draw.saturating_sub(bytes) };
        now
    }

    /// Pauses a source until a time, or until XON if it is to be held; returns the request to its
    /// sender, if that is new.
    fn stop(
        &mut self,
        now: Time,
        source: usize,
        (hold, until): (Option<PrioritySet>, Time),
    ) -> Option<RequestKind> {
        let state = &mut self.sources[source];
        if let Some(priorities) = hold {
            if !state.held.is_empty() {
                // A source paused at the high watermark waits for the low one.
                state.until = state.until.max(until);
                return None;
            }
            (state.held, state.until) = (priorities, until);
            self.held.push(source);
            return Some(RequestKind::Xoff);
        }
        if state.until > now {
            return None;
        }
        state.until = until;
        Some(RequestKind::XoffOnce)
    }
}

impl Source {
    /// Resumes the source with this number; returns the request to its sender.
    fn release(&mut self, number: usize) -> SenderRequest {
        let priorities = core::mem::take(&mut self.held);
        SenderRequest { port: PortNo(number as u16), priorities, kind: RequestKind::Xon }
    }
}

#[cfg(test)]
mod tests;
