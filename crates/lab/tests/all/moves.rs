//! Real hosts that move from switch to switch in a lab, and hosts behind a bridge at one port.
//! `tools/moves` measures the duration of a move.

use crate::support::{Test, needs, state_root};
use axon_lab::{Lab, UpOptions};
use axon_node::telemetry::{ControllerTelemetry, NodeTelemetry};
use axon_wire::MacAddr;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::Barrier;
use std::time::{Duration, Instant};

const NAME: &str = "test-moves";
/// Limit of every wait.
const LIMIT: Duration = Duration::from_secs(60);

pub const TESTS: &[Test] = &[
    (
        "hosts_move_between_switches_and_their_connections_survive",
        hosts_move_between_switches_and_their_connections_survive,
    ),
    ("hosts_behind_a_bridge_at_one_port", hosts_behind_a_bridge_at_one_port),
    ("commands_at_the_same_time_follow_each_other", commands_at_the_same_time_follow_each_other),
];

/// A ring of three switches with a host each, and free ports.
fn fabric_file(dataplane: &str) -> PathBuf {
    let text = format!(
        "name: {NAME}\ntopology:\n  listed:\n    switches: [s1, s2, s3]\n    hosts:\n      \
         h1: {{ at: s1-p0, ip: 10.0.79.1 }}\n      h2: {{ at: s2-p0, ip: 10.0.79.2 }}\n      \
         h3: {{ at: s3-p0, ip: 10.0.79.3 }}\n    \
         links: [[s1-p8, s2-p9], [s2-p8, s3-p9], [s3-p8, s1-p9]]\n\
         dataplane: {dataplane}\nports: {{ axon: links }}\n"
    );
    let root = state_root();
    let path = root.with_extension("yaml");
    std::fs::write(&path, text).expect("a file");
    path
}

fn up(dataplane: &str) -> Lab {
    let file = fabric_file(dataplane);
    let (lab, report) = axon_lab::up(&file, &UpOptions::default(), |_| ()).expect("it comes up");
    assert!(report.missing.is_empty(), "without controller: {:?}", report.missing);
    lab
}

