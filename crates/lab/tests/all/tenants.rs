//! Tenants of a lab with real hosts: hosts that may not reach each other do not, and a pair that is
//! revoked under a running ping stops. The gap is printed.

use crate::support::{Test, needs, state_root};
use axon_lab::{Lab, UpOptions};
use axon_linux::policy::change;
use axon_node::telemetry::{ControllerTelemetry, NodeTelemetry};
use axon_node::{HostPair, PolicyChange, Subject};
use axon_wire::MacAddr;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const NAME: &str = "test-tenants";

pub const TESTS: &[Test] = &[
    ("tenants_are_apart_and_a_revoked_pair_stops", tenants),
    ("a_scan_is_reported_with_its_source", scan),
];

/// A line of three switches. h1 and h2 are red, h3 is blue, h4 is shared, h5 is in no tenant.
fn fabric_file(dataplane: &str) -> PathBuf {
    let switches = [1, 3, 3, 2, 2];
    let host = |(n, at): (usize, &u32)| {
        let n = n + 1;
        format!("      h{n}: {{ at: s{at}, ip: 10.0.78.{n} }}\n")
    };
    let hosts: String = switches.iter().enumerate().map(host).collect();
    let text = format!(
        "name: {NAME}\ntopology:\n  listed:\n    switches: [s1, s2, s3]\n    hosts:\n{hosts}    \
         links: [[s1, s2], [s2, s3]]\ndataplane: {dataplane}\nisolation:\n  tenants:\n  - {{name: \
         red, hosts: [h1, h2], pin: true}}\n  - {{name: blue, hosts: [h3]}}\n  shared: [h4]\n"
    );
    let root = state_root();
    let path = root.with_extension("yaml");
    std::fs::write(&path, text).expect("a file");
    path
}

fn reaches(lab: &Lab, from: u32, to: u32) -> bool {
    let line = format!("ping -c 2 -i 0.2 -W 1 10.0.78.{to}");
    let mut command = lab.command(&format!("h{from}"), &["sh", "-c", &line]).expect("a command");
    command.output().expect("it starts").status.success()
}

fn controller(lab: &Lab) -> ControllerTelemetry {
    let status = lab.status().expect("the lab runs");
    let found = status.iter().find_map(|status| match status.node() {
        Some(NodeTelemetry::Controller(controller)) => Some((**controller).clone()),
        _ => None,
    });
    found.expect("the controller answers")
}

/// A running ping, and its output.
struct Ping(Child, BufReader<ChildStdout>);

impl Ping {
    /// Starts a ping with a hundred requests a second.
    fn start(lab: &Lab, from: u32, to: u32) -> Ping {
        let line = format!("exec ping -D -i 0.01 10.0.78.{to}");
        let mut command =
            lab.command(&format!("h{from}"), &["sh", "-c", &line]).expect("a command");
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let output = child.stdout.take().expect("it is piped");
        Ping(child, BufReader::new(output))
    }

    /// Waits for `count` replies.
    fn replies(&mut self, count: usize) {
        let lines = (&mut self.1).lines().map_while(Result::ok);
        let some = lines.filter(|line| line.contains("bytes from")).take(count).count();
        assert_eq!(some, count, "the ping has ended");
    }

    /// Ends the ping; returns the time of the last unread reply, in seconds since 1970.
    fn end(mut self) -> Option<f64> {
        self.0.kill().expect("it runs");
        let lines = (&mut self.1).lines().map_while(Result::ok);
        let stamp = |line: String| {
            let (stamp, _) = line.strip_prefix('[')?.split_once(']')?;
            stamp.parse().ok().filter(|_| line.contains("bytes from"))
        };
        let last = lines.filter_map(stamp).last();
        self.0.wait().expect("it has ended");
        last
    }
}

/// Seconds since 1970.
fn now() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("a clock that is set").as_secs_f64()
}

fn tenants() {
    for dataplane in ["full", "tc", "pipeline"] {
        let file = fabric_file(dataplane);
        let (lab, report) =
            axon_lab::up(&file, &UpOptions::default(), |_| ()).expect("it comes up");
        assert!(report.missing.is_empty(), "without controller: {:?}", report.missing);
        held(&lab, dataplane);
        axon_lab::down(Some(NAME)).expect("it ends");
    }
}

