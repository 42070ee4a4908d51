//! TCP: two hosts send to a third, each with an unmodified `iperf3`, first in a lossless class and
//! then in a lossy one. The retransmissions of TCP show the losses on the path.

use super::{Topology, finish, lost, requests, start, switch, up, wait_for_sockets};
use crate::support::needs;
use axon_lab::Lab;
use serde_json::Value;

const DCB: &str = "  applications: [tcp:5201=3, tcp:5202=3]
  buffers: { reaction: 50ms, lossless_pool: 64KiB, lossy_pool: 64KiB }
";
/// Ports with a rule, and ports without.
const LOSSLESS: [&str; 2] = ["5201", "5202"];
const LOSSY: [&str; 2] = ["5301", "5302"];
/// Amount of data that each sender sends.
const BYTES: &str = "4M";

pub fn two_hosts_into_one() {
    if !needs::programs(&["iperf3"]) {
        return;
    }
    let lab = up(&Topology::Star.with(DCB));
    let lossless = [incast(&lab, LOSSLESS), lost(&lab.status().expect("daemons answer"))];
    let lossy = [incast(&lab, LOSSY), lost(&lab.status().expect("daemons answer"))];
    println!("sent twice and lost: lossless {lossless:?}, lossy {lossy:?}");
    let status = lab.status().expect("daemons answer");
    let s1 = switch(&status, "s1");
    assert!(requests(s1, 0) > 0 && requests(s1, 1) > 0, "{s1:#?}");
    assert_eq!(lossless[1], 0, "{status:#?}");
    assert!(lossy[1] > 0 && lossy[0] > 0, "two into one: {lossy:?}");
    // On a machine that suspends processes for a while, TCP retransmits segments that were not
    // lost.
    assert!(lossless[0] * 10 <= lossy[0], "{lossless:?} {lossy:?}");
    axon_lab::down(Some(lab.name())).expect("it ends");
}

/// h1 and h2 send to these ports of h3 at the same time; returns their number of retransmissions.
fn incast(lab: &Lab, ports: [&str; 2]) -> u64 {
    let server = |port| start(lab, "h3", &["iperf3", "-s", "-4", "-1", "-p", port]);
    let servers = ports.map(server);
    wait_for_sockets(lab, "h3", "/proc/net/tcp", &ports);
    let client = |host, port| {
        start(lab, host, &["iperf3", "-c", "10.0.77.3", "-p", port, "-n", BYTES, "-J"])
    };
    let clients = [client("h1", ports[0]), client("h2", ports[1])];
    let retransmits = clients.map(|client| {
        let report: Value = serde_json::from_str(&finish(client)).expect("iperf3 speaks JSON");
        report["end"]["sum_sent"]["retransmits"].as_u64().expect("Linux counts them")
    });
    servers.into_iter().for_each(|server| drop(finish(server)));
    retransmits.iter().sum()
}
