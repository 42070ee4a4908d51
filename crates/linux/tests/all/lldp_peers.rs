//! A switch and two foreign peers, lldpd and lldpad, over a veth pair in namespaces of the test's
//! own.
//!
//! lldpad's DCBX (its module for 802.1Qaz) stays off on a device whose driver does not answer
//! `DCB_CMD_GDCBX`, and the kernel's veth does not: `lldptool` says "Device not capable". For these
//! tests it is started with `lldpad/driver.c` preloaded, which emulates the driver: it answers that
//! request, and accepts every setting. State machines, TLVs and frames are lldpad's own.

use crate::alone::{needs, veth};
use crate::runner::Test;
use axon_fabric::assemble::switch_config;
use axon_linux::clock::Clock;
use axon_linux::dcbx::classes;
use axon_linux::device_port::{Medium, PortSetup};
use axon_linux::run::{RunOptions, Runtime};
use axon_node::telemetry::{DcbxTelemetry, Source};
use axon_plane::Plane;
use axon_switch::SwitchNode;
use axon_wire::{Rate, Span, Time};
use nix::mount::{MsFlags, mount};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;
use std::ffi::OsStr;
use std::process::{Child, Command, Stdio};

pub const TESTS: &[Test] = &[
    ("lldpd_and_a_switch_see_each_other", lldpd_and_a_switch_see_each_other),
    ("a_willing_switch_does_what_lldpd_is_made_to_say", a_willing_switch_does_what_lldpd_says),
    ("lldpad_without_dcb_is_a_neighbour_and_no_more", lldpad_without_dcb_is_a_neighbour),
    ("a_willing_switch_follows_lldpad", a_willing_switch_follows_lldpad),
    ("a_willing_lldpad_follows_a_switch", a_willing_lldpad_follows_a_switch),
];

/// Limit of a wait.
const PATIENCE: Span = Span::from_secs(30);

/// A daemon, ended with the test.
struct Daemon(Child);

impl Daemon {
    fn start(command: &mut Command) -> Daemon {
        // The run loop has blocked them for this thread, and children inherit that.
        let mut blocked = SigSet::empty();
        [Signal::SIGTERM, Signal::SIGINT].into_iter().for_each(|signal| blocked.add(signal));
        blocked.thread_unblock().unwrap();
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        blocked.thread_block().unwrap();
        Daemon(child)
    }
}

impl std::ops::Drop for Daemon {
    fn drop(&mut self) {
        // It has children to end, so it gets SIGTERM.
        let _ = kill(Pid::from_raw(self.0.id() as i32), Signal::SIGTERM);
        let _ = self.0.wait();
    }
}

/// True if these programs are installed and may change their user, as daemons do.
fn here(programs: &[&str]) -> bool {
    if !needs::programs(programs) {
        return false;
    }
    let users = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let all = users.split_whitespace().nth(2) == Some("4294967295");
    if !all {
        needs::skip(&format!("not root, who alone may start {}", programs[0]));
    }
    all
}

/// Returns the output of a command; empty if it fails.
fn say<S: AsRef<OsStr>>(program: &str, words: &[S]) -> String {
    let output = Command::new(program).args(words).output().unwrap();
    if !output.status.success() {
        return String::new();
    }
    String::from_utf8(output.stdout).unwrap()
}

fn lldptool(line: &str) -> String {
    say("lldptool", &line.split(' ').collect::<Vec<_>>())
}

fn lldpcli(line: &str) -> String {
    let words = ["-u", "/run/lldpd.sock"].into_iter().chain(line.split(' '));
    say("lldpcli", &words.collect::<Vec<_>>())
}

/// A switch on `va`: two ETS classes, one of them lossless, and a strict one.
struct Scene {
    runtime: Runtime<SwitchNode<Plane>>,
    clock: Clock,
}

