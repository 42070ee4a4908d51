//! Variables and timers of one port (IEEE 802.1D-2004 clauses 17.17 and 17.19).

use super::bpdu::Bpdu;
use super::vector::{PortId, Times, Vector};
use crate::bridge::plane::PortState;
use axon_wire::{Span, Time};

/// Role of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// The port has no carrier.
    #[default]
    Disabled,
    /// The port leads towards the root.
    Root,
    /// The port leads away from the root, and the LAN behind it reaches the root via this port.
    Designated,
    /// Another bridge serves the LAN behind the port, which is a second path to the root.
    Alternate,
    /// Another port of this bridge serves the LAN behind the port.
    Backup,
}

/// Source of a port's priority vector (clause 17.19.10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum InfoIs {
    /// No source, because the port is disabled.
    #[default]
    Disabled,
    /// The information has aged out.
    Aged,
    /// The bridge itself is the source.
    Mine,
    /// The source is the designated port of the LAN.
    Received,
}

/// State of the topology change machine (clause 17.31).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ChangeState {
    #[default]
    Inactive,
    Learning,
    Active,
}

/// Timer that counts down to zero or is held at its value.
///
/// In the standard, timers are counters that are decremented each second. These are points in time,
/// so that a timer of two seconds lasts two seconds, and an idle bridge can sleep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Timer {
    until: Time,
    held: Option<Span>,
}

impl Timer {
    pub fn start(&mut self, now: Time, span: Span) {
        *self = Timer { until: now + span, held: None };
    }

    pub(crate) fn stop(&mut self) {
        *self = Timer::default();
    }

    /// Holds the timer at `span` until it is released.
    pub(crate) fn hold(&mut self, span: Span) {
        *self = Timer { until: Time::ZERO, held: Some(span) };
    }

    /// Starts a held timer.
    pub(crate) fn release(&mut self, now: Time) {
        if let Some(span) = self.held {
            self.start(now, span);
        }
    }

    pub(crate) fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Returns whether the timer has reached zero.
    pub(crate) fn is_over(&self, now: Time) -> bool {
        self.held.is_none() && self.until <= now
    }

    /// Returns the time at which the timer reaches or has reached zero.
    pub(crate) fn moment(&self) -> Time {
        self.until
    }

    /// Returns the time at which the timer will reach zero, if it is running.
    pub(crate) fn deadline(&self, now: Time) -> Option<Time> {
        (self.held.is_none() && self.until > now).then_some(self.until)
    }
}

/// Port variables, which have the standard's names and meanings, such as `oper_edge`. The machines
/// share them, as in the standard; each is functions on the variables of a port.
#[derive(Clone, Debug)]
pub(super) struct Port {
    pub id: PortId,
    pub cost: u32,
    /// `portEnabled`: true if the port has carrier.
    pub enabled: bool,
    pub oper_edge: bool,
    pub info_is: InfoIs,
    pub role: Role,
    pub selected_role: Role,
    pub selected: bool,
    pub reselect: bool,
    pub updt_info: bool,
    pub agree: bool,
    pub agreed: bool,
    pub proposed: bool,
    pub proposing: bool,
    pub disputed: bool,
    pub sync: bool,
    pub synced: bool,
    pub re_root: bool,
    pub learn: bool,
    pub learning: bool,
    pub forward: bool,
    pub forwarding: bool,
    pub new_info: bool,
    pub rcvd_tc: bool,
    pub rcvd_tc_ack: bool,
    pub tc_prop: bool,
    pub change: ChangeState,
    pub tx_count: u32,
    /// `portPriority` and `portTimes`.
    pub vector: Vector,
    pub times: Times,
    /// `designatedPriority` and `designatedTimes`.
    pub designated: Vector,
    pub designated_times: Times,
    /// `rcvdMsg`: the message that has not been processed yet.
    pub message: Option<Bpdu>,
    /// `edgeDelayWhile`.
    pub edge_delay: Timer,
    /// `fdWhile`.
    pub fd: Timer,
    /// `helloWhen`.
    pub hello: Timer,
    /// `rbWhile`: runs while the port has recently been a backup port.
    pub rb: Timer,
    /// `rcvdInfoWhile`.
    pub info: Timer,
    /// `rrWhile`: runs while the port has recently been the root port.
    pub rr: Timer,
    /// `tcWhile`.
    pub tc: Timer,
    /// Time at which `tx_count` is decremented.
    pub tx_tick: Timer,
}

