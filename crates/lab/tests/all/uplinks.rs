//! An uplink at a real network device: a veth pair of this test's own, whose other end is the
//! gateway's, in a namespace of its own.
//!
//! The lab starts its parts from the program that calls it, so this test is a program of its own
//! and not run by libtest. It runs in a network namespace of its own, which plays the machine's.

use crate::support::{Test, needs, shell, state_root};
use axon_lab::{Lab, StateDir, UpOptions};
use axon_linux::machine::Machine as Kernel;
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

pub const TESTS: &[Test] = &[
    ("a_device_that_must_not_be_a_port_is_refused_and_left_alone", refused),
    ("hosts_reach_a_real_gateway_on_every_data_plane", planes),
    ("the_device_comes_back_whatever_part_of_the_lab_is_killed", killed),
    ("an_up_that_is_interrupted_gives_the_device_back", interrupted),
    ("a_device_whose_name_is_taken_comes_back_under_that_of_the_port", taken),
];

const LAB: &str = "test-uplinks";
const MAC: &str = "02:00:00:00:77:01";

/// Runs a line of the shell, which must succeed; returns its output.
fn sh(line: &str) -> String {
    let output = Command::new("sh").args(["-c", line]).output().expect("a shell");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}\n{text}{errors}");
    text
}

/// A machine with the device `eth1`, whose other end is at a gateway.
struct Machine {
    gateway: File,
}

impl Machine {
    /// Moves the calling thread into its namespace.
    fn new() -> Machine {
        let own = || {
            unshare(CloneFlags::CLONE_NEWNET).expect("root may");
            sh("ip link set lo up");
        };
        own();
        let gateway = File::open("/proc/thread-self/ns/net").expect("a namespace");
        own();
        let machine = Machine { gateway };
        sh(&format!(
            "ip link add eth1 address {MAC} mtu 1600 type veth peer name gw0 mtu 1600 netns {}",
            machine.path()
        ));
        sh("ip address add 192.0.2.77/24 dev eth1; ip link set eth1 up; \
            ip -6 address add fd00:77::1/64 dev eth1 nodad");
        machine.outside(
            "ip address add 10.0.77.254/16 dev gw0; ip address add 192.0.2.1/24 dev gw0; \
             ip address add 198.51.100.1/32 dev lo; ip link set gw0 up; \
             ethtool -K gw0 tso off gso off tx off gro on",
        );
        machine
    }

    /// The gateway's namespace, for `ip` and `nsenter`.
    fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.gateway.as_raw_fd())
    }

    /// Runs a line of the shell at the gateway.
    fn outside(&self, line: &str) -> String {
        sh(&format!("nsenter --net={} sh -c '{line}'", self.path()))
    }

    /// Asserts that the machine has its device back, unchanged.
    fn assert_back(&self) {
        let link = sh("ip -details link show dev eth1");
        assert!(link.contains(" mtu 1600 ") && link.contains(MAC), "{link}");
        assert!(link.contains(",UP,") && !link.contains("xdp"), "{link}");
        let addresses = sh("ip address show dev eth1");
        let has = |address: &str| addresses.contains(address);
        assert!(has(" 192.0.2.77/24 ") && has(" fd00:77::1/64 "), "{addresses}");
        assert_eq!(sh("tc qdisc show dev eth1 | grep -c htb; true").trim(), "0");
        assert_eq!(sh("tc filter show dev eth1 ingress").trim(), "");
        self.outside("ping -c 1 -W 5 192.0.2.77");
    }
}

fn has_programs() -> bool {
    needs::root("move a network device")
        && needs::programs(&["ethtool", "nsenter", "udhcpc", "python3"])
}

/// Writes the file of a fabric of two switches with an uplink.
fn file(device: &str, rest: &str) -> PathBuf {
    let root = state_root();
    let path = root.with_extension("yaml");
    let text = format!(
        "name: {LAB}
topology:
  listed:
    switches: [s1, s2]
    hosts: {{ h1: {{ at: s1, ip: 10.0.77.1 }}, h2: s2 }}
    links: [[s1, s2]]
uplinks: [{{ name: up1, at: s2-p7, gateway: 10.0.77.254, device: {device} }}]
{rest}
"
    );
    std::fs::write(&path, text).expect("a file");
    path
}

fn up(rest: &str) -> Lab {
    let options = UpOptions { bare: true, ..UpOptions::default() };
    axon_lab::up(&file("eth1", rest), &options, |_| ()).expect("it comes up").0
}

