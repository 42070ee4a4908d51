//! Outcome of an experiment: judged rows, figures without a bound, tables, plots, notes.

use super::figure::Figure;
use super::verdict::{Kind, Verdict};
use axon_plot::{Plot, number_text};
use serde::{Deserialize, Serialize};

/// Quantity of the paper with our measurement and its bound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Name of the measured quantity.
    pub name: String,
    /// Value in the paper.
    pub paper: Figure,
    /// Value measured by this run, in `unit`.
    pub ours: Figure,
    /// Unit of `paper` and `ours`; empty for a pure number.
    pub unit: String,
    /// Bound of the row in words.
    pub bound: String,
    /// True if `ours` is within the bound.
    pub pass: bool,
    /// Meaning of the bound.
    #[serde(default)]
    pub kind: Kind,
}

impl Row {
    /// Creates a row with the bound that ours is at least `least`.
    pub(crate) fn at_least(
        name: impl Into<String>,
        paper: impl Into<Figure>,
        ours: f64,
        unit: &str,
        least: f64,
    ) -> Row {
        let bound = format!(">= {}", number_text(least));
        Row::holds(name, paper, ours, unit, bound, ours >= least)
    }

    /// Creates a row with the bound that ours is at most `most`.
    pub(crate) fn at_most(
        name: impl Into<String>,
        paper: impl Into<Figure>,
        ours: f64,
        unit: &str,
        most: f64,
    ) -> Row {
        let bound = format!("<= {}", number_text(most));
        Row::holds(name, paper, ours, unit, bound, ours <= most)
    }

    /// Creates a row with the bound that ours is within `percent` per cent of `target`; zero per
    /// cent is exact.
    pub(crate) fn within(
        name: impl Into<String>,
        paper: impl Into<Figure>,
        ours: f64,
        unit: &str,
        (target, percent): (f64, f64),
    ) -> Row {
        let pass = (ours - target).abs() <= target.abs() * percent / 100.0;
        let target = number_text(target);
        let bound = match percent == 0.0 {
            true => format!("= {target}"),
            false => format!("{target} +- {} %", number_text(percent)),
        };
        Row::holds(name, paper, ours, unit, bound, pass)
    }

    /// Creates a row with any other bound: `bound` describes in words what `pass` has checked.
    pub(crate) fn holds(
        name: impl Into<String>,
        paper: impl Into<Figure>,
        ours: impl Into<Figure>,
        unit: &str,
        bound: impl Into<String>,
        pass: bool,
    ) -> Row {
        Row {
            name: name.into(),
            paper: paper.into(),
            ours: ours.into(),
            unit: unit.to_owned(),
            bound: bound.into(),
            pass,
            kind: Kind::Bound,
        }
    }

    /// Creates a row with the bound that ours is at least `least` and at most `most`.
    pub(crate) fn between(
        name: impl Into<String>,
        paper: impl Into<Figure>,
        ours: f64,
        unit: &str,
        (least, most): (f64, f64),
    ) -> Row {
        let bound = format!("{} to {}", number_text(least), number_text(most));
        Row::holds(name, paper, ours, unit, bound, (least..=most).contains(&ours))
    }

    /// Marks the row as the effect that the paper reports: if it fails, the experiment has not
    /// reproduced it.
    pub(crate) fn effect(self) -> Row {
        Row { kind: Kind::Effect, ..self }
    }

    /// Marks the row as a consequence of set parameters; it is not counted as held.
    pub(crate) fn by_construction(self) -> Row {
        Row { kind: Kind::Construction, ..self }
    }

    /// Returns the verdict of the row.
    pub(crate) fn verdict(&self) -> Verdict {
        Verdict::of_row(self.kind, self.pass)
    }
}

/// Figure without a bound, which never makes an experiment pass or fail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Remark {
    /// Name of the measured quantity.
    pub name: String,
    /// Value in the paper.
    pub paper: Figure,
    /// Measured value, or the reason why there is none.
    pub ours: Figure,
    /// Unit of `paper` and `ours`; empty for a pure number.
    pub unit: String,
}

/// Table of figures for a spreadsheet, as one CSV file.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// File name without `.csv`.
    pub name: String,
    /// Column headings, units included.
    pub columns: Vec<String>,
    /// Rows, each with as many figures as there are columns.
    pub rows: Vec<Vec<Figure>>,
}

impl Table {
    /// Creates a table without rows.
    pub(crate) fn new(name: &str, columns: &[&str]) -> Table {
        let columns = columns.iter().map(|&column| column.to_owned()).collect();
        Table { name: name.to_owned(), columns, rows: Vec::new() }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If the number of figures differs from the number of columns.
    pub(crate) fn push(&mut self, row: Vec<Figure>) {
        assert_eq!(row.len(), self.columns.len(), "{}: a row of another width", self.name);
        self.rows.push(row);
    }

    /// Returns the table as CSV (RFC 4180, with line feeds), with numbers in full.
    pub fn to_csv(&self) -> String {
        let cell = |figure: &Figure| match figure {
            Figure::Number(number) => number.to_string(),
            Figure::Text(text) => text.clone(),
            Figure::None => String::new(),
        };
        let mut csv = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
        let mut write = |record: Vec<String>| {
            csv.write_record(record).expect("memory takes every record");
        };
        write(self.columns.clone());
        self.rows.iter().for_each(|row| write(row.iter().map(cell).collect()));
        let bytes = csv.into_inner().expect("memory takes every record");
        String::from_utf8(bytes).expect("all cells are text")
    }
}

/// Outcome of an experiment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Figures with a bound.
    pub rows: Vec<Row>,
    /// Figures without a bound.
    pub remarks: Vec<Remark>,
    /// Tables of the underlying figures.
    pub tables: Vec<Table>,
    /// Plots of the underlying figures.
    pub plots: Vec<Plot>,
    /// Reasons for differences, and interpretations of the paper; a sentence or two each.
    pub notes: Vec<String>,
}

