//! External behaviour of the lab: it comes up, carries pings, and leaves nothing behind.

use crate::support::{Pinging, Test, daemon, needs, processes, replies, state_root, until};
use axon_fabric::assemble::switch_id;
use axon_lab::{Lab, StateDir, UpOptions, state::ProcessId};
use axon_link::keys::of_switch;
use axon_linux::rekey::rekey;
use axon_linux::status::NodeStatus;
use axon_node::probe::{PlanKind, ProbePlan};
use axon_node::telemetry::{NodeTelemetry, Restored};
use axon_node::{Drop, Keys, Refusal, Secret};
use axon_wire::{PortNo, Span};
use nix::mount::{MsFlags, mount, umount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    ("an_unknown_switch_to_capture_is_refused", an_unknown_switch_to_capture_is_refused),
    ("an_interrupted_up_leaves_nothing_behind", an_interrupted_up_leaves_nothing_behind),
    ("hosts_ping_and_nothing_is_left_behind", hosts_ping_and_nothing_is_left_behind),
    ("probes_measure_a_path_of_running_switches", probes_measure_a_path),
    ("a_killed_supervisor_takes_everything_along", a_killed_supervisor_takes_everything_along),
    ("a_command_keeps_its_status_and_the_machine_its_files", a_command_keeps_its_status),
    ("a_second_up_says_the_way_out", a_second_up_says_the_way_out),
    ("a_switch_that_is_killed_comes_back", a_switch_that_is_killed_comes_back),
    ("keys_change_while_hosts_ping", keys_change_while_hosts_ping),
    ("a_controller_that_is_killed_costs_no_flow_a_packet", a_killed_controller_costs_nothing),
    ("of_two_ups_at_once_one_starts_the_lab", of_two_ups_at_once_one_starts_the_lab),
    ("what_up_has_not_made_down_leaves_alone", what_up_has_not_made_down_leaves_alone),
    ("a_full_disk_ends_neither_daemons_nor_the_supervisor", a_full_disk_ends_nobody),
];

/// A ring of three switches and six hosts with fixed addresses, so that pings need no DHCP client.
fn fabric_file() -> PathBuf {
    let host = |n: u32| {
        format!(
            "      h{n}: {{ at: s{}, ip: 10.0.77.{n} }}
",
            n.div_ceil(2)
        )
    };
    let hosts: String = (1..=6).map(host).collect();
    let text = format!(
        "name: test-ring
topology:
  listed:
    switches: [s1, s2, s3]
    hosts:
{hosts}    \
         links: [[s1, s2], [s2, s3], [s3, s1]]
links: {{ rate: 100Mbps }}
"
    );
    let root = state_root();
    let path = root.with_extension("yaml");
    std::fs::write(&path, text).expect("a file");
    path
}

fn up(file: &Path) -> Lab {
    let (lab, report) =
        axon_lab::up(file, &UpOptions::default(), |_| ()).expect("the lab comes up");
    assert!(report.missing.is_empty(), "without controller: {:?}", report.missing);
    lab
}

fn an_unknown_switch_to_capture_is_refused() {
    let options = UpOptions { capture: vec!["s1".into(), "s9".into()], ..UpOptions::default() };
    let started = |_: &axon_lab::Progress| panic!("nothing may start");
    let error = axon_lab::up(&fabric_file(), &options, started).expect_err("there is no s9");
    assert!(error.to_string().contains("no switch s9"), "{error}");
    assert!(!StateDir::of("test-ring").expect("a good name").exists());
}

fn an_interrupted_up_leaves_nothing_behind() {
    let state = StateDir::of("test-ring").expect("a good name");
    for step in ["namespaces", "offloads", "devices", "daemons", "switches connected"] {
        let mut pressed = false;
        let press = |progress: &axon_lab::Progress| {
            if progress.step == step && !pressed {
                pressed = true;
                kill(Pid::this(), Signal::SIGINT).expect("it is this process");
            }
        };
        let outcome = axon_lab::up(&fabric_file(), &UpOptions::default(), press);
        let error = format!("{:#}", outcome.expect_err("it is interrupted"));
        assert!(error.contains("interrupted"), "{step}: {error}");
        assert!(!state.exists());
        assert_eq!(lab_processes(), [0; 0]);
    }
}

