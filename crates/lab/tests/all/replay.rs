//! Recorded labs: when replayed, every node answers as it did.
//!
//! `AXON_RECORD_SECONDS=600` runs the ring for ten minutes; ten links fail in any duration. Some
//! 500 MB of recordings are then written to the directory for temporary files.

use crate::support::{Test, daemon, needs, state_root};
use axon_capture::recording::Ending;
use axon_lab::{Lab, RecordInto, UpOptions};
use axon_linux::record::RECORD_BYTES_MAX;
use axon_linux::replay::{ReplayEnd, ReplayOptions, Replayed, check_name, recordings, replay};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

/// Links that fail, one after another, and are restored.
const FAILURES: u32 = 10;
/// Duration of the ring's run in seconds, unless the environment sets another.
const SECONDS: u64 = 10;
const VARIABLE: &str = "AXON_RECORD_SECONDS";

pub const TESTS: &[Test] = &[
    ("a_ring_that_loses_links_under_tcp_is_replayed_without_a_difference", ring),
    ("a_ring_on_the_pipeline_is_replayed_on_the_native_plane_without_a_difference", pipeline),
    ("a_switch_that_is_killed_leaves_two_recordings", killed),
    ("agents_of_hosts_are_recorded_too", agents),
    ("a_directory_with_recordings_is_left_alone", left_alone),
    ("a_lab_whose_recordings_cannot_begin_says_why", cannot_begin),
];

/// Recordings of this test, in a directory that is not below /run.
struct Recordings(PathBuf);

impl Recordings {
    fn new() -> Recordings {
        let name = format!("axon-recordings-{}", std::process::id());
        Recordings(std::env::temp_dir().join(name))
    }

    /// Starts the lab of this fabric, recorded.
    fn up(&self, fabric: &str) -> Lab {
        let root = state_root();
        let path = root.with_extension("yaml");
        std::fs::write(&path, fabric).expect("a file");
        let record = RecordInto { directory: self.0.clone(), bytes_max: RECORD_BYTES_MAX };
        let options = UpOptions { record: Some(record), ..UpOptions::default() };
        let (lab, report) = axon_lab::up(&path, &options, |_| ()).expect("the lab comes up");
        assert!(report.missing.is_empty(), "without controller: {:?}", report.missing);
        lab
    }

    /// Replays all recordings; returns the names of their files and the results.
    fn replay(&self) -> Vec<(String, Replayed)> {
        let files = recordings(&self.0).expect("there are recordings");
        let one = |file: &PathBuf| {
            let mode = std::fs::metadata(file).expect("it is there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "only its owner may read it");
            let replayed = replay(file, &ReplayOptions::default()).expect("it can be replayed");
            check_name(file, &replayed.name).expect("it has its node's name");
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let Replayed { inputs, actions, took, .. } = &replayed;
            println!("{name}: {inputs} inputs, {actions} actions in {took:.1?}");
            (name, replayed)
        };
        files.iter().map(one).collect()
    }
}

impl Drop for Recordings {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn is_whole(replayed: &Replayed) -> bool {
    matches!(replayed.end, ReplayEnd::Ending(Ending::Whole(_)))
}

/// A ring of four switches, two hosts at each.
fn ring_file() -> String {
    let host = |n: u32| format!("      h{n}: {{ at: s{}, ip: 10.0.77.{n} }}\n", n.div_ceil(2));
    let hosts: String = (1..=8).map(host).collect();
    format!(
        "name: test-ring\n\
         topology:\n  listed:\n    switches: [s1, s2, s3, s4]\n    hosts:\n{hosts}    \
         links: [[s1, s2], [s2, s3], [s3, s4], [s4, s1]]\nlinks: {{ rate: 100Mbps }}\n"
    )
}

fn start(lab: &Lab, host: usize, line: &str) -> Child {
    let mut command = lab.command(&format!("h{host}"), &["sh", "-c", line]).expect("a command");
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
}

fn ends_well(child: Child) {
    let output: Output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}{text}", String::from_utf8_lossy(&output.stderr));
}

fn ring() {
    if let Some(recordings) = ring_with("") {
        altered(&recordings.0.join("s2.axrec"));
    }
}

/// Axon's lookups are table entries there, and their results are recorded.
fn pipeline() {
    ring_with("dataplane: pipeline\n");
}

/// Runs a ring with `more` in its file while its links fail; returns the recordings, which all
/// replay. `None` where a program is missing.
fn ring_with(more: &str) -> Option<Recordings> {
    if !needs::programs(&["iperf3"]) {
        return None;
    }
    let given = std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok());
    let seconds: u64 = given.unwrap_or(SECONDS);
    let recordings = Recordings::new();
    let lab = recordings.up(&format!("{}{more}", ring_file()));
    let fabric = lab.fabric().expect("its file is there");
    // From each switch to the opposite one, and back, so that every link carries traffic.
    let flows: [(usize, usize); 4] = [(1, 5), (3, 7), (6, 2), (8, 4)];
    let servers: Vec<Child> =
        flows.iter().map(|(_, to)| start(&lab, *to, "iperf3 -s -1")).collect();
    let client = |(from, to): &(usize, usize)| {
        // A server does not report that it listens.
        let client = format!("iperf3 -c 10.0.77.{to} -t {seconds} -b 1M");
        start(
            &lab,
            *from,
            &format!("for i in 1 2 3 4 5; do {client} && exit; sleep 1; done; exit 1"),
        )
    };
    let clients: Vec<Child> = flows.iter().map(client).collect();
    let pause = Duration::from_secs(seconds) / (2 * FAILURES);
    for failure in 0..FAILURES as usize {
        let end = fabric.links[failure % fabric.links.len()].a;
        let port = format!("{}-p{}", fabric.switches[end.switch].name, end.port.0);
        std::thread::sleep(pause);
        lab.set_port(&port, false).expect("the switch has this port");
        std::thread::sleep(pause);
        lab.set_port(&port, true).expect("the switch has this port");
    }
    clients.into_iter().chain(servers).for_each(ends_well);
    axon_lab::down(Some(lab.name())).expect("it ends");
    let all = recordings.replay();
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["c1.axrec", "s1.axrec", "s2.axrec", "s3.axrec", "s4.axrec"]);
    for (name, replayed) in &all {
        assert!(is_whole(replayed), "{name}: {replayed:?}");
        assert!(replayed.reached.as_nanos() > seconds * 1_000_000_000, "{replayed:?}");
    }
    let carried: u64 = all.iter().map(|(_, replayed)| replayed.actions).sum();
    assert!(carried > 100 * seconds, "{carried}");
    Some(recordings)
}

