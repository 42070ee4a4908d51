//! A torus of 25 switches and 50 hosts that get their addresses by DHCP: every host pings
//! every other, and still does when ten random links have been cut.
//!
//! `AXON_SEED=n` cuts the links of that seed.

use crate::support::{Test, needs, state_root};
use axon_fabric::model::{Fabric, Link};
use axon_lab::{Lab, UpOptions};
use oorandom::Rand32;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Links that are cut.
const CUTS: usize = 10;
/// Script of the DHCP client: it sets the address of the lease and nothing else.
const SCRIPT: &str = "#!/bin/sh\n\
    [ \"$1\" = bound ] && exec ip addr replace \"$ip/$mask\" dev \"$interface\"\n\
    exit 0\n";

pub const TESTS: &[Test] = &[("all_pairs_ping_on_a_torus_that_loses_ten_links", torus)];

fn torus() {
    let may = needs::root("grow the machine's ARP table, which 50 hosts overflow");
    if !may || !needs::programs(&["udhcpc"]) {
        return;
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/torus5x5.yaml");
    let started = Instant::now();
    let (lab, report) =
        axon_lab::up(&file, &UpOptions::default(), |_| ()).expect("the lab comes up");
    assert!(report.missing.is_empty(), "without controller: {:?}", report.missing);
    let fabric = axon_fabric::load(&file).expect("it was loaded before");
    let addresses = lease_all(&lab, &fabric);
    assert_eq!(unanswered(&lab, &fabric, &addresses), [""; 0]);
    println!("all pairs after {:.1} s", started.elapsed().as_secs_f32());
    let seed = seed();
    println!("AXON_SEED={seed} cuts these links again");
    for link in cuts(&fabric, seed) {
        let port = format!("{}-{}", fabric.switches[link.a.switch].name, link.a.port);
        lab.set_port(&port, false).expect("the switch has this port");
    }
    assert_eq!(unanswered(&lab, &fabric, &addresses), [""; 0], "AXON_SEED={seed}");
    axon_lab::down(Some(lab.name())).expect("it ends");
}

fn seed() -> u64 {
    let given = std::env::var("AXON_SEED").ok().and_then(|text| text.parse().ok());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    given.unwrap_or(now.as_secs())
}

/// Every host requests an address; returns all of them.
fn lease_all(lab: &Lab, fabric: &Fabric) -> Vec<String> {
    // Not below /run, of which a lab has its own.
    let root = state_root();
    let script = root.with_extension("sh");
    std::fs::write(&script, SCRIPT).expect("a file");
    std::fs::set_permissions(&script, Permissions::from_mode(0o755)).expect("it is ours");
    let client = format!("udhcpc -qnf -t 20 -T 1 -s {}", script.display());
    on_all(lab, fabric, |host| format!("{client} -i {host}-p0"));
    let shown = on_all(lab, fabric, |host| format!("ip -4 -o addr show dev {host}-p0"));
    let address = |text: &String| Some(text.split_once("inet ")?.1.split_once('/')?.0.to_owned());
    shown.iter().map(|text| address(text).expect("a lease")).collect()
}

/// Pings from every host to every other; returns the pairs that failed.
fn unanswered(lab: &Lab, fabric: &Fabric, addresses: &[String]) -> Vec<String> {
    let all = addresses.join(" ");
    // One request is enough if the route exists; a missing route may take more.
    let line = format!(
        "for a in {all}; do \
         ping -q -c 1 -W 2 $a >/dev/null || ping -q -c 5 -i 0.2 -w 10 $a >/dev/null || echo $a; \
         done"
    );
    let failed = on_all(lab, fabric, |_| line.clone());
    let named = failed.iter().zip(&fabric.hosts);
    named
        .flat_map(|(text, host)| {
            text.lines().map(|a| format!("{} to {a}", host.name)).collect::<Vec<_>>()
        })
        .collect()
}

/// Runs a shell line on all hosts at once; returns their outputs. A line that fails, or was never
/// run, fails the test.
fn on_all(lab: &Lab, fabric: &Fabric, line: impl Fn(&str) -> String) -> Vec<String> {
    let start = |name: &str| {
        let line = format!("{{ {}; }} && echo done", line(name));
        let mut command = lab.command(name, &["sh", "-c", &line]).expect("a command");
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    };
    let hosts = || fabric.hosts.iter().map(|host| host.name.as_str());
    let children: Vec<Child> = hosts().map(start).collect();
    let outputs = children.into_iter().map(|child| child.wait_with_output().expect("it ends"));
    let text = |(output, host): (Output, &str)| {
        let printed = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        let whole = printed.strip_suffix("done\n").filter(|_| output.status.success());
        let Some(whole) = whole else { panic!("{host}: {}: {printed}{errors}", output.status) };
        whole.to_owned()
    };
    outputs.zip(hosts()).map(text).collect()
}

/// Ten random links whose loss leaves the switches connected.
fn cuts(fabric: &Fabric, seed: u64) -> Vec<Link> {
    let mut random = Rand32::new(seed);
    let mut links = fabric.links.clone();
    let mut cut = Vec::new();
    while cut.len() < CUTS {
        let index = random.rand_range(0..links.len() as u32) as usize;
        let link = links.swap_remove(index);
        if connected(fabric.switches.len(), &links) {
            cut.push(link);
        } else {
            links.push(link);
        }
    }
    cut
}

fn connected(switches: usize, links: &[Link]) -> bool {
    let mut reached = vec![false; switches];
    reached[0] = true;
    for _ in 0..switches {
        for link in links {
            let either = reached[link.a.switch] || reached[link.b.switch];
            reached[link.a.switch] = either;
            reached[link.b.switch] = either;
        }
    }
    reached.into_iter().all(|reached| reached)
}
