//! Real hosts that send nothing by themselves, in a lab: others can reach them.
//!
//! The lab starts its parts from the program that calls it, so this test is a program of its own
//! and not run by libtest.

use crate::support::{Test, shell, state_root};
use axon_lab::{Family, Lab, UpOptions};
use axon_linux::status::NodeStatus;
use axon_node::telemetry::{ControllerCounters, NodeTelemetry};
use std::path::PathBuf;
use std::time::Duration;

pub const TESTS: &[Test] = &[
    (
        "addresses_that_have_never_sent_a_frame_answer_the_first_ping",
        addresses_that_have_never_sent_a_frame_answer_the_first_ping,
    ),
    ("the_fabrics_own_address_answers_ping", the_fabrics_own_address_answers_ping),
    ("hosts_reach_each_other_over_ipv6", hosts_reach_each_other_over_ipv6),
    (
        "hosts_with_fixed_addresses_of_both_families_have_them_when_the_lab_is_up",
        hosts_with_fixed_addresses_of_both_families_have_them_when_the_lab_is_up,
    ),
];

/// Three switches in a ring and four hosts with fixed addresses.
fn fabric_file() -> PathBuf {
    let text = "name: test-silent
topology:
  listed:
    switches: [s1, s2, s3]
    hosts:
      h1: { at: s1, ip: 10.0.77.1 }
      h2: { at: s2, ip: 10.0.77.2 }
      h3: { at: s3, ip: 10.0.77.3 }
      h4: { at: s3, ip: 10.0.77.4 }
    links: [[s1, s2], [s2, s3], [s3, s1]]
links: { rate: 100Mbps }
";
    let root = state_root();
    let path = root.with_extension("yaml");
    std::fs::write(&path, text).expect("a file");
    path
}

fn controller(lab: &Lab) -> ControllerCounters {
    let nodes = lab.status().expect("daemons answer");
    let of = |node: &NodeStatus| match &node.status()?.node {
        NodeTelemetry::Controller(controller) => Some(controller.counters),
        _ => None,
    };
    nodes.iter().find_map(of).expect("a controller")
}

fn addresses_that_have_never_sent_a_frame_answer_the_first_ping() {
    let (lab, _) =
        axon_lab::up(&fabric_file(), &UpOptions::default(), |_| ()).expect("it comes up");
    // A second address of a known host. The kernel does not announce it (arp_notify is off).
    shell(&lab, "h2", "ip address add 10.0.77.72/16 dev h2-p0");
    // An unknown host: another MAC, another address.
    shell(
        &lab,
        "h4",
        "ip address flush dev h4-p0 && ip link set h4-p0 address 02:00:00:00:77:44 \
         && ip address add 10.0.77.74/16 dev h4-p0",
    );
    assert_eq!(controller(&lab).seeks_found, 0);
    for address in ["10.0.77.72", "10.0.77.74"] {
        // One request of one host, without repetition.
        let text = shell(&lab, "h1", &format!("ping -c 1 -W 5 {address}"));
        println!("{}", text.lines().nth(1).unwrap_or_default());
    }
    let counters = controller(&lab);
    assert_eq!((counters.seeks, counters.seeks_found), (2, 2), "{counters:?}");
    // Frames of the silent host itself pass, too; a missing host is not found.
    shell(&lab, "h4", "ping -c 1 -W 5 10.0.77.72");
    shell(&lab, "h1", "! ping -c 1 -W 2 10.0.77.99");
    assert!(controller(&lab).seeks > 2);
    axon_lab::down(Some(lab.name())).expect("it ends");
}

fn the_fabrics_own_address_answers_ping() {
    let (lab, _) =
        axon_lab::up(&fabric_file(), &UpOptions::default(), |_| ()).expect("it comes up");
    let server = lab.fabric().expect("its file is there").dhcp.server;
    shell(&lab, "h3", &format!("ping -c 3 -i 0.2 -W 5 {server}"));
    shell(&lab, "h1", &format!("ping -c 1 -s 1400 -W 5 {server}"));
    axon_lab::down(Some(lab.name())).expect("it ends");
}

/// Switches IPv6 on at a host; labs leave it off.
fn switch_ipv6_on(lab: &Lab, host: &str) {
    shell(lab, host, &format!("echo 0 > /proc/sys/net/ipv6/conf/{host}-p0/disable_ipv6"));
}

/// Waits until the link-local address of a host is valid, and returns it.
fn link_local(lab: &Lab, host: &str) -> String {
    let device = format!("{host}-p0");
    let state = valid(lab, host, "scope link");
    let address = state.split_whitespace().skip_while(|word| *word != "inet6").nth(1);
    let address = address.and_then(|address| address.split('/').next());
    format!("{}%{device}", address.unwrap_or_else(|| panic!("no address: {state}")))
}

