//! Presence of the tester. A measurement counts only while the tester's machine kept up.

use super::Bench;
use crate::rig::Halt;
use axon_wire::{Span, Time};

impl Bench<'_> {
    /// Sets the longest absence of the tester that the case tolerates.
    pub(crate) fn away_at_most(&mut self, span: Span) {
        self.away_max = self.away_max.min(span);
    }

    /// Starts to count the tester's absences.
    pub(crate) fn timed(&mut self) {
        self.timed_from = self.timed_from.or(Some(self.now()));
    }

    /// Turns a failure into an inconclusive result if the tester's machine was late or lost frames
    /// during a stream.
    pub(crate) fn excused(&mut self, halt: Halt) -> Halt {
        let Halt::Failed(why) = &halt else { return halt };
        let Some(from) = self.timed_from else { return halt };
        let lost = self.rig.lost() - self.lost_before;
        if lost > 0 {
            let machine = format!("this machine itself lost {lost} frames");
            return Halt::Inconclusive(format!("{machine}, so it is not known whether: {why}"));
        }
        match self.present(from, self.now()) {
            Err(Halt::Inconclusive(away)) => {
                Halt::Inconclusive(format!("{away}, so it is not known whether: {why}"))
            }
            _ => halt,
        }
    }

    /// Ends the case as inconclusive if the tester was absent between two times for longer than the
    /// case tolerates.
    ///
    /// # Errors
    /// [`Halt::Inconclusive`] if the tester was absent for that long.
    pub(crate) fn present(&self, from: Time, to: Time) -> Result<(), Halt> {
        let within = |&&(begun, ended): &&(Time, Time)| begun < to && ended > from;
        let longest = self.rig.absences().iter().filter(within);
        let longest = longest.map(|(begun, ended)| ended.since(*begun)).max();
        match longest.filter(|&away| away > self.away_max) {
            Some(away) => {
                let most = self.away_max;
                let late = format!("the tester itself was {away} late, and {most} can be borne");
                Err(Halt::Inconclusive(late))
            }
            None => Ok(()),
        }
    }
}
