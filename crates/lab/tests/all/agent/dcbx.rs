//! DCBX: hosts whose agents start without lossless priorities. Their switch advertises them, and
//! then nothing is lost. Other hosts have agents that tag every frame.

use super::udp::{LOSSLESS, send_into_h3};
use super::{Topology, agent, lost, requests, switch, up, wait_until};
use axon_node::Drop;
use axon_node::telemetry::Source;

const DCB: &str = "  applications: [udp:4791=3]
  buffers: { reaction: 50ms, lossy_pool: 64KiB }
  dcbx: {}
";

pub fn priorities_of_the_switch_are_taken() {
    let lab = up(&Topology::Star.with(DCB));
    let (pfc, rules) = ("3", "udp:4791=3 default=0");
    // Agents and their switch have exchanged DCBX by now, or do within the second.
    let configured = |name| {
        let status = lab.status().expect("daemons answer");
        let agent = agent(&status, name);
        let from_peer = agent.dcbx.as_ref().is_some_and(|port| port.pfc_from == Source::Peer);
        from_peer && agent.pfc.to_string() == pfc && agent.rules == rules
    };
    wait_until("the agents know", || ["h1", "h2", "h3"].into_iter().all(configured));
    let (sent, [come]) = send_into_h3(&lab, [LOSSLESS]);
    let status = lab.status().expect("daemons answer");
    println!("lossless by DCBX: {come} of {sent}");
    assert_eq!((come, lost(&status)), (sent, 0), "{status:#?}");
    let s1 = switch(&status, "s1");
    assert!(requests(s1, 0) > 0, "{s1:#?}");
    axon_lab::down(Some(lab.name())).expect("it ends");
}

pub fn hosts_whose_every_frame_is_tagged_find_each_other() {
    for dcbx in ["", "  dcbx: { willing: pfc }\n"] {
        let dcb = format!("  applications: [default=3]\n  buffers: {{ reaction: 50ms }}\n{dcbx}");
        let lab = up(&Topology::Dumbbell.with(&dcb));
        let status = lab.status().expect("daemons answer");
        assert_eq!(agent(&status, "h1").rules, "default=3");
        let s1 = switch(&status, "s1");
        assert_eq!(s1.plane.total.dropped(Drop::Broadcast), 0, "{s1:#?}");
        axon_lab::down(Some(lab.name())).expect("it ends");
    }
}
