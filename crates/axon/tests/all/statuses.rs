//! Exit statuses follow one rule. Errors of output: closed pipes, full disks, bad paths, and `-`
//! for standard output.

use crate::common::{Folder, axon, bad, good, root, scenario, text};
use serde_json::Value;
use std::fs::File;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const UNTRIED: i32 = 2;
/// A test case of `axon conformance` that takes no time.
const CASE: &str = "timer-length";

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_axon"));
    command.args(arguments);
    command
}

/// Returns a fabric whose stream is cut off, so that its run fails.
fn cut(folder: &Folder) -> String {
    let text = "name: cut\ntopology: {line: {switches: 2}}\n\
                traffic: [{tcp: {}, from: h1, to: h2}]\n\
                faults: [{after_start: 1ms, down: [s1, s2]}]\n";
    folder.file("cut.yaml", text)
}

#[test]
fn the_rule_is_in_the_help_and_in_the_docs() {
    let help = axon(&["--help"]);
    let at = good(&help).find("Exit status, of every command:").expect("the rule");
    let rule = good(&help)[at..].trim_end();
    for status in
        ["\n    0  done", "\n    1  the answer is no", "\n    2  it could", "\n  130  int"]
    {
        assert!(rule.contains(status), "{rule}");
    }
    let docs = std::fs::read_to_string(root().join("docs/commands.md")).unwrap();
    assert!(docs.contains(rule), "docs/commands.md has another rule than\n{rule}");
}

#[test]
fn what_cannot_be_tried_ends_with_two_in_every_command() {
    let folder = Folder::new("statuses-two");
    let (none, ring, state) = (folder.path("none.yaml"), scenario("ring3"), folder.path("state"));
    let wrong = folder.file("wrong.yaml", "name: a\ntopology: {ring: {switches: 1}}\n");
    for arguments in [
        &["up", &none][..],
        &["up", &wrong],
        &["exec", "h1", "--", "true"],
        &["exec", "h1"],
        &["ping"],
        &["link", "s1,s2", "down"],
        &["move", "h1", "s3-p2"],
        &["status"],
        &["hosts"],
        &["flows"],
        &["path", "h1", "h2"],
        &["top", "--once"],
        &["down"],
        &["init", "ring", "/nonexistent/x"],
        &["man", "/dev/null/x"],
        &["prove", &none],
        &["prove", &wrong],
        &["prove", &ring, "--json", "/nonexistent/x"],
        &["conformance", "--iface", "nosuch0"],
        &["conformance", "--case", "no case has this"],
        &["sim", &none],
        &["sim", &wrong],
        &["sim", &ring, "--json", "/nonexistent/x"],
        &["sim", &ring, "--fork", &none],
        &["sim", &ring, "--fork", &ring, "--warm-up", "1us"],
        &["sim", &ring, "--warm-up", "1ms"],
        &["sweep", &ring, "--warm-up", "0ms", "--over", "seed=1"],
        &["sweep", &none, "--over", "seed=1"],
        &["sweep", &wrong, "--over", "seed=1"],
        &["sweep", &ring, "--over", "seed=1", "--out", "/dev/null/x"],
        &["sim", &ring, "--memory-max", "10KiB"],
        &["sim", &ring, "--pcap", "s9-p0=x"],
        &["trace", &none],
        &["replay", &none],
        &["probe", &none, "--path", "s1,s2"],
        &["probe", &ring, "--path", "s1,s9"],
        &["check", &none],
        &["switch", &none, "s1"],
        &["switch", &ring, "s9"],
        &["controller", &none],
        &["attach", &none, "a1"],
        &["attach", &ring, "a1"],
        &["agent", "--host", "t0", "--port", "nosuch0", "--rate", "1Gbps"],
    ] {
        let output = command(arguments).env("AXON_STATE_DIR", &state).output().unwrap();
        let said = bad(&output, UNTRIED);
        assert!(!said.contains("panicked"), "{arguments:?}: {said}");
    }
    for verb in ["up", "exec", "status", "down", "schema", "trace", "replay"] {
        bad(&axon(&[verb, "--no-such-option"]), UNTRIED);
    }
}

