//! Tests of `axon-reproduce` and `axon-cam` from their command lines.

use crate::common::{Folder, bad, good, pcap, root, text};
use crate::{REPRODUCE, cam, reproduce};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// A quick reproduction that needs no privilege.
const ID: &str = "axon/table4.2";

#[test]
fn the_list_names_every_experiment_and_says_that_none_was_run() {
    let folder = Folder::new("reproduce-list");
    let output = reproduce(&["--list", "--out", &folder.path("results")]);
    let text = good(&output);
    assert!(text.lines().count() >= 8, "{text}");
    let (total, rows) =
        text.lines().collect::<Vec<_>>().split_last().map(|(a, b)| (*a, b.to_vec())).unwrap();
    let of_a_paper = |line: &&str| {
        ["axon/", "hagen/", "payload/", "serverswitch/"].iter().any(|paper| line.starts_with(paper))
    };
    assert!(rows.iter().all(of_a_paper), "{text}");
    let count = |state: &str| rows.iter().filter(|line| line.contains(state)).count();
    let not_run = count("  not run  ");
    assert_eq!(not_run, rows.len(), "{text}");
    assert_eq!(total, format!("{not_run} tables and figures: {not_run} not run"));
}

#[test]
fn an_experiment_shows_theirs_and_ours_and_leaves_json_csv_plot_and_page() {
    let folder = Folder::new("reproduce-run");
    let (out, json) = (folder.path("results"), folder.path("result.json"));
    let output = reproduce(&[ID, "--out", &out, "--json", &json]);
    let text = good(&output);
    // Rows on gates are measured where the device is built.
    let is_built = axon_rtl::Model::load(axon_wire::HopWidth::Eight).is_ok();
    let (said, verdict) = match is_built {
        true => ("axon/table4.2: held", "held"),
        false => ("axon/table4.2: by construction", "by_construction"),
    };
    for part in ["paper", "ours", "bound", "520", "768", said] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let all: Value = serde_json::from_str(&folder.read("result.json")).unwrap();
    let value = &all["results"][0];
    assert_eq!((&value["id"], &value["pass"]), (&ID.into(), &true.into()));
    assert_eq!(value["verdict"], verdict);
    assert_eq!(all["machine"]["date"].as_str().map(str::len), Some(10), "{all}");
    assert!(!value["commit"].as_str().unwrap().is_empty(), "{value}");
    let rows = value["rows"].as_array().unwrap();
    assert!(!rows.is_empty());
    for row in rows {
        for key in ["name", "paper", "ours", "unit", "bound"] {
            assert!(!row[key].is_null(), "{key}: {row}");
        }
        assert_eq!(row["pass"], true, "{row}");
    }
    let list = reproduce(&["--list", "--out", &out]);
    let list = good(&list);
    assert!(
        list.lines().any(|line| line.contains(ID) && line.contains(&verdict.replace('_', " "))),
        "{list}"
    );

    let page = folder.path("papers.md");
    let output = reproduce(&["--out", &out, "--write-docs", &page]);
    good(&output);
    let text = folder.read("papers.md");
    let links: Vec<&str> =
        text.split("](").skip(1).filter_map(|part| part.split(')').next()).collect();
    let plots: Vec<&&str> = links.iter().filter(|link| link.ends_with(".svg")).collect();
    assert!(!plots.is_empty(), "{text}");
    for plot in plots {
        assert!(Path::new(&folder.path(plot)).exists(), "{plot}");
    }
}

/// Rows that may miss a bound. The second has missed one since it has bounds on both sides.
const CAN_MISS: [&str; 2] = ["hagen/fig7-7", "axon/fig4.10"];

