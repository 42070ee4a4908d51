//! Agents at the edges of hosts: what unmodified programs send in a lossless class arrives, all
//! of it, although two hosts send as fast as they can into the link of one.

mod support;

use axon_linux::lab::{self, Lab, UpOptions};
use nix::sys::socket::{setsockopt, sockopt};
use serde_json::Value;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Output, Stdio};
use std::time::Duration;

/// Datagrams that each sender sends.
const COUNT: u64 = 3_000;
/// Bytes of each.
const BYTES: usize = 1_400;
/// UDP ports: of the rule for the lossless class, and of none.
const LOSSLESS: &str = "4791";
const LOSSY: &str = "5001";
/// A receiver that hears nothing for so long has heard all.
const SILENCE: Duration = Duration::from_secs(3);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["send", to] => send(to),
        ["receive", port] => receive(port),
        _ => support::run(&[(
            "two_hosts_into_one_lose_nothing_in_a_lossless_class",
            two_hosts_into_one_lose_nothing,
        )]),
    }
}

/// As a program that knows nothing of any of this: sends as fast as the kernel lets it.
fn send(to: &str) -> ExitCode {
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
    socket.connect(to).expect("an address");
    let payload = [0; BYTES];
    let sent = (0..COUNT).filter(|_| socket.send(&payload).is_ok()).count();
    println!("{sent}");
    ExitCode::SUCCESS
}

fn receive(port: &str) -> ExitCode {
    let socket = UdpSocket::bind(format!("0.0.0.0:{port}")).expect("a socket");
    // What the kernel drops because this program does not run says nothing about the fabric.
    let size = 64 << 20;
    setsockopt(&socket, sockopt::RcvBufForce, &size)
        .or_else(|_| setsockopt(&socket, sockopt::RcvBuf, &size))
        .expect("a buffer");
    println!("ready");
    let (mut bytes, mut count) = ([0; 2 * BYTES], 0);
    // The first may take long; after that silence tells the end.
    while socket.recv(&mut bytes).is_ok() {
        count += 1;
        socket.set_read_timeout(Some(SILENCE)).expect("it is not zero");
    }
    println!("{count}");
    ExitCode::SUCCESS
}

fn fabric_file() -> PathBuf {
    let text = "name: test-agent
topology:
  listed:
    switches: [s1]
    hosts:
      h1: { at: s1, ip: 10.0.77.1 }
      h2: { at: s1, ip: 10.0.77.2 }
      h3: { at: s1, ip: 10.0.77.3 }
    links: []
links: { rate: 50Mbps }
dcb:
  classes:
    - { priorities: [0, 1, 2, 4, 5, 6], ets: 50 }
    - { priorities: [3], ets: 50, lossless: true }
    - { priorities: [7] }
  applications: [udp:4791=3]
  buffers: { reaction: 50ms, lossy_pool: 64KiB }
";
    let root = PathBuf::from(std::env::var_os(lab::STATE_VARIABLE).expect("it is set"));
    let path = root.with_extension("yaml");
    std::fs::write(&path, text).expect("a file");
    path
}

/// This program in another part, on a host.
fn start(lab: &Lab, host: &str, arguments: &[&str]) -> Child {
    let program = std::env::current_exe().expect("a running program has a path");
    let words = [&[program.to_str().expect("plain text")], arguments].concat();
    let mut command: Command = lab.command(host, &words).expect("a command");
    command.stdout(Stdio::piped()).spawn().expect("it starts")
}

fn number(output: Output) -> u64 {
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().last().and_then(|line| line.parse().ok()).expect("a number")
}

fn finish(child: Child) -> u64 {
    number(child.wait_with_output().expect("it ends"))
}

fn of<'a>(status: &'a [Value], name: &str) -> &'a Value {
    status.iter().find(|status| status["name"] == name).unwrap_or(&Value::Null)
}

fn two_hosts_into_one_lose_nothing() {
    let (lab, report) = lab::up(&fabric_file(), &UpOptions::default(), |_| ()).expect("it is up");
    assert!(report.missing.is_empty(), "without controller: {:?}", report.missing);
    for host in ["h1", "h2"] {
        let mut ping = lab.command(host, &["ping", "-c1", "-W5", "10.0.77.3"]).expect("a command");
        let output = ping.output().expect("it starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    let receivers = [LOSSLESS, LOSSY].map(|port| start(&lab, "h3", &["receive", port]));
    wait_for_sockets(&lab);
    let senders = ["h1", "h2"].map(|host| {
        [LOSSLESS, LOSSY].map(|port| start(&lab, host, &["send", &format!("10.0.77.3:{port}")]))
    });
    let [[a, b], [c, d]] = senders.map(|both| both.map(finish));
    let [lossless, lossy] = receivers.map(finish);
    let status = lab.status().expect("daemons answer");
    println!("lossless: {lossless} of {}, lossy: {lossy} of {}", a + c, b + d);
    assert_eq!((a, b, c, d), (COUNT, COUNT, COUNT, COUNT), "no program saw an error");
    assert_eq!(lossless, a + c, "{status:#?}");
    assert!(lossy < b + d, "two into one: {lossy} of {}", b + d);
    let [h1, s1] = [of(&status, "h1"), of(&status, "s1")];
    assert!(h1["ports"][0]["counters"]["host_stops"].as_u64() > Some(0), "{h1:#}");
    let requests = s1["node"]["plane"]["flow_control"][0]["requests"][3].as_u64();
    assert!(requests > Some(0), "{s1:#}");
    assert!(s1["node"]["plane"]["drops"]["headroom_full"].is_null(), "{s1:#}");
    lab::down(Some(lab.name())).expect("it ends");
}

/// Until both receivers have a socket.
fn wait_for_sockets(lab: &Lab) {
    let listens = |port: &str| {
        let mut command = lab.command("h3", &["cat", "/proc/net/udp"]).expect("a command");
        let text = command.output().expect("it starts").stdout;
        let port: u16 = port.parse().expect("a number");
        String::from_utf8_lossy(&text).contains(&format!(":{port:04X} "))
    };
    while ![LOSSLESS, LOSSY].into_iter().all(listens) {
        std::thread::yield_now();
    }
}
