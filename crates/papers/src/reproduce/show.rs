//! Outcomes as text for a terminal: theirs and ours side by side, and the list of all.

use super::store::{self, Kept};
use super::{ALL, Experiment};
use anyhow::Result;
use std::path::Path;

/// Theirs beside ours, the bound, the verdict, and why ours differs.
pub fn side_by_side(experiment: &Experiment, kept: &Kept) -> String {
    let Experiment { id, title, source, .. } = experiment;
    let mut lines = vec![["", "", "paper", "ours", "", "bound"].map(str::to_owned)];
    for row in &kept.rows {
        let verdict = if row.pass { "ok" } else { "MISSED" };
        lines.push([
            verdict.to_owned(),
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
    let verdict = if kept.pass { "passed" } else { "MISSED" };
    text.push_str(&format!("\n{id} {verdict}\n"));
    text
}

/// Columns as wide as they must be; the two figures stand at the right.
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

/// Lines of at most `width` characters, if no word is longer.
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

/// All experiments with the state of their last run in `out`.
///
/// # Errors
/// An outcome in the folder cannot be read.
pub fn list(out: &Path) -> Result<String> {
    list_of(ALL, out)
}

pub(super) fn list_of(all: &[&Experiment], out: &Path) -> Result<String> {
    let width = all.iter().map(|experiment| experiment.id.len()).max().unwrap_or(0);
    let mut text = String::new();
    for experiment in all {
        let state = match store::last(out, experiment.id)? {
            None => "not run".to_owned(),
            Some(kept) if kept.pass => "passed".to_owned(),
            Some(kept) => {
                let missed = kept.rows.iter().filter(|row| !row.pass).count();
                format!("missed {missed} of {}", kept.rows.len())
            }
        };
        text.push_str(&format!("{:<width$}  {state:<14}  {}\n", experiment.id, experiment.title));
    }
    Ok(text)
}