/// Runs a line of the shell in a node; returns whether it succeeded, and its output.
fn sh(lab: &Lab, node: &str, line: &str) -> (bool, String) {
    let mut command = lab.command(node, &["sh", "-ec", line]).expect("a command");
    let output = command.output().expect("it starts");
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

fn run(lab: &Lab, node: &str, line: &str) -> String {
    let (succeeds, text) = sh(lab, node, line);
    assert!(succeeds, "{node}: {line}\n{text}");
    text
}

/// Repeats a line of the shell until it succeeds.
fn soon(lab: &Lab, node: &str, line: &str) {
    let limit = Instant::now() + LIMIT;
    loop {
        let (succeeds, text) = sh(lab, node, line);
        if succeeds {
            return;
        }
        assert!(Instant::now() < limit, "{node}: {line}\n{text}");
    }
}

fn controller(lab: &Lab) -> ControllerTelemetry {
    let status = lab.status().expect("the lab runs");
    let found = status.iter().find_map(|status| match status.node() {
        Some(NodeTelemetry::Controller(controller)) => Some((**controller).clone()),
        _ => None,
    });
    found.expect("the controller answers")
}

/// Waits until the controller has a host at this port, given as the number of a switch from 1, and
/// a port.
fn await_place(lab: &Lab, mac: MacAddr, place: (u64, u16)) {
    let fabric = lab.fabric().expect("its file is there");
    let expected = axon_fabric::assemble::switch_id((place.0 - 1) as usize);
    let limit = Instant::now() + LIMIT;
    loop {
        let hosts = controller(lab).hosts;
        let entries: Vec<_> = hosts.iter().filter(|host| host.mac == mac).collect();
        assert!(entries.len() <= 1 && fabric.switches.len() == 3, "{entries:?}");
        if entries.iter().any(|host| (host.switch, host.port.0) == (expected, place.1)) {
            return;
        }
        assert!(Instant::now() < limit, "{mac} is at {entries:?}, not at {place:?}");
    }
}

/// Server that echoes one connection, and ends with it.
const SERVER: &str = "import socket
s = socket.create_server(('0.0.0.0', 5600)); print('ready', flush=True); c, _ = s.accept()
while (data := c.recv(4096)): c.sendall(data)
";

/// Client that exchanges a byte each 5 ms over one connection. For each line of its input it prints
/// the number of exchanges so far, after one more.
const CLIENT: &str = "import select, socket, sys
s = socket.create_connection(('10.0.79.2', 5600)); s.settimeout(50); count = 0
while True:
    ready, _, _ = select.select([0], [], [], 0.005)
    if ready and not sys.stdin.readline(): break
    s.sendall(b'x'); assert s.recv(1); count += 1
    if ready: print(count, flush=True)
";

/// A program that runs in a node, with its pipes.
struct Part(Child, BufReader<std::process::ChildStdout>);

impl Part {
    fn start(lab: &Lab, node: &str, argv: &[&str]) -> Part {
        let mut command = lab.command(node, argv).expect("a command");
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = piped.spawn().expect("it starts");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        Part(child, output)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.1.read_line(&mut line).expect("a line");
        line.trim().to_owned()
    }

    fn ask(&mut self) -> String {
        self.0.stdin.as_mut().expect("it is piped").write_all(b"\n").expect("it runs");
        self.line()
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn hosts_move_between_switches_and_their_connections_survive() {
    if !needs::programs(&["python3"]) {
        return;
    }
    for dataplane in ["full", "tc", "pipeline"] {
        let lab = up(dataplane);
        let mac = lab.fabric().expect("its file is there").hosts[1].mac;
        let mut server = Part::start(&lab, "h2", &["python3", "-uc", SERVER]);
        assert_eq!(server.line(), "ready");
        let mut client = Part::start(&lab, "h1", &["python3", "-uc", CLIENT]);
        // It is connected before the first move.
        let mut exchanges: u64 = client.ask().parse().expect("it is connected");
        let before = controller(&lab).counters;
        // Announced, silent, to another port of the same switch, and back.
        for (to, place, announce) in [
            ("s3-p2", (3, 2), true),
            ("s1-p3", (1, 3), false),
            ("s1-p4", (1, 4), false),
            ("s2-p0", (2, 0), true),
        ] {
            let moved = lab.move_cable("h2", to, announce).expect("the port is free");
            assert_eq!((moved.host.as_deref(), &moved.to[..]), (Some("h2"), to));
            let count: u64 = client.ask().parse().expect("the connection is alive");
            assert!(count > exchanges, "{dataplane}: to {to}: {count} exchanges");
            exchanges = count;
            await_place(&lab, mac, place);
            soon(&lab, "h3", "ping -c 1 -W 1 10.0.79.2");
            soon(&lab, "h2", "ping -c 1 -W 1 10.0.79.1");
        }
        let counters = controller(&lab).counters;
        assert_eq!(counters.ip_refused, before.ip_refused, "{dataplane}: it keeps its address");
        assert_eq!(counters.hosts_misplaced, 0);
        let error = lab.move_cable("h2", "s1-p0", false).expect_err("h1 is there");
        assert!(error.to_string().contains("s1-p0 is taken by h1"), "{error}");
        let error = lab.move_cable("s1-p5", "s1-p6", false).expect_err("nothing is there");
        assert!(error.to_string().contains("nothing is plugged into s1-p5"), "{error}");
        println!("{dataplane}: {exchanges} exchanges over one connection");
        drop((client, server));
        axon_lab::down(Some(NAME)).expect("it ends");
    }
}

/// A namespace that a program of node `node` holds open; returns the program and its process.
fn held(lab: &Lab, node: &str, own: bool) -> (Part, String) {
    let words: &[&str] = if own { &["unshare", "-n"] } else { &[] };
    let argv = [words, &["sh", "-c", "echo $$; exec sleep 100000"]].concat();
    let mut part = Part::start(lab, node, &argv);
    let pid = part.line();
    (part, pid)
}

/// Three hosts behind a Linux bridge in place of h2: two with fixed addresses, one with an address
/// from DHCP. Returns the command prefix that runs a line in each.
fn bridge(lab: &Lab) -> (Vec<Part>, Vec<String>) {
    run(
        lab,
        "h2",
        "ip address flush dev h2-p0; ip link add br0 type bridge; ip link set h2-p0 master br0; \
         ip link set br0 up",
    );
    let (mut parts, mut inside) = (Vec::new(), Vec::new());
    for n in 1..=3 {
        let (part, pid) = held(lab, "h2", true);
        run(
            lab,
            "h2",
            &format!(
                "ip link add g{n} type veth peer name eth0 address 02:00:00:00:79:0{n} \
                 netns {pid}; ip link set g{n} master br0 up; \
                 nsenter -t {pid} -n sh -ec 'ip link set lo up; ip link set eth0 up'"
            ),
        );
        let enter = format!("nsenter -t {pid} -n ");
        if n < 3 {
            run(lab, "h2", &format!("{enter} ip address add 10.0.79.10{n}/16 dev eth0"));
        }
        parts.push(part);
        inside.push(enter);
    }
    (parts, inside)
}

/// Returns the address that it has from DHCP.
fn leased(lab: &Lab, enter: &str) -> String {
    let script = "[ \"$1\" = bound ] && ip address add \"$ip/16\" dev eth0 || :";
    let file = "/run/lease.sh";
    run(lab, "h2", &format!("printf '#!/bin/sh\\n%s\\n' '{script}' > {file}; chmod +x {file}"));
    soon(lab, "h2", &format!("{enter} busybox udhcpc -i eth0 -s {file} -n -q -t 5 -T 1"));
    let text = run(lab, "h2", &format!("{enter} ip -4 -o address show dev eth0"));
    let address = text.split_whitespace().skip_while(|word| *word != "inet").nth(1);
    address.and_then(|address| address.split('/').next()).expect("an address").to_owned()
}

fn hosts_behind_a_bridge_at_one_port() {
    if !needs::programs(&["busybox", "nsenter", "unshare"]) {
        return;
    }
    for dataplane in ["full", "tc"] {
        let lab = up(dataplane);
        let (parts, inside) = bridge(&lab);
        let third = leased(&lab, &inside[2]);
        let addresses = ["10.0.79.101".to_owned(), "10.0.79.102".to_owned(), third];
        let ping = |to: &str| format!("ping -c 1 -W 1 {to}");
        let all_pairs = || {
            for (from, enter) in inside.iter().enumerate() {
                let others = addresses.iter().enumerate().filter(|(to, _)| *to != from);
                let outside = ["10.0.79.1", "10.0.79.3"].into_iter();
                for to in others.map(|(_, to)| &to[..]).chain(outside) {
                    soon(&lab, "h2", &format!("{enter} {}", ping(to)));
                }
            }
            for host in ["h1", "h3"] {
                addresses.iter().for_each(|to| soon(&lab, host, &ping(to)));
            }
        };
        all_pairs();
        // One moves from behind the bridge to a port of its own, and exchanges frames with those it
        // has left.
        let (_there, pid) = held(&lab, "s3", false);
        run(&lab, "h2", &format!("ip link set g1 netns {pid} name s3-p2 up"));
        run(&lab, "s3", "ip link set s3-p2 up");
        soon(&lab, "h2", &format!("{} {}", inside[0], ping(&addresses[1])));
        let first = MacAddr([2, 0, 0, 0, 0x79, 1]);
        await_place(&lab, first, (3, 2));
        // Hosts behind the bridge reach it at once, with any stale state in their edge.
        for enter in &inside[1..] {
            soon(&lab, "h2", &format!("{enter} {}", ping(&addresses[0])));
        }
        all_pairs();
        // And back: no frame of the bridge may return to it through the fabric.
        let (_back, pid) = held(&lab, "h2", false);
        run(&lab, "s3", &format!("ip link set s3-p2 netns {pid} name g1 up"));
        run(&lab, "h2", "ip link set g1 master br0 up");
        soon(&lab, "h2", &format!("{} {}", inside[0], ping("10.0.79.3")));
        await_place(&lab, first, (2, 0));
        all_pairs();
        println!("{dataplane}: all pairs behind the bridge, at a port of its own, and back");
        drop(parts);
        axon_lab::down(Some(NAME)).expect("it ends");
    }
}

/// Runs both at the same time.
fn both<A: Send, B: Send>(
    one: impl FnOnce() -> A + Send,
    other: impl FnOnce() -> B + Send,
) -> (A, B) {
    let begin = Barrier::new(2);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            begin.wait();
            other()
        });
        begin.wait();
        (one(), other.join().expect("it does not panic"))
    })
}

