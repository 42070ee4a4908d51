//! A named case, and what came of it.

use crate::bench::Bench;
use crate::rig::{Halt, Rig};
use serde::Serialize;

/// One thing that a standard asks for.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// `pfc/zero-resumes`.
    pub name: &'static str,
    /// Where it is asked for: `802.1Q 36.1.3`; as recalled where no standard was at hand.
    pub clause: &'static str,
    /// What is asked for.
    pub says: &'static str,
    /// Shows it, on a bench.
    pub run: fn(&mut Bench<'_>) -> Result<(), Halt>,
}

/// How a case ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The device does what is asked for.
    Passed,
    /// It does not.
    Failed,
    /// It cannot be shown on this rig or with this device.
    NotApplicable,
    /// The rig has failed: nothing is known of the device.
    Broken,
}

/// What came of a case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// See [`Case::name`].
    pub name: &'static str,
    /// See [`Case::clause`].
    pub clause: &'static str,
    /// See [`Case::says`].
    pub says: &'static str,
    /// How it ended.
    pub verdict: Verdict,
    /// Why, unless it passed; empty otherwise.
    pub reason: String,
    /// What the tester did.
    pub did: Vec<String>,
    /// What it saw.
    pub saw: Vec<String>,
    /// How long it took on the rig's clock, in nanoseconds.
    pub nanos: u64,
}

impl Case {
    /// The family: `pfc`.
    pub fn family(&self) -> &'static str {
        self.name.split('/').next().unwrap_or(self.name)
    }

    /// Runs it.
    pub fn run(&self, rig: &mut dyn Rig) -> Outcome {
        let begun = rig.now();
        let mut bench = Bench::new(rig);
        let end = (self.run)(&mut bench);
        let (did, saw) = bench.notes();
        let (verdict, reason) = match end {
            Ok(()) => (Verdict::Passed, String::new()),
            Err(Halt::Failed(reason)) => (Verdict::Failed, reason),
            Err(Halt::NotApplicable(reason)) => (Verdict::NotApplicable, reason),
            Err(Halt::Broken(reason)) => (Verdict::Broken, reason),
        };
        let nanos = if rig.now() > begun { rig.now().since(begun).as_nanos() } else { 0 };
        let Case { name, clause, says, .. } = *self;
        Outcome { name, clause, says, verdict, reason, did, saw, nanos }
    }
}