impl Scene {
    fn new(dcbx: &str) -> Scene {
        // Files of the daemons stay in the test's own mount namespace.
        let none: Option<&str> = None;
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).unwrap();
        for place in ["/run", "/dev/shm"] {
            mount(Some("none"), place, Some("tmpfs"), MsFlags::empty(), none).unwrap();
        }
        std::fs::create_dir("/run/lldpd").unwrap();
        // It carries nothing, but daemons wait for it.
        axon_linux::sys::set_device_up("lo", true).unwrap();
        veth();
        let text = format!(
            "name: a\ntopology: {{line: {{switches: 2}}}}\ndcb:\n  classes:\n  \
             - {{priorities: [0, 1, 2, 5, 6], ets: 40}}\n  \
             - {{priorities: [3, 4], ets: 60, lossless: true}}\n  - {{priorities: [7]}}\n  \
             dcbx: {dcbx}\n"
        );
        let fabric = axon_fabric::parse("a.yaml".as_ref(), &text).unwrap();
        let clock = Clock::start();
        let node = switch_config(&fabric, 0, 1, 7).on_software();
        let ports = (0..fabric.switches[0].ports).map(|port| PortSetup {
            device: if port == 0 { "va".into() } else { format!("none{port}") },
            medium: Medium::Packet,
            rate: Some(Rate::gbps(1)),
            lossless: true,
            host_mtu: None,
        });
        let options =
            RunOptions { name: "s1".into(), ports: ports.collect(), ..RunOptions::default() };
        Scene { runtime: Runtime::open(node, clock, options).unwrap(), clock }
    }

    /// Returns the DCBX telemetry of the switch at `va`.
    fn status(&self) -> DcbxTelemetry {
        self.runtime.node().telemetry(Time::ZERO).dcbx.swap_remove(0)
    }

    /// Runs the switch until `done` accepts its status.
    fn until(&mut self, what: &str, mut done: impl FnMut(&DcbxTelemetry) -> bool) {
        let end = self.clock.now() + PATIENCE;
        while self.clock.now() < end {
            self.runtime.round(self.soon()).unwrap();
            if done(&self.status()) {
                return;
            }
        }
        panic!("not within 30 s: {what}; the switch reports {:#?}", self.status());
    }

    fn soon(&self) -> Time {
        self.clock.now() + Span::from_millis(50)
    }
}

fn lldpd(scene: &mut Scene) -> Daemon {
    let daemon =
        Daemon::start(Command::new("lldpd").args(["-d", "-I", "vb", "-u", "/run/lldpd.sock"]));
    scene.until("lldpd answers", |_| !lldpcli("show configuration").is_empty());
    daemon
}

/// Starts lldpad, with or without the driver that this test emulates.
fn lldpad(scene: &mut Scene, with_driver: bool) -> Daemon {
    let mut command = Command::new("lldpad");
    command.args(["-f", "/run/lldpad.conf"]);
    if with_driver {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/lldpad/driver.c");
        let built = Command::new("cc")
            .args(["-Wall", "-Werror", "-shared", "-fPIC", "-o", "/run/driver.so", source, "-ldl"])
            .status();
        assert!(built.is_ok_and(|status| status.success()), "the driver compiles");
        command.env("LD_PRELOAD", "/run/driver.so");
    }
    let daemon = Daemon::start(&mut command);
    scene.until("lldpad answers", |_| !lldptool("-L -i vb adminStatus=rxtx").is_empty());
    daemon
}

fn lldpd_and_a_switch_see_each_other() {
    if !here(&["lldpd", "lldpcli"]) {
        return;
    }
    let mut scene = Scene::new("{}");
    let _lldpd = lldpd(&mut scene);
    scene.until("lldpd is a neighbour", |port| {
        port.neighbours.iter().any(|one| one.system.is_some())
    });
    scene.until("the switch is lldpd's", |_| {
        lldpcli("-f keyvalue show neighbors").contains("lldp.vb.port.ifname=s1-p0")
    });
    let shown = lldpcli("-f keyvalue show neighbors details");
    for known in ["chassis.name=s1", "chassis.mac=02:73:00:00:00:01", "ttl=121"] {
        assert!(shown.contains(known), "{known}: {shown}");
    }
    // ETS configuration, ETS recommendation and PFC, which lldpd stores undecoded.
    for subtype in [9, 10, 11] {
        let known = format!("unknown-tlvs.unknown-tlv.subtype={subtype}");
        assert!(shown.contains(&known), "{known}: {shown}");
    }
    assert_eq!(scene.status().rx_malformed, 0);
}

