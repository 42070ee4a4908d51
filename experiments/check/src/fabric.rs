//! Model of a fabric with up to three switches, two hosts and a controller. It covers set-up by
//! Axon-ARP, failover and restarts.
//!
//! The edges and the controller are the production code. Messages between them may be lost,
//! duplicated and reordered. A host may send an ARP request for the other host. A link may fail,
//! which each end detects at its own time. A switch or the controller may restart. The clock moves
//! only to the next deadline of any node. Reports and commands are on streams, which deliver in
//! order with delay ([`StreamModel`](crate::stream::StreamModel) checks those separately).
//!
//! From every reachable state, a copy continues without faults. In it, all messages in flight
//! arrive, and the hosts repeat their requests as time passes. In the end, each host must reach the
//! other by routes that the controller has decided.

mod device;
mod head;
mod links;
mod packet;
mod switch;
mod violation;
mod wiring;
mod world;

use crate::budget::Budget;
use stateright::{Model, Property};
use std::fmt::{self, Debug};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
pub use violation::Wrong;
pub use world::Fault;
use world::World;
use world::order::{self, First};
use world::settle::{self, Settled};
use world::wrong;

/// Model of a fabric.
#[derive(Debug)]
pub struct FabricModel {
    switches: usize,
    start: Start,
    budget: Budget,
    fault: Fault,
    settled: Settled,
    /// True if steps for which a single order suffices are taken in any order (`order.rs`).
    in_any_order: bool,
}

/// Initial state. The controller knows the hosts in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// There are no routes.
    Known,
    /// The hosts reach each other, and their routes have backups if the graph allows it.
    Connected,
}

/// Event in the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FabricAction {
    /// Arrival of the message at this index, which is of this kind.
    Deliver(usize, &'static str),
    /// Loss of the message at this index.
    Lose(usize, &'static str),
    /// Arrival of the message at this index, which also stays in flight.
    Double(usize, &'static str),
    /// Arrival of a switch's next report at the controller.
    Report(usize),
    /// Arrival of the controller's next command at a switch.
    Command(usize),
    /// Advance to the next deadline.
    Tick,
    /// ARP request from a host for the other host.
    Ask(usize),
    /// Failure of a link.
    Cut(usize),
    /// Restart of a switch. Its data plane continues, or has lost its tables.
    Restart {
        /// Index of the switch.
        switch: usize,
        /// True if the tables are lost.
        cold: bool,
    },
    /// Restart of the controller from its store.
    RestartController,
}

/// State of the model: the fabric, and the remaining budget.
#[derive(Clone)]
pub struct FabricState {
    world: Arc<World>,
    wrong: Option<Wrong>,
    left: Budget,
    print: u128,
    /// Switches that from here on receive only from the controller (`order.rs`).
    quiet: Vec<bool>,
}

impl Debug for FabricState {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:032x} {:?} {:?}", self.print, self.wrong, self.left)
    }
}

impl Hash for FabricState {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.print, self.left, self.wrong).hash(state);
    }
}

impl PartialEq for FabricState {
    fn eq(&self, other: &FabricState) -> bool {
        (self.print, self.left, self.wrong) == (other.print, other.left, other.wrong)
    }
}

impl FabricState {
    /// Marks the state as a successor, in which no switch that was quiet may have become active.
    fn after(mut self, last: &FabricState) -> FabricState {
        if last.quiet.iter().zip(&self.quiet).any(|(before, now)| before > now) {
            self.wrong.get_or_insert(Wrong::Reduction);
        }
        self
    }
}

impl FabricModel {
    /// Creates a fabric with 1 to 3 switches.
    pub fn new(switches: usize, start: Start, budget: Budget) -> FabricModel {
        let (fault, settled) = (Fault::None, Settled::default());
        FabricModel { switches, start, budget, fault, settled, in_any_order: false }
    }

    /// Plants a fault.
    pub fn with_fault(self, fault: Fault) -> FabricModel {
        FabricModel { fault, ..self }
    }

    fn state(&self, world: World, left: Budget) -> FabricState {
        let (print, wrong) = (world.print(), wrong::find(&world));
        // A set-up goes back and forth between switches, so no switch is quiet.
        let is_quiet = |switch| self.budget.asks == 0 && order::is_quiet(&world, switch, left);
        let quiet = (0..self.switches).map(is_quiet).collect();
        FabricState { world: Arc::new(world), wrong, left, print, quiet }
    }
}

impl Model for FabricModel {
    type State = FabricState;
    type Action = FabricAction;

    fn init_states(&self) -> Vec<FabricState> {
        let mut world = World::new(self.switches, self.fault);
        if self.start == Start::Connected {
            world.connect();
        }
        vec![self.state(world, self.budget)]
    }

