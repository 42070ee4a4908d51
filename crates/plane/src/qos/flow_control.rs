//! Priority-based flow control at one port (IEEE 802.1Q clause 36, 802.3 annex 31D), and
//! the older PAUSE (802.3 annex 31B), which pauses all priorities.
//!
//! Reception ([`PauseState`]): each priority has a timer. A frame sets the timers of the priorities
//! in it to a number of quanta from now; zero ends a pause at once. While a timer runs, no frame of
//! that priority begins; nor while its own reaction point holds the priority back.
//!
//! Transmission ([`PauseRequests`]): the memory signals the priority groups that are to pause
//! (xoff) or resume (xon). One frame contains all changes. A lasting pause is repeated when half of
//! its time is over, so that it never expires at the peer.

use axon_wire::mac_control::{Pfc, Quanta};
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet};
use axon_wire::{Rate, Span, Time};

/// Pauses that a port has received from its peer, and those of its own reaction points.
#[derive(Clone, Copy, Debug, Default)]
pub struct PauseState {
    until: [Time; PRIORITIES],
    /// Times until which priorities are held back here, regardless of the peer.
    held: [Time; PRIORITIES],
    /// The latest of all these times.
    last: Time,
    /// Received frames that contained each priority (indications, in the standard's terms).
    pub indications: [u64; PRIORITIES],
}

impl PauseState {
    /// Applies a received frame. Priorities without flow control here (not in `enabled`) are
    /// ignored; returns those that are not.
    pub fn receive(
        &mut self,
        now: Time,
        pfc: &Pfc,
        rate: Rate,
        enabled: PrioritySet,
    ) -> PrioritySet {
        for priority in pfc.enabled.intersection(enabled).iter() {
            let index = priority.index();
            self.until[index] = now + pfc.times[index].time_at(rate);
            self.indications[index] += 1;
        }
        self.last = self.ends().max().unwrap_or(Time::ZERO);
        pfc.enabled.difference(enabled)
    }

    /// Sets the priorities with flow control: the pauses of others end.
    pub(crate) fn set_enabled(&mut self, enabled: PrioritySet) {
        for priority in PrioritySet::ALL.difference(enabled).iter() {
            self.until[priority.index()] = Time::ZERO;
        }
        self.last = self.ends().max().unwrap_or(Time::ZERO);
    }

    /// Holds a priority back until `until`.
    pub(crate) fn hold_back(&mut self, priority: Priority, until: Time) {
        self.held[priority.index()] = until;
        self.last = self.ends().max().unwrap_or(Time::ZERO);
    }

    /// Iterates over the times at which each priority may send again.
    fn ends(&self) -> impl Iterator<Item = Time> + '_ {
        self.until.iter().zip(&self.held).map(|(&until, &held)| until.max(held))
    }

    /// Returns the priorities that may not begin a frame now.
    #[inline]
    pub fn paused(&self, now: Time) -> PrioritySet {
        let mut paused = PrioritySet::EMPTY;
        if self.last > now {
            let running = self.ends().zip(Priority::ALL).filter(|&(until, _)| until > now);
            running.for_each(|(_, priority)| paused.insert(priority));
        }
        paused
    }

    /// Returns the end of the next pause, if any.
    pub fn next_end(&self, now: Time) -> Option<Time> {
        self.ends().filter(|&until| until > now).min()
    }

    /// Ends all received pauses after loss of the link; priorities held back here stay so.
    pub fn clear(&mut self) {
        self.until = [Time::ZERO; PRIORITIES];
        self.last = self.ends().max().unwrap_or(Time::ZERO);
    }
}

/// Pauses that a port requests of its peer.
#[derive(Clone, Copy, Debug, Default)]
pub struct PauseRequests {
    /// Number of requesters of a pause of each priority: a priority group, queues that it sends to.
    requesters: [u32; PRIORITIES],
    /// Priorities without flow control, regardless of requests.
    disabled: PrioritySet,
    /// Priorities to pause: the requested ones with flow control.
    paused: PrioritySet,
    /// Priorities to pause for the time of one request only.
    once: PrioritySet,
    /// Priorities changed since the last frame to the peer.
    unsent: PrioritySet,
    /// Time at which XOFF is to be repeated for paused priorities.
    refresh_at: Option<Time>,
    /// Sent frames that contained each priority (requests, in the standard's terms).
    pub requests: [u64; PRIORITIES],
}

impl PauseRequests {
    /// Adds or removes a requester of a pause of a priority, which is paused while there is any.
    /// Each requester must call this with `false` once for each `true`.
    pub fn set(&mut self, priority: Priority, stop: bool) {
        let requesters = &mut self.requesters[priority.index()];
        *requesters = if stop { *requesters + 1 } else { requesters.saturating_sub(1) };
        self.update(priority);
    }