#[test]
fn an_answer_of_no_ends_with_one() {
    let folder = Folder::new("statuses-one");
    let wrong = folder.file("wrong.yaml", "name: a\ntopology: {ring: {switches: 1}}\n");
    let (deadlock, cut) = (scenario("deadlock5"), cut(&folder));
    for arguments in [
        &["check", &wrong][..],
        &["prove", &deadlock],
        &["sim", &cut],
        &["conformance", "pfc", "--case", CASE, "--plant", "wrong-quanta"],
    ] {
        let output = axon(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
    }
}

#[test]
fn what_is_interrupted_ends_with_130() {
    let mut run = command(&["trace", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    let id = run.id().to_string();
    let began = Instant::now();
    // Whether the process catches SIGINT, signal 2.
    let takes = || {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(caught.trim(), 16).unwrap() & 2 != 0
    };
    while !takes() && began.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert_eq!(run.wait().unwrap().code(), Some(130));
}

/// Returns commands that print, each with its exit status.
fn printing(folder: &Folder) -> Vec<(Vec<String>, i32)> {
    let (ring, trace) = (scenario("ring3"), folder.path("t.txt"));
    good(&axon(&["sim", &ring, "--trace", &trace]));
    let (cut, deadlock) = (cut(folder), scenario("deadlock5"));
    let commands: [(&[&str], i32); 11] = [
        (&["schema"], 0),
        (&["check", &ring], 0),
        (&["sim", &ring], 0),
        (&["sim", &ring, "--json", "-"], 0),
        (&["sim", &ring, "--trace", "-"], 0),
        (&["sim", &cut], 1),
        (&["prove", &deadlock], 1),
        (&["conformance", "--list"], 0),
        (&["conformance", "pfc", "--case", CASE], 0),
        (&["trace", &trace], 0),
        (&["probe", &ring, "--path", "s1,s2"], 0),
    ];
    let owned = |(words, code): &(&[&str], i32)| {
        (words.iter().map(|&word| word.to_owned()).collect(), *code)
    };
    commands.iter().map(owned).collect()
}

fn run(words: &[String], stdout: impl Into<Stdio>, stderr: impl Into<Stdio>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_axon"));
    let child = command.args(words).stdout(stdout).stderr(stderr).spawn().unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn a_reader_that_leaves_changes_no_exit_status() {
    let folder = Folder::new("statuses-pipe");
    for (words, code) in printing(&folder) {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = run(&words, writer.try_clone().unwrap(), Stdio::piped());
        assert_eq!(output.status.code(), Some(code), "{words:?}: {output:?}");
        assert!(!text(&output.stderr).contains("panicked"), "{words:?}: {output:?}");
        // Both outputs to one closed pipe, like `2>&1 | head`.
        let output = run(&words, writer.try_clone().unwrap(), writer);
        assert_eq!(output.status.code(), Some(code), "{words:?} with both: {output:?}");
    }
}

#[test]
fn a_full_disk_loses_what_did_not_fit_and_nothing_panics() {
    let folder = Folder::new("statuses-full");
    let full = || File::options().write(true).open("/dev/full").unwrap();
    for (words, code) in printing(&folder) {
        let output = run(&words, full(), Stdio::piped());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(UNTRIED), "{words:?}: {output:?}");
        assert!(said.contains("standard output") && !said.contains("panicked"), "{said}");
        let output = run(&words, Stdio::piped(), full());
        assert_eq!(output.status.code(), Some(code), "{words:?} without stderr: {output:?}");
    }
    // An output that cannot be written does not affect the others.
    let json = folder.path("r.json");
    let output =
        run(&["sim", &scenario("ring3"), "--json", &json].map(String::from), full(), full());
    assert_eq!(output.status.code(), Some(UNTRIED));
    let report: Value = serde_json::from_str(&folder.read("r.json")).unwrap();
    assert_eq!(report["fabric"], "ring3");
}

#[test]
fn a_result_that_does_not_fit_is_named_and_costs_none_of_the_others() {
    let folder = Folder::new("statuses-fit");
    let (ring, csv) = (scenario("ring3"), folder.path("csv"));
    let (plot, json) = (folder.path("p.svg"), folder.path("r.json"));
    let whole = axon(&["sim", &ring]);
    let counted =
        |text: &str| text.lines().find(|line| line.starts_with("drops")).map(str::to_owned);
    for (option, full) in
        [("--trace", "/dev/full"), ("--pcap", "s1-p0=/dev/full"), ("--json", "/dev/full")]
    {
        let mut words = vec!["sim", &ring, option, full, "--csv", &csv, "--plot", &plot];
        if option != "--json" {
            words.extend(["--json", &json]);
        }
        let output = axon(&words);
        assert_eq!(output.status.code(), Some(UNTRIED), "{option}: {output:?}");
        assert!(text(&output.stderr).contains("/dev/full"), "{option}: {output:?}");
        assert_eq!(counted(text(&output.stdout)), counted(good(&whole)), "the report is whole");
        for name in ["csv/flows.csv", "csv/ports.csv", "p.svg", "p-queues.svg"] {
            assert!(!folder.read(name).is_empty(), "{option}: {name}");
        }
        std::fs::remove_dir_all(&csv).unwrap();
    }
    assert!(folder.read("r.json").contains("\"stopped\": null"), "nothing has ended the run");
    let output = axon(&["prove", &ring, "--json", "/dev/full"]);
    assert_eq!(output.status.code(), Some(UNTRIED), "{output:?}");
    assert!(!output.stdout.is_empty(), "the proof is not lost");
    let output = axon(&["conformance", "pfc", "--case", CASE, "--junit", "/dev/full"]);
    assert_eq!(output.status.code(), Some(UNTRIED), "{output:?}");
    assert!(text(&output.stderr).contains("cannot write /dev/full"), "{output:?}");
}

#[test]
fn a_dash_is_standard_output_for_every_file() {
    let folder = Folder::new("statuses-dash");
    let ring = scenario("ring3");
    for (arguments, begins) in [
        (&["sim", &ring, "--json", "-"][..], "{"),
        (&["sim", &ring, "--trace", "-"], "# axon trace"),
        (&["sim", &ring, "--pcap", "s1-p0=-"], "\x0a\x0d\x0d\x0a"),
        (&["sim", &ring, "--plot", "-"], "<svg"),
        (&["prove", &ring, "--json", "-"], "{"),
        (&["conformance", "pfc", "--case", CASE, "--junit", "-"], "<?xml"),
    ] {
        let output = axon(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        let begun = output.stdout.starts_with(begins.as_bytes());
        let start = String::from_utf8_lossy(&output.stdout[..output.stdout.len().min(80)]);
        assert!(begun, "{arguments:?}: {start}");
    }
    // A trace can be piped into its filter.
    let simulated = axon(&["sim", &ring, "--trace", "-"]);
    let file = folder.file("t.txt", &simulated.stdout);
    assert!(good(&axon(&["trace", &file, "--kind", "power"])).lines().count() > 3);
    for arguments in
        [&["sim", &ring, "--trace", "-", "--json", "-"][..], &["sim", &ring, "--csv", "-"]]
    {
        assert!(bad(&axon(arguments), UNTRIED).contains("expected a f"), "{arguments:?}");
    }
    assert!(!std::path::Path::new("-").exists(), "no file has this name");
}
