//! `axon probe` in the simulator, from the command line; and its errors for a simulator's file on
//! real ports.

use crate::common::{Folder, axon, bad, good, scenario};
use serde_json::Value;

#[test]
fn the_table_names_every_switch_and_link_of_the_path() {
    let output = axon(&["probe", &scenario("line3"), "--path", "s1,s2,s3", "--count", "3"]);
    let table = good(&output);
    for name in ["s1", "s2", "s3"] {
        assert!(table.contains(name), "{name} is missing:\n{table}");
    }
}

#[test]
fn json_holds_the_same_path_and_is_the_same_each_time() {
    let arguments = ["probe", &scenario("line3"), "--path", "s1,s2,s3", "--count", "3", "--json"];
    let (first, second) = (axon(&arguments), axon(&arguments));
    assert_eq!(good(&first), good(&second));
    let json: Value = serde_json::from_str(good(&first)).unwrap();
    assert!(json.is_object(), "{json}");
    let text = json.to_string();
    assert!(text.contains("s1") && text.contains("s3"), "{text}");
}

#[test]
fn from_host_to_host_is_the_path_that_the_fabric_set_up() {
    let line = scenario("line3");
    let hosts = axon(&["probe", &line, "--from", "h1", "--to", "h5", "--json", "--count", "2"]);
    let hosts: Value = serde_json::from_str(good(&hosts)).unwrap();
    let text = hosts.to_string();
    assert!(["s1", "s2", "s3"].iter().all(|name| text.contains(name)), "{text}");
}

#[test]
fn errors_say_what_there_is() {
    let line = scenario("line3");
    let cases: &[(&[&str], &str)] = &[
        (&["--path", "s1,s9"], "line3 has no switch s9; it has s1 s2 s3\n"),
        (&["--from", "h1", "--to", "h9"], "line3 has no host h9; it has h1 h2 h3 h4 h5 h6\n"),
        (&["--from", "h1", "--to", "h2"], "both hosts are at s1: no link is between them"),
    ];
    for (arguments, wanted) in cases {
        let output = axon(&[&["probe", line.as_str()], *arguments].concat());
        assert!(bad(&output, 2).starts_with(wanted), "{}", bad(&output, 2));
    }
}

#[test]
fn an_interval_that_no_plan_can_have_is_refused_with_the_range() {
    for interval in ["0", "3600000001", "18446744073709551615"] {
        for way in [&["--live"][..], &[&scenario("line3")]] {
            let plan = ["--path", "s1,s2", "--interval", interval];
            let output = axon(&[&["probe"], way, &plan].concat());
            assert!(bad(&output, 2).contains("1..=3600000000"), "{}", bad(&output, 2));
        }
    }
}

#[test]
fn real_ports_refuse_the_simulators_networks_and_name_the_keys_that_they_ignore() {
    let folder = Folder::new("probe-real");
    let file = &*folder.path("real.yaml");
    let ring = "name: a\ntopology: { ring: { switches: 3 } }\n";
    folder.file("real.yaml", format!("{ring}network: portland\n"));
    let wanted = format!(
        "{file}:3:10: network: this network runs in the simulator only; expected axon, or program \
         in place of network\n"
    );
    for arguments in [&["up", file][..], &["switch", file, "s1"], &["controller", file]] {
        assert_eq!(bad(&axon(arguments), 2), wanted);
    }
    folder.file("real.yaml", format!("{ring}device: ideal\nlinks: {{ latency: 5us }}\n"));
    // No process listens there, so nothing is changed.
    let output = axon(&["rekey", file, &folder.path("none"), "--insecure-lab-key"]);
    let warnings = format!(
        "warning: {file}:3:9: device: ignored in the lab (simulator only)\n\
         warning: {file}:4:19: links.latency: ignored in the lab (simulator only)\n"
    );
    assert!(bad(&output, 2).starts_with(&warnings), "{}", bad(&output, 2));
}
