//! UDP: all datagrams in a lossless class arrive, although two hosts send as fast as they can over
//! one link.

use super::{Topology, finish, of, requests, switch, up, wait_for_sockets};
use crate::support::part;
use axon_lab::Lab;
use axon_node::Drop;
use nix::sys::socket::{setsockopt, sockopt};
use std::net::UdpSocket;
use std::process::{Child, ExitCode};
use std::time::Duration;

const DCB: &str = "  applications: [udp:4791=3]
  buffers: { reaction: 50ms, lossy_pool: 64KiB }
";

/// Datagrams that each sender sends.
const COUNT: u64 = 3_000;
/// Payload of each datagram, in bytes.
const BYTES: usize = 1_400;
/// UDP ports: one with the rule for the lossless class, and one without a rule.
pub const LOSSLESS: &str = "4791";
const LOSSY: &str = "5001";
/// A receiver that receives nothing for this time has received all.
const SILENCE: Duration = Duration::from_secs(3);

/// Sends as fast as the kernel permits, like a program that is unaware of the fabric.
pub fn send(to: &str) -> ExitCode {
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
    socket.connect(to).expect("an address");
    let payload = [0; BYTES];
    let sent = (0..COUNT).filter(|_| socket.send(&payload).is_ok()).count();
    println!("{sent}");
    ExitCode::SUCCESS
}

pub fn receive(port: &str) -> ExitCode {
    let socket = UdpSocket::bind(format!("0.0.0.0:{port}")).expect("a socket");
    // Drops by the kernel while this program is not scheduled are unrelated to the fabric.
    let size = 64 << 20;
    setsockopt(&socket, sockopt::RcvBufForce, &size)
        .or_else(|_| setsockopt(&socket, sockopt::RcvBuf, &size))
        .expect("a buffer");
    println!("ready");
    let (mut bytes, mut count) = ([0; 2 * BYTES], 0);
    // The first datagram may take long; after that, silence marks the end.
    while socket.recv(&mut bytes).is_ok() {
        count += 1;
        socket.set_read_timeout(Some(SILENCE)).expect("it is not zero");
    }
    println!("{count}");
    ExitCode::SUCCESS
}

/// Starts this program in another role on a host.
fn start(lab: &Lab, host: &str, words: [&str; 2]) -> Child {
    super::start(lab, host, &part("agent", words))
}

/// Returns the last number that a program has printed.
fn number(child: Child) -> u64 {
    finish(child).lines().last().and_then(|line| line.parse().ok()).expect("a number")
}

/// h1 and h2 send as fast as they can to each of these ports of h3; returns the number sent to one,
/// and the numbers received at each.
pub fn send_into_h3<const PORTS: usize>(lab: &Lab, ports: [&str; PORTS]) -> (u64, [u64; PORTS]) {
    let receivers = ports.map(|port| start(lab, "h3", ["receive", port]));
    wait_for_sockets(lab, "h3", "/proc/net/udp", &ports);
    let senders = ["h1", "h2"]
        .map(|host| ports.map(|port| start(lab, host, ["send", &format!("10.0.77.3:{port}")])));
    for sender in senders.into_iter().flatten() {
        assert_eq!(number(sender), COUNT, "no program saw an error");
    }
    (2 * COUNT, receivers.map(number))
}

pub fn two_hosts_into_one() {
    let lab = up(&Topology::Star.with(DCB));
    let (sent, [lossless, lossy]) = send_into_h3(&lab, [LOSSLESS, LOSSY]);
    let status = lab.status().expect("daemons answer");
    println!("of {sent} each: lossless {lossless}, lossy {lossy}");
    assert_eq!(lossless, sent, "{status:#?}");
    assert!(lossy < sent, "two into one: {lossy} of {sent}");
    let (h1, s1) = (of(&status, "h1"), switch(&status, "s1"));
    assert!(h1.ports[0].counters.host_pauses > 0, "{h1:#?}");
    assert!(requests(s1, 0) > 0, "{s1:#?}");
    assert_eq!(s1.plane.total.dropped(Drop::HeadroomFull), 0, "{s1:#?}");
    axon_lab::down(Some(lab.name())).expect("it ends");
}
