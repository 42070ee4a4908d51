//! Lines of code have at most 100 columns: rustfmt does not wrap macros, long strings and comments.

use super::{assert_none, files};

const COLUMNS_MAX: usize = 100;

#[test]
fn lines_of_code_have_at_most_100_columns() {
    let rust = files().into_iter().filter(|(name, _)| name.ends_with(".rs"));
    let problems: Vec<String> = rust.flat_map(|(name, text)| too_long(&name, &text)).collect();
    assert_none(&problems);
}

/// Returns the lines that are too long, for a reader.
fn too_long(name: &str, text: &str) -> Vec<String> {
    let columns = text.lines().map(|line| line.chars().count()).enumerate();
    let long = columns.filter(|&(_, columns)| columns > COLUMNS_MAX);
    long.map(|(at, columns)| format!("{name}:{}: {columns} columns", at + 1)).collect()
}

#[test]
fn columns_are_counted_in_characters() {
    let (fits, long) = ("µ".repeat(COLUMNS_MAX), "a".repeat(COLUMNS_MAX + 1));
    assert_eq!(too_long("a.rs", &format!("{fits}\n{long}\n")), ["a.rs:2: 101 columns"]);
}
