//! `axon sim --fork` and `axon sweep --warm-up`: runs that go on from one warmed-up simulation.

use crate::common::{Folder, axon, bad, good, scenario};
use serde_json::Value;

/// A ring with datagrams, a connection, and room for faults.
const RING: &str = "name: ring\ntopology: {ring: {switches: 4}}\nlinks: {rate: 1Gbps}\ntraffic:\n  \
                    - {udp: {rate: 100Mbps}, pattern: permutation, stop: 30ms}\n  \
                    - {tcp: {bytes: 1MB}, pairs: [[h1, h3]]}\nfaults:\n";
const FAULTS: &str =
    "  - {after_start: 2ms, down: [s1, s2]}\n  - {after_start: 12ms, up: [s1, s2]}\n";

/// Returns the report of `axon sim` as text. Of its last line, about this machine, only the hash of
/// the trace counts.
fn text(arguments: &[&str]) -> Vec<String> {
    let output = axon(&[&["sim"], arguments].concat());
    let lines = std::str::from_utf8(&output.stdout).unwrap().lines();
    let hash = |line: &str| line.split_once(", trace ").map(|(_, hash)| hash.to_owned());
    let lines: Vec<String> = lines.map(|line| hash(line).unwrap_or(line.to_owned())).collect();
    assert!(!lines.is_empty(), "{output:?}");
    lines
}

/// Returns the trace hash of a whole run.
fn trace_hash(file: &str) -> String {
    let report: Value = serde_json::from_str(good(&axon(&["sim", file, "--json", "-"]))).unwrap();
    report["trace_hash"].as_str().unwrap().to_owned()
}

#[test]
fn a_run_that_goes_on_is_the_run_that_was_not_interrupted() {
    let folder = Folder::new("warm-up-same");
    let file = folder.file("ring.yaml", RING.to_owned() + FAULTS);
    let later = folder.file("later.yaml", RING.to_owned() + &FAULTS.replace("12ms", "20ms"));
    let same = ["--seed", "7", "--router", "ecmp"];
    let expected = |file: &str, threads: &str| {
        let options = [&[file][..], &same, &["--threads", threads]].concat();
        [vec![file.to_owned()], text(&options)].concat()
    };
    for (warm_up, threads) in [("0ms", "1"), ("1ms", "1"), ("6ms", "1"), ("6ms", "2")] {
        let options = ["--warm-up", warm_up, "--fork", &file, "--fork", &later];
        let first = [file.as_str()];
        let both = text(&[&first[..], &options, &same, &["--threads", threads]].concat());
        let alone = [expected(&file, threads), expected(&later, threads)].concat();
        assert_eq!(both, alone, "{warm_up}, {threads} threads");
    }
}

#[test]
fn a_sweep_goes_on_from_one_warm_up_with_each_of_its_faults() {
    let folder = Folder::new("warm-up-sweep");
    let file = folder.file("ring.yaml", RING.to_owned() + FAULTS);
    let out = folder.path("out");
    let over = ["--over", "faults.1.after_start=8ms,14ms,20ms", "--out", &out];
    let sweep = ["sweep", &file, "--warm-up", "4ms", "--jobs", "2"];
    let said = good(&axon(&[&sweep[..], &over].concat())).to_owned();
    assert!(said.starts_with("ring: 3 runs, 3 passed\n"), "{said}");
    let table = folder.read("out/runs.csv");
    let mut reader = csv::Reader::from_reader(table.as_bytes());
    let names = reader.headers().unwrap().clone();
    let at = names.iter().position(|name| name == "trace_hash").unwrap();
    for (row, when) in reader.records().zip(["8ms", "14ms", "20ms"]) {
        let file = folder.file("one.yaml", RING.to_owned() + &FAULTS.replace("12ms", when));
        assert_eq!(row.unwrap()[at], trace_hash(&file), "{when}");
    }
    // Nothing is left to run, so nothing is warmed up.
    let said = axon(&[&sweep[..], &over].concat());
    assert!(good(&said).starts_with("ring: 3 runs, 3 passed\n"));
    let other = [&["sweep", &file, "--warm-up", "5ms"][..], &over].concat();
    assert!(bad(&axon(&other), 2).contains("--warm-up was 4ms, and is 5ms now"));
}

#[test]
fn every_scenario_goes_on_as_if_nothing_had_happened() {
    for name in
        ["agent-balancer", "agent-cache", "deadlock5", "dcell", "line3", "program-tags", "bond"]
    {
        let file = scenario(name);
        let alone = [vec![file.clone()], text(&[&file, "--duration", "30ms"])].concat();
        assert_eq!(text(&[&file, "--duration", "30ms", "--fork", &file]), alone, "{name}");
    }
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let folder = Folder::new("warm-up-refused");
    let file = folder.file("ring.yaml", RING.to_owned() + FAULTS);
    let text = RING.to_owned() + FAULTS;
    let refused = |text: String, wanted: &str| {
        let other = folder.file("other.yaml", text);
        let said = bad(&axon(&["sim", &file, "--warm-up", "4ms", "--fork", &other]), 2).to_owned();
        assert!(said.contains(wanted), "{said}");
    };
    refused(text.replace("100Mbps", "200Mbps"), "`traffic[0].udp.rate` differs");
    refused(text.replace("switches: 4", "switches: 5"), "`topology.ring.switches` differs");
    refused(text.replace("2ms, down", "3ms, down"), "differ from those of");
    refused(text.clone() + "  - {after_start: 9ms, rate: 1Mbps, between: [s2, s3]}\n", "rates");
    let with = |arguments: &[&str]| {
        bad(&axon(&[&["sim", &file, "--fork", &file], arguments].concat()), 2).to_owned()
    };
    assert!(with(&["--json", "x"]).contains("--json"));
    assert!(with(&["--warm-up", "4ms", "--duration", "3ms"]).contains("has taken 4ms"));
    assert!(with(&["--warm-up", "10s"]).contains("all traffic is done"));
    assert!(with(&["--warm-up", "1500us"]).contains("whole milliseconds"));
    let seeds = ["sweep", &file, "--warm-up", "0ms", "--over", "seed=1,2"];
    let said = bad(&axon(&seeds), 2).to_owned();
    assert!(said.contains("--over seed") && said.contains("expected a key of faults"), "{said}");
}