fn refused() {
    if !has_programs() {
        return;
    }
    let machine = Machine::new();
    for (before, device, reason, after) in [
        ("", "eth9", "this network namespace has none of that name; it has lo eth1", ""),
        ("", "lo", "it is the loopback device", ""),
        (
            "ip link add br0 type bridge; ip link set eth1 master br0",
            "eth1",
            "it is part of br0; take it out first",
            "ip link set eth1 nomaster",
        ),
        ("", "br0", "it is a bridge, which is made of other devices", "ip link del br0"),
        (
            "ip link add mv0 link eth1 type macvlan",
            "eth1",
            "mv0 is based on it, and would lose it",
            "ip link del mv0",
        ),
        (
            "ip route add default via 192.0.2.1",
            "eth1",
            "the default route of this machine goes over it",
            "ip route del default",
        ),
        (
            "ip -6 route add default via fd00:77::9 table 100",
            "eth1",
            "the default route of this machine goes over it",
            "ip -6 route del default table 100",
        ),
        ("ip link add du0 type ifb", "du0", "it has no wire (ifb)", "ip link del du0"),
    ] {
        sh(before);
        let started = |progress: &axon_lab::Progress| panic!("{device}: {progress:?}");
        let outcome = axon_lab::up(&file(device, ""), &UpOptions::default(), started);
        let error = format!("{:#}", outcome.expect_err("it is refused"));
        let whose = format!("uplink up1 cannot have device {device}: ");
        assert!(error.contains(&whose) && error.contains(reason), "{error}");
        assert!(!StateDir::of(LAB).expect("a good name").exists());
        sh(after);
        machine.assert_back();
    }
}

/// Returns the settings that a DHCP client of h2 receives.
fn lease(lab: &Lab) -> String {
    let script = state_root();
    let script = script.with_extension("sh");
    let text = "#!/bin/sh\n[ \"$1\" != bound ] || { ip address replace \"$ip/16\" dev \
                \"$interface\"; env >/run/lease; }\n";
    std::fs::write(&script, text).expect("a file");
    let script = script.display();
    shell(
        lab,
        "h2",
        &format!("chmod 755 {script}; udhcpc -n -q -t 10 -T 1 -i h2-p0 -s {script} 2>&1"),
    );
    shell(lab, "h2", "cat /run/lease")
}

fn planes() {
    if !has_programs() {
        return;
    }
    let machine = Machine::new();
    let able = Kernel::tried() == Kernel::ABLE;
    for plane in ["full", "pipeline", "tc", "xdp"] {
        if !able && matches!(plane, "tc" | "xdp") {
            needs::skip("the kernel has no data planes here");
            continue;
        }
        println!("dataplane: {plane}");
        let lab = up(&format!("dataplane: {plane}"));
        assert!(!sh("ip -brief link").contains("eth1"), "it is the switch's");
        let lease = lease(&lab);
        assert!(lease.lines().any(|line| line == "router=10.0.77.254"), "{lease}");
        let own = lease.lines().find_map(|line| line.strip_prefix("ip=")).expect("an address");
        for (host, ip) in [("h1", "10.0.77.1"), ("h2", own)] {
            shell(&lab, host, "ip route replace default via 10.0.77.254");
            shell(&lab, host, "ping -c 2 -i 0.2 -W 5 10.0.77.254 && ping -c 1 -W 5 198.51.100.1");
            machine.outside(&format!("ping -c 1 -W 5 {ip}"));
        }
        assert_eq!(
            shell(&lab, "h1", "getent ahostsv4 up1 | cut -d\\  -f1 | uniq"),
            "10.0.77.254\n"
        );
        stream(&machine, &lab);
        if plane == "full" {
            what_is_outside_is_not_the_labs(&lab);
            restarted(&machine, &lab);
        }
        axon_lab::down(Some(LAB)).expect("it ends");
        machine.assert_back();
    }
}

