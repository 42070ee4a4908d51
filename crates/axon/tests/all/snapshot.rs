//! `axon snapshot` and continued runs, from the command line.

use crate::common::{Folder, axon, bad, good, scenario};
use serde_json::Value;
use std::process::{Command, Stdio};

/// A ring with datagrams, a connection, and room for faults.
const RING: &str = "name: ring\ntopology: {ring: {switches: 4}}\nlinks: {rate: 1Gbps}\ntraffic:\n  \
                    - {udp: {rate: 100Mbps}, pattern: permutation, stop: 30ms}\n  \
                    - {tcp: {bytes: 1MB}, pairs: [[h1, h3]]}\nfaults:\n";
const FAULTS: &str =
    "  - {after_start: 2ms, down: [s1, s2]}\n  - {after_start: 12ms, up: [s1, s2]}\n";

/// Returns the report of `axon sim --json` without its machine-dependent part.
fn report(arguments: &[&str]) -> Value {
    let output = axon(&[&["sim"], arguments, &["--json", "-"]].concat());
    let mut report: Value = serde_json::from_str(good(&output)).unwrap();
    report.as_object_mut().unwrap().remove("machine").expect("it stands by itself");
    report
}

#[test]
fn what_goes_on_from_a_snapshot_is_the_run_that_was_not_interrupted() {
    let folder = Folder::new("snapshot-same");
    let file = folder.file("ring.yaml", RING.to_owned() + FAULTS);
    let saved = folder.path("ring.snapshot");
    let whole = report(&[&file, "--seed", "7", "--router", "ecmp"]);
    for at in ["0ms", "1ms", "6ms"] {
        let options = ["--out", &saved, "--at", at, "--seed", "7", "--router", "ecmp"];
        let said = good(&axon(&[&["snapshot", &file][..], &options].concat())).to_owned();
        assert!(said.starts_with("ring: ready at ") && said.contains(&saved), "{said}");
        assert_eq!(report(&[&file, "--from", &saved]), whole, "{at}");
        assert_eq!(report(&[&file, "--from", &saved, "--threads", "2"]), whole, "{at}");
    }
    // A continued run with other faults.
    let later = RING.to_owned() + &FAULTS.replace("12ms", "20ms");
    let file = folder.file("later.yaml", later);
    let whole = report(&[&file, "--seed", "7", "--router", "ecmp"]);
    assert_eq!(report(&[&file, "--from", &saved]), whole);
    let names: Vec<_> =
        std::fs::read_dir(&folder.0).unwrap().map(|one| one.unwrap().file_name()).collect();
    assert_eq!(names.len(), 3, "nothing else is left: {names:?}");
}

#[test]
fn every_scenario_goes_on_as_if_nothing_had_happened() {
    let folder = Folder::new("snapshot-scenarios");
    let saved = folder.path("saved");
    for name in
        ["agent-balancer", "agent-cache", "deadlock5", "dcell", "line3", "program-tags", "bond"]
    {
        let file = scenario(name);
        let hash = |arguments: &[&str]| -> Value {
            let options = [arguments, &["--json", "-", "--duration", "30ms"]].concat();
            let output = axon(&[&["sim", &file][..], &options].concat());
            let report: Value = serde_json::from_slice(&output.stdout).unwrap();
            [&report["trace_hash"], &report["events"]].into_iter().cloned().collect()
        };
        let output = axon(&["snapshot", &file, "--out", &saved]);
        good(&output);
        assert_eq!(hash(&["--from", &saved]), hash(&[]), "{name}");
    }
}

