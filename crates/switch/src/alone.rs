//! A switch in a fabric without a controller, with its own control plane ([`crate::static_mode`])
//! in the controller's place.

use super::chassis::Chassis;
use super::switch::SwitchNode;
use crate::static_mode::StaticControl;
use alloc::vec::Vec;
use axon_link::seal::Opened;
use axon_node::{Action, CommandError, Dataplane, Done, PolicyChange, Refusal, Reply, RequestId};
use axon_wire::message::{Item, Message};
use axon_wire::{Hops, NodeId, Time};

impl<D: Dataplane> SwitchNode<D> {
    /// Returns the static control plane, in a fabric without a controller.
    pub fn alone(&self) -> Option<&StaticControl> {
        self.alone.as_deref()
    }

    /// Updates the static control plane after any change.
    pub(super) fn housekeeping_alone(&mut self, now: Time) {
        let Some(alone) = &mut self.alone else { return };
        let own = self.chassis.incarnation;
        let Chassis { plane, discovery, effects, .. } = &mut self.chassis;
        if self.controller.is_none() {
            // The switch's own decisions are in force from the start.
            self.controller = Some(own);
            plane.controller_reached(now, true);
            self.edge.controller_changed(now, self.controller, plane, effects);
        }
        alone.update(now, discovery, effects);
        alone.flush(now, effects);
    }

    /// Handles a message of another switch. Messages to itself, and those that do not depend on a
    /// controller, take the usual path.
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

    /// Handles a request of the edge, in place of a controller.
    pub(super) fn request_alone(&mut self, now: Time, message: Message) {
        if let Some(alone) = &mut self.alone {
            alone.request(now, message, &mut self.chassis.effects);
        }
    }

    /// Handles a report of the edge.
    pub(super) fn report_alone(&mut self, now: Time, item: Item) {
        if let Some(alone) = &mut self.alone {
            alone.report(now, item, &mut self.chassis.effects);
        }
    }

    /// Handles a command of the controller within this switch.
    pub(super) fn command_alone(&mut self, now: Time, to: NodeId, item: Item) {
        let Some(alone) = &mut self.alone else { return };
        if let Some(item) = alone.command(to, item) {
            let Chassis { plane, effects, .. } = &mut self.chassis;
            self.edge.item(now, item, plane, effects);
        }
    }

    /// Acknowledges the commands of the controller within this switch. It decides about the routes
    /// of its own edge only, which has carried them out already.
    pub(super) fn acknowledged_alone(&mut self, now: Time, number: u64) {
        if let Some(alone) = &mut self.alone {
            alone.acknowledged(now, number);
        }
    }

    /// Changes the policy of which hosts may reach which, at this switch, and replies once the
    /// forbidden routes are removed.
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