/// Returns those of the ports that have a device.
fn plugged<'a>(lab: &Lab, ports: &[&'a str]) -> Vec<&'a str> {
    let here = |port: &&str| sh(lab, &port[..2], &format!("ip link show dev {port}")).0;
    ports.iter().copied().filter(here).collect()
}

fn commands_at_the_same_time_follow_each_other() {
    let lab = up("full");
    // Two commands move one host: the second finds it where the first has moved it.
    let lab_of_all = &lab;
    let silent = |what, to| move || lab_of_all.move_cable(what, to, false);
    let (first, second) = both(silent("h2", "s3-p2"), silent("h2", "s1-p3"));
    let (first, second) = (first.expect("it moves"), second.expect("it moves"));
    let last = if first.from == second.to { &first } else { &second };
    assert!(first.from == second.to || second.from == first.to, "{first:?} {second:?}");
    assert_eq!(plugged(&lab, &["s2-p0", "s3-p2", "s1-p3"]), [&last.to[..]]);
    // Two hosts are moved to one port: the second is refused, and stays where it is.
    let (h2, h3) = both(silent("h2", "s3-p4"), silent("h3", "s3-p4"));
    let (moved, refused) = match (h2, h3) {
        (Ok(moved), Err(refused)) | (Err(refused), Ok(moved)) => (moved, refused),
        both => panic!("{both:?}"),
    };
    let host = moved.host.expect("a host of the file");
    assert!(refused.to_string().contains(&format!("s3-p4 is taken by {host}")), "{refused}");
    let left: &str = if host == "h2" { "s3-p0" } else { &last.to };
    assert_eq!(plugged(&lab, &["s3-p4", left]), ["s3-p4", left]);
    // A link that is cut and restored while its host moves is up at both ends.
    let cut = || lab.set_link("h1-p0", false).and_then(|_| lab.set_link("h1-p0", true));
    let (moved, mended) = both(silent("h1", "s2-p4"), cut);
    assert_eq!(moved.expect("it moves").to, "s2-p4");
    assert_eq!(mended.map(|ends| ends.contains(&"h1-p0".to_owned())).ok(), Some(true));
    for host in ["h2", "h3"] {
        soon(&lab, "h1", &format!("ping -c 1 -W 1 10.0.79.{}", &host[1..]));
    }
    // A command that ends the lab waits for one that changes it, or comes first.
    let (moved, ended) = both(silent("h1", "s1-p0"), || axon_lab::down(Some(NAME)));
    assert_eq!(ended.expect("it ends"), NAME);
    if let Err(error) = moved {
        let error = error.to_string();
        assert!(error.contains("has ended") || error.contains("there is no lab"), "{error}");
    }
    assert!(!lab.state().exists() && lab.move_cable("h1", "s1-p0", false).is_err());
}
