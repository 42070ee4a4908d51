//! Table for readers, with ratios first, and then medians with their spread.

use crate::quantity::Quantity;
use crate::report::{Bound, Figure, Report};
use crate::selection::Subject;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Width of a row's label.
const LABEL: usize = 30;
/// Width of a subject's column.
const COLUMN: usize = 15;

impl Report {
    /// Returns the whole report as text.
    pub fn text(&self) -> String {
        let subjects: BTreeSet<Subject> = self.figures.iter().map(|one| one.subject).collect();
        let subjects: Vec<Subject> = subjects.into_iter().collect();
        let mut lines: Vec<Option<u32>> = self.figures.iter().map(|one| one.switches).collect();
        // Figures without a number of switches come last.
        lines.sort_unstable_by_key(|switches| switches.unwrap_or(u32::MAX));
        lines.dedup();
        let machine = &self.machine;
        let mut text = format!(
            "Rounds: {}, measurements of about {} s, {} CPUs ({}), Linux {}, {}\n\
             x3 is a line of three switches.\n",
            self.rounds, self.seconds, machine.cpus, machine.cpu, machine.kernel, machine.date
        );
        // Writing to a String cannot fail.
        let _ = match self.noise.noisy {
            false => writeln!(text, "The machine was quiet."),
            true => writeln!(text, "TOO NOISY to be quoted: {}.", self.noise.reasons.join("; ")),
        };
        let others: Vec<Subject> =
            subjects.iter().copied().filter(|&one| one != Subject::Bridges).collect();
        if !self.ratios.is_empty() {
            text += &heading("In multiples of bridges", &others);
            for &switches in &lines {
                self.ratios_of(switches, &others, &mut text);
            }
        }
        text += &heading("Medians, and how far rounds lie apart", &subjects);
        for &switches in &lines {
            self.medians_of(switches, &subjects, &mut text);
        }
        self.ends(&mut text);
        text
    }

    fn ratios_of(&self, switches: Option<u32>, subjects: &[Subject], text: &mut String) {
        for quantity in Quantity::ALL {
            let ratio = |subject: &Subject| {
                let found = self.ratios.iter().find(|one| {
                    (one.subject, one.switches, one.quantity) == (*subject, switches, quantity)
                });
                found.map(|one| format!("{:.2}", one.ratio))
            };
            row(text, label(quantity, switches, ""), subjects.iter().map(ratio).collect());
        }
    }

    fn medians_of(&self, switches: Option<u32>, subjects: &[Subject], text: &mut String) {
        for quantity in Quantity::ALL {
            let cell = |subject: &Subject| {
                self.figure(*subject, switches.unwrap_or(0), quantity).map(cell)
            };
            let label = label(quantity, switches, quantity.unit());
            row(text, label, subjects.iter().map(cell).collect());
        }
    }

    /// Adds the bounds, and other results that are not in the table.
    fn ends(&self, text: &mut String) {
        if !self.bounds.is_empty() {
            *text += "\nBounds\n";
        }
        for bound in &self.bounds {
            *text += &format!("  {}\n", said(bound));
        }
        for skipped in &self.skipped {
            *text += &format!("\n{} was not measured: {}.", skipped.what, skipped.reason);
        }
        for failed in &self.failed {
            let part = failed.part.map_or(String::new(), |part| format!(", {}", part.name()));
            let (subject, switches) = (failed.subject.name(), failed.switches);
            *text += &format!("\nFAILED: {subject}, {switches} switches{part}: {}", failed.why);
        }
        if !self.skipped.is_empty() || !self.failed.is_empty() {
            *text += "\n";
        }
    }
}

fn heading(what: &str, subjects: &[Subject]) -> String {
    let names: String =
        subjects.iter().map(|subject| format!("{:>COLUMN$}", subject.name())).collect();
    format!("\n{what}\n{:LABEL$}{names}\n", "")
}

