//! Flow control by the length of a queue, with targeting (paper 002 chapter 7): who is to stop,
//! and until when.
//!
//! A queue is what waits for one port in one traffic class; its *sources* are the ports that its
//! frames came in by. The memory (`memory.rs`) asks a sender to stop when *its own* frames fill
//! their share; this asks when a *queue* is too long, whoever filled it.
//!
//! In plain English: a queue has marks. When a frame takes it to the high mark (HW), all sources
//! that have frames in it are to stop; between the bytes above that mark and `bytes_max` is room
//! for what is on its way. When it has sunk to the low mark (LW), all may go on. A stop without a
//! low mark ends by itself when its time is over. With targeting, a frame that takes the queue to
//! the target mark (TW) has only some sources stopped:
//!
//! * one whose frame is drawn from the queue (appendix A, `sampling.rs`), for no longer than one
//!   request says: if the others just fill the wire, the queue does not sink to the low mark;
//! * those with more than an even part of the frames in it (appendix B, `fair.rs`);
//! * that of the frame itself, if fair turns would have left it the largest backlog (ours,
//!   `max_min.rs`).
//!
//! The high mark stays the safety net of all three. The paper asks all ports at the high mark;
//! here it is those with frames in the queue, which is the same where all send, and a port that
//! joins above the mark is asked at its first frame. So nobody waits for a queue that none of its
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

/// The marks of every queue of a switch, and what happens at them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watermarks {
    /// LW: a queue that has sunk to this lets its sources go on. Without it each stop ends when
    /// its time is over, and is not told again.
    pub low: Option<Bytes>,
    /// Who is to stop before the queue is at `high`; without it, nobody.
    pub targeting: Option<Targeting>,
    /// HW: at this, all sources of the queue are to stop. Above it there must be room for what
    /// each of them has under way (reference: IEEE 802.1Q annex N, paper 002 equation 7.3).
    pub high: Bytes,
    /// No frame may make the queue longer; it ends as [`Drop::HeadroomFull`](axon_node::Drop).
    pub bytes_max: Bytes,
}

/// Who is to stop at the target mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Targeting {
    /// TW.
    pub target: Bytes,
    /// How the sources are chosen.
    pub choice: Choice,
}

/// How sources are chosen at the target mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// That of a frame drawn from the queue, each with the same chance (appendix A). It stands
    /// still for the time of one request at most.
    Sampled {
        /// Of the draw.
        seed: u64,
        /// So much comes to a queue above the mark between two draws. Zero for a draw with
        /// every frame, as appendix A has it; what the sources can have under way, to see what
        /// became of a draw before the next one.
        interval: Bytes,
    },
    /// Those with more than the frames in the queue over the number of its sources
    /// (appendix B).
    FairBandwidth,
    /// That of each arriving frame, if its backlog under fair turns is not below the mean.
    MaxMin,
}

/// Why marks are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WatermarkFault {
    /// They do not rise from the low one to the longest queue.
    #[error("expected low < target < high < the longest queue")]
    Order,
}

impl Watermarks {
    /// Looks whether the marks make sense.
    ///
    /// # Errors
    /// What does not.
    pub fn check(&self) -> Result<(), WatermarkFault> {
        let marks = [self.low, self.targeting.map(|targeting| targeting.target)];
        let marks = marks.into_iter().flatten().chain([self.high, self.bytes_max]);
        let rise = marks.clone().zip(marks.skip(1)).all(|(below, above)| below < above);
        if rise { Ok(()) } else { Err(WatermarkFault::Order) }
    }
}

/// What the sender at a port is to be told of these priorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) port: PortNo,
    pub(crate) priorities: PrioritySet,
    pub(crate) wish: Wish,
}

/// What a sender is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Stop, until told to go on.
    Stop,
    /// Stop for the time of one request.
    StopOnce,
    /// Go on.
    GoOn,
}

/// All queues of a switch.
#[derive(Clone, Debug)]
pub(crate) struct Queues {
    marks: Watermarks,
    /// By egress port and class.
    queues: Vec<[Queue; PRIORITIES]>,
    random: Random,
    /// When a frame came last: whose time was over then may go on.
    now: Time,
    /// What nobody has been told yet.
    told: VecDeque<Told>,
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
    /// What it is to stop until told otherwise.
    held: PrioritySet,
    /// It is to stop until then, whatever becomes of the queue.
    until: Time,
}

