//! A lab without a controller: real hosts, and switches that decide by the fabric file.
//!
//! The lab starts its parts from the program that calls it, so this test is a program of its own
//! and not run by libtest.

use crate::support::{Test, state_root};
use axon_lab::alarms::alarms;
use axon_lab::view::directory::Directory;
use axon_lab::view::path::path;
use axon_lab::{Lab, UpOptions};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

pub const TESTS: &[Test] = &[(
    "hosts_reach_each_other_along_stated_paths_and_after_a_cut",
    hosts_reach_each_other_along_stated_paths_and_after_a_cut,
)];

/// Four switches in a ring, a host at each; h1 and h2 reach each other the long way round.
fn fabric_file() -> PathBuf {
    let text = "name: test-static
topology: { ring: { switches: 4, hosts_per_switch: 1 } }
links: { rate: 100Mbps }
controller: { mode: static }
paths: [{ from: h1, to: h2, via: [s1, s4, s3, s2], backup: [s1, s2] }]
";
    let root = state_root();
    let path = root.with_extension("yaml");
    std::fs::write(&path, text).expect("a file");
    path
}

/// Names of the switches that frames from one host to another pass.
fn way(lab: &Lab, from: usize, to: usize) -> Vec<String> {
    let (fabric, status) = (lab.fabric().expect("a file"), lab.status().expect("answers"));
    let found = path(&Directory::new(&fabric, &status), from, to);
    assert!(found.has_route && found.arrives, "{found:?}");
    let switch = |port: &String| port.split('-').next().unwrap_or_default().to_owned();
    found.steps.iter().map(|step| switch(&step.egress)).collect()
}

fn all_pairs(lab: &Lab) {
    let fabric = lab.fabric().expect("a file");
    let pairs: Vec<(usize, usize)> =
        (0..4).flat_map(|a| (0..4).map(move |b| (a, b))).filter(|(a, b)| a != b).collect();
    let pings = lab.ping(&fabric, &pairs, Duration::from_secs(5), || ()).expect("they ping");
    let lost: Vec<_> = pings.iter().filter(|ping| ping.rtt_ns.is_none()).collect();
    assert!(lost.is_empty(), "{lost:?}");
}

fn hosts_reach_each_other_along_stated_paths_and_after_a_cut() {
    let (lab, report) =
        axon_lab::up(&fabric_file(), &UpOptions::default(), |_| ()).expect("it is up");
    assert!(report.missing.is_empty() && report.unknown.is_empty(), "{report:?}");
    let status = lab.status().expect("answers");
    assert_eq!(status.len(), 4, "no controller");
    assert_eq!(alarms(&status), "");
    all_pairs(&lab);
    assert_eq!(way(&lab, 0, 1), ["s1", "s4", "s3", "s2"]);
    assert_eq!(way(&lab, 1, 0), ["s2", "s3", "s4", "s1"]);
    // 1,000 requests, one each 2 ms, while a link of their path is cut.
    let target = axon_fabric::addresses::of_hosts(&lab.fabric().expect("a file"))[1]
        .expect("an address")
        .to_string();
    let line = format!("ping -n -q -c 1000 -i 0.002 {target}");
    let mut ping: Command = lab.command("h1", &["sh", "-c", &line]).expect("a command");
    let ping = ping.stdout(Stdio::piped()).spawn().expect("it starts");
    lab.set_link("s3,s4", false).expect("a link");
    let output = ping.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let sum = text.lines().find(|line| line.contains("transmitted"));
    println!("cut: {}", sum.unwrap_or_default());
    assert!(output.status.success(), "{text}");
    all_pairs(&lab);
    assert_eq!(way(&lab, 0, 1), ["s1", "s2"], "the stated backup");
    axon_lab::down(Some(lab.name())).expect("it ends");
}
