//! Queues of link frames and control messages, served before the frames of hosts.
//!
//! Link frames (heartbeats, Hellos, LLDP, PAUSE) are sent first; control messages, own ones and
//! those in transit, are sent next. Both have their own bound, so no flood of hosts' frames fills
//! their room. Any holder of the fabric's key can send control messages without limit, so they do
//! not get all of a wire either: after [`RUN_BYTES`] of them in a row one other frame is sent, if
//! one is queued.

use super::queued::Queued;
use crate::ports::HeaderKind;
use alloc::collections::VecDeque;
use axon_wire::PortNo;
use axon_wire::header::PacketType;

/// Maximum bytes of control messages in a row while other frames are queued; then one of those is
/// sent. Other frames so get at least a quarter of the wire, if they are long.
pub(super) const RUN_BYTES: u64 = 4096;

/// Kind of a frame that is sent before the frames of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ahead {
    /// A frame of the control plane for this link alone.
    LinkFrame,
    /// An Axon packet of type Control.
    Message,
}

impl Ahead {
    /// Returns the kind of a frame from `ingress`; `None` if it does not precede those of hosts.
    pub(crate) fn of(kind: HeaderKind, ingress: PortNo) -> Option<Ahead> {
        match kind {
            HeaderKind::LinkLocal | HeaderKind::MacControl if ingress == PortNo::CONTROL => {
                Some(Ahead::LinkFrame)
            }
            HeaderKind::Axon(PacketType::Control) => Some(Ahead::Message),
            _ => None,
        }
    }
}

/// Control queues of one traffic class of one egress port.
#[derive(Clone, Debug)]
pub(super) struct ControlQueues {
    link_frames: Fifo,
    messages: Fifo,
    /// Bytes of messages sent since the last other frame, while one was queued.
    run: u64,
}

#[derive(Clone, Debug)]
struct Fifo {
    queue: VecDeque<Queued>,
    bytes: u64,
}

impl Fifo {
    const EMPTY: Fifo = Fifo { queue: VecDeque::new(), bytes: 0 };

    fn push(&mut self, item: Queued, bytes_max: u64) -> Result<(), Queued> {
        let bytes = u64::from(item.bytes);
        if self.bytes + bytes > bytes_max {
            return Err(item);
        }
        self.bytes += bytes;
        self.queue.push_back(item);
        Ok(())
    }

    fn pop(&mut self) -> Option<Queued> {
        let item = self.queue.pop_front()?;
        self.bytes -= u64::from(item.bytes);
        if self.queue.is_empty() {
            // Free the memory: there are many ports, and few of them have queued frames.
            self.queue = VecDeque::new();
        }
        Some(item)
    }
}

impl ControlQueues {
    /// Empty queues.
    pub(super) const EMPTY: ControlQueues =
        ControlQueues { link_frames: Fifo::EMPTY, messages: Fifo::EMPTY, run: 0 };

    /// Queues a frame, if that leaves at most `bytes_max` bytes of its kind here.
    ///
    /// # Errors
    /// Returns the frame if there is no room for it.
    pub(super) fn push(
        &mut self,
        ahead: Ahead,
        item: Queued,
        bytes_max: u64,
    ) -> Result<(), Queued> {
        match ahead {
            Ahead::LinkFrame => self.link_frames.push(item, bytes_max),
            Ahead::Message => self.messages.push(item, bytes_max),
        }
    }

    /// Returns whether a message may be sent, given whether `others` are queued.
    fn may_run(&self, others: bool) -> bool {
        !others || self.run < RUN_BYTES
    }

    /// Returns the next frame, if it is in these queues; `others`: other frames are queued.
    pub(super) fn head(&self, others: bool) -> Option<&Queued> {
        let message = || self.messages.queue.front().filter(|_| self.may_run(others));
        self.link_frames.queue.front().or_else(message)
    }

    /// Takes the next frame, if it is in these queues.
    pub(super) fn pop(&mut self, others: bool) -> Option<Queued> {
        if let Some(item) = self.link_frames.pop() {
            return Some(item);
        }
        let item = if self.may_run(others) { self.messages.pop()? } else { return None };
        self.run = if others { self.run + u64::from(item.bytes) } else { 0 };
        Some(item)
    }

    /// Records that another frame was sent.
    pub(super) fn other_went(&mut self) {
        self.run = 0;
    }

    /// Iterates over all queued frames, link frames first.
    pub(super) fn items(&self) -> impl Iterator<Item = &Queued> {
        self.link_frames.queue.iter().chain(&self.messages.queue)
    }

    /// Iterates mutably over all queued frames, link frames first.
    pub(super) fn items_mut(&mut self) -> impl Iterator<Item = &mut Queued> {
        self.link_frames.queue.iter_mut().chain(&mut self.messages.queue)
    }
}