/// A scan of a thousand free addresses, from a host in no tenant.
const SCAN: &str = "import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for n in range(1000):
    try: s.sendto(b'scan', (f'10.0.{90 + n // 250}.{1 + n % 250}', 9))
    except OSError: pass
";

fn scan() {
    if !needs::programs(&["python3"]) {
        return;
    }
    let file = fabric_file("auto");
    let (lab, _) = axon_lab::up(&file, &UpOptions::default(), |_| ()).expect("it comes up");
    let mac = lab.fabric().expect("its file is there").hosts[4].mac.to_string();
    let log = lab.state().log("c1");
    let notes = || {
        let text = std::fs::read_to_string(&log).expect("the controller has a log");
        text.lines().filter(|line| line.contains("a scan")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!((controller(&lab).counters.scans, notes()), (0, Vec::new()));
    let mut command = lab.command("h5", &["python3", "-c", SCAN]).expect("a command");
    assert!(command.status().expect("it starts").success());
    let limit = Instant::now() + Duration::from_secs(60);
    while controller(&lab).counters.scans == 0 {
        assert!(Instant::now() < limit, "nobody has noticed");
    }
    let notes = notes();
    let names_it = |line: &String| line.contains(&mac) && line.contains("port=p1");
    assert!(!notes.is_empty() && notes.iter().all(names_it), "{notes:?} name no {mac}");
    axon_lab::down(Some(NAME)).expect("it ends");
}

fn held(lab: &Lab, dataplane: &str) {
    let fabric = lab.fabric().expect("its file is there");
    let mac = |host: usize| -> MacAddr { fabric.hosts[host - 1].mac };
    // In parallel: a ping without an answer takes a second.
    std::thread::scope(|scope| {
        for (from, to, expected) in [
            (1, 2, true),
            (3, 4, true),
            (4, 1, true),
            (5, 4, true),
            (1, 3, false),
            (3, 2, false),
            (5, 1, false),
        ] {
            scope.spawn(move || {
                assert_eq!(reaches(lab, from, to), expected, "{dataplane}: h{from} to h{to}");
            });
        }
    });
    let denied = controller(lab).counters.arp_denied;
    assert!(denied >= 3, "{denied} denied");
    let socket = lab.state().socket("c1");
    let pair = |allowed| PolicyChange::Pair(HostPair::of(mac(1), mac(2)), allowed);
    let mut ping = Ping::start(lab, 1, 2);
    ping.replies(100);
    let before = now();
    let begun = Instant::now();
    let changed = change(&socket, pair(false)).expect("the controller takes it");
    let answered = begun.elapsed();
    assert_eq!((changed.done.routes_removed, changed.outstanding), (2, vec![]), "{dataplane}");
    // Frames in flight arrive; then nothing.
    std::thread::sleep(Duration::from_millis(500));
    let from_here = now();
    std::thread::sleep(Duration::from_secs(1));
    let last = ping.end().unwrap_or(before);
    println!(
        "{dataplane}: the last reply {:.1} ms after, all acknowledged after {answered:?}",
        (last - before).max(0.0) * 1e3
    );
    assert!(last < from_here, "{dataplane}: a reply long after all routes were removed");
    assert!(!reaches(lab, 1, 2) && reaches(lab, 1, 4), "{dataplane}");
    change(&socket, pair(true)).expect("the controller takes it");
    let limit = Instant::now() + Duration::from_secs(60);
    while !reaches(lab, 1, 2) {
        assert!(Instant::now() < limit, "{dataplane}: they do not reach each other again");
    }
    let quarantine = |on| PolicyChange::Quarantine(Subject::Mac(mac(4)), on);
    change(&socket, quarantine(true)).expect("the controller takes it");
    std::thread::scope(|scope| {
        for (from, to) in [(4, 1), (3, 4)] {
            scope.spawn(move || assert!(!reaches(lab, from, to), "{dataplane}: h{from} to h{to}"));
        }
    });
    assert_eq!(controller(lab).policy.quarantine.len(), 1);
    change(&socket, quarantine(false)).expect("the controller takes it");
}
