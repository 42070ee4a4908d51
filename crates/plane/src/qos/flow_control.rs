//! Priority-based flow control at one port (IEEE 802.1Q clause 36, 802.3 annex 31D), and
//! the older PAUSE (802.3 annex 31B), which stops all priorities.
//!
//! In plain English, what the peer tells us ([`Stops`]): each priority has a timer. A frame
//! sets the timers of the priorities that it names, to so many quanta from now; zero ends a
//! stop at once. While a timer runs, no frame of that priority begins; nor while the priority
//! is held back here, because its reaction point lets nothing more leave yet.
//!
//! What we tell the peer ([`Requests`]): the memory says which groups are to stop (xoff) or
//! may go on (xon). One frame tells all that has changed. A stop that lasts is told again when
//! half of its time is over, so that the peer never runs on by itself.

use axon_wire::mac_control::{Pfc, Quanta};
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet};
use axon_wire::{Rate, Span, Time};

/// What the peer of a port has told it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stops {
    until: [Time; PRIORITIES],
    /// What is held back here, whatever the peer says.
    held: [Time; PRIORITIES],
    /// The last of all these.
    last: Time,
    /// Frames that named each priority: the standard's name for those received.
    pub indications: [u64; PRIORITIES],
}

impl Stops {
    /// Takes in what the peer says. Priorities without flow control here (not in `enabled`)
    /// are ignored; answers which were.
    pub fn hear(&mut self, now: Time, told: &Pfc, rate: Rate, enabled: PrioritySet) -> PrioritySet {
        for priority in told.enabled.intersection(enabled).iter() {
            let index = priority.index();
            self.until[index] = now + told.times[index].time_at(rate);
            self.indications[index] += 1;
        }
        self.last = self.ends().max().unwrap_or(Time::ZERO);
        told.enabled.difference(enabled)
    }

    /// Only these priorities have flow control from now on: the stops of others are over.
    pub fn keep(&mut self, enabled: PrioritySet) {
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

    /// When each priority may go on.
    fn ends(&self) -> impl Iterator<Item = Time> + '_ {
        self.until.iter().zip(&self.held).map(|(&until, &held)| until.max(held))
    }

    /// The priorities that may not begin a frame now.
    #[inline]
    pub fn stopped(&self, now: Time) -> PrioritySet {
        let mut stopped = PrioritySet::EMPTY;
        if self.last > now {
            let stops = self.ends().zip(Priority::ALL).filter(|&(until, _)| until > now);
            stops.for_each(|(_, priority)| stopped.insert(priority));
        }
        stopped
    }

    /// When the next stop ends, if any runs.
    pub fn next_end(&self, now: Time) -> Option<Time> {
        self.ends().filter(|&until| until > now).min()
    }

    /// The link is gone: nobody has told anything.
    pub fn forget(&mut self) {
        self.until = [Time::ZERO; PRIORITIES];
        self.last = self.ends().max().unwrap_or(Time::ZERO);
    }
}

/// What a port has to tell its peer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Requests {
    /// How many want it to stand still: a group of the memory, queues that it sends to.
    wanted: [u32; PRIORITIES],
    /// Priorities without flow control, whatever anybody wants.
    disabled: PrioritySet,
    /// What is to stand still: what somebody wants to, of the others.
    stopped: PrioritySet,
    /// What is to be told to stop for one time only.
    once: PrioritySet,
    /// What the peer does not know yet.
    untold: PrioritySet,
    /// When what stands still is to be told again.
    refresh_at: Option<Time>,
    /// Frames that named each priority: the standard's name for those sent.
    pub requests: [u64; PRIORITIES],
}

impl Requests {
    /// Somebody wants the sender of a priority to stop, or no longer does. It stands still as
    /// long as anybody wants it to; each has to call this with `false` once for each `true`.
    pub fn set(&mut self, priority: Priority, stop: bool) {
        let wanted = &mut self.wanted[priority.index()];
        *wanted = if stop { *wanted + 1 } else { wanted.saturating_sub(1) };
        self.settle(priority);
    }

    /// Only these priorities have flow control from now on. Others that stand still may go on;
    /// what was wanted of one that gets it holds at once.
    pub fn keep(&mut self, enabled: PrioritySet) {
        self.disabled = PrioritySet::ALL.difference(enabled);
        Priority::ALL.into_iter().for_each(|priority| self.settle(priority));
    }