impl Port {
    pub(crate) fn new(id: PortId, cost: u32, times: Times) -> Port {
        let mut port = Port {
            id,
            cost,
            enabled: false,
            oper_edge: false,
            info_is: InfoIs::Disabled,
            role: Role::Disabled,
            selected_role: Role::Disabled,
            selected: false,
            reselect: true,
            updt_info: false,
            agree: false,
            agreed: false,
            proposed: false,
            proposing: false,
            disputed: false,
            sync: false,
            synced: true,
            re_root: false,
            learn: false,
            learning: false,
            forward: false,
            forwarding: false,
            new_info: false,
            rcvd_tc: false,
            rcvd_tc_ack: false,
            tc_prop: false,
            change: ChangeState::Inactive,
            tx_count: 0,
            vector: Vector::default(),
            times,
            designated: Vector::default(),
            designated_times: times,
            message: None,
            edge_delay: Timer::default(),
            fd: Timer::default(),
            hello: Timer::default(),
            rb: Timer::default(),
            info: Timer::default(),
            rr: Timer::default(),
            tc: Timer::default(),
            tx_tick: Timer::default(),
        };
        port.fd.hold(times.max_age.span());
        port
    }

    /// Runs the state transition machine (clause 17.30). The data plane follows at once. Returns
    /// whether there was a transition.
    pub fn follow(&mut self) -> bool {
        let changed = (self.learning, self.forwarding) != (self.learn, self.learn && self.forward);
        (self.learning, self.forwarding) = (self.learn, self.learn && self.forward);
        changed
    }

    /// Returns the port state for the data plane.
    pub(crate) fn state(&self) -> PortState {
        match (self.learning, self.forwarding) {
            (_, true) => PortState::Forwarding,
            (true, false) => PortState::Learning,
            (false, false) => PortState::Discarding,
        }
    }

    /// Returns `forwardDelay` (clause 17.20.5), given that the peer runs RSTP.
    pub(crate) fn forward_delay(&self) -> Span {
        self.designated_times.hello.span()
    }

    /// Returns the earliest time at which one of the port's timers reaches zero.
    pub(crate) fn deadline(&self, now: Time) -> Option<Time> {
        let tx_tick = if self.new_info { self.tx_tick.deadline(now) } else { None };
        let timers = [&self.edge_delay, &self.fd, &self.hello, &self.rb];
        let others = [&self.info, &self.rr, &self.tc];
        let running = timers.into_iter().chain(others).filter_map(|timer| timer.deadline(now));
        running.chain(tx_tick).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_runs_out_unless_it_is_held() {
        let at = Time::from_nanos;
        let mut timer = Timer::default();
        assert!(timer.is_over(Time::ZERO) && timer.deadline(Time::ZERO).is_none());
        timer.start(at(10), Span::from_nanos(5));
        assert_eq!((timer.is_over(at(14)), timer.deadline(at(14))), (false, Some(at(15))));
        assert!(timer.is_over(at(15)));
        timer.hold(Span::from_nanos(7));
        assert!(timer.is_held() && !timer.is_over(at(1000)) && timer.deadline(at(16)).is_none());
        timer.release(at(20));
        assert_eq!(timer.deadline(at(20)), Some(at(27)));
        timer.stop();
        assert!(timer.is_over(at(21)));
    }
}
