//! Dual-stack hosts that have never sent a frame: every pair reaches each other over IPv4 and IPv6,
//! names resolve by mDNS, and a stream to a group arrives at each member once and at no other port.
//!
//! The fabric is a ring of three switches with six hosts. `AXON_DUAL_STACK=torus`, as
//! `make dual-stack` sets it, takes a torus of 25 switches with 50 hosts, of which 20 are members.

use crate::support::{Test, needs, state_root, until};
use axon_lab::{Lab, UpOptions};
use axon_node::telemetry::NodeTelemetry;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

/// Program of the hosts, and the hosts that run avahi-daemon.
const PEER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/dual_stack_peer.py");
const MDNS_PEER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/groups_peer.py");
/// Time in which the kernel may send reports about a new address. It repeats a report of its groups
/// within a second (RFC 3810 section 9.11), and these frames are dropped.
const QUIET: Duration = Duration::from_secs(3);
/// Rate of links and of the queues of hosts.
const RATE: &str = "100mbit";

/// One size of the test.
struct Size {
    topology: &'static str,
    hosts: usize,
    members: usize,
    /// Number of hosts with an mDNS responder.
    responders: usize,
    /// Number of datagrams to each of both groups.
    stream: usize,
}

const RING: Size = Size {
    topology: "ring: { switches: 3, hosts_per_switch: 2 }",
    hosts: 6,
    members: 3,
    responders: 2,
    stream: 50,
};
const TORUS: Size = Size {
    topology: "torus: { rows: 5, cols: 5, hosts_per_switch: 2 }",
    hosts: 50,
    members: 20,
    responders: 4,
    stream: 500,
};

pub const TESTS: &[Test] = &[("silent_hosts_reach_each_other_over_both_families", dual_stack)];

fn v4(host: usize) -> String {
    format!("10.0.80.{host}")
}

fn v6(host: usize) -> String {
    format!("2001:db8:80::{host:x}")
}

fn fabric_file(size: &Size) -> PathBuf {
    let text = format!(
        "name: test-dual-stack\ntopology:\n  {}\nlinks: {{ rate: 100Mbps }}\n",
        size.topology
    );
    let root = state_root();
    let path = root.with_extension("yaml");
    std::fs::write(&path, text).expect("a file");
    path
}

/// A program on a host, which answers each line with one line.
struct Peer {
    child: Child,
    output: BufReader<ChildStdout>,
    host: usize,
}

impl Peer {
    /// Starts a program, and waits until it reports that it is ready.
    fn start(lab: &Lab, host: usize, argv: &str) -> Peer {
        let name = format!("h{host}");
        let mut command = lab.command(&name, &["sh", "-c", argv]).expect("a command");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        Peer { child, output, host }
    }

    fn say(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().expect("it is piped"), "{line}").expect("it reads");
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        assert!(!line.is_empty(), "h{} has ended", self.host);
        line.trim().into()
    }

    fn ask(&mut self, line: &str) -> String {
        self.say(line);
        self.line()
    }

    fn end(mut self) {
        self.say("");
        drop(self.child.stdin.take());
        assert!(self.child.wait().expect("it ends").success(), "h{}", self.host);
    }
}

/// Sends a line to all programs at once; returns their answers.
fn all(peers: &mut [Peer], line: impl Fn(usize) -> String) -> Vec<String> {
    peers.iter_mut().for_each(|peer| peer.say(&line(peer.host)));
    peers.iter_mut().map(Peer::line).collect()
}

fn numbers(line: &str) -> Vec<usize> {
    line.split(' ').map(|word| word.parse().unwrap_or_else(|_| panic!("{line}"))).collect()
}

/// Number of hosts that the controller knows.
fn known(lab: &Lab) -> usize {
    let nodes = lab.status().expect("daemons answer");
    let of = |node: &axon_linux::status::NodeStatus| match &node.status()?.node {
        NodeTelemetry::Controller(controller) => Some(controller.hosts.len()),
        _ => None,
    };
    nodes.iter().find_map(of).expect("a controller")
}

