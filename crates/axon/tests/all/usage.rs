//! Usage errors and their messages: the right form, one wording for a missing file, tabs, standard
//! input, a full disk; and drops apart from normal ends of frames.

use crate::common::{Folder, axon, bad, good, incomplete, text};
use serde_json::Value;
use std::fs::File;
use std::io::Write;
use std::process::{Command, Output, Stdio};

const LINE: &str = "name: a\ntopology: {line: {switches: 2}}\n";

/// Runs `axon` with a text as standard input.
fn fed(arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_axon"));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = command.spawn().unwrap();
    running.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    running.wait_with_output().unwrap()
}

#[test]
fn a_wrong_form_is_answered_with_the_right_one() {
    for (words, right) in [
        ("status --watch 2", "status --watch=2"),
        ("status --lab x --watch 2", "status --lab x --watch=2"),
        ("link s1 s2 down", "link s1,s2 down"),
        ("link --lab x s1 s2 up", "link --lab x s1,s2 up"),
        ("link s1 s2", "link s1,s2 down"),
        ("link --lab x s1 s2", "link --lab x s1,s2 down"),
    ] {
        let output = axon(&words.split(' ').collect::<Vec<_>>());
        let said = bad(&output, 2);
        assert!(said.ends_with(&format!("\nPerhaps: `axon {right}`\n")), "{words}: {said}");
    }
    let spaced = axon(&["status", "--lab", "a b", "--watch", "2"]);
    let said = bad(&spaced, 2);
    assert!(said.ends_with("\nPerhaps: `axon status --lab 'a b' --watch=2`\n"), "{said}");
    for words in [
        "status --nope 2",
        "status nope",
        "link",
        "nope",
        "sim a b",
        "link s1,s2 dwn",
        "link s1-p1 upp",
        "link s1-p1 s2",
        "link s1,s2 s3",
        "link s1,s2 down x",
        "link s1 s2,s3 down",
        "link s1-p1 s2-p1 down",
        "link s1 s2 s3",
        "link down s1",
    ] {
        let output = axon(&words.split(' ').collect::<Vec<_>>());
        let said = bad(&output, 2);
        assert!(!said.contains("Perhaps") && said.contains("--help"), "{words}: {said}");
    }
}

#[test]
fn a_file_that_is_not_there_is_answered_alike_in_every_command() {
    let folder = Folder::new("usage-none");
    let none = folder.path("none");
    for (command, more) in [
        ("check", &[][..]),
        ("sim", &[]),
        ("sweep", &["--over", "seed=1"]),
        ("prove", &[]),
        ("up", &[]),
        ("switch", &["s1"]),
        ("controller", &[]),
        ("attach", &["a1"]),
        ("rekey", &[]),
        ("probe", &["--path", "s1,s2"]),
        ("trace", &[]),
        ("replay", &[]),
    ] {
        let output = axon(&[&[command, &none], more].concat());
        let said = bad(&output, 2);
        let head = format!("{none}: cannot be read: No such file or directory; expected ");
        assert!(said.starts_with(&head) && said.lines().count() == 1, "{command}: {said}");
    }
    for arguments in [&["init", "ring", "none/a.yaml"][..], &["key", "none/a"], &["man", "/proc/x"]]
    {
        let output = Command::new(env!("CARGO_BIN_EXE_axon"))
            .args(arguments)
            .current_dir(&folder.0)
            .output();
        let said = bad(output.as_ref().unwrap(), 2).to_owned();
        assert!(said.contains(arguments.last().unwrap()), "{said}");
        assert!(!said.contains("os error"), "{said}");
    }
}

#[test]
fn a_folder_is_no_trace() {
    let folder = Folder::new("usage-folder");
    let path = folder.path("");
    let output = axon(&["trace", &path]);
    let said = bad(&output, 2);
    let head = format!("{path}: it is a directory; expected a ");
    assert!(said.starts_with(&head) && said.lines().count() == 1, "{said}");
}

#[test]
fn a_tab_that_indents_is_named_with_its_line_and_column() {
    let folder = Folder::new("usage-tab");
    for (text, at) in [
        ("name: a\ntopology:\n\tring: {switches: 3}\n", "3:1: topology"),
        ("name: a\ntopology:\n  ring:\n  \tswitches: 3\n", "4:3: topology"),
        ("name: a\ntopology: {ring: {switches: 3}}\nlinks:\n  rate: 1Gbps\n\tloss_ppm: 1\n", "5:1"),
        ("\tname: a\ntopology: {ring: {switches: 3}}\n", "1:1"),
    ] {
        let file = folder.file("a.yaml", text);
        let output = axon(&["check", &file]);
        let said = bad(&output, 1);
        assert!(said.starts_with(&format!("{file}:{at}")), "{said}");
        assert!(
            said.ends_with("a tab indents this line; expected spaces, in any number\n"),
            "{said}"
        );
    }
    // Errors in valid YAML are reported, with tabs or without.
    for (text, error) in [
        (
            "name: a\ntopology: {ring: {swiches: 3,\n\thosts_per_switch: 1}}\n",
            "2:19: topology.ring.swiches: unknown key `swiches`; expected one of switches, ",
        ),
        ("name: a\nnope: 1\n\t\n", "2:1: nope: unknown key `nope`; expected one of name, "),
        ("name: a\nnope: 1\n\t# none\n", "2:1: nope: unknown key `nope`; expected one of name, "),
        // This YAML is invalid further down.
        ("name: a\nnope: 1\n\t\nb: [\n", "2:1: nope: unknown key `nope`; expected one of name, "),
        (
            "name: a\nnope: 1\n\t# none\nb: [\n",
            "2:1: nope: unknown key `nope`; expected one of name, ",
        ),
    ] {
        let file = folder.file("a.yaml", text);
        let output = axon(&["check", &file]);
        let said = bad(&output, 1);
        assert!(said.starts_with(&format!("{file}:{error}")), "{said}");
    }
    let file = folder.file("a.yaml", "name:\ta\ntopology: {ring:\t{switches: 3}}\n");
    good(&axon(&["check", &file]));
}

