//! Errors in a fabric file: position, key, fault and expectation.

use std::fmt;
use std::path::PathBuf;

/// Error in a fabric file. Prints as `file:line:column: key: what; expected ...`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct LoadError {
    /// Path of the file as given.
    pub file: PathBuf,
    /// Line and column, counted from 1; `None` if the file could not be read at all.
    pub position: Option<(u64, u64)>,
    /// Key, fault and expectation.
    pub problem: Problem,
}

/// Impossible setting of a fabric, by key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Problem {
    /// Key in the document: `topology.ring.switches`, `faults[0].down`; empty for the whole.
    pub key: String,
    /// Description of the fault.
    pub what: String,
    /// Description of a valid value.
    pub expected: String,
}

impl Problem {
    pub(crate) fn new(
        key: impl Into<String>,
        what: impl Into<String>,
        expected: impl Into<String>,
    ) -> Problem {
        Problem { key: key.into(), what: what.into(), expected: expected.into() }
    }

    /// Returns the problem of a value that is out of its range.
    pub(crate) fn range(
        key: impl Into<String>,
        value: impl fmt::Display,
        expected: impl Into<String>,
    ) -> Problem {
        Problem::new(key, format!("{value} is out of range"), expected)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        write!(f, "{}; expected {}", self.what, self.expected)
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file.display())?;
        if let Some((line, column)) = self.position {
            write!(f, "{line}:{column}:")?;
        }
        write!(f, " {}", self.problem)
    }
}