fn a_willing_switch_does_what_lldpd_says() {
    if !here(&["lldpd", "lldpcli"]) {
        return;
    }
    let mut scene = Scene::new("{willing: both}");
    let _lldpd = lldpd(&mut scene);
    let add = |subtype: u8, bytes: &str| {
        let tlv = "configure lldp custom-tlv add oui 00,80,c2 subtype";
        assert!(!lldpcli(&format!("{tlv} {subtype} oui-info {bytes}")).is_empty());
    };
    // Not willing, PFC for priority 3; classes 0 and 1 share 30 to 70.
    add(11, "08,08");
    add(10, "00,00,01,10,02,1e,46,00,00,00,00,00,00,02,02,00,00,00,00,00,00");
    scene.until("the switch follows", |port| {
        port.pfc.to_string() == "3" && classes(&port.ets) == "0:0,1,2,5,6 30% 1:3,4 70% 2:7 strict"
    });
    let port = scene.status();
    assert_eq!((port.pfc_from, port.ets_from), (Source::Peer, Source::Peer));
    lldpcli("unconfigure lldp custom-tlv");
    scene.until("its own again", |port| {
        port.pfc.to_string() == "3,4" && port.ets_from == Source::Local
    });
}

fn lldpad_without_dcb_is_a_neighbour() {
    if !here(&["lldpad", "lldptool"]) {
        return;
    }
    let mut scene = Scene::new("{}");
    let _lldpad = lldpad(&mut scene, false);
    scene.until("lldpad is a neighbour", |port| !port.neighbours.is_empty());
    scene.until("the switch is lldpad's", |_| lldptool("-t -n -i vb").contains("s1-p0"));
    let refused =
        Command::new("lldptool").args("-T -i vb -V PFC enabled=3".split(' ')).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stdout) + String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("Device not capable"), "{said}");
    assert_eq!(scene.status().received.and_then(|peer| peer.pfc), None);
}

fn a_willing_switch_follows_lldpad() {
    if !here(&["lldpad", "lldptool", "cc"]) {
        return;
    }
    let mut scene = Scene::new("{willing: both}");
    let _lldpad = lldpad(&mut scene, true);
    let shares = "tsa=0:ets,1:ets,2:strict up2tc=0:0,1:0,2:0,3:1,4:1,5:0,6:0,7:2 \
                  tcbw=30,70,0,0,0,0,0,0";
    lldptool("-T -i vb -V PFC willing=no enabled=3");
    lldptool(&format!("-T -i vb -V ETS-CFG willing=no {shares}"));
    lldptool(&format!("-T -i vb -V ETS-REC enableTx=yes {shares}"));
    scene.until("the switch follows", |port| {
        port.pfc.to_string() == "3" && classes(&port.ets) == "0:0,1,2,5,6 30% 1:3,4 70% 2:7 strict"
    });
    let port = scene.status();
    assert_eq!((port.pfc_from, port.ets_from), (Source::Peer, Source::Peer));
    let pfc = port.received.and_then(|peer| peer.pfc).unwrap();
    assert_eq!((pfc.willing, &port.trouble[..]), (false, &[][..]));
    scene.until("lldpad reads what is in force", |_| {
        let shown = lldptool("-t -n -i vb");
        shown.lines().any(|line| line.trim() == "PFC enabled: 3") && shown.contains(": 30% 70% 0%")
    });
}

fn a_willing_lldpad_follows_a_switch() {
    if !here(&["lldpad", "lldptool", "cc"]) {
        return;
    }
    let mut scene = Scene::new("{}");
    let _lldpad = lldpad(&mut scene, true);
    // Willing is its default.
    scene.until("lldpad follows", |port| {
        let shown = lldptool("-t -i vb");
        let pfc = port.received.as_ref().and_then(|peer| peer.pfc);
        let enabled = pfc.is_some_and(|pfc| pfc.enabled.to_string() == "3,4");
        enabled && shown.contains("PFC enabled: 3 4")
    });
    let port = scene.status();
    let peer = port.received.unwrap();
    assert!(peer.pfc.unwrap().willing);
    assert_eq!(classes(&peer.ets.unwrap().table), "0:0,1,2,5,6 40% 1:3,4 60% 2:7 strict");
    assert_eq!((port.pfc_from, port.ets_from), (Source::Local, Source::Local));
    assert_eq!(port.trouble, [""; 0]);
}
