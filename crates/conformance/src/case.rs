//! Named cases and their outcomes.

use crate::bench::Bench;
use crate::rig::{Halt, Rig};
use serde::Serialize;

/// Maximum number of times that a case is run while the tester is late.
const TRIES_MAX: usize = 3;

/// Case that checks one requirement of a standard.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Name of the case, such as `pfc/zero-resumes`.
    pub name: &'static str,
    /// Clause with the requirement, such as `802.1Q 36.1.3`. It says "as recalled" if no copy of
    /// the standard was at hand.
    pub clause: &'static str,
    /// Behaviour that the requirement demands.
    pub says: &'static str,
    /// Checks the requirement on a bench.
    pub run: fn(&mut Bench<'_>) -> Result<(), Halt>,
}

/// Verdict of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The device meets the requirement.
    Passed,
    /// The device violates the clause.
    Failed,
    /// The rig or the device cannot show the behaviour.
    NotApplicable,
    /// The tester was late or lost frames in every attempt; the result says nothing about the
    /// device.
    Inconclusive,
    /// The rig failed; the result says nothing about the device.
    Broken,
}

/// Outcome of a case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// Unique name of the case, with its family: `pfc/xon`.
    pub name: &'static str,
    /// Clause of the standard that the case checks.
    pub clause: &'static str,
    /// Behaviour that the case expects, in one sentence.
    pub says: &'static str,
    /// Verdict of the case.
    pub verdict: Verdict,
    /// Reason of the verdict; empty if the case passed.
    pub reason: String,
    /// Actions of the tester in order.
    pub did: Vec<String>,
    /// Observations of the tester in order.
    pub saw: Vec<String>,
    /// Duration of the case on the rig's clock, in nanoseconds.
    pub duration_ns: u64,
}

