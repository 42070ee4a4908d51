//! Fingerprints of states.
//!
//! In plain English: what makes two states the same is everything that their values show of
//! themselves (`Debug`), but for what no step depends on:
//!
//! - the counters of telemetry, and the memory of searches: what shortest paths a router has looked
//!   up, how often the graph has changed, how many changes the data plane was asked for;
//! - the numbers of decisions and of port states, of which only the order counts. The smallest that
//!   is anywhere stands for 0, the next for 1, and so on: the same fabric is one state whatever
//!   number of decisions has led there.
//!
//! The text is hashed to 128 bits. The checker keeps 64 of a state: of a million states two are
//! taken for one with a chance of 3 in 10^8.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::{Debug, Write};

/// How what is left out begins; it ends with the bracket that closes the last one.
const LEFT_OUT: [&str; 7] = [
    "Counters {",
    "ShortestPaths {",
    "Detour {",
    "journal: [",
    "current: [",
    "round_wanted: true, path: [",
    "round_wanted: false, path: [",
];
/// Numbers that are left out.
const NUMBERS_LEFT_OUT: [&str; 2] = ["generation: ", "tickets: "];
/// What stands before a number of a decision, and before one of a port state.
const NUMBERED: [&[&str]; 2] = [&["number: "], &["version: ", "version: Some(", "nonce: "]];

thread_local! {
    static TEXT: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The fingerprint of a value.
pub fn of(value: &dyn Debug) -> u128 {
    TEXT.with_borrow_mut(|text| {
        text.clear();
        // A `String` takes whatever is written to it.
        let _ = write!(text, "{value:?}");
        let mut kept = keep(text);
        for labels in NUMBERED {
            let numbers = numbers(&kept, labels);
            kept = with_ranks(&kept, &numbers);
        }
        xxhash_rust::xxh3::xxh3_128(kept.as_bytes())
    })
}

/// What a message is but for its numbers, and these: messages are sorted alike in two states whose
/// numbers have the same order.
pub fn shape_and_numbers(value: &dyn Debug) -> (u128, Vec<u64>) {
    let text = format!("{value:?}");
    let mut all = Vec::new();
    let mut shape = text;
    for labels in NUMBERED {
        let found = numbers(&shape, labels);
        all.extend(found.iter().map(|&(.., number)| number));
        shape = replaced(&shape, &found, |_| Cow::Borrowed("n"));
    }
    (xxhash_rust::xxh3::xxh3_128(shape.as_bytes()), all)
}

/// The text without what is left out.
fn keep(text: &str) -> String {
    let begins = |labels: &'static [&'static str]| {
        labels.iter().flat_map(|label| text.match_indices(*label).map(move |(at, _)| (at, *label)))
    };
    let mut all: Vec<(usize, &str)> = begins(&LEFT_OUT).chain(begins(&NUMBERS_LEFT_OUT)).collect();
    all.sort_unstable();
    let (mut kept, mut last) = (String::with_capacity(text.len()), 0);
    for (at, label) in all {
        // One that is within another is left out with it.
        if at < last {
            continue;
        }
        kept.push_str(&text[last..at]);
        let from = at + label.len();
        last = match label.ends_with(' ') {
            true => from + digits(&text[from..]),
            false => after_bracket(text, from),
        };
        // A search leaves its path behind.
        if label == "Detour {" && text[last..].starts_with(", path: [") {
            last = after_bracket(text, last + ", path: [".len());
        }
    }
    kept.push_str(&text[last..]);
    kept
}

/// The place after the bracket that closes an open one.
fn after_bracket(text: &str, from: usize) -> usize {
    let mut open = 1;
    for (at, byte) in text.bytes().enumerate().skip(from) {
        match byte {
            b'{' | b'[' => open += 1,
            b'}' | b']' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return at + 1;
        }
    }
    text.len()
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// Where numbers are, and what they are; not those of incarnations, which come after a node.
fn numbers(text: &str, labels: &[&str]) -> Vec<(usize, usize, u64)> {
    let mut found = Vec::new();
    for label in labels {
        for (at, _) in text.match_indices(label) {
            let before = &text[..at];
            let node = before.strip_suffix("), ").and_then(|before| before.rsplit('(').next());
            let is_incarnation = node.is_some_and(|node| node.len() == digits(node))
                && before
                    .trim_end_matches("), ")
                    .trim_end_matches(char::is_numeric)
                    .ends_with("NodeId(");
            let from = at + label.len();
            let to = from + digits(&text[from..]);
            if !is_incarnation && let Ok(number) = text[from..to].parse() {
                found.push((from, to, number));
            }
        }
    }
    found.sort_unstable();
    found
}

fn with_ranks(text: &str, found: &[(usize, usize, u64)]) -> String {
    let all: BTreeSet<u64> = found.iter().map(|&(.., number)| number).collect();
    replaced(text, found, |number| Cow::Owned(all.range(..number).count().to_string()))
}

fn replaced(
    text: &str,
    found: &[(usize, usize, u64)],
    by: impl Fn(u64) -> Cow<'static, str>,
) -> String {
    let (mut out, mut last) = (String::with_capacity(text.len()), 0);
    for &(from, to, number) in found {
        out.push_str(&text[last..from]);
        out.push_str(&by(number));
        last = to;
    }
    out.push_str(&text[last..]);
    out
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
    fn of_numbers_of_decisions_only_the_order_counts() {
        let print = |text: String| of(&format_args!("{text}"));
        let text = |a, b| print(format!("Stamp {{ epoch: 1, number: {a} }} {{ number: {b} }}"));
        assert_eq!(text(3, 17), text(4, 5));
        assert_ne!(text(3, 17), text(4, 4));
        assert_ne!(text(3, 17), text(17, 3));
        let node = |number| print(format!("{{ node: NodeId(1), number: {number} }}"));
        assert_ne!(node(1), node(2), "an incarnation");
        let hello = |number| print(format!("version: Some({number}), nonce: {number}"));
        assert_eq!(hello(7), hello(8));
    }

    #[test]
    fn the_memory_of_searches_is_left_out() {
        let print = |text: &str| keep(text);
        let text =
            "a: 1, x: ShortestPaths { rows: [Row { a: [1] }] }, Detour { b: {} }, path: [2], c";
        assert_eq!(print(text), "a: 1, x: , , c");
        assert_eq!(print("generation: 17, journal: [1, 2], d"), ", , d");
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
