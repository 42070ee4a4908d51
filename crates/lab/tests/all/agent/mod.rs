//! Agents at the edges of hosts, and unmodified programs behind them, in labs.

mod cost;
mod dcbx;
mod notified;
mod tcp;
mod udp;

use crate::support::{Test, state_root};
use axon_lab::{Lab, UpOptions};
use axon_linux::status::{NodeStatus, Status};
use axon_node::Drop;
use axon_node::telemetry::{AgentTelemetry, SwitchTelemetry};
use std::ffi::OsStr;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Limit of every wait.
const LIMIT: Duration = Duration::from_secs(60);
/// Interval between checks.
const LOOK: Duration = Duration::from_millis(20);

pub const TESTS: &[Test] = &[
    ("two_hosts_into_one_lose_nothing_in_a_lossless_class", udp::two_hosts_into_one),
    ("tcp_of_two_hosts_into_one_sends_nothing_twice", tcp::two_hosts_into_one),
    ("agents_take_priorities_from_their_switch", dcbx::priorities_of_the_switch_are_taken),
    (
        "hosts_whose_every_frame_is_tagged_find_each_other",
        dcbx::hosts_whose_every_frame_is_tagged_find_each_other,
    ),
    ("a_congestion_point_slows_agents_down", notified::sources_slow_down_to_what_a_link_takes),
    ("cost", cost::measure),
];

/// Runs a program on a host.
pub fn run_part(words: &[&str]) -> ExitCode {
    match *words {
        ["send", to] => udp::send(to),
        ["receive", port] => udp::receive(port),
        _ => ExitCode::FAILURE,
    }
}

/// Placement of the three hosts.
enum Topology {
    /// All hosts at one switch.
    Star,
    /// h1 and h2 at one switch, h3 at another.
    Dumbbell,
}

impl Topology {
    /// Returns a fabric with `dcb` besides the classes.
    fn with(self, dcb: &str) -> String {
        let (switches, at, links) = match self {
            Topology::Star => ("s1", "s1", ""),
            Topology::Dumbbell => ("s1, s2", "s2", "[s1, s2]"),
        };
        format!(
            "name: test-agent
topology:
  listed:
    switches: [{switches}]
    hosts:
      h1: {{ at: s1, ip: 10.0.77.1 }}
      h2: {{ at: s1, ip: 10.0.77.2 }}
      h3: {{ at: {at}, ip: 10.0.77.3 }}
    links: [{links}]
links: {{ rate: 50Mbps }}
dcb:
  classes:
    - {{ priorities: [0, 1, 2, 4, 5, 6], ets: 50 }}
    - {{ priorities: [3], ets: 50, lossless: true }}
    - {{ priorities: [7] }}
{dcb}"
        )
    }
}

/// Starts a lab of this fabric.
fn raise(fabric: &str) -> Lab {
    let root = state_root();
    let path = root.with_extension("yaml");
    std::fs::write(&path, fabric).expect("a file");
    let (lab, report) = axon_lab::up(&path, &UpOptions::default(), |_| ()).expect("it is up");
    assert!(report.missing.is_empty(), "without controller: {:?}", report.missing);
    lab
}

/// Starts a lab of this fabric, and waits until h1 and h2 have reached h3.
fn up(fabric: &str) -> Lab {
    let lab = raise(fabric);
    for host in ["h1", "h2"] {
        let mut ping = lab.command(host, &["ping", "-c1", "-W5", "10.0.77.3"]).expect("a command");
        let output = ping.output().expect("it starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    lab
}

/// Starts a program on a host and captures its output.
fn start<W: AsRef<OsStr>>(lab: &Lab, host: &str, words: &[W]) -> Child {
    let mut command: Command = lab.command(host, words).expect("a command");
    command.stdout(Stdio::piped()).spawn().expect("it starts")
}

/// Waits for a program to succeed; returns its output.
fn finish(child: Child) -> String {
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("plain text")
}

/// Waits until a host has a socket for each of these ports; `table` is the kernel's table of
/// sockets.
fn wait_for_sockets(lab: &Lab, host: &str, table: &str, ports: &[&str]) {
    let listens = |port: &&str| {
        let mut command = lab.command(host, &["cat", table]).expect("a command");
        let text = command.output().expect("it starts").stdout;
        let port: u16 = port.parse().expect("a number");
        String::from_utf8_lossy(&text).contains(&format!(":{port:04X} 00000000:0000"))
    };
    wait_until("all sockets are open", || ports.iter().all(listens));
}

/// Waits for a condition, up to the limit.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < LIMIT, "not after {LIMIT:?}: {what}");
        std::thread::sleep(LOOK);
    }
}

/// Returns the status of one daemon of a lab.
fn of<'a>(status: &'a [NodeStatus], name: &str) -> &'a Status {
    let status = status.iter().find(|status| status.name() == name);
    status.and_then(NodeStatus::status).expect("it answers")
}

/// Returns the telemetry of a switch.
fn switch<'a>(status: &'a [NodeStatus], name: &str) -> &'a SwitchTelemetry {
    of(status, name).node.switch().expect("it is a switch")
}

/// Returns the telemetry of an agent.
fn agent<'a>(status: &'a [NodeStatus], name: &str) -> &'a AgentTelemetry {
    of(status, name).node.agent().expect("it is an agent")
}

/// Number of PFC frames from a port of a switch that named priority 3.
fn requests(switch: &SwitchTelemetry, port: usize) -> u64 {
    switch.plane.ports[port].flow_control.as_ref().expect("it has classes").requests[3]
}

/// Number of frames dropped for lack of room: in the switch, in agents, and in the kernel before
/// them.
fn lost(status: &[NodeStatus]) -> u64 {
    let one = |status: &Status| {
        let total = status.node.total();
        let rings: u64 = status.ports.iter().map(|port| port.counters.rx_ring_drops).sum();
        total.dropped(Drop::QueueFull) + total.dropped(Drop::HeadroomFull) + rings
    };
    status.iter().filter_map(NodeStatus::status).map(one).sum()
}
