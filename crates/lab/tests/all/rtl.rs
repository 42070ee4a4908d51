//! A switch in gates in a lab: the simulated device behind real ports, under the control plane of
//! every switch. Needs the shared library that `make rtl-model` builds, and is skipped without.

use crate::support::{Test, needs, shell, state_root, until};
use axon_fabric::model::DataplaneKind;
use axon_lab::{Lab, UpOptions};
use axon_linux::status::NodeStatus;
use axon_wire::HopWidth;
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

/// Duration of the TCP transfer, in seconds.
const SECONDS: &str = "10";
const PORT: &str = "5201";

pub const TESTS: &[Test] = &[
    ("a_ring_with_a_switch_in_gates_loses_no_ping_and_carries_tcp", ring),
    ("a_fabric_that_the_device_is_too_small_for_is_refused", refused),
];

/// A ring of three switches with a host each, of which the second one is in gates.
fn fabric_file(more: &str) -> PathBuf {
    let text = format!(
        "name: gates\ntopology:\n  listed:\n    switches: [s1, s2, s3]\n    hosts:\n      \
         h1: s1\n      h2: s2\n      h3: {{ at: s3, ip: 10.0.77.3 }}\n    \
         links: [[s1, s2], [s2, s3], [s3, s1]]\n\
         overrides: [{{ switches: [s2], dataplane: rtl }}]\n{more}"
    );
    let path = state_root().with_extension("yaml");
    std::fs::write(&path, text).expect("a file");
    path
}

/// Returns whether the simulated device is there, and prints a message if not.
fn is_built() -> bool {
    let loaded = axon_rtl::Model::load(HopWidth::Eight);
    loaded.as_ref().err().inspect(|error| needs::skip(&error.to_string()));
    loaded.is_ok()
}

/// Returns the address that DHCP has given to a host.
fn address(lab: &Lab, host: &str) -> String {
    let line = format!("ip -4 -o address show dev {host}-p0");
    let given = || {
        let said = shell(lab, host, &line);
        let word = said.split_whitespace().skip_while(|word| *word != "inet").nth(1)?;
        word.split('/').next().map(str::to_owned)
    };
    assert!(until(Duration::from_secs(30), || given().is_some()), "{host} has no address");
    given().expect("it had one")
}

/// Returns the frames that s2 has received in gates.
fn frames(lab: &Lab) -> u64 {
    let status = lab.status().expect("daemons answer");
    let s2 = status.iter().find(|status| status.name() == "s2").expect("it is one of them");
    let carrier = s2.status().and_then(|status| status.dataplane.as_ref()).map(|one| one.carrier);
    assert_eq!(carrier, Some(DataplaneKind::Rtl));
    NodeStatus::node(s2).expect("it answers").total().rx_frames
}

/// Compares the registers of s2 with what its data plane has counted, and looks for them in the
/// table of `axon status`.
fn registers(lab: &Lab) {
    let same = || {
        let status = lab.status().expect("daemons answer");
        let s2 = status.iter().find(|status| status.name() == "s2").expect("it is one of them");
        let plane = s2.node().and_then(|node| node.plane()).expect("it is a switch");
        let registers = plane.registers.as_ref().expect("it has some");
        assert_eq!(registers.device["magic"], 0x4158_4f4e);
        assert_eq!(registers.ports.len(), 4);
        let text = axon_linux::registers::tables(&status);
        assert!(text.lines().any(|line| line.starts_with("rx_frames")), "{text}");
        assert!(text.starts_with("register") && !text.contains("s1-p0"), "{text}");
        let json = serde_json::to_value(&status).expect("telemetry is JSON").to_string();
        assert!(json.contains("\"egress_unknown\":"), "{json}");
        let of_port = registers.ports.iter().zip(&plane.ports);
        of_port
            .map(|(registers, port)| (u64::from(registers["rx_frames"]), port.counters.rx_frames))
            .all(|(in_gates, counted)| in_gates > 0 && in_gates == counted)
    };
    assert!(until(Duration::from_secs(30), same), "registers and counters differ");
}

