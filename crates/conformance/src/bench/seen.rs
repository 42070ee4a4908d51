//! Checks on the frames seen at a device.

use super::{Bench, Log};
use crate::frames;
use crate::rig::{Halt, Way};
use crate::station::REACTION;
use axon_wire::priority::{Priority, PrioritySet};
use axon_wire::{Span, Time};

impl Bench<'_> {
    /// Returns the frames seen and the streams sent since the device was set up.
    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    /// Returns the start times of the frames that port 0 received with a priority.
    pub(crate) fn starts(&self, priority: Priority) -> Vec<Time> {
        self.log.starts(self.rate(), priority)
    }

    /// Fails if a frame with one of these priorities starts at port 0 during the pause that was
    /// sent at `sent` and lasts until `until`.
    ///
    /// # Errors
    /// A frame starts during the pause.
    pub(crate) fn silent(
        &self,
        priorities: PrioritySet,
        sent: Time,
        until: Time,
    ) -> Result<(), Halt> {
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
    pub(crate) fn flows(&self, priorities: PrioritySet, from: Time, to: Time) -> Result<(), Halt> {
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
    pub(crate) fn goes_again(
        &self,
        priorities: PrioritySet,
        from: Time,
        to: Time,
    ) -> Result<(), Halt> {
        let mut starts = priorities.iter().flat_map(|priority| self.starts(priority));
        let goes = starts.any(|at| at >= from && at <= to);
        self.expect(goes, || format!("nothing for {} after a stop was over", to.since(from)))
    }

    /// Returns the length of the pause in a priority after the frame sent at `sent`, or `None` if
    /// the priority never resumed.
    pub(crate) fn paused_for(&self, priority: Priority, sent: Time) -> Option<Span> {
        let from = sent + REACTION + self.slack();
        let next = self.starts(priority).into_iter().find(|&at| at > from);
        next.map(|at| at.since(sent))
    }

    /// Returns the total line time of the frames sent to port 0 between two times.
    pub(crate) fn offered(&self, from: Time, to: Time) -> Span {
        let sent = self.log.frames().iter().filter(|seen| {
            let within = seen.way == Way::Sent && seen.port > 0 && seen.at >= from && seen.at < to;
            within && seen.frame[..6] == frames::mac(0).0
        });
        sent.fold(Span::ZERO, |sum, seen| sum + self.time_for(seen.frame.len()))
    }
}
