//! Convergence of a fabric after the last fault.

use super::World;
use super::wrong::{self, agrees, works};
use axon_wire::{Span, Time};
use std::collections::HashMap;
use std::sync::Mutex;

/// Maximum time from the last fault until the hosts reach each other. It is at least the time for
/// which routes from an earlier incarnation may wait for a decision. It is less than the
/// controller's timeout for a silent switch, which would repair anything.
const WITHIN: Span = Span::from_secs(30);
/// Maximum number of messages, as a guard against a fabric that never quiesces.
const STEPS_MAX: usize = 20_000;
/// Number of clock steps within which an initial fabric is connected.
const START_TICKS: usize = 40;

/// States from which the hosts are known to reach each other, with the times.
#[derive(Debug, Default)]
pub(crate) struct Settled(Mutex<HashMap<u128, Time>>);

impl Settled {
    /// Returns whether the hosts reach each other soon without further losses. Steps are
    /// deterministic, so a path that reaches a known state ends in the same way.
    pub(crate) fn reaches(&self, start: u128, world: &World) -> bool {
        let until = world.now + WITHIN;
        if !world.links.can_connect() {
            return true;
        }
        if let Some(at) = self.known(start) {
            return at <= until;
        }
        let mut world = world.clone();
        let (mut way, mut at) = (Vec::new(), start);
        for _ in 0..STEPS_MAX {
            if let Some(time) = self.known(at) {
                return self.learn(way, time, until);
            }
            way.push(at);
            if !world.deliver_any() {
                if is_connected(&world) && agrees(&world) {
                    return self.learn(way, world.now, until);
                }
                world.ask_and_tick();
                if world.now > until {
                    return false;
                }
            }
            // All messages in flight arrive before time passes.
            world.forget_moot(true);
            at = world.print();
        }
        false
    }

    fn known(&self, print: u128) -> Option<Time> {
        self.0.lock().ok()?.get(&print).copied()
    }

    fn learn(&self, way: Vec<u128>, time: Time, until: Time) -> bool {
        if let Ok(mut known) = self.0.lock() {
            known.extend(way.into_iter().map(|print| (print, time)));
        }
        time <= until
    }
}

/// Returns whether each host reaches the other host and no invariant is violated.
pub(crate) fn is_connected(world: &World) -> bool {
    (0..world.wiring().hosts()).all(|host| works(world, host)) && wrong::find(world).is_none()
}

/// Returns the number of backups that edges have used since they started.
pub(crate) fn backups_used(world: &World) -> u64 {
    world.switches.iter().map(|switch| switch.edge.counters().backups_used).sum()
}

impl World {
    fn ask_and_tick(&mut self) {
        self.tick();
        for host in 0..self.wiring().hosts() {
            if !works(self, host) {
                self.request(host, 1 - host);
            }
        }
    }

    /// Lets hosts send requests and time pass, until the hosts reach each other and have their
    /// backups.
    pub(crate) fn connect(&mut self) {
        for _ in 0..START_TICKS {
            self.quiesce();
            let has_backups =
                self.switches.iter().any(|switch| switch.edge.plain().backups().next().is_some());
            if is_connected(self) && (has_backups || self.wiring().links.len() < 3) {
                return;
            }
            self.ask_and_tick();
        }
    }
}
