//! `axon prove` from its command line.

use crate::common::{Folder, axon, bad, good, scenario, text};
use serde_json::Value;
use std::process::Output;

const RING: &str = "name: ring4\ntopology:\n  ring: { switches: 4, hosts_per_switch: 4 }\n";
const UP_DOWN: &str = "controller: { router: up_down }\n";

/// Returns the standard output of a run that must report "not proved".
fn not(output: &Output) -> &str {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    text(&output.stdout)
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_ring_of_four_with_shortest_routes_has_the_cycle_found_by_hand() {
    let folder = Folder::new("prove-ring");
    let ring = folder.file("ring.yaml", RING);
    let output = axon(&["prove", &ring]);
    let said = not(&output);
    assert!(said.starts_with("ring4: NOT PROVED free of deadlock\n"), "{said}");
    // Ports 0 to 3 lead to hosts. Links take the next numbers: s1-p4 to s2-p4, s2-p5 to s3-p4,
    // s3-p5 to s4-p4, and s4-p5 back to s1-p5. The buffers are at the far ends.
    assert!(said.contains("\n  s2-p4 -> s3-p4 -> s4-p4 -> s1-p5 -> s2-p4\n"), "{said}");
    assert!(said.contains("way out: controller.router: up_down"), "{said}");
    let value = json(&axon(&["prove", &ring, "--json", "-"]));
    assert_eq!(value["proved"], false);
    assert_eq!(value["routes"]["looked_at"], 16 * 15);
    let waits = value["deadlock"]["cycle"]["waits"].as_array().unwrap();
    assert_eq!(waits.len(), 4);
    // The host that makes a buffer wait is two switches before the buffer it waits for.
    let switch = |host: &Value| {
        let number: usize = host.as_str().unwrap()[1..].parse().unwrap();
        (number - 1) / 4
    };
    for wait in waits {
        let flows = wait["flows"].as_array().unwrap();
        assert!(!flows.is_empty());
        for flow in flows {
            assert_eq!((switch(&flow[0]) + 2) % 4, switch(&flow[1]), "{flow}");
        }
    }
}

#[test]
fn the_same_ring_up_and_down_is_proved() {
    let folder = Folder::new("prove-up-down");
    let ring = folder.file("ring.yaml", format!("{RING}{UP_DOWN}"));
    let output = axon(&["prove", &ring]);
    let said = good(&output);
    assert!(said.starts_with("ring4: proved free of deadlock\n"), "{said}");
    assert!(said.contains("all 240, one for each ordered pair of hosts"), "{said}");
    assert!(said.contains("hosts read what they receive"), "{said}");
    let value = json(&axon(&["prove", &ring, "--json", "-"]));
    assert_eq!((&value["proved"], &value["deadlock"]["free"]), (&true.into(), &true.into()));
}

#[test]
fn lines_stars_and_fat_trees_are_proved_with_shortest_routes() {
    let folder = Folder::new("prove-trees");
    let star = "name: star\ntopology: { star: { switches: 5, hosts_per_switch: 2 } }\n";
    let star = folder.file("star.yaml", star);
    for file in [scenario("line3"), scenario("fat-tree4"), star] {
        let value = json(&axon(&["prove", &file, "--json", "-"]));
        assert_eq!(value["proved"], true, "{value}");
        assert_eq!(value["router"], "shortest_path");
        assert!(value["dependencies"].as_u64().unwrap() > 0, "{value}");
    }
    let value = json(&axon(&["prove", &scenario("line3"), "--json", "-"]));
    assert_eq!(value["deadlock"]["longest_chain"].as_array().unwrap().len(), 2);
    assert_eq!((&value["links_in_use"], &value["dependencies"]), (&4.into(), &2.into()));
}

#[test]
fn a_torus_has_a_cycle_unless_it_goes_up_and_down() {
    let folder = Folder::new("prove-torus");
    let torus = std::fs::read_to_string(scenario("torus5x5")).unwrap();
    let plain = folder.file("plain.yaml", &torus);
    assert!(not(&axon(&["prove", &plain])).contains("wait for each other in a cycle"));
    let other = folder.file("other.yaml", format!("{torus}\n{UP_DOWN}"));
    good(&axon(&["prove", &other]));
}

#[test]
fn a_failure_is_proved_too_or_the_pairs_it_parts_are_named() {
    let folder = Folder::new("prove-fail");
    let ring = folder.file("ring.yaml", format!("{RING}{UP_DOWN}"));
    // A ring without one of its links is a line: no combination of its routes has a cycle.
    for link in ["s1,s2", "s2-p5", "s4-p4", "s4,s1"] {
        let value = json(&axon(&["prove", &ring, "--fail", link, "--json", "-"]));
        assert_eq!(value["proved"], true, "{link}: {value}");
        assert_eq!(value["after_failure"]["transition"]["free"], true, "{link}: {value}");
        assert!(value["after_failure"]["routes_moved"].as_u64().unwrap() > 0, "{link}");
    }
    // In this torus s1 is the root. A switch that loses its link to s1 has no other way up, and one
    // of its links is reversed.
    let torus = std::fs::read_to_string(scenario("torus5x5")).unwrap();
    let torus = folder.file("torus.yaml", format!("{torus}\n{UP_DOWN}"));
    for link in ["s6,s7", "s1,s2", "s1,s6"] {
        good(&axon(&["prove", &torus, "--fail", link]));
    }
    let output = axon(&["prove", &scenario("line3"), "--fail", "s1,s2"]);
    let said = not(&output);
    assert!(said.starts_with("line3: NOT PROVED: free of deadlock, but "), "{said}");
    assert!(said.contains("16 of 30 ordered pairs of hosts\n"), "{said}");
    assert!(said.contains("no route leads from\n  h1 to h3\n"), "{said}");
    assert!(said.contains("and 6 more"), "{said}");
}

#[test]
fn each_link_and_each_switch_fails_by_itself_and_what_is_not_proved_is_named() {
    let folder = Folder::new("prove-each");
    let ring = folder.file("ring.yaml", format!("{RING}{UP_DOWN}"));
    let output = axon(&["prove", &ring, "--fail", "each-link", "--fail", "each-switch"]);
    let said = good(&output);
    assert!(said.contains("each link      4 of 4 failures proved; "), "{said}");
    assert!(said.contains("each switch    4 of 4 failures proved; "), "{said}");
    // Without an order the routes of a ring have a cycle, and most failures leave the old cycles.
    let shortest = folder.file("shortest.yaml", RING);
    let output = axon(&["prove", &shortest, "--fail", "each-link", "--json", "-"]);
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["proved"], false);
    let failures = &value["failures"][0];
    assert_eq!((&failures["each"], &failures["count"]), (&"link".into(), &4.into()));
    let not_proved = failures["not_proved"].as_array().unwrap();
    assert_eq!(failures["proved"].as_u64().unwrap() as usize + not_proved.len(), 4);
    let is_named = |one: &serde_json::Value| {
        let cycle = one["cycle_during"].as_array();
        one["failed"].as_str().is_some_and(|name| name.contains(','))
            && cycle.is_some_and(|ports| ports.len() > 2 && ports.first() == ports.last())
    };
    assert!(not_proved.iter().all(is_named), "{value}");
}

