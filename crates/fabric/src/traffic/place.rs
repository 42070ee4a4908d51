//! Place of a traffic entry in the file, and checks of its numbers.

use crate::error::Problem;
use crate::units::BytesText;
use axon_wire::{Bytes, Span};
use std::ops::RangeInclusive;

/// Key of an entry.
pub(super) struct Place(String);

impl Place {
    pub(super) fn of(number: usize) -> Place {
        Place(format!("traffic[{number}]"))
    }

    /// Returns the path of a key of the entry, or of the entry for none.
    pub(super) fn key(&self, key: &str) -> String {
        let dot = if key.is_empty() { "" } else { "." };
        format!("{}{dot}{key}", self.0)
    }

    pub(super) fn problem(
        &self,
        key: &str,
        what: impl Into<String>,
        expected: impl Into<String>,
    ) -> Problem {
        Problem::new(self.key(key), what, expected)
    }

    pub(super) fn above_zero(&self, key: &str, span: Span) -> Result<Span, Problem> {
        match span {
            Span::ZERO => Err(self.problem(key, "0s is out of range", "a time above zero")),
            span => Ok(span),
        }
    }

    pub(super) fn count(&self, key: &str, count: Option<u64>) -> Result<Option<u64>, Problem> {
        match count {
            Some(0) => Err(self.problem(key, "0 is out of range", "1 or more")),
            count => Ok(count),
        }
    }

    pub(super) fn size(&self, key: &str, BytesText(bytes): BytesText) -> Result<Bytes, Problem> {
        self.size_in(key, bytes, 1..=1 << 50, "1 B or more")
    }

    pub(super) fn size_in(
        &self,
        key: &str,
        bytes: Bytes,
        range: RangeInclusive<u64>,
        expected: &str,
    ) -> Result<Bytes, Problem> {
        if range.contains(&bytes.0) {
            return Ok(bytes);
        }
        Err(self.problem(key, format!("{bytes} is out of range"), expected))
    }
}
