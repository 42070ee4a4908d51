//! Switches whose frames the kernel carries are killed and restarted repeatedly, under flows that
//! begin, end or pass there: no flow loses a packet, and no host receives a frame for another.
//!
//! `AXON_RESTARTS=n` sets the number of kills; the default is five.

use crate::support::{Pinging, Test, daemon, needs, part, replies, state_root};
use axon_fabric::model::DataplaneKind;
use axon_lab::{Lab, UpOptions};
use axon_linux::status::NodeStatus;
use axon_node::telemetry::NodeTelemetry;
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, recv, socket};
use nix::unistd::Pid;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::{Child, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const NAME: &str = "test-restart";
const HOSTS: u32 = 5;
/// Across the line both ways, within an edge, and from the middle.
const FLOWS: [(u32, u32); 5] = [(1, 4), (5, 2), (1, 2), (3, 1), (4, 3)];
/// Types of the frames of hosts in this lab: IPv4, ARP, IPv6.
const TYPES: [[u8; 2]; 3] = [[0x08, 0x00], [0x08, 0x06], [0x86, 0xdd]];

pub const TESTS: &[Test] = &[("switches_killed_under_traffic_lose_and_misdeliver_nothing", killed)];

/// Runs a program on a host.
pub fn run_part(words: &[&str]) -> ExitCode {
    let [own] = *words else { return ExitCode::FAILURE };
    watch(own)
}

/// A line of three switches with two, one and two hosts. The heartbeat is long: a busy machine may
/// not run a daemon for 250 ms, and its neighbours would move flows from a link that works.
fn fabric_file() -> PathBuf {
    let switches = [1, 1, 2, 3, 3];
    let host = |(n, at): (usize, &u32)| {
        let n = n + 1;
        format!("      h{n}: {{ at: s{at}, ip: 10.0.79.{n}, mac: \"{}\" }}\n", mac(n as u32))
    };
    let hosts: String = switches.iter().enumerate().map(host).collect();
    let text = format!(
        "name: {NAME}\ntopology:\n  listed:\n    switches: [s1, s2, s3]\n    hosts:\n{hosts}    \
         links: [[s1, s2], [s2, s3]]\nlinks: {{ rate: 200Mbps }}\n\
         timers: {{ heartbeat: 500ms }}\n"
    );
    let root = state_root();
    let path = root.with_extension("yaml");
    std::fs::write(&path, text).expect("a file");
    path
}

fn mac(host: u32) -> String {
    format!("02:00:00:00:79:{host:02x}")
}

/// Watches all frames that enter this namespace, and prints those that are neither for this MAC nor
/// for a group, and those that no host sends. Ends with its input.
fn watch(own: &str) -> ExitCode {
    let own: Vec<u8> = own.split(':').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
    let any = SockProtocol::EthAll;
    let socket = socket(AddressFamily::Packet, SockType::Raw, SockFlag::empty(), any);
    let socket = socket.expect("root may");
    thread::spawn(|| {
        let _ = std::io::stdin().lines().count();
        std::process::exit(0);
    });
    println!("ready");
    let mut buffer = [0; 1 << 16];
    while let Ok(bytes) = recv(socket.as_raw_fd(), &mut buffer, nix::sys::socket::MsgFlags::empty())
    {
        let frame = &buffer[..bytes];
        let [to, from, kind] = [0..6, 6..12, 12..14].map(|range| frame.get(range).unwrap_or(&[]));
        let is_loopback = to == [0; 6] && from == [0; 6];
        if is_loopback || from == own {
            continue;
        }
        let is_group = to.first().is_some_and(|byte| byte & 1 == 1);
        // Discovery and LLDP are sent to every port.
        let is_link = to.starts_with(&[0x01, 0x80, 0xc2, 0, 0]);
        let is_plain = TYPES.iter().any(|known| known == kind) || is_link;
        if !is_plain || (to != own && !is_group) {
            println!("{bytes} bytes: {:02x?}", &frame[..frame.len().min(40)]);
        }
    }
    ExitCode::FAILURE
}

fn start<W: AsRef<OsStr>>(lab: &Lab, node: &str, words: &[W]) -> Child {
    let mut command = lab.command(node, words).expect("a command");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts")
}

/// True if all switches have their neighbours, and no neighbour is restarting.
fn is_whole(status: &[NodeStatus]) -> bool {
    let whole = |status: &NodeStatus| {
        let Some(node) = status.node() else { return false };
        let wanted = match node {
            NodeTelemetry::Controller(_) => 1,
            NodeTelemetry::Switch(_) if status.name() == "s3" => 1,
            _ => 2,
        };
        let neighbours = node.neighbours();
        neighbours.len() == wanted && neighbours.iter().all(|neighbour| !neighbour.restarting)
    };
    status.iter().all(whole)
}

/// Kills the daemon of a switch and waits until the next one is among its neighbours.
fn kill_once(lab: &Lab, switch: &str) {
    let before = daemon(switch).expect("it runs");
    kill(Pid::from_raw(before), Signal::SIGKILL).expect("it is ours");
    let limit = Instant::now() + Duration::from_secs(60);
    let is_back = || daemon(switch).is_some_and(|now| now != before);
    while !is_back() || !lab.status().is_ok_and(|status| is_whole(&status)) {
        assert!(Instant::now() < limit, "{switch} does not come back: {:?}", lab.status());
        thread::sleep(Duration::from_millis(50));
    }
}

fn killed() {
    if !needs::programs(&["ping"]) {
        return;
    }
    let (lab, report) =
        axon_lab::up(&fabric_file(), &UpOptions::default(), |_| ()).expect("it is up");
    assert!(report.missing.is_empty(), "without controller: {:?}", report.missing);
    let status = lab.status().expect("daemons answer");
    let carriers = status.iter().filter_map(|of| Some(of.status()?.dataplane.as_ref()?.carrier));
    if carriers.into_iter().any(|carrier| carrier != DataplaneKind::Tc) {
        needs::skip("this kernel does not carry the frames of switches");
        axon_lab::down(Some(lab.name())).expect("it ends");
        return;
    }
    for (from, to) in FLOWS {
        let ping = ["ping", "-c", "1", "-w", "30", &format!("10.0.79.{to}")];
        assert!(
            start(&lab, &format!("h{from}"), &ping).wait().is_ok_and(|status| status.success())
        );
    }
    let watch = |host| start(&lab, &format!("h{host}"), &part("restart", [&mac(host)]));
    let mut watchers: Vec<Child> = (1..=HOSTS).map(watch).collect();
    let mut seen: Vec<_> =
        watchers.iter_mut().map(|of| BufReader::new(of.stdout.take().unwrap()).lines()).collect();
    for lines in &mut seen {
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
    }
    let ping = |&(from, to): &(u32, u32)| {
        Pinging::start(&lab, &format!("h{from}"), &format!("-i 0.005 10.0.79.{to}"))
    };
    let pings: Vec<_> = FLOWS.iter().map(ping).collect();
    let given = std::env::var("AXON_RESTARTS").ok().and_then(|text| text.parse().ok());
    for round in 0..given.unwrap_or(5u32) {
        let switch = ["s2", "s1", "s3"][round as usize % 3];
        kill_once(&lab, switch);
        // Late decisions of the next incarnation are included.
        thread::sleep(Duration::from_millis(u64::from(300 + round * 7919 % 1_700)));
    }
    for (ping, (from, to)) in pings.into_iter().zip(FLOWS) {
        let numbers = replies(&ping.end());
        println!("h{from} to h{to}: {} replies", numbers.len());
        let expected: Vec<u32> = (1..=numbers.len() as u32).collect();
        let first = numbers.iter().zip(&expected).find(|(is, wanted)| is != wanted);
        assert_eq!(first, None, "h{from} to h{to}: lost, doubled or out of order");
    }
    for ((host, mut watcher), lines) in (1..).zip(watchers).zip(seen) {
        drop(watcher.stdin.take());
        let foreign: Vec<String> = lines.map_while(Result::ok).collect();
        assert_eq!(foreign, [""; 0], "h{host} has received what is not for it");
        watcher.wait().expect("it ends");
    }
    axon_lab::down(Some(lab.name())).expect("it ends");
}
