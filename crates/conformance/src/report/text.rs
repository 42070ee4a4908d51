//! Text report, with a line for each case, followed by details if it did not pass.

use super::Report;
use crate::case::{Outcome, Verdict};
use std::fmt::Write as _;

/// Width of the verdict column, including blanks.
const VERDICT_WIDTH: usize = 14;
/// Width of the name column, including blanks.
pub const NAME_WIDTH: usize = 44;

/// Formats one case. With `all`, actions and observations are also given for cases that passed.
pub fn case(outcome: &Outcome, all: bool) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{:<VERDICT_WIDTH$}{:<NAME_WIDTH$}{}",
        word(outcome.verdict),
        outcome.name,
        note(outcome)
    );
    let is_shown = match outcome.verdict {
        Verdict::Failed | Verdict::Inconclusive | Verdict::Broken => true,
        Verdict::Passed => all,
        Verdict::NotApplicable => false,
    };
    if is_shown {
        let indent = " ".repeat(VERDICT_WIDTH);
        let _ = writeln!(text, "{indent}asked: {} ({})", outcome.says, outcome.clause);
        let did = outcome.did.iter().map(|line| ("did", line));
        for (what, line) in did.chain(outcome.saw.iter().map(|line| ("saw", line))) {
            let _ = writeln!(text, "{indent}{what}:   {line}");
        }
    }
    text
}

/// Returns the last line of a run.
pub fn summary(report: &Report) -> String {
    let count = |verdict| report.count(verdict);
    format!(
        "{}: {} passed, {} failed, {} not applicable, {} inconclusive, {} broken",
        report.device,
        count(Verdict::Passed),
        count(Verdict::Failed),
        count(Verdict::NotApplicable),
        count(Verdict::Inconclusive),
        count(Verdict::Broken),
    )
}

fn note(outcome: &Outcome) -> &str {
    match outcome.verdict {
        Verdict::Passed => outcome.says,
        _ => &outcome.reason,
    }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Passed => "ok",
        Verdict::Failed => "FAILED",
        Verdict::NotApplicable => "n/a",
        Verdict::Inconclusive => "INCONCLUSIVE",
        Verdict::Broken => "BROKEN",
    }
}
