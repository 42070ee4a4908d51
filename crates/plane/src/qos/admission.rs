//! Admission of frames to the queues of a switch with traffic classes: shared memory, and the
//! watermarks of queues.
//!
//! A frame takes room in the shared memory, from the priority group of its ingress, and counts in
//! its queue, which may have watermarks. Both may ask its sender to pause. A frame that leaves
//! releases its room, and its sender may resume. Frames of the control plane, which is no port,
//! take no room and have no sender.

use super::targeted::{Queues, SenderRequest, Watermarks};
use crate::ports::shared_buffer::{
    Memory, MemoryConfig, NoRoom, Owner, PriorityGroupLimits, Signal,
};
use alloc::vec::Vec;
use axon_node::Drop;
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet, TrafficClass};
use axon_wire::{PortNo, Span, Time};

/// Record of changes in the queues of one priority group, for deadlock detection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueueChange {
    /// Frames that have left their queue since the start.
    pub(crate) left: u64,
    /// Time at which a frame last joined a queue or left it.
    pub(crate) last: Time,
}

impl QueueChange {
    /// Records that a frame joins a queue.
    fn came(&mut self, now: Time) {
        self.last = now;
    }

    /// Records that a frame leaves its queue.
    fn left(&mut self, now: Time) {
        (self.left, self.last) = (self.left + 1, now);
    }
}

/// Memory and watermarks of a switch.
#[derive(Clone, Debug)]
pub(crate) struct Admission {
    memory: Memory,
    /// Queues with watermarks, if configured.
    watermarks: Option<Queues>,
    /// Changes in the priority groups, by ingress and priority.
    changes: Vec<[QueueChange; PRIORITIES]>,
}

impl Admission {
    /// Returns empty memory and queues, with watermarks that were checked.
    pub(crate) fn new(config: &MemoryConfig, watermarks: Option<Watermarks>) -> Admission {
        let ports = config.groups.len();
        Admission {
            memory: Memory::new(config.clone()),
            watermarks: watermarks.map(|watermarks| Queues::new(watermarks, ports)),
            changes: alloc::vec![Default::default(); ports],
        }
    }

    /// Returns the shared memory.
    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Sets the limits of a priority group.
    pub(crate) fn set_group(
        &mut self,
        ingress: PortNo,
        priority: Priority,
        limits: PriorityGroupLimits,
    ) {
        self.memory.set_group(ingress, priority, limits);
    }

    /// Returns whether frames from `ingress` take room.
    #[inline]
    pub(crate) fn concerns(&self, ingress: PortNo) -> bool {
        ingress.index() < self.changes.len()
    }

    /// Takes room for a frame that came with `came_bytes` bytes and will be queued with `bytes`;
    /// returns the signal for its sender, who can be paused for the `pausable` priorities.
    ///
    /// # Errors
    /// There is no room.
    pub(crate) fn admit(
        &mut self,
        now: Time,
        owner: Owner,
        (came_bytes, bytes): (u64, u64),
        pausable: impl FnOnce() -> PrioritySet,
    ) -> Result<Signal, Drop> {
        let has_room = |queues: &Queues| queues.has_room(owner, bytes);
        if self.is_lossless(owner) && !self.watermarks.as_ref().is_none_or(has_room) {
            return Err(Drop::HeadroomFull);
        }
        match self.memory.admit(owner, came_bytes) {
            Ok(signal) => {
                self.changes[owner.ingress.index()][owner.priority.index()].came(now);
                Ok(signal)
            }
            // Without a pausable sender no frame is lossless.
            Err(NoRoom::Headroom) if pausable().contains(owner.priority) => Err(Drop::HeadroomFull),
            Err(_) => Err(Drop::QueueFull),
        }
    }

    /// Records that an admitted frame of `bytes` bytes has joined its queue, if that has
    /// watermarks; `sender` returns the priorities and the time for which a sender to it is paused.
    pub(crate) fn joined(
        &mut self,
        now: Time,
        owner: Owner,
        bytes: u64,
        sender: impl FnOnce(PrioritySet) -> (PrioritySet, Span),
    ) {
        if self.has_watermarks(owner)
            && let Some(queues) = &mut self.watermarks
        {
            let (priorities, pause) = sender(self.memory.config().lossless);
            queues.arrived(now, (owner, priorities), bytes, pause);
        }
    }

    /// Releases the room of an admitted frame that has left its queue; returns the signal for its
    /// sender.
    pub(crate) fn release(
        &mut self,
        now: Time,
        owner: Owner,
        (came_bytes, bytes): (u64, u64),
    ) -> Signal {
        let signal = self.memory.release(owner, came_bytes);
        self.changes[owner.ingress.index()][owner.priority.index()].left(now);
        if self.has_watermarks(owner)
            && let Some(queues) = &mut self.watermarks
        {
            queues.left(owner, bytes);
        }
        signal
    }

    /// Forgets the frames queued for `egress` in the watermarks; they join other queues.
    pub(crate) fn clear_queues(&mut self, egress: PortNo) {
        if let Some(queues) = &mut self.watermarks {
            queues.clear(egress);
        }
    }

    /// Moves an admitted frame of `came_bytes` bytes from a class to that of `owner`.
    pub(crate) fn reclass(&mut self, owner: Owner, before: TrafficClass, came_bytes: u64) {
        if self.concerns(owner.ingress) {
            self.memory.reclass(owner, before, came_bytes);
        }
    }

    /// Takes the next request of a queue to a sender.
    #[inline]
    pub(crate) fn next_request(&mut self) -> Option<SenderRequest> {
        self.watermarks.as_mut()?.next_request()
    }

    /// Returns the last change in a priority group, and the frames that have left it, if its sender
    /// is paused because it has used up its memory.
    pub(crate) fn blocked(&self, ingress: PortNo, priority: Priority) -> Option<QueueChange> {
        let is_blocked = self.memory.group(ingress, priority)?.xoff;
        is_blocked.then(|| self.changes[ingress.index()][priority.index()])
    }

    fn is_lossless(&self, owner: Owner) -> bool {
        self.memory.config().lossless.contains(owner.priority)
    }

    /// Returns whether watermarks apply to a frame: not to those of the control plane, nor to lossy
    /// ones.
    fn has_watermarks(&self, owner: Owner) -> bool {
        self.is_lossless(owner) && self.concerns(owner.ingress)
    }
}
