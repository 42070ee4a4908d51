//! Text tables.

use std::fmt::Write;

/// Formats one line for the headings and one for each row, with columns as wide as their widest
/// cell. Returns an empty text if there are no rows. A row with a different number of cells does
/// not widen the columns.
pub fn columns(headings: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut all: Vec<Vec<String>> = vec![headings.iter().map(ToString::to_string).collect()];
    all.extend(rows);
    let mut text = String::new();
    if all.len() == 1 {
        return text;
    }
    let width = |column: usize| {
        let whole = all.iter().filter(|row| row.len() == headings.len());
        whole.map(|row| row[column].chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    for row in &all {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    text
}
