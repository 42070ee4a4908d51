//! `axon reproduce` and `axon cam` as a user types them.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Quick, and needs no privilege.
const ID: &str = "axon/table4.2";

/// A directory that goes when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let name = format!("axon-reproduce-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn axon(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_axon")).args(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn the_list_names_every_experiment_and_says_that_none_was_run() {
    let folder = Folder::new("list");
    let output = axon(&["reproduce", "--list", "--out", &folder.path("results")]);
    assert!(output.status.success(), "{output:?}");
    let text = stdout(&output);
    assert!(text.lines().count() >= 8, "{text}");
    assert!(text.lines().all(|line| line.starts_with("axon/") && line.contains("not run")));
}

#[test]
fn an_experiment_shows_theirs_and_ours_and_leaves_json_csv_plot_and_page() {
    let folder = Folder::new("run");
    let (out, json) = (folder.path("results"), folder.path("result.json"));
    let output = axon(&["reproduce", ID, "--out", &out, "--json", &json]);
    assert!(output.status.success(), "{output:?}");
    let text = stdout(&output);
    for part in ["paper", "ours", "bound", "520", "768", "passed"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let value: Value = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!((&value["id"], &value["pass"]), (&ID.into(), &true.into()));
    let rows = value["rows"].as_array().unwrap();
    assert!(!rows.is_empty());
    for row in rows {
        for key in ["name", "paper", "ours", "unit", "bound"] {
            assert!(!row[key].is_null(), "{key}: {row}");
        }
        assert_eq!(row["pass"], true, "{row}");
    }
    let list = stdout(&axon(&["reproduce", "--list", "--out", &out]));
    assert!(list.lines().any(|line| line.contains(ID) && line.contains("passed")), "{list}");

    let page = folder.path("papers.md");
    let output = axon(&["reproduce", "--out", &out, "--write-docs", &page]);
    assert!(output.status.success(), "{output:?}");
    let text = std::fs::read_to_string(&page).unwrap();
    let links: Vec<&str> =
        text.split("](").skip(1).filter_map(|part| part.split(')').next()).collect();
    let plots: Vec<&&str> = links.iter().filter(|link| link.ends_with(".svg")).collect();
    assert!(!plots.is_empty(), "{text}");
    for plot in plots {
        assert!(Path::new(&folder.path(plot)).exists(), "{plot}");
    }
}

#[test]
fn wrong_ids_and_missing_ones_are_told_apart() {
    let output = axon(&["reproduce", "axon/table42"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = stderr(&output);
    assert!(text.contains("axon/table42") && text.contains(ID), "{text}");
    assert_eq!(axon(&["reproduce"]).status.code(), Some(2));
}

#[test]
fn cam_reads_a_capture_and_refuses_what_is_none() {
    let folder = Folder::new("cam");
    let file = folder.path("a.pcap");
    let mut bytes = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    bytes.extend([0xff, 0xff, 0, 0, 1, 0, 0, 0]);
    for host in [1, 2, 1, 1] {
        bytes.extend([0, 0, 0, 0, 0, 0, 0, 0, 34, 0, 0, 0, 34, 0, 0, 0]);
        bytes.extend([2, 0, 0, 0, 0, host, 2, 0, 0, 0, 0, 9, 8, 0, 0x45]);
        bytes.extend([0; 15]);
        bytes.extend([10, 0, 0, host]);
    }
    std::fs::write(&file, &bytes).unwrap();
    let (csv, plot) = (folder.path("cam.csv"), folder.path("cam.svg"));
    let output = axon(&["cam", &file, "--json", "-", "--csv", &csv, "--plot", &plot]);
    assert!(output.status.success(), "{output:?}");
    let value: Value = serde_json::from_str(&stdout(&output)).unwrap();
    for kind in ["ip", "mac"] {
        assert_eq!((&value[kind]["packets"], &value[kind]["addresses"]), (&4.into(), &2.into()));
        // With one entry the last packet alone hits.
        assert_eq!(value[kind]["curve"][0]["hit_rate_lru"], 0.25, "{value}");
    }
    assert!(std::fs::read_to_string(csv).unwrap().starts_with("addresses,entries,"));
    assert!(std::fs::read_to_string(plot).unwrap().contains("entries"));
    std::fs::write(&file, "nothing of the kind").unwrap();
    let output = axon(&["cam", &file]);
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    assert!(text.contains("a.pcap") && text.contains("expected a pcap or pcapng"), "{text}");
}
