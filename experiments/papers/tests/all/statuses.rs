//! Usage errors, exit statuses by one rule, JSON keys, and errors of output: closed pipes, full
//! disks, bad paths, `-` for standard output.

use crate::common::{Folder, bad, check_usage, good, incomplete, pcap, text};
use crate::outputs::{checked, twice};
use crate::{CAM, REPRODUCE, cam, reproduce};
use std::fs::File;
use std::process::{Command, Output, Stdio};

const UNTRIED: i32 = 2;

fn capture(folder: &Folder) -> String {
    folder.file("a.pcap", pcap(&[vec![4; 60], vec![5; 60]]))
}

#[test]
fn help_version_and_usage_errors_name_the_program_as_it_was_started() {
    check_usage(REPRODUCE);
    check_usage(CAM);
}

#[test]
fn what_cannot_be_tried_ends_with_two() {
    let folder = Folder::new("papers-two");
    for output in [reproduce(&["no/such"]), cam(&[&folder.path("none.yaml")])] {
        let said = bad(&output, UNTRIED);
        assert!(!said.contains("panicked"), "{said}");
    }
}

#[test]
fn a_capture_that_is_not_there_or_is_a_folder_is_named() {
    let folder = Folder::new("papers-none");
    let none = folder.path("none");
    let output = cam(&[&none]);
    let said = bad(&output, UNTRIED);
    let head = format!("{none}: cannot be read: No such file or directory; expected ");
    assert!(said.starts_with(&head) && said.lines().count() == 1, "{said}");
    let path = folder.path("");
    let output = cam(&[&path]);
    let said = bad(&output, UNTRIED);
    let head = format!("{path}: it is a directory; expected a ");
    assert!(said.starts_with(&head) && said.lines().count() == 1, "{said}");
}

/// Returns command lines that print and exit with 0.
fn printing(folder: &Folder) -> [(&'static str, Vec<String>); 2] {
    let list = ["--list", "--out", &folder.path("out")].map(str::to_owned);
    [(CAM, vec![capture(folder)]), (REPRODUCE, list.to_vec())]
}

fn into(
    program: &str,
    words: &[String],
    stdout: impl Into<Stdio>,
    stderr: impl Into<Stdio>,
) -> Output {
    let mut command = Command::new(program);
    let child = command.args(words).stdout(stdout).stderr(stderr).spawn().unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn a_reader_that_leaves_changes_no_exit_status() {
    let folder = Folder::new("papers-pipe");
    for (program, words) in printing(&folder) {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = into(program, &words, writer.try_clone().unwrap(), Stdio::piped());
        assert_eq!(output.status.code(), Some(0), "{words:?}: {output:?}");
        assert!(!text(&output.stderr).contains("panicked"), "{words:?}: {output:?}");
        // Both outputs to one closed pipe, like `2>&1 | head`.
        let output = into(program, &words, writer.try_clone().unwrap(), writer);
        assert_eq!(output.status.code(), Some(0), "{words:?} with both: {output:?}");
    }
}

#[test]
fn a_full_disk_loses_what_did_not_fit_and_nothing_panics() {
    let folder = Folder::new("papers-full");
    let full = || File::options().write(true).open("/dev/full").unwrap();
    for (program, words) in printing(&folder) {
        let output = into(program, &words, full(), Stdio::piped());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(UNTRIED), "{words:?}: {output:?}");
        assert!(said.contains("standard output") && !said.contains("panicked"), "{said}");
        let output = into(program, &words, Stdio::piped(), full());
        assert_eq!(output.status.code(), Some(0), "{words:?} without stderr: {output:?}");
    }
    let json = folder.path("r.json");
    let output = cam(&[&capture(&folder), "--csv", "/dev/full", "--json", &json]);
    assert!(incomplete(&output).contains("cannot write /dev/full"), "{output:?}");
    assert!(!output.stdout.is_empty() && folder.read("r.json").starts_with('{'), "{output:?}");
}

#[test]
fn a_dash_is_standard_output_for_every_file() {
    let folder = Folder::new("papers-dash");
    let pcap = capture(&folder);
    for (option, begins) in [("--json", "{"), ("--csv", "addresses"), ("--plot", "<svg")] {
        let output = cam(&[&pcap, option, "-"]);
        assert!(good(&output).starts_with(begins), "{option}: {output:?}");
    }
    let both = cam(&[&pcap, "--csv", "-", "--json", "-"]);
    assert!(bad(&both, UNTRIED).contains("expected a f"), "{both:?}");
    assert!(!std::path::Path::new("-").exists(), "no file has this name");
}

#[test]
fn runs_with_one_seed_differ_in_the_machine_alone_and_have_the_keys_of_the_page() {
    let folder = Folder::new("papers-outputs");
    let frame = |n: u8| [vec![4; 12], vec![0x08, 0x00, 0x45], vec![n; 85]].concat();
    let capture = folder.file("a.pcap", pcap(&[1, 2, 1].map(frame)));
    let out = folder.path("results");
    let value = twice(REPRODUCE, &["axon/table4.2", "--out", &out, "--json", "-"]);
    checked("`axon reproduce --json`", ("Output", "papers/src/bin/axon-reproduce.rs"), value);
    let value = twice(CAM, &[&capture, "--json", "-"]);
    checked("`axon cam --json`", ("ReportJson", "axon/cam/mod.rs"), value);
    let kept = serde_json::from_str(&folder.read("results/axon/table4.2/outcome.json")).unwrap();
    checked("`axon reproduce`: `outcome.json`", ("Kept", "reproduce/store.rs"), kept);
}
