//! Estimates when an agent read a packet.
//!
//! An agent publishes the number of packets that it has read, but not when it read them. The switch
//! samples that number [`LOOKS`] times within the longest hold time and keeps each sample for that
//! time. The hold time of a packet starts at the last sample at which it was unread. While the
//! agent continues to read, a packet that is queued unread behind others does not count as held.

use axon_wire::{Span, Time};
use std::collections::VecDeque;

/// Samples in the longest hold time.
const LOOKS: u64 = 8;

/// Samples of the read counter of an agent.
#[derive(Debug, Default)]
pub(super) struct Looks {
    /// Read counter, modulo 2^32, and time of each sample, oldest first.
    looks: VecDeque<(u32, Time)>,
    /// Highest counter so far, and the time of the first sample with it. `None` before the first
    /// sample.
    most: u32,
    moved_at: Time,
}

impl Looks {
    /// Returns the interval between samples.
    pub(crate) fn pause(hold_max: Span) -> Span {
        Span::from_nanos(hold_max.as_nanos() / LOOKS)
    }

    /// Samples the read counter at `now`. A counter that goes backwards counts as unchanged.
    pub(crate) fn look(&mut self, now: Time, read: u32, hold_max: Span) {
        if read.wrapping_sub(self.most) as i32 > 0 {
            (self.most, self.moved_at) = (read, now);
        }
        while self.looks.front().is_some_and(|&(_, at)| at + hold_max <= now) {
            self.looks.pop_front();
        }
        let pause = Looks::pause(hold_max);
        let before = self.looks.len().checked_sub(2).and_then(|at| self.looks.get(at));
        if before.is_some_and(|&(_, at)| now < at + pause) {
            // The second-to-last sample is less than one interval old, so the new one replaces the
            // last.
            self.looks.pop_back();
        }
        self.looks.push_back((self.most, now));
    }

    /// Returns whether the agent has read anything within the longest hold time.
    pub(crate) fn reads(&self, now: Time, hold_max: Span) -> bool {
        self.moved_at > Time::ZERO && self.moved_at + hold_max > now
    }

    /// Returns the time of the last sample at which packet `number` was unread. Packets are
    /// numbered from 0, modulo 2^32.
    pub(crate) fn unread_at(&self, number: u32) -> Option<Time> {
        let is_unread = |read: u32| read.wrapping_sub(number) as i32 <= 0;
        self.looks.iter().rev().find(|&&(read, _)| is_unread(read)).map(|&(_, at)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOLD_MAX: Span = Span::from_millis(80);

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn a_packet_is_read_after_the_last_look_at_which_it_was_not() {
        let mut looks = Looks::default();
        for (now, read) in [(10, 0), (20, 0), (30, 3), (40, 4)] {
            looks.look(at(now), read, HOLD_MAX);
        }
        let unread = [0, 2, 3, 4].map(|number| looks.unread_at(number));
        assert_eq!(unread, [at(20), at(20), at(30), at(40)].map(Some));
        looks.look(at(101), 5, HOLD_MAX);
        assert_eq!(looks.unread_at(2), None, "that look was too long ago");
        assert_eq!(looks.unread_at(4), Some(at(40)));
        let mut round = Looks::default();
        round.look(at(1), i32::MAX as u32, HOLD_MAX);
        round.look(at(2), u32::MAX - 1, HOLD_MAX);
        round.look(at(10), u32::MAX, HOLD_MAX);
        round.look(at(20), 1, HOLD_MAX);
        assert_eq!([u32::MAX, 0, 1].map(|n| round.unread_at(n)), [10, 10, 20].map(at).map(Some));
    }

    #[test]
    fn who_goes_on_reads_and_who_takes_it_back_does_not() {
        let mut looks = Looks::default();
        looks.look(at(100), 0, HOLD_MAX);
        assert!(!looks.reads(at(100), HOLD_MAX), "it has read nothing yet");
        looks.look(at(120), 1, HOLD_MAX);
        assert!(looks.reads(at(199), HOLD_MAX) && !looks.reads(at(200), HOLD_MAX));
        for (now, read) in [(130, 0), (140, 1), (150, u32::MAX), (160, 1)] {
            looks.look(at(now), read, HOLD_MAX);
        }
        assert!(!looks.reads(at(200), HOLD_MAX), "it was there before");
    }

    #[test]
    fn few_looks_are_kept_however_often_it_is_looked() {
        let mut looks = Looks::default();
        for micros in 0..400_000 {
            looks.look(Time::ZERO + Span::from_micros(micros), micros as u32 / 1000, HOLD_MAX);
            assert!(looks.looks.len() <= LOOKS as usize + 2);
        }
        // Packet 350 was unread until 350 ms.
        let pause = Looks::pause(HOLD_MAX);
        let seen = looks.unread_at(350).unwrap();
        assert!(seen <= at(351) && seen + pause + pause > at(351), "{seen:?}");
    }
}
