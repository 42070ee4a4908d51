//! Keys of agents in the file, and checks of numbers and spans.

use crate::error::Problem;
use crate::units::{SpanText, span_text};
use axon_wire::Span;

/// One day.
pub(super) const DAY: Span = Span::from_secs(86_400);

/// Checks that a span is in its range, or returns the default.
pub(super) fn span(
    key: String,
    asked: Option<SpanText>,
    ours: Span,
    (least, most): (Span, Span),
) -> Result<Span, Problem> {
    match asked {
        None => Ok(ours),
        Some(SpanText(span)) if (least..=most).contains(&span) => Ok(span),
        Some(SpanText(span)) => {
            let expected = format!("{} to {}", span_text(least), span_text(most));
            Err(Problem::range(key, span_text(span), expected))
        }
    }
}

/// Checks that a number is in its range.
pub(super) fn number(key: String, asked: u64, least: u64, most: u64) -> Result<u64, Problem> {
    if (least..=most).contains(&asked) {
        return Ok(asked);
    }
    Err(Problem::range(key, asked, format!("{least} to {most}")))
}

/// Returns the key of an agent in the file.
pub(super) fn key(index: usize, rest: &str) -> String {
    format!("agents[{index}].{rest}")
}