#[test]
fn a_fabric_file_may_come_from_standard_input() {
    assert!(good(&fed(&["check", "-"], LINE)).starts_with("a: 2 switches, 2 hosts, "));
    assert!(good(&fed(&["sim", "-"], LINE)).starts_with("a, seed 1: 2 of 2 hosts"));
    let output = fed(&["check", "-"], "name: a\nnope: 1\n");
    let said = bad(&output, 1);
    assert!(said.starts_with("standard input:2:1: "), "{said}");
    for command in ["check", "sim", "prove", "probe"] {
        let help = axon(&[command, "--help"]);
        assert!(good(&help).contains("; `-` is standard input"), "{command}");
    }
    for arguments in
        [&["up", "-"][..], &["switch", "-", "s1"], &["controller", "-"], &["rekey", "-"]]
    {
        let output = axon(arguments);
        let said = bad(&output, 2);
        assert_eq!(
            said,
            "-: a daemon reads its fabric file by name, not from standard input; expected a path\n",
            "{arguments:?}"
        );
    }
}

#[test]
fn help_that_cannot_be_written_ends_with_two_and_a_word() {
    for arguments in [&["--help"][..], &["sim", "--help"], &["help", "prove"], &["--version"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_axon"));
        command.args(arguments).stdout(File::options().write(true).open("/dev/full").unwrap());
        let output = command.stderr(Stdio::piped()).output().unwrap();
        let said = incomplete(&output);
        assert_eq!(said, "cannot write standard output: No space left on device\n");
        good(&axon(arguments));
    }
}

#[test]
fn drops_are_apart_from_what_ends_in_normal_operation() {
    let folder = Folder::new("usage-drops");
    let cut = folder.file(
        "cut.yaml",
        format!(
            "{LINE}traffic: [{{ udp: {{ rate: 20Mbps }}, from: h1, to: h2, stop: 20ms }}]\n\
             faults: [{{ after_start: 5ms, down: [s1, s2] }}]\n"
        ),
    );
    let (json, csv) = (folder.path("r.json"), folder.path("csv"));
    let output = axon(&["sim", &cut, "--json", &json, "--csv", &csv]);
    let report: Value = serde_json::from_str(&folder.read("r.json")).unwrap();
    let keys = |of: &str| {
        let counts = report[of].as_object().unwrap();
        counts.keys().map(String::as_str).collect::<Vec<_>>()
    };
    let ordinary = ["consumed", "mac_control", "port_unknown"];
    assert!(keys("ended").iter().all(|reason| ordinary.contains(reason)), "{report}");
    assert!(!keys("drops").iter().any(|reason| ordinary.contains(reason)), "{report}");
    assert!(report["ended"]["consumed"].as_u64().unwrap() > 0);
    // Frames for the cut link are dropped, and reported with a reason of their own.
    assert!(report["drops"]["port_down"].as_u64().unwrap() > 0, "{report}");
    let drops = text(&output.stdout).lines().find(|line| line.starts_with("drops: ")).unwrap();
    assert!(drops.contains("port_down ") && !drops.contains("port_unknown"), "{drops}");
    let reasons = |table: &str| {
        let rows = folder.read(table);
        let rows = rows.lines().skip(1).map(|row| row.split(',').nth(1).unwrap().to_owned());
        rows.collect::<Vec<String>>()
    };
    let (dropped, ended) = (reasons("csv/drops.csv"), reasons("csv/ended.csv"));
    assert!(dropped.contains(&"port_down".to_owned()), "{dropped:?}");
    assert!(!dropped.iter().any(|reason| ordinary.contains(&reason.as_str())), "{dropped:?}");
    assert!(!ended.is_empty(), "{ended:?}");
    assert!(ended.iter().all(|reason| ordinary.contains(&reason.as_str())), "{ended:?}");
}

#[test]
fn a_daemon_checks_its_name_and_keys_before_it_warns_or_waits() {
    let folder = Folder::new("usage-daemon");
    let whole = folder.file("whole.yaml", format!("{LINE}key_file: fabric.key\ntraffic: []\n"));
    let part = folder.file("part.yaml", format!("{LINE}key_file: s2.key\n"));
    good(&axon(&["key", &folder.path("fabric.key")]));
    good(&axon(&["key", &folder.path("s2.key"), "--switch", "s2", "--fabric", &whole]));
    for (arguments, wanted) in [
        (&["switch", &whole, "s9"][..], "fabric a has no switch s9; it has s1 s2"),
        (&["switch", &part, "s1"], "as `axon key FILE --switch s1 --fabric FABRIC` writes them"),
        (&["controller", &part], "expected the master key, as `axon key FILE` makes it"),
    ] {
        let output = axon(arguments);
        let said = bad(&output, 2);
        assert!(said.contains(wanted) && said.lines().count() == 1, "{said}");
        assert!(!said.contains("warning") && !said.contains("waits"), "{said}");
    }
}
