//! Programmable switches among real hosts: every program carries pings and survives a cut link
//! where its paper claims it, servers forward for others, and operators read and change the tables.
//!
//! Like the lab's, this test is a program of its own.

use crate::support::{Test, state_root};
use axon_capture::recording::Ending;
use axon_lab::{Lab, RecordInto, UpOptions};
use axon_linux::record::RECORD_BYTES_MAX;
use axon_linux::replay::{ReplayEnd, ReplayOptions, recordings, replay};
use axon_linux::tables::{ask, entries, rest};
use axon_node::NodeKind;
use axon_node::probe::{PlanKind, ProbePlan};
use axon_node::telemetry::NodeTelemetry;
use axon_pipeline::{
    Action, Change, Field, Interface, KeyError, MacKey, Reason, Stage, TableName, TablesAnswer,
    TablesRequest, Target, TcamEntry, Udlk, UdlkId,
};
use axon_wire::{MacAddr, PortNo};
use std::path::PathBuf;
use std::time::Duration;

/// Limit for the answers of any pair, on a machine that also compiles.
const LIMIT: Duration = Duration::from_secs(30);

pub const TESTS: &[Test] = &[
    ("every_program_carries_pings_and_survives_a_cut", every_program),
    ("a_server_is_one_namespace_and_forwards_for_others", servers),
    ("an_operator_sees_and_changes_tables_and_traces_packets", tables),
    ("a_hostile_change_is_refused_and_changes_nothing", hostile),
    ("what_needs_a_controller_is_refused_in_words", refused),
    ("a_recorded_program_answers_the_same_in_its_replay", recorded),
];

/// Starts a lab of this fabric, and waits until its switches are ready.
fn up(name: &str, text: &str) -> Lab {
    up_with(name, text, UpOptions::default())
}

fn up_with(name: &str, text: &str, options: UpOptions) -> Lab {
    let root = state_root();
    let path = root.with_extension("yaml");
    std::fs::write(&path, format!("name: {name}\n{text}")).expect("a file");
    let options = UpOptions { timeout_ms: 120_000, ..options };
    let (lab, report) =
        axon_lab::up(&path, &options, |_| ()).unwrap_or_else(|e| panic!("{name}: {e:#}"));
    assert!(report.missing.is_empty(), "{name}: not ready: {:?}", report.missing);
    lab
}

fn down(lab: &Lab) {
    axon_lab::down(Some(lab.name())).expect("it ends");
}

/// Asserts that all pairs of hosts answer, in both directions.
fn ping_all(lab: &Lab) {
    let fabric = lab.fabric().expect("its file is there");
    let hosts = fabric.hosts.len();
    let all = (0..hosts).flat_map(|a| (0..hosts).map(move |b| (a, b)));
    let pairs: Vec<(usize, usize)> = all.filter(|(a, b)| a != b).collect();
    let pings = lab.ping(&fabric, &pairs, LIMIT, || ()).expect("hosts can ping");
    let silent: Vec<_> = pings.iter().filter(|ping| ping.rtt_ns.is_none()).collect();
    let status = || axon_lab::table::table(&lab.status().expect("a status"));
    assert!(silent.is_empty(), "{}: {silent:?}\n{}", lab.name(), status());
}

fn every_program() {
    const LEAVES: &str = "{listed: {switches: [s1, s2, s3, s4], hosts: {h1: s1, h2: s2}, \
                          links: [[s1, s3], [s1, s4], [s2, s3], [s2, s4]]}}";
    const TREE: &str = "{fat_tree: {k: 4, hosts_per_edge: 1}}";
    for (program, topology, cut) in [
        ("bridge", "{ring: {switches: 3, hosts_per_switch: 2}}", "s1,s2"),
        ("tags", "{ring: {switches: 4, hosts_per_switch: 1}}", "s1,s2"),
        ("stack", "{ring: {switches: 4, hosts_per_switch: 1}}", "s1,s2"),
        ("vl2", LEAVES, "s1,s3"),
        ("fat_tree", TREE, "s1,s9"),
        ("portland", TREE, "s1,s9"),
    ] {
        let text = format!("topology: {topology}\nprogram: {program}\n");
        let lab = up(&format!("program-{program}").replace('_', "-"), &text);
        ping_all(&lab);
        lab.set_link(cut, false).expect("there is such a link");
        ping_all(&lab);
        down(&lab);
    }
}