fn dual_stack() {
    let torus = std::env::var("AXON_DUAL_STACK").is_ok_and(|size| size == "torus");
    let size = if torus { &TORUS } else { &RING };
    if torus && !needs::root("grow the machine's neighbour tables for 50 hosts") {
        return;
    }
    let began = Instant::now();
    let options = UpOptions { bare: true, ..UpOptions::default() };
    let (lab, report) = axon_lab::up(&fabric_file(size), &options, |_| ()).expect("it comes up");
    assert!(report.missing.is_empty(), "without controller: {:?}", report.missing);
    let start = |host| {
        let (v4, v6) = (v4(host), v6(host));
        let line = format!("exec python3 {PEER} h{host}-p0 {v4} {v6} {RATE}");
        Peer::start(&lab, host, &line)
    };
    let mut peers: Vec<Peer> = (1..=size.hosts).map(start).collect();
    peers.iter_mut().for_each(|peer| assert_eq!(peer.line(), "ready"));
    // The kernel's reports about its addresses meet a queue without room.
    std::thread::sleep(QUIET);
    all(&mut peers, |_| "open".into());
    silent(&lab, &mut peers);
    every_pair(size, &mut peers);
    names(&lab, size);
    stream(size, &mut peers);
    peers.into_iter().for_each(Peer::end);
    axon_lab::down(Some(lab.name())).expect("it ends");
    println!("{:.1} s in all", began.elapsed().as_secs_f32());
}

/// No host has sent a frame. Then one pings each, over one family or the other.
fn silent(lab: &Lab, peers: &mut [Peer]) {
    let said = all(peers, |_| "silent".into());
    assert!(said.iter().all(|line| line == "0 0"), "sent unasked, sent at all: {said:?}");
    assert_eq!(known(lab), 0, "hosts that the controller knows");
    let others = 2..=peers.len();
    let asked = others.map(|host| if host % 2 == 0 { v4(host) } else { v6(host) });
    let asked: Vec<String> = asked.collect();
    let answer = peers[0].ask(&format!("ping {}", asked.join(" ")));
    let count = asked.len();
    assert!(answer.starts_with(&format!("{count} ")) && answer.ends_with(" -"), "{answer}");
    // A host that has sent a frame was pinged before.
    let said = all(&mut peers[1..], |_| "silent".into());
    let unasked: usize = said.iter().map(|line| numbers(line)[0]).sum();
    assert_eq!(unasked, 0, "{said:?}");
    println!(
        "silent hosts: {} sent 0 frames before they were asked; {count} of {count} answered \
         their first question ({} requests)",
        peers.len(),
        answer.split(' ').nth(1).unwrap_or_default()
    );
}

/// Every host pings every other, over both families.
fn every_pair(size: &Size, peers: &mut [Peer]) {
    let pairs = size.hosts * (size.hosts - 1);
    for (family, address) in [("IPv4", v4 as fn(usize) -> String), ("IPv6", v6)] {
        let others = |host: usize| (1..=size.hosts).filter(move |&other| other != host);
        let began = Instant::now();
        let said = all(peers, |host| {
            let targets: Vec<String> = others(host).map(address).collect();
            format!("ping {}", targets.join(" "))
        });
        let (mut answered, mut requests, mut longest) = (0, 0, 0);
        let mut silent = Vec::new();
        for (host, line) in (1..).zip(&said) {
            let (counts, missing) = line.rsplit_once(' ').expect("four words");
            let counts = numbers(counts);
            (answered, requests) = (answered + counts[0], requests + counts[1]);
            longest = longest.max(counts[2]);
            if missing != "-" {
                silent.push(format!("h{host} from {missing}"));
            }
        }
        let seconds = began.elapsed().as_secs_f32();
        println!(
            "{family}: {answered} of {pairs} pairs answered, {requests} requests, longest round \
             trip {longest} ms, {seconds:.1} s"
        );
        assert!(silent.is_empty(), "no answer to {silent:?}");
        assert_eq!(answered, pairs);
    }
}

