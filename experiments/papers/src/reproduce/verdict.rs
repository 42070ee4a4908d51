//! Verdicts of rows and experiments.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Meaning of a bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The figure could have come out otherwise.
    #[default]
    Bound,
    /// The figure is the effect that the paper reports: without it nothing is reproduced.
    Effect,
    /// The figure follows from parameters or formulas that were set from the paper. It is a check
    /// of the code, not evidence for the paper.
    Construction,
}

/// Verdict of a row or an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The effect shows, and every bound is met.
    Held,
    /// Every bound is met, and all bounded figures follow from set parameters.
    ByConstruction,
    /// Measured, and a bound is missed.
    Missed,
    /// The effect of the paper does not show.
    NotReproduced,
}

impl Verdict {
    /// All verdicts, in the order of a summary.
    pub(crate) const ALL: [Verdict; 4] =
        [Verdict::Held, Verdict::ByConstruction, Verdict::Missed, Verdict::NotReproduced];

    /// Returns the verdict of a row of this kind whose bound is met or not.
    pub(crate) fn of_row(kind: Kind, pass: bool) -> Verdict {
        match (kind, pass) {
            (Kind::Construction, true) => Verdict::ByConstruction,
            (Kind::Bound | Kind::Effect, true) => Verdict::Held,
            (Kind::Effect, false) => Verdict::NotReproduced,
            (Kind::Bound | Kind::Construction, false) => Verdict::Missed,
        }
    }

    /// Returns the verdict of an experiment with rows of these verdicts: the worst of them, but
    /// held if any row that is not by construction is held. Without rows nothing is held.
    pub(crate) fn of_all(rows: impl IntoIterator<Item = Verdict>) -> Verdict {
        let rows: Vec<Verdict> = rows.into_iter().collect();
        match rows.iter().max() {
            Some(Verdict::ByConstruction) if rows.contains(&Verdict::Held) => Verdict::Held,
            Some(worst) => *worst,
            None => Verdict::Missed,
        }
    }

    /// Returns whether nothing is wrong: held, or by construction.
    pub fn is_good(self) -> bool {
        matches!(self, Verdict::Held | Verdict::ByConstruction)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Held => "held",
            Verdict::ByConstruction => "by construction",
            Verdict::Missed => "missed",
            Verdict::NotReproduced => "not reproduced",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_experiment_comes_to_the_worst_of_its_rows() {
        use Verdict::{ByConstruction, Held, Missed, NotReproduced};
        for (rows, verdict) in [
            (vec![], Missed),
            (vec![Held, Held], Held),
            (vec![Held, ByConstruction], Held),
            (vec![ByConstruction, ByConstruction], ByConstruction),
            (vec![Held, Missed, ByConstruction], Missed),
            (vec![Missed, NotReproduced, Held], NotReproduced),
        ] {
            assert_eq!(Verdict::of_all(rows.clone()), verdict, "{rows:?}");
        }
    }

    #[test]
    fn a_row_that_fails_is_never_good() {
        for kind in [Kind::Bound, Kind::Effect, Kind::Construction] {
            assert!(Verdict::of_row(kind, true).is_good());
            assert!(!Verdict::of_row(kind, false).is_good());
        }
        assert_eq!(Verdict::of_row(Kind::Effect, false), Verdict::NotReproduced);
        assert_eq!(Verdict::of_row(Kind::Construction, true), Verdict::ByConstruction);
    }
}
