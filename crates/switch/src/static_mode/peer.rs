//! State for another switch of the file, in a fabric without a controller.
//!
//! The incarnation of another switch is unknown at first. So the first greeting is for any
//! incarnation, and serves as a request only, because it may be replayed. The answer is a greeting
//! for the incarnation that sent the request, which proves that its sender has that number; so does
//! every greeting after it. The first of these opens a reliable stream between the two
//! incarnations.

use alloc::vec::Vec;
use axon_link::seal::ANY_INCARNATION;
use axon_link::stream::Stream;
use axon_wire::message::{ControllerHelloAck, Item, Message, Segment};
use axon_wire::vlan::VlanId;
use axon_wire::{Incarnation, NodeId, Span, Time};

/// Maximum number of queued reports; the same number of withdrawals may follow.
const ITEMS_MAX: usize = 1 << 14;
/// Maximum number of doublings of the retry interval.
const DOUBLINGS_MAX: u32 = 5;

/// State for another switch.
#[derive(Clone, Debug, Default)]
pub(super) struct Peer {
    stream: Option<Stream>,
    nonce: u64,
    /// Time to send the port state (again); `None` if the current one is acknowledged.
    greet_at: Option<Time>,
    tries: u32,
}

impl Peer {
    /// Returns whether the switch is in this incarnation.
    pub(crate) fn is(&self, incarnation: Incarnation) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.peer() == incarnation)
    }

    /// Returns whether the switch's incarnation is known.
    pub(crate) fn is_met(&self) -> bool {
        self.stream.is_some()
    }

    /// Returns the number of the last greeting.
    pub(crate) fn nonce(&self) -> u64 {
        self.nonce
    }

    /// Starts a stream to a new incarnation, with all `reports`.
    pub(crate) fn met(&mut self, now: Time, it: Incarnation, retry: Span, reports: Vec<Item>) {
        let mut stream = Stream::new(it, retry);
        reports.into_iter().for_each(|item| stream.push(VlanId::NONE, item));
        self.stream = Some(stream);
        self.has_news(now);
    }

    /// Schedules a greeting, because the port state has changed or is due for a refresh.
    pub(crate) fn has_news(&mut self, now: Time) {
        (self.greet_at, self.tries) = (Some(now), 0);
        self.nonce += 1;
    }

    /// Handles the acknowledgement of a greeting; `version` is that of the current port state.
    pub(crate) fn acknowledged(&mut self, ack: ControllerHelloAck, version: u64) {
        if (ack.nonce, ack.version) == (self.nonce, version) {
            self.greet_at = None;
        }
    }

    /// Queues a report. A switch whose incarnation is unknown gets all reports later. To bound the
    /// queue, a switch that acknowledges nothing gets no more hosts and members. Withdrawals are
    /// always queued; there are at most as many as the reports sent.
    pub(crate) fn push(&mut self, item: &Item) {
        let Some(stream) = &mut self.stream else { return };
        let withdraws = match item {
            Item::HostGone { .. } => true,
            Item::GroupMember { joined, .. } => !joined,
            _ => false,
        };
        if withdraws || stream.has_room_for((VlanId::NONE, item), ITEMS_MAX) {
            stream.push(VlanId::NONE, item.clone());
        }
    }

    /// Handles a segment; returns the items that are next in order.
    pub(crate) fn receive(&mut self, now: Time, segment: Segment) -> Vec<Item> {
        self.stream.as_mut().map_or_else(Vec::new, |stream| stream.receive(now, segment))
    }

    pub(crate) fn unacknowledged(&self) -> usize {
        self.stream.as_ref().map_or(0, Stream::unacknowledged)
    }

    /// Returns whether [`Peer::poll`] has something to send.
    pub(crate) fn wants(&self, now: Time) -> bool {
        self.greet_at.is_some_and(|at| at <= now)
            || self.stream.as_ref().is_some_and(|stream| stream.wants(now))
    }

    /// Returns whether an odd number of greetings is unanswered.
    pub(crate) fn is_odd(&self) -> bool {
        self.greet_at.is_some() && self.tries % 2 == 1
    }

    /// Returns the messages to send now with their receivers, first a greeting with the current
    /// nonce.
    pub(crate) fn poll(
        &mut self,
        now: Time,
        (node, retry): (NodeId, Span),
        greeting: impl FnOnce(u64) -> Message,
    ) -> Vec<(Incarnation, Message)> {
        let any = Incarnation { node, number: ANY_INCARNATION };
        let to = self.stream.as_ref().map_or(any, Stream::peer);
        let mut all = Vec::new();
        if self.greet_at.is_some_and(|at| at <= now) {
            self.greet_at = Some(now + retry * (1 << self.tries.min(DOUBLINGS_MAX)));
            self.tries = self.tries.saturating_add(1);
            all.push((to, greeting(self.nonce)));
            if self.tries > DOUBLINGS_MAX && to != any {
                // The switch may have restarted without this switch having its new incarnation.
                all.push((any, all[0].1.clone()));
            }
        }
        // A fabric without a controller has no VLANs.
        while let Some((_, segment)) = self.stream.as_mut().and_then(|stream| stream.poll(now)) {
            all.push((to, Message::Segment(segment)));
        }
        all
    }

    /// Returns when [`Peer::poll`] next has something to send.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let stream = self.stream.as_ref().and_then(Stream::deadline);
        [self.greet_at, stream].into_iter().flatten().min()
    }
}
