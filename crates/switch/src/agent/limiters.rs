//! Reaction points of the agent: one for each priority that congestion notifications limit.

use super::config::{AgentConfig, FABRIC};
use alloc::vec::Vec;
use axon_node::Action;
use axon_plane::Ports;
use axon_plane::qcn::{RateLimiter, RpError};
use axon_wire::cn::Cnm;
use axon_wire::priority::{PRIORITIES, Priority, TrafficClass};
use axon_wire::{Bytes, Time};

/// Reaction points by priority.
#[derive(Clone, Debug)]
pub(super) struct Limiters {
    limiters: [Option<RateLimiter>; PRIORITIES],
    /// Congestion notifications that were acted on, by priority.
    cnms: [u64; PRIORITIES],
}

impl Limiters {
    /// Creates the reaction points of a configuration.
    ///
    /// # Errors
    /// Invalid variables of the reaction points.
    pub(super) fn new(config: &AgentConfig) -> Result<Limiters, RpError> {
        let mut limiters = [const { None }; PRIORITIES];
        if let Some(reaction) = &config.reaction {
            for priority in reaction.priorities.iter() {
                let seed = reaction.seed.wrapping_add(priority.value().into());
                let burst = Bytes(config.frame_bytes_max as u64);
                limiters[priority.index()] = Some(RateLimiter::new(reaction.point, burst, seed)?);
            }
        }
        Ok(Limiters { limiters, cnms: [0; PRIORITIES] })
    }

    /// Returns the reaction point of a priority, if it has one.
    pub(super) fn of(&self, priority: Priority) -> Option<&RateLimiter> {
        self.limiters[priority.index()].as_ref()
    }

    /// Returns the number of congestion notifications for a priority that were acted on.
    pub(super) fn cnms(&self, priority: Priority) -> u64 {
        self.cnms[priority.index()]
    }

    /// Acts on a congestion notification. Returns whether its priority has a reaction point.
    pub(super) fn notified(
        &mut self,
        now: Time,
        cnm: &Cnm,
        ports: &mut Ports,
        out: &mut Vec<Action>,
    ) -> bool {
        let Some(limiter) = &mut self.limiters[cnm.priority.index()] else { return false };
        limiter.notified(now, cnm.feedback);
        self.cnms[cnm.priority.index()] += 1;
        self.keep_to_rate(now, cnm.priority, ports, out);
        true
    }

    /// Accounts for a frame that was sent with `cost` bytes on the wire.
    pub(super) fn sent(
        &mut self,
        now: Time,
        (priority, cost): (Priority, Bytes),
        ports: &mut Ports,
        out: &mut Vec<Action>,
    ) {
        if let Some(limiter) = &mut self.limiters[priority.index()] {
            limiter.sent(now, cost);
            self.keep_to_rate(now, priority, ports, out);
        }
    }

    /// Schedules the next frame of a priority.
    fn keep_to_rate(
        &mut self,
        now: Time,
        priority: Priority,
        ports: &mut Ports,
        out: &mut Vec<Action>,
    ) {
        if let Some(limiter) = &mut self.limiters[priority.index()] {
            let ready_at = limiter.ready_at(now);
            ports.hold_back(now, FABRIC, priority, ready_at, out);
        }
    }

    /// Processes timers: rates rise, or the reaction point of a recovered idle flow is freed.
    pub(super) fn recover(&mut self, now: Time, ports: &mut Ports, out: &mut Vec<Action>) {
        for priority in Priority::ALL {
            let Some(limiter) = &mut self.limiters[priority.index()] else { continue };
            if limiter.deadline().is_none_or(|deadline| deadline > now) {
                continue;
            }
            limiter.advance(now);
            let class = TrafficClass::ALL[priority.index()];
            let waiting = ports.dcb().map_or(Bytes(0), |dcb| dcb.memory().queued(FABRIC, class));
            if waiting == Bytes(0) {
                limiter.idle(now);
            }
            self.keep_to_rate(now, priority, ports, out);
        }
    }

    /// Returns when a timer expires next.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.limiters.iter().flatten().filter_map(RateLimiter::deadline).min()
    }
}