fn label(quantity: Quantity, switches: Option<u32>, unit: &str) -> String {
    let at = switches.map_or(String::new(), |count| format!("x{count} "));
    let unit = if unit.is_empty() { String::new() } else { format!(", {unit}") };
    format!("{at}{}{unit}", quantity.label())
}

/// Adds a row, unless all of its cells are empty.
fn row(text: &mut String, label: String, cells: Vec<Option<String>>) {
    if cells.iter().all(Option::is_none) {
        return;
    }
    let cells = cells.into_iter().map(|cell| cell.unwrap_or_else(|| "-".into()));
    let cells: String = cells.map(|cell| format!("{cell:>COLUMN$}")).collect();
    *text += &format!("{label:LABEL$}{cells}\n");
}

/// Formats a figure as `14.4 +-8 %`, with the median and half of the range.
fn cell(figure: &Figure) -> String {
    let median = number(figure.median);
    if figure.samples.len() < 2 || figure.median == 0.0 {
        return median;
    }
    let half = (figure.max - figure.min) / figure.median.abs() * 50.0;
    format!("{median} \u{b1}{half:.0} %")
}

/// Formats a number with three significant digits.
fn number(value: f64) -> String {
    match value.abs() {
        large if large >= 99.95 => format!("{value:.0}"),
        middle if middle >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Formats a bound as a sentence.
fn said(bound: &Bound) -> String {
    let of = if bound.of_bridges { "of bridges" } else { bound.quantity.unit() };
    let wanted = match (bound.least, bound.most) {
        (Some(least), Some(most)) => format!("{least} to {most}"),
        (Some(least), None) => format!("at least {least}"),
        (None, Some(most)) => format!("at most {most}"),
        (None, None) => "nothing".into(),
    };
    let held = if bound.held { "held" } else { "MISSED" };
    let (subject, label) = (bound.subject.name(), bound.quantity.label());
    format!("{subject:8}{label:26}{:8.3} {of:12}(wanted {wanted})  {held}", bound.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::sample;

    #[test]
    fn the_table_has_ratios_first_and_medians_with_their_spread() {
        let text = sample().text();
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = text.lines().map(words).collect();
        let at = |wanted: &str| {
            let found = lines.iter().position(|line| line == wanted);
            found.unwrap_or_else(|| panic!("no {wanted:?} in\n{text}"))
        };
        let ratio = at("x3 TCP, 1 stream - 0.95");
        let median = at("x3 TCP, 1 stream, Gb/s 11.0 \u{b1}9 % - 10.4 \u{b1}5 %");
        assert!(at("full tc") < ratio && ratio < at("bridges full tc"));
        assert!(at("bridges full tc") < median);
        at("time per hop - 0.80");
        at("time per hop, ns 500 - 400");
        at("tc ping, mean 1.500 of bridges (wanted at most 1.3) MISSED");
        at("tc 8 against 1 at 200 Mb/s 1.010 x (wanted 0.98 to 1.02) held");
        at("ovs was not measured: ovs-vswitchd is missing.");
        at("The machine was quiet.");
        assert!(!text.contains("  \n"), "no line ends in blanks");
    }

    #[test]
    fn a_noisy_machine_and_a_failure_are_said() {
        let mut report = sample();
        report.noise.noisy = true;
        report.noise.reasons = vec!["a loop took long".into(), "bridges vary".into()];
        let why = "h2 did not answer".into();
        let (subject, part) = (Subject::Tc, Some(crate::selection::Part::Ping));
        report.failed.push(crate::report::Failed { subject, switches: 5, part, why });
        let text = report.text();
        assert!(text.contains("TOO NOISY to be quoted: a loop took long; bridges vary.\n"));
        assert!(text.contains("FAILED: tc, 5 switches, ping: h2 did not answer\n"), "{text}");
    }

    #[test]
    fn numbers_have_three_digits_that_count() {
        let shown = [1234.5, 99.96, 43.21, 9.999, 0.954].map(number);
        assert_eq!(shown, ["1234", "100", "43.2", "10.0", "0.95"]);
    }
}
