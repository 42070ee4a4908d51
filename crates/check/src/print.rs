//! Fingerprints of states.
//!
//! In plain English: what makes two states the same is everything that their values show of
//! themselves (`Debug`), but for the counters of telemetry, on which no step depends. The text is
//! hashed to 128 bits. The checker keeps 64 of a state: of a million states two are taken for one
//! with a chance of 3 in 10^8.

use std::cell::RefCell;
use std::fmt::{Debug, Write};

/// The name with which a struct of counters begins.
const COUNTERS: &str = "Counters {";

thread_local! {
    static TEXT: RefCell<(String, Vec<u8>)> = const { RefCell::new((String::new(), Vec::new())) };
}

/// The fingerprint of a value.
pub fn of(value: &dyn Debug) -> u128 {
    TEXT.with_borrow_mut(|(text, kept)| {
        text.clear();
        kept.clear();
        // A `String` takes whatever is written to it.
        let _ = write!(text, "{value:?}");
        keep(text, kept);
        xxhash_rust::xxh3::xxh3_128(kept)
    })
}

/// The text without its counters.
fn keep(text: &str, kept: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(at) = rest.find(COUNTERS) {
        kept.extend_from_slice(&rest.as_bytes()[..at]);
        rest = after_braces(&rest[at + COUNTERS.len()..]);
    }
    kept.extend_from_slice(rest.as_bytes());
}

/// What follows the brace that closes an open one.
fn after_braces(text: &str) -> &str {
    let mut open = 1;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => open += 1,
            b'}' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return &text[at + 1..];
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct SomeCounters {
        #[allow(dead_code, reason = "shown")]
        inner: Option<[u8; 1]>,
    }

    #[derive(Debug)]
    #[allow(dead_code, reason = "shown")]
    struct State {
        before: u8,
        counters: SomeCounters,
        after: u8,
    }

    #[test]
    fn states_differ_by_all_but_their_counters() {
        let state =
            |before, inner, after| of(&State { before, counters: SomeCounters { inner }, after });
        assert_eq!(state(1, None, 2), state(1, Some([3]), 2));
        assert_ne!(state(1, None, 2), state(2, None, 2));
        assert_ne!(state(1, None, 2), state(1, None, 3));
    }
}