/// Processes of this test that belong to its lab, inside and outside, recognised by their parts.
fn lab_processes() -> Vec<i32> {
    let contains = |text: &[u8], part: &[u8]| text.windows(part.len()).any(|w| w == part);
    let all = processes().into_iter();
    all.filter(|(_, line)| contains(line, b"\0lab-part\0")).map(|(pid, _)| pid).collect()
}

fn run(lab: &Lab, node: &str, line: &str) -> std::process::Output {
    let mut command = lab.command(node, &["sh", "-c", line]).expect("a command");
    command.output().expect("it starts")
}

fn hosts_ping_and_nothing_is_left_behind() {
    let file = &fabric_file();
    let lab = up(file);
    let state = lab.state().clone();
    for (from, to) in [(1, 2), (1, 3), (6, 1), (4, 5)] {
        let line = format!("ping -c 1 -W 5 10.0.77.{to}");
        let output = run(&lab, &format!("h{from}"), &line);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    for status in lab.status().expect("daemons answer") {
        assert!(status.status().is_some(), "{status:?}");
    }
    assert!(!lab_processes().is_empty());
    assert_eq!(axon_lab::down(Some(lab.name())).expect("it ends"), lab.name());
    assert_eq!(lab_processes(), [0; 0]);
    assert!(!state.exists());
    assert!(axon_lab::down(Some(lab.name())).is_err());
}

fn probes_measure_a_path() {
    let file = &fabric_file();
    let lab = up(file);
    let fabric = lab.fabric().expect("its file is there");
    // s1 to s2 and back, by the ring's first link, and a full frame.
    let link = &fabric.links[0];
    let plan = ProbePlan::out_and_back(&[link.a.port], &[link.b.port]);
    // A switch that is not scheduled for a second on a busy machine loses nothing.
    let plan = ProbePlan { bytes: 1514, count: 20, timeout: Span::from_secs(20), ..plan };
    let report = lab.probe("s1", &plan).expect("s1 sends probes");
    assert_eq!((report.sent, report.lost, report.returns.len()), (20, 0, 20));
    for back in &report.returns {
        let times = back.times().expect("both switches left their records");
        let [inside] = &times.passages[..] else { panic!("one switch: {times:?}") };
        assert_eq!((inside.ingress, inside.egress), (link.b.port, link.b.port));
        assert!(inside.residence <= times.total && times.total <= back.back_at.since(back.sent_at));
        let [around] = times.round_trips().expect("out and back")[..] else { panic!("one link") };
        assert_eq!(around.ticks() + inside.residence.ticks(), times.total.ticks());
    }
    // Two probes at once get their own reports; the switch refuses impossible ones.
    let more = ProbePlan { count: 5, ..plan.clone() };
    let both = std::thread::scope(|scope| {
        let asked = [&plan, &more].map(|plan| scope.spawn(|| lab.probe("s1", plan)));
        asked.map(|thread| thread.join().expect("no panic").expect("a report").returns.len())
    });
    assert_eq!(both, [20, 5]);
    let nowhere = ProbePlan::new(PlanKind::Circuit([PortNo(0)].into_iter().collect()));
    let error = lab.probe("s1", &nowhere).expect_err("no circuit").to_string();
    assert!(error.contains("must go out and end at the control plane"), "{error}");
    let error = lab.probe("s9", &plan).expect_err("no such switch").to_string();
    assert!(error.contains("no node s9; it has c1 s1 s2 s3"), "{error}");
    axon_lab::down(Some(lab.name())).expect("it ends");
}

fn a_killed_supervisor_takes_everything_along() {
    let file = &fabric_file();
    let lab = up(file);
    let state = lab.state().clone();
    let supervisor: ProcessId = state.supervisor().expect("it runs");
    let mut left = lab.command("h1", &["sleep", "1000"]).expect("a command");
    let mut left = left.spawn().expect("it starts");
    kill(Pid::from_raw(supervisor.pid), Signal::SIGKILL).expect("it is ours");
    let started = Instant::now();
    // It runs until the last process of its namespace has ended. That closes devices, which may
    // wait for other namespaces that are ending.
    let runs = || state.supervisor().is_some() || !lab_processes().is_empty();
    while runs() && started.elapsed() < Duration::from_secs(120) {
        let _ = left.try_wait();
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = left.kill();
    left.wait().expect("it has ended");
    assert_eq!(lab_processes(), [0; 0]);
    assert_eq!(state.supervisor(), None, "after {:?}", started.elapsed());
    assert!(Lab::open(Some(lab.name())).is_err());
    axon_lab::down(Some(lab.name())).expect("down is clean after a crash");
    assert!(!state.exists());
}

fn a_command_keeps_its_status() {
    let file = &fabric_file();
    let lab = up(file);
    let resolv = std::fs::read("/etc/resolv.conf").unwrap_or_default();
    let output = run(&lab, "h1", "hostname; echo nameserver 192.0.2.1 > /etc/resolv.conf; exit 7");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "h1\n");
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(std::fs::read("/etc/resolv.conf").unwrap_or_default(), resolv);
    let kept = run(&lab, "h1", "cat /etc/resolv.conf");
    assert_eq!(String::from_utf8_lossy(&kept.stdout), "nameserver 192.0.2.1\n");
    assert!(run(&lab, "h2", "cat /etc/resolv.conf").stdout.is_empty());
    assert_eq!(run(&lab, "h1", "kill -9 $$").status.code(), Some(128 + 9));
    for unknown in ["h9", "/proc/1/ns/net", "../../proc/1/ns/net", ""] {
        let error = lab.command(unknown, &["true"]).expect_err("no such node").to_string();
        assert!(error.contains("c1 s1 s2 s3 h1"), "{error}");
    }
    assert!(run(&lab, "s1", "test -d /sys/class/net/s1-p0").status.success());
    lab.set_port("s1-p0", false).expect("s1 has this port");
    let carrier = run(&lab, "h1", "cat /sys/class/net/h1-p0/carrier");
    assert_eq!(String::from_utf8_lossy(&carrier.stdout), "0\n");
    assert!(lab.set_port("s1-p200", false).is_err());
    axon_lab::down(Some(lab.name())).expect("it ends");
}

fn a_second_up_says_the_way_out() {
    let file = &fabric_file();
    let lab = up(file);
    let error = axon_lab::up(file, &UpOptions::default(), |_| ()).expect_err("it runs already");
    assert!(error.to_string().contains(&format!("axon down --lab {}", lab.name())), "{error}");
    axon_lab::down(None).expect("it is the only one");
}

/// Kills the daemon of s1; returns when its hosts reach others through a new one. On the kernel's
/// data plane they reach them meanwhile, too.
fn kill_s1(lab: &Lab) {
    let s1 = || daemon("s1");
    let before = s1().expect("s1 runs");
    kill(Pid::from_raw(before), Signal::SIGKILL).expect("it is ours");
    let limit = Instant::now() + Duration::from_secs(30);
    while s1().is_none_or(|now| now == before) {
        assert!(Instant::now() < limit, "s1 runs again");
        std::thread::sleep(Duration::from_millis(50));
    }
    // With -w one answer ends ping, which sends a request each second until then.
    for (from, to) in [(1, 3), (3, 2), (2, 1)] {
        let output = run(lab, &format!("h{from}"), &format!("ping -c 1 -w 30 10.0.77.{to}"));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}

/// The state directory is a file system of 1 MiB that other data fills.
fn a_full_disk_ends_nobody() {
    if !needs::root("mount a small file system") {
        return;
    }
    let root = state_root();
    unshare(CloneFlags::CLONE_NEWNS).expect("root may");
    let (none, private) = (None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE);
    mount(none, "/", none, private, none).expect("root may");
    let small = Some("size=1m,mode=700");
    mount(Some("tmpfs"), &root, Some("tmpfs"), MsFlags::empty(), small).expect("root may");
    let lab = up(&fabric_file());
    let supervisor = lab.state().supervisor().expect("it runs");
    let fill = root.join("fill");
    let mut file = std::fs::File::create(&fill).expect("a file");
    while file.write_all(&[0; 512]).is_ok() {}
    kill_s1(&lab);
    assert!(supervisor.is_alive(), "it had lines to write");
    std::fs::remove_file(&fill).expect("it is ours");
    drop(file);
    kill_s1(&lab);
    assert_eq!(lab.state().supervisor(), Some(supervisor));
    let log = std::fs::read_to_string(lab.state().log("supervisor")).expect("its log");
    assert!(log.contains("lines before this one could not be written"), "{log}");
    assert!(log.contains("s1 starts again, restart 2"), "{log}");
    axon_lab::down(Some(lab.name())).expect("it ends");
    umount(&root).expect("nobody uses it");
}

fn a_switch_that_is_killed_comes_back() {
    let file = &fabric_file();
    let lab = up(file);
    assert!(run(&lab, "h1", "ping -c 1 -W 5 10.0.77.3").status.success());
    kill_s1(&lab);
    let status = lab.status().expect("daemons answer");
    let restarts: Vec<_> = status.iter().map(|of| of.restarts).collect();
    assert_eq!(restarts, [0, 1, 0, 0]);
    axon_lab::down(Some(lab.name())).expect("it ends");
}

/// The ring with a heartbeat of 500 ms, for tests that may lose no packet: a busy machine may not
/// schedule a daemon for the 250 ms after which a neighbour is lost by default.
fn patient_fabric_file() -> PathBuf {
    let file = fabric_file();
    let text = std::fs::read_to_string(&file).expect("it was just made");
    std::fs::write(&file, text + "timers: { heartbeat: 500ms }\n").expect("a file");
    file
}

/// The ring with a key file of its own; returns the paths of both.
fn fabric_with_key_file() -> (PathBuf, PathBuf) {
    let file = patient_fabric_file();
    let key = file.with_extension("key");
    let name = key.file_name().expect("it has one").to_str().expect("plain text");
    let text = std::fs::read_to_string(&file).expect("it was just made");
    std::fs::write(&file, format!("{text}key_file: {name}\n")).expect("a file");
    (file, key)
}

/// Writes keys in this order: the first seals, all are accepted.
fn write_keys(path: &Path, keys: &[&str]) {
    let mut file = std::fs::File::create(path).expect("a file");
    file.set_permissions(Permissions::from_mode(0o600)).expect("it is ours");
    file.write_all(keys.join("\n").as_bytes()).expect("there is room");
}

/// Number of control messages refused for their keys, by all nodes.
fn refused_by_key(lab: &Lab) -> u64 {
    let refused = |status: &NodeStatus| {
        let counts = match status.node().expect("it answers") {
            NodeTelemetry::Switch(node) => &node.refusals,
            NodeTelemetry::Controller(node) => &node.refusals,
            NodeTelemetry::Agent(_) | NodeTelemetry::Programmable(_) => return 0,
        };
        counts.get(Refusal::BadSeal) + counts.get(Refusal::Unauthorised)
    };
    lab.status().expect("daemons answer").iter().map(refused).sum()
}

/// Number of messages for its control plane that s1 has received.
fn received_by_s1(lab: &Lab) -> u64 {
    let nodes = lab.status().expect("daemons answer");
    let s1 = nodes.iter().find(|node| node.name() == "s1").and_then(NodeStatus::node);
    let Some(NodeTelemetry::Switch(s1)) = s1 else { return 0 };
    s1.plane.total.dropped(Drop::Consumed)
}

fn keys_change_while_hosts_ping() {
    let (file, key) = fabric_with_key_file();
    let (old, new) = ("11".repeat(32), "22".repeat(32));
    write_keys(&key, &[&old]);
    let lab = up(&file);
    let steady = Pinging::start(&lab, "h1", "-i 0.02 10.0.77.3");
    let steps = [vec![&*old, &new], vec![&*new, &old], vec![&*new]];
    // Pairs without a requested route.
    let fresh = [[(1, 5), (3, 6)], [(2, 4), (5, 3)], [(6, 2), (4, 1)]];
    for (step, fresh) in steps.iter().zip(fresh) {
        write_keys(&key, step);
        let keys = axon_fabric::load(&file).expect("its keys are good").keys;
        for (node, outcome) in lab.rekey(&keys).expect("its fabric is there") {
            outcome.unwrap_or_else(|error| panic!("{node}: {error:#}"));
        }
        std::thread::scope(|scope| {
            for (from, to) in fresh {
                let lab = &lab;
                scope.spawn(move || {
                    // Longer than a neighbour may be silent.
                    let line = format!("ping -c 15 -i 0.1 10.0.77.{to}");
                    let output = run(lab, &format!("h{from}"), &line);
                    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
                });
            }
        });
    }
    let numbers = replies(&steady.end());
    assert_eq!(numbers, (1..=numbers.len() as u32).collect::<Vec<_>>(), "lost or out of order");
    assert_eq!(refused_by_key(&lab), 0);
    // Only s2 can use the keys that are derived from the new one.
    let switch = of_switch(&[0x22; 32], switch_id(1));
    let own = Keys { current: Secret::Switch(switch), other: None };
    rekey(&lab.state().socket("s2"), &own).expect("they are its own");
    for other in ["s3", "c1"] {
        let error = rekey(&lab.state().socket(other), &own).expect_err("they are not its own");
        assert!(error.to_string().contains("the keys are those of"), "{error}");
    }
    assert!(run(&lab, "h3", "ping -c 3 -W 5 10.0.77.5").status.success());
    // A restarted switch reads the file.
    kill_s1(&lab);
    // Neighbours may have sealed some heartbeats for the killed incarnation. Afterwards none is
    // refused while s1 receives eight more messages.
    let quiet = (0..20).any(|_| {
        let (refused, received) = (refused_by_key(&lab), received_by_s1(&lab));
        let more = until(Duration::from_secs(20), || received_by_s1(&lab) >= received + 8);
        assert!(more, "s1 receives nothing");
        refused_by_key(&lab) == refused
    });
    assert!(quiet, "messages are refused again and again: {}", refused_by_key(&lab));
    axon_lab::down(Some(lab.name())).expect("it ends");
    std::fs::remove_file(&key).expect("it is ours");
}

/// The longest time between two replies of a ping with `-D`, in seconds.
fn gap(output: &str) -> f64 {
    let at = |line: &str| line.strip_prefix('[')?.split(']').next()?.parse().ok();
    let times: Vec<f64> = output.lines().filter_map(at).collect();
    times.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max)
}

/// The state that the controller restored of its previous incarnation, if it answers.
fn restored(status: &[NodeStatus]) -> Option<Restored> {
    match status.first()?.node()? {
        NodeTelemetry::Controller(controller) => Some(controller.restored),
        _ => None,
    }
}

/// Four hosts exchange a hundred requests a second with others while the controller is killed and
/// restarted, until it has the routes of its previous incarnation.
fn a_killed_controller_costs_nothing() {
    const PAIRS: [(u32, u32); 4] = [(1, 3), (3, 5), (5, 1), (2, 6)];
    let file = &patient_fabric_file();
    let lab = up(file);
    for (from, to) in PAIRS {
        let line = format!("ping -c 1 -w 30 10.0.77.{to}");
        assert!(run(&lab, &format!("h{from}"), &line).status.success());
    }
    let pings = PAIRS.map(|(from, to)| {
        Pinging::start(&lab, &format!("h{from}"), &format!("-D -i 0.01 10.0.77.{to}"))
    });
    assert!(run(&lab, "h4", "ping -i 0.05 -c 20 10.0.77.6").status.success());
    let before = daemon("c1").expect("c1 runs");
    kill(Pid::from_raw(before), Signal::SIGKILL).expect("it is ours");
    // Routes in both directions, which take moments even on a slow machine.
    let started = Instant::now();
    let mut status = lab.status().expect("daemons answer");
    while restored(&status).is_none_or(|restored| restored.routes_kept < 8) {
        assert!(started.elapsed() < Duration::from_secs(60), "{:?}", restored(&status));
        std::thread::yield_now();
        status = lab.status().expect("daemons answer");
    }
    assert!(run(&lab, "h4", "ping -i 0.05 -c 20 10.0.77.6").status.success());
    for (ping, (from, to)) in pings.into_iter().zip(PAIRS) {
        let text = ping.end();
        let numbers = replies(&text);
        let gap = gap(&text) * 1e3;
        println!("h{from} to h{to}: {} replies, {gap:.1} ms between two", numbers.len());
        let expected: Vec<u32> = (1..=numbers.len() as u32).collect();
        assert_eq!(numbers, expected, "lost, doubled or out of order");
    }
    status = lab.status().expect("daemons answer");
    assert_ne!(daemon("c1"), Some(before));
    let restored = restored(&status).expect("it answers");
    assert_eq!((restored.routes_moved, restored.routes_removed), (0, 0));
    assert!(restored.hosts >= 5, "all that have sent: {restored:?}");
    let text = axon_lab::restored::text(&status);
    assert!(text.starts_with("c1: from its store ") && text.contains("0 moved"), "{text}");
    axon_lab::down(Some(lab.name())).expect("it ends");
}

fn of_two_ups_at_once_one_starts_the_lab() {
    let file = &fabric_file();
    let up = || axon_lab::up(file, &UpOptions::default(), |_| ());
    let (first, second) = std::thread::scope(|scope| {
        let other = scope.spawn(up);
        (up(), other.join().expect("it does not panic"))
    });
    let (lab, error) = match (first, second) {
        (Ok((lab, _)), Err(error)) | (Err(error), Ok((lab, _))) => (lab, error),
        both => panic!("one, and only one, must start: {both:?}"),
    };
    assert!(error.to_string().contains("already up") || error.to_string().contains("just being"));
    assert!(run(&lab, "h1", "ping -c 1 -W 5 10.0.77.3").status.success());
    axon_lab::down(Some(lab.name())).expect("it ends");
}

fn what_up_has_not_made_down_leaves_alone() {
    let file = &fabric_file();
    let lab = up(file);
    let state = lab.state().clone();
    axon_lab::down(Some(lab.name())).expect("it ends");
    // A directory of the lab's name, with a process of ours in it, which is not a lab.
    std::fs::create_dir(state.path()).expect("a directory");
    let mut other = std::process::Command::new("sleep").arg("1000").spawn().expect("it starts");
    let process = ProcessId::of(other.id() as i32).expect("it runs");
    state.write_supervisor(process).expect("a file");
    assert!(axon_lab::down(Some(lab.name())).is_err());
    assert!(
        axon_lab::down(None).expect_err("it is not listed").to_string().contains("no lab is up")
    );
    assert!(axon_lab::up(file, &UpOptions::default(), |_| ()).is_err());
    assert!(process.is_alive() && state.path().join("supervisor.json").exists());
    other.kill().and_then(|()| other.wait()).expect("it is ours");
    std::fs::remove_dir_all(state.path()).expect("it is ours");
}
