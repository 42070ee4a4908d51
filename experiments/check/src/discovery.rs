//! Model of neighbour discovery: two or three nodes in a line, each with its `Discovery`.
//!
//! Nodes exchange greetings over links whose messages are lost, duplicated and reordered. A node
//! restarts as a new incarnation that its neighbours do not know. A link loses its carrier and
//! regains it, and each end detects this at its own time.

mod state;

use crate::budget::Budget;
use state::{Line, Message, Wrong};
use stateright::{Model, Property};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Model of nodes in a line.
#[derive(Clone, Copy, Debug)]
pub struct DiscoveryModel {
    /// Number of nodes: 2 or 3.
    pub nodes: usize,
    /// Budget of events.
    pub budget: Budget,
    /// Planted fault: a node opens messages sealed by an earlier incarnation of its neighbour,
    /// although it has received messages from a later one.
    pub opens_earlier: bool,
}

/// Event in the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiscoveryAction {
    /// Arrival of the message at this index, which is of this kind.
    Deliver(usize, &'static str),
    /// Loss of the message at this index.
    Lose(usize, &'static str),
    /// Arrival of the message at this index, which also stays in flight.
    Double(usize, &'static str),
    /// Advance to the next deadline.
    Tick,
    /// Loss of a link's carrier, followed by its immediate return.
    Flap(usize),
    /// Restart of a node.
    Restart(usize),
}

/// State of the model: the nodes, and the remaining budget.
#[derive(Clone, Debug)]
pub struct DiscoveryState {
    line: Arc<Line>,
    wrong: Option<Wrong>,
    left: Budget,
    print: u128,
}

impl Hash for DiscoveryState {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.print, self.left).hash(state);
    }
}

impl PartialEq for DiscoveryState {
    fn eq(&self, other: &DiscoveryState) -> bool {
        (self.print, self.left) == (other.print, other.left)
    }
}

impl DiscoveryModel {
    fn state(line: Line, left: Budget) -> DiscoveryState {
        let print = crate::print::of(&line);
        DiscoveryState { wrong: line.wrong(), print, line: Arc::new(line), left }
    }
}

impl Model for DiscoveryModel {
    type State = DiscoveryState;
    type Action = DiscoveryAction;

    fn init_states(&self) -> Vec<DiscoveryState> {
        vec![DiscoveryModel::state(Line::new(self.nodes, self.opens_earlier), self.budget)]
    }

    fn actions(&self, state: &DiscoveryState, actions: &mut Vec<DiscoveryAction>) {
        let left = state.left;
        for (at, message) in state.line.flight().different() {
            let kind = message.kind();
            actions.push(DiscoveryAction::Deliver(at, kind));
            let is_frame = matches!(message, Message::Frame { .. });
            let loses = is_frame && left.losses > 0;
            actions.extend(loses.then_some(DiscoveryAction::Lose(at, kind)));
            let doubles = is_frame && left.duplicates > 0;
            actions.extend(doubles.then_some(DiscoveryAction::Double(at, kind)));
        }
        actions.extend((left.ticks > 0).then_some(DiscoveryAction::Tick));
        if left.cuts > 0 {
            actions.extend((0..self.nodes - 1).map(DiscoveryAction::Flap));
        }
        if left.restarts > 0 {
            actions.extend((0..self.nodes).map(DiscoveryAction::Restart));
        }
    }

    fn next_state(&self, last: &DiscoveryState, action: DiscoveryAction) -> Option<DiscoveryState> {
        let mut line = Line::clone(&last.line);
        let mut left = last.left;
        match action {
            DiscoveryAction::Deliver(at, _) => line.deliver(at),
            DiscoveryAction::Lose(at, _) => {
                left = left.take(|left| &mut left.losses)?;
                line.lose(at);
            }
            DiscoveryAction::Double(at, _) => {
                left = left.take(|left| &mut left.duplicates)?;
                line.double(at);
            }
            DiscoveryAction::Tick => {
                left = left.take(|left| &mut left.ticks)?;
                line.tick();
            }
            DiscoveryAction::Flap(link) => {
                left = left.take(|left| &mut left.cuts)?;
                line.flap(link);
            }
            DiscoveryAction::Restart(node) => {
                left = left.take(|left| &mut left.restarts)?;
                line.restart(node);
            }
        }
        Some(DiscoveryModel::state(line, left))
    }

    fn properties(&self) -> Vec<Property<DiscoveryModel>> {
        vec![
            Property::always("a neighbour is who is at the other end", |_, state: &Self::State| {
                state.wrong != Some(Wrong::Neighbour)
            }),
            Property::always("no incarnation follows a later one", |_, state: &Self::State| {
                state.wrong != Some(Wrong::Older)
            }),
            Property::always("a neighbour has met this incarnation", |_, state: &Self::State| {
                state.wrong != Some(Wrong::Unmet)
            }),
            Property::always(
                "all know their neighbours when faults stop",
                |_, state: &Self::State| state.line.settles(),
            ),
            Property::sometimes("neighbours are known", |_, state: &Self::State| {
                state.line.is_met()
            }),
        ]
    }
}
