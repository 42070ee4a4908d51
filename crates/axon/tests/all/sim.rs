//! `axon sim` and `axon trace` from their command lines.

use crate::common::{Folder, axon, bad, failed, good, incomplete, pcap, scenario, text};
use serde_json::Value;
use std::process::Command;

fn parse(json: &str) -> Value {
    serde_json::from_str(json).unwrap()
}

/// Returns a report without its machine-dependent part.
fn simulated(file: &str, more: &[&str]) -> Value {
    let output = axon(&[&["sim", file, "--json", "-"], more].concat());
    without_wall(parse(good(&output)))
}

fn without_wall(mut report: Value) -> Value {
    let machine = report.as_object_mut().unwrap().remove("machine").unwrap();
    for key in ["threads", "wall_seconds", "packet_hops_per_wall_second", "peak_memory_bytes"] {
        assert!(machine[key].as_f64().unwrap() > 0.0, "{key}: {machine}");
    }
    report
}

#[test]
fn the_same_seed_gives_the_same_trace_and_another_another() {
    let ring = scenario("ring3");
    let first = simulated(&ring, &["--seed", "7"]);
    assert_eq!(first, simulated(&ring, &["--seed", "7", "--threads", "2"]));
    assert_ne!(first["trace_hash"], simulated(&ring, &["--seed", "8"])["trace_hash"]);
    let folder = Folder::new("sim-same");
    let (json, trace) = (folder.path("r.json"), folder.path("t.txt"));
    let output = axon(&["sim", &ring, "--seed", "7", "--json", &json, "--trace", &trace]);
    assert!(good(&output).contains(first["trace_hash"].as_str().unwrap()));
    assert_eq!(without_wall(parse(&folder.read("r.json"))), first);
    let again = folder.path("u.txt");
    good(&axon(&["sim", &ring, "--seed", "7", "--threads", "2", "--trace", &again]));
    assert!(folder.read("t.txt").lines().count() > 100);
    assert!(folder.read("t.txt") == folder.read("u.txt"), "two threads write another trace");
}

#[test]
fn a_fabric_with_faults_is_pinged_again_after_them() {
    let report = simulated(&scenario("all-keys"), &[]);
    let rounds = report["rounds"].as_array().unwrap();
    assert_eq!(rounds.len(), 2);
    assert!(rounds.iter().all(|round| round["answered"] == round["pairs"]), "{report}");
}

#[test]
fn traffic_is_reported_flow_by_flow_in_every_form() {
    let folder = Folder::new("sim-traffic");
    let (csv, plot, json) = (folder.path("csv"), folder.path("p.svg"), folder.path("r.json"));
    let file = scenario("permutation");
    let output = axon(&["sim", &file, "--csv", &csv, "--plot", &plot, "--json", &json]);
    assert!(good(&output).contains("udp1"), "{output:?}");
    let report = parse(&folder.read("r.json"));
    let flows = report["flows"].as_array().unwrap();
    assert!(!flows.is_empty());
    let lines: Vec<String> = folder.read("csv/flows.csv").lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), flows.len() + 1);
    let columns = lines[0].split(',').count();
    for (line, flow) in lines[1..].iter().zip(flows) {
        let fields: Vec<&str> = line.split(',').collect();
        assert_eq!(fields.len(), columns, "{line}");
        assert_eq!(fields[7], flow["received_bytes"].to_string());
        assert!(flow["received_bytes"].as_u64().unwrap() > 0);
    }
    for name in ["ports", "ended", "samples"] {
        assert!(folder.read(&format!("csv/{name}.csv")).lines().count() > 1, "{name}");
    }
    for name in ["p.svg", "p-queues.svg"] {
        let drawn = folder.read(name);
        assert!(drawn.starts_with("<svg") && drawn.contains("<polyline"), "{name}");
        assert!(drawn.contains("time since traffic began, ms"), "{name}");
    }
    let drawn = folder.read("p.svg");
    // Flows of one entry have its name and their hosts; the plot shows eight of sixteen.
    let (name, from, to) = (&flows[0]["name"], &flows[0]["from"], &flows[0]["to"]);
    let [name, from, to] = [name, from, to].map(|text| text.as_str().unwrap());
    for part in ["payload received, Mb/s", &format!("{name} "), "and 8 of 16 flows"] {
        assert!(drawn.contains(part), "{part}");
    }
    let named = flows.iter().filter(|flow| {
        let [from, to] = ["from", "to"].map(|key| flow[key].as_str().unwrap());
        drawn.contains(&format!("{name} {from} to {to}\n"))
    });
    assert_eq!(named.count(), 8, "{name} {from} to {to}");
}