/// Sends 100 echo requests, after one that sets up the route; all are answered.
fn pings(lab: &Lab, from: &str, to: &str) {
    shell(lab, from, &format!("ping -c 1 -w 30 {to}"));
    let said = shell(lab, from, &format!("ping -c 100 -i 0.02 -W 5 {to}"));
    assert!(said.contains("100 packets transmitted, 100 received"), "{said}");
}

fn start(lab: &Lab, host: &str, words: &[&str]) -> Child {
    let mut command = lab.command(host, words).expect("a command");
    command.stdout(Stdio::piped()).spawn().expect("it starts")
}

/// Sends over TCP and prints the rate, which depends on the machine.
fn tcp(lab: &Lab, from: &str, (host, to): (&str, &str)) {
    let server = start(lab, host, &["iperf3", "-s", "-4", "-1", "-p", PORT]);
    let listens = || shell(lab, host, "cat /proc/net/tcp").contains(":1451 00000000:0000 0A");
    assert!(until(Duration::from_secs(30), listens), "iperf3 listens");
    let client = start(lab, from, &["iperf3", "-c", to, "-p", PORT, "-t", SECONDS, "-J"]);
    let report = client.wait_with_output().expect("it ends");
    let report: Value = serde_json::from_slice(&report.stdout).expect("iperf3 speaks JSON");
    let received = report["end"]["sum_received"]["bits_per_second"].as_f64();
    let received = received.unwrap_or_else(|| panic!("{report:#}"));
    let again = report["end"]["sum_sent"]["retransmits"].as_u64();
    println!("TCP through gates: {:.2} Mb/s, sent again: {again:?}", received / 1e6);
    assert!(received > 0.0);
    server.wait_with_output().expect("it ends");
}

fn ring() {
    if !is_built() || !needs::programs(&["iperf3"]) {
        return;
    }
    let options = UpOptions { capture: vec!["s2".into()], ..UpOptions::default() };
    let (lab, report) = axon_lab::up(&fabric_file(""), &options, |_| ()).expect("it comes up");
    assert!(report.missing.is_empty() && report.unknown.is_empty(), "{report:?}");
    let before = frames(&lab);
    let [h1, h2] = ["h1", "h2"].map(|host| address(&lab, host));
    pings(&lab, "h1", &h2);
    pings(&lab, "h2", "10.0.77.3");
    let received = frames(&lab) - before;
    assert!(received >= 400, "{received}");
    registers(&lab);
    tcp(&lab, "h1", ("h2", &h2));
    pings(&lab, "h2", &h1);
    // Now all goes through s2.
    lab.set_link("s3,s1", false).expect("a link");
    pings(&lab, "h1", "10.0.77.3");
    let captured = std::fs::read(lab.state().capture("s2")).expect("a capture").len();
    assert!(captured > 100_000, "{captured} bytes");
    axon_lab::down(Some(lab.name())).expect("it ends");
}

fn refused() {
    let text = "name: wide\ntopology: {ring: {switches: 3, hosts_per_switch: 4}}\n\
                overrides: [{switches: [s2], dataplane: rtl}]\n";
    let path = state_root().with_extension("yaml");
    std::fs::write(&path, text).expect("a file");
    let error = axon_lab::up(&path, &UpOptions::default(), |_| ()).unwrap_err();
    let says = "overrides[0].dataplane: the data plane `rtl` lacks 6 ports (asked for by \
                `topology`; it has 4); expected ";
    assert!(format!("{error:#}").contains(says), "{error:#}");
    let error = axon_lab::up(&fabric_file("mtu: 9000\n"), &UpOptions::default(), |_| ());
    let error = format!("{:#}", error.unwrap_err());
    assert!(error.contains("the data plane `rtl` lacks frames of 9014 bytes"), "{error}");
}