impl Outcome {
    /// Returns the verdict over all rows. Without rows nothing is held.
    pub(crate) fn verdict(&self) -> Verdict {
        Verdict::of_all(self.rows.iter().map(Row::verdict))
    }

    /// Marks all rows so far as consequences of set parameters, with the reason.
    pub(crate) fn by_construction(&mut self, why: &str) {
        let rows = std::mem::take(&mut self.rows);
        self.rows = rows.into_iter().map(Row::by_construction).collect();
        self.note(format!("By construction: {why}"));
    }

    /// Adds a figure without a bound.
    pub(crate) fn remark(
        &mut self,
        name: impl Into<String>,
        paper: impl Into<Figure>,
        ours: impl Into<Figure>,
        unit: &str,
    ) {
        let (name, unit) = (name.into(), unit.to_owned());
        self.remarks.push(Remark { name, paper: paper.into(), ours: ours.into(), unit });
    }

    /// Adds a note.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_as_long_as_they_must_be() {
        for (number, text) in [
            (5690.0, "5690"),
            (97.34567, "97.346"),
            (0.5, "0.5"),
            (0.04123456, "0.04123"),
            (1234567.8, "1234568"),
            (0.0, "0"),
            (-2.5, "-2.5"),
            (0.000_012_3, "1.230e-5"),
            (99_999.6, "100000"),
        ] {
            assert_eq!(Figure::from(number).to_string(), text);
        }
        assert_eq!(Figure::from(None::<f64>).to_string(), "-");
    }

    #[test]
    fn a_bound_is_a_bound_and_no_number_passes_none() {
        assert!(Row::at_least("x", 1.0, 2.0, "", 2.0).pass);
        assert!(!Row::at_least("x", 1.0, 1.99, "", 2.0).pass);
        assert!(Row::at_most("x", 1.0, 2.0, "", 2.0).pass);
        assert!(Row::within("x", 1.0, 1.05, "", (1.0, 5.0 + 1e-9)).pass);
        assert!(!Row::within("x", 1.0, 1.06, "", (1.0, 5.0)).pass);
        assert!(Row::within("x", 1.0, 520.0, "ns", (520.0, 0.0)).pass);
        let between = |ours| Row::between("x", 1.0, ours, "", (1.0, 2.0)).pass;
        assert_eq!(
            [0.99, 1.0, 2.0, 2.01, f64::NAN].map(between),
            [false, true, true, false, false]
        );
        let nan = f64::NAN;
        assert!(!Row::at_least("x", 1.0, nan, "", 0.0).pass);
        assert!(!Row::at_most("x", 1.0, nan, "", 0.0).pass);
        assert!(!Row::within("x", 1.0, nan, "", (1.0, 5.0)).pass);
    }

    #[test]
    fn an_experiment_without_rows_has_not_passed() {
        let mut outcome = Outcome::default();
        outcome.remark("seen", 1.0, 2.0, "");
        assert!(!outcome.verdict().is_good());
        outcome.rows.push(Row::at_least("x", 1.0, 2.0, "", 1.0));
        assert_eq!(outcome.verdict(), Verdict::Held);
        outcome.rows.push(Row::at_least("y", 1.0, 0.0, "", 1.0));
        assert!(!outcome.verdict().is_good());
    }

    #[test]
    fn what_follows_from_the_set_up_and_an_effect_that_fails_are_not_held() {
        let row = |ours| Row::at_least("x", 1.0, ours, "", 1.0);
        let verdict = |rows: Vec<Row>| Outcome { rows, ..Outcome::default() }.verdict();
        assert_eq!(verdict(vec![row(1.0).by_construction()]), Verdict::ByConstruction);
        assert_eq!(verdict(vec![row(1.0), row(0.0).effect()]), Verdict::NotReproduced);
        assert_eq!(verdict(vec![row(1.0).effect(), row(0.0).by_construction()]), Verdict::Missed);
    }

    #[test]
    fn a_table_becomes_csv_with_quotes_where_they_must_be() {
        let mut table = Table::new("t", &["flow", "Mb/s, ours"]);
        table.push(vec!["h1 \"a\"".into(), 0.1.into()]);
        table.push(vec!["h2".into(), Figure::None]);
        assert_eq!(table.to_csv(), "flow,\"Mb/s, ours\"\n\"h1 \"\"a\"\"\",0.1\nh2,\n");
    }

    #[test]
    fn figures_survive_json() {
        for figure in [Figure::Number(0.1), Figure::Text("no RTL yet".into()), Figure::None] {
            let text = serde_json::to_string(&figure).unwrap();
            assert_eq!(serde_json::from_str::<Figure>(&text).unwrap(), figure, "{text}");
        }
    }
}
