//! Positions of keys in a YAML text.
//!
//! Errors of the YAML reader have a position and need a key; errors found later have a key and need
//! a position. One pass over the parser's events serves both: it keeps the path of open mappings
//! and sequences, and records where each path begins.

use crate::renamed;
use serde_saphyr::granit_parser::{Event, Parser, ScalarStyle};
use std::collections::BTreeMap;

/// Line and column, counted from 1.
pub(crate) type Position = (u64, u64);

/// The keys of one document.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    /// Position of each key, or of the value where it has none.
    by_path: BTreeMap<String, Position>,
    by_position: BTreeMap<Position, String>,
    /// Keys with an old name. Everywhere else they have their new one.
    old: Vec<OldKey>,
    /// True if a plain scalar is null.
    has_null: bool,
    /// True if the pass ended at a syntax error.
    is_cut: bool,
}

/// A key whose name was replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OldKey {
    /// Position of the key.
    pub at: Position,
    /// Path in the text.
    pub path: String,
    /// Path with the new name.
    pub new_path: String,
    /// True if the new name is present too.
    pub is_twice: bool,
}

/// An open mapping or sequence.
enum Open {
    Mapping { path: String, key: Option<String> },
    Sequence { path: String, next: usize },
}

impl Keys {
    /// Parses as much of `text` as is valid YAML; a syntax error ends the pass.
    pub(crate) fn of(text: &str) -> Keys {
        let mut keys = Keys::default();
        let mut open: Vec<Open> = Vec::new();
        for item in Parser::new_from_str(text) {
            let Ok((event, span)) = item else {
                keys.is_cut = true;
                break;
            };
            let at = (span.start.line() as u64, span.start.col() as u64 + 1);
            if let Event::Scalar(text, ScalarStyle::Plain, ..) = &event {
                keys.has_null |= is_null(text);
            }
            match event {
                Event::Scalar(name, ..) if name_key(&mut open, &name, at, &mut keys) => {}
                Event::MappingStart(..) => {
                    let path = value_path(&mut open);
                    keys.note(path.clone(), at);
                    open.push(Open::Mapping { path, key: None });
                }
                Event::SequenceStart(..) => {
                    let path = value_path(&mut open);
                    keys.note(path.clone(), at);
                    open.push(Open::Sequence { path, next: 0 });
                }
                Event::Scalar(..) | Event::Alias(..) | Event::UnresolvedAlias(..) => {
                    let path = value_path(&mut open);
                    keys.note(path, at);
                }
                Event::MappingEnd | Event::SequenceEnd => {
                    open.pop();
                }
                _ => {}
            }
        }
        keys
    }

    /// Records that `path` begins at `at`; the first path at a position is the one found by
    /// position.
    fn note(&mut self, path: String, at: Position) {
        self.by_position.entry(at).or_insert_with(|| path.clone());
        self.by_path.insert(path, at);
    }

    /// Returns whether there may be a key without a value.
    pub(crate) fn has_null(&self) -> bool {
        self.has_null
    }

    /// Returns whether the text has a YAML syntax error.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Returns the keys with an old name, in the order of the text.
    pub(crate) fn old(&self) -> &[OldKey] {
        &self.old
    }

    /// Returns every key with its position.
    pub(crate) fn paths(&self) -> impl Iterator<Item = (&str, Position)> {
        self.by_path.iter().map(|(path, &at)| (path.as_str(), at))
    }

    /// Returns the key of the last token that begins at or before a position.
    pub(crate) fn at(&self, position: Position) -> &str {
        self.by_position.range(..=position).next_back().map_or("", |(_, path)| path)
    }

    /// Returns the mapping around a position, which is its own first token or its first key.
    pub(crate) fn mapping_at(&self, position: Position) -> &str {
        let key = self.at(position);
        match key.rfind('.') {
            _ if self.by_path.get(key) == Some(&position) => key,
            Some(end) => &key[..end],
            None => "",
        }
    }

    /// Returns the position of a key's value, or that of the nearest enclosing key in the text.
    pub(crate) fn position(&self, key: &str) -> Position {
        let mut key = key;
        loop {
            if let Some(&at) = self.by_path.get(key) {
                return at;
            }
            match key.rfind(['.', '[']) {
                Some(end) => key = &key[..end],
                None => return self.by_path.get("").copied().unwrap_or((1, 1)),
            }
        }
    }
}

/// Returns whether a plain scalar is null.
pub(crate) fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

/// Takes a scalar as the next key of the innermost mapping, if a key is expected.
fn name_key(open: &mut [Open], name: &str, at: Position, keys: &mut Keys) -> bool {
    let Some(Open::Mapping { path, key }) = open.last_mut() else {
        return false;
    };
    if key.is_some() {
        return false;
    }
    let dot = if path.is_empty() { "" } else { "." };
    let full = format!("{path}{dot}{name}");
    let full = match renamed::new_path(&full) {
        Some(new_path) => {
            let is_twice = keys.by_path.contains_key(&new_path);
            keys.old.push(OldKey { at, path: full, new_path: new_path.clone(), is_twice });
            new_path
        }
        None => {
            let same = keys.old.iter_mut().filter(|old| old.new_path == full);
            same.for_each(|old| old.is_twice = true);
            full
        }
    };
    keys.note(full.clone(), at);
    *key = Some(full);
    true
}

/// Returns the path of the next value, and marks it as seen.
fn value_path(open: &mut [Open]) -> String {
    match open.last_mut() {
        None => String::new(),
        Some(Open::Mapping { path, key }) => key.take().unwrap_or_else(|| format!("{path}.?")),
        Some(Open::Sequence { path, next }) => {
            *next += 1;
            format!("{path}[{}]", *next - 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a: 1\nb:\n  c: [x, {d: 2}]\n";

    #[test]
    fn keys_and_positions_lead_to_each_other() {
        let keys = Keys::of(TEXT);
        assert_eq!(keys.position("a"), (1, 4));
        assert_eq!(keys.position("b.c[1].d"), (3, 14));
        assert_eq!(keys.at((3, 14)), "b.c[1].d");
        assert_eq!(keys.at((3, 11)), "b.c[1].d", "its key leads to it too");
        assert_eq!(keys.at((3, 7)), "b.c[0]");
    }

    #[test]
    fn a_key_that_is_not_there_stands_where_it_should_be() {
        let keys = Keys::of(TEXT);
        assert_eq!(keys.position("b.c[1].e.f"), keys.position("b.c[1]"));
        assert_eq!(keys.position("z"), (1, 1));
        assert_eq!(Keys::of("").position("z"), (1, 1));
    }

    #[test]
    fn an_old_key_stands_under_its_new_name_and_a_second_one_is_noted() {
        let keys = Keys::of("dcb:\n  turns:\n    cell: 4\n");
        assert_eq!(keys.position("dcb.scheduling.cell"), (3, 11));
        let (path, new_path) = ("dcb.turns".to_owned(), "dcb.scheduling".to_owned());
        let old = OldKey { at: (2, 3), path, new_path, is_twice: false };
        assert_eq!(keys.old(), [old]);
        for twice in ["dcb: {turns: 1, scheduling: 2}", "dcb: {scheduling: 2, turns: 1}"] {
            assert!(Keys::of(twice).old()[0].is_twice, "{twice}");
        }
    }

    #[test]
    fn broken_yaml_is_read_as_far_as_it_goes() {
        let keys = Keys::of("a: 1\nb: [1\nc: 2\n");
        assert_eq!(keys.position("a"), (1, 4));
    }
}