#[test]
fn a_proof_about_some_routes_says_so() {
    let ring = scenario("torus5x5");
    let value = json(&axon(&["prove", &ring, "--pairs", "3", "--seed", "5", "--json", "-"]));
    assert_eq!(value["routes"]["looked_at"], 6);
    assert_eq!(
        (&value["routes"]["complete"], &value["routes"]["seed"]),
        (&false.into(), &5.into())
    );
    let output = axon(&["prove", &ring, "--pairs", "1", "--seed", "5"]);
    let said = good(&output);
    assert!(said.contains("free of deadlock, for the routes that were checked\n"), "{said}");
    assert!(said.contains("the others are not checked"), "{said}");
}

#[test]
fn what_cannot_be_tried_ends_with_two() {
    let folder = Folder::new("prove-errors");
    let bridges = folder.file("bridges.yaml", format!("{RING}network: ethernet\n"));
    assert!(bad(&axon(&["prove", &bridges]), 2).contains("expected network: axon"));
    let unknown = folder.file("unknown.yaml", format!("{RING}colour: red\n"));
    assert!(bad(&axon(&["prove", &unknown]), 2).starts_with(&format!("{unknown}:4:1: colour: ")));
    assert!(bad(&axon(&["prove", "none.yaml"]), 2).starts_with("none.yaml: cannot be read"));
    let ring = folder.file("ring.yaml", RING);
    for (link, wanted) in [
        ("s1,s3", "no link joins them"),
        ("s1,s9", "there is no switch s9"),
        ("s1-p0", "there is no such link"),
        ("x", "there is no such link"),
    ] {
        let output = axon(&["prove", &ring, "--fail", link]);
        let said = bad(&output, 2);
        assert!(said.contains(wanted) && said.contains("expected"), "{said}");
    }
    bad(&axon(&["prove", &ring, "--pairs", "0"]), 2);
}

