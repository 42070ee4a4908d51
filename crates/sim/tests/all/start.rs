//! Traffic starts when the network can carry it, and faults count from their stated origin.

use crate::common::fabric;
use axon_fabric::model::Fabric;
use axon_sim::run::{Options, Report, run};
use axon_wire::Span;

/// The shipped scenario in which every host of a fat tree sends to one other, on this network.
fn permutation(network: &str) -> Fabric {
    let text = include_str!("../../../../scenarios/permutation.yaml");
    fabric(&format!("{text}network: {network}\n"))
}

/// Asserts that every flow has sent for all of its two milliseconds and has received most of it.
fn assert_flows(report: &Report, network: &str) {
    assert!(report.passed(), "{network}: {:?} {:?}", report.silent, report.unaccounted);
    assert!(report.warnings.is_empty(), "{network}: {:?}", report.warnings);
    assert!(!report.flows.is_empty());
    for flow in &report.flows {
        // 3 Gb/s for 2 ms in packets of 1500 bytes; the first may wait for address resolution.
        assert!(flow.sent_packets > 400, "{network}: {flow:?}");
        assert!(flow.received_packets > 0, "{network}: {flow:?}");
    }
}

#[test]
fn a_permutation_flows_on_every_network() {
    for network in ["axon", "portland", "ecmp"] {
        assert_flows(&run(&permutation(network), Options::default()), network);
    }
    // A tree lacks the capacity for all: most is dropped, but every host sends.
    let report = run(&permutation("ethernet"), Options::default());
    assert!(report.passed() && report.warnings.is_empty(), "{:?}", report.warnings);
    assert!(report.flows.iter().all(|flow| flow.sent_packets > 0), "{:?}", report.flows);
    let received: u64 = report.flows.iter().map(|flow| flow.received_packets).sum();
    assert!(received > 400, "{received}");
}

const FIXED: &str = "name: t
topology:
  listed:
    switches: [s1, s2, s3]
    hosts: {h1: {at: s1, ip: 10.0.0.20}, h2: {at: s3, ip: 10.0.0.21}}
    links: [[s1, s2], [s2, s3]]
links: {rate: 1Gbps}
traffic: [{udp: {rate: 100Mbps}, pairs: [[h1, h2]], stop: 4ms}]
";

#[test]
fn hosts_with_fixed_addresses_wait_for_the_network_too() {
    let report = run(&fabric(FIXED), Options::default());
    assert!(report.passed() && report.warnings.is_empty(), "{report:?}");
    let flow = &report.flows[0];
    assert!(flow.sent_packets >= 30 && flow.lost_packets == Some(0), "{flow:?}");
    assert!(report.boot_ns > 0);
}

#[test]
fn traffic_that_could_not_begin_fails_the_run_with_words() {
    let cut = "faults: [{at: 0s, silent: [s1, s2]}]\n";
    let options = Options { boot: Span::from_millis(20), ..Options::default() };
    let report = run(&fabric(FIXED), options);
    assert!(!report.passed());
    assert!(report.silent[0].contains("sent nothing in"), "{:?}", report.silent);
    assert!(report.warnings[0].contains("not ready after"), "{:?}", report.warnings);
    // Hosts that are cut off from each other cause only a message.
    let report = run(&fabric(&format!("{FIXED}{cut}")), Options::default());
    assert!(report.flows[0].received_packets == 0);
}

#[test]
fn a_fault_after_the_start_hits_the_traffic_and_the_run_lasts_until_all_is_over() {
    let faults = "faults: [{after_start: 2ms, down: [s1, s2]}, {after_start: 900ms, up: [s1, s2]}]";
    let report = run(&fabric(&format!("{FIXED}{faults}\n")), Options::default());
    let flow = &report.flows[0];
    // Datagrams after the cut were delayed until the repair.
    let latency = flow.latency.unwrap();
    assert!(latency.min_ns < 1_000_000 && latency.max_ns > 800_000_000, "{flow:?}");
    assert!(report.simulated_ns > report.boot_ns + 900_000_000, "{report:?}");
    assert!(report.warnings.is_empty(), "{:?}", report.warnings);
    let options = Options { duration: Some(Span::from_millis(10)), ..Options::default() };
    let report = run(&fabric(&format!("{FIXED}{faults}\n")), options);
    assert!(report.warnings[0].starts_with("1 of 2 faults were not reached"), "{report:?}");
}
