//! Keys without a value (`~`). A key that may be absent is then absent; any other needs a value. So
//! does every item of a list.
//!
//! The [schema](crate::schema) decides: it allows null exactly for keys that may be absent.

use super::{Document, Node};
use crate::error::Problem;
use crate::schema;
use serde_json::Value;

impl Document {
    /// Removes all keys without a value.
    ///
    /// # Errors
    /// A key that needs a value has none.
    pub(crate) fn remove_nulls(&mut self) -> Result<(), Problem> {
        let schema = schema::schema();
        let root = schema.as_value();
        Walk { root }.below(&mut self.root, &[root], "")
    }
}

fn no_value(path: String) -> Problem {
    Problem::new(path, "it has no value", "a value")
}

/// Walk through a document, along its schema.
struct Walk<'a> {
    root: &'a Value,
}

impl<'a> Walk<'a> {
    fn below(&self, node: &mut Node, schemas: &[&'a Value], path: &str) -> Result<(), Problem> {
        match node {
            Node::Scalar { .. } => Ok(()),
            Node::List(entries) => {
                // A merge key may have a list of mappings.
                let items = match path == "<<" || path.ends_with(".<<") {
                    true => schemas.to_vec(),
                    false => self.alternatives(schemas.iter().filter_map(|one| one.get("items"))),
                };
                for (n, entry) in entries.iter_mut().enumerate() {
                    let path = format!("{path}[{n}]");
                    if entry.is_null() && !items.is_empty() {
                        return Err(no_value(path));
                    }
                    self.below(entry, &items, &path)?;
                }
                Ok(())
            }
            Node::Mapping(entries) => {
                for (key, mut value) in std::mem::take(entries) {
                    let Node::Scalar { text: name, .. } = &key else {
                        entries.push((key, value));
                        continue;
                    };
                    let dot = if path.is_empty() { "" } else { "." };
                    let path = format!("{path}{dot}{name}");
                    let schemas = self.value_of(schemas, name);
                    if value.is_null() && schemas.iter().any(|one| schema::allows_null(one)) {
                        continue;
                    }
                    // An unknown key has no schema; whatever reads the document refuses it.
                    if value.is_null() && !schemas.is_empty() {
                        return Err(no_value(path));
                    }
                    self.below(&mut value, &schemas, &path)?;
                    entries.push((key, value));
                }
                Ok(())
            }
        }
    }

    /// Returns the alternatives for the value of a key.
    fn value_of(&self, schemas: &[&'a Value], name: &str) -> Vec<&'a Value> {
        let listed = |one: &&'a Value| {
            let property = one.get("properties").and_then(|all| all.get(name));
            property.or_else(|| one.get("additionalProperties").filter(|any| any.is_object()))
        };
        match name {
            "<<" => schemas.to_vec(),
            _ => self.alternatives(schemas.iter().filter_map(listed)),
        }
    }

    /// Returns these schemas, their alternatives, and what they refer to.
    fn alternatives(&self, schemas: impl Iterator<Item = &'a Value>) -> Vec<&'a Value> {
        let mut all = Vec::new();
        for schema in schemas {
            let target = schema["$ref"].as_str().and_then(|name| name.strip_prefix('#'));
            let target = target.and_then(|name| self.root.pointer(name));
            let others = ["anyOf", "oneOf"].map(|name| schema[name].as_array());
            let others = others.into_iter().flatten().flatten();
            all.extend(self.alternatives(target.into_iter().chain(others)));
            all.push(schema);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RING: &str = "name: a\ntopology: { ring: { switches: 3 } }\n";

    fn parse(rest: &str) -> Result<String, String> {
        let parsed = crate::parse("a.yaml".as_ref(), &format!("{RING}{rest}"));
        parsed.map(|fabric| format!("{fabric:?}")).map_err(|error| error.to_string())
    }

    #[test]
    fn an_optional_key_without_a_value_is_absent() {
        let stage = |rest: &str| {
            let stage = format!("{{ name: x, side: ingress, time: 1ns{rest} }}");
            format!("device: {{ head_bytes: 9, from_switch: [{stage}] }}\n")
        };
        for (with, without) in [
            ("seed: ~\nlinks:\n  rate:\n  latency: null\n", ""),
            (&stage(", time_per_byte: ~"), &stage("")),
            (&stage("").replace("{ head", "{ name: ~, head"), &stage("")),
            ("faults: [{ at: 1s, crash: s1, times: ~ }]", "faults: [{ at: 1s, crash: s1 }]"),
            (
                "overrides: [{ between: [s1, s2], rate: ~, latency: 1us }]",
                "overrides: [{ between: [s1, s2], latency: 1us }]",
            ),
        ] {
            assert_eq!(parse(with), parse(without), "{with}");
        }
        // Values that were not null are read as before, and errors have their place in the file.
        let error = parse("seed: ~\nlinks: { rate: ~, latency: 1Gbps }").unwrap_err();
        assert!(error.starts_with("a.yaml:4:28: links.latency: `1Gbps` cannot be read"), "{error}");
        let mut merged = Document::of("links: { <<: { rate: ~, queue: 20kB } }").unwrap();
        merged.remove_nulls().unwrap();
        assert_eq!(merged.text(), "{links: {<<: {queue: 20kB}}}\n");
        let mut merged = Document::of("links: { <<: [{ rate: ~ }, { queue: 20kB }] }").unwrap();
        merged.remove_nulls().unwrap();
        assert_eq!(merged.text(), "{links: {<<: [{}, {queue: 20kB}]}}\n");
        let error = parse("faults: [{ at: 1s, crsh: ~ }]").unwrap_err();
        assert!(error.contains("faults[0].crsh: unknown key `crsh`; expected one of"), "{error}");
    }

    #[test]
    fn a_kind_and_a_required_key_and_an_item_need_a_value() {
        for (rest, expected) in [
            ("faults: [{ at: 1s, crash: s1, up: ~ }]", "a.yaml:3:35: faults[0].up: "),
            ("topology: { ring: { switches: ~ } }", "a.yaml:3:31: topology.ring.switches: "),
            ("traffic:\n  - udp: ~\n    from: h1", "a.yaml:4:10: traffic[0].udp: "),
            ("topology: { ring: ~ }", "a.yaml:3:19: topology.ring: "),
            ("vlans: [{ id: 7, access: [h1, ~] }]", "a.yaml:3:31: vlans[0].access[1]: "),
            ("vlans: [{ <<: { access: [h1, ~] }, id: 7 }]", "a.yaml:3:30: vlans[0].<<.access[1]: "),
            ("vlans: [{ <<: [{ id: ~ }] }]", "a.yaml:3:22: vlans[0].<<[0].id: "),
            ("vlans: [{ <<: [{ id: 7 }, ~] }]", "a.yaml:3:27: vlans[0].<<[1]: "),
        ] {
            let text = format!(
                "name: a\n{}\n{rest}",
                if rest.starts_with("topo") { "" } else { "topology: { ring: { switches: 3 } }" }
            );
            let error = crate::parse("a.yaml".as_ref(), &text).unwrap_err().to_string();
            assert_eq!(error, format!("{expected}it has no value; expected a value"));
        }
    }

    /// Returns every path to a key of a document, its value being no null.
    fn paths(node: &Node, path: &str, out: &mut Vec<String>) {
        match node {
            Node::Scalar { .. } => {}
            Node::List(entries) => {
                let entries = entries.iter().enumerate();
                entries.for_each(|(n, entry)| paths(entry, &format!("{path}[{n}]"), out));
            }
            Node::Mapping(entries) => {
                for (key, value) in entries {
                    let Node::Scalar { text, .. } = key else { continue };
                    let dot = if path.is_empty() { "" } else { "." };
                    let path = format!("{path}{dot}{text}");
                    out.push(path.clone());
                    paths(value, &path, out);
                }
            }
        }
    }

    #[test]
    fn every_null_in_every_scenario_is_an_absent_key_or_an_error_with_its_place() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        let (mut absent, mut refused) = (0, 0);
        for entry in std::fs::read_dir(folder).unwrap() {
            let file = entry.unwrap().path();
            if file.extension().is_none_or(|extension| extension != "yaml") {
                continue;
            }
            let text = std::fs::read_to_string(&file).unwrap();
            let document = Document::of(&text).unwrap();
            let mut all = Vec::new();
            paths(&document.root, "", &mut all);
            for path in all.iter().filter(|path| !path.contains("<<")) {
                let mut with = document.clone();
                with.set(path, &Document { root: Node::null() }).unwrap();
                match with.clone().remove_nulls() {
                    // Nothing else that reads the document sees a null.
                    Ok(()) => absent += 1,
                    Err(problem) => {
                        let error = with.fabric(&file, &text).unwrap_err();
                        assert_eq!((&problem.key, error.problem.key), (path, path.clone()));
                        assert!(error.position.is_some());
                        refused += 1;
                    }
                }
            }
        }
        assert!(absent > 100 && refused > 100, "{absent} {refused}");
    }
}
