//! Flow control by the length of a queue, with targeting (paper 002 chapter 7): which senders
//! pause, and until when.
//!
//! A queue is what waits for one port in one traffic class; its *sources* are the ports that its
//! frames came in by. The memory (`memory.rs`) sends XOFF to a sender when *its own* frames fill
//! their share; this does when a *queue* is too long, whoever filled it.
//!
//! In plain English: a queue has watermarks. When a frame takes it to the high one (HW), all
//! sources that have frames in it are paused; between that watermark and `bytes_max` is room
//! for what is in flight. When it has sunk to the low one (LW), all get XON. A pause without a
//! low watermark ends when its quanta are over. With targeting, a frame that takes the queue to
//! the target watermark (TW) has only some sources paused:
//!
//! * one whose frame is drawn from the queue (appendix A, `sampling.rs`), for no longer than one
//!   request says: if the others just fill the wire, the queue does not sink to the low watermark;
//! * those with more than an even part of the frames in it (appendix B, `fair.rs`);
//! * that of the frame itself, if fair scheduling would have left it the largest backlog (ours,
//!   `max_min.rs`).
//!
//! The high watermark stays the safety net of all three. The paper pauses all ports there;
//! here it is those with frames in the queue, which is the same where all send, and a port that
//! joins above it is paused at its first frame. So no sender waits for a queue that none of its
//! frames go to, and the buffer dependencies of `axon prove` stay those of the routes.

mod fair;
mod max_min;
mod sampling;

use crate::ports::memory::Owner;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use axon_node::random::Random;
use axon_wire::priority::{PRIORITIES, PrioritySet};
use axon_wire::{Bytes, PortNo, Span, Time};
use max_min::MaxMin;

/// The watermarks of every queue of a switch, in bytes, and what happens at them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watermarks {
    /// LW: at this, in bytes, all paused sources of the queue get XON. Without it each pause ends
    /// when its quanta are over, and is not repeated.
    pub low: Option<Bytes>,
    /// Which sources pause before the queue is at `high`; without it, none.
    pub targeting: Option<Targeting>,
    /// HW: at this, in bytes, all sources of the queue get XOFF. Above it there must be room for
    /// what each of them has in flight (reference: IEEE 802.1Q annex N, paper 002 equation 7.3).
    pub high: Bytes,
    /// No frame may make the queue longer; it ends as [`Drop::HeadroomFull`](axon_node::Drop).
    pub bytes_max: Bytes,
}

/// Which sources pause at the target watermark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Targeting {
    /// TW, in bytes of the queue.
    pub target: Bytes,
    /// How the sources are chosen.
    pub choice: Choice,
}

/// How sources are chosen at the target watermark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// That of a frame drawn from the queue, each with the same chance (appendix A). It pauses
    /// for the time of one request at most.
    Sampled {
        /// Of the draw.
        seed: u64,
        /// Bytes that come to a queue above the watermark between two draws. Zero for a draw with
        /// every frame, as appendix A has it; what the sources can have in flight, to see what
        /// became of a draw before the next one.
        interval: Bytes,
    },
    /// Those with more than the frames in the queue over the number of its sources
    /// (appendix B).
    FairBandwidth,
    /// That of each arriving frame, if its backlog under fair scheduling is not below the mean.
    MaxMin,
}

/// Why watermarks are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WatermarkFault {
    /// They do not rise from the low one to the longest queue.
    #[error("expected low < target < high < the longest queue")]
    Order,
}

impl Watermarks {
    /// Checks that the watermarks rise.
    ///
    /// # Errors
    /// What does not.
    pub fn check(&self) -> Result<(), WatermarkFault> {
        let watermarks = [self.low, self.targeting.map(|targeting| targeting.target)];
        let watermarks = watermarks.into_iter().flatten().chain([self.high, self.bytes_max]);
        let rise = watermarks.clone().zip(watermarks.skip(1)).all(|(below, above)| below < above);
        if rise { Ok(()) } else { Err(WatermarkFault::Order) }
    }
}

/// A request to the sender at a port, for these priorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SenderRequest {
    pub(crate) port: PortNo,
    pub(crate) priorities: PrioritySet,
    pub(crate) kind: RequestKind,
}

/// What is requested of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// Pause, until XON.
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
    /// By egress port and class.
    queues: Vec<[Queue; PRIORITIES]>,
    random: Random,
    /// When a frame came last: a source whose time was over then gets XON.
    now: Time,
    /// Requests that are still to be sent, in order.
    requests: VecDeque<SenderRequest>,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    bytes: u64,
    frames: u64,
    /// By ingress port, made at first use.
    sources: Vec<Source>,
    /// Sources that are held, by number.
    held: Vec<usize>,
    backlogs: MaxMin,
    /// Bytes that come before the next frame is drawn.
    until_draw: u64,
}

/// Frames of one ingress port in one queue.
#[derive(Clone, Copy, Debug, Default)]
struct Source {
    frames: u64,
    /// The priorities that it pauses until XON.
    held: PrioritySet,
    /// It pauses until then, whatever becomes of the queue.
    until: Time,
}

impl Queues {
    /// Empty queues, with watermarks that were checked.
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

    /// Whether the queue may become longer by `bytes` bytes.
    pub(crate) fn has_room(&self, owner: Owner, bytes: u64) -> bool {
        let queue = &self.queues[owner.egress.index()][owner.class.index()];
        queue.bytes + bytes <= self.watermarks.bytes_max.0
    }

    /// A frame waits in a queue from now on, for these priorities. A pause requested now lasts
    /// for `stop`.
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

    /// A frame has left its queue.
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
        // Several that are paused share the low watermark: together they keep the wire busy.
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

    /// Forgets what waits for a port: its frames go to other classes, which begin anew. Whoever
    /// was paused gets XON.
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

    /// Whether a frame is to be drawn now that one of `bytes` has come.
    fn is_to_draw(&mut self, bytes: u64, interval: Bytes) -> bool {
        let now = self.until_draw == 0;
        self.until_draw = if now { interval.0 } else { self.until_draw.saturating_sub(bytes) };
        now
    }

    /// A source is to pause until then, or until XON if it is to be held:
    /// the request to its sender, if that is new.
    fn stop(
        &mut self,
        now: Time,
        source: usize,
        (hold, until): (Option<PrioritySet>, Time),
    ) -> Option<RequestKind> {
        let state = &mut self.sources[source];
        if let Some(priorities) = hold {
            if !state.held.is_empty() {
                // Once at the high watermark, it waits for the low one.
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
    /// Resumes a source, whose number this is: the request to its sender.
    fn release(&mut self, number: usize) -> SenderRequest {
        let priorities = core::mem::take(&mut self.held);
        SenderRequest { port: PortNo(number as u16), priorities, kind: RequestKind::Xon }
    }
}

#[cfg(test)]
mod tests;
