//! Labs on each data plane: data of hosts arrives unchanged on each of them.
//!
//! Like the lab's tests, this one is a program of its own. It is the hosts' program too.

use crate::support::{Test, needs, part, state_root};
use axon_fabric::assemble::host_mac;
use axon_fabric::model::DataplaneKind;
use axon_lab::{Lab, UpOptions};
use axon_linux::machine::Machine;
use axon_node::random::Random;
use nix::sys::socket::{setsockopt, sockopt};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, ExitCode, Stdio};
use std::time::{Duration, Instant};
use xxhash_rust::xxh3::Xxh3;

/// Length of one TCP stream in bytes, with a last segment that is not full.
const STREAM_BYTES: usize = 20_000_001;
const PORT: u16 = 4800;
/// Length of a datagram after UDP segmentation, and the number of datagrams in one call and in all.
const DATAGRAM_BYTES: usize = 1_400;
const SEGMENTS: usize = 10;
const DATAGRAMS: usize = 400;
/// Limit of every wait.
const PATIENCE: Duration = Duration::from_secs(30);

pub const TESTS: &[Test] = &[
    ("every_data_plane_carries_whatever_hosts_send", every_plane),
    ("a_machine_without_the_kernels_planes_runs_on_full_and_says_why", without_kernel),
    ("a_capture_sees_what_the_kernel_forwards", capture),
    ("a_switch_whose_queue_is_deleted_starts_again_and_goes_on", deleted_queue),
    ("a_switch_that_is_stopped_carries_no_more", stopped),
];

/// Runs a program on a host.
pub fn run_part(words: &[&str]) -> ExitCode {
    match *words {
        ["receive-stream", address] => receive_stream(address),
        ["send-stream", address] => send_stream(address),
        ["receive-datagrams", address] => receive_datagrams(address),
        ["send-datagrams", address] => send_datagrams(address),
        _ => return ExitCode::FAILURE,
    }
    ExitCode::SUCCESS
}

/// Contents of a stream.
fn stream() -> Vec<u8> {
    let mut random = Random::new(7);
    let mut bytes = Vec::with_capacity(STREAM_BYTES + 8);
    while bytes.len() < STREAM_BYTES {
        bytes.extend_from_slice(&random.next_u64().to_ne_bytes());
    }
    bytes.truncate(STREAM_BYTES);
    bytes
}

fn receive_stream(address: &str) {
    let listener = TcpListener::bind(address).expect("an address of this host");
    println!("ready");
    let (mut from, _) = listener.accept().expect("a sender");
    let (mut sum, mut count, mut part) = (Xxh3::new(), 0, vec![0; 1 << 16]);
    loop {
        match from.read(&mut part).expect("what was sent") {
            0 => break,
            length => {
                sum.update(&part[..length]);
                count += length;
            }
        }
    }
    println!("{count} {:016x}", sum.digest());
}

fn send_stream(address: &str) {
    let mut to = TcpStream::connect(address).expect("a receiver");
    to.write_all(&stream()).expect("all of it");
}

/// Contents of datagram number `number`.
fn datagram(number: usize) -> Vec<u8> {
    let mut bytes = vec![number as u8; DATAGRAM_BYTES];
    bytes[..8].copy_from_slice(&(number as u64).to_be_bytes());
    bytes
}

fn receive_datagrams(address: &str) {
    let socket = UdpSocket::bind(address).expect("an address of this host");
    socket.set_read_timeout(Some(Duration::from_secs(3))).expect("an option");
    println!("ready");
    // Losses of a receiver that is late on a busy machine are not losses of the data plane.
    setsockopt(&socket, sockopt::RcvBufForce, &(8 << 20)).expect("root may");
    let (mut came, mut buffer) = ([false; DATAGRAMS], [0; 1 << 16]);
    while came.contains(&false) {
        let Ok(length) = socket.recv(&mut buffer) else { break };
        let number = u64::from_be_bytes(buffer[..8].try_into().expect("eight")) as usize;
        assert_eq!(buffer[..length], datagram(number), "datagram {number}");
        came[number] = true;
    }
    println!("{}", came.iter().filter(|came| **came).count());
}

