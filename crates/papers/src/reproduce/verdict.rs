//! What a row and an experiment come to.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What a bound stands for, which says what it means to hold it or to miss it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A figure that could have come out otherwise.
    #[default]
    Bound,
    /// The effect that the paper reports: without it nothing is reproduced.
    Effect,
    /// The figure follows from parameters or formulas that were set from the paper. Useful as
    /// a check of the code, no evidence for the paper.
    Construction,
}

/// What a row or an experiment comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The effect shows, and every bound holds.
    Held,
    /// Every bound holds, and all that is bound follows from what was set.
    ByConstruction,
    /// Measured, and a bound does not hold.
    Missed,
    /// The effect of the paper does not show.
    NotReproduced,
}

impl Verdict {
    /// All of them, in the order of a summary.
    pub const ALL: [Verdict; 4] =
        [Verdict::Held, Verdict::ByConstruction, Verdict::Missed, Verdict::NotReproduced];

    /// Of a row of this kind whose bound holds or does not.
    pub fn of_row(kind: Kind, pass: bool) -> Verdict {
        match (kind, pass) {
            (Kind::Construction, true) => Verdict::ByConstruction,
            (Kind::Bound | Kind::Effect, true) => Verdict::Held,
            (Kind::Effect, false) => Verdict::NotReproduced,
            (Kind::Bound | Kind::Construction, false) => Verdict::Missed,
        }
    }

    /// Of an experiment with rows of these verdicts: the worst of them, but held if any row
    /// that is not by construction is held. Without rows nothing is held.
    pub fn of_all(rows: impl IntoIterator<Item = Verdict>) -> Verdict {
        let rows: Vec<Verdict> = rows.into_iter().collect();
        match rows.iter().max() {
            Some(Verdict::ByConstruction) if rows.contains(&Verdict::Held) => Verdict::Held,
            Some(worst) => *worst,
            None => Verdict::Missed,
        }
    }

    /// Whether nothing is wrong: held, or by construction.
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