fn servers() {
    for (program, topology, cut) in
        [("bcube", "{bcube: {n: 2, k: 1}}", "s1,s5"), ("dcell", "{dcell: {n: 2, k: 1}}", "s1,s3")]
    {
        let text = format!("topology: {topology}\nprogram: {program}\n");
        let lab = up(&format!("server-{program}"), &text);
        ping_all(&lab);
        let output = |node: &str, line: &str| {
            let output = lab.command(node, &["sh", "-c", line]).expect("a node").output();
            let output = output.expect("it starts");
            assert!(output.status.success(), "{node}: {line}: {output:?}");
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        // The NICs, the switch's end of the virtual NIC and that of the programs.
        let links = output("h1", "ip -o link");
        for device in ["s1-p1", "s1-p2", "s1-p0", "h1-p0"] {
            assert!(links.contains(&format!(" {device}@")), "{device}: {links}");
        }
        assert_eq!(links, output("s1", "ip -o link"), "one namespace with two names");
        let name = output("h1", "cat /etc/hostname");
        assert_eq!(name, "h1", "each has its own files");
        // Transit uses NIC ports only; the kernel of the server routes nothing.
        lab.set_link(cut, false).expect("there is such a link");
        ping_all(&lab);
        down(&lab);
    }
}

/// Starts a lab of three bridges; returns it, and the socket of s1 for its tables.
fn bridges(name: &str) -> (Lab, PathBuf) {
    let lab = up(name, "topology: {line: {switches: 2, hosts_per_switch: 2}}\nprogram: bridge\n");
    let socket = lab.tables_of("s1").expect("s1 has tables");
    (lab, socket)
}

fn commit(socket: &std::path::Path, changes: Vec<Change>) -> TablesAnswer {
    ask(socket, &TablesRequest::Commit(changes)).expect("an answer")
}

fn tables() {
    let (lab, socket) = bridges("program-tables");
    ping_all(&lab);
    // The bridge has learned the hosts, and their entries count frames.
    let macs = entries(&socket, TableName::Mac).expect("a table");
    let fabric = lab.fabric().expect("its file is there");
    for host in &fabric.hosts {
        let found = macs.iter().find(|shown| match shown.change {
            Change::Mac(MacKey { mac, .. }, _) => mac == host.mac,
            _ => false,
        });
        assert!(found.is_some_and(|shown| shown.frames > 0), "{}: {macs:?}", host.name);
    }
    let status = lab.status().expect("a status");
    let s1 = status.iter().find(|one| one.name() == "s1").and_then(|one| one.node());
    let Some(NodeTelemetry::Programmable(s1)) = s1 else { panic!("{s1:?}") };
    let full = s1.tables.iter().find(|count| count.table == "mac").expect("a MAC table");
    assert_eq!((full.entries as usize, full.size), (macs.len(), 32_768));
    assert_eq!((&s1.program[..], s1.ready), ("bridge", true));
    assert_eq!((&s1.failure, &s1.refusal), (&None, &None));
    // With a new key, frames to h2 from s1's first host port are dropped from now on.
    let h2 = fabric.hosts[1].mac;
    let udlk = Udlk::new([Field::Bytes { first: 0, last: 5 }]);
    let entry = TcamEntry {
        udlk: UdlkId(15),
        value: h2.0.to_vec(),
        mask: vec![0xff; 6],
        action: Target::Drop.into(),
    };
    let changes =
        vec![Change::Udlk(UdlkId(15), Some(udlk)), Change::Tcam(2000, Some(entry.clone()))];
    let before = rest(&socket).expect("the rest");
    let tcam = || -> Vec<Change> {
        let shown = entries(&socket, TableName::Tcam).expect("a table");
        shown.into_iter().map(|shown| shown.change).collect()
    };
    let own = tcam();
    assert!(!own.is_empty(), "the trap of BPDUs at least");
    assert_eq!(commit(&socket, changes), TablesAnswer::Committed(2));
    let shown = entries(&socket, TableName::Tcam).expect("a table");
    let is_ours = |change: &Change| *change == Change::Tcam(2000, Some(entry.clone()));
    assert!(shown.iter().any(|shown| is_ours(&shown.change)), "{shown:?}");
    let pings = lab.ping(&fabric, &[(0, 1)], Duration::from_secs(2), || ()).expect("it can");
    assert_eq!(pings[0].rtt_ns, None, "every frame to h2 is dropped");
    let shown = entries(&socket, TableName::Tcam).expect("a table");
    let ours = shown.iter().find(|shown| is_ours(&shown.change)).expect("it is there");
    assert!(ours.frames > 0 && ours.bytes >= 42 * ours.frames, "{ours:?}");
    // Explained in words, for a frame that no host has sent.
    let mut frame = vec![0; 60];
    frame[..6].copy_from_slice(&h2.0);
    let explained = ask(&socket, &TablesRequest::Explain(PortNo(0), frame.clone()));
    let TablesAnswer::Explained(way) = explained.expect("an answer") else { panic!("a way") };
    let has = |name: &str, part: &str| {
        way.stages.iter().any(|Stage { name: stage, text }| stage == name && text.contains(part))
    };
    assert!(has("lookup", "tcam 2000 matches and wins: drop"), "{way:?}");
    assert!(has("lookup", "is overruled"), "the MAC table knows h2: {way:?}");
    assert!(has("out", "dropped: denied") && way.sent.is_empty(), "{way:?}");
    let nowhere = ask(&socket, &TablesRequest::Explain(PortNo(99), frame)).expect("an answer");
    assert_eq!(nowhere, TablesAnswer::NoSuchPort(PortNo(99)));
    // Without the entry the state is as before: the program sets its own entries again.
    let removed = ask(&socket, &TablesRequest::Clear(TableName::Tcam)).expect("an answer");
    assert!(matches!(removed, TablesAnswer::Committed(1..)), "{removed:?}");
    assert_eq!(tcam(), own);
    ping_all(&lab);
    assert_eq!(rest(&socket).expect("the rest").len(), before.len());
    down(&lab);
}

fn hostile() {
    let (lab, socket) = bridges("program-hostile");
    let all = || -> Vec<Change> {
        let tables = TableName::ALL.into_iter().flat_map(|table| entries(&socket, table));
        tables
            .flatten()
            .map(|shown| shown.change)
            .filter(|one| !matches!(one, Change::Mac(..)))
            .collect()
    };
    let before = all();
    let drop = || Some(Action::from(Target::Drop));
    let mac = |last: u8| MacKey { bridge: 900, mac: MacAddr([2, 9, 9, 9, 9, last]) };
    let tcam = |value: &[u8], mask: &[u8]| TcamEntry {
        udlk: UdlkId(14),
        value: value.to_vec(),
        mask: mask.to_vec(),
        action: Target::Drop.into(),
    };
    let key =
        |first, last| Change::Udlk(UdlkId(14), Some(Udlk::new([Field::Bytes { first, last }])));
    let to = |number| Some(Action::from(Target::Interface(number)));
    let good = || Change::Mac(mac(1), drop());
    let port = |port| Some(Interface::of(PortNo(port)));
    let table: Vec<(Vec<Change>, u32, Reason)> = vec![
        (vec![good(), Change::Mac(mac(2), to(4000))], 2, Reason::NoSuchInterface(4000)),
        (vec![good(), key(125, 128)], 2, Reason::Key(KeyError::Beyond(128))),
        (vec![good(), Change::Interface(4000, port(99))], 2, Reason::NoSuchPort(PortNo(99))),
        (vec![good(), good()], 2, Reason::Contradiction { first: 1 }),
        (
            vec![good(), key(0, 1), Change::Tcam(9, Some(tcam(&[1, 1], &[0xff, 0])))],
            3,
            Reason::ValueOutsideMask { byte: 1 },
        ),
        (vec![good(), Change::Tcam(2048, None)], 2, Reason::NoSuchNumber { last: 2047 }),
    ];
    for (changes, position, reason) in table {
        let TablesAnswer::Refused(error) = commit(&socket, changes.clone()) else {
            panic!("{changes:?} is taken")
        };
        assert_eq!((error.position, error.reason), (position, reason), "{changes:?}: {error}");
        assert_eq!(all(), before, "{changes:?}");
        let macs = entries(&socket, TableName::Mac).expect("a table");
        assert!(macs.iter().all(|shown| shown.change != good()), "{macs:?}");
    }
    // A full table: 4096 labels, in transactions that fit a request, and one more.
    for first in (0..4096).step_by(512) {
        let labels = (first..first + 512).map(|label| Change::Mpls(label, drop())).collect();
        assert_eq!(commit(&socket, labels), TablesAnswer::Committed(512));
    }
    let TablesAnswer::Refused(error) = commit(&socket, vec![good(), Change::Mpls(5000, drop())])
    else {
        panic!("the table is full")
    };
    assert_eq!((error.position, error.reason), (2, Reason::Full { size: 4096 }));
    assert_eq!(entries(&socket, TableName::Mpls).expect("a table").len(), 4096, "page by page");
    let cleared = ask(&socket, &TablesRequest::Clear(TableName::Mpls)).expect("an answer");
    assert_eq!(cleared, TablesAnswer::Committed(4096));
    assert_eq!(all(), before);
    ping_all(&lab);
    down(&lab);
}

fn recorded() {
    let directory = std::env::temp_dir().join(format!("axon-programs-{}", std::process::id()));
    let into = RecordInto { directory: directory.clone(), bytes_max: RECORD_BYTES_MAX };
    let options = UpOptions { record: Some(into), ..UpOptions::default() };
    let text = "topology: {bcube: {n: 2, k: 1}}\nprogram: bcube\n";
    let lab = up_with("program-recorded", text, options);
    ping_all(&lab);
    // A change by an operator is an input, too.
    let socket = lab.tables_of("s1").expect("s1 has tables");
    let miss = Change::Miss(Some(Target::Drop.into()));
    assert_eq!(commit(&socket, vec![miss]), TablesAnswer::Committed(1));
    lab.set_link("s1,s5", false).expect("there is such a link");
    ping_all(&lab);
    down(&lab);
    let files = recordings(&directory).expect("there are recordings");
    assert_eq!(files.len(), 8, "of each switch: {files:?}");
    for file in &files {
        let replayed = replay(file, &ReplayOptions::default()).expect("it can be replayed");
        let is_whole = matches!(replayed.end, ReplayEnd::Ending(Ending::Whole(_)));
        assert!(is_whole && replayed.actions > 0, "{replayed:?}");
        assert_eq!(replayed.kind, NodeKind::Programmable);
    }
    std::fs::remove_dir_all(&directory).expect("it is ours");
}

fn refused() {
    let (lab, _) = bridges("program-refused");
    let plan =
        ProbePlan::new(PlanKind::Circuit([PortNo(0), PortNo::CONTROL].into_iter().collect()));
    let fabric = lab.fabric().expect("its file is there");
    let errors = [
        lab.probe("s1", &plan).map(drop),
        lab.rekey(&fabric.keys).map(drop),
        lab.tables_of("s9").map(drop),
        axon_linux::daemon::check_controller(&fabric),
        axon_linux::rekey::rekey(&lab.state().socket("s1"), &fabric.keys),
    ];
    let says = [
        "no probes: programmable switches",
        "no keys: programmable switches",
        "has no switch s9; it has s1 s2",
        "a program each and no controller",
        "a programmable switch cannot do this",
    ];
    for (error, says) in errors.into_iter().zip(says) {
        let error = format!("{:#}", error.expect_err(says));
        assert!(error.contains(says), "{error}");
    }
    let error = format!("{:#}", lab.command("c1", &["true"]).expect_err("there is no c1"));
    assert!(error.contains("no node c1; it has s1 s2 h1"), "{error}");
    down(&lab);
    for (plane, key) in [("tc", "dataplane"), ("xdp", "dataplane"), ("full", "dataplane")] {
        let text = format!(
            "name: a\ntopology: {{line: {{switches: 2}}}}\nprogram: bridge\ndataplane: {plane}\n"
        );
        let fabric = axon_fabric::parse("a.yaml".as_ref(), &text).expect("a fabric");
        let machine = axon_linux::machine::Machine::ABLE;
        let error = axon_linux::dataplane_choice::choose(&fabric, 0, &machine).expect_err(plane);
        assert_eq!(error.key, key);
        assert!(error.what.contains("no tables for a program to fill"), "{error}");
    }
}
