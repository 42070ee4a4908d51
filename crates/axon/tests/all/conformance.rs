//! `axon conformance` from its command line: against our own switch with and without a fault, and
//! against real interfaces: a Linux bridge, and our own switch as a process.
//!
//! Real devices are in a network namespace of the test, in which the test runs this program again.

use crate::needs;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::process::{Child, Command, Output, Stdio};

/// Set where a test runs in its network namespace.
const INSIDE: &str = "AXON_TEST_INSIDE";

fn axon(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_axon"));
    command.args(arguments);
    command
}

/// Returns the verdicts by name, and the exit status.
fn verdicts(output: &Output) -> (Vec<(String, String)>, Option<i32>) {
    let text = String::from_utf8_lossy(&output.stdout);
    let said = String::from_utf8_lossy(&output.stderr);
    let report: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{said}"));
    let cases = report["cases"].as_array().expect("cases");
    let text = |case: &Value, key: &str| case[key].as_str().expect(key).to_owned();
    let verdicts = cases.iter().map(|case| (text(case, "name"), text(case, "verdict")));
    (verdicts.collect(), output.status.code())
}

#[test]
fn a_report_says_the_same_in_every_form() {
    let file = std::env::temp_dir().join(format!("axon-junit-{}.xml", std::process::id()));
    let junit = file.to_str().expect("a plain path");
    let chosen = ["conformance", "pause", "ets", "--case", "resumes", "--case", "sum", "--junit"];
    let output = axon(&chosen).args([junit, "--json"]).output().expect("axon runs");
    let (verdicts, status) = verdicts(&output);
    let wanted = [("pause/zero-resumes", "passed"), ("ets/sum-is-not-100-refused", "passed")];
    assert_eq!(verdicts, wanted.map(|(name, verdict)| (name.into(), verdict.into())));
    assert_eq!(status, Some(0));
    let xml = std::fs::read_to_string(&file).expect("the file is there");
    std::fs::remove_file(&file).expect("the file goes");
    assert!(xml.contains("<testsuite name=\"axon/pause\" tests=\"1\" failures=\"0\""), "{xml}");
    let output = axon(&chosen[..7]).output().expect("axon runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("axon: 2 passed, 0 failed, 0 not applicable, 0 inconclusive, 0 broken"),
        "{text}"
    );
}

