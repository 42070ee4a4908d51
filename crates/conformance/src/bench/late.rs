//! Whether the tester itself was there, so that what it saw means something.

use super::Bench;
use crate::rig::Halt;
use axon_wire::{Span, Time};

impl Bench<'_> {
    /// The case cannot bear that the tester is away for longer than this.
    pub fn away_at_most(&mut self, span: Span) {
        self.away_max = self.away_max.min(span);
    }

    /// From now on it matters whether the tester is late.
    pub fn timed(&mut self) {
        self.timed_from = self.timed_from.or(Some(self.now()));
    }

    /// What a failure means: nothing, if the tester's own machine was late or lost frames while
    /// it sent a stream.
    pub fn excused(&mut self, halt: Halt) -> Halt {
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

    /// Fails, as inconclusive, if the tester was away between two times for longer than the case
    /// can bear.
    ///
    /// # Errors
    /// It was.
    pub fn present(&self, from: Time, to: Time) -> Result<(), Halt> {
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