/// Runs two switches with one lossless class; returns the results for their buffers.
fn with_buffers(folder: &Folder, buffers: &str) -> Output {
    let text = format!(
        "name: two\ntopology: {{ line: {{ switches: 2, hosts_per_switch: 2 }} }}\n\
         links: {{ rate: 10Gbps, latency: 500ns }}\ndcb:\n  classes:\n  \
         - {{ priorities: [0, 1, 2, 4, 5, 6], ets: 40 }}\n  \
         - {{ priorities: [3], ets: 60, lossless: true }}\n  - {{ priorities: [7] }}\n  \
         {buffers}\n"
    );
    axon(&["prove", &folder.file("two.yaml", text), "--json", "-"])
}

#[test]
fn headroom_is_compared_with_what_each_port_needs() {
    let folder = Folder::new("prove-headroom");
    let enough = with_buffers(&folder, "");
    good(&enough);
    let said = json(&enough);
    assert_eq!((&said["proved"], &said["headroom"]["suffices"]), (&true.into(), &true.into()));
    // 1500 + 18 bytes; then the bytes of 1.6144 us at 10 Gb/s, twice that frame with 24 bytes
    // around it, and 84 bytes of the PFC frame. Memory holds 1518 of each 1542 of these.
    let host = 1518 + (2 * 1542 + 84 + 2018) * 1518 / 1542;
    let kinds = said["headroom"]["kinds"].as_array().unwrap();
    assert_eq!(kinds[0]["needed_bytes"], host);
    assert_eq!(kinds.len(), 2, "to hosts, and to switches and the controller");
    let short = with_buffers(&folder, &format!("buffers: {{ headroom: {}B }}", host - 1));
    not(&short);
    let said = json(&short);
    assert_eq!((&said["proved"], &said["deadlock"]["free"]), (&false.into(), &true.into()));
}

#[test]
fn a_pause_that_ends_before_it_is_refreshed_is_too_short() {
    let folder = Folder::new("prove-quanta");
    // Twice 1518 + 24 bytes of a frame from a host, 128 more between switches, in 64 bytes.
    let least = (2u64 * (1518 + 24 + 128)).div_ceil(64);
    good(&with_buffers(&folder, &format!("quanta: {least}")));
    let said = json(&with_buffers(&folder, &format!("quanta: {}", least - 1)));
    assert_eq!((&said["proved"], &said["deadlock"]["free"]), (&false.into(), &true.into()));
}

#[test]
fn neighbours_that_do_not_agree_are_named() {
    let folder = Folder::new("prove-dcbx");
    let overrides = "dcbx: { willing: none, overrides: [ { switches: [s2], pfc: [] } ] }";
    let said = json(&with_buffers(&folder, overrides));
    assert_eq!(said["proved"], false);
    let first = said["disagreements"][0].as_str().unwrap();
    assert!(first.starts_with("PFC is for priorities 3 at s1-p"), "{first}");
    good(&with_buffers(&folder, "dcbx: {}"));
}