/// A byte changed in the middle of a recording is found, with its offset.
fn altered(file: &Path) {
    let mut bytes = std::fs::read(file).expect("it is there");
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    std::fs::write(file, bytes).expect("it is ours");
    let replayed = replay(file, &ReplayOptions::default()).expect("it begins well");
    let ReplayEnd::Unreadable(error) = replayed.end else { panic!("{replayed:?}") };
    let text = error.to_string();
    assert!(text.starts_with(&format!("byte {at}, record ")), "{text}");
    println!("altered: {text}");
}

fn killed() {
    let recordings = Recordings::new();
    let lab = recordings.up(&ring_file());
    let before = daemon("s1").expect("s1 runs");
    // The file has only data that is older than a tenth of a second.
    std::thread::sleep(Duration::from_millis(300));
    kill(Pid::from_raw(before), Signal::SIGKILL).expect("it is ours");
    let started = Instant::now();
    let again = || daemon("s1").is_some_and(|pid| pid != before);
    let connected = || {
        let status = lab.status().unwrap_or_default();
        !status.is_empty() && status.iter().all(|node| node.status().is_some())
    };
    while !(again() && connected()) && started.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(20));
    }
    axon_lab::down(Some(lab.name())).expect("it ends");
    let all = recordings.replay();
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    let second = "s1.2.axrec";
    assert_eq!(names, ["c1.axrec", second, "s1.axrec", "s2.axrec", "s3.axrec", "s4.axrec"]);
    for (name, replayed) in &all {
        let cut = matches!(replayed.end, ReplayEnd::Ending(Ending::Cut { .. }));
        assert_eq!((cut, is_whole(replayed)), (name == "s1.axrec", name != "s1.axrec"), "{name}");
        assert!(replayed.inputs > 10, "{name}: {replayed:?}");
    }
}

fn agents() {
    if !needs::device("/dev/net/tun") {
        return;
    }
    let fabric = "name: test-agent
topology:
  listed:
    switches: [s1]
    hosts:
      h1: { at: s1, ip: 10.0.77.1 }
      h2: { at: s1, ip: 10.0.77.2 }
    links: []
links: { rate: 50Mbps }
dcb:
  classes:
    - { priorities: [0, 1, 2, 4, 5, 6], ets: 50 }
    - { priorities: [3], ets: 50, lossless: true }
    - { priorities: [7] }
  applications: [udp:4791=3]
  dcbx: {}
";
    let recordings = Recordings::new();
    let lab = recordings.up(fabric);
    ends_well(start(&lab, 1, "ping -q -i 0.01 -c 200 -s 1400 -w 20 10.0.77.2"));
    axon_lab::down(Some(lab.name())).expect("it ends");
    let all = recordings.replay();
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["c1.axrec", "h1.axrec", "h2.axrec", "s1.axrec"]);
    for (name, replayed) in &all {
        assert!(is_whole(replayed), "{name}: {replayed:?}");
        assert!(name.starts_with('c') || replayed.actions > 400, "{name}: {replayed:?}");
    }
}

fn left_alone() {
    let recordings = Recordings::new();
    std::fs::create_dir(&recordings.0).expect("a directory");
    let file = recordings.0.join("s9.axrec");
    std::fs::write(&file, "precious").expect("a file");
    let root = state_root();
    let path = root.with_extension("yaml");
    std::fs::write(&path, ring_file()).expect("a file");
    let record = RecordInto { directory: recordings.0.clone(), bytes_max: RECORD_BYTES_MAX };
    let options = UpOptions { record: Some(record), ..UpOptions::default() };
    let started = |_: &axon_lab::Progress| panic!("nothing may start");
    let error = axon_lab::up(&path, &options, started).expect_err("there is one").to_string();
    assert!(error.contains("name an empty directory"), "{error}");
    assert_eq!(std::fs::read(&file).expect("it is there"), b"precious");
}

fn cannot_begin() {
    let root = state_root();
    let (path, recordings) = (root.with_extension("yaml"), Recordings::new());
    std::fs::write(&path, ring_file()).expect("a file");
    let record = RecordInto { directory: recordings.0.clone(), bytes_max: 100 };
    let options = UpOptions { record: Some(record), ..UpOptions::default() };
    let error = axon_lab::up(&path, &options, |_| ()).expect_err("no header fits");
    let text = format!("{error:#}");
    assert!(text.contains("the header alone takes"), "the log is gone with the lab: {text}");
}
