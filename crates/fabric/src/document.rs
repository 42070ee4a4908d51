//! A fabric file as an editable document: values can be replaced before the file is read.
//!
//! The parser's events become a tree of scalars, lists and mappings. A scalar keeps its text, so
//! that `007`, `1e-12` or a key of 64 digits is read later unchanged. [`Document::text`] writes the
//! tree as YAML on one line: a plain scalar stays plain where it could be anything but a string,
//! and everything else is quoted. Comments are dropped; aliases are expanded.

mod difference;
mod nulls;

use crate::error::Problem;
use crate::keys;
use serde_saphyr::granit_parser::{Event, Parser, ScalarStyle};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Maximum nesting depth of lists and mappings.
const DEPTH_MAX: usize = 64;
/// Maximum number of scalars, lists and mappings that aliases expand to in total.
const ALIASED_MAX: usize = 1 << 20;
/// Keys whose values name a file that the fabric file needs.
const FILE_KEYS: [&str; 3] = ["file", "key_file", "python"];

/// A YAML document that can be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    root: Node,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Scalar { text: String, is_plain: bool },
    List(Vec<Node>),
    Mapping(Vec<(Node, Node)>),
}

impl Document {
    /// Reads a document.
    ///
    /// # Errors
    /// It is not YAML, has tags, or is deeper than any fabric file.
    pub fn of(text: &str) -> Result<Document, Problem> {
        Reader::default().read(text)
    }

    /// Sets the value at `path`: `links.rate`, `traffic.0.udp.rate`, `traffic[0].udp.rate`. Missing
    /// keys are added, even unknown ones: [`Document::fabric`] refuses those.
    ///
    /// # Errors
    /// The path leads into a list that is too short, or into a value that has no keys.
    pub fn set(&mut self, path: &str, value: &Document) -> Result<(), Problem> {
        let (mut at, mut done) = (&mut self.root, String::new());
        for name in segments(path)? {
            at = at.below(&name, &done)?;
            done = match name.parse::<usize>() {
                Ok(index) => format!("{done}[{index}]"),
                Err(_) if done.is_empty() => name,
                Err(_) => format!("{done}.{name}"),
            };
        }
        *at = value.root.clone();
        Ok(())
    }

    /// Returns the document as YAML, on one line.
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.root.write(&mut text);
        text.push('\n');
        text
    }

    /// Returns the files that the document refers to, as written in it.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        self.root.files(&mut files);
        files
    }
}

impl Node {
    fn null() -> Node {
        Node::Scalar { text: String::new(), is_plain: true }
    }

    /// Returns whether the node is the value of a key without one.
    fn is_null(&self) -> bool {
        matches!(self, Node::Scalar { text, is_plain: true } if keys::is_null(text))
    }

    fn is_key(&self, name: &str) -> bool {
        matches!(self, Node::Scalar { text, .. } if text == name)
    }

    /// Returns the value of a key or of an index; a missing key is added. `done` is the path of
    /// this value.
    fn below(&mut self, name: &str, done: &str) -> Result<&mut Node, Problem> {
        if self.is_null() {
            *self = Node::Mapping(Vec::new());
        }
        match self {
            Node::Scalar { text, .. } => Err(Problem::new(
                done,
                format!("it is `{text}`, which has no `{name}`"),
                "a path to a key, through mappings and lists",
            )),
            Node::List(entries) => {
                let length = entries.len();
                let found = name.parse().ok().and_then(|index: usize| entries.get_mut(index));
                found.ok_or_else(|| {
                    let noun = if length == 1 { "entry" } else { "entries" };
                    let expected = match length {
                        0 => "a path to a key that is there".to_owned(),
                        1 => "0".to_owned(),
                        _ => format!("0 to {}", length - 1),
                    };
                    let what = format!("it is a list of {length} {noun}, without `{name}`");
                    Problem::new(done, what, expected)
                })
            }
            Node::Mapping(entries) => {
                if let Some(at) = entries.iter().position(|(key, _)| key.is_key(name)) {
                    return Ok(&mut entries[at].1);
                }
                if entries.iter().any(|(key, _)| key.is_key("<<")) {
                    let what = format!("`{name}` may come from the merge key `<<`");
                    return Err(Problem::new(done, what, "a key that stands in the file itself"));
                }
                let key = Node::Scalar { text: name.to_owned(), is_plain: true };
                entries.push((key, Node::null()));
                let last = entries.len() - 1;
                Ok(&mut entries[last].1)
            }
        }
    }

    fn write(&self, out: &mut String) {
        match self {
            Node::Scalar { text, is_plain } => out.push_str(&scalar(text, *is_plain)),
            Node::List(entries) => {
                out.push('[');
                for (index, entry) in entries.iter().enumerate() {
                    out.push_str(if index > 0 { ", " } else { "" });
                    entry.write(out);
                }
                out.push(']');
            }
            Node::Mapping(entries) => {
                out.push('{');
                for (index, (key, value)) in entries.iter().enumerate() {
                    out.push_str(if index > 0 { ", " } else { "" });
                    key.write(out);
                    out.push_str(": ");
                    value.write(out);
                }
                out.push('}');
            }
        }
    }

