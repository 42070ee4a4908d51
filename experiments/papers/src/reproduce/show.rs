//! Text of outcomes for a terminal: comparison, list of all, summary.

use super::store::{self, Kept};
use super::{ALL, Experiment, Verdict};
use anyhow::Result;
use std::path::Path;

/// Returns the comparison with the paper, the bounds, the verdict, and the notes.
pub fn side_by_side(experiment: &Experiment, kept: &Kept) -> String {
    let Experiment { id, title, source, .. } = experiment;
    let mut lines = vec![["", "", "paper", "ours", "", "bound"].map(str::to_owned)];
    for row in &kept.rows {
        lines.push([
            shown(row.verdict()),
            row.name.clone(),
            row.paper.to_string(),
            row.ours.to_string(),
            row.unit.clone(),
            row.bound.clone(),
        ]);
    }
    for remark in &kept.remarks {
        lines.push([
            String::new(),
            remark.name.clone(),
            remark.paper.to_string(),
            remark.ours.to_string(),
            remark.unit.clone(),
            String::new(),
        ]);
    }
    let mut text = format!("{id}: {title} ({source})\n\n{}", aligned(&lines));
    for note in &kept.notes {
        text.push_str(&format!("\n{}", wrapped(note, 96)));
    }
    text.push_str(&format!("\n{id}: {}\n", shown(kept.verdict)));
    text
}

/// Returns a verdict for a terminal: in capitals if it is not good.
fn shown(verdict: Verdict) -> String {
    let text = verdict.to_string();
    if verdict.is_good() { text } else { text.to_uppercase() }
}

/// Aligns columns to their width, with the two figures at the right.
fn aligned(lines: &[[String; 6]]) -> String {
    let mut widths = [0; 6];
    for line in lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for line in lines {
        let cells = line.iter().enumerate().map(|(column, cell)| {
            let pad = " ".repeat(widths[column] - cell.chars().count());
            if column == 2 || column == 3 { pad + cell } else { format!("{cell}{pad}") }
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Wraps a text at `width` characters, if no word is longer.
pub(super) fn wrapped(text: &str, width: usize) -> String {
    let mut lines = String::new();
    let mut used = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > width {
            lines.push('\n');
            used = 0;
        } else if used > 0 {
            lines.push(' ');
            used += 1;
        }
        lines.push_str(word);
        used += length;
    }
    lines + "\n"
}

/// Lists all experiments with the state of their last run in `out`.
///
/// # Errors
/// An outcome in the folder cannot be read.
pub fn list(out: &Path) -> Result<String> {
    list_of(ALL, out)
}

pub(super) fn list_of(all: &[&Experiment], out: &Path) -> Result<String> {
    let ids = all.iter().map(|experiment| experiment.id);
    let width = ids.map(str::len).max().unwrap_or(0);
    let mut text = String::new();
    for experiment in all {
        let state = match store::last(out, experiment.id)? {
            None => "not run".to_owned(),
            Some(kept) => in_short(&kept),
        };
        text.push_str(&format!("{:<width$}  {state:<22}  {}\n", experiment.id, experiment.title));
    }
    Ok(text + &total_of(all, out)? + "\n")
}

/// Returns the verdict of an experiment, with the number of its rows that are not good.
pub(super) fn in_short(kept: &Kept) -> String {
    let bad = kept.rows.iter().filter(|row| !row.verdict().is_good()).count();
    match kept.verdict.is_good() {
        true => kept.verdict.to_string(),
        false => format!("{}, {bad} of {}", kept.verdict, kept.rows.len()),
    }
}

/// Summarises in one line the number of tables and figures by verdict, from the last outcomes in
/// `out`.
///
/// # Errors
/// An outcome in the folder cannot be read.
pub fn total(out: &Path) -> Result<String> {
    total_of(ALL, out)
}

pub(super) fn total_of(all: &[&Experiment], out: &Path) -> Result<String> {
    let mut verdicts = Vec::new();
    for experiment in all {
        verdicts.extend(store::last(out, experiment.id)?.map(|kept| kept.verdict));
    }
    let total = all.len();
    let count = |verdict: Verdict| verdicts.iter().filter(|one| **one == verdict).count();
    let counts = Verdict::ALL.map(|verdict| (count(verdict), verdict.to_string()));
    let not_run = (total - verdicts.len(), "not run".to_owned());
    let parts = counts.into_iter().chain([not_run]).filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, what)| format!("{count} {what}")).collect();
    Ok(format!("{total} tables and figures: {}", parts.join(", ")))
}
