//! One notion has one name, the field's own: words of a private language are refused.
//!
//! Identifiers are split into their words, so `was_told`, `Told` and `isTold` are found as well as
//! a comment or a message that has the word. A pattern of several words is found in text only, also
//! where a comment or a string breaks the line between them.

use super::{assert_none, files};

/// Private words, in lower case and as whole words, each with its replacement.
const WORDS: &[(&str, &str)] = &[
    ("bank", "ports"),
    ("banks", "ports"),
    ("bodies", "nodes, runtimes"),
    ("by turns", "alternately"),
    ("card", "NIC"),
    ("cards", "NICs"),
    ("circle", "cycle"),
    ("circles", "cycles"),
    ("cnm reading", "CNM interpretation"),
    ("desk", "command, request"),
    ("doubt", "ambiguity"),
    ("doubts", "ambiguities"),
    ("equal turns", "equal shares"),
    ("every body", "every runtime"),
    ("forgive", "cancel, clear"),
    ("forgiven", "cancelled, cleared"),
    ("forgives", "cancels, clears"),
    ("forgiving", "cancelling, clearing"),
    ("glance", "prefetch hint"),
    ("glances", "prefetch hints"),
    ("harness", "adapter"),
    ("hear", "receive"),
    ("hears", "receives"),
    ("heed", "act on, honour"),
    ("heeded", "acted on, honoured"),
    ("heeds", "acts on, honours"),
    ("honest stop", "pause caused by congestion"),
    ("honest stops", "pauses caused by congestion"),
    ("in turns", "alternately"),
    ("jack", "port, cable end"),
    ("jacks", "ports, cable ends"),
    ("life", "incarnation"),
    ("lives", "incarnations; runs"),
    ("marks of a queue", "watermarks, thresholds of a queue"),
    ("marks of queues", "watermarks, thresholds of queues"),
    ("nobody minds", "what happens, and why that is harmless"),
    ("notice", "congestion notification; see, detect"),
    ("notices", "congestion notifications; sees, detects"),
    ("obey", "act on, honour"),
    ("obeyed", "honoured"),
    ("obeying", "honouring"),
    ("obeys", "honours"),
    ("one voice", "what all advertise"),
    ("plug", "port, cable end"),
    ("plugs", "ports, cable ends"),
    ("readings", "interpretations"),
    ("speech", "LLDP agent state"),
    ("stand still", "be blocked, deadlocked"),
    ("standing still", "blocked, deadlocked"),
    ("stands still", "is blocked, deadlocked"),
    ("standstill", "deadlock"),
    ("stood still", "was blocked, paused"),
    ("take turns", "alternate, share, are scheduled"),
    ("takes turns", "alternates, shares, is scheduled"),
    ("taking turns", "alternating, sharing"),
    ("tells", "configures, advertises, reports, sends"),
    ("throttle", "shaper"),
    ("throttled", "shaped"),
    ("throttles", "shapers"),
    ("told", "configured, advertised, received, reported"),
    ("under way", "in flight"),
    ("valve", "shaper"),
    ("valves", "shapers"),
    ("voice", "LLDP agent state"),
    ("voices", "LLDP agent states"),
    ("wish", "command, request"),
    ("wished", "commanded, requested"),
    ("wishes", "commands, requests"),
];

/// First words of a doc comment that keep the reader waiting for its subject.
const RIDDLES: &[&str] =
    &["How", "That", "What", "When", "Where", "Whether", "Which", "Who", "Why"];

/// Places that keep a word: where a file's path begins, the word, and the reason.
const ALLOWED: &[(&str, &str, &str)] = &[
    ("crates/tidy/tests/tidy/words.rs", "", "this list"),
    ("crates/plot/src/plot.rs", "circle", "a shape of plotters"),
    ("crates/fabric/src/faults.rs", "plug", "a fault: a verb of the fabric file, beside `unplug`"),
    ("crates/fabric/src/file/faults.rs", "plug", "the same, where it is read"),
    ("crates/sim/tests/all/domain.rs", "plug", "the same, in a test's fabric file"),
    ("crates/fabric/tests/errors/", "plug", "the same, in errors that list all faults"),
    ("scenarios/fabric.schema.json", "plug", "the same, in the schema"),
    ("scenarios/all-keys.yaml", "plug", "the same, in an example"),
    ("experiments/papers/src/hagen/fig6_1.rs", "take turns", "the text of rows that were run"),
    ("docs/papers.md", "take turns", "the same, on the page of the rows"),
    ("crates/fabric/src/renamed.rs", "in turns", "old names of keys, one after the other"),
];

#[test]
fn words_are_those_of_the_field() {
    let mut problems = Vec::new();
    for (name, text) in files() {
        problems.extend(private_words_of_path(&name));
        if is_ours(&name) {
            problems.extend(private_words(&name, &text));
        }
    }
    assert_none(&problems);
}

