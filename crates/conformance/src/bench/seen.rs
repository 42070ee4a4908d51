//! Frames seen at a device, and checks on these frames.

use super::Bench;
use crate::frames;
use crate::rig::{Halt, Seen, Way};
use crate::station::REACTION;
use axon_wire::priority::{Priority, PrioritySet};
use axon_wire::{Bytes, Span, Time};

impl Bench<'_> {
    /// Returns all frames seen since the device was set up.
    pub fn log(&self) -> &[Seen] {
        &self.log
    }

    /// Returns the frames received at a port since the time `from`.
    pub fn heard(&self, port: usize, from: Time) -> impl Iterator<Item = &Seen> {
        let own =
            move |seen: &&Seen| seen.port == port && seen.way == Way::Heard && seen.at >= from;
        self.log.iter().filter(own)
    }

    /// Returns the start times of the frames that port 0 received with a priority.
    pub fn starts(&self, priority: Priority) -> Vec<Time> {
        let of_priority = |id: u16| {
            self.streams.iter().any(|(own, s)| *own == id && s.to == 0 && s.priority == priority)
        };
        let start = |seen: &Seen| {
            frames::traffic_of(&seen.frame).filter(|known| of_priority(known.id))?;
            // The frame is preceded by the preamble and followed by the FCS. The gap comes after
            // them.
            Some(seen.at - self.rate().time_for(Bytes(seen.frame.len() as u64 + 12)))
        };
        self.heard(0, Time::ZERO).filter_map(start).collect()
    }

    /// Fails if a frame with one of these priorities starts at port 0 during the pause that was
    /// sent at `sent` and lasts until `until`.
    ///
    /// # Errors
    /// A frame starts during the pause.
    pub fn silent(&self, priorities: PrioritySet, sent: Time, until: Time) -> Result<(), Halt> {
        let (from, to) = (sent + REACTION + self.slack(), until - self.slack());
        // An absence of the tester would look like a pause.
        self.present(sent, until)?;
        for priority in priorities.iter() {
            let late: Vec<Time> =
                self.starts(priority).into_iter().filter(|&at| at > from && at < to).collect();
            self.expect(late.is_empty(), || {
                let (count, after) = (late.len(), late[0].since(sent));
                format!(
                    "{count} frames of priority {priority} in a pause, the first {after} after \
                         it was sent"
                )
            })?;
        }
        Ok(())
    }

    /// Fails if there is no frame with one of these priorities at port 0 between two times.
    ///
    /// # Errors
    /// There is no frame with one of the priorities.
    pub fn flows(&self, priorities: PrioritySet, from: Time, to: Time) -> Result<(), Halt> {
        for priority in priorities.iter() {
            let flows = self.starts(priority).into_iter().any(|at| at >= from && at <= to);
            self.expect(flows, || {
                let span = to.since(from);
                format!("no frame of priority {priority} for {span}, and nothing has stopped it")
            })?;
        }
        Ok(())
    }

    /// Fails if there is no frame with any of these priorities at port 0 between two times.
    ///
    /// # Errors
    /// There is no frame with any of the priorities.
    pub fn goes_again(&self, priorities: PrioritySet, from: Time, to: Time) -> Result<(), Halt> {
        let mut starts = priorities.iter().flat_map(|priority| self.starts(priority));
        let goes = starts.any(|at| at >= from && at <= to);
        self.expect(goes, || format!("nothing for {} after a stop was over", to.since(from)))
    }

    /// Returns the length of the pause in a priority after the frame sent at `sent`, or `None` if
    /// the priority never resumed.
    pub fn paused_for(&self, priority: Priority, sent: Time) -> Option<Span> {
        let from = sent + REACTION + self.slack();
        let next = self.starts(priority).into_iter().find(|&at| at > from);
        next.map(|at| at.since(sent))
    }

    /// Returns the total line time of the frames sent to port 0 between two times.
    pub fn offered(&self, from: Time, to: Time) -> Span {
        let sent = self.log.iter().filter(|seen| {
            let within = seen.way == Way::Sent && seen.port > 0 && seen.at >= from && seen.at < to;
            within && seen.frame[..6] == frames::mac(0).0
        });
        sent.fold(Span::ZERO, |sum, seen| sum + self.time_for(seen.frame.len()))
    }

    /// Returns the numbers of frames sent and received in a stream.
    pub fn carried(&self, id: u16) -> (u64, u64) {
        self.count(|own| own == id)
    }

    /// Returns the numbers of frames sent and received in all streams of a priority.
    pub fn of_priority(&self, priority: Priority) -> (u64, u64) {
        self.count(|id| self.streams.iter().any(|(own, s)| *own == id && s.priority == priority))
    }

    fn count(&self, wanted: impl Fn(u16) -> bool) -> (u64, u64) {
        let own = |seen: &&Seen| frames::traffic_of(&seen.frame).is_some_and(|f| wanted(f.id));
        let known: Vec<Way> = self.log.iter().filter(own).map(|seen| seen.way).collect();
        let of = |way: Way| known.iter().filter(|&&own| own == way).count() as u64;
        (of(Way::Sent), of(Way::Heard))
    }
}
