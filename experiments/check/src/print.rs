//! Fingerprints of states.
//!
//! Two states are equal if their values have the same `Debug` text, apart from fields on which no
//! step depends:
//!
//! - telemetry counters, and the memory that searches use, such as a router's cached shortest
//!   paths, the number of graph changes, and the number of changes requested from the data plane;
//! - the numbers of decisions and of port states, of which only the order counts. The smallest
//!   number in the state stands for 0, the next one for 1, and so on. So the same fabric is one
//!   state, regardless of the number of decisions that have led there.
//!
//! The text is hashed to 128 bits. The checker keeps 64 bits for each state. Among a million
//! states, two collide with a probability of 3 in 10^8.
//!
//! A step changes few parts of a state, so each part caches a [`Print`], which consists of the hash
//! of its text without the numbers, and the numbers. The fingerprint of a state is computed from
//! the hashes of its parts and the ranks of all their numbers.

use std::fmt::{Debug, Write};
use xxhash_rust::xxh3;

/// Prefixes of the fields that are omitted. Each field ends with the bracket that closes the last
/// bracket in its prefix.
const LEFT_OUT: [&str; 7] = [
    "Counters {",
    "ShortestPaths {",
    "Detour {",
    "journal: [",
    "current: [",
    "round_wanted: true, path: [",
    "round_wanted: false, path: [",
];
/// Prefixes of the numbers that are omitted.
const NUMBERS_LEFT_OUT: [&str; 2] = ["generation: ", "tickets: "];
/// Prefixes of the numbers of decisions, and of port states.
const NUMBERED: [&[&str]; 2] = [&["number: "], &["version: ", "version: Some(", "nonce: "]];

/// Print of one part of a state.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Print {
    /// Hash of the text without the numbers in it.
    shape: u128,
    /// Numbers of decisions and numbers of port states, in the order of the text.
    numbers: [Vec<u64>; 2],
}

/// Match at an offset in a text.
enum Found {
    /// Label of an omitted field.
    LeftOut(&'static str),
    /// Prefix of a number of this kind.
    Number(usize),
}

/// Returns the fingerprint of a single value.
pub(crate) fn of(value: &dyn Debug) -> u128 {
    whole(&[&Print::new(value)])
}

/// Returns the fingerprint of all these parts together.
pub(crate) fn whole(parts: &[&Print]) -> u128 {
    let mut bytes = Vec::with_capacity(1024);
    for part in parts {
        bytes.extend(part.shape.to_le_bytes());
    }
    for kind in 0..NUMBERED.len() {
        let numbers = || parts.iter().flat_map(|part| &part.numbers[kind]);
        let mut all: Vec<u64> = numbers().copied().collect();
        all.sort_unstable();
        all.dedup();
        for number in numbers() {
            let rank = all.partition_point(|other| other < number);
            bytes.extend((rank as u32).to_le_bytes());
        }
    }
    xxh3::xxh3_128(&bytes)
}

impl Print {
    /// Computes the print of a part.
    pub(crate) fn new(part: &dyn Debug) -> Print {
        let mut text = String::with_capacity(8192);
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{part:?}");
        let (kept, numbers) = keep(&text);
        Print { shape: xxh3::xxh3_128(kept.as_bytes()), numbers }
    }
}

/// Returns the text without omitted fields and with a letter in place of each number, and the
/// numbers.
fn keep(text: &str) -> (String, [Vec<u64>; 2]) {
    let (mut kept, mut numbers) = (String::with_capacity(text.len()), [Vec::new(), Vec::new()]);
    let (mut last, mut at) = (0, 0);
    while let Some(ahead) = (text.as_bytes()[at..].iter()).position(|byte| b" {[(".contains(byte)) {
        at += ahead + 1;
        match found(&text[last..at]) {
            Some(Found::LeftOut(label)) => {
                kept.push_str(&text[last..at - label.len()]);
                at = match label.ends_with(' ') {
                    true => at + digits(&text[at..]),
                    false => after_bracket(text, at),
                };
                // A search leaves its last path in memory.
                if label == "Detour {" && text[at..].starts_with(", path: [") {
                    at = after_bracket(text, at + ", path: [".len());
                }
                last = at;
            }
            Some(Found::Number(kind)) => {
                let to = at + digits(&text[at..]);
                if let Ok(number) = text[at..to].parse() {
                    numbers[kind].push(number);
                    kept.push_str(&text[last..at]);
                    kept.push('n');
                    (last, at) = (to, to);
                }
            }
            None => {}
        }
    }
    kept.push_str(&text[last..]);
    (kept, numbers)
}

/// Returns the match at the end of a text, if there is one.
fn found(text: &str) -> Option<Found> {
    // Very few brackets and blanks end a label, and the bytes before rule out most of them.
    let tail = text.as_bytes().last_chunk()?;
    if !matches!(
        tail,
        b"s {" | b"r {" | [_, b' ', b'['] | b"me(" | [b'n' | b's' | b'r' | b'e', b':', b' ']
    ) {
        return None;
    }
    let ends = |label: &&&str| text.ends_with(**label);
    let left_out = LEFT_OUT.iter().chain(&NUMBERS_LEFT_OUT);
    if let Some(label) = left_out.into_iter().find(ends) {
        return Some(Found::LeftOut(label));
    }
    let mut kinds = NUMBERED.iter().enumerate();
    kinds.find_map(|(kind, labels)| {
        let label = labels.iter().find(ends)?;
        let is_incarnation = follows_node(&text[..text.len() - label.len()]);
        (!is_incarnation).then_some(Found::Number(kind))
    })
}

/// Returns whether a text ends with a node, which is followed by the number of its incarnation.
fn follows_node(text: &str) -> bool {
    let before = text.strip_suffix("), ");
    before.is_some_and(|text| {
        text.trim_end_matches(|c: char| c.is_ascii_digit()).ends_with("NodeId(")
    })
}

/// Returns the offset after the bracket that closes the open one.
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
    fn parts_have_one_order_of_numbers_together() {
        let part = |number: u64| Print::new(&format_args!("{{ number: {number} }}"));
        let print = |a, b| whole(&[&part(a), &part(b)]);
        assert_eq!(print(3, 17), print(4, 5));
        assert_ne!(print(3, 17), print(4, 4));
        assert_ne!(print(3, 17), print(17, 3));
    }

    #[test]
    fn the_memory_of_searches_is_left_out() {
        let print = |text: &str| keep(text).0;
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
