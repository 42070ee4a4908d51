//! The table of all runs: the parameters, status and reason, then every figure, with a row for each
//! run in the order of the product. As CSV here; as Parquet in `parquet.rs`.
//!
//! Figures are nested; a column is named by the path, `traffic.udp1.received_bytes`. Columns are in
//! the order of the figures. Runs may have different ones, of traffic or of drops by reason: a
//! column that only a later run has comes after the one that it follows there. A run that completed
//! and did not count a reason has a zero for it; unknown values are empty.

use super::over::Axis;
use super::store::Kept;
use anyhow::{Result, anyhow};
use csv::WriterBuilder;
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;

/// Counts by reason, in which a missing reason counts as zero.
const BY_REASON: [&str; 3] = ["drops.", "losses.", "ended."];

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Unknown, or not applicable.
    Empty,
    /// A whole number.
    Whole(i64),
    /// Other number, with the text of the parameter.
    Decimal(f64, String),
    /// Text of any other value.
    Text(String),
}

/// Common type of all non-empty cells of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number.
    Whole,
    /// A number.
    Decimal,
    /// A text.
    Text,
}

/// A table.
pub struct Table {
    /// Name and kind of each column.
    pub columns: Vec<(String, Kind)>,
    /// Cells of each run, one for each column.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Returns the table of some runs, in this order, each with the values of the axes.
    ///
    /// # Errors
    /// Figures are not JSON: a bug.
    pub(crate) fn of(axes: &[Axis], runs: &[(Vec<&str>, &Kept)]) -> Result<Table> {
        let parameters: Vec<(String, Kind)> =
            axes.iter().map(|axis| (axis.key.clone(), kind(&axis.values))).collect();
        let is_parameter = |name: &str| axes.iter().any(|axis| axis.key == name);
        let (mut names, mut rows) = (Names::default(), Vec::new());
        for (_, kept) in runs {
            let mut figures = Vec::new();
            if let Some(of_run) = &kept.figures {
                let tree: Tree = serde_json::from_str(&serde_json::to_string(of_run)?)?;
                tree.flatten("", &mut figures);
            }
            figures.retain(|(name, _)| !is_parameter(name));
            names.add(figures.iter().map(|(name, _)| name.as_str()));
            rows.push(figures.into_iter().collect::<BTreeMap<String, Cell>>());
        }
        let mut columns = parameters;
        columns.extend(["status", "reason"].map(|name| (name.to_owned(), Kind::Text)));
        for name in &names.all {
            let is_text =
                |row: &BTreeMap<String, Cell>| matches!(row.get(name), Some(Cell::Text(_)));
            let kind = if rows.iter().any(is_text) { Kind::Text } else { Kind::Whole };
            columns.push((name.clone(), kind));
        }
        let row = |((values, kept), figures): (&(Vec<&str>, &Kept), BTreeMap<String, Cell>)| {
            let mut cells: Vec<Cell> =
                values.iter().zip(&columns).map(|(value, (_, kind))| cell(value, *kind)).collect();
            cells.push(Cell::Text(kept.status.name().to_owned()));
            cells.push(kept.reason.clone().map_or(Cell::Empty, Cell::Text));
            cells.extend(names.all.iter().map(|name| match figures.get(name) {
                Some(cell) => cell.clone(),
                None if was_counted(name, &figures) => Cell::Whole(0),
                None => Cell::Empty,
            }));
            cells
        };
        let rows = runs.iter().zip(rows).map(row).collect();
        Ok(Table { columns, rows })
    }

    /// Returns the names of its columns.
    pub(crate) fn names(&self) -> Vec<String> {
        self.columns.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Returns the table as CSV of RFC 4180, with a newline only at the end of a line.
    ///
    /// # Errors
    /// Memory is short.
    pub(crate) fn csv(&self) -> Result<Vec<u8>> {
        let mut out = WriterBuilder::new().has_headers(false).from_writer(Vec::new());
        out.write_record(self.columns.iter().map(|(name, _)| name))?;
        for row in &self.rows {
            out.write_record(row.iter().map(Cell::text))?;
        }
        out.into_inner().map_err(|error| anyhow!("{}", error.error()))
    }
}

impl Cell {
    /// Returns the cell as a field of CSV.
    pub fn text(&self) -> String {
        match self {
            Cell::Empty => String::new(),
            Cell::Whole(number) => number.to_string(),
            Cell::Decimal(_, text) | Cell::Text(text) => text.clone(),
        }
    }
}

/// Returns the kind of a parameter: the one that fits all of its values.
fn kind(values: &[String]) -> Kind {
    // `007` as a number would not be written back unchanged.
    let is_whole =
        |value: &String| value.parse::<i64>().is_ok_and(|number| number.to_string() == *value);
    let is_decimal = |value: &String| {
        let is_number = value.bytes().all(|byte| b"0123456789.eE+-".contains(&byte));
        // A whole number too large for a column of whole numbers would be rounded.
        let is_large = value.parse::<i64>().is_err() && value.parse::<u64>().is_ok();
        is_number && !is_large && value.parse::<f64>().is_ok_and(f64::is_finite)
    };
    match values {
        all if all.iter().all(is_whole) => Kind::Whole,
        all if all.iter().all(is_decimal) => Kind::Decimal,
        _ => Kind::Text,
    }
}

fn cell(value: &str, kind: Kind) -> Cell {
    let number = match kind {
        Kind::Whole => value.parse().ok().map(Cell::Whole),
        Kind::Decimal => value.parse().ok().map(|number| Cell::Decimal(number, value.to_owned())),
        Kind::Text => None,
    };
    number.unwrap_or_else(|| Cell::Text(value.to_owned()))
}

/// Returns whether a run with these figures would have counted the reason of this column.
fn was_counted(name: &str, figures: &BTreeMap<String, Cell>) -> bool {
    if let Some((entry, _)) =
        name.strip_prefix("traffic.").and_then(|rest| rest.split_once(".lost."))
    {
        return figures.contains_key(&format!("traffic.{entry}.flows"));
    }
    !figures.is_empty() && BY_REASON.iter().any(|of| name.starts_with(of))
}

/// Columns so far.
#[derive(Default)]
struct Names {
    all: Vec<String>,
}

impl Names {
    /// Adds the columns of one more run, in its order.
    fn add<'a>(&mut self, names: impl Iterator<Item = &'a str>) {
        let known: BTreeMap<String, usize> = self.all.iter().cloned().zip(0..).collect();
        let mut new: Vec<(usize, String)> = Vec::new();
        let mut after = 0;
        for name in names {
            match known.get(name) {
                Some(at) => after = at + 1,
                None => new.push((after, name.to_owned())),
            }
        }
        if new.is_empty() {
            return;
        }
        let mut new = new.into_iter().peekable();
        let mut all = Vec::new();
        for (at, name) in self.all.drain(..).enumerate() {
            while let Some((_, name)) = new.next_if(|(before, _)| *before <= at) {
                all.push(name);
            }
            all.push(name);
        }
        all.extend(new.map(|(_, name)| name));
        self.all = all;
    }
}