#[test]
fn a_lossless_priority_that_nobody_stops_is_no_proof_whether_neighbours_agree_or_not() {
    let folder = Folder::new("prove-without-pfc");
    let overrides = "dcbx: { overrides: [ { switches: [s1, s2], pfc: [] } ] }";
    let said = json(&with_buffers(&folder, overrides));
    assert_eq!((&said["proved"], &said["disagreements"]), (&false.into(), &Value::Array(vec![])));
    let without_pfc = said["without_pfc"].as_array().unwrap();
    assert_eq!(without_pfc.len(), 2 + 4, "both ends of the link, and four hosts");
    assert!(without_pfc.iter().all(|port| port["priorities"] == serde_json::json!([3])));
    let text = text_of(&axon(&["prove", &folder.path("two.yaml")]));
    assert!(
        text.starts_with("two: NOT PROVED lossless: free of deadlock, but senders are"),
        "{text}"
    );
    assert!(text.contains("\n  priority 3 at s1-p0, s1-p1, s1-p2 and 3 more\n"), "{text}");
    // A willing switch has no neighbour to follow towards its hosts.
    let willing = "dcbx: { overrides: [ { switches: [s2], willing: pfc, pfc: [] } ] }";
    let said = json(&with_buffers(&folder, willing));
    let without_pfc = said["without_pfc"].as_array().unwrap().iter();
    let ports: Vec<_> = without_pfc.map(|at| at["port"].as_str().unwrap()).collect();
    assert_eq!((&said["proved"], ports), (&false.into(), vec!["s2-p0", "s2-p1"]));
}

#[test]
fn hosts_without_flow_control_are_no_proof() {
    let folder = Folder::new("prove-hosts");
    let said = json(&with_buffers(&folder, "hosts: false"));
    assert_eq!((&said["proved"], &said["headroom"]["suffices"]), (&false.into(), &false.into()));
}

#[test]
fn a_watchdog_as_short_as_a_pause_by_congestion_is_no_proof() {
    let folder = Folder::new("prove-watchdog");
    let with = |watchdog: &str| {
        with_buffers(&folder, &format!("quanta: 1000\n  watchdog: {{ {watchdog} }}"))
    };
    let said = json(&with("detection: 900us"));
    assert_eq!((&said["proved"], &said["deadlock"]["free"]), (&false.into(), &true.into()));
    // At either switch two other ports share 60 % of 10 Gb/s, which is 8/3 ns a byte: a third of
    // the pool (half of the memory that is free then) and the headroom.
    let needed = said["headroom"]["kinds"][1]["needed_bytes"].as_u64().unwrap();
    let longest = ((1 << 20) / 3 + needed) * 8 / 3;
    let watchdog = &said["watchdog"];
    assert_eq!(
        (&watchdog["longest_pause_ns"], &watchdog["suffices"]),
        (&longest.into(), &false.into())
    );
    assert_eq!(watchdog["detection_needed_ns"], longest);
    assert_eq!(watchdog["least_through_bps"], 3_000_000_000_u64);
    assert!(["s1-p2", "s2-p2"].contains(&watchdog["at"].as_str().unwrap()), "{watchdog}");
    let enough = format!("detection: {}ns", longest + 2);
    good(&with(&enough));
    // By share of time: a peer without a storm lets 30 % through, and a third of that may be
    // missing.
    let said = json(&with(&format!("detection: {}ns, paused: 90%", 2 * longest + 2)));
    assert_eq!(
        (&said["proved"], &said["watchdog"]["detection_needed_ns"]),
        (&true.into(), &(3 * longest).div_ceil(2).into())
    );
    let said = json(&with("detection: 60s, paused: 70%"));
    assert_eq!(
        (&said["proved"], said["watchdog"]["detection_needed_ns"].is_null()),
        (&false.into(), true)
    );
    let way_out = |watchdog: &str| {
        with(watchdog);
        let output = axon(&["prove", &folder.path("two.yaml")]);
        let ways = not(&output).lines().filter(|line| line.starts_with("way out: "));
        ways.map(str::to_owned).collect::<Vec<_>>()
    };
    let longer = way_out("detection: 900us");
    assert!(
        longer.len() == 1 && longer[0].contains("a longer dcb.watchdog.detection"),
        "{longer:?}"
    );
    let whole = "way out: dcb.watchdog.paused: 100%";
    assert_eq!(way_out("detection: 60s, paused: 70%"), [whole]);
    let micros = longest.div_ceil(1_000);
    let both = format!("{whole}, and a dcb.watchdog.detection of more than {micros} us");
    assert_eq!(way_out("detection: 900us, paused: 70%"), [both]);
}

