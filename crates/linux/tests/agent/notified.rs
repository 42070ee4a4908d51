//! Congestion notification: two hosts send as fast as they can over a link that takes half of it.
//! Its congestion point slows them down by their agents, so that nobody has to be stopped and
//! nothing is lost.

use super::udp::{LOSSLESS, send_into_h3};
use super::{Topology, lost, of, up, wait_until};
use axon_linux::lab;
use serde_json::Value;

/// Without notifications the 8.6 MB would pile up until senders are stopped, at a quarter of the
/// pool each.
const DCB: &str = "  applications: [udp:4791=3]
  buffers: { reaction: 50ms, lossless_pool: 4MiB }
  congestion_notification:
    { priorities: [3], set_point: 30kB, defence: { h1: auto, h2: auto, h3: auto } }
  dcbx: {}
";
const RATE_BPS: u64 = 50_000_000;

pub fn sources_slow_down_to_what_a_link_takes() {
    let lab = up(&Topology::Dumbbell.with(DCB));
    let inside = |port: &Value| port["defence"]["3"] == "interior_ready";
    let ready = || {
        let status = lab.status().expect("daemons answer");
        let ports = |name| of(&status, name)["node"]["dcbx"].as_array().cloned();
        let hosts = ["h1", "h2"].map(|name| ports(name).unwrap_or_default());
        let s1 = ports("s1").unwrap_or_default();
        hosts.iter().flatten().chain(s1.iter().take(2)).filter(|port| inside(port)).count() == 4
    };
    wait_until("hosts and switch know that both belong to the domain", ready);
    let (sent, [come]) = send_into_h3(&lab, [LOSSLESS]);
    let status = lab.status().expect("daemons answer");
    let count = |value: &Value| value.as_u64().unwrap_or(0);
    let [h1, h2, s1] = ["h1", "h2", "s1"].map(|name| &of(&status, name)["node"]);
    let cnms = [h1, h2].map(|agent| count(&agent["cnms"][3]));
    let rates = [h1, h2].map(|agent| count(&agent["rates_bps"]["3"]));
    let peak = count(&s1["plane"]["memory"]["lossless"]["peak_bytes"]);
    println!("{come} of {sent}; CNMs {cnms:?}, rates {rates:?} b/s, at most {peak} bytes waited");
    assert_eq!((come, lost(&status)), (sent, 0), "{status:#?}");
    assert!(cnms.iter().all(|&cnms| cnms > 0), "{cnms:?}");
    // A flow takes a minute from its last notification to its full rate.
    assert!(rates.iter().all(|&rate| (1..RATE_BPS).contains(&rate)), "{rates:?}");
    for port in 0..2 {
        let told = &s1["plane"]["flow_control"][port]["requests"][3];
        assert_eq!(count(told), 0, "nobody was stopped: {s1:#}");
    }
    lab::down(Some(lab.name())).expect("it ends");
}