/// Returns the IPv6 addresses of a host's device once duplicate address detection is over.
fn valid(lab: &Lab, host: &str, which: &str) -> String {
    let show = format!("ip -6 -o address show dev {host}-p0 {which}");
    // Detection takes a second and a random delay of up to one more (RFC 4862).
    let line = format!(
        "for n in $(seq 80); do {show} | grep -q . && ! {show} tentative | grep -qv dadfailed \
         && break; sleep 0.1; done; {show}"
    );
    shell(lab, host, &line)
}

fn hosts_reach_each_other_over_ipv6() {
    let (lab, _) =
        axon_lab::up(&fabric_file(), &UpOptions::default(), |_| ()).expect("it comes up");
    let hosts = ["h1", "h2", "h3"];
    // On all at once, since each waits for a second or two.
    hosts.into_iter().for_each(|host| switch_ipv6_on(&lab, host));
    let local = hosts.map(|host| link_local(&lab, host));
    let of_h2 = local[1].split('%').next().unwrap_or_default();
    shell(&lab, "h1", &format!("ping -6 -c 1 -W 5 {of_h2}%h1-p0"));
    // Addresses from which their hosts have never sent.
    for (host, last) in [("h1", 1), ("h2", 2)] {
        let options = "nodad";
        shell(&lab, host, &format!("ip address add 2001:db8::{last}/64 dev {host}-p0 {options}"));
    }
    shell(&lab, "h1", "ping -6 -c 1 -W 5 2001:db8::2");
    shell(&lab, "h2", "ping -6 -c 3 -i 0.2 -W 5 2001:db8::1");
    // The first holder keeps its address, and the kernel of the second detects it.
    shell(&lab, "h3", "ip address add 2001:db8::2/64 dev h3-p0");
    let of_h3 = valid(&lab, "h3", "scope global");
    assert!(of_h3.contains("dadfailed"), "{of_h3}");
    shell(&lab, "h1", "ping -6 -c 1 -W 5 2001:db8::2");
    // A free address becomes the host's own.
    shell(&lab, "h3", "ip address add 2001:db8::3/64 dev h3-p0");
    let of_h3 = valid(&lab, "h3", "to 2001:db8::3");
    assert!(!of_h3.contains("dadfailed"), "{of_h3}");
    shell(&lab, "h1", "ping -6 -c 1 -W 5 2001:db8::3");
    axon_lab::down(Some(lab.name())).expect("it ends");
}

fn hosts_with_fixed_addresses_of_both_families_have_them_when_the_lab_is_up() {
    let path = fabric_file();
    let text = std::fs::read_to_string(&path).expect("it was written");
    let fixed =
        |n| (format!("ip: 10.0.77.{n} "), format!("ip: 10.0.77.{n}, ip6: \"2001:db8::{n}\" "));
    let text = (1..=4).map(fixed).fold(text, |text, (old, new)| text.replace(&old, &new));
    std::fs::write(&path, text).expect("a file");
    let (lab, report) = axon_lab::up(&path, &UpOptions::default(), |_| ()).expect("it comes up");
    assert!(report.unknown.is_empty(), "the controller knows all addresses: {report:?}");
    let fabric = lab.fabric().expect("its file is there");
    let pairs: Vec<(usize, usize)> =
        (0..4).flat_map(|from| (0..4).map(move |to| (from, to))).filter(|(a, b)| a != b).collect();
    for family in [Family::V4, Family::V6] {
        let pings = lab.ping_over(family, &fabric, &pairs, Duration::from_secs(10), || ());
        let pings = pings.expect("hosts can ping");
        assert!(pings.iter().all(|ping| ping.rtt_ns.is_some()), "{family:?}: {pings:?}");
        let is_v6 = family == Family::V6;
        assert!(pings.iter().all(|ping| ping.address.is_some_and(|ip| ip.is_ipv6() == is_v6)));
    }
    // A cut link removes no address.
    lab.set_link("h1,s1", false).expect("there is this link");
    lab.set_link("h1,s1", true).expect("there is this link");
    // The kernel repeats duplicate address detection when the link is back, and waits for that.
    assert!(valid(&lab, "h1", "scope global").contains("2001:db8::1/64"));
    shell(&lab, "h1", "ping -6 -c 1 -W 5 2001:db8::4 || ping -6 -c 5 -i 0.5 -W 1 2001:db8::4");
    axon_lab::down(Some(lab.name())).expect("it ends");
}