    /// Whether a priority stands still is as it should be now.
    fn settle(&mut self, priority: Priority) {
        let stop = self.wanted[priority.index()] > 0 && !self.disabled.contains(priority);
        if self.stopped.contains(priority) == stop {
            return;
        }
        match stop {
            true => self.stopped.insert(priority),
            false => self.stopped.remove(priority),
        }
        // Two changes before a frame could tell them may be none; to tell it does no harm.
        self.untold.insert(priority);
    }

    /// The sender of a priority is to be told to stop for as long as one request says. Nobody
    /// takes that back.
    pub fn stop_once(&mut self, priority: Priority) {
        if !self.disabled.contains(priority) {
            self.once.insert(priority);
            self.untold.insert(priority);
        }
    }

    /// Whether a frame is to be sent now.
    #[inline]
    pub fn is_due(&self, now: Time) -> bool {
        self.has_news() || self.refresh_at.is_some_and(|at| at <= now)
    }

    /// Whether the peer does not know yet what it is to do.
    #[inline]
    pub fn has_news(&self) -> bool {
        !self.untold.is_empty()
    }

    /// When the next frame is due, if nothing changes before.
    #[inline]
    pub fn next(&self) -> Option<Time> {
        self.refresh_at
    }

    /// What stands still.
    pub fn stopped(&self) -> PrioritySet {
        self.stopped
    }

    /// What to tell now: all that has changed, and all that still stands still. A stop is to
    /// last for `time`.
    pub fn tell(&mut self, now: Time, rate: Rate, time: Quanta) -> Pfc {
        let mut told = Pfc::default();
        for priority in self.untold.union(self.stopped).iter() {
            let stop = self.stopped.union(self.once).contains(priority);
            told.set(priority, if stop { time } else { Quanta::ZERO });
            self.requests[priority.index()] += 1;
        }
        (self.untold, self.once) = (PrioritySet::EMPTY, PrioritySet::EMPTY);
        let half = Span::from_ticks(time.time_at(rate).ticks() / 2);
        self.refresh_at = (!self.stopped.is_empty()).then_some(now + half);
        told
    }

    /// What is due cannot be told now: it is as soon as the wire is free.
    pub fn postpone(&mut self) {
        self.untold = self.untold.union(self.stopped);
        self.refresh_at = None;
    }