#[test]
fn a_watchdog_in_a_cycle_has_no_bound() {
    let folder = Folder::new("prove-watchdog-cycle");
    let dcb = "dcb:\n  watchdog: {}\n  classes:\n  \
               - { priorities: [0, 1, 2, 3, 4, 5, 6], lossless: true }\n  \
               - { priorities: [7] }\n";
    let ring = folder.file("ring.yaml", format!("{RING}{dcb}"));
    let output = axon(&["prove", &ring]);
    let said = not(&output);
    assert!(
        said.contains(
            "watchdog       200ms of pause are a storm; nothing bounds the pauses of a cycle\n"
        ),
        "{said}"
    );
    assert!(said.starts_with("ring4: NOT PROVED free of deadlock\n"), "{said}");
    assert_eq!(said.matches("way out").count(), 1, "that of the cycle: {said}");
}

#[test]
fn a_lossless_fabric_without_a_watchdog_is_warned_of_and_proved_all_the_same() {
    let folder = Folder::new("prove-no-watchdog");
    let proved = |dcb: &str| {
        let text = format!(
            "name: two\ntopology: {{ line: {{ switches: 2 }} }}\nlinks: {{ rate: 10Gbps }}\n\
             dcb:\n  classes:\n  - {{ priorities: [0, 1, 2, 3, 4, 5, 6], lossless: true }}\n  \
             - {{ priorities: [7] }}\n{dcb}"
        );
        let file = folder.file("two.yaml", text);
        let warned = text_of(&axon(&["prove", &file])).contains("\nwarning        there is no wa");
        let value = json(&axon(&["prove", &file, "--json", "-"]));
        assert_eq!(value["proved"], true, "{value}");
        (warned, value["warnings"].as_array().unwrap().len())
    };
    assert_eq!(proved(""), (true, 1));
    assert_eq!(proved("  watchdog: {}\n"), (false, 0));
}

#[test]
fn a_link_whose_rate_changes_needs_the_headroom_of_all_its_rates() {
    let folder = Folder::new("prove-rates");
    let with = |rate: &str| {
        let fault = "faults:\n  - { at: 1s, between: [s1, s2], rate: ";
        let text = format!(
            "name: two\ntopology: {{ line: {{ switches: 2, hosts_per_switch: 1 }} }}\n\
             links: {{ rate: 10Gbps, latency: 500ns }}\n{fault}{rate} }}\ndcb:\n  classes:\n  \
             - {{ priorities: [0, 1, 2, 3, 4, 5, 6], lossless: true }}\n  - {{ priorities: [7] }}\n"
        );
        let file = folder.file("rates.yaml", text);
        let said = axon(&["prove", &file]);
        (text_of(&said), json(&axon(&["prove", &file, "--json", "-"])))
    };
    let needed = |said: &Value| {
        let kinds = said["headroom"]["kinds"].as_array().unwrap();
        let link = kinds.iter().find(|kind| kind["ports"][0] == "s1-p1");
        link.unwrap()["needed_bytes"].as_u64().unwrap()
    };
    let (_, same) = with("10Gbps");
    let (text, slower) = with("1Gbps");
    assert!(text.contains("(to a switch, 1 Gb/s to 10 Gb/s, 500ns of cable)"), "{text}");
    let (_, faster) = with("25Gbps");
    // A frame that began at a tenth of the rate takes ten times as long, while the peer sends at
    // full rate.
    assert!(needed(&slower) > needed(&same) + 8 * 1_500, "{slower}");
    assert!(needed(&faster) > needed(&same) + 2_000, "{faster}");
    assert_eq!(slower["proved"], true);
}

fn text_of(output: &Output) -> String {
    text(&output.stdout).to_owned()
}
