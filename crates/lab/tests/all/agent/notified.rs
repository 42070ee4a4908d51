//! Congestion notification: two hosts send as fast as they can over a link of half that rate. Its
//! congestion point slows them down through their agents, so that no sender is paused and nothing
//! is lost.

use super::udp::{LOSSLESS, send_into_h3};
use super::{Topology, agent, lost, of, requests, switch, up, wait_until};
use axon_node::telemetry::DcbxTelemetry;

/// Without notifications the 8.6 MB would fill the queue until senders are paused, at a quarter of
/// the pool each.
const DCB: &str = "  applications: [udp:4791=3]
  buffers: { reaction: 50ms, lossless_pool: 4MiB }
  congestion_notification:
    { priorities: [3], set_point: 30kB, defence: { h1: auto, h2: auto, h3: auto } }
  dcbx: {}
";
const RATE_BPS: u64 = 50_000_000;

pub fn sources_slow_down_to_what_a_link_takes() {
    let lab = up(&Topology::Dumbbell.with(DCB));
    let inside = |port: &&DcbxTelemetry| {
        port.defence.iter().any(|of| of.priority.value() == 3 && of.mode == "interior_ready")
    };
    let ready = || {
        let status = lab.status().expect("daemons answer");
        let ports = |name| of(&status, name).node.dcbx();
        let hosts = [ports("h1"), ports("h2")].concat();
        hosts.iter().chain(ports("s1").iter().take(2)).filter(inside).count() == 4
    };
    wait_until("hosts and switch know that both belong to the domain", ready);
    let (sent, [come]) = send_into_h3(&lab, [LOSSLESS]);
    let status = lab.status().expect("daemons answer");
    let points = ["h1", "h2"].map(|name| agent(&status, name).reaction_points[0]);
    let (cnms, rates) = (points.map(|point| point.cnms), points.map(|point| point.rate_bps));
    let s1 = switch(&status, "s1");
    let peak = s1.plane.memory.expect("it has pools").lossless.peak_bytes.0;
    println!("{come} of {sent}; CNMs {cnms:?}, rates {rates:?} b/s, at most {peak} bytes waited");
    assert_eq!((come, lost(&status)), (sent, 0), "{status:#?}");
    assert!(cnms.iter().all(|&cnms| cnms > 0), "{cnms:?}");
    // After its last notification a flow takes a minute to reach its full rate.
    assert!(rates.iter().all(|&rate| (1..RATE_BPS).contains(&rate)), "{rates:?}");
    for port in 0..2 {
        assert_eq!(requests(s1, port), 0, "nobody was paused: {s1:#?}");
    }
    axon_lab::down(Some(lab.name())).expect("it ends");
}