    /// The link is gone, or is there again: the peer knows nothing, and what stands still is
    /// told first.
    pub fn retell(&mut self) {
        (self.untold, self.once) = (self.stopped, PrioritySet::EMPTY);
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

    fn told(list: &[(u8, u16)]) -> Pfc {
        let mut told = Pfc::default();
        list.iter().for_each(|&(number, quanta)| told.set(priority(number), Quanta(quanta)));
        told
    }

    #[test]
    fn the_last_value_counts_and_zero_ends_a_stop() {
        let mut stops = Stops::default();
        let all = PrioritySet::ALL;
        stops.hear(at(0), &told(&[(3, 1_000)]), RATE, all);
        assert_eq!(stops.stopped(at(51_199)), PrioritySet::only(priority(3)));
        assert!(stops.stopped(at(51_200)).is_empty(), "1,000 quanta are 51,200 ns");
        stops.hear(at(100_000), &told(&[(3, 1_000), (5, 10)]), RATE, all);
        stops.hear(at(100_100), &told(&[(3, 20)]), RATE, all);
        assert_eq!(stops.next_end(at(100_100)), Some(at(100_512)), "5 ends before 3");
        assert_eq!(stops.stopped(at(100_600)), PrioritySet::only(priority(3)));
        assert!(stops.stopped(at(101_124)).is_empty(), "shorter than before, it replaces it");
        stops.hear(at(200_000), &told(&[(3, 65_535)]), RATE, all);
        stops.hear(at(200_001), &told(&[(3, 0)]), RATE, all);
        assert!(stops.stopped(at(200_001)).is_empty());
        assert_eq!((stops.indications[3], stops.indications[5]), (5, 1));
    }

    #[test]
    fn a_time_without_its_bit_and_a_priority_without_flow_control_mean_nothing() {
        let mut stops = Stops::default();
        let mut frame = told(&[(3, 100), (4, 100)]);
        frame.times[6] = Quanta::MAX;
        let enabled = PrioritySet::only(priority(3));
        let ignored = stops.hear(at(0), &frame, RATE, enabled);
        assert_eq!(ignored, PrioritySet::only(priority(4)));
        assert_eq!(stops.stopped(at(1)), enabled);
    }

    #[test]
    fn what_is_held_back_here_waits_for_both_ends() {
        let mut stops = Stops::default();
        let three = PrioritySet::only(priority(3));
        stops.hold_back(priority(3), at(500));
        assert_eq!((stops.stopped(at(499)), stops.next_end(at(0))), (three, Some(at(500))));
        stops.hear(at(0), &told(&[(3, 20)]), RATE, three);
        assert_eq!(stops.next_end(at(0)), Some(at(1_024)), "the later of both");
        stops.hear(at(0), &told(&[(3, 0)]), RATE, three);
        assert_eq!(stops.stopped(at(499)), three, "the peer has no say in this");
        stops.forget();
        assert_eq!(stops.stopped(at(499)), three);
        stops.hold_back(priority(3), at(100));
        assert!(stops.stopped(at(100)).is_empty(), "a rate may rise");
    }

    #[test]
    fn changes_are_told_once_and_stops_again_at_half_time() {
        let mut requests = Requests::default();
        assert!(!requests.is_due(at(0)));
        requests.set(priority(3), true);
        requests.set(priority(4), true);
        assert!(requests.is_due(at(0)));
        assert_eq!(requests.tell(at(0), RATE, Quanta(1_000)), told(&[(3, 1_000), (4, 1_000)]));
        assert!(!requests.is_due(at(25_599)));
        assert_eq!(requests.next(), Some(at(25_600)));
        assert!(requests.is_due(at(25_600)));
        requests.set(priority(4), false);
        assert_eq!(requests.tell(at(25_600), RATE, Quanta(1_000)), told(&[(3, 1_000), (4, 0)]));
        requests.set(priority(3), false);
        assert_eq!(requests.tell(at(30_000), RATE, Quanta(1_000)), told(&[(3, 0)]));
        assert_eq!((requests.next(), requests.is_due(at(1 << 40))), (None, false));
        assert_eq!((requests.requests[3], requests.requests[4]), (3, 2));
    }

    #[test]
    fn a_sender_goes_on_when_nobody_wants_it_to_stop_any_more() {
        let mut requests = Requests::default();
        requests.set(priority(3), true);
        requests.set(priority(3), true);
        assert_eq!(requests.tell(at(0), RATE, Quanta(1_000)), told(&[(3, 1_000)]));
        requests.set(priority(3), false);
        assert!(!requests.is_due(at(0)), "one of two still wants it");
        requests.set(priority(3), false);
        assert_eq!(requests.tell(at(0), RATE, Quanta(1_000)), told(&[(3, 0)]));
    }

    #[test]
    fn what_was_wanted_holds_when_a_priority_gets_flow_control() {
        let mut requests = Requests::default();
        requests.keep(PrioritySet::EMPTY);
        requests.set(priority(3), true);
        requests.stop_once(priority(4));
        assert!(!requests.is_due(at(0)));
        requests.keep(PrioritySet::only(priority(3)));
        assert_eq!(requests.tell(at(0), RATE, Quanta(1_000)), told(&[(3, 1_000)]));
        requests.keep(PrioritySet::EMPTY);
        assert_eq!(requests.tell(at(0), RATE, Quanta(1_000)), told(&[(3, 0)]));
    }

    #[test]
    fn a_stop_for_one_time_is_not_told_again() {
        let mut requests = Requests::default();
        requests.stop_once(priority(3));
        assert_eq!(requests.tell(at(0), RATE, Quanta(1_000)), told(&[(3, 1_000)]));
        assert_eq!((requests.next(), requests.is_due(at(1 << 40))), (None, false));
    }

    #[test]
    fn after_a_new_link_what_stands_still_is_told_again() {
        let mut requests = Requests::default();
        requests.set(priority(3), true);
        requests.tell(at(0), RATE, Quanta(1_000));
        requests.retell();
        assert!(requests.is_due(at(1)));
        assert_eq!(requests.tell(at(1), RATE, Quanta(1_000)), told(&[(3, 1_000)]));
    }
}
