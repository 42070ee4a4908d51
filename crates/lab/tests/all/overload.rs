//! An overloaded link on each data plane: what two hosts send is what the third received and what
//! the status names as lost.

use crate::support::{Test, daemon, needs, part, shell, state_root, until};
use axon_fabric::model::DataplaneKind;
use axon_lab::{Lab, UpOptions};
use axon_linux::machine::Machine;
use axon_node::Drop;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::process::{Child, ExitCode, Stdio};
use std::time::Duration;

const PORT: u16 = 4802;
/// Datagrams that each of the two hosts sends, as fast as its kernel takes them: some 30 Mbit at
/// 20 Mb/s.
const DATAGRAMS: u64 = 3_000;
/// Rounds of datagrams until the links are overloaded.
const ROUNDS_MAX: u64 = 20;
/// Frames other than datagrams (heartbeats, ARP) that may be lost and counted meanwhile.
const OTHERS_MAX: u64 = 60;
const LIMIT: Duration = Duration::from_secs(60);

pub const TESTS: &[Test] =
    &[("what_is_lost_under_overload_is_counted_on_each_data_plane", each_plane)];

/// A program on a host: sends to an address, or reads what comes until it is killed.
pub fn run_part(words: &[&str]) -> ExitCode {
    match *words {
        ["send", to] => {
            // A socket waits once its datagrams fill a queue of the kernel; so there are many.
            for _ in 0..DATAGRAMS / 30 {
                let socket = UdpSocket::bind(("0.0.0.0", 0)).expect("a socket");
                for _ in 0..30 {
                    socket.send_to(&[0; 1_400], (to, PORT)).expect("the kernel takes it");
                }
            }
        }
        ["read"] => {
            let socket = UdpSocket::bind(("0.0.0.0", PORT)).expect("a socket");
            println!("ready");
            let mut bytes = [0; 2048];
            while socket.recv(&mut bytes).is_ok() {}
        }
        _ => return ExitCode::FAILURE,
    }
    ExitCode::SUCCESS
}

fn up(plane: DataplaneKind) -> Lab {
    let text = format!(
        "name: overload\ntopology:\n  listed:\n    switches: [s1, s2, s3]\n    hosts:\n      \
         h1: {{ at: s1, ip: 10.0.77.1 }}\n      h2: {{ at: s2, ip: 10.0.77.2 }}\n      \
         h3: {{ at: s3, ip: 10.0.77.3 }}\n    links: [[s1, s2], [s2, s3]]\n\
         links: {{ rate: 20Mbps }}\ndataplane: {}\n",
        plane.setting(),
    );
    let path = state_root().with_extension("yaml");
    std::fs::write(&path, text).expect("a file");
    let (lab, report) =
        axon_lab::up(&path, &UpOptions::default(), |_| ()).expect("the lab comes up");
    assert!(report.missing.is_empty() && report.unknown.is_empty(), "{report:?}");
    lab
}

/// Counts what the status of a lab names as lost, by place and reason.
fn lost(lab: &Lab) -> BTreeMap<String, u64> {
    let mut lost = BTreeMap::new();
    for node in lab.status().expect("daemons answer") {
        let status = node.status().expect("it answers");
        for reason in Drop::ALL.iter().filter(|reason| !reason.is_ordinary()) {
            let count = status.node.total().dropped(*reason);
            lost.insert(format!("{} {}", status.name, reason.name()), count);
        }
        for port in &status.ports {
            for (name, count) in port.counters.lost() {
                lost.insert(format!("{} {name}", port.name), count);
            }
        }
    }
    lost
}

/// Returns the datagrams that h3's program has read or its socket has dropped.
fn received(lab: &Lab) -> u64 {
    let text = shell(lab, "h3", "cat /proc/net/snmp");
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
    let both = names.split(' ').zip(values.split(' '));
    let counted = both.filter(|(name, _)| ["InDatagrams", "InErrors"].contains(name));
    counted.map(|(_, value)| value.parse::<u64>().expect("a number")).sum()
}