impl Case {
    /// Returns the family of the case, such as `pfc`.
    pub fn family(&self) -> &'static str {
        self.name.split('/').next().unwrap_or(self.name)
    }

    /// Runs the case, and repeats it if the tester was late.
    pub fn run(&self, rig: &mut dyn Rig) -> Outcome {
        let mut tries = 1;
        loop {
            let mut outcome = self.once(rig);
            if outcome.verdict != Verdict::Inconclusive {
                return outcome;
            }
            if tries == TRIES_MAX {
                outcome.reason = format!("{} (tried {tries} times)", outcome.reason);
                return outcome;
            }
            tries += 1;
        }
    }

    fn once(&self, rig: &mut dyn Rig) -> Outcome {
        let mut bench = Bench::new(rig);
        let end = (self.run)(&mut bench);
        let end = end.map_err(|halt| bench.excused(halt));
        let duration_ns = bench.took().as_nanos();
        let (did, saw) = bench.notes();
        let (verdict, reason) = match end {
            Ok(()) => (Verdict::Passed, String::new()),
            Err(Halt::Failed(reason)) => (Verdict::Failed, reason),
            Err(Halt::NotApplicable(reason)) => (Verdict::NotApplicable, reason),
            Err(Halt::Inconclusive(reason)) => (Verdict::Inconclusive, reason),
            Err(Halt::Broken(reason)) => (Verdict::Broken, reason),
        };
        let Case { name, clause, says, .. } = *self;
        Outcome { name, clause, says, verdict, reason, did, saw, duration_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interpretations::Interpretations;
    use crate::rig::{Seen, Stream};
    use crate::setup::Setup;
    use axon_wire::{MacAddr, Priority, Rate, Span, Time};

    /// Tester that is absent for a while from millisecond 20 on, and that loses frames.
    #[derive(Default)]
    struct Late {
        now: Time,
        away: Vec<(Time, Time)>,
        away_millis: u64,
        loses: u64,
        lost: u64,
        runs: usize,
        interpretations: Interpretations,
    }

    impl Rig for Late {
        fn ports(&self) -> usize {
            2
        }
        fn rate(&self) -> Rate {
            Rate::mbps(100)
        }
        fn slack(&self) -> Span {
            Span::from_millis(20)
        }
        fn interpretations(&self) -> &Interpretations {
            &self.interpretations
        }
        fn absences(&self) -> &[(Time, Time)] {
            &self.away
        }
        fn lost(&mut self) -> u64 {
            self.lost
        }
        fn given(&self) -> Option<&Setup> {
            None
        }
        fn set_up(&mut self, _: &Setup) -> Result<(), Halt> {
            self.runs += 1;
            Ok(())
        }
        fn device_mac(&self) -> Option<MacAddr> {
            None
        }
        fn now(&self) -> Time {
            self.now
        }
        fn send(&mut self, _: usize, _: Time, _: Vec<u8>) {}
        fn stream(&mut self, _: Stream) -> u16 {
            1
        }
        fn pass(&mut self, until: Time) -> Result<Vec<Seen>, Halt> {
            let begun = std::mem::replace(&mut self.now, until);
            self.away.push((begun, begun + Span::from_millis(self.away_millis)));
            self.lost += self.loses;
            Ok(Vec::new())
        }
    }

    fn sends_and_fails(bench: &mut Bench<'_>) -> Result<(), Halt> {
        bench.set_up(&Setup { station: true, ..Setup::default() })?;
        let stream = bench.full_rate(1, Priority::ZERO, Span::from_millis(50));
        bench.stream(stream);
        bench.pass(Span::from_millis(50))?;
        bench.expect(false, || "a class got too little".into())
    }

    fn says_and_fails(bench: &mut Bench<'_>) -> Result<(), Halt> {
        bench.set_up(&Setup { station: true, ..Setup::default() })?;
        bench.pass(Span::from_millis(50))?;
        bench.expect(false, || "it says something else".into())
    }

    fn sees_silence(bench: &mut Bench<'_>) -> Result<(), Halt> {
        let sent = bench.now();
        bench.pass(Span::from_millis(50))?;
        let now = bench.now();
        bench.silent(axon_wire::PrioritySet::ALL, sent, now)
    }

    fn ended(
        run: fn(&mut Bench<'_>) -> Result<(), Halt>,
        mut rig: Late,
    ) -> (Verdict, usize, String) {
        let case = Case { name: "a/b", clause: "c", says: "d.", run };
        let outcome = case.run(&mut rig);
        (outcome.verdict, rig.runs, outcome.reason)
    }

    #[test]
    fn a_tester_that_was_late_does_not_say_failed_but_tries_again() {
        let punctual = ended(sends_and_fails, Late { away_millis: 20, ..Late::default() });
        assert_eq!(punctual, (Verdict::Failed, 1, "a class got too little".into()));
        let (verdict, runs, why) =
            ended(sends_and_fails, Late { away_millis: 21, ..Late::default() });
        assert_eq!((verdict, runs), (Verdict::Inconclusive, TRIES_MAX), "{why}");
        assert!(why.contains("was 21ms late, and 20ms can be borne"), "{why}");
        assert!(why.ends_with("a class got too little (tried 3 times)"), "{why}");
    }

    #[test]
    fn a_tester_that_lost_frames_does_not_say_failed() {
        let (verdict, _, why) = ended(sends_and_fails, Late { loses: 4, ..Late::default() });
        assert_eq!(verdict, Verdict::Inconclusive);
        assert!(why.contains("lost 12 frames"), "{why}");
    }

    #[test]
    fn what_needs_no_clock_fails_however_late_the_tester_was() {
        let rig = Late { away_millis: 500, loses: 1, ..Late::default() };
        assert_eq!(ended(says_and_fails, rig).0, Verdict::Failed);
    }

    #[test]
    fn silence_while_the_tester_was_away_is_no_silence() {
        assert_eq!(ended(sees_silence, Late::default()).0, Verdict::Passed);
        let rig = Late { away_millis: 30, ..Late::default() };
        assert_eq!(ended(sees_silence, rig).0, Verdict::Inconclusive);
    }
}
