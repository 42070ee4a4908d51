//! Draining: what becomes of frames on old paths while a new rule of the router replaces another.
//!
//! In plain English: a router with an order of the switches may have to make a new one, after
//! failures for which no link can be turned (`router/up_down`). Paths of both orders may then close
//! a cycle of buffers. So the router gives out only paths that close none with those of before,
//! which edges may still have and on which frames may be in flight. A flow without such a path has
//! its route removed and none for the time being. Then:
//!
//! 1. Routes and backups that break the new order are replaced or removed; that is on the streams
//!    at once for routes, and after one look at all of them for backups.
//! 2. Every switch that has links acknowledges its stream up to there: no frame takes such a path
//!    any more. One that is cut off from the others is not waited for, since none of its frames
//!    leaves it. Routes of an earlier incarnation that wait for a decision are waited for, as they
//!    are in use.
//! 3. [`Timers::drain_max`](crate::config::Timers::drain_max) passes, in which the last frame on an
//!    old path arrives.
//! 4. The router forgets the old paths. Flows without a route get one as soon as their edge repeats
//!    its request.
//!
//! What breaks the order and comes to light meanwhile, as the report of an edge that has used an
//! old backup does, begins that anew.

use super::Controller;
use super::draining::State;
use crate::effect::Effect;
use alloc::vec::Vec;
use axon_wire::vlan::VlanId;
use axon_wire::{NodeId, Time};

impl Controller {
    /// Whether frames on paths of before are waited for, so that a flow may be without a path.
    pub fn is_draining(&self) -> bool {
        self.router.draining().is_some()
    }

    /// Whether a switch has links to others, as far as the controller knows.
    pub fn has_links(&self, node: NodeId) -> bool {
        self.graph.index_of(node).is_some_and(|at| !self.graph.edges(at).is_empty())
    }

    /// Every switch with links has acknowledged what was asked for with this number
    /// ([`Effect::AwaitAcknowledged`]).
    pub fn acknowledged(&mut self, now: Time, number: u64) {
        if self.drain.state == State::Acknowledging && self.drain.number == number {
            self.drain.state = State::Until(now + self.drain.span);
        }
    }

    /// Goes on with draining, as far as it can.
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