/// Sends a megabyte there and back between h1 and an address behind the gateway.
fn stream(machine: &Machine, lab: &Lab) {
    let serve = "import socket as s; l = s.create_server((\"198.51.100.1\", 7000)); print(1, \
                 flush=True); c, a = l.accept(); n = 0
while n < 1000000: n += len(c.recv(65536))
c.sendall(b\"y\" * 1000000)";
    let mut server = Command::new("nsenter")
        .args([&format!("--net={}", machine.path()), "python3", "-c", serve])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut says = BufReader::new(server.stdout.take().expect("a pipe"));
    says.read_line(&mut String::new()).expect("it is ready");
    let connect = "import socket as s; c = s.create_connection((\"198.51.100.1\", 7000), 10); \
                   c.sendall(b\"x\" * 1000000); n = 0
while n < 1000000: n += len(c.recv(65536))
print(n)";
    assert_eq!(shell(lab, "h1", &format!("python3 -c '{connect}'")).trim(), "1000000");
    assert!(server.wait().expect("it ends").success());
}

fn what_is_outside_is_not_the_labs(lab: &Lab) {
    let error = lab.command("up1", &["true"]).expect_err("nothing runs there").to_string();
    assert!(error.contains("up1 is what is behind eth1, the device of an uplink"), "{error}");
    let error = lab.move_cable("s2-p7", "s2-p4", false).expect_err("it stays").to_string();
    assert!(error.contains("s2-p7 is eth1, the device of uplink up1: it stays"), "{error}");
    let error = lab.move_cable("h1", "s2-p7", false).expect_err("it is taken").to_string();
    assert!(error.contains("s2-p7 is taken by eth1, the device of up1"), "{error}");
    // All hosts ping the gateway; no ping starts there.
    let fabric = lab.fabric().expect("its file is there");
    let pings = lab.ping(&fabric, &[(0, 2)], Duration::from_secs(5), || ()).expect("h1 pings");
    assert!(pings[0].rtt_ns.is_some(), "{pings:?}");
}

/// A killed switch gets its port back: the device stays in its namespace.
fn restarted(machine: &Machine, lab: &Lab) {
    let of_s2 = "for p in /proc/[0-9]*; do tr \"\\0\" \" \" <$p/cmdline 2>/dev/null | \
                 grep -q \"lab-part node /run/lab s2 $\" && kill -9 ${p#/proc/}; done; true";
    shell(lab, "s2", of_s2);
    shell(
        lab,
        "h1",
        "for n in 1 2 3 4 5 6 7 8; do ping -c 1 -W 2 10.0.77.254 && exit 0; done; exit 1",
    );
    machine.outside("ping -c 1 -W 5 10.0.77.1");
    assert!(!lab.status().expect("daemons answer").is_empty());
}

/// Waits until the machine has its device again, without the help of `axon`.
fn wait_until_back() {
    sh("for n in $(seq 400); do ip link show dev eth1 up 2>/dev/null | grep -q eth1 && exit 0; \
        sleep 0.05; done; exit 1");
}

fn killed() {
    if !has_programs() {
        return;
    }
    let machine = Machine::new();
    let state = StateDir::of(LAB).expect("a good name");
    let end = |pid: i32| kill(Pid::from_raw(pid), Signal::SIGKILL).expect("it is ours");
    let supervisor = || end(state.supervisor().expect("it runs").pid);
    let keeper = || end(state.keeper().expect("it runs").pid);
    let lab = up("");
    supervisor();
    wait_until_back();
    axon_lab::down(Some(LAB)).expect("it ends");
    machine.assert_back();
    drop(lab);
    up("");
    supervisor();
    // At once: the command waits for leftovers.
    up("");
    keeper();
    axon_lab::down(Some(LAB)).expect("it ends");
    machine.assert_back();
    assert!(!state.exists());
}

fn interrupted() {
    if !has_programs() {
        return;
    }
    let machine = Machine::new();
    for step in ["hosts", "daemons", "switches connected"] {
        let mut pressed = false;
        let press = |progress: &axon_lab::Progress| {
            if progress.step == step && !pressed {
                pressed = true;
                kill(Pid::this(), Signal::SIGINT).expect("it is this process");
            }
        };
        let outcome = axon_lab::up(&file("eth1", ""), &UpOptions::default(), press);
        let error = format!("{:#}", outcome.expect_err("it is interrupted"));
        assert!(error.contains("interrupted"), "{step}: {error}");
        machine.assert_back();
    }
}

fn taken() {
    if !has_programs() {
        return;
    }
    let machine = Machine::new();
    up("");
    sh("ip link add eth1 type bridge");
    let error = format!("{:#}", axon_lab::down(Some(LAB)).expect_err("it has another name"));
    assert!(error.contains("test-uplinks has ended; eth1 is back, but as s2-p7"), "{error}");
    assert!(!StateDir::of(LAB).expect("a good name").exists());
    sh("ip link del eth1; ip link set s2-p7 name eth1 up mtu 1600");
    machine.outside("ip link show dev gw0 up");
    assert!(sh("ip link show dev eth1").contains(MAC));
}
