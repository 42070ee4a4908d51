//! Tests of `axon-bench` from its command line. No test asserts times, since machines differ.

#[path = "../../../crates/cli/tests/common/mod.rs"]
mod common;
#[path = "../../../crates/wire/tests/needs/mod.rs"]
mod needs;

use common::{Folder, bad, check_usage, good, run};
use serde_json::Value;
use std::process::Command;
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_axon-bench");

/// Returns whether network namespaces can be created, which needs root.
fn is_possible() -> bool {
    nix::unistd::geteuid().is_root() && needs::lab()
}

fn command(folder: &Folder, arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(arguments);
    command.env("AXON_STATE_DIR", folder.0.join("state")).env("TMPDIR", &folder.0);
    command
}

#[test]
fn the_smallest_run_measures_bridges_and_a_data_plane_and_removes_both() {
    if !is_possible() {
        return;
    }
    let folder = Folder::new("bench");
    let (json, plot) = (folder.path("r.json"), folder.path("r.svg"));
    let only = "bridges,redirect,full,ping,packets,intact";
    let options = ["--quick", "--switches", "1", "--only", only, "--json", &json, "--plot", &plot];
    let output = command(&folder, &options).output().unwrap();
    let table = good(&output);
    assert!(table.contains("In multiples of bridges") && table.contains("x1 ping, mean, us"));
    let report: Value = serde_json::from_str(&folder.read("r.json")).unwrap();
    assert_eq!((&report["format"], &report["rounds"]), (&2.into(), &1.into()));
    let figures = report["figures"].as_array().unwrap();
    for subject in ["bridges", "redirect", "full"] {
        for quantity in ["ping_mean", "flood_p99", "packets_peak", "overload_delivered"] {
            let found = figures
                .iter()
                .find(|one| one["subject"] == subject && one["quantity"] == quantity)
                .unwrap_or_else(|| panic!("no {quantity} of {subject}: {report}"));
            assert!(found["median"].as_f64().unwrap() > 0.0, "{found}");
            assert_eq!(
                (&found["switches"], found["samples"].as_array().unwrap().len()),
                (&1.into(), 1)
            );
        }
        for quantity in ["intact_tcp_ipv6", "intact_udp_gso"] {
            let right = |one: &&Value| one["subject"] == subject && one["quantity"] == quantity;
            assert_eq!(
                figures.iter().find(right).unwrap()["median"],
                1.0,
                "{quantity} of {subject}"
            );
        }
    }
    assert_eq!(report["failed"], Value::Array(Vec::new()));
    for svg in ["r.svg", "r-packets.svg"] {
        assert!(folder.read(svg).contains("full"), "{svg}");
    }
    assert!(is_clean(&folder), "labs and files are gone");
}

/// Returns whether no lab and no folder of a run remains.
fn is_clean(folder: &Folder) -> bool {
    let names = std::fs::read_dir(&folder.0).unwrap().flatten();
    let labs = std::fs::read_dir(folder.0.join("state")).into_iter().flatten().flatten();
    let left = names.filter(|name| name.file_name().to_string_lossy().starts_with("axon-bench-"));
    left.count() + labs.count() == 0
}

#[test]
fn an_interrupted_run_removes_what_it_has_begun() {
    if !is_possible() {
        return;
    }
    let folder = Folder::new("bench-interrupt");
    let mut run = command(&folder, &["--only", "full,ping"]);
    let mut run = run.stderr(std::process::Stdio::null()).spawn().unwrap();
    while !folder.0.join("state/bench-full").exists() {
        assert!(run.try_wait().unwrap().is_none(), "it ended before a lab was there");
        std::thread::sleep(Duration::from_millis(5));
    }
    let id = run.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert_eq!(run.wait().unwrap().code(), Some(130));
    assert!(is_clean(&folder));
}

#[test]
fn what_cannot_be_measured_is_refused_before_anything_is_built() {
    for arguments in [
        &["--only", "tpc"][..],
        &["--rounds", "0"],
        &["--switches", "0"],
        &["--switches", "one"],
        &["--json", "/nonexistent/x"],
        &["--json", "-", "--plot", "-"],
    ] {
        bad(&run(PROGRAM, arguments), 2);
    }
}

#[test]
fn help_version_and_usage_errors_name_the_program_as_it_was_started() {
    check_usage(PROGRAM);
}