    fn actions(&self, state: &FabricState, actions: &mut Vec<FabricAction>) {
        let (world, left) = (&state.world, state.left);
        let first = order::first(world, left, &state.quiet).filter(|_| !self.in_any_order);
        if let Some(First::Command(switch)) = first {
            return actions.push(FabricAction::Command(switch));
        }
        let is_next = |at| first.is_none_or(|first| first == First::Packet(at));
        for (at, packet) in world.flight().different().filter(|&(at, _)| is_next(at)) {
            let kind = packet.kind();
            actions.push(FabricAction::Deliver(at, kind));
            let loses = packet.is_fragile() && left.losses > 0 || packet.is_over(world.cut());
            actions.extend(loses.then_some(FabricAction::Lose(at, kind)));
            let doubles = packet.is_fragile() && left.duplicates > 0;
            actions.extend(doubles.then_some(FabricAction::Double(at, kind)));
        }
        if first.is_some() {
            return;
        }
        for switch in 0..self.switches {
            actions.extend(world.has_report(switch).then_some(FabricAction::Report(switch)));
            actions.extend(world.has_command(switch).then_some(FabricAction::Command(switch)));
        }
        let ticks = left.ticks > 0 && world.deadline().is_some();
        actions.extend(ticks.then_some(FabricAction::Tick));
        if left.asks > 0 {
            actions.extend((0..world.wiring().hosts()).map(FabricAction::Ask));
        }
        if left.cuts > 0 {
            let links = (0..world.wiring().links.len()).filter(|link| !world.cut().contains(link));
            actions.extend(links.map(FabricAction::Cut));
        }
        if left.restarts > 0 {
            let both = |switch| [false, true].map(|cold| FabricAction::Restart { switch, cold });
            actions.extend((0..self.switches).flat_map(both));
        }
        actions.extend((left.controllers > 0).then_some(FabricAction::RestartController));
    }

    fn next_state(&self, last: &FabricState, action: FabricAction) -> Option<FabricState> {
        let mut world = World::clone(&last.world);
        let mut left = last.left;
        match action {
            FabricAction::Deliver(at, _) => {
                let packet = world.take(at);
                world.arrive(packet);
            }
            FabricAction::Lose(at, _) => {
                // Messages lost together with a failed link do not count as a further fault.
                if !world.take(at).is_over(world.cut()) {
                    left = left.take(|left| &mut left.losses)?;
                }
            }
            FabricAction::Double(at, _) => {
                left = left.take(|left| &mut left.duplicates)?;
                let packet = world.flight().copy(at);
                world.arrive(packet);
            }
            FabricAction::Report(switch) => world.report(switch),
            FabricAction::Command(switch) => world.command(switch),
            FabricAction::Tick => {
                left = left.take(|left| &mut left.ticks)?;
                world.tick();
            }
            FabricAction::Ask(host) => {
                left = left.take(|left| &mut left.asks)?;
                world.request(host, 1 - host);
            }
            FabricAction::Cut(link) => {
                left = left.take(|left| &mut left.cuts)?;
                world.fail(link);
            }
            FabricAction::Restart { switch, cold } => {
                left = left.take(|left| &mut left.restarts)?;
                world.restart_switch(switch, cold);
            }
            FabricAction::RestartController => {
                left = left.take(|left| &mut left.controllers)?;
                world.restart_controller();
            }
        }
        world.forget_moot(left.ticks == 0);
        Some(self.state(world, left).after(last))
    }

    fn properties(&self) -> Vec<Property<FabricModel>> {
        let mut all = vec![
            Property::always("no wrong delivery", |_, state: &Self::State| {
                state.wrong != Some(Wrong::Delivery)
            }),
            Property::always("no loop", |_, state: &Self::State| state.wrong != Some(Wrong::Loop)),
            Property::always("no decision is undone by an older one", |_, state: &Self::State| {
                state.wrong != Some(Wrong::Order)
            }),
            Property::always("no two holders of one address", |_, state: &Self::State| {
                state.wrong != Some(Wrong::Holder)
            }),
            Property::always("no wrong answer to a host", |_, state: &Self::State| {
                state.wrong != Some(Wrong::Answer)
            }),
            Property::always("backups lead where their routes do", |_, state: &Self::State| {
                state.wrong != Some(Wrong::Backup)
            }),
            Property::always("what a reduction relies on", |_, state: &Self::State| {
                state.wrong != Some(Wrong::Reduction)
            }),
            Property::always(
                "the hosts reach each other when faults stop",
                |model: &Self, state: &Self::State| {
                    model.settled.reaches(state.print, &state.world)
                },
            ),
            Property::sometimes("the hosts reach each other", |_, state: &Self::State| {
                settle::is_connected(&state.world)
            }),
        ];
        if self.budget.cuts > 0 && self.switches == 3 && self.start == Start::Connected {
            all.push(Property::sometimes("a backup is used", |_, state: &Self::State| {
                settle::backups_used(&state.world) > 0
            }));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeSet, HashSet};

    /// Returns the states in which nothing is left to deliver, and the total number of states.
    fn ends(budget: Budget, in_any_order: bool) -> (BTreeSet<u128>, usize) {
        let model = FabricModel { in_any_order, ..FabricModel::new(3, Start::Connected, budget) };
        let (mut ends, mut known) = (BTreeSet::new(), HashSet::new());
        let mut ahead = model.init_states();
        while let Some(state) = ahead.pop() {
            if !known.insert((state.print, state.left)) {
                continue;
            }
            if !World::clone(&state.world).deliver_any() {
                ends.insert(state.print);
            }
            ahead.extend(model.next_states(&state));
        }
        (ends, known.len())
    }

    #[test]
    fn one_order_of_steps_has_the_same_ends_as_all() {
        let none = Budget::default();
        for budget in [
            Budget { cuts: 1, losses: 1, ..none },
            Budget { controllers: 1, duplicates: 1, ..none },
            Budget { restarts: 1, losses: 1, ..none },
            Budget { cuts: 1, ticks: 1, ..none },
            Budget { cuts: 1, restarts: 1, ..none },
        ] {
            let ((one, few), (all, many)) = (ends(budget, false), ends(budget, true));
            assert!(one == all, "{budget:?}: {} ends of {}", one.len(), all.len());
            assert!(few < many, "{budget:?}: {few} states of {many}");
        }
    }
}
