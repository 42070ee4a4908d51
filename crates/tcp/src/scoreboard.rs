//! Sent data that is not acknowledged: in flight, lost, or selectively acknowledged (RFC 6675 §2,
//! RFC 8985 §5.2).
//!
//! The scoreboard keeps ranges of numbers with one state and one transmission time, not segments.
//! One burst is one range. A SACK block or a loss that covers part of a range splits it, and equal
//! neighbours are merged. A window without loss therefore costs 16 bytes per burst.

use crate::segment::Seq;
use alloc::collections::VecDeque;
use axon_wire::Time;

/// State of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// In flight.
    InFlight,
    /// Lost and not retransmitted.
    Lost,
    /// Selectively acknowledged.
    Sacked,
}

/// Range of numbers, which begins at the end of the previous range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    /// Time of the last transmission.
    pub(crate) sent: Time,
    pub(crate) end: Seq,
    pub(crate) fate: Fate,
    /// True if the range was retransmitted.
    pub(crate) again: bool,
}

/// Ranges of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    start: Seq,
    ranges: VecDeque<Range>,
    sacked: u32,
    lost: u32,
}

impl Scoreboard {
    /// Returns an empty scoreboard; `start` is the next number to send.
    pub(crate) fn new(start: Seq) -> Scoreboard {
        Scoreboard { start, ..Scoreboard::default() }
    }

    /// Returns the first number that is not acknowledged (SND.UNA).
    pub(crate) fn start(&self) -> Seq {
        self.start
    }

    /// Returns the next number to send (SND.NXT).
    pub(crate) fn end(&self) -> Seq {
        self.ranges.back().map_or(self.start, |range| range.end)
    }

    /// Returns the count of unacknowledged numbers.
    pub(crate) fn outstanding(&self) -> u32 {
        self.end().since(self.start)
    }

    /// Returns the count of numbers considered in flight (RFC 6675 §4, `Pipe`).
    pub(crate) fn pipe(&self) -> u32 {
        self.outstanding().saturating_sub(self.sacked).saturating_sub(self.lost)
    }

    /// Returns the count of selectively acknowledged numbers.
    pub(crate) fn sacked(&self) -> u32 {
        self.sacked
    }

    /// Returns the count of lost numbers that are not retransmitted.
    pub(crate) fn lost(&self) -> u32 {
        self.lost
    }