impl Queues {
    /// Empty queues, with marks that were checked.
    pub(crate) fn new(marks: Watermarks, ports: usize) -> Queues {
        let seed = match marks.targeting.map(|targeting| targeting.choice) {
            Some(Choice::Sampled { seed, .. }) => seed,
            _ => 0,
        };
        let queues = (0..ports).map(|_| Default::default()).collect();
        Queues { marks, queues, random: Random::new(seed), now: Time::ZERO, told: VecDeque::new() }
    }

    /// Whether the queue may become longer by `bytes` bytes.
    pub(crate) fn has_room(&self, owner: Owner, bytes: u64) -> bool {
        let queue = &self.queues[owner.egress.index()][owner.class.index()];
        queue.bytes + bytes <= self.marks.bytes_max.0
    }

    /// A frame waits in a queue from now on, for these priorities. A stop that is told now lasts
    /// for `stop`.
    pub(crate) fn arrived(
        &mut self,
        now: Time,
        (owner, priorities): (Owner, PrioritySet),
        bytes: u64,
        stop: Span,
    ) {
        self.now = now;
        let Queues { marks, queues, random, told, .. } = self;
        let queue = &mut queues[owner.egress.index()][owner.class.index()];
        let source = owner.ingress.index();
        queue.join(source, bytes);
        let hold = marks.low.map(|_| priorities);
        let mut tell = |queue: &mut Queue, source, until| {
            let until = if hold.is_some() { until } else { now + stop };
            if let Some(wish) = queue.stop(now, source, (hold, until)) {
                told.push_back(Told { port: PortNo(source as u16), priorities, wish });
            }
        };
        if queue.bytes >= marks.high.0 {
            for source in 0..queue.sources.len() {
                if queue.sources[source].frames > 0 {
                    tell(queue, source, Time::MAX);
                }
            }
            return;
        }
        let Some(targeting) = marks.targeting.filter(|at| queue.bytes >= at.target.0) else {
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
        let Queues { marks, queues, told, now, .. } = self;
        let queue = &mut queues[owner.egress.index()][owner.class.index()];
        queue.leave(owner.ingress.index(), bytes);
        let Some(low) = marks.low else { return };
        if queue.held.is_empty() {
            return;
        }
        let all = queue.bytes <= low.0;
        let some = |at: Targeting| at.choice == Choice::MaxMin && queue.bytes < at.target.0;
        let some = marks.targeting.is_some_and(some);
        // Several that are stopped share the low mark: together they keep the wire busy.
        let part = low.0 / queue.held.len() as u64;
        let Queue { held, sources, backlogs, .. } = queue;
        held.retain(|&source| {
            let over = sources[source].until <= *now;
            let goes_on = all || over || some && backlogs.of(source) <= part;
            if goes_on {
                told.push_back(sources[source].release(source));
            }
            !goes_on
        });
    }

    /// Forgets what waits for a port: its frames go to other classes, which begin anew. Whoever
    /// was stopped may go on.
    pub(crate) fn clear(&mut self, egress: PortNo) {
        for queue in &mut self.queues[egress.index()] {
            let queue = core::mem::take(queue);
            let held = queue.held.iter().map(|&source| (source, queue.sources[source]));
            self.told.extend(held.map(|(number, mut source)| source.release(number)));
        }
    }

    /// Takes the next thing that a sender is to be told, in order.
    pub(crate) fn next_told(&mut self) -> Option<Told> {
        self.told.pop_front()
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

    /// A source is to stop until then, or until it is let go on before if it is to be held:
    /// what it is to be told, if it does not know yet.
    fn stop(
        &mut self,
        now: Time,
        source: usize,
        (hold, until): (Option<PrioritySet>, Time),
    ) -> Option<Wish> {
        let state = &mut self.sources[source];
        if let Some(priorities) = hold {
            if !state.held.is_empty() {
                // Once at the high mark, it waits for the low one.
                state.until = state.until.max(until);
                return None;
            }
            (state.held, state.until) = (priorities, until);
            self.held.push(source);
            return Some(Wish::Stop);
        }
        if state.until > now {
            return None;
        }
        state.until = until;
        Some(Wish::StopOnce)
    }
}

impl Source {
    /// Lets a source go on, whose number this is: what it is to be told.
    fn release(&mut self, number: usize) -> Told {
        let priorities = core::mem::take(&mut self.held);
        Told { port: PortNo(number as u16), priorities, wish: Wish::GoOn }
    }
}

#[cfg(test)]
mod tests;
