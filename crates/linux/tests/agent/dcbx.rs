//! DCBX: hosts whose agents are not told at their start which frames are lossless. Their switch
//! tells them; then nothing is lost there.

use super::udp::{LOSSLESS, send_into_h3};
use super::{Topology, lost, of, up, wait_until};
use axon_linux::lab;

const DCB: &str = "  applications: [udp:4791=3]
  buffers: { reaction: 50ms, lossy_pool: 64KiB }
  dcbx: {}
";

pub fn what_the_switch_says_is_obeyed() {
    let lab = up(&Topology::Star.with(DCB));
    let (pfc, rules) = ("3", "udp:4791=3 default=0");
    // Agents and their switch have met by now, or do within the second.
    let told = |name| {
        let status = lab.status().expect("daemons answer");
        let node = &of(&status, name)["node"];
        node["pfc"] == pfc && node["rules"] == rules && node["dcbx"][0]["pfc_from"] == "peer"
    };
    wait_until("the agents know", || ["h1", "h2", "h3"].into_iter().all(told));
    let (sent, [come]) = send_into_h3(&lab, [LOSSLESS]);
    let status = lab.status().expect("daemons answer");
    println!("lossless by DCBX: {come} of {sent}");
    assert_eq!((come, lost(&status)), (sent, 0), "{status:#?}");
    let s1 = of(&status, "s1");
    let requests = s1["node"]["plane"]["flow_control"][0]["requests"][3].as_u64();
    assert!(requests > Some(0), "{s1:#}");
    lab::down(Some(lab.name())).expect("it ends");
}
