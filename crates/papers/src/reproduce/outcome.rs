//! What came of an experiment: judged rows, figures without a bound, tables, plots, reasons.

use super::figure::Figure;
use super::verdict::{Kind, Verdict};
use axon_plot::{Plot, number_text};
use serde::{Deserialize, Serialize};

/// One thing that the paper says and we measure, with the bound we hold ourselves to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The name of the quantity that is measured.
    pub name: String,
    /// What the paper says.
    pub paper: Figure,
    /// The value that this run measured, in `unit`.
    pub ours: Figure,
    /// The unit of `paper` and `ours`; empty for a pure number.
    pub unit: String,
    /// What ours must be, in words.
    pub bound: String,
    /// Whether `ours` is within the bound.
    pub pass: bool,
    /// What the bound stands for.
    #[serde(default)]
    pub kind: Kind,
}

impl Row {
    /// Ours must be at least `least`.
    pub fn at_least(
        name: impl Into<String>,
        paper: impl Into<Figure>,
        ours: f64,
        unit: &str,
        least: f64,
    ) -> Row {
        let bound = format!(">= {}", number_text(least));
        Row::holds(name, paper, ours, unit, bound, ours >= least)
    }

    /// Ours must be at most `most`.
    pub fn at_most(
        name: impl Into<String>,
        paper: impl Into<Figure>,
        ours: f64,
        unit: &str,
        most: f64,
    ) -> Row {
        let bound = format!("<= {}", number_text(most));
        Row::holds(name, paper, ours, unit, bound, ours <= most)
    }

    /// Ours must lie within `percent` per cent of `target`; zero per cent is exactly.
    pub fn within(
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

    /// Anything else: `bound` says in words what `pass` has checked.
    pub fn holds(
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

    /// Ours must be at least `least` and at most `most`.
    pub fn between(
        name: impl Into<String>,
        paper: impl Into<Figure>,
        ours: f64,
        unit: &str,
        (least, most): (f64, f64),
    ) -> Row {
        let bound = format!("{} to {}", number_text(least), number_text(most));
        Row::holds(name, paper, ours, unit, bound, (least..=most).contains(&ours))
    }

    /// The same row as the effect that the paper reports: if it fails, the experiment has not
    /// reproduced it.
    pub fn effect(self) -> Row {
        Row { kind: Kind::Effect, ..self }
    }

    /// The same row as one that follows from what was set; it is not counted as held.
    pub fn by_construction(self) -> Row {
        Row { kind: Kind::Construction, ..self }
    }

    /// What the row comes to.
    pub fn verdict(&self) -> Verdict {
        Verdict::of_row(self.kind, self.pass)
    }
}

/// A figure that no bound is held to: it never makes an experiment pass or fail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Remark {
    /// The name of the quantity that is measured.
    pub name: String,
    /// What the paper says.
    pub paper: Figure,
    /// What we measured, or why we have not.
    pub ours: Figure,
    /// The unit of `paper` and `ours`; empty for a pure number.
    pub unit: String,
}

/// Figures for a spreadsheet, as one CSV file.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The file's name, without `.csv`.
    pub name: String,
    /// Heads of the columns, units included.
    pub columns: Vec<String>,
    /// As many figures in each as there are columns.
    pub rows: Vec<Vec<Figure>>,
}

impl Table {
    /// A table without rows yet.
    pub fn new(name: &str, columns: &[&str]) -> Table {
        let columns = columns.iter().map(|&column| column.to_owned()).collect();
        Table { name: name.to_owned(), columns, rows: Vec::new() }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If it has not as many figures as the table has columns.
    pub fn push(&mut self, row: Vec<Figure>) {
        assert_eq!(row.len(), self.columns.len(), "{}: a row of another width", self.name);
        self.rows.push(row);
    }

    /// As CSV (RFC 4180, with line feeds). Numbers in full.
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

/// What came of an experiment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// What is held to a bound.
    pub rows: Vec<Row>,
    /// What is not.
    pub remarks: Vec<Remark>,
    /// The figures behind them.
    pub tables: Vec<Table>,
    /// The same, drawn.
    pub plots: Vec<Plot>,
    /// Why ours differs, and what had to be read into the paper; a sentence or two each.
    pub notes: Vec<String>,
}

impl Outcome {
    /// What the rows come to together. Nothing measured is nothing held.
    pub fn verdict(&self) -> Verdict {
        Verdict::of_all(self.rows.iter().map(Row::verdict))
    }

    /// Says that all rows so far follow from what was set, and why.
    pub fn by_construction(&mut self, why: &str) {
        let rows = std::mem::take(&mut self.rows);
        self.rows = rows.into_iter().map(Row::by_construction).collect();
        self.note(format!("By construction: {why}"));
    }

    /// Adds a figure that no bound is held to.
    pub fn remark(
        &mut self,
        name: impl Into<String>,
        paper: impl Into<Figure>,
        ours: impl Into<Figure>,
        unit: &str,
    ) {
        let (name, unit) = (name.into(), unit.to_owned());
        self.remarks.push(Remark { name, paper: paper.into(), ours: ours.into(), unit });
    }

    /// Adds a reason.
    pub fn note(&mut self, text: impl Into<String>) {
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