/// With the program under test given, `make` builds nothing.
#[test]
fn make_reproduce_writes_verdict_commit_and_day_of_each_row_and_fails_if_one_misses() {
    let folder = Folder::new("reproduce-make");
    let mut make = Command::new("make");
    // The test may itself run in `make test`.
    make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL").env_remove("MFLAGS");
    make.arg("-C").arg(root()).args(["--no-print-directory", "reproduce"]);
    make.arg(format!("REPRODUCE={REPRODUCE}"));
    make.args([format!("ROWS={}", CAN_MISS.join(" ")), format!("OUT={}", folder.path("results"))]);
    let output = make.output().unwrap();
    let text = text(&output.stdout);
    let (mut all_good, mut judged) = (true, 0);
    for id in CAN_MISS {
        let outcome = folder.read(&format!("results/{id}/outcome.json"));
        let outcome: Value = serde_json::from_str(&outcome).unwrap();
        let commit = outcome["commit"].as_str().unwrap();
        let plain = commit.trim_end_matches("-dirty");
        let is_commit = plain.len() == 12 && plain.bytes().all(|byte| byte.is_ascii_hexdigit());
        assert!(is_commit || commit == "unknown", "{commit}");
        let date = outcome["machine"]["date"].as_str().unwrap();
        let date: Vec<usize> = date.split('-').map(str::len).collect();
        assert_eq!(date, [4, 2, 2]);
        let rows = outcome["rows"].as_array().unwrap();
        let missed = rows.iter().filter(|row| row["pass"] == false).count();
        judged += rows.iter().filter(|row| row["kind"] != "construction").count();
        let (verdict, said) = match (missed, outcome["verdict"].as_str().unwrap()) {
            (0, verdict @ "held") => (verdict, "held"),
            (1.., verdict @ "missed") => (verdict, "MISSED"),
            (1.., verdict @ "not_reproduced") => (verdict, "NOT REPRODUCED"),
            (missed, verdict) => panic!("{id}: {missed} rows missed, and it is {verdict}"),
        };
        assert!(text.contains(&format!("{id}: {said}\n")), "{id} is {verdict}: {text}");
        all_good &= verdict == "held";
    }
    assert!(judged >= 6, "{judged} rows that can miss");
    assert_eq!(output.status.success(), all_good, "{text}");
}

#[test]
fn a_wrong_id_is_answered_with_those_that_there_are() {
    let output = reproduce(&["axon/table42"]);
    let text = bad(&output, 2);
    assert!(text.contains("axon/table42") && text.contains(ID), "{text}");
    bad(&reproduce(&[]), 2);
}

#[test]
fn results_that_have_nowhere_to_go_are_refused_before_the_run() {
    let folder = Folder::new("reproduce-nowhere");
    let out = folder.path("results");
    for (option, said) in [
        ("--out", "cannot make /dev/null/here/axon/table4.2: Not a directory"),
        ("--json", "cannot write /dev/null/here: Not a directory"),
        ("--write-docs", "cannot write /dev/null/here: Not a directory"),
    ] {
        let mut arguments = vec![ID, option, "/dev/null/here"];
        if option != "--out" {
            arguments.extend(["--out", &out]);
        }
        let output = reproduce(&arguments);
        let refusal = bad(&output, 2);
        assert!(refusal.starts_with(said) && refusal.lines().count() == 1, "{refusal}");
    }
    // An earlier result remains if the run does not complete.
    let json = folder.file("result.json", "earlier");
    bad(&reproduce(&[ID, "--out", "/dev/null/here", "--json", &json]), 2);
    assert_eq!(folder.read("result.json"), "earlier");
    assert!(!folder.0.join("results").exists(), "nothing is left behind");
}

#[test]
fn cam_reads_a_capture_and_refuses_what_is_none() {
    let folder = Folder::new("reproduce-cam");
    let frame = |host: u8| {
        let mut frame = vec![2, 0, 0, 0, 0, host, 2, 0, 0, 0, 0, 9, 8, 0, 0x45];
        frame.extend([0; 15]);
        frame.extend([10, 0, 0, host]);
        frame
    };
    let file = folder.file("a.pcap", pcap(&[1, 2, 1, 1].map(frame)));
    let (csv, plot) = (folder.path("cam.csv"), folder.path("cam.svg"));
    let output = cam(&[&file, "--json", "-", "--csv", &csv, "--plot", &plot]);
    let value: Value = serde_json::from_str(good(&output)).unwrap();
    for kind in ["ip", "mac"] {
        assert_eq!((&value[kind]["packets"], &value[kind]["addresses"]), (&4.into(), &2.into()));
        // With one entry only the last packet hits.
        assert_eq!(value[kind]["curve"][0]["hit_rate_lru"], 0.25, "{value}");
    }
    assert!(folder.read("cam.csv").starts_with("addresses,entries,"));
    let format: Value = serde_json::from_str(&folder.read("cam-format.json")).unwrap();
    assert_eq!(format["tables"]["cam.csv"][1], "entries", "{format}");
    assert!(folder.read("cam.svg").contains("entries"));
    folder.file("a.pcap", "nothing of the kind");
    let output = cam(&[&file]);
    let text = bad(&output, 2);
    assert!(text.contains("a.pcap") && text.contains("expected a pcap or pcapng"), "{text}");
}
