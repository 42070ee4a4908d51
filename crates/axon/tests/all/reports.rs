//! Reports of `axon sim` about unfinished flows, datagrams lost with their link, and hosts without
//! an address.

use crate::common::{Folder, axon, failed, good, text};
use serde_json::Value;

const LINE: &str = "name: a\ntopology: {line: {switches: 3, hosts_per_switch: 1}}\n";
const CUT: &str = "faults: [{after_start: 10ms, down: [s2, s3]}]\n";

fn fabric(folder: &Folder, traffic: &str, rest: &str) -> String {
    folder.file("a.yaml", format!("{LINE}traffic: [{traffic}]\n{rest}"))
}

fn report(file: &str, more: &[&str]) -> (Option<i32>, Value) {
    let output = axon(&[&["sim", file, "--json", "-"], more].concat());
    (output.status.code(), serde_json::from_str(text(&output.stdout)).unwrap())
}

#[test]
fn a_stream_that_is_cut_off_is_listed_and_counted_and_fails_the_run() {
    let folder = Folder::new("reports-cut");
    let csv = folder.path("csv");
    for (tcp, of) in [("{bytes: 100MB}", " of 100000000 bytes received"), ("{}", " bytes received")]
    {
        let file = fabric(&folder, &format!("{{tcp: {tcp}, from: h1, to: h3}}"), CUT);
        let output = axon(&["sim", &file, "--csv", &csv]);
        assert!(failed(&output).contains("1 of 1 flows did not come to their end"), "{output:?}");
        let said = text(&output.stdout);
        assert!(said.contains("\nunfinished: 1 of 1 flows\n"), "{said}");
        let line = said.lines().find(|line| line.starts_with("tcp1 from h1 to h3: ")).unwrap();
        assert!(line.contains(of) && line.contains(", the last at "), "{line}");
        let rows = folder.read("csv/flows.csv");
        assert!(rows.lines().all(|row| row.ends_with(",unfinished") || row.ends_with(",true")));
        let (status, report) = report(&file, &[]);
        assert_eq!((status, &report["flows"][0]["unfinished"]), (Some(1), &true.into()));
        assert_eq!(report["unfinished"], serde_json::json!([line]));
    }
}

#[test]
fn a_stream_that_goes_on_for_longer_than_a_second_comes_to_its_end() {
    let folder = Folder::new("reports-long");
    let slow = "links: {rate: 1Mbps}\n";
    let traffic = "{tcp: {bytes: 400kB}, from: h1, to: h3}";
    let file = fabric(&folder, traffic, slow);
    let (status, whole) = report(&file, &[]);
    let flow = &whole["flows"][0];
    assert_eq!((status, &flow["received_bytes"]), (Some(0), &400_000.into()), "{whole}");
    assert_eq!((&flow["completed"], &flow["unfinished"]), (&1.into(), &false.into()));
    // A run that is ended earlier reports unfinished flows.
    let (status, part) = report(&file, &["--duration", "100ms"]);
    assert_eq!((status, &part["flows"][0]["unfinished"]), (Some(1), &true.into()), "{part}");
    // A flow with a stop time is finished at that time.
    let stopped = "{tcp: {bytes: 400kB}, from: h1, to: h3, stop: 500ms}";
    let (status, stopped) = report(&fabric(&folder, stopped, slow), &[]);
    assert_eq!((status, &stopped["flows"][0]["unfinished"]), (Some(0), &false.into()));
}

/// Returns a pcap file with two frames from `h1` to `h3`, 30 seconds apart.
fn capture() -> Vec<u8> {
    let frame = [&[2; 12][..], &[8, 0, 0x45, 0], &[0; 44]].concat();
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut file: Vec<u8> = words(&[0xa1b2_c3d4, 2 | 4 << 16, 0, 0, 65_535, 1]);
    for seconds in [0, 30] {
        file.extend::<Vec<u8>>(words(&[seconds, 0, frame.len() as u32, frame.len() as u32]));
        file.extend(&frame);
    }
    file
}