    fn files(&self, out: &mut Vec<PathBuf>) {
        match self {
            Node::Scalar { .. } => {}
            Node::List(entries) => entries.iter().for_each(|entry| entry.files(out)),
            Node::Mapping(entries) => {
                for (key, value) in entries {
                    let names_file = FILE_KEYS.iter().any(|name| key.is_key(name));
                    if let (true, Node::Scalar { text, .. }) = (names_file, value) {
                        out.push(text.into());
                    }
                    value.files(out);
                }
            }
        }
    }

    /// Returns the number of scalars, lists and mappings in the node, itself included.
    fn size(&self) -> usize {
        match self {
            Node::Scalar { .. } => 1,
            Node::List(entries) => 1 + entries.iter().map(Node::size).sum::<usize>(),
            Node::Mapping(entries) => {
                1 + entries.iter().map(|(key, value)| key.size() + value.size()).sum::<usize>()
            }
        }
    }
}

/// Writes a scalar between brackets. It stays plain if it was plain and could be a number, a truth
/// value or null, which have only these characters; otherwise it is quoted as in JSON, whose
/// escapes YAML accepts.
fn scalar(text: &str, is_plain: bool) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_./+-".contains(c);
    let is_begin = |c: char| c.is_ascii_alphanumeric() || ".+-".contains(c);
    let has_letter = text.contains(|c: char| c.is_ascii_alphanumeric());
    match text {
        "" | "~" if is_plain => "~".into(),
        "<<" if is_plain => "<<".into(),
        _ if is_plain && has_letter && text.starts_with(is_begin) && text.chars().all(is_word) => {
            text.into()
        }
        _ => serde_json::Value::from(text).to_string(),
    }
}

/// Splits a path into keys and indices: `a.0.b` and `a[0].b` are equal.
fn segments(path: &str) -> Result<Vec<String>, Problem> {
    let dotted = path.replace('[', ".").replace("].", ".");
    let dotted = dotted.strip_suffix(']').unwrap_or(&dotted);
    let names: Vec<String> = dotted.split('.').map(str::to_owned).collect();
    if names.iter().any(|name| name.is_empty() || name.contains(']')) {
        let expected = "a path such as links.rate or traffic.0.udp.rate";
        return Err(Problem::new("", format!("`{path}` is no path of a key"), expected));
    }
    Ok(names)
}

/// Builder of the tree from the parser's events.
#[derive(Default)]
struct Reader {
    /// Open lists and mappings, each with its anchor; for a mapping, also the key whose value comes
    /// next.
    open: Vec<(Node, usize, Option<Node>)>,
    anchors: BTreeMap<usize, Node>,
    aliased: usize,
    root: Option<Node>,
}

impl Reader {
    fn read(mut self, text: &str) -> Result<Document, Problem> {
        let refused = |what: &str| Problem::new("", what, "a fabric file in YAML");
        for item in Parser::new_from_str(text) {
            let (event, _) = item.map_err(|_| refused("this is no YAML"))?;
            match event {
                Event::Scalar(_, _, _, Some(_))
                | Event::SequenceStart(_, _, Some(_))
                | Event::MappingStart(_, _, Some(_)) => {
                    return Err(Problem::new("", "there is a YAML tag", "a file without tags"));
                }
                Event::Scalar(text, style, anchor, None) => {
                    let is_plain = style == ScalarStyle::Plain;
                    self.take(Node::Scalar { text: text.into_owned(), is_plain }, anchor);
                }
                Event::SequenceStart(_, anchor, None) => {
                    self.open.push((Node::List(Vec::new()), anchor, None));
                }
                Event::MappingStart(_, anchor, None) => {
                    self.open.push((Node::Mapping(Vec::new()), anchor, None));
                }
                Event::SequenceEnd | Event::MappingEnd => {
                    let (node, anchor, _) =
                        self.open.pop().ok_or_else(|| refused("a bracket is left over"))?;
                    self.take(node, anchor);
                }
                Event::Alias(anchor) => {
                    let node = self.anchors.get(&anchor);
                    let node = node.ok_or_else(|| refused("an alias without its anchor"))?.clone();
                    self.aliased += node.size();
                    self.take(node, 0);
                }
                Event::DocumentStart(..) if self.root.is_some() => {
                    return Err(refused("there are several documents"));
                }
                _ => {}
            }
            if self.open.len() > DEPTH_MAX || self.aliased > ALIASED_MAX {
                return Err(refused("it is too deep, or its aliases stand for too much"));
            }
        }
        Ok(Document { root: self.root.unwrap_or_else(Node::null) })
    }

