//! Priority-based flow control at one port (IEEE 802.1Q clause 36, 802.3 annex 31D), and
//! the older PAUSE (802.3 annex 31B), which pauses all priorities.
//!
//! In plain English, what is received ([`PauseState`]): each priority has a timer. A frame
//! sets the timers of the priorities that it names, to so many quanta from now; zero ends a
//! pause at once. While a timer runs, no frame of that priority begins; nor while the priority
//! is held back here, because its reaction point lets nothing more leave yet.
//!
//! What is sent ([`PauseRequests`]): the memory says which priority groups are to pause (xoff) or
//! resume (xon). One frame says all that has changed. A pause that lasts is repeated when
//! half of its time is over, so that the peer never runs on by itself.

use axon_wire::mac_control::{Pfc, Quanta};
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet};
use axon_wire::{Rate, Span, Time};

/// The pauses that a port has received from its peer, and those of its own reaction points.
#[derive(Clone, Copy, Debug, Default)]
pub struct PauseState {
    until: [Time; PRIORITIES],
    /// What is held back here, whatever the peer says.
    held: [Time; PRIORITIES],
    /// The last of all these.
    last: Time,
    /// Frames that named each priority: the standard's name for those received.
    pub indications: [u64; PRIORITIES],
}

impl PauseState {
    /// Takes in what the peer says. Priorities without flow control here (not in `enabled`)
    /// are ignored; answers which were.
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

    /// Only these priorities have flow control from now on: the pauses of others are over.
    pub fn set_enabled(&mut self, enabled: PrioritySet) {
        for priority in PrioritySet::ALL.difference(enabled).iter() {
            self.until[priority.index()] = Time::ZERO;
        }
        self.last = self.ends().max().unwrap_or(Time::ZERO);
    }

    /// Holds a priority back until `until`, and no longer.
    pub fn hold_back(&mut self, priority: Priority, until: Time) {
        self.held[priority.index()] = until;
        self.last = self.ends().max().unwrap_or(Time::ZERO);
    }

    /// When each priority may send again.
    fn ends(&self) -> impl Iterator<Item = Time> + '_ {
        self.until.iter().zip(&self.held).map(|(&until, &held)| until.max(held))
    }

    /// The priorities that may not begin a frame now.
    #[inline]
    pub fn paused(&self, now: Time) -> PrioritySet {
        let mut paused = PrioritySet::EMPTY;
        if self.last > now {
            let running = self.ends().zip(Priority::ALL).filter(|&(until, _)| until > now);
            running.for_each(|(_, priority)| paused.insert(priority));
        }
        paused
    }

    /// When the next pause ends, if any runs.
    pub fn next_end(&self, now: Time) -> Option<Time> {
        self.ends().filter(|&until| until > now).min()
    }

    /// The link is gone, and the pauses that came by it; what is held back here stays so.
    pub fn clear(&mut self) {
        self.until = [Time::ZERO; PRIORITIES];
        self.last = self.ends().max().unwrap_or(Time::ZERO);
    }
}

/// The pauses that a port requests of its peer.
#[derive(Clone, Copy, Debug, Default)]
pub struct PauseRequests {
    /// How many request a pause of it: a priority group of the memory, queues that it sends to.
    requesters: [u32; PRIORITIES],
    /// Priorities without flow control, whatever is requested.
    disabled: PrioritySet,
    /// What is to pause: what is requested, of the priorities with flow control.
    paused: PrioritySet,
    /// What is to pause for one request's time only.
    once: PrioritySet,
    /// What has changed since the last frame to the peer.
    unsent: PrioritySet,
    /// When XOFF is to be repeated for what is paused.
    refresh_at: Option<Time>,
    /// Frames that named each priority: the standard's name for those sent.
    pub requests: [u64; PRIORITIES],
}

impl PauseRequests {
    /// One more requests a pause of a priority, or one no longer does. It is paused as
    /// long as anybody wants it to; each has to call this with `false` once for each `true`.
    pub fn set(&mut self, priority: Priority, stop: bool) {
        let requesters = &mut self.requesters[priority.index()];
        *requesters = if stop { *requesters + 1 } else { requesters.saturating_sub(1) };
        self.update(priority);
    }

    /// Only these priorities have flow control from now on. Others that are paused get XON;
    /// what was requested of one that gets it holds at once.
    pub fn set_enabled(&mut self, enabled: PrioritySet) {
        self.disabled = PrioritySet::ALL.difference(enabled);
        Priority::ALL.into_iter().for_each(|priority| self.update(priority));
    }

    /// Brings the state of a priority up to date with its requests.
    fn update(&mut self, priority: Priority) {
        let stop = self.requesters[priority.index()] > 0 && !self.disabled.contains(priority);
        if self.paused.contains(priority) == stop {
            return;
        }
        match stop {
            true => self.paused.insert(priority),
            false => self.paused.remove(priority),
        }
        // Two changes before a frame could be sent may be none; to send it does no harm.
        self.unsent.insert(priority);
    }

    /// Requests a pause of a priority for as long as one request lasts. No XON
    /// follows.
    pub fn pause_once(&mut self, priority: Priority) {
        if !self.disabled.contains(priority) {
            self.once.insert(priority);
            self.unsent.insert(priority);
        }
    }

    /// Whether a frame is to be sent now.
    #[inline]
    pub fn is_due(&self, now: Time) -> bool {
        self.is_pending() || self.refresh_at.is_some_and(|at| at <= now)
    }

    /// Whether the peer does not know yet what it is to do.
    #[inline]
    pub fn is_pending(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// When the next frame is due, if nothing changes before.
    #[inline]
    pub fn next(&self) -> Option<Time> {
        self.refresh_at
    }

    /// The priorities that are paused by request of this port.
    pub fn paused(&self) -> PrioritySet {
        self.paused
    }

    /// The frame to send now: all that has changed, and all that is still paused. A pause is to
    /// last for `time`.
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

    /// The wire is busy: what is due is sent as soon as it is free.
    pub fn defer(&mut self) {
        self.unsent = self.unsent.union(self.paused);
        self.refresh_at = None;
    }

    /// The link is gone, or is there again: the peer knows nothing, and what is paused is
    /// sent first.
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
