//! Groups among real Linux hosts: the kernel's own IGMP and MLD, and avahi-daemon's mDNS.
//!
//! The lab starts its parts from the program that calls it, so this test is a program of its own
//! and not run by libtest.

use crate::support::{Test, needs, shell, state_root};
use axon_lab::{Lab, UpOptions};
use axon_node::telemetry::{EdgeCounters, NodeTelemetry};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

/// Program of the hosts.
const PEER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/groups_peer.py");
/// Datagrams to each of both groups.
const COUNT: u32 = 200;

pub const TESTS: &[Test] = &[
    (
        "a_stream_comes_to_each_member_once_and_to_no_other_port",
        a_stream_comes_to_each_member_once_and_to_no_other_port,
    ),
    ("names_resolve_by_mdns", names_resolve_by_mdns),
];

/// Limit of every wait, also on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

/// Three switches in a ring and six hosts; h6 is in no group, h7 in another tenant.
fn fabric_file() -> PathBuf {
    let text = "name: test-groups
topology:
  listed:
    switches: [s1, s2, s3]
    hosts:
      h1: { at: s1, ip: 10.0.79.1 }
      h2: { at: s1, ip: 10.0.79.2 }
      h3: { at: s2, ip: 10.0.79.3 }
      h4: { at: s2, ip: 10.0.79.4 }
      h5: { at: s3, ip: 10.0.79.5 }
      h6: { at: s3, ip: 10.0.79.6 }
      h7: { at: s3, ip: 10.0.79.7 }
    links: [[s1, s2], [s2, s3], [s3, s1]]
links: { rate: 100Mbps }
isolation:
  tenants:
    - { name: one, hosts: [h1, h2, h3, h4, h5, h6] }
    - { name: two, hosts: [h7] }
multicast: { query_interval: 1s }
";
    let root = state_root();
    let path = root.with_extension("yaml");
    std::fs::write(&path, text).expect("a file");
    path
}

/// A program on a host.
struct Peer {
    child: Child,
    output: BufReader<ChildStdout>,
    host: String,
}

impl Peer {
    /// Starts a program and waits until it is ready.
    fn start(lab: &Lab, host: &str, what: &str, last: &str) -> Peer {
        let line = format!("exec unshare -m python3 {PEER} {what} {host}-p0 {last}");
        let mut command = lab.command(host, &["sh", "-c", &line]).expect("a command");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut peer = Peer { child, output, host: host.into() };
        assert_eq!(peer.line(), "ready", "{host} {what}");
        peer
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        line.trim().into()
    }

    fn say(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().expect("it is piped");
        writeln!(input, "{line}").expect("it reads");
    }

    /// Ends the program, and returns its output.
    fn end(mut self) -> (String, String) {
        self.say("");
        drop(self.child.stdin.take());
        let mut text = String::new();
        self.output.read_to_string(&mut text).expect("its words");
        assert!(self.child.wait().expect("it ends").success(), "{}", self.host);
        (self.host, text)
    }
}

/// Starts the lab, with IPv6 on at all hosts; labs leave it off.
fn up() -> Lab {
    let (lab, report) =
        axon_lab::up(&fabric_file(), &UpOptions::default(), |_| ()).expect("it comes up");
    assert!(report.missing.is_empty(), "without controller: {:?}", report.missing);
    for host in 1..=7 {
        let line = format!("echo 0 > /proc/sys/net/ipv6/conf/h{host}-p0/disable_ipv6");
        shell(&lab, &format!("h{host}"), &line);
    }
    for host in 1..=7 {
        // Detection takes a second and a random delay of up to one more (RFC 4862).
        let show = format!("ip -6 -o address show dev h{host}-p0 scope link");
        let line = format!(
            "for n in $(seq 80); do {show} | grep -v tentative | grep -q . && exit 0; sleep 0.1; \
             done; exit 1"
        );
        shell(&lab, &format!("h{host}"), &line);
    }
    lab
}

/// Queries of all edges to all host ports, for each of both families.
const QUERIES_PER_ROUND: u64 = 2 * 7;