    /// Sets the priorities with flow control. Others that are paused get XON; pending requests of
    /// new ones take effect at once.
    pub(crate) fn set_enabled(&mut self, enabled: PrioritySet) {
        self.disabled = PrioritySet::ALL.difference(enabled);
        Priority::ALL.into_iter().for_each(|priority| self.update(priority));
    }

    /// Updates the state of a priority from its requests.
    fn update(&mut self, priority: Priority) {
        let stop = self.requesters[priority.index()] > 0 && !self.disabled.contains(priority);
        if self.paused.contains(priority) == stop {
            return;
        }
        match stop {
            true => self.paused.insert(priority),
            false => self.paused.remove(priority),
        }
        // Two changes before a frame could be sent may cancel out; sending the state is harmless.
        self.unsent.insert(priority);
    }

    /// Requests a pause of a priority for the time of one request. No XON follows.
    pub(crate) fn pause_once(&mut self, priority: Priority) {
        if !self.disabled.contains(priority) {
            self.once.insert(priority);
            self.unsent.insert(priority);
        }
    }

    /// Returns whether a frame is to be sent now.
    #[inline]
    pub fn is_due(&self, now: Time) -> bool {
        self.is_pending() || self.refresh_at.is_some_and(|at| at <= now)
    }

    /// Returns whether a change has not been sent to the peer yet.
    #[inline]
    pub(crate) fn is_pending(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Returns the time at which the next frame is due, if nothing changes before.
    #[inline]
    pub fn next(&self) -> Option<Time> {
        self.refresh_at
    }

    /// Returns the priorities paused by request of this port.
    pub fn paused(&self) -> PrioritySet {
        self.paused
    }

    /// Returns the frame to send now: all changes, and all priorities still paused. Pauses last for
    /// `time`.
    pub fn next_pfc(&mut self, now: Time, rate: Rate, time: Quanta) -> Pfc {
        let mut pfc = Pfc::default();
        for priority in self.unsent.union(self.paused).iter() {
            let stop = self.paused.union(self.once).contains(priority);
            pfc.set(priority, if stop { time } else { Quanta::ZERO });
            self.requests[priority.index()] += 1;
        }
        (self.unsent, self.once) = (PrioritySet::EMPTY, PrioritySet::EMPTY);
        let half = Span::from_ticks(time.time_at(rate).ticks() / 2);
        self.refresh_at = (!self.paused.is_empty()).then_some(now + half);
        pfc
    }

    /// Defers due frames until the wire, which is busy, is free.
    pub(crate) fn defer(&mut self) {
        self.unsent = self.unsent.union(self.paused);
        self.refresh_at = None;
    }

    /// Requests retransmission after the link was lost or restored: the state of the peer is
    /// unknown, and the paused priorities are sent first.
    pub fn resend(&mut self) {
        (self.unsent, self.once) = (self.paused, PrioritySet::EMPTY);
        self.refresh_at = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate::gbps(10);

    fn priority(number: u8) -> Priority {
        Priority::new(number).unwrap()
    }

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    fn pfc(list: &[(u8, u16)]) -> Pfc {
        let mut pfc = Pfc::default();
        list.iter().for_each(|&(number, quanta)| pfc.set(priority(number), Quanta(quanta)));
        pfc
    }

    #[test]
    fn the_last_value_counts_and_zero_ends_a_stop() {
        let mut state = PauseState::default();
        let all = PrioritySet::ALL;
        state.receive(at(0), &pfc(&[(3, 1_000)]), RATE, all);
        assert_eq!(state.paused(at(51_199)), PrioritySet::only(priority(3)));
        assert!(state.paused(at(51_200)).is_empty(), "1,000 quanta are 51,200 ns");
        state.receive(at(100_000), &pfc(&[(3, 1_000), (5, 10)]), RATE, all);
        state.receive(at(100_100), &pfc(&[(3, 20)]), RATE, all);
        assert_eq!(state.next_end(at(100_100)), Some(at(100_512)), "5 ends before 3");
        assert_eq!(state.paused(at(100_600)), PrioritySet::only(priority(3)));
        assert!(state.paused(at(101_124)).is_empty(), "shorter than before, it replaces it");
        state.receive(at(200_000), &pfc(&[(3, 65_535)]), RATE, all);
        state.receive(at(200_001), &pfc(&[(3, 0)]), RATE, all);
        assert!(state.paused(at(200_001)).is_empty());
        assert_eq!((state.indications[3], state.indications[5]), (5, 1));
    }

    #[test]
    fn a_time_without_its_bit_and_a_priority_without_flow_control_mean_nothing() {
        let mut state = PauseState::default();
        let mut frame = pfc(&[(3, 100), (4, 100)]);
        frame.times[6] = Quanta::MAX;
        let enabled = PrioritySet::only(priority(3));
        let ignored = state.receive(at(0), &frame, RATE, enabled);
        assert_eq!(ignored, PrioritySet::only(priority(4)));
        assert_eq!(state.paused(at(1)), enabled);
    }

    #[test]
    fn what_is_held_back_here_waits_for_both_ends() {
        let mut state = PauseState::default();
        let three = PrioritySet::only(priority(3));
        state.hold_back(priority(3), at(500));
        assert_eq!((state.paused(at(499)), state.next_end(at(0))), (three, Some(at(500))));
        state.receive(at(0), &pfc(&[(3, 20)]), RATE, three);
        assert_eq!(state.next_end(at(0)), Some(at(1_024)), "the later of both");
        state.receive(at(0), &pfc(&[(3, 0)]), RATE, three);
        assert_eq!(state.paused(at(499)), three, "the peer has no say in this");
        state.clear();
        assert_eq!(state.paused(at(499)), three);
        state.hold_back(priority(3), at(100));
        assert!(state.paused(at(100)).is_empty(), "a rate may rise");
    }

    #[test]
    fn changes_are_sent_once_and_xoff_again_at_half_time() {
        let mut requests = PauseRequests::default();
        assert!(!requests.is_due(at(0)));
        requests.set(priority(3), true);
        requests.set(priority(4), true);
        assert!(requests.is_due(at(0)));
        assert_eq!(requests.next_pfc(at(0), RATE, Quanta(1_000)), pfc(&[(3, 1_000), (4, 1_000)]));
        assert!(!requests.is_due(at(25_599)));
        assert_eq!(requests.next(), Some(at(25_600)));
        assert!(requests.is_due(at(25_600)));
        requests.set(priority(4), false);
        assert_eq!(requests.next_pfc(at(25_600), RATE, Quanta(1_000)), pfc(&[(3, 1_000), (4, 0)]));
        requests.set(priority(3), false);
        assert_eq!(requests.next_pfc(at(30_000), RATE, Quanta(1_000)), pfc(&[(3, 0)]));
        assert_eq!((requests.next(), requests.is_due(at(1 << 40))), (None, false));
        assert_eq!((requests.requests[3], requests.requests[4]), (3, 2));
    }

    #[test]
    fn a_sender_goes_on_when_nobody_wants_it_to_stop_any_more() {
        let mut requests = PauseRequests::default();
        requests.set(priority(3), true);
        requests.set(priority(3), true);
        assert_eq!(requests.next_pfc(at(0), RATE, Quanta(1_000)), pfc(&[(3, 1_000)]));
        requests.set(priority(3), false);
        assert!(!requests.is_due(at(0)), "one of two still wants it");
        requests.set(priority(3), false);
        assert_eq!(requests.next_pfc(at(0), RATE, Quanta(1_000)), pfc(&[(3, 0)]));
    }

    #[test]
    fn what_was_wanted_holds_when_a_priority_gets_flow_control() {
        let mut requests = PauseRequests::default();
        requests.set_enabled(PrioritySet::EMPTY);
        requests.set(priority(3), true);
        requests.pause_once(priority(4));
        assert!(!requests.is_due(at(0)));
        requests.set_enabled(PrioritySet::only(priority(3)));
        assert_eq!(requests.next_pfc(at(0), RATE, Quanta(1_000)), pfc(&[(3, 1_000)]));
        requests.set_enabled(PrioritySet::EMPTY);
        assert_eq!(requests.next_pfc(at(0), RATE, Quanta(1_000)), pfc(&[(3, 0)]));
    }

    #[test]
    fn xoff_for_one_time_is_not_repeated() {
        let mut requests = PauseRequests::default();
        requests.pause_once(priority(3));
        assert_eq!(requests.next_pfc(at(0), RATE, Quanta(1_000)), pfc(&[(3, 1_000)]));
        assert_eq!((requests.next(), requests.is_due(at(1 << 40))), (None, false));
    }

    #[test]
    fn after_a_new_link_xoff_is_sent_again_for_what_is_paused() {
        let mut requests = PauseRequests::default();
        requests.set(priority(3), true);
        requests.next_pfc(at(0), RATE, Quanta(1_000));
        requests.resend();
        assert!(requests.is_due(at(1)));
        assert_eq!(requests.next_pfc(at(1), RATE, Quanta(1_000)), pfc(&[(3, 1_000)]));
    }
}