#[test]
fn the_list_of_exceptions_names_files_that_there_are() {
    let names: Vec<String> = files().into_iter().map(|(name, _)| name).collect();
    let listed = ALLOWED.iter().map(|(place, ..)| place);
    let unknown = listed.filter(|place| !names.iter().any(|name| name.starts_with(**place)));
    let problems: Vec<String> = unknown.map(|place| format!("{place}: no such file")).collect();
    assert_none(&problems);
}

/// True if a file holds text of ours for readers.
fn is_ours(name: &str) -> bool {
    let kinds = [".rs", ".md", ".yaml", ".txt", ".py", ".lua", ".cc", "schema.json", "Makefile"];
    // Scripts have no ending.
    kinds.iter().any(|kind| name.ends_with(kind)) || name.starts_with("tools/")
}

/// The private words in the path of a file.
fn private_words_of_path(name: &str) -> Vec<String> {
    let found = private_words(name, name).into_iter();
    found.map(|problem| format!("{problem} (in the path)")).collect()
}

/// A word in lower case, and its line, counted from 1.
type Word = (String, usize);

/// Returns the private words of a file, as lines for a reader.
fn private_words(name: &str, text: &str) -> Vec<String> {
    let allowed = |word: &str| {
        let fits = |place: &str, kept: &str| name.starts_with(place) && ["", word].contains(&kept);
        ALLOWED.iter().any(|(place, kept, _)| fits(place, kept))
    };
    let words = words(text);
    let mut found = Vec::new();
    for (at, (_, line)) in words.iter().enumerate() {
        for (pattern, instead) in WORDS {
            let mut ahead = words[at..].iter().map(|(word, _)| word.as_str());
            let is_here = pattern.split(' ').all(|part| ahead.next() == Some(part));
            if is_here && !allowed(pattern) {
                found.push(format!("{name}:{line}: `{pattern}`: say {instead}"));
            }
        }
    }
    let mut before = "";
    for (number, line) in text.lines().map(str::trim_start).enumerate() {
        let doc = line.strip_prefix("/// ").or(line.strip_prefix("//! "));
        let first = doc.and_then(|doc| doc.split(' ').next());
        let begins = first.is_some_and(|_| !before.starts_with(&line[..3]));
        before = line;
        if let Some(word) = first.filter(|word| begins && RIDDLES.contains(word)) {
            let at = number + 1;
            found.push(format!("{name}:{at}: `{word}` begins a comment: name the thing first"));
        }
    }
    found
}

/// Returns the words of a text: runs of letters, split where a capital follows a small letter.
/// Characters between two words are skipped, so a sentence continues in the next line of a comment.
fn words(text: &str) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let mut last = ' ';
        for c in line.chars() {
            let continues = last.is_alphabetic() && !(last.is_lowercase() && c.is_uppercase());
            if c.is_alphabetic() {
                match words.last_mut() {
                    Some((word, _)) if continues => word.extend(c.to_lowercase()),
                    _ => words.push((c.to_lowercase().collect(), number + 1)),
                }
            }
            last = c;
        }
    }
    words
}

#[test]
fn a_private_word_is_found_in_whatever_form_it_is_written() {
    let found = |text: &str| private_words("a.rs", text);
    for text in [
        "let was_told = 1;",
        "struct Told;",
        "fn isTold() {}",
        "/// Neighbours are told.",
        "\"it obeys PFC\"",
        "told: 5%",
        "// what is under\n// way",
        "    /// Which one.\n    pub b: u8,",
        "//! What is sent.\n//! And why.",
    ] {
        assert_eq!(found(text).len(), 1, "{text}");
    }
    let line = "a.rs:2: `under way`: say in flight";
    assert_eq!(found("fn f() {}\n// Under way."), [line]);
    for text in ["let untold = 1;", "discarded", "unplugged", "under the way", "wildcard"] {
        assert!(found(text).is_empty(), "{text}");
    }
}

#[test]
fn a_private_word_is_found_in_the_path_of_a_file_and_in_files_of_all_kinds() {
    let path = "crates/fabric/src/dcb/notice.rs";
    let found = private_words_of_path(path);
    let instead = "congestion notification; see, detect";
    assert_eq!(found, [format!("{path}:1: `notice`: say {instead} (in the path)")]);
    assert!(private_words_of_path("crates/fabric/src/dcb/congestion.rs").is_empty());
    for name in
        ["Makefile", "tools/fuzz", "vectors/read.py", "experiments/peers/ns3/fat_tree.cc", "a.lua"]
    {
        assert!(is_ours(name), "{name}");
    }
    assert!(!is_ours("Cargo.lock"));
}

#[test]
fn a_word_is_allowed_in_its_place_only() {
    let plug = "plug: h1";
    assert!(private_words("scenarios/all-keys.yaml", plug).is_empty());
    assert_eq!(private_words("scenarios/line3.yaml", plug).len(), 1);
    assert_eq!(private_words("scenarios/all-keys.yaml", "told").len(), 1);
}
