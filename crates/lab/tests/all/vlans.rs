//! VLANs among real Linux hosts: access hosts with the kernel's own stack, and a trunk host that
//! sends and answers tagged ARP and echo requests, as a router on a stick would.
//!
//! The lab starts its parts from the program that calls it, so this test is a program of its own
//! and not run by libtest.

use crate::support::{Test, state_root};
use axon_lab::{Lab, UpOptions};
use axon_node::Drop;
use axon_node::telemetry::NodeTelemetry;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{ChildStdout, Stdio};

/// Program of the trunk host.
const PEER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/vlans_peer.py");

pub const TESTS: &[Test] = &[(
    "access_hosts_and_a_trunk_host_reach_their_own_vlans_and_no_other",
    access_hosts_and_a_trunk_host_reach_their_own_vlans_and_no_other,
)];

/// h1 and h2 have the same address in two VLANs, h3 is in the first one, h4 in none; h5 is in both
/// by its tags.
fn fabric_file() -> PathBuf {
    let text = "name: test-vlans
topology:
  listed:
    switches: [s1, s2]
    hosts:
      h1: { at: s1, ip: 10.0.81.1 }
      h2: { at: s1, ip: 10.0.81.1 }
      h3: { at: s2, ip: 10.0.81.3 }
      h4: { at: s2, ip: 10.0.81.4 }
      h5: { at: s2, ip: 10.0.81.50 }
    links: [[s1, s2]]
vlans:
- { id: 10, access: [h1, h3], trunk: [h5] }
- { id: 20, access: [h2], trunk: [h5] }
";
    let root = state_root();
    let path = root.with_extension("yaml");
    std::fs::write(&path, text).expect("a file");
    path
}

/// True if a host's own ping is answered.
fn pings(lab: &Lab, host: &str, address: &str, wait: &str) -> bool {
    let line = format!("ping -c 1 -W {wait} {address}");
    let mut command = lab.command(host, &["sh", "-c", &line]).expect("a command");
    command.output().expect("it starts").status.success()
}

/// Returns the MAC that a host has for an address.
fn neighbour(lab: &Lab, host: &str, address: &str) -> String {
    let line = format!("ip neighbour show {address}");
    let mut command = lab.command(host, &["sh", "-c", &line]).expect("a command");
    let output = command.output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split("lladdr ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or("").into()
}

fn access_hosts_and_a_trunk_host_reach_their_own_vlans_and_no_other() {
    let (lab, report) =
        axon_lab::up(&fabric_file(), &UpOptions::default(), |_| ()).expect("it comes up");
    assert!(report.missing.is_empty(), "without controller: {:?}", report.missing);
    let fabric = lab.fabric().expect("its file is there");
    let mac = |host: usize| fabric.hosts[host - 1].mac.to_string();
    // Without its tags the host is in no VLAN; its own kernel handles no tags.
    let line = format!("exec python3 {PEER} h5-p0 10=10.0.81.50 20=10.0.81.50");
    let mut command = lab.command("h5", &["sh", "-c", &line]).expect("a command");
    let mut peer = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut output = BufReader::new(peer.stdout.take().expect("it is piped"));
    let mut input = peer.stdin.take().expect("it is piped");
    let line = |output: &mut BufReader<ChildStdout>| {
        let mut line = String::new();
        output.read_line(&mut line).expect("a line");
        line.trim().to_owned()
    };
    assert_eq!(line(&mut output), "ready");
    // From access hosts, whose kernels have no VLANs.
    for (host, address, reached) in [
        ("h1", "10.0.81.3", true),
        ("h3", "10.0.81.1", true),
        ("h1", "10.0.81.50", true),
        ("h2", "10.0.81.50", true),
        ("h3", "10.0.81.50", true),
        ("h4", "10.0.81.50", true),
        ("h2", "10.0.81.3", false),
        ("h4", "10.0.81.3", false),
        ("h1", "10.0.81.4", false),
        ("h1", "10.0.0.1", true),
        ("h2", "10.0.0.1", true),
    ] {
        let wait = if reached { "5" } else { "1" };
        assert_eq!(pings(&lab, host, address, wait), reached, "{host} to {address}");
    }
    assert_eq!(neighbour(&lab, "h3", "10.0.81.1"), mac(1), "h2 has that address elsewhere");
    // From the trunk host: one address, two VLANs, two hosts.
    for (vid, address, expected) in [
        (10, "10.0.81.1", mac(1)),
        (20, "10.0.81.1", mac(2)),
        (10, "10.0.81.3", mac(3)),
        (20, "10.0.81.3", "none".to_owned()),
    ] {
        writeln!(input, "ping {vid} {address}").expect("it reads");
        assert_eq!(line(&mut output), expected, "VLAN {vid}, {address}");
    }
    // h4 sends a packet with an address of VLAN 10: no host has it, and it is counted.
    let forged = "import socket; s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); \
                  s.bind(('h4-p0', 0)); \
                  [s.send(b'\\xff' * 6 + b'\\2' * 6 + tags + b'\\x08\\x06' + b'\\0' * 46) \
                  for tags in (b'\\x81\\0\\0\\x0a', b'\\x81\\0\\x0f\\xff', \
                  b'\\x81\\0\\0\\0\\x81\\0\\0\\x0a')]";
    let mut command = lab.command("h4", &["python3", "-c", forged]).expect("a command");
    assert!(command.status().expect("it starts").success());
    assert!(pings(&lab, "h4", "10.0.81.50", "5"), "what it sent before has been handled");
    let drops: u64 = lab
        .status()
        .expect("it answers")
        .iter()
        .filter_map(|node| node.node().and_then(NodeTelemetry::switch))
        .map(|switch| switch.plane.total.dropped(Drop::ForeignVlan))
        .sum();
    assert_eq!(drops, 3);
    writeln!(input).expect("it reads");
    drop(input);
    let rest = std::io::read_to_string(&mut output).expect("its words");
    println!("{}", rest.trim());
    assert!(peer.wait().expect("it ends").success());
    axon_lab::down(Some(lab.name())).expect("it ends");
}
