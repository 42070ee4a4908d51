//! Figure of a result: a number, or words.

use axon_plot::number_text;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Figure: a number, or words where there is no number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Figure {
    /// Number in the row's unit.
    Number(f64),
    /// Text.
    Text(String),
    /// No figure.
    #[default]
    None,
}

impl From<f64> for Figure {
    fn from(number: f64) -> Figure {
        Figure::Number(number)
    }
}

impl From<u64> for Figure {
    fn from(number: u64) -> Figure {
        Figure::Number(number as f64)
    }
}

impl From<usize> for Figure {
    fn from(number: usize) -> Figure {
        Figure::Number(number as f64)
    }
}

impl From<&str> for Figure {
    fn from(text: &str) -> Figure {
        Figure::Text(text.to_owned())
    }
}

impl From<String> for Figure {
    fn from(text: String) -> Figure {
        Figure::Text(text)
    }
}

impl<T: Into<Figure>> From<Option<T>> for Figure {
    fn from(figure: Option<T>) -> Figure {
        figure.map_or(Figure::None, Into::into)
    }
}

impl fmt::Display for Figure {
    /// Formats numbers with as many digits as make them distinct: `5690`, `97.3`, `0.0412`,
    /// `1.2e-6`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Figure::Number(number) => f.write_str(&number_text(*number)),
            Figure::Text(text) => f.write_str(text),
            Figure::None => f.write_str("-"),
        }
    }
}