/// Sum of the counters of all edges.
fn edges(lab: &Lab) -> EdgeCounters {
    let status = lab.status().expect("daemons answer");
    let mut sum = EdgeCounters::default();
    for node in status.iter().filter_map(|status| status.node()) {
        if let NodeTelemetry::Switch(switch) = node {
            sum.group_queries += switch.edge.group_queries;
            sum.members_joined += switch.edge.members_joined;
            sum.members_left += switch.edge.members_left;
        }
    }
    sum
}

fn await_edges(lab: &Lab, is_so: impl Fn(EdgeCounters) -> bool) {
    let began = Instant::now();
    while !is_so(edges(lab)) {
        assert!(began.elapsed() < LIMIT, "{:?}", edges(lab));
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn a_stream_comes_to_each_member_once_and_to_no_other_port() {
    let lab = up();
    let members = [2, 3, 4, 5, 7];
    let join = |host: &u32| {
        let (host, address) = (format!("h{host}"), format!("10.0.79.{host}"));
        Peer::start(&lab, &host, "receive", &address)
    };
    let mut receivers: Vec<Peer> = members.iter().map(join).collect();
    let watchers = ["h6", "h7"].map(|host| Peer::start(&lab, host, "watch", ""));
    // Without an answer to the edges' queries, one each second, a membership lasts for 12 s.
    let before = edges(&lab).group_queries;
    await_edges(&lab, |now| now.group_queries >= before + 13 * QUERIES_PER_ROUND);
    shell(&lab, "h1", &format!("python3 {PEER} send h1-p0 {COUNT}"));
    for receiver in receivers.iter_mut().filter(|receiver| receiver.host != "h7") {
        assert_eq!(receiver.line(), "all");
    }
    for receiver in receivers {
        let (host, text) = receiver.end();
        let count = if host == "h7" { 0 } else { COUNT };
        println!("{host}: {}", text.replace('\n', ", "));
        assert_eq!(text, format!("v4 {count} {count}\nv6 {count} {count}\n"), "{host}");
    }
    for watcher in watchers {
        let (host, text) = watcher.end();
        assert_eq!(text, "frames 0\n", "{host} is no member, or may not be reached");
    }
    // They leave. Then one returns, and the ports of the others receive nothing.
    await_edges(&lab, |now| now.members_left >= 2 * members.len() as u64);
    let joined = edges(&lab).members_joined;
    let mut back = join(&5);
    await_edges(&lab, |now| now.members_joined >= joined + 2);
    let watchers = ["h2", "h4"].map(|host| Peer::start(&lab, host, "watch", ""));
    // Until the controller has computed the new list of members, that one receives nothing either.
    std::thread::scope(|scope| {
        let (back, began) = (scope.spawn(|| back.line()), Instant::now());
        while !back.is_finished() {
            assert!(began.elapsed() < LIMIT, "h5 is no member again");
            shell(&lab, "h1", &format!("python3 {PEER} send h1-p0 20"));
        }
        assert_eq!(back.join().expect("it does not panic"), "all");
    });
    back.end();
    for watcher in watchers {
        let (host, text) = watcher.end();
        assert_eq!(text, "frames 0\n", "{host} has left");
    }
    axon_lab::down(Some(lab.name())).expect("it ends");
}

fn names_resolve_by_mdns() {
    if !needs::programs(&["avahi-daemon"]) {
        return;
    }
    let lab = up();
    let mut peers = [1, 3, 6, 7].map(|host| {
        let host = format!("h{host}");
        Peer::start(&lab, &host, "mdns", &host)
    });
    let [h1, _, h6, h7] = &mut peers;
    let question = |family: u32, host: u32| format!("RESOLVE-HOSTNAME-IPV{family} h{host}.local");
    let [four, again, six] = [question(4, 3), question(4, 6), question(6, 6)];
    h1.say(&format!("{four},{again},{six}"));
    for expected in ["10.0.79.3", "10.0.79.6", "fe80::"] {
        let answer = h1.line();
        println!("{answer}");
        assert!(answer.starts_with('+') && answer.contains(expected), "{answer}");
    }
    h6.say(&question(4, 1));
    let answer = h6.line();
    assert!(answer.ends_with("h1.local 10.0.79.1"), "{answer}");
    // Another tenant receives nothing.
    h7.say(&question(4, 1));
    let answer = h7.line();
    assert!(answer.starts_with('-'), "{answer}");
    peers.into_iter().for_each(|peer| drop(peer.end()));
    axon_lab::down(Some(lab.name())).expect("it ends");
}