#[test]
fn a_sweep_goes_on_from_one_snapshot_with_each_of_its_faults() {
    let folder = Folder::new("snapshot-sweep");
    let file = folder.file("ring.yaml", RING.to_owned() + FAULTS);
    let (saved, out) = (folder.path("saved"), folder.path("out"));
    good(&axon(&["snapshot", &file, "--out", &saved, "--at", "4ms"]));
    let over = ["--over", "faults.1.after_start=8ms,14ms", "--out", &out];
    let said = good(&axon(&[&["sweep", &file, "--from", &saved][..], &over].concat())).to_owned();
    assert!(said.starts_with("ring: 2 runs, 2 passed\n"), "{said}");
    let text = folder.read("out/runs.csv");
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let names = reader.headers().unwrap().clone();
    let at = names.iter().position(|name| name == "trace_hash").unwrap();
    for (row, when) in reader.records().zip(["8ms", "14ms"]) {
        let file = folder.file("one.yaml", RING.to_owned() + &FAULTS.replace("12ms", when));
        assert_eq!(row.unwrap()[at], *report(&[&file])["trace_hash"].as_str().unwrap(), "{when}");
    }
    let said = bad(&axon(&["sweep", &file, "--from", &saved, "--over", "seed=1,2"]), 2).to_owned();
    assert!(said.contains("--over seed") && said.contains("expected a key of faults"), "{said}");
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let folder = Folder::new("snapshot-refused");
    let file = folder.file("ring.yaml", RING.to_owned() + FAULTS);
    let saved = folder.path("saved");
    good(&axon(&["snapshot", &file, "--out", &saved, "--at", "4ms"]));
    let refused = |text: String, wanted: &str| {
        let other = folder.file("other.yaml", text);
        let said = bad(&axon(&["sim", &other, "--from", &saved]), 2).to_owned();
        assert!(said.contains(wanted), "{said}");
    };
    let text = RING.to_owned() + FAULTS;
    refused(text.replace("100Mbps", "200Mbps"), "`traffic[0].udp.rate` differs");
    refused(text.replace("switches: 4", "switches: 5"), "`topology.ring.switches` differs");
    refused(text.replace("2ms, down", "3ms, down"), "others than had happened");
    refused(text.clone() + "  - {after_start: 9ms, rate: 1Mbps, between: [s2, s3]}\n", "rates");
    let with = |arguments: &[&str]| {
        bad(&axon(&[&["sim", &file, "--from", &saved], arguments].concat()), 2).to_owned()
    };
    assert!(with(&["--seed", "1"]).contains("--seed"));
    assert!(with(&["--duration", "3ms"]).contains("has run for 4ms"));
    let late = axon(&["snapshot", &file, "--out", &folder.path("late"), "--at", "10s"]);
    assert!(bad(&late, 2).contains("all traffic is done"));
    assert!(!folder.0.join("late").exists());

    let mut bytes = std::fs::read(&saved).unwrap();
    let last = bytes.len() - 100;
    bytes[last] ^= 1;
    folder.file("saved", &bytes);
    assert!(bad(&axon(&["sim", &file, "--from", &saved]), 2).contains("damaged"));
    folder.file("saved", "no snapshot");
    assert!(bad(&axon(&["sim", &file, "--from", &saved]), 2).contains("it is no snapshot"));
}

#[test]
fn a_snapshot_that_is_replaced_stays_what_it_is_for_who_has_it() {
    let folder = Folder::new("snapshot-replaced");
    let file = folder.file("ring.yaml", RING.to_owned() + FAULTS);
    let saved = folder.path("saved");
    good(&axon(&["snapshot", &file, "--out", &saved]));
    let before = std::fs::read(&saved).unwrap();
    let reader = std::fs::File::open(&saved).unwrap();
    good(&axon(&["snapshot", &file, "--out", &saved, "--at", "3ms"]));
    let mut kept = Vec::new();
    std::io::Read::read_to_end(&mut &reader, &mut kept).unwrap();
    assert!(kept == before && std::fs::read(&saved).unwrap() != before);
}

#[test]
fn the_fabric_file_may_come_from_standard_input() {
    let folder = Folder::new("snapshot-stdin");
    let text = RING.to_owned() + FAULTS;
    let file = folder.file("ring.yaml", &text);
    let saved = folder.path("saved");
    let input = || Stdio::from(std::fs::File::open(&file).unwrap());
    let axon = || Command::new(env!("CARGO_BIN_EXE_axon"));
    let made = axon().args(["snapshot", "-", "--out", &saved]).stdin(input()).output().unwrap();
    good(&made);
    let ran = axon().args(["sim", "-", "--from", &saved, "--json", "-"]).stdin(input()).output();
    let ran: Value = serde_json::from_str(good(&ran.unwrap())).unwrap();
    assert_eq!(ran["trace_hash"], report(&[&file])["trace_hash"]);
}
