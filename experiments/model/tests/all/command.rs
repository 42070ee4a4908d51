//! Tests of `axon-model` from its command line.

use crate::common::{check_usage, run};
use crate::outputs::{checked, twice};
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_axon-model");

fn said(arguments: &[&str], status: i32) -> (String, String) {
    let output = run(PROGRAM, &[&["forwarder"], arguments].concat());
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {out}{error}");
    (out, error)
}

#[test]
fn the_paper_s_forwarder_has_the_paper_s_saturation() {
    let issue = ["--packet", "4KiB", "--nic", "lanai9", "--bus", "33"];
    let (text, _) = said(&issue, 0);
    for line in ["66.00 MB/s", "119.48 MB/s", "gain, off to on: +81.0 %", "bottleneck"] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let (text, _) = said(&["--caching", "off", "--nic", "lanai4"], 0);
    assert!(text.contains("52.03 MB/s") && !text.contains("caching on"), "{text}");
}

#[test]
fn a_rate_that_saturates_a_scheme_is_answered_with_one_and_the_rate_that_does_not() {
    let (text, _) = said(&["--rate", "80MB/s"], 1);
    let expected = "saturate PCI: expected less than 16113 packets/s (66.00 MB/s)";
    assert!(text.contains(expected), "{text}");
    assert!(text.contains("at 80.00 MB/s"), "{text}");
    let (json, _) = said(&["--rate", "80MB/s", "--json"], 1);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert!(json["schemes"][0]["load"].is_null() && json["schemes"][1]["saturated"].is_null());
    said(&["--rate", "80MB/s", "--caching", "on"], 0);
}

#[test]
fn today_s_nic_has_a_scheme_more() {
    let (text, _) = said(&["--nic", "400g", "--packet", "1514B"], 0);
    for line in ["caching headers", "PCIe to host", "gain, off to headers"] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn wrong_words_are_answered_with_the_right_ones() {
    for (arguments, expected) in [
        (&["--nic", "lanai8"][..], "no NIC is named lanai8; expected lanai4, lanai7, lanai9, 100g"),
        (&["--nic", "lanai7", "--bus", "pcie4"], "lanai7 has no bus pcie4; expected 33, 66"),
        (&["--nic", "400g", "--bus", "33"], "400g has no bus 33; expected pcie4"),
        (&["--caching", "headers"], "expected off, on, both"),
        (&["--caching", "maybe"], "[possible values: off, on, headers, both]"),
        (&["--packet", "1MiB"], "--packet: a packet of 1048576 bytes; expected 64 to 65536 bytes"),
        (&["--packet", "4"], "expected a size such as 128KiB"),
        (&["--rate", "0MB/s"], "expected a rate above zero such as 80MB/s"),
        (&["--nic", "100g", "--measured"], "the paper measured lanai4"),
    ] {
        let (_, error) = said(arguments, 2);
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}

#[test]
fn help_version_and_usage_errors_name_the_program_as_it_was_started() {
    check_usage(PROGRAM);
}

#[test]
fn the_json_has_the_keys_of_the_page_and_is_the_same_again() {
    for arguments in [&["forwarder", "--json"][..], &["forwarder", "--rate", "80MB/s", "--json"]] {
        let title = "`axon model forwarder --json`";
        checked(title, ("Output", "model/src/main.rs"), twice(PROGRAM, arguments));
    }
}