/// Figures as JSON, with keys in their original order.
enum Tree {
    Leaf(Cell),
    Object(Vec<(String, Tree)>),
    List(Vec<Tree>),
}

impl Tree {
    fn flatten(self, path: &str, out: &mut Vec<(String, Cell)>) {
        let below = |name: &str| match path {
            "" => name.to_owned(),
            _ => format!("{path}.{name}"),
        };
        match self {
            Tree::Leaf(cell) => out.push((path.to_owned(), cell)),
            Tree::Object(fields) => {
                fields.into_iter().for_each(|(name, value)| value.flatten(&below(&name), out));
            }
            Tree::List(entries) => {
                for entry in entries {
                    let Tree::Object(mut fields) = entry else { continue };
                    let Some(at) = fields.iter().position(|(name, _)| name == "name") else {
                        continue;
                    };
                    if let (_, Tree::Leaf(Cell::Text(name))) = fields.remove(at) {
                        Tree::Object(fields).flatten(&below(&name), out);
                    }
                }
            }
        }
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Tree, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Tree;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("figures")
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Tree, E> {
                let whole = i64::try_from(number).map(Cell::Whole);
                Ok(Tree::Leaf(whole.unwrap_or_else(|_| Cell::Text(number.to_string()))))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Tree, E> {
                Ok(Tree::Leaf(Cell::Text(text.to_owned())))
            }

            fn visit_unit<E: Error>(self) -> Result<Tree, E> {
                Ok(Tree::Leaf(Cell::Empty))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Tree::Object(fields))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Tree, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = list.next_element()? {
                    entries.push(entry);
                }
                Ok(Tree::List(entries))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_that_only_a_later_run_has_comes_where_it_is_there() {
        let mut names = Names::default();
        for run in ["a d", "b c", "a b d", "", "c d e"] {
            names.add(run.split_whitespace());
        }
        assert_eq!(names.all, ["b", "c", "a", "d", "e"]);
        let mut names = Names::default();
        for run in ["a d f", "a b c d e f g"] {
            names.add(run.split_whitespace());
        }
        assert_eq!(names.all, ["a", "b", "c", "d", "e", "f", "g"]);
    }

    #[test]
    fn parameters_are_numbers_where_all_values_are() {
        let of = |values: &str| kind(&values.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(of("1 -2 300"), Kind::Whole);
        assert_eq!(of("1 0.5 1e-12"), Kind::Decimal);
        for text in [
            "1 2Gbps",
            "007 1",
            "9223372036854775809 1",
            "inf",
            "nan",
            "ecmp",
            "1 ~",
            "9223372036854775808 x",
        ] {
            let kind = of(text);
            assert!(kind == Kind::Text || text.starts_with("007"), "{text}: {kind:?}");
        }
        assert_eq!(cell("0.50", Kind::Decimal).text(), "0.50");
    }

    #[test]
    fn a_reason_that_a_whole_run_did_not_count_is_zero() {
        let figures = |names: &[&str]| {
            names
                .iter()
                .map(|name| ((*name).to_owned(), Cell::Whole(1)))
                .collect::<BTreeMap<_, _>>()
        };
        let whole = figures(&["events", "traffic.a.flows"]);
        assert!(was_counted("drops.queue_full", &whole));
        assert!(was_counted("traffic.a.lost.queue_full", &whole));
        assert!(!was_counted("traffic.b.lost.queue_full", &whole), "it has no such entry");
        assert!(!was_counted("drops.queue_full", &figures(&[])), "it has no figures");
        assert!(!was_counted("rounds.2.pairs", &whole));
    }
}
