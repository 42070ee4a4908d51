//! Model of the reliable stream between a switch and the controller. It consists of two [`Stream`]s
//! and the segments between them.
//!
//! One end puts items on the stream, and the other end acknowledges them. Segments are lost,
//! duplicated and reordered. A restart of the receiver begins a new stream at both ends, as it does
//! in the nodes. A segment from the old stream is sealed for an incarnation that is gone, so it
//! cannot be opened.

use crate::budget::Budget;
use crate::flight::Flight;
use crate::print;
use axon_link::stream::Stream;
use axon_wire::message::{Item, Segment};
use axon_wire::vlan::VlanId;
use axon_wire::{Incarnation, MacAddr, NodeId, PortNo, Span, Time};
use stateright::{Model, Property};
use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

const RETRY: Span = Span::from_millis(50);
/// Maximum number of steps that a stream takes without faults.
const STEPS_MAX: usize = 1_000;

/// Model of one stream.
#[derive(Clone, Copy, Debug)]
pub struct StreamModel {
    /// Budget of events. [`Budget::asks`] is the number of items.
    pub budget: Budget,
    /// Planted fault: the receiver takes every segment for the next one.
    pub takes_any_segment: bool,
}

/// Event in the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamAction {
    /// An item is put on the stream.
    Push,
    /// Arrival of the segment at this index.
    Deliver(usize),
    /// Loss of the segment at this index.
    Lose(usize),
    /// Arrival of the segment at this index, which also stays in flight.
    Double(usize),
    /// Advance of the clock until an end sends again.
    Tick,
    /// Restart of the receiver.
    Restart,
}

/// Both ends of the stream, and the segments between them.
#[derive(Clone, Debug)]
struct Ends {
    now: Time,
    sender: Stream,
    receiver: Stream,
    flight: Flight<(bool, Segment)>,
    /// Number of the next item, counted over all streams.
    next: u32,
    /// Number of the first item on this stream.
    first: u32,
    /// Numbers of the items that have arrived on this stream.
    arrived: Vec<u32>,
}

/// State of the model: the ends, and the remaining budget.
#[derive(Clone, Debug)]
pub struct StreamState {
    ends: Arc<Ends>,
    left: Budget,
    print: u128,
}

impl Hash for StreamState {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.print, self.left).hash(state);
    }
}

impl PartialEq for StreamState {
    fn eq(&self, other: &StreamState) -> bool {
        (self.print, self.left) == (other.print, other.left)
    }
}

fn incarnation(node: u64, number: u64) -> Incarnation {
    Incarnation { node: NodeId(node), number }
}

fn item(number: u32) -> Item {
    let [a, b, c, d] = number.to_be_bytes();
    Item::HostGone { port: PortNo(0), mac: MacAddr([2, 0, a, b, c, d]) }
}

fn number(item: &Item) -> Option<u32> {
    let Item::HostGone { mac: MacAddr([_, _, a, b, c, d]), .. } = *item else { return None };
    Some(u32::from_be_bytes([a, b, c, d]))
}

impl Ends {
    fn new() -> Ends {
        Ends {
            now: Time::ZERO,
            sender: Stream::new(incarnation(2, 1), RETRY),
            receiver: Stream::new(incarnation(1, 1), RETRY),
            flight: Flight::default(),
            next: 0,
            first: 0,
            arrived: Vec::new(),
        }
    }

    fn push(&mut self) {
        self.sender.push(VlanId::NONE, item(self.next));
        self.next += 1;
        self.poll();
    }

    /// Sends the pending segments from both ends.
    fn poll(&mut self) {
        while let Some((_, segment)) = self.sender.poll(self.now) {
            self.flight.push((true, segment));
        }
        while let Some((_, segment)) = self.receiver.poll(self.now) {
            self.flight.push((false, segment));
        }
    }

    fn deliver(&mut self, (to_receiver, mut segment): (bool, Segment), takes_any: bool) {
        if to_receiver {
            if takes_any {
                segment.first = self.arrived.len() as u64;
            }
            let items = self.receiver.receive(self.now, segment);
            self.arrived.extend(items.iter().filter_map(number));
        } else {
            self.sender.receive(self.now, segment);
        }
        self.poll();
    }