/// Names of hosts with avahi-daemon resolve at each other, to both addresses.
fn names(lab: &Lab, size: &Size) {
    if !needs::programs(&["avahi-daemon"]) {
        return;
    }
    let hosts: Vec<usize> =
        (0..size.responders).map(|n| 1 + n * (size.hosts - 1) / (size.responders - 1)).collect();
    let start = |&host: &usize| {
        let line = format!("exec unshare -m python3 {MDNS_PEER} mdns h{host}-p0 h{host}");
        Peer::start(lab, host, &line)
    };
    let mut peers: Vec<Peer> = hosts.iter().map(start).collect();
    peers.iter_mut().for_each(|peer| assert_eq!(peer.line(), "ready"));
    let mut resolved = 0;
    for peer in &mut peers {
        let others: Vec<usize> = hosts.iter().copied().filter(|&host| host != peer.host).collect();
        let question =
            |family: usize, host: &usize| format!("RESOLVE-HOSTNAME-IPV{family} h{host}.local");
        let asks = others.iter().flat_map(|host| [question(4, host), question(6, host)]);
        peer.say(&asks.collect::<Vec<String>>().join(","));
        for host in others {
            // A host may answer with either of its IPv6 addresses.
            for expected in [[v4(host), v4(host)], [v6(host), format!("fe80::{host:x}")]] {
                let answer = peer.line();
                let is_right =
                    expected.iter().any(|address| answer.ends_with(&format!(" {address}")));
                assert!(answer.starts_with('+') && is_right, "{answer}");
                resolved += 1;
            }
        }
    }
    println!("mDNS: {resolved} of {resolved} names resolved, to IPv4 and IPv6 addresses");
    peers.into_iter().for_each(Peer::end);
}

/// Waits for a datagram of both groups at all members.
fn come_to(peers: &mut [Peer], members: &[usize], number: usize, limit: Duration) -> bool {
    until(limit, || {
        members.iter().all(|&member| peers[member].ask(&format!("has {number}")) == "yes")
    })
}

/// Sends a stream from host 1 to both groups: each member gets each datagram once, and no other
/// port gets any.
fn stream(size: &Size, peers: &mut [Peer]) {
    // Spread over the switches.
    let step = (size.hosts - 1) / size.members;
    let members: Vec<usize> = (0..size.members).map(|n| 1 + n * step).collect();
    for &member in &members {
        assert_eq!(peers[member].ask("join"), "joined");
    }
    // A datagram that has reached all members shows that all have been reported. As frames of a
    // path keep their order, no earlier datagram is in flight any more.
    let is_heard = |number: &usize| {
        peers[0].ask(&format!("send 1 {number}"));
        come_to(peers, &members, *number, Duration::from_secs(1))
    };
    let heard = (1..=20).find(is_heard).expect("a datagram comes to all members");
    all(peers, |_| "reset".into());
    peers[0].ask(&format!("send {} {}", size.stream, heard + 1));
    let last = heard + 1 + size.stream;
    peers[0].ask(&format!("send 1 {last}"));
    assert!(come_to(peers, &members, last, Duration::from_secs(20)), "the last one is lost");
    let once = format!("{0} {0} {0} {0} {0} {0}", size.stream + 1);
    // The thread that counts at ports is not the one that reads.
    until(Duration::from_secs(20), || {
        members.iter().all(|&member| peers[member].ask("counts") == once)
    });
    let said = all(peers, |_| "counts".into());
    for (index, line) in said.iter().enumerate() {
        let expected = if members.contains(&index) { once.as_str() } else { "0 0 0 0 0 0" };
        // Frames that the sender sends are not counted as sent to its port.
        assert_eq!(line, expected, "h{}: at the port, read, different; IPv4, IPv6", index + 1);
    }
    println!(
        "groups: {} members of each of two groups had each of {} datagrams once; {} other ports \
         had none",
        members.len(),
        size.stream,
        size.hosts - members.len()
    );
}