#[test]
fn a_replay_is_counted_at_its_target_in_every_form() {
    let folder = Folder::new("sim-replay");
    let frame = |n: u8| [vec![4; 12], vec![0x88, 0xb5], vec![n; 86]].concat();
    folder.file("a.pcap", pcap(&[1, 2, 3].map(frame)));
    let traffic = "traffic: [{ from: h1, to: h2, replay: { file: a.pcap } }]";
    let line = "topology: { line: { switches: 2 } }";
    let file = folder.file("replay.yaml", format!("name: a\n{line}\n{traffic}\n"));
    let (csv, json) = (folder.path("csv"), folder.path("r.json"));
    let output = axon(&["sim", &file, "--csv", &csv, "--json", &json]);
    let row = good(&output).lines().find(|line| line.starts_with("replay1 ")).unwrap();
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(words[..8], ["replay1", "replay", "1", "300", "B", "300", "B", "0"], "{row}");
    let flow = &parse(&folder.read("r.json"))["flows"][0];
    assert_eq!((&flow["received_packets"], &flow["received_bytes"]), (&3.into(), &300.into()));
    assert_eq!((&flow["missing_packets"], flow["lost_packets"].is_null()), (&0.into(), true));
    let flows = folder.read("csv/flows.csv");
    assert!(flows.contains("\nreplay1,replay,h1,h2,3,300,3,300,,,0,,"), "{flows}");
}

#[test]
fn a_name_with_commas_and_quotes_is_one_field_of_the_tables() {
    let folder = Folder::new("sim-quotes");
    let traffic = "[{ name: 'a, \"b\"', from: h1, to: h2, udp: { rate: 9Mbps }, stop: 5ms }]";
    let line = "topology: { line: { switches: 2 } }";
    let file = folder.file("quotes.yaml", format!("name: a\n{line}\ntraffic: {traffic}\n"));
    let csv = folder.path("csv");
    good(&axon(&["sim", &file, "--csv", &csv]));
    let flows = folder.read("csv/flows.csv");
    assert!(flows.contains("\n\"a, \"\"b\"\"\",udp,h1,h2,"), "{flows}");
}

#[test]
fn a_duration_is_kept_to_the_nanosecond() {
    let report = simulated(&scenario("permutation"), &["--duration", "500003ns"]);
    let spent = report["simulated_ns"].as_u64().unwrap() - report["boot_ns"].as_u64().unwrap();
    assert_eq!(spent, 500_003);
}