    fn deadline(&self) -> Option<Time> {
        [self.sender.deadline(), self.receiver.deadline()].into_iter().flatten().min()
    }

    fn tick(&mut self) -> bool {
        let Some(at) = self.deadline() else { return false };
        self.now = self.now.max(at);
        self.poll();
        true
    }

    fn restart(&mut self) {
        let number = self.sender.peer().number + 1;
        self.sender = Stream::new(incarnation(2, number), RETRY);
        self.receiver = Stream::new(incarnation(1, 1), RETRY);
        self.flight = Flight::default();
        (self.first, self.arrived) = (self.next, Vec::new());
    }

    /// Returns whether the items that have arrived came once and in order.
    fn in_order(&self) -> bool {
        self.arrived.iter().copied().eq((self.first..).take(self.arrived.len()))
            && self.arrived.len() as u32 <= self.next - self.first
    }

    /// Returns whether all items arrive and are acknowledged if there are no more losses.
    fn settles(&self, takes_any: bool) -> bool {
        let mut ends = self.clone();
        for _ in 0..STEPS_MAX {
            if !ends.flight.is_empty() {
                let message = ends.flight.take(0);
                ends.deliver(message, takes_any);
            } else if ends.sender.unacknowledged() == 0 {
                return ends.arrived.len() as u32 == ends.next - ends.first;
            } else if !ends.tick() {
                return false;
            }
        }
        false
    }
}

impl StreamModel {
    fn state(ends: Ends, left: Budget) -> StreamState {
        StreamState { print: print::of(&ends), ends: Arc::new(ends), left }
    }
}

impl Model for StreamModel {
    type State = StreamState;
    type Action = StreamAction;

    fn init_states(&self) -> Vec<StreamState> {
        vec![StreamModel::state(Ends::new(), self.budget)]
    }

    fn actions(&self, state: &StreamState, actions: &mut Vec<StreamAction>) {
        let left = state.left;
        for (at, _) in state.ends.flight.different() {
            actions.push(StreamAction::Deliver(at));
            actions.extend((left.losses > 0).then_some(StreamAction::Lose(at)));
            actions.extend((left.duplicates > 0).then_some(StreamAction::Double(at)));
        }
        actions.extend((left.asks > 0).then_some(StreamAction::Push));
        let ticks = left.ticks > 0 && state.ends.deadline().is_some();
        actions.extend(ticks.then_some(StreamAction::Tick));
        actions.extend((left.restarts > 0).then_some(StreamAction::Restart));
    }

    fn next_state(&self, last: &StreamState, action: StreamAction) -> Option<StreamState> {
        let mut ends = Ends::clone(&last.ends);
        let mut left = last.left;
        match action {
            StreamAction::Push => {
                left = left.take(|left| &mut left.asks)?;
                ends.push();
            }
            StreamAction::Deliver(at) => {
                let message = ends.flight.take(at);
                ends.deliver(message, self.takes_any_segment);
            }
            StreamAction::Lose(at) => {
                left = left.take(|left| &mut left.losses)?;
                ends.flight.take(at);
            }
            StreamAction::Double(at) => {
                left = left.take(|left| &mut left.duplicates)?;
                let message = ends.flight.copy(at);
                ends.deliver(message, self.takes_any_segment);
            }
            StreamAction::Tick => {
                left = left.take(|left| &mut left.ticks)?;
                ends.tick();
            }
            StreamAction::Restart => {
                left = left.take(|left| &mut left.restarts)?;
                ends.restart();
            }
        }
        Some(StreamModel::state(ends, left))
    }

    fn properties(&self) -> Vec<Property<StreamModel>> {
        vec![
            Property::always("each item arrives once and in order", |_, state: &Self::State| {
                state.ends.in_order()
            }),
            Property::always("all arrive when faults stop", |model: &Self, state: &Self::State| {
                state.ends.settles(model.takes_any_segment)
            }),
            Property::sometimes("an item arrives", |_, state: &Self::State| {
                !state.ends.arrived.is_empty()
            }),
        ]
    }
}
