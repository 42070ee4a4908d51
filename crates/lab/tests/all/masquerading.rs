//! Masquerading with real hosts: twelve of them behind tables of two entries, with the kernel's own
//! stack, on the user-space plane and on the kernel's.
//!
//! Like the lab's tests, this one is a program of its own. It is the hosts' program too.

use crate::support::{Test, needs, part, state_root};
use axon_lab::{Lab, UpOptions};
use axon_linux::machine::Machine;
use axon_linux::status::NodeStatus;
use axon_node::telemetry::{EdgeCounters, NodeTelemetry};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{ExitCode, Stdio};

/// Length of one TCP stream in bytes, with a last segment that is not full.
const STREAM_BYTES: usize = 2_000_001;
const PORT: u16 = 4810;
const HOSTS: usize = 12;
const NAME: &str = "masquerade";

pub const TESTS: &[Test] = &[
    ("twelve_hosts_reach_each_other_with_tables_of_two_entries", all_pairs),
    ("under_the_kernels_plane_masqueraded_frames_take_the_user_space_path", on_tc),
];

/// Runs a program on a host.
pub fn run_part(words: &[&str]) -> ExitCode {
    match *words {
        ["receive", address] => receive(address),
        ["send", address] => send(address),
        _ => return ExitCode::FAILURE,
    }
    ExitCode::SUCCESS
}

/// Byte `at` of the stream.
fn byte(at: usize) -> u8 {
    (at % 251) as u8
}

fn receive(address: &str) {
    let listener = TcpListener::bind(address).expect("an address of this host");
    println!("ready");
    let (mut from, _) = listener.accept().expect("a sender");
    let mut all = Vec::new();
    from.read_to_end(&mut all).expect("what was sent");
    let right = (0..).zip(&all).all(|(at, &is)| is == byte(at));
    println!("{} {right}", all.len());
}

fn send(address: &str) {
    let mut to = TcpStream::connect(address).expect("a receiver");
    let all: Vec<u8> = (0..STREAM_BYTES).map(byte).collect();
    to.write_all(&all).expect("all of it");
}

/// Three switches in a ring, four hosts at each.
fn up(more: &str) -> Lab {
    let hosts: String = (1..=HOSTS)
        .map(|n| format!("      h{n}: {{ at: s{}, ip: 10.0.79.{n} }}\n", (n - 1) / 4 + 1))
        .collect();
    let text = format!(
        "name: {NAME}\ntopology:\n  listed:\n    switches: [s1, s2, s3]\n    hosts:\n{hosts}    \
         links: [[s1, s2], [s2, s3], [s3, s1]]\n{more}\n"
    );
    let root = state_root();
    let path = root.with_extension("yaml");
    std::fs::write(&path, text).expect("a file");
    let (lab, report) = axon_lab::up(&path, &UpOptions::default(), |_| ()).expect("it comes up");
    assert!(report.missing.is_empty() && report.unknown.is_empty(), "{report:?}");
    lab
}

/// Runs a line of shell on a host; returns its output.
fn on(lab: &Lab, host: usize, line: &str) -> String {
    let host = format!("h{host}");
    let output = lab.command(&host, &["sh", "-c", line]).unwrap().output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{host}: {line}: {text}{errors}");
    text
}

/// Returns the report of h`to` about the TCP stream from h`from`.
fn transfer(lab: &Lab, from: usize, to: usize) -> String {
    let address = format!("10.0.79.{to}:{PORT}");
    let receive = part("masquerading", ["receive", &address]);
    let mut command = lab.command(&format!("h{to}"), &receive).unwrap();
    let mut receiver = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(receiver.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert_eq!(said.next().as_deref(), Some("ready"));
    let send = part("masquerading", ["send", &address]);
    assert!(lab.command(&format!("h{from}"), &send).unwrap().status().unwrap().success());
    let line = said.next().unwrap_or_default();
    assert!(receiver.wait().unwrap().success());
    line
}

fn edges(lab: &Lab) -> Vec<EdgeCounters> {
    let nodes = lab.status().expect("daemons answer");
    let of = |node: &NodeStatus| match &node.status()?.node {
        NodeTelemetry::Switch(switch) => Some(switch.edge),
        _ => None,
    };
    nodes.iter().filter_map(of).collect()
}

fn ping_all(lab: &Lab) {
    for from in 1..=HOSTS {
        let others = (1..=HOSTS).filter(|&to| to != from).map(|to| to.to_string());
        let others: Vec<String> = others.collect();
        let line = format!(
            "for n in {}; do ping -c 1 -W 10 10.0.79.$n > /dev/null || echo $n; done",
            others.join(" ")
        );
        assert_eq!(on(lab, from, &line), "", "h{from} has no answer of these");
    }
}

/// The neighbour entry of a host's kernel for another host, once it is reachable.
fn reachable(lab: &Lab, host: usize, other: usize) -> String {
    let show = format!("ip neighbour show 10.0.79.{other}");
    let line = format!(
        "for n in $(seq 100); do {show} | grep -q REACHABLE && break; sleep 0.1; done; {show}"
    );
    on(lab, host, &line)
}

fn all_pairs() {
    let lab = up("dataplane: full\ncam: { entries: 2 }");
    ping_all(&lab);
    let given: u64 = edges(&lab).iter().map(|edge| edge.macs_masqueraded).sum();
    println!("{given} of 132 destinations masqueraded");
    // 11 destinations at each port, whose table holds 2.
    assert_eq!(given, 108);
    let slow = |lab: &Lab| edges(lab).iter().map(|edge| edge.slow_path).sum::<u64>();
    let before = slow(&lab);
    for (from, to) in [(1, 12), (12, 1), (4, 9)] {
        assert_eq!(transfer(&lab, from, to), format!("{STREAM_BYTES} true"), "h{from} to h{to}");
    }
    println!("{} frames by software during three transfers", slow(&lab) - before);
    refreshed(&lab);
    axon_lab::down(Some(NAME)).expect("it ends");
}

/// A kernel verifies its neighbours by unicast ARP: no answer changes the entry.
fn refreshed(lab: &Lab) {
    let mut masqueraded = 0;
    for other in 2..=HOSTS {
        let before = on(lab, 1, &format!("ip neighbour show 10.0.79.{other}"));
        let mac = before.split_whitespace().skip_while(|word| *word != "lladdr").nth(1);
        let mac = mac.unwrap_or_else(|| panic!("no address: {before}")).to_owned();
        masqueraded += usize::from(mac.starts_with("a2:"));
        let device = "dev h1-p0";
        let probe = format!("ip neighbour change 10.0.79.{other} lladdr {mac} {device} nud probe");
        on(lab, 1, &probe);
        let after = reachable(lab, 1, other);
        assert!(after.contains(&mac) && after.contains("REACHABLE"), "{before}: {after}");
    }
    println!("h1: {masqueraded} of 11 neighbours masqueraded, each verified by unicast");
    assert_eq!(masqueraded, 9);
}

fn on_tc() {
    if let Some(why) = Machine::tried().no_tc {
        return needs::skip(&why);
    }
    let lab = up("dataplane: tc\ncam: { entries: 2 }");
    ping_all(&lab);
    assert_eq!(transfer(&lab, 1, 12), format!("{STREAM_BYTES} true"));
    assert_eq!(edges(&lab).iter().map(|edge| edge.macs_masqueraded).sum::<u64>(), 108);
    axon_lab::down(Some(NAME)).expect("it ends");
}