#[test]
fn a_fault_is_found_and_the_exit_status_says_so() {
    let chosen = ["conformance", "pfc", "--case", "xon-is-sent", "--plant", "no-xon", "--json"];
    let output = axon(&chosen).output().expect("axon runs");
    assert_eq!(verdicts(&output), (vec![("pfc/xon-is-sent".into(), "failed".into())], Some(1)));
    let wrong: [(&[&str], &str); 7] = [
        (&["--case", "nothing"], "no case has nothing in its name; see --list"),
        (&["--iface", "nosuch0", "--rate", "100"], "there is no interface nosuch0"),
        (&["--iface", "nosuch0"], "there is no interface nosuch0"),
        (&["--iface", "lo", "--through", "nosuch0", "--rate", "100"], "no interface nosuch0"),
        (&["--iface", "lo", "--through", "lo", "--rate", "100"], "each interface once"),
        (&["--interpretation", "tie=low"], "expected tie=lower or tie=higher"),
        (&["--reading", "tie=low"], "expected tie=lower or tie=higher"),
    ];
    for (arguments, why) in wrong {
        let output = axon(&["conformance"]).args(arguments).output().expect("axon runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(why), "{said}");
    }
}

/// Runs `test`, whose name is `name`, in another process with a network namespace of its own.
fn in_own_namespace(name: &str, test: fn()) {
    if std::env::var_os(INSIDE).is_some() {
        for which in ["all", "default"] {
            let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6"), "1");
        }
        return test();
    }
    if !needs::programs(&["ip", "unshare"]) {
        return;
    }
    let allowed = |kinds: &str| {
        Command::new("unshare").args([kinds, "true"]).output().is_ok_and(|o| o.status.success())
    };
    // Root in a container may lack the privilege and still be allowed a user namespace.
    let Some(kinds) = ["-n", "-rn"].into_iter().find(|kinds| allowed(kinds)) else {
        needs::skip("the kernel allows no network namespaces here");
        return;
    };
    let program = std::env::current_exe().expect("a running program has a path");
    let mut command = Command::new("unshare");
    command.arg(kinds).arg(program).args(["--exact", "--nocapture"]);
    command.arg(format!("conformance::{name}")).env(INSIDE, "1").stderr(Stdio::inherit());
    let output = command.output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// Runs `ip`; true if it succeeds.
fn can(line: &str) -> bool {
    let status = Command::new("ip").args(line.split(' ')).status();
    status.is_ok_and(|status| status.success())
}

fn ip(line: &str) {
    assert!(can(line), "ip {line}");
}

/// Creates a pair of interfaces and sets both up.
fn pair(one: &str, other: &str) {
    ip(&format!("link add {one} type veth peer name {other}"));
    ip(&format!("link set {one} up"));
    ip(&format!("link set {other} up"));
}

/// Runs one case against the device between `h1` and `h2`.
fn real(family: &str, case: &str) -> (Vec<(String, String)>, Option<i32>) {
    let chosen = ["conformance", family, "--case", case, "--iface", "h1", "--through", "h2"];
    let rate = ["--rate", "100", "--json"];
    verdicts(&axon(&chosen).args(rate).output().expect("axon runs"))
}

#[test]
fn a_linux_bridge_keeps_lldp_unless_it_is_configured_to_forward_it() {
    let name = "a_linux_bridge_keeps_lldp_unless_it_is_configured_to_forward_it";
    in_own_namespace(name, a_linux_bridge_keeps_lldp);
}

fn a_linux_bridge_keeps_lldp() {
    if !can("link add br0 type bridge forward_delay 0 stp_state 0") {
        return needs::skip("the kernel has no bridges");
    }
    ip("link set br0 up");
    for (host, port) in [("h1", "p1"), ("h2", "p2")] {
        pair(host, port);
        ip(&format!("link set {port} master br0"));
    }
    let ended = |verdict: &str, status| {
        (vec![("dcbx/lldp-not-forwarded".to_owned(), verdict.to_owned())], Some(status))
    };
    assert_eq!(real("dcbx", "lldp-not-forwarded"), ended("passed", 0));
    // Bit 14 of the mask: 01-80-C2-00-00-0E.
    ip("link set br0 type bridge group_fwd_mask 0x4000");
    assert_eq!(real("dcbx", "lldp-not-forwarded"), ended("failed", 1));
}

/// Processes that are ended with the test.
struct Daemons(Vec<Child>);

impl Drop for Daemons {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // On SIGTERM a switch removes its programs.
            let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM);
            let _ = child.wait();
        }
    }
}

#[test]
fn our_switch_keeps_mac_control_on_real_interfaces() {
    in_own_namespace(
        "our_switch_keeps_mac_control_on_real_interfaces",
        our_switch_keeps_mac_control,
    );
}

fn our_switch_keeps_mac_control() {
    for (host, port) in [("h1", "s1-p0"), ("h2", "s1-p1"), ("c1-p0", "s1-p2")] {
        pair(host, port);
    }
    let file = std::env::temp_dir().join(format!("axon-conformance-{}.yaml", std::process::id()));
    let fabric = "name: dut\ntopology:\n  line: { switches: 1, hosts_per_switch: 2 }\n\
                  links: { rate: 100Mbps }\n";
    std::fs::write(&file, fabric).expect("a file");
    let path = file.to_str().expect("a plain path");
    let start = |arguments: &[&str]| axon(arguments).spawn().expect("axon runs");
    let lab_key = "--insecure-lab-key";
    let switch = start(&["switch", path, "s1", lab_key]);
    let daemons = Daemons(vec![switch, start(&["controller", path, lab_key])]);
    let ended = real("pause", "not-forwarded");
    drop(daemons);
    std::fs::remove_file(&file).expect("the file goes");
    assert_eq!(ended, (vec![("pause/not-forwarded".into(), "passed".into())], Some(0)));
}
