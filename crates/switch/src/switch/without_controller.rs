//! A switch in a fabric without a controller, with its own control plane ([`crate::static_mode`])
//! in the controller's place.

use super::SwitchNode;
use crate::chassis::Chassis;
use crate::effect::SwitchEffect;
use crate::static_mode::StaticControl;
use alloc::vec::Vec;
use axon_controller::Effect;
use axon_link::seal::Opened;
use axon_node::{Action, CommandError, Dataplane, Done, PolicyChange, Refusal, Reply, RequestId};
use axon_wire::message::Item;
use axon_wire::vlan::VlanId;
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
        let mut own = Vec::new();
        alone.update(now, discovery, &mut own);
        alone.flush(now, &mut own);
        effects.extend(own.into_iter().map(SwitchEffect::Controller));
    }

    /// Handles a message of another switch. Messages to itself, and those that do not depend on a
    /// controller, take the usual path.
    pub(super) fn message_alone(
        &mut self,
        now: Time,
        reverse: Hops,
        opened: Opened,
    ) -> Result<(), Refusal> {
        if self.alone.is_none() || opened.from == self.chassis.incarnation {
            return self.message(now, opened);
        }
        self.with_alone(|alone, out| alone.message(now, reverse, opened, out)).unwrap_or(Ok(()))
    }

    /// Calls the static control plane, if there is one, and takes its requests.
    pub(super) fn with_alone<R>(
        &mut self,
        call: impl FnOnce(&mut StaticControl, &mut Vec<Effect>) -> R,
    ) -> Option<R> {
        let mut own = Vec::new();
        let done = self.alone.as_deref_mut().map(|alone| call(alone, &mut own));
        self.chassis.effects.extend(own.into_iter().map(SwitchEffect::Controller));
        done
    }

    /// Handles a command of the controller within this switch.
    pub(super) fn command_alone(&mut self, now: Time, to: NodeId, item: Item) {
        let Some(alone) = &mut self.alone else { return };
        if let Some(item) = alone.command(to, item) {
            let Chassis { plane, effects, .. } = &mut self.chassis;
            let to = (now, VlanId::NONE);
            self.edge.with(to, plane, effects, |mut call| call.item(item));
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
        let changed = self.with_alone(|alone, out| alone.change_policy(now, change, out));
        let Some(changed) = changed else { return };
        for effect in core::mem::take(&mut self.chassis.effects) {
            self.apply(now, effect, out);
        }
        let result = changed.map(Done::Policy).map_err(CommandError::Policy);
        out.push(Action::Reply(Reply { id, result }));
    }
}
