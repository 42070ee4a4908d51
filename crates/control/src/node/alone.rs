//! A switch in a fabric without a controller: its own control plane takes the controller's place
//! ([`crate::static_mode`]).

use super::chassis::Chassis;
use super::switch::SwitchNode;
use crate::seal::Opened;
use crate::static_mode::StaticControl;
use alloc::vec::Vec;
use axon_node::{Action, CommandError, Dataplane, Done, PolicyChange, Refusal, Reply, RequestId};
use axon_wire::message::{Item, Message};
use axon_wire::{Hops, NodeId, Time};

impl<D: Dataplane> SwitchNode<D> {
    /// What it decides by itself, in a fabric without a controller.
    pub fn alone(&self) -> Option<&StaticControl> {
        self.alone.as_deref()
    }

    /// What may follow from any change, without a controller.
    pub(super) fn housekeeping_alone(&mut self, now: Time) {
        let Some(alone) = &mut self.alone else { return };
        let own = self.chassis.incarnation;
        let Chassis { plane, discovery, effects, .. } = &mut self.chassis;
        if self.controller.is_none() {
            // The decisions in force are its own, from the start.
            self.controller = Some(own);
            plane.controller_reached(now, true);
            self.edge.controller_changed(now, self.controller, plane, effects);
        }
        alone.update(now, discovery, effects);
        alone.flush(now, effects);
    }

    /// A message of another switch. One for those who have a controller, or this switch's word to
    /// itself, goes the usual way.
    pub(super) fn message_alone(
        &mut self,
        now: Time,
        reverse: Hops,
        opened: Opened,
    ) -> Result<(), Refusal> {
        let own = opened.from == self.chassis.incarnation;
        let Some(alone) = self.alone.as_mut().filter(|_| !own) else {
            return self.message(now, opened);
        };
        alone.message(now, reverse, opened, &mut self.chassis.effects)
    }

    /// A request of the edge, which elsewhere goes to the controller.
    pub(super) fn request_alone(&mut self, now: Time, message: Message) {
        if let Some(alone) = &mut self.alone {
            alone.request(now, message, &mut self.chassis.effects);
        }
    }

    /// A report of the edge.
    pub(super) fn report_alone(&mut self, now: Time, item: Item) {
        if let Some(alone) = &mut self.alone {
            alone.report(now, item, &mut self.chassis.effects);
        }
    }

    /// A command of the controller within this switch.
    pub(super) fn command_alone(&mut self, now: Time, to: NodeId, item: Item) {
        let Some(alone) = &mut self.alone else { return };
        if let Some(item) = alone.command(to, item) {
            let Chassis { plane, effects, .. } = &mut self.chassis;
            self.edge.item(now, item, plane, effects);
        }
    }

    /// The controller within this switch waits until its commands are carried out. It decides about
    /// the routes of its own edge alone, which has them at once.
    pub(super) fn acknowledged_alone(&mut self, now: Time, number: u64) {
        if let Some(alone) = &mut self.alone {
            alone.acknowledged(now, number);
        }
    }

    /// Changes which hosts may reach which, at this switch, and replies: the routes that it forbids
    /// are removed then.
    pub(super) fn change_policy(
        &mut self,
        now: Time,
        (id, change): (RequestId, PolicyChange),
        out: &mut Vec<Action>,
    ) {
        let Some(alone) = &mut self.alone else { return };
        let changed = alone.change_policy(now, change, &mut self.chassis.effects);
        for effect in core::mem::take(&mut self.chassis.effects) {
            self.apply(now, effect, out);
        }
        let result = changed.map(Done::Policy).map_err(CommandError::Policy);
        out.push(Action::Reply(Reply { id, result }));
    }
}