    /// Returns the heap memory in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.ranges.capacity() * size_of::<Range>()
    }

    /// Appends `numbers` new numbers, sent at `now`.
    pub(crate) fn push(&mut self, numbers: u32, now: Time) {
        let end = self.end() + numbers;
        match self.ranges.back_mut() {
            Some(last) if last.sent == now && last.fate == Fate::InFlight && !last.again => {
                last.end = end;
            }
            _ => {
                let range = Range { sent: now, end, fate: Fate::InFlight, again: false };
                self.ranges.push_back(range);
            }
        }
    }

    /// Acknowledges everything before `ack`, which must not exceed the end. Calls `each` with every
    /// range that had not been sacked, and its length.
    pub(crate) fn acknowledge(&mut self, ack: Seq, mut each: impl FnMut(Range, u32)) {
        while let Some(&first) = self.ranges.front() {
            let end = first.end.min(ack);
            let length = end.since(self.start);
            if length == 0 {
                break;
            }
            match first.fate {
                Fate::Sacked => self.sacked -= length,
                Fate::Lost => self.lost -= length,
                Fate::InFlight => {}
            }
            if first.fate != Fate::Sacked {
                each(Range { end, ..first }, length);
            }
            self.start = end;
            if end != first.end {
                break;
            }
            self.ranges.pop_front();
        }
        if self.ranges.is_empty() && self.ranges.capacity() > 8 {
            self.ranges = VecDeque::new();
        }
    }

    /// Splits the range at `at` if needed. Returns the index of the range that begins there.
    fn cut(&mut self, at: Seq) -> usize {
        let (start, place) = (self.start, at.since(self.start));
        let index = self.ranges.partition_point(|range| range.end.since(start) <= place);
        let begins = self.begins(index);
        match self.ranges.get(index).copied() {
            Some(range) if begins != at => {
                self.ranges.insert(index, Range { end: at, ..range });
                index + 1
            }
            _ => index,
        }
    }

    fn begins(&self, index: usize) -> Seq {
        let before = index.checked_sub(1).and_then(|before| self.ranges.get(before));
        before.map_or(self.start, |range| range.end)
    }

    /// Merges equal neighbours.
    fn join(&mut self) {
        let alike = |one: &Range, other: &Range| {
            let sacked = one.fate == Fate::Sacked;
            one.fate == other.fate && (sacked || (one.sent, one.again) == (other.sent, other.again))
        };
        let mut kept = 0;
        for index in 1..self.ranges.len() {
            if alike(&self.ranges[kept], &self.ranges[index]) {
                self.ranges[kept].end = self.ranges[index].end;
            } else {
                kept += 1;
                self.ranges[kept] = self.ranges[index];
            }
        }
        self.ranges.truncate(kept + 1);
    }

    /// Marks the outstanding part of a SACK block. Calls `each` with every range that had not been
    /// sacked, and its length.
    pub(crate) fn sack(&mut self, (from, to): (Seq, Seq), mut each: impl FnMut(Range, u32)) {
        let (from, to) = (from.max(self.start), to.min(self.end()));
        if !from.is_before(to) {
            return;
        }
        let first = self.cut(from);
        let last = self.cut(to);
        let mut begin = from;
        for range in self.ranges.range_mut(first..last) {
            let length = range.end.since(begin);
            begin = range.end;
            if range.fate == Fate::Sacked {
                continue;
            }
            if range.fate == Fate::Lost {
                self.lost -= length;
            }
            each(*range, length);
            self.sacked += length;
            range.fate = Fate::Sacked;
        }
        self.join();
    }

    /// Marks as lost each range in flight for which `is_lost` returns true. `is_lost` gets the
    /// start of the range and the range. Returns the count of lost numbers.
    pub(crate) fn lose(&mut self, mut is_lost: impl FnMut(Seq, &Range) -> bool) -> u32 {
        let (mut begin, mut count) = (self.start, 0);
        for range in &mut self.ranges {
            if range.fate == Fate::InFlight && is_lost(begin, range) {
                range.fate = Fate::Lost;
                count += range.end.since(begin);
            }
            begin = range.end;
        }
        if count > 0 {
            self.lost += count;
            self.join();
        }
        count
    }

    /// Marks the first `numbers` outstanding numbers as lost, if in flight.
    pub(crate) fn lose_first(&mut self, numbers: u32) -> u32 {
        let to = self.start + numbers.min(self.outstanding());
        self.cut(to);
        self.lose(|_, range| !range.end.is_after(to))
    }

    /// Returns start and end of the first lost range.
    pub(crate) fn first_lost(&self) -> Option<(Seq, Seq)> {
        if self.lost == 0 {
            return None;
        }
        let index = self.ranges.iter().position(|range| range.fate == Fate::Lost)?;
        Some((self.begins(index), self.ranges[index].end))
    }

    /// Records a retransmission of numbers that lie in one range that is not sacked.
    pub(crate) fn resend(&mut self, from: Seq, to: Seq, now: Time) {
        let first = self.cut(from);
        let last = self.cut(to);
        let mut begin = from;
        for range in self.ranges.range_mut(first..last) {
            if range.fate == Fate::Lost {
                self.lost -= range.end.since(begin);
            }
            begin = range.end;
            (range.fate, range.sent, range.again) = (Fate::InFlight, now, true);
        }
        self.join();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn at(micros: u64) -> Time {
        Time::from_nanos(micros * 1000)
    }

    /// Returns a board of ten segments of 100 in two bursts, across the wrap of the numbers.
    fn sample() -> Scoreboard {
        let mut board = Scoreboard::new(Seq(0u32.wrapping_sub(250)));
        (0..10).for_each(|n| board.push(100, at(n / 5)));
        board
    }

    fn seq(place: u32) -> Seq {
        Seq(place.wrapping_sub(250))
    }

    #[test]
    fn a_burst_is_one_range_and_a_range_is_16_bytes() {
        let board = sample();
        assert_eq!((board.ranges.len(), size_of::<Range>()), (2, 16));
        assert_eq!((board.outstanding(), board.pipe(), board.end()), (1000, 1000, seq(1000)));
    }

    #[test]
    fn blocks_cut_and_join_and_count_once() {
        let mut board = sample();
        let mut arrived = Vec::new();
        let mut sack = |board: &mut Scoreboard, from, to| {
            board.sack((seq(from), seq(to)), |range, length| arrived.push((range.sent, length)));
        };
        sack(&mut board, 200, 300);
        sack(&mut board, 400, 600);
        sack(&mut board, 200, 600);
        sack(&mut board, 900, 5000);
        sack(&mut board, 300, 300);
        let lengths: Vec<u32> = arrived.iter().map(|&(_, length)| length).collect();
        assert_eq!(lengths, [100, 100, 100, 100, 100]);
        assert_eq!(arrived[2].0, at(1), "of the second burst");
        assert_eq!((board.sacked(), board.pipe(), board.ranges.len()), (500, 500, 4));
        let mut acked = 0;
        board.acknowledge(seq(650), |_, length| acked += length);
        assert_eq!((acked, board.sacked(), board.start()), (250, 100, seq(650)));
        board.acknowledge(seq(1000), |_, _| ());
        assert_eq!((board.outstanding(), board.sacked(), board.pipe()), (0, 0, 0));
    }

    #[test]
    fn what_is_lost_leaves_the_pipe_until_it_is_sent_again() {
        let mut board = sample();
        assert_eq!(board.lose(|_, range| range.sent == at(0)), 500);
        assert_eq!((board.lost(), board.pipe()), (500, 500));
        assert_eq!(board.first_lost(), Some((seq(0), seq(500))));
        board.resend(seq(0), seq(100), at(2));
        assert_eq!((board.lost(), board.pipe()), (400, 600));
        assert_eq!(board.first_lost(), Some((seq(100), seq(500))));
        board.sack((seq(100), seq(200)), |_, _| ());
        assert_eq!((board.lost(), board.sacked()), (300, 100));
        board.acknowledge(seq(450), |_, _| ());
        assert_eq!((board.lost(), board.sacked(), board.pipe()), (50, 0, 500));
        assert_eq!(board.lose_first(100), 50, "50 were lost before");
        assert_eq!(board.lost(), 100);
    }

    /// Compares the ranges with a model that keeps one state per number.
    #[test]
    fn ranges_are_those_of_a_list_of_numbers() {
        let mut random = oorandom::Rand32::new(7);
        for _ in 0..300 {
            let mut board = sample();
            let (mut model, mut start) = ([Fate::InFlight; 1000], 0usize);
            for step in 0..40 {
                let from = start + random.rand_range(0..(1001 - start as u32)) as usize;
                let to = from + random.rand_range(0..(1001 - from as u32)) as usize;
                match random.rand_range(0..4) {
                    0 => {
                        board.sack((seq(from as u32), seq(to as u32)), |_, _| ());
                        model[from..to].fill(Fate::Sacked);
                    }
                    1 => {
                        let (from, to) = (seq(from as u32), seq(to as u32));
                        let inside =
                            |begin: Seq, end: Seq| !begin.is_before(from) && !end.is_after(to);
                        let mut marked = Vec::new();
                        board.lose(|begin, range| {
                            let lost = inside(begin, range.end);
                            marked.extend(lost.then_some((begin, range.end)));
                            lost
                        });
                        for (begin, end) in marked {
                            let place = |seq: Seq| seq.0.wrapping_add(250) as usize;
                            model[place(begin)..place(end)].fill(Fate::Lost);
                        }
                    }
                    2 => {
                        if let Some((from, to)) = board.first_lost() {
                            let place = |seq: Seq| seq.0.wrapping_add(250) as usize;
                            board.resend(from, to, at(step));
                            model[place(from)..place(to)].fill(Fate::InFlight);
                        }
                    }
                    _ if from - start < 100 => {
                        board.acknowledge(seq(from as u32), |_, _| ());
                        start = from;
                    }
                    _ => {}
                }
                let count = |fate| model[start..].iter().filter(|&&f| f == fate).count() as u32;
                assert_eq!(board.sacked(), count(Fate::Sacked));
                assert_eq!(board.lost(), count(Fate::Lost));
                assert_eq!(board.pipe(), count(Fate::InFlight));
                let first = model[start..].iter().position(|&fate| fate == Fate::Lost);
                let found = board.first_lost().map(|(from, _)| from.since(board.start()));
                assert_eq!(found, first.map(|place| place as u32));
            }
        }
    }
}
