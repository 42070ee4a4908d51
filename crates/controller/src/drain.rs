//! Draining: waiting for frames on old paths while a new rule of the router replaces the old one.
//!
//! A router with an order of the switches may have to make a new one, after failures for which no
//! link can be reoriented (`router/up_down`). Paths of both orders together may close a cycle of
//! buffers. So the router returns only paths that close no cycle with the old ones, which edges may
//! still have and on which frames may be in flight. A flow without such a path loses its route and
//! gets none until draining ends. The steps are:
//!
//! 1. Routes and backups that violate the new order are replaced or removed. Routes are on the
//!    streams at once, backups after one pass over all of them.
//! 2. Every switch with links acknowledges its stream up to there: no frame takes such a path any
//!    more. A switch that is cut off from the others is skipped, since none of its frames leaves
//!    it. Routes of an earlier incarnation without a decision delay this step, as they are in use.
//! 3. [`Timers::drain_max`](axon_link::config::Timers::drain_max) passes, in which the last frame
//!    on an old path arrives.
//! 4. The router drops the old paths. Flows without a route get one as soon as their edge repeats
//!    its request.
//!
//! A violation found meanwhile, such as the report of an edge that has used an old backup, restarts
//! the steps.

use super::conductor::Controller;
use super::draining::State;
use alloc::vec::Vec;
use axon_link::effect::Effect;
use axon_wire::vlan::VlanId;
use axon_wire::{NodeId, Time};

impl Controller {
    /// Returns whether old paths are draining, so that a flow may be without a path.
    pub fn is_draining(&self) -> bool {
        self.router.draining().is_some()
    }

    /// Returns whether the graph has links of a switch.
    pub fn has_links(&self, node: NodeId) -> bool {
        self.net.graph().index_of(node).is_some_and(|at| !self.net.graph().edges(at).is_empty())
    }

    /// Handles the acknowledgement of the request `number` by every switch with links
    /// ([`Effect::AwaitAcknowledged`]).
    pub fn acknowledged(&mut self, now: Time, number: u64) {
        if self.drain.state == State::Acknowledging && self.drain.number == number {
            self.drain.state = State::Until(now + self.drain.span);
        }
    }

    /// Advances draining as far as possible.
    pub(super) fn drain(&mut self, now: Time, out: &mut Vec<Effect>) {
        let of = self.router.draining();
        if self.drain.of != of {
            self.drain.of = of;
            self.drain.again();
        }
        let Some(_) = of else { return };
        match self.drain.state {
            State::Replacing if self.take_over.len() == 0 && self.backups_are_planned() => {
                self.drain.state = State::Acknowledging;
                self.drain.number += 1;
                let number = self.drain.number;
                out.push(Effect::AwaitAcknowledged { vlan: VlanId::NONE, number });
            }
            State::Until(until) if until <= now => {
                self.router.drained();
                self.drain.of = None;
                self.backups_changed();
            }
            _ => {}
        }
    }
}