/// Returns the frames that the queue of a host's interface dropped.
fn refused(lab: &Lab, host: &str) -> u64 {
    let text = shell(lab, host, &format!("tc -j -s qdisc show dev {host}-p0 root"));
    let shown: Value = serde_json::from_str(&text).expect("tc speaks JSON");
    shown[0]["drops"].as_u64().expect("a number")
}

fn start(lab: &Lab, host: &str, words: &[&str]) -> Child {
    let program = match *words {
        [one] => part("overload", [one]),
        [one, two] => part("overload", [one, two]),
        _ => unreachable!("one word or two"),
    };
    let mut command = lab.command(host, &program).expect("a command");
    command.stdout(Stdio::piped()).spawn().expect("it starts")
}

fn each_plane() {
    let mut planes = vec![DataplaneKind::Software, DataplaneKind::Pipeline];
    match Machine::tried().no_tc {
        // XDP has no queues, so its links have no rate that could be exceeded.
        None => planes.push(DataplaneKind::Tc),
        Some(why) => needs::skip(&why),
    }
    for plane in planes {
        overload(plane);
    }
}

fn overload(plane: DataplaneKind) {
    let lab = up(plane);
    let mut reader = start(&lab, "h3", &["read"]);
    let mut word = [0; 6];
    let from = reader.stdout.as_mut().expect("it is piped");
    std::io::Read::read_exact(from, &mut word).expect("it is ready");
    for host in ["h1", "h2"] {
        shell(&lab, host, "ping -c 1 -w 20 10.0.77.3");
    }
    let (lost_before, received_before) = (lost(&lab), received(&lab));
    let refused = || ["h1", "h2"].map(|host| refused(&lab, host)).iter().sum::<u64>();
    let refused_before = refused();
    let counts = || {
        let mut now = lost(&lab);
        now.retain(|place, count| {
            *count -= lost_before.get(place).copied().unwrap_or(0);
            *count > 0
        });
        (received(&lab) - received_before, now)
    };
    // On a busy machine the hosts may send one after the other, which is no overload: until it is.
    let mut rounds = 0;
    while rounds < ROUNDS_MAX && counts().1.is_empty() {
        rounds += 1;
        let senders: Vec<Child> =
            ["h1", "h2"].map(|host| start(&lab, host, &["send", "10.0.77.3"])).into();
        for mut sender in senders {
            assert!(sender.wait().expect("it ends").success());
        }
    }
    // A host's own interface has a queue before the fabric.
    let sent = || 2 * rounds * DATAGRAMS - (refused() - refused_before);
    let is_whole = until(LIMIT, || {
        let (received, lost) = counts();
        let counted = received + lost.values().sum::<u64>();
        (sent()..=sent() + OTHERS_MAX).contains(&counted)
    });
    let (received, lost) = counts();
    assert!(is_whole, "{plane:?}: of {} h3 received {received}, and {lost:?}", sent());
    assert!(!lost.is_empty(), "{plane:?}: it was no overload");
    if plane == DataplaneKind::Tc {
        restarted_switch_counts_from_zero(&lab);
    }
    axon_lab::down(Some(lab.name())).expect("it ends");
    reader.wait().expect("it has ended with the lab");
}

/// The queues of the kernel, with their counters, outlive the daemon of their switch.
fn restarted_switch_counts_from_zero(lab: &Lab) {
    let dropped = || lost(lab).get("s2 queue_full").copied().unwrap_or(0);
    let before = dropped();
    assert!(before > OTHERS_MAX, "s2 has the full link: {:?}", lost(lab));
    let process = daemon("s2").expect("it runs");
    kill(Pid::from_raw(process), Signal::SIGKILL).expect("it is ours");
    let is_back = || {
        let nodes = lab.status().expect("a lab");
        let s2 = nodes.iter().find(|node| node.name() == "s2").expect("a switch");
        let ports = s2.status().map(|status| status.ports.iter().all(|port| port.up));
        s2.restarts == 1 && ports == Some(true)
    };
    assert!(until(LIMIT, is_back), "s2 has not come back");
    let after = dropped();
    assert!(after <= OTHERS_MAX, "{before} drops before the restart, {after} after it");
}
