//! Another switch of the file, as a switch without a controller knows it.
//!
//! Nobody knows the incarnation of another switch at first. So the first greeting is for whichever
//! it is in, and is a request alone: it may be an old one, played back. The answer to it is a
//! greeting for the incarnation that has asked, which proves that its sender knows that; so does
//! every greeting after that. From the first of these on there is a reliable stream between the two
//! incarnations.

use crate::seal::ANY_INCARNATION;
use crate::stream::Stream;
use alloc::vec::Vec;
use axon_wire::message::{ControllerHelloAck, Item, Message, Segment};
use axon_wire::{Incarnation, NodeId, Span, Time};

/// So many reports wait for its acknowledgement at most, and as many again that take them back.
const ITEMS_MAX: usize = 1 << 14;
/// The time between two tries is doubled this often at most.
const DOUBLINGS_MAX: u32 = 5;

/// Another switch.
#[derive(Clone, Debug, Default)]
pub(super) struct Peer {
    stream: Option<Stream>,
    nonce: u64,
    /// When to send the port state (again); `None` if the present one is acknowledged.
    greet_at: Option<Time>,
    tries: u32,
}

impl Peer {
    /// Whether this is its incarnation.
    pub fn is(&self, incarnation: Incarnation) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.peer() == incarnation)
    }

    /// Whether it has been heard.
    pub fn is_met(&self) -> bool {
        self.stream.is_some()
    }

    /// The number of the last greeting.
    pub fn nonce(&self) -> u64 {
        self.nonce
    }

    /// A new incarnation of it is there, which has none of these reports.
    pub fn met(&mut self, now: Time, it: Incarnation, retry: Span, reports: Vec<Item>) {
        let mut stream = Stream::new(it, retry);
        reports.into_iter().for_each(|item| stream.push(item));
        self.stream = Some(stream);
        self.has_news(now);
    }

    /// The port state here has changed, or is to be said again.
    pub fn has_news(&mut self, now: Time) {
        (self.greet_at, self.tries) = (Some(now), 0);
        self.nonce += 1;
    }

    /// It has acknowledged a greeting; the present port state has this version.
    pub fn acknowledged(&mut self, ack: ControllerHelloAck, version: u64) {
        if (ack.nonce, ack.version) == (self.nonce, version) {
            self.greet_at = None;
        }
    }

    /// Puts a report on its stream. One that was not met gets all of them when it is. One that
    /// acknowledges nothing gets no more hosts and members, so that its queue is bounded; that some
    /// are gone it gets in any case, for of these there are no more than it was sent.
    pub fn push(&mut self, item: &Item) {
        let Some(stream) = &mut self.stream else { return };
        let withdraws = match item {
            Item::HostGone { .. } => true,
            Item::GroupMember { joined, .. } => !joined,
            _ => false,
        };
        if withdraws || stream.has_room_for(item, ITEMS_MAX) {
            stream.push(item.clone());
        }
    }

    /// Its items that are next in order.
    pub fn receive(&mut self, now: Time, segment: Segment) -> Vec<Item> {
        self.stream.as_mut().map_or_else(Vec::new, |stream| stream.receive(now, segment))
    }

    pub fn unacknowledged(&self) -> usize {
        self.stream.as_ref().map_or(0, Stream::unacknowledged)
    }

    /// Whether [`Peer::poll`] has something to send.
    pub fn wants(&self, now: Time) -> bool {
        self.greet_at.is_some_and(|at| at <= now)
            || self.stream.as_ref().is_some_and(|stream| stream.wants(now))
    }

    /// Whether an odd number of greetings have had no answer by now.
    pub fn is_odd(&self) -> bool {
        self.greet_at.is_some() && self.tries % 2 == 1
    }

    /// What to send now, and to which incarnation: a greeting with this nonce first.
    pub fn poll(
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
                // It may have restarted and not know it.
                all.push((any, all[0].1.clone()));
            }
        }
        while let Some(segment) = self.stream.as_mut().and_then(|stream| stream.poll(now)) {
            all.push((to, Message::Segment(segment)));
        }
        all
    }

    /// When [`Peer::poll`] has something to send next.
    pub fn deadline(&self) -> Option<Time> {
        let stream = self.stream.as_ref().and_then(Stream::deadline);
        [self.greet_at, stream].into_iter().flatten().min()
    }
}