#[test]
fn a_captured_port_is_a_pcapng_of_both_directions() {
    let folder = Folder::new("sim-pcap");
    let (switch, host) = (folder.path("s.pcapng"), folder.path("h.pcapng"));
    let asked = [format!("s1-p0={switch}"), format!("h1-p0={host}")];
    let json = folder.path("r.json");
    let arguments = ["--pcap", &asked[0], "--pcap", &asked[1], "--json", &json];
    good(&axon(&[&["sim", &scenario("ring3")], &arguments[..]].concat()));
    let mode = |path: &str| std::fs::metadata(path).unwrap().permissions();
    assert_eq!(mode(&switch), mode(&json), "who may read one result may read the other");
    let read = |path: &str| std::fs::read(path).unwrap();
    // Section header, then the interface with the port's name.
    for (path, name) in [(&switch, "s1-p0"), (&host, "h1-p0")] {
        let bytes = read(path);
        assert_eq!(bytes[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
        assert!(bytes.windows(5).any(|window| window == name.as_bytes()), "{name}");
    }
    assert_eq!(read(&switch).len(), read(&host).len(), "a cable has the same at both ends");
    for (wrong, said) in [
        ("s1-p0", "expected PORT=FILE"),
        ("s9-p0=x.pcapng", "there is no port s9-p0"),
        ("s1-p0=/no/such/folder/x", "/no/such/folder/x"),
    ] {
        let output = axon(&["sim", &scenario("ring3"), "--pcap", wrong]);
        assert!(bad(&output, 2).contains(said), "{output:?}");
    }
}

#[test]
fn a_run_that_needs_too_much_memory_stops_and_says_what_it_took() {
    let output = axon(&["sim", &scenario("ring3"), "--memory-max", "1MiB", "--json", "-"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = text(&output.stderr);
    assert!(said.contains("it needs more memory than --memory-max 1.00 MiB"), "{said}");
    let report = parse(text(&output.stdout));
    assert!(report["stopped"].as_str().unwrap().contains("MiB in use after "), "{report}");
    let output = axon(&["sim", &scenario("ring3"), "--memory-max", "much"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_trace_is_filtered_by_what_happened_where_when_and_to_whom() {
    let folder = Folder::new("sim-filter");
    let trace = folder.path("t.txt");
    good(&axon(&["sim", &scenario("ring3"), "--trace", &trace]));
    let filtered = |more: &[&str]| -> Vec<String> {
        let output = axon(&[&["trace", &trace], more].concat());
        good(&output).lines().map(str::to_owned).collect()
    };
    let all = filtered(&[]);
    assert!(all.len() > 100 && all.iter().all(|line| !line.starts_with('#')));
    let port = filtered(&["--port", "s1-p0"]);
    assert!(!port.is_empty() && port.iter().all(|line| line.contains(" s1-p0 ")));
    let node = filtered(&["--port", "s1"]);
    assert!(node.len() > port.len() && node.iter().all(|line| line.contains(" s1")));
    let power = filtered(&["--kind", "power"]);
    assert_eq!(power.len(), 3 + 1 + 6, "{power:?}");
    let early = filtered(&["--from", "1ms", "--to", "150ms"]);
    assert!(!early.is_empty() && early.iter().all(|line| line.starts_with("0.1")), "{early:?}");
    let dropped = filtered(&["--drop", "consumed"]);
    assert!(!dropped.is_empty() && dropped.iter().all(|line| line.contains(" dropped consumed ")));
    // h1 and h3 are behind different switches: their pings cross the link between, routed.
    let flow = filtered(&["--flow", "h1,h3"]);
    for place in ["h1-p0 sent", "h1-p0 received", "h3-p0 sent", "h3-p0 received", " s1-", " s2-"] {
        assert!(flow.iter().any(|line| line.contains(place)), "{place}: {flow:#?}");
    }
    assert!(flow.iter().all(|line| !line.contains(" h2-")), "{flow:#?}");
}

#[test]
fn what_cannot_be_filtered_is_refused() {
    let folder = Folder::new("sim-wrong");
    let trace = folder.path("t.txt");
    std::fs::write(
        &trace,
        "# host h1 02:68:00:00:00:01\n0.000000001s s1 power on, incarnation 1\nx y z\n",
    )
    .unwrap();
    let said = |more: &[&str]| incomplete(&axon(&[&["trace", &trace], more].concat())).to_owned();
    assert!(
        said(&[]).contains("t.txt:3: `x` is no time; expected a line such as"),
        "{}",
        said(&[])
    );
    let missing = said(&["--flow", "h1,h7"]);
    assert!(missing.contains("--flow h1,h7: the trace's head has no host h7"), "{missing}");
    let alone = said(&["--flow", "h1"]);
    assert!(alone.contains("expected two hosts") && !alone.contains("t.txt"), "{alone}");
    std::fs::write(&trace, "0.000000001s s1 power on, incarnation 1\n").unwrap();
    let nowhere = said(&["--port", "s99"]);
    assert!(nowhere.contains("--port s99: no line of") && nowhere.contains("t.txt"), "{nowhere}");
    assert!(said(&["--drop", "bored"]).contains("no reason bored; expected one of "));
    assert_eq!(axon(&["trace", &trace, "--kind", "song"]).status.code(), Some(2));
}

#[test]
fn an_interrupted_run_writes_what_there_is() {
    let folder = Folder::new("sim-interrupt");
    let json = folder.path("r.json");
    let mut run = Command::new(env!("CARGO_BIN_EXE_axon"))
        .args(["sim", &scenario("ring3"), "--duration", "1000h", "--json", &json])
        .args(["--trace", &folder.path("t.txt")])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    // The run has begun once its trace file is not empty.
    let begun = || std::fs::metadata(folder.path("t.txt")).is_ok_and(|file| file.len() > 0);
    while !begun() {
        assert!(run.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::yield_now();
    }
    let pid = run.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    assert_eq!(run.wait().unwrap().code(), Some(130));
    let report = parse(&folder.read("r.json"));
    assert!(report["stopped"].as_str().unwrap().starts_with("interrupted at "), "{report}");
}

#[test]
fn a_fabric_too_large_for_the_memory_is_refused_before_anything_runs() {
    let output = axon(&["sim", &scenario("torus5x5"), "--memory-max", "10KiB"]);
    let said = bad(&output, 2);
    assert!(said.contains("25 switches and 50 links need at least"), "{said}");
    assert!(said.ends_with("before anything is sent; --memory-max is 10.00 KiB\n"), "{said}");
    assert!(output.stdout.is_empty());
}

#[test]
fn results_that_have_nowhere_to_go_are_refused_before_the_run() {
    for (option, what) in [("--json", "write"), ("--csv", "make"), ("--plot", "write")] {
        let output = axon(&["sim", &scenario("ring3"), option, "/dev/null/here.svg"]);
        let said = bad(&output, 2);
        let wanted = format!("cannot {what} /dev/null/here.svg: Not a directory");
        assert!(said.starts_with(&wanted), "{said}");
        assert!(output.stdout.is_empty(), "nothing has run");
    }
}

#[test]
fn a_refused_run_leaves_earlier_results_and_nothing_new() {
    let folder = Folder::new("sim-refused");
    let ring = scenario("ring3");
    let old = folder.file("old", "earlier");
    std::fs::create_dir(folder.path("csv")).unwrap();
    folder.file("csv/flows.csv", "earlier");
    let (csv, new, capture) = (folder.path("csv"), folder.path("new.svg"), format!("s1-p0={old}"));
    let (deep, again) = (folder.path("a/b"), format!("s1-p0={new}"));
    for more in [
        &["--json", &old, "--plot", "/nonexistent/x.svg"][..],
        &["--trace", &old, "--json", "/nonexistent/x"],
        &["--csv", &csv, "--plot", &new, "--json", "/nonexistent/x"],
        &["--csv", &deep, "--json", "/nonexistent/x"],
        &["--pcap", &capture, "--pcap", &again],
        &["--pcap", &capture, "--trace", "/nonexistent/x"],
        &["--json", &old, "--plot", "x.png"],
    ] {
        let output = axon(&[&["sim", &ring], more].concat());
        bad(&output, 2);
        assert_eq!(
            (folder.read("old"), folder.read("csv/flows.csv")),
            ("earlier".into(), "earlier".into()),
            "{more:?}"
        );
        let mut there: Vec<_> = std::fs::read_dir(&folder.0).unwrap().collect();
        there.extend(std::fs::read_dir(&csv).unwrap());
        assert_eq!(there.len(), 3, "{more:?}: {there:?}");
    }
}

#[test]
fn a_file_is_written_for_one_option_and_never_over_what_is_read() {
    let folder = Folder::new("sim-same-file");
    folder.file("a.pcap", pcap(&[vec![4; 100]]));
    let traffic = "traffic: [{ from: h1, to: h2, replay: { file: a.pcap } }]";
    let yaml = format!("name: a\ntopology: {{ line: {{ switches: 2 }} }}\n{traffic}\n");
    let file = folder.file("replay.yaml", &yaml);
    let (capture, same) = (folder.path("a.pcap"), folder.path("x"));
    let (first, second) = (format!("s1-p0={same}"), format!("s1-p1={same}"));
    for (more, said) in [
        (&["--pcap", &first, "--pcap", &second][..], "that is also --pcap"),
        (&["--json", &same, "--trace", &same], "that is also --json"),
        (&["--json", &file], "that is also the fabric file"),
        (&["--trace", &capture], "that is also what replay1 replays"),
        (&["--trace", "-", "--json", "-"], "--json and --trace: standard output takes one"),
    ] {
        let output = axon(&[&["sim", &file], more].concat());
        assert!(bad(&output, 2).contains(said), "{output:?}");
        assert_eq!(folder.read("replay.yaml"), yaml);
        assert!(!folder.0.join("x").exists() && std::fs::metadata(&capture).unwrap().len() > 100);
    }
}

#[test]
fn more_threads_than_cores_are_not_started() {
    let output = axon(&["sim", &scenario("ring3"), "--json", "-", "--threads", "64"]);
    let report = parse(good(&output));
    let cores = std::thread::available_parallelism().unwrap().get() as u64;
    assert!(report["machine"]["threads"].as_u64().unwrap() <= cores.min(64), "{report}");
    let said = text(&output.stderr).contains(&format!("64 threads on {cores} core"));
    assert_eq!(said, cores < 64, "{output:?}");
}

#[test]
fn a_capture_that_claims_what_no_host_sends_is_reported_and_not_waited_for() {
    let folder = Folder::new("sim-hostile");
    let mut bytes = pcap(&vec![vec![4; 60]; 40]);
    for record in 0..40 {
        bytes[24 + record * 76 + 12..][..4].fill(0xff);
    }
    folder.file("a.pcap", bytes);
    let traffic = "traffic: [{ from: h1, to: h2, replay: { file: a.pcap } }]";
    let line = "topology: { line: { switches: 2 } }";
    let file = folder.file("replay.yaml", format!("name: a\n{line}\n{traffic}\n"));
    let output = axon(&["sim", &file]);
    let said = failed(&output);
    let why = "none of the capture's frames (40 in all) has 14 to 1514 bytes";
    assert!(said.contains("replay1 sent nothing in ") && said.contains(why), "{said}");
}

#[test]
fn a_trace_that_is_empty_or_cut_is_reported() {
    let folder = Folder::new("sim-cut");
    let line = "0.000000001s s1 power on, incarnation 1\n";
    let trace = folder.file("t.txt", "");
    assert!(bad(&axon(&["trace", &trace]), 2).contains("t.txt: it is empty"));
    folder.file("t.txt", format!("{line}0.0000"));
    let output = axon(&["trace", &trace]);
    assert!(incomplete(&output).contains("t.txt:2: the line is cut off"), "{output:?}");
    assert_eq!(text(&output.stdout), line);
    let output = axon(&["trace", &trace, "--from", "5s", "--to", "1s"]);
    assert!(bad(&output, 2).contains("nothing is between"), "{output:?}");
}

#[test]
fn a_trace_that_is_not_whole_fails_the_run_by_name() {
    let output = axon(&["sim", &scenario("ring3"), "--trace", "/dev/full"]);
    let said = incomplete(&output);
    assert!(said.contains("/dev/full: the trace is not whole: No space left"), "{said}");
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    for arguments in [&["schema"][..], &["check", &scenario("all-keys")]] {
        let command = Command::new(env!("CARGO_BIN_EXE_axon"))
            .args(arguments)
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn();
        let mut child = command.unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    }
}

#[test]
fn a_data_plane_that_lacks_what_the_fabric_needs_is_refused_before_anything_starts() {
    let folder = Folder::new("sim-needs");
    let (file, trace) = (scenario("deadlock5"), folder.path("t.txt"));
    let refused = axon(&["sim", &file, "--dataplane", "reference", "--trace", &trace]);
    let says = "the data plane `reference` lacks 4 queues per port (asked for by `dcb.classes`; \
                it has 1), 2 lossless classes (asked for by `dcb.classes[1].lossless`; it has 0), \
                traffic classes (asked for by `dcb.classes`) and priority regeneration at host \
                ports (asked for by `dcb.classes`); use --dataplane software";
    assert!(bad(&refused, 2).contains(&format!("{file}: {says}")), "{refused:?}");
    assert!(!folder.0.join("t.txt").exists(), "nothing was begun");
    let unknown = axon(&["sim", &file, "--dataplane", "quantum"]);
    assert!(bad(&unknown, 2).contains("values: software, reference, pipeline"), "{unknown:?}");
    let text = "name: a\nnetwork: ethernet\ntopology: {ring: {switches: 3}}\n";
    let bridges = folder.file("a.yaml", text);
    let refused = axon(&["sim", &bridges, "--dataplane", "reference"]);
    assert!(bad(&refused, 2).contains("data planes of their own"), "{refused:?}");
}

#[test]
fn a_fabric_runs_on_every_data_plane() {
    let ring = scenario("ring3");
    let software = simulated(&ring, &["--dataplane", "software"]);
    assert_eq!(software, simulated(&ring, &[]), "the one that is used without a word");
    let reference = simulated(&ring, &["--dataplane", "reference"]);
    assert_eq!(reference, simulated(&ring, &["--dataplane", "reference", "--threads", "2"]));
    let same = software["trace_hash"] == reference["trace_hash"];
    assert!(!same, "the reference serves its ports in another order: {reference}");
    let pipeline = simulated(&ring, &["--dataplane", "pipeline"]);
    assert_eq!(pipeline, software, "Axon as a program takes the same steps");
    for report in [&software, &reference] {
        let round = &report["rounds"][0];
        assert!(round["pairs"].as_u64() > Some(0), "{report}");
        assert_eq!(round["answered"], round["pairs"]);
    }
}