#[test]
fn a_flow_that_waits_for_its_own_schedule_is_not_given_up() {
    let folder = Folder::new("reports-pauses");
    std::fs::write(folder.path("slow.pcap"), capture()).unwrap();
    for traffic in [
        "{arp: {pattern: random, per_host: 2, interval: 15s}}",
        "{incast: {bytes: 1KiB, rounds: 2, think: 15s}, to: h1}",
        "{request_response: {count: 2, think: 15s}, from: h1, to: h3}",
        "{udp: {rate: 500bps, payload: 1400, count: 2}, from: h1, to: h3}",
        "{ping: {count: 2, interval: 15s}, from: h1, to: h3}",
        "{replay: {file: slow.pcap}, from: h1, to: h3}",
    ] {
        let (status, report) = report(&fabric(&folder, traffic, ""), &[]);
        let flow = &report["flows"][0];
        assert_eq!((status, &flow["unfinished"]), (Some(0), &false.into()), "{traffic}: {flow}");
    }
}

#[test]
fn a_ping_sends_all_its_requests_and_waits_for_their_replies() {
    let folder = Folder::new("reports-pings");
    let file = fabric(&folder, "{ping: {}, from: h1, to: h3}", "links: {latency: 20ms}\n");
    let (status, whole) = report(&file, &[]);
    let flow = &whole["flows"][0];
    assert_eq!((status, &flow["sent_packets"]), (Some(0), &10.into()), "{flow}");
    assert_eq!(flow["missing_packets"], 0, "{flow}");
    // With all replies in, nothing is left to wait for.
    let short = "{ping: {count: 3, interval: 1ms}, from: h1, to: h3}";
    let (status, short) = report(&fabric(&folder, short, ""), &["--duration", "500ms"]);
    assert_eq!((status, &short["flows"][0]["unfinished"]), (Some(0), &false.into()), "{short}");
    let file = fabric(&folder, "{ping: {}, from: h1, to: h3}", "links: {latency: 20ms}\n");
    let (status, part) = report(&file, &["--duration", "3s"]);
    assert_eq!((status, &part["flows"][0]["unfinished"]), (Some(1), &true.into()), "{part}");
}

#[test]
fn datagrams_that_were_lost_with_their_link_are_counted_as_lost() {
    let folder = Folder::new("reports-datagrams");
    let traffic = "{udp: {rate: 100Mbps}, from: h1, to: h3, stop: 50ms}";
    let file = fabric(&folder, traffic, CUT);
    let (status, whole) = report(&file, &[]);
    let flow = &whole["flows"][0];
    assert_eq!((status, &flow["in_flight_packets"]), (Some(0), &0.into()), "{flow}");
    assert_eq!(flow["lost_packets"], flow["missing_packets"]);
    assert!(flow["lost"]["no_route"].as_u64() > Some(100), "{flow}");
    // A run that ends before the edge gives up reports this.
    let output = axon(&["sim", &file, "--duration", "1s"]);
    good(&output);
    let said = text(&output.stderr);
    assert!(said.contains("udp1 from h1 to h3: ") && said.contains("neither received nor lost"));
}

#[test]
fn hosts_that_never_got_an_address_are_reported() {
    let folder = Folder::new("reports-address");
    let hosts = "name: a\ntopology: {line: {switches: 3, hosts_per_switch: 2}}\n";
    let cut = format!("{hosts}faults: [{{at: 1ms, down: [s2, s3]}}]\n");
    let output = axon(&["sim", &folder.file("cut.yaml", cut)]);
    assert!(good(&output).starts_with("a, seed 1: 4 of 6 hosts have an address"));
    let said = "warning: 2 of 6 hosts are cut off and have no address: h5, h6\n";
    assert!(text(&output.stderr).contains(said), "{output:?}");
    // A link that loses every frame is not down: its host should have had an address.
    let lossy = format!("{hosts}overrides: [{{between: [h5, s3], loss_ppm: 1000000}}]\n");
    let output = axon(&["sim", &folder.file("lossy.yaml", lossy)]);
    assert!(failed(&output).contains("1 of 6 hosts are connected and have no address"));
    assert!(text(&output.stdout).contains("\nno address: h5\n"), "{output:?}");
}
