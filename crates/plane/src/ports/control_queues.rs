//! What keeps a fabric together waits for a wire in queues of its own, before the frames of hosts.
//!
//! In plain English: link frames (heartbeats, Hellos, LLDP, PAUSE) go first, whatever waits;
//! control messages, own ones and those in transit, go next. Both have their own bound, so no flood
//! of hosts' frames fills their room. Control messages are as many as somebody with the fabric's
//! key makes of them, so they do not have all of a wire either: after [`RUN_BYTES`] of them in a
//! row one other frame goes, if one waits.

use super::queued::Queued;
use crate::ports::HeaderKind;
use alloc::collections::VecDeque;
use axon_wire::PortNo;
use axon_wire::header::PacketType;

/// Bytes of control messages in a row that other frames wait for; then one of those goes. Other
/// frames so have a quarter of the wire at least, if they are long ones.
pub(super) const RUN_BYTES: u64 = 4096;

/// What goes before the frames of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ahead {
    /// A frame of the control plane for this link alone.
    LinkFrame,
    /// An Axon packet of type Control.
    Message,
}

impl Ahead {
    /// Whether a frame of this kind that came in by `ingress` goes before those of hosts.
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

/// The queues of one traffic class of one egress port.
#[derive(Clone, Debug)]
pub(super) struct ControlQueues {
    link_frames: Fifo,
    messages: Fifo,
    /// Bytes of messages that went since another frame did, while one waited.
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
            // There are many ports, and in few of them one waits.
            self.queue = VecDeque::new();
        }
        Some(item)
    }
}

impl ControlQueues {
    /// Empty ones.
    pub(super) const EMPTY: ControlQueues =
        ControlQueues { link_frames: Fifo::EMPTY, messages: Fifo::EMPTY, run: 0 };

    /// Queues a frame, if that leaves no more than `bytes_max` bytes of its kind here.
    ///
    /// # Errors
    /// Gives the frame back if there is no room for it.
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

    /// Whether a message may go although other frames wait.
    fn may_run(&self, others: bool) -> bool {
        !others || self.run < RUN_BYTES
    }

    /// The frame that goes next, if it is one of these; `others` wait, or do not.
    pub(super) fn head(&self, others: bool) -> Option<&Queued> {
        let message = || self.messages.queue.front().filter(|_| self.may_run(others));
        self.link_frames.queue.front().or_else(message)
    }

    /// Takes the frame that goes next, if it is one of these.
    pub(super) fn pop(&mut self, others: bool) -> Option<Queued> {
        if let Some(item) = self.link_frames.pop() {
            return Some(item);
        }
        let item = if self.may_run(others) { self.messages.pop()? } else { return None };
        self.run = if others { self.run + u64::from(item.bytes) } else { 0 };
        Some(item)
    }

    /// Another frame has gone.
    pub(super) fn other_went(&mut self) {
        self.run = 0;
    }

    /// All that wait, link frames first.
    pub(super) fn items(&self) -> impl Iterator<Item = &Queued> {
        self.link_frames.queue.iter().chain(&self.messages.queue)
    }

    /// The same, to change them.
    pub(super) fn items_mut(&mut self) -> impl Iterator<Item = &mut Queued> {
        self.link_frames.queue.iter_mut().chain(&mut self.messages.queue)
    }
}
