//! Fabric files and their errors on the command line; ports and files of daemons.

use crate::common::{Folder, axon, bad, good, root, scenario, text};
use crate::needs;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// Collects the names of all properties of a schema.
fn keys(schema: &Value, into: &mut BTreeSet<String>) {
    if let Some(properties) = schema["properties"].as_object() {
        into.extend(properties.keys().cloned());
    }
    match schema {
        Value::Object(all) => all.values().for_each(|value| keys(value, into)),
        Value::Array(all) => all.iter().for_each(|value| keys(value, into)),
        _ => {}
    }
}

/// Returns whether a text has a key, as written in YAML.
fn has_key(text: &str, key: &str) -> bool {
    let is_part = |before: char| before.is_alphanumeric() || before == '_';
    text.match_indices(&format!("{key}:")).any(|(at, _)| !text[..at].ends_with(is_part))
}

#[test]
fn all_keys_yaml_has_every_key_and_what_it_shows_in_comments_works() {
    let schema: Value = serde_json::from_str(good(&axon(&["schema"]))).unwrap();
    let (mut all, mut lines, mut is_shown) = (BTreeSet::new(), Vec::new(), false);
    keys(&schema, &mut all);
    let all_keys = std::fs::read_to_string(root().join("scenarios/all-keys.yaml")).unwrap();
    let missing: Vec<&String> = all.iter().filter(|key| !has_key(&all_keys, key)).collect();
    assert!(all.len() > 200 && missing.is_empty(), "all-keys.yaml lacks {missing:?}");
    // Sections in comments, up to the first line that is not indented.
    for line in all_keys.lines() {
        is_shown = ["# dcb:", "# traffic:"].contains(&line) || is_shown && line.starts_with("#   ");
        lines.push(if is_shown { &line[2..] } else { line });
    }
    let shown = lines.join("\n").replace("on_full: nack,\n    nack_queue: 128KiB", "on_full: drop");
    assert!(shown.contains("\ndcb:\n") && shown.contains("\ntraffic:\n"));
    let folder = Folder::new("files-all-keys");
    good(&axon(&["check", &folder.file("all-keys.yaml", shown)]));
}

fn check(folder: &Folder, rest: &str) -> String {
    let file = folder.file("a.yaml", format!("name: a\n{rest}\n"));
    let output = axon(&["check", &file]);
    text(&output.stderr).replace(&file, "a.yaml")
}

#[test]
fn the_ends_of_a_range_in_an_error_work() {
    let folder = Folder::new("files-ranges");
    for topology in [
        "fat_tree: {k: @}",
        "fat_tree: {k: @, hosts_per_edge: 1}",
        "flattened_butterfly: {k: 2, n: @, hosts_per_switch: 1}",
        "flattened_butterfly: {k: 10, n: @}",
        "bcube: {n: 2, k: @}",
        "bcube: {n: 8, k: @}",
        "torus: {rows: 100, cols: @}",
        "dragonfly: {a: 4, p: 2, h: 2, groups: @}",
    ] {
        let file = |number: &str| format!("topology: {{{}}}", topology.replace('@', number));
        let said = check(&folder, &file("99999"));
        let (_, range) =
            said.trim().rsplit_once(", ").or(said.trim().rsplit_once("expected ")).unwrap();
        let (least, most) = range.trim_start_matches("expected ").split_once(" to ").expect(&said);
        for end in [least, most] {
            let said = check(&folder, &file(end));
            assert!(!said.contains("expected"), "{topology}: {end} of {range}: {said}");
        }
    }
}

#[test]
fn errors_name_keys_that_were_written() {
    let folder = Folder::new("files-keys");
    let said = check(&folder, "topology: {flattened_butterfly: {k: 1000, n: 2}}");
    let default = "a.yaml:2:33: topology.flattened_butterfly: 1000 hosts at each switch, the \
                   default, are too many; expected hosts_per_switch: 0 to 100\n";
    assert_eq!(said, default);
}

#[test]
fn what_is_no_yaml_is_refused_in_our_words() {
    let folder = Folder::new("files-yaml");
    for (rest, expected) in [
        ("\ttab: x", "a tab indents this line; expected spaces, in any number"),
        ("topology: {}", "topology: nothing is chosen; expected one of the keys that"),
        ("seed: [1", "seed: the value does not fit; expected a"),
        ("topology: \"", "expected "),
        ("topology: {line: {switches: [1,2}", "expected "),
        ("dhcp: {pool: [10.0.0.2]}", "1 values do not fit; expected a list of two"),
        ("a: *b", "expected "),
        ("name: @", "expected "),
        ("? - : -", "expected "),
        ("<<: 7", "expected "),
        ("links: !!binary x", "expected "),
    ] {
        let said = check(&folder, rest);
        assert!(said.starts_with("a.yaml:") && said.contains(expected), "{rest:?}: {said}");
        for raw in ["scanning", "scalar", "enum", "mapping start", "did not find", "anchor"] {
            assert!(!said.contains(raw), "{rest:?}: {said}");
        }
    }
    folder.file("a.yaml", [0xff, 0xfe, 0]);
    let said = bad(&axon(&["check", &folder.path("a.yaml")]), 2).to_owned();
    assert!(said.contains("a.yaml: it is no text in UTF-8; expected a fabric file"), "{said}");
}

/// Returns the binary in a network namespace of its own, without any port.
fn alone(arguments: &[&str]) -> Option<Command> {
    let can = Command::new("unshare").args(["-rn", "true"]).output();
    if !can.is_ok_and(|output| output.status.success()) {
        needs::skip("the kernel allows no user namespaces here");
        return None;
    }
    let mut command = Command::new("unshare");
    command.args(["-rn", env!("CARGO_BIN_EXE_axon")]).args(arguments).stderr(Stdio::piped());
    Some(command)
}

#[test]
fn a_daemon_without_its_ports_says_what_it_waits_for() {
    let ring = scenario("ring3");
    for (arguments, said) in [
        (
            &["switch", &ring, "s1", "--insecure-lab-key"][..],
            "s1 waits for network interfaces that are not there: s1-p0, s1-p1, s1-p2, s1-p3, \
             s1-p4; give each its name, as with `ip link set eth1 name s1-p0`",
        ),
        (
            &["switch", &ring, "s2", "--insecure-lab-key", "--tap", "s2-p0"],
            ": s2-p1, s2-p2, s2-p3; give each its name",
        ),
        (
            &["controller", &ring, "--insecure-lab-key"],
            "c1 waits for network interfaces that are not there: c1-p0; ",
        ),
    ] {
        let Some(mut command) = alone(arguments) else { return };
        let mut daemon = command.spawn().unwrap();
        let mut line = String::new();
        let mut lines = BufReader::new(daemon.stderr.take().unwrap());
        // The first run warns that the key is not secret.
        for _ in 0..2 {
            lines.read_line(&mut line).unwrap();
        }
        daemon.kill().unwrap();
        daemon.wait().unwrap();
        assert!(line.contains(said), "{arguments:?}: {line}");
    }
}

#[test]
fn a_file_that_a_daemon_cannot_have_is_named() {
    let ring = scenario("ring3");
    for option in ["--pcap", "--status-socket", "--state", "--record"] {
        let Some(mut command) =
            alone(&["switch", &ring, "s1", "--insecure-lab-key", option, "/nonexistent/x"])
        else {
            return;
        };
        let output = command.output().unwrap();
        assert!(bad(&output, 2).contains("/nonexistent/x"), "{option}: {output:?}");
    }
}