fn send_datagrams(address: &str) {
    let socket = UdpSocket::bind(if address.starts_with('[') { "[::]:0" } else { "0.0.0.0:0" });
    let socket = socket.expect("a socket");
    setsockopt(&socket, sockopt::UdpGsoSegment, &(DATAGRAM_BYTES as i32)).expect("Linux 4.18");
    for first in (0..DATAGRAMS).step_by(SEGMENTS) {
        let several: Vec<u8> = (first..first + SEGMENTS).flat_map(datagram).collect();
        socket.send_to(&several, address).expect("room");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Three switches in a line, with a host each.
fn fabric_file(more: &str) -> PathBuf {
    let text = format!(
        "name: planes\ntopology:\n  listed:\n    switches: [s1, s2, s3]\n    hosts:\n      \
         h1: {{ at: s1, ip: 10.0.77.1 }}\n      h2: {{ at: s2, ip: 10.0.77.2 }}\n      \
         h3: {{ at: s3, ip: 10.0.77.3 }}\n    links: [[s1, s2], [s2, s3]]\n{more}\n"
    );
    let root = state_root();
    let path = root.with_extension("yaml");
    std::fs::write(&path, text).expect("a file");
    path
}

fn up(more: &str, options: &UpOptions) -> Lab {
    let (lab, report) =
        axon_lab::up(&fabric_file(more), options, |_| ()).expect("the lab comes up");
    assert!(report.missing.is_empty() && report.unknown.is_empty(), "{report:?}");
    lab
}

/// True if the kernel carries frames here; prints the reason if not.
fn has_kernel() -> bool {
    let why = Machine::tried().no_tc;
    why.iter().for_each(|why| needs::skip(why));
    why.is_none()
}

/// Runs a line of shell on a host; returns its output.
fn on(lab: &Lab, host: &str, line: &str) -> String {
    let output = lab.command(host, &["sh", "-c", line]).unwrap().output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{host}: {line}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Starts this program on a host and waits until it is ready.
fn start(lab: &Lab, host: &str, words: [&str; 2]) -> (Child, BufReader<ChildStdout>) {
    let mut command = lab.command(host, &part("dataplanes", words)).unwrap();
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    (child, said)
}

/// Returns the receiver's report at h3 about data sent by h1.
fn sent(lab: &Lab, what: &str, address: &str) -> String {
    let (mut receiver, mut said) = start(lab, "h3", [&format!("receive-{what}"), address]);
    let send = part("dataplanes", [&format!("send-{what}"), address]);
    let sender = lab.command("h1", &send).unwrap().output().unwrap();
    assert!(sender.status.success(), "{sender:?}");
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(receiver.wait().unwrap().success());
    line.trim().to_owned()
}

/// Gives h1 and h3 IPv6 addresses and neighbour entries for each other: the fabric serves no ND
/// yet.
fn set_ipv6(lab: &Lab) {
    for (own, other) in [(1, 3), (3, 1)] {
        let (device, mac) = (format!("h{own}-p0"), host_mac(other - 1));
        let lines = format!(
            "echo 0 > /proc/sys/net/ipv6/conf/{device}/disable_ipv6 && \
             ip -6 address add fd00::{own}/64 dev {device} nodad && \
             ip -6 neighbour replace fd00::{other} lladdr {mac} dev {device} nud permanent"
        );
        on(lab, &format!("h{own}"), &lines);
    }
}

fn carriers(lab: &Lab) -> Vec<(DataplaneKind, String)> {
    let status = lab.status().expect("daemons answer");
    let choices = status.iter().filter_map(|node| node.status()?.dataplane.clone());
    choices.map(|choice| (choice.carrier, choice.why)).collect()
}

fn every_plane() {
    if !has_kernel() {
        return;
    }
    let whole = format!("{STREAM_BYTES} {:016x}", xxhash_rust::xxh3::xxh3_64(&stream()));
    let planes = [
        ("dataplane: tc\nlinks: {rate: 1Gbps}", DataplaneKind::Tc),
        ("dataplane: xdp", DataplaneKind::Xdp),
        ("dataplane: full\nlinks: {rate: 1Gbps}", DataplaneKind::Software),
        ("dataplane: pipeline\nlinks: {rate: 1Gbps}", DataplaneKind::Pipeline),
        // Neighbours of other kinds.
        (
            "overrides: [{switches: [s2], dataplane: xdp}, {switches: [s3], dataplane: full}]",
            DataplaneKind::Tc,
        ),
    ];
    for (more, first) in planes {
        let lab = up(more, &UpOptions::default());
        assert_eq!(carriers(&lab)[0].0, first, "{more}");
        set_ipv6(&lab);
        for address in ["10.0.77.3", "[fd00::3]"] {
            let address = format!("{address}:{PORT}");
            assert_eq!(sent(&lab, "stream", &address), whole, "{more}: {address}");
            let came: usize = sent(&lab, "datagrams", &address).parse().unwrap();
            assert_eq!(came, DATAGRAMS, "{more}: {address}");
        }
        axon_lab::down(Some(lab.name())).unwrap();
    }
}

fn without_kernel() {
    let machine = Some(Machine::without("as the test says"));
    let options = UpOptions { machine, ..UpOptions::default() };
    let lab = up("", &options);
    assert_eq!(carriers(&lab), vec![(DataplaneKind::Software, "as the test says".to_owned()); 3]);
    on(&lab, "h1", "ping -c 1 -w 5 10.0.77.3");
    axon_lab::down(Some(lab.name())).unwrap();
    let refused = axon_lab::up(&fabric_file("dataplane: tc"), &options, |_| ()).unwrap_err();
    let says = format!("{refused:#}");
    assert!(
        says.contains("no data plane `tc`: as the test says; expected full, or auto"),
        "{says}"
    );
    assert!(!says.contains('\n'), "{says}");
}

/// Each of ten requests and replies passes two ports of the transit switch, and has one mark of
/// each.
fn capture() {
    const MARK: [u8; 16] = *b"axon-was-here-16";
    if !has_kernel() {
        return;
    }
    let options = UpOptions { capture: vec!["s2".into()], ..UpOptions::default() };
    let lab = up("", &options);
    assert_eq!(carriers(&lab)[1].0, DataplaneKind::Tc);
    let mark: String = MARK.iter().map(|byte| format!("{byte:02x}")).collect();
    on(&lab, "h1", "ping -c 1 -w 5 10.0.77.3");
    on(&lab, "h1", &format!("ping -c 10 -i 0.05 -s 32 -p {mark} 10.0.77.3"));
    let file = lab.state().capture("s2");
    let limit = Instant::now() + PATIENCE;
    loop {
        let bytes = std::fs::read(&file).unwrap();
        let seen = bytes.windows(MARK.len()).filter(|window| **window == MARK).count();
        if seen == 40 {
            break;
        }
        assert!(seen < 40 && Instant::now() < limit, "{seen} of 40");
        std::thread::sleep(Duration::from_millis(100));
    }
    axon_lab::down(Some(lab.name())).unwrap();
}

fn restarts(lab: &Lab, node: &str) -> u32 {
    let status = lab.status().expect("they answer");
    status.iter().find(|status| status.name() == node).unwrap().restarts
}

fn deleted_queue() {
    if !has_kernel() {
        return;
    }
    let lab = up("", &UpOptions::default());
    on(&lab, "s2", "ip link set s2-n2 down");
    let limit = Instant::now() + PATIENCE;
    while !on(&lab, "s2", "ip -o link show s2-n2").contains(",UP") {
        assert!(Instant::now() < limit, "it is set up again");
        std::thread::sleep(Duration::from_millis(50));
    }
    on(&lab, "s2", "ip link delete s2-n0");
    while restarts(&lab, "s2") == 0 {
        assert!(Instant::now() < limit, "it starts again");
        std::thread::sleep(Duration::from_millis(50));
    }
    for (from, to) in [("h1", 3), ("h2", 1), ("h3", 2)] {
        on(&lab, from, &format!("ping -c 1 -w 30 10.0.77.{to}"));
    }
    axon_lab::down(Some(lab.name())).unwrap();
}

/// SIGTERM ends a switch without a restart: its programs are removed, and with them every path
/// through it.
fn stopped() {
    if !has_kernel() {
        return;
    }
    let lab = up("", &UpOptions::default());
    on(&lab, "h1", "ping -c 1 -w 5 10.0.77.3");
    let programs = || on(&lab, "s2", "tc filter show dev s2-p0 ingress; ls /sys/class/net");
    assert!(programs().contains("s2-n0"));
    on(&lab, "s2", "pkill -TERM -f '[n]ode /run/lab s2'");
    let limit = Instant::now() + PATIENCE;
    while programs().contains("s2-n0") {
        assert!(Instant::now() < limit, "it ends");
        std::thread::sleep(Duration::from_millis(50));
    }
    let passes = || {
        let output = lab.command("h1", &["ping", "-c", "1", "-W", "1", "10.0.77.3"]);
        output.unwrap().output().unwrap().status.success()
    };
    // Its queues are removed first, and then the programs.
    while passes() {
        assert!(Instant::now() < limit, "nothing carries frames there");
    }
    assert!(!passes(), "nor later");
    assert_eq!(restarts(&lab, "s2"), 0);
    axon_lab::down(Some(lab.name())).unwrap();
}