    /// Appends the next complete value.
    fn take(&mut self, node: Node, anchor: usize) {
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some((Node::Mapping(entries), _, key)) => match key.take() {
                None => *key = Some(node),
                Some(key) => entries.push((key, node)),
            },
            Some((Node::List(entries), ..)) => entries.push(node),
            Some((Node::Scalar { .. }, ..)) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::LoadError;
    use crate::load;
    use crate::model::Fabric;
    use axon_wire::Rate;
    use std::path::Path;

    const FILE: &str = "name: a # what it is\ntopology: {line: {switches: 2}}\ntraffic:\n  \
                        - {udp: {rate: 3Mbps}, from: h1, to: h2, stop: 2ms}\nlinks:\n";

    fn set(path: &str, value: &str) -> Result<Document, Problem> {
        let mut document = Document::of(FILE).unwrap();
        document.set(path, &Document::of(value).unwrap())?;
        Ok(document)
    }

    fn fabric(path: &str, value: &str) -> Result<Fabric, LoadError> {
        set(path, value).unwrap().fabric(Path::new("a.yaml"), FILE)
    }

    #[test]
    fn a_value_is_put_where_its_path_leads_whether_the_key_is_there_or_not() {
        for path in ["traffic.0.udp.rate", "traffic[0].udp.rate"] {
            assert!(set(path, "7Mbps").unwrap().text().contains("{rate: 7Mbps}"), "{path}");
        }
        assert_eq!(fabric("links.rate", "10Gbps").unwrap().links[0].wire.rate, Rate::gbps(10));
        assert_eq!(fabric("topology.line.switches", "5").unwrap().switches.len(), 5);
        assert_eq!(fabric("topology", "{ring: {switches: 3}}").unwrap().links.len(), 3);
    }

    #[test]
    fn what_is_wrong_has_the_place_of_its_key_in_the_file() {
        let wrong = |path, value| fabric(path, value).unwrap_err().to_string();
        let said = wrong("traffic.0.udp.rate", "3Mb");
        assert!(said.starts_with("a.yaml:4:18: traffic[0].udp.rate: `3Mb` cannot"), "{said}");
        let said = wrong("traffic.0.udp.rat", "3Mbps");
        assert!(said.contains("unknown key `rat`; expected one of rate, payload"), "{said}");
        let said = wrong("lnks.rate", "1Gbps");
        assert!(said.starts_with("a.yaml:1:1: lnks: unknown key `lnks`; expected one"), "{said}");
    }

    #[test]
    fn a_path_that_leads_nowhere_is_refused_with_what_is_there() {
        for (path, right) in [
            ("traffic.1.udp", "traffic: it is a list of 1 entry, without `1`; expected 0"),
            ("name.x", "name: it is `a`, which has no `x`; expected a path to a key"),
            ("links..rate", "`links..rate` is no path of a key; expected a path such as"),
            ("", "`` is no path of a key"),
        ] {
            let said = set(path, "1").unwrap_err().to_string();
            assert!(said.starts_with(right), "{path}: {said}");
        }
    }

    #[test]
    fn scalars_are_read_as_they_were() {
        let text = "[0x10, '0x10', 007, ~, , 1e-12, -5, .5, \"a\\n\", 'it''s', a b, true, -, µ]";
        let document = Document::of(&text.replace(", -, ", ", '-', ").replace(", ,", ", ~,"));
        let text = document.unwrap().text();
        assert_eq!(
            text,
            "[0x10, \"0x10\", 007, ~, ~, 1e-12, -5, .5, \"a\\n\", \"it's\", \"a b\", true, \
             \"-\", \"µ\"]\n"
        );
        assert_eq!(Document::of(&text).unwrap().text(), text);
    }

    #[test]
    fn aliases_are_what_they_stand_for_and_tags_are_refused() {
        let document = Document::of("a: &x {b: 1}\nc: *x\n").unwrap();
        assert_eq!(document.text(), "{a: {b: 1}, c: {b: 1}}\n");
        assert!(Document::of("a: !!str 1").is_err());
        assert!(Document::of("a: [1").is_err());
        let mut bomb = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1]\n".to_owned();
        for n in 1..20 {
            let alias = format!("*a{}", n - 1);
            bomb += &format!("a{n}: &a{n} [{}]\n", [alias.as_str(); 8].join(", "));
        }
        assert!(Document::of(&bomb).is_err());
    }

    #[test]
    fn a_merge_key_stays_and_is_not_hidden_by_a_key_that_may_be_in_it() {
        let text = "a: &x {b: {c: 1}}\nd: {<<: *x, e: 1}\n";
        let mut document = Document::of(text).unwrap();
        assert!(document.text().contains("{<<: {b: {c: 1}}, e: 1}"));
        let said = document.set("d.b.c", &Document::of("2").unwrap()).unwrap_err().to_string();
        assert!(said.contains("merge key"), "{said}");
    }

    #[test]
    fn the_files_that_a_file_names_are_found() {
        let text = "key_file: k\ntopology: {graph: {file: g}}\ntraffic: [{replay: {file: c}}]\n";
        let files = Document::of(text).unwrap().files();
        assert_eq!(files, ["k", "g", "c"].map(PathBuf::from));
    }

    #[test]
    fn every_scenario_is_the_same_fabric_as_a_document() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        let mut count = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "yaml") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let fabric = load::parse(&path, &text).unwrap();
            let again = Document::of(&text).unwrap().fabric(&path, &text).unwrap();
            assert_eq!(format!("{fabric:?}"), format!("{again:?}"), "{}", path.display());
            count += 1;
        }
        assert!(count > 10, "{count} scenarios");
    }
}
