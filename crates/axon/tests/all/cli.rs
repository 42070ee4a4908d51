//! The binary from its command line: output, errors and exit codes.
//!
//! `BLESS=1` rewrites the expected output in `tests/check/`.

use crate::common::{Folder, axon, bad, good, root, scenario};
use crate::needs;
use serde_json::Value;
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::{Command, Output};

const SCENARIOS: &[&str] = &["all-keys", "fat-tree4", "line3", "ring3", "torus5x5"];
const VERBS: &[&str] = &[
    "init",
    "up",
    "exec",
    "ping",
    "link",
    "move",
    "allow",
    "deny",
    "quarantine",
    "status",
    "down",
    "prove",
    "conformance",
    "sim",
    "trace",
    "replay",
    "probe",
    "check",
    "schema",
    "key",
    "rekey",
    "switch",
    "controller",
    "agent",
    "completions",
    "man",
];
/// User ID of Debian's user `nobody`, which has no rights.
const NOBODY: u32 = 65_534;

#[test]
fn every_verb_explains_itself() {
    let all = axon(&["--help"]);
    for verb in VERBS {
        assert!(good(&all).contains(&format!("\n  {verb} ")), "{verb} is not listed");
        let own = axon(&[verb, "--help"]);
        assert!(good(&own).contains(&format!("Usage: axon {verb}")));
        assert!(good(&own).contains("\nExit status: "), "{verb} does not name its exit status");
    }
}

#[test]
fn wrong_usage_ends_with_two() {
    bad(&axon(&["fly"]), 2);
    bad(&axon(&["sim"]), 2);
    bad(&axon(&["sim", "x.yaml", "--seed", "many"]), 2);
    assert!(bad(&axon(&["exec"]), 2).contains("NODE"));
    bad(&axon(&["switch", "x.yaml", "s1", "--pcap-snap-bytes", "64"]), 2);
}

#[test]
fn a_fabric_that_needs_more_than_the_ports_of_a_machine_is_refused_before_anything_starts() {
    let folder = Folder::new("fast");
    let text = "name: fast\ntopology: {ring: {switches: 3}}\nlinks: {rate: 400Gbps}\n";
    let file = folder.file("a.yaml", text);
    let says = "the data plane `software` lacks links of 400 Gb/s (asked for by `links.rate`; it \
                has 100 Gb/s)";
    let state = folder.path("s1.state");
    for arguments in
        [&["up", &file][..], &["switch", &file, "s1", "--insecure-lab-key", "--state", &state]]
    {
        let refused = axon(arguments);
        assert!(bad(&refused, 2).contains(says), "{arguments:?}: {refused:?}");
    }
    assert!(!folder.0.join("s1.state").exists(), "nothing was begun");
    good(&axon(&["check", &file]));
}

#[test]
fn a_daemon_refuses_the_published_lab_key_unless_the_danger_is_named() {
    let folder = Folder::new("lab-key");
    let topology = "name: a\ntopology: {ring: {switches: 3}}\n";
    let default = folder.file("default.yaml", topology);
    let lab_key: String = axon_fabric::LAB_KEY.iter().map(|byte| format!("{byte:02x}")).collect();
    let spelled = folder.file("spelled.yaml", format!("{topology}key: {lab_key}\n"));
    let state = folder.path("state");
    for file in [&default, &spelled] {
        for node in [&["switch", file, "s1"][..], &["controller", file]] {
            let refused = axon(&[node, &["--state", &state]].concat());
            let text = bad(&refused, 2);
            let wanted = format!("{file}: the fabric's key is the published lab key");
            assert!(text.starts_with(&wanted), "{text}");
            assert!(text.contains("axon key") && text.contains("--insecure-lab-key"), "{text}");
        }
        let allowed = axon(&["switch", file, "s9", "--insecure-lab-key"]);
        let text = bad(&allowed, 2);
        assert_eq!(text, "fabric a has no switch s9; it has s1 s2 s3\n", "and no warning");
    }
    assert!(!Path::new(&state).exists(), "nothing was begun");
}

#[test]
fn a_key_that_was_made_is_secret_is_used_and_is_never_overwritten() {
    let folder = Folder::new("key");
    let key = folder.path("fabric.key");
    assert_eq!(good(&axon(&["key", &key])), "");
    let text = folder.read("fabric.key");
    assert!(text.len() == 65 && text.ends_with('\n'), "{text}");
    let mode = std::fs::metadata(&key).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(bad(&axon(&["key", &key]), 2).contains(&key));
    assert_eq!(folder.read("fabric.key"), text);
    let fabric = "name: a\ntopology: {ring: {switches: 3}}\nkey_file: fabric.key\n";
    let fabric = folder.file("a.yaml", fabric);
    assert!(bad(&axon(&["switch", &fabric, "s9"]), 2).contains("no switch s9"), "it is accepted");
    let (one, other) = (axon(&["key", "-"]), axon(&["key", "-"]));
    assert_eq!(good(&one).len(), 65);
    assert_ne!(good(&one), good(&other));
    assert!(!Path::new("-").exists());
}

#[test]
fn the_keys_of_a_switch_fit_that_switch_alone() {
    let folder = Folder::new("switch-key");
    let topology = "name: a\ntopology: {ring: {switches: 3}}\n";
    let lab = folder.file("lab.yaml", topology);
    let whole = folder.file("whole.yaml", format!("{topology}key_file: fabric.key\n"));
    let part = folder.file("part.yaml", format!("{topology}key_file: s2.key\n"));
    good(&axon(&["key", &folder.path("fabric.key")]));
    let own = folder.path("s2.key");
    let refused = axon(&["key", &own, "--switch", "s2", "--fabric", &lab]);
    assert!(bad(&refused, 2).contains("published lab key"));
    bad(&axon(&["key", &own, "--switch", "s2"]), 2);
    good(&axon(&["key", &own, "--switch", "s2", "--fabric", &whole]));
    let text = folder.read("s2.key");
    assert!(!text.contains(folder.read("fabric.key").trim()), "the master key stays away");
    let again = axon(&["key", "-", "--switch", "s2", "--fabric", &whole]);
    assert_eq!(good(&again), text, "they follow from the master key");
    assert!(bad(&axon(&["key", "-", "--switch", "s3", "--fabric", &part]), 2).contains("alone"));
    let other = axon(&["switch", &part, "s1"]);
    assert!(bad(&other, 2).contains("the keys are those of node"), "{other:?}");
    let controller = axon(&["controller", &part]);
    assert!(bad(&controller, 2).contains("needs the master key"), "{controller:?}");
    // A missing port is detected later than a key that does not fit.
    let fits = axon(&["switch", &part, "s2", "--tap", "s3-p0"]);
    assert!(bad(&fits, 2).contains("no port s3-p0"), "{fits:?}");
    let every = folder.path("keys");
    good(&axon(&["key", &every, "--each-switch", "--fabric", &whole]));
    assert_eq!(folder.read("keys/s2.key"), text);
    let mode = |path: &str| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&every), mode(&format!("{every}/s3.key"))), (0o700, 0o600));
    assert!(
        bad(&axon(&["key", &every, "--each-switch", "--fabric", &whole]), 2).contains("s1.key")
    );
    bad(&axon(&["key", &folder.path("more.key"), "--fabric", &whole]), 2);
    let nobody = axon(&["rekey", &part, &folder.path("s2.sock")]);
    assert!(bad(&nobody, 2).contains("no node takes commands"), "{nobody:?}");
}

#[test]
fn a_daemon_refuses_a_key_file_that_others_can_read_and_a_switch_warns_of_the_master_key() {
    let folder = Folder::new("exposed-key");
    let text = "name: a\ntopology: {ring: {switches: 3}}\nkey_file: fabric.key\n";
    let fabric = folder.file("a.yaml", text);
    let key = folder.path("fabric.key");
    good(&axon(&["key", &key]));
    let started = || axon(&["switch", &fabric, "s1", "--state", "/proc/none/s1"]);
    let output = started();
    let warned = bad(&output, 2);
    assert!(
        warned.contains("s1 has the master key") && warned.contains("/proc/none/s1"),
        "{warned}"
    );
    assert!(!warned.contains("0600"), "{warned}");
    for mode in [0o640, 0o604, 0o620] {
        std::fs::set_permissions(&key, Permissions::from_mode(mode)).unwrap();
        for refused in [started(), axon(&["controller", &fabric]), axon(&["rekey", &fabric])] {
            let text = bad(&refused, 2);
            let wanted = format!("{key}: its mode is {mode:04o}");
            assert!(text.contains(&wanted) && text.contains("chmod 600"), "{text}");
            assert!(!text.contains("/proc/none"), "it has gone no further: {text}");
        }
        let checked = axon(&["check", &fabric]);
        assert!(String::from_utf8_lossy(&checked.stderr).contains("chmod 600"), "{checked:?}");
    }
}

#[test]
fn what_cannot_be_replayed_ends_with_two_and_says_why() {
    let folder = Folder::new("replay");
    let garbage = folder.file("s1.axrec", "not a recording at all, but long enough for one");
    let text = bad(&axon(&["replay", &garbage]), 2).to_owned();
    let expected = format!("{garbage}: byte 0: it does not begin as a recording does");
    assert!(text.starts_with(&expected), "{text}");
    assert_eq!(bad(&axon(&["replay", &folder.path("")]), 2), text, "one by one");
    let missing = folder.path("s2.axrec");
    assert!(bad(&axon(&["replay", &missing]), 2).starts_with(&missing));
    let fifo = folder.path("s3.fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.is_ok_and(|status| status.success()));
    let said = format!("{fifo}: not a regular file");
    assert!(bad(&axon(&["replay", &fifo]), 2).starts_with(&said), "and nobody waits for ever");
    let no_folder = axon(&["replay", &folder.path(""), "--into", &garbage]);
    let said = format!("cannot make {garbage}");
    assert!(bad(&no_folder, 2).starts_with(&said), "1 would be a difference");
    std::fs::remove_file(&garbage).unwrap();
    assert!(bad(&axon(&["replay", &folder.path("")]), 2).contains("no file ends in .axrec"));
    bad(&axon(&["up", "x.yaml", "--record-bytes-max", "1MiB"]), 2);
    assert!(
        bad(&axon(&["switch", "x", "s1", "--record", "x", "--record-bytes-max", "1"]), 2)
            .contains("expected")
    );
}

#[test]
fn an_agent_that_cannot_be_ends_at_once_and_says_why() {
    let (long, name) = ("a-name-of-sixteen", "cannot be an interface");
    let cases: [([&str; 3], &str); 8] = [
        ([long, "lo", "1Gbps"], name),
        (["t4/../x", "lo", "1Gbps"], name),
        (["t%d", "lo", "1Gbps"], name),
        (["t0", "", "1Gbps"], name),
        (["lo", "lo", "1Gbps"], "lo cannot be both ends"),
        (["t0", "lo", "1bps"], "; expected 1kbps to 800Gbps"),
        (["t0", "lo", "900Tbps"], "; expected 1kbps to 800Gbps"),
        (["t0", "nosuch0", "1Gbps"], "there is no interface nosuch0"),
    ];
    for ([host, port, rate], why) in cases {
        let words = [env!("CARGO_BIN_EXE_axon"), "agent", "--host", host, "--port", port];
        // A command that keeps running has to be ended.
        let output = Command::new("timeout").arg("20").args(words).args(["--rate", rate]).output();
        let output = output.unwrap();
        assert!(bad(&output, 2).contains(why), "{output:?}");
    }
}

#[test]
fn check_says_what_each_scenario_builds() {
    for name in SCENARIOS {
        let output = axon(&["check", &scenario(name)]);
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/check/{name}.txt"));
        if std::env::var_os("BLESS").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, good(&output)).unwrap();
        }
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(good(&output), expected, "{name}; BLESS=1 rewrites what is expected");
    }
}

#[test]
fn check_warns_of_a_file_that_only_the_simulator_takes() {
    let folder = Folder::new("cli-planes");
    let head = "name: x\ntopology:\n  ring: { switches: 3, hosts_per_switch: 1 }\n";
    let xdp = format!("{head}links: {{ rate: 1Gbps }}\ndataplane: xdp\n");
    let warned = axon(&["check", &folder.file("xdp.yaml", xdp)]);
    assert!(good(&warned).starts_with("x: 3 switches"));
    let warning = String::from_utf8_lossy(&warned.stderr);
    assert!(
        warning.contains("`axon up` refuses it: dataplane: the data plane `xdp` lacks"),
        "{warning}"
    );
    let plain = axon(&["check", &folder.file("plain.yaml", head)]);
    assert!(!String::from_utf8_lossy(&plain.stderr).contains("axon up"), "{plain:?}");
}

#[test]
fn an_error_in_a_file_is_named_by_file_line_column_and_key() {
    let folder = Folder::new("cli-errors");
    let head = "name: x\ntopology:\n  ring: { switches: 3, hosts_per_switch: 1 }\n";
    let unknown = folder.file("unknown.yaml", format!("{head}colour: red\n"));
    let impossible = folder.file("impossible.yaml", format!("{head}hop_width: 5\n"));
    for (verb, code) in [("check", 1), ("sim", 2), ("up", 2)] {
        let missing = axon(&[verb, "no-such-file.yaml"]);
        assert!(bad(&missing, 2).starts_with("no-such-file.yaml: cannot be read"));
        let output = axon(&[verb, &unknown]);
        assert!(bad(&output, code).starts_with(&format!("{unknown}:4:1: colour: ")), "{output:?}");
        let output = axon(&[verb, &impossible]);
        let message = bad(&output, code);
        assert!(message.starts_with(&format!("{impossible}:4:")), "{message}");
        assert!(message.contains("hop_width: ") && message.contains("16"), "{message}");
    }
    let ring = scenario("ring3");
    assert!(bad(&axon(&["switch", &ring, "s9", "--insecure-lab-key"]), 2).contains("no switch s9"));
    let no_port = axon(&["switch", &ring, "s1", "--insecure-lab-key", "--tap", "s2-p0"]);
    assert!(bad(&no_port, 2).contains("no port s2-p0"));
    assert!(bad(&axon(&["up", &ring, "--capture", "s9"]), 2).contains("no switch s9"));
}

#[test]
fn schema_prints_the_published_one() {
    let published = std::fs::read_to_string(root().join("scenarios/fabric.schema.json")).unwrap();
    assert!(good(&axon(&["schema"])) == published, "scenarios/fabric.schema.json is stale");
}

#[test]
fn without_a_lab_the_error_names_the_way_out() {
    let folder = Folder::new("cli-none");
    for line in [&["status"][..], &["down"], &["exec", "h1", "--", "true"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_axon"));
        let output =
            command.env("AXON_STATE_DIR", folder.0.join("state")).args(line).output().unwrap();
        assert!(bad(&output, 2).contains("start one with `axon up FILE`"), "{output:?}");
    }
}

/// Runs the binary as some user. The state of labs is in a folder apart from the user's own.
struct User<'a> {
    program: Vec<&'a str>,
    folder: &'a Folder,
}

impl User<'_> {
    fn axon(&self, line: &str) -> Output {
        let mut command = Command::new(self.program[0]);
        command.args(&self.program[1..]).args(line.split(' '));
        command.current_dir(&self.folder.0).env("AXON_STATE_DIR", self.folder.0.join("state"));
        command.env_remove("XDG_RUNTIME_DIR").output().unwrap()
    }
}

/// Ends the lab, also when the test fails half-way.
struct Ends<'a>(&'a User<'a>);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.axon("down");
        }
    }
}

fn can_run(line: &[&str]) -> bool {
    Command::new(line[0]).args(&line[1..]).output().is_ok_and(|output| output.status.success())
}

fn address(user: &User, host: &str) -> String {
    let lease = user.axon(&format!("exec {host} -- udhcpc -f -n -q -t 10 -i {host}-p0"));
    good(&lease);
    let output = user.axon(&format!("exec {host} -- ip -4 -o addr show dev {host}-p0"));
    let words: Vec<&str> = good(&output).split_whitespace().collect();
    let inet = words.iter().position(|word| *word == "inet").expect("it has an address");
    words[inet + 1].split('/').next().unwrap().to_owned()
}

fn round_trip(user: &User) {
    let _ends = Ends(user);
    let late = user.axon("up ring3.yaml --timeout 0");
    let said = bad(&late, 1);
    assert!(said.contains("without a path to the controller after 0 s: s1, s2, s3"), "{said}");
    assert!(said.contains("ring3 was ended again; expected a longer --timeout"), "{said}");
    bad(&user.axon("status"), 2);
    assert!(
        good(&user.axon("up ring3.yaml --timeout 120")).contains("3 switches and 6 hosts are up")
    );
    assert!(bad(&user.axon("up ring3.yaml"), 2).contains("axon down --lab ring3"));
    good(&user.axon("exec h1 -- ping -c 1 -W 5 h4"));
    assert!(good(&user.axon("ping")).contains("30 of 30 pairs answered"));
    good(&user.axon("link h5,s3 down"));
    assert_eq!(user.axon("ping h5 h6 --timeout 1").status.code(), Some(1));
    good(&user.axon("link s3,h5 up"));
    good(&user.axon("ping h6 h5"));
    // The server has 10.0.0.1. A client is leased the address that its host has.
    let (own, other) = (address(user, "h1"), address(user, "h4"));
    assert_eq!((own.as_str(), other.as_str()), ("10.0.0.7", "10.0.0.4"));
    good(&user.axon("exec h1 -- ping -c 2 -W 5 h4"));
    assert_eq!(user.axon("exec h2 -- grep nothing /dev/null").status.code(), Some(1));
    assert!(!user.axon("exec h2 -- no-such-command").status.success());
    let output = user.axon("status");
    let row = good(&output).lines().find(|line| line.starts_with("s1 ")).unwrap();
    assert!(row.contains("p2:s2 p3:s3 p4:c1") && row.contains(&own), "{row}");
    let output = user.axon("status --json");
    let status: Value = serde_json::from_str(good(&output)).unwrap();
    let routes = status["nodes"][1]["node"]["routes"].as_array().unwrap();
    assert!(!routes.is_empty(), "h1 has talked, so s1 has a route");
    assert_eq!(good(&user.axon("down")), "ring3 is down\n");
    bad(&user.axon("status"), 2);
    assert_eq!(std::fs::read_dir(user.folder.0.join("state")).unwrap().count(), 0);
}

/// Returns a folder that any user may enter, with a fabric file and a copy of the binary. The
/// build's own directory may be closed to other users.
fn prepared(name: &str) -> (Folder, String) {
    let folder = Folder::new(&format!("cli-{name}"));
    std::fs::copy(scenario("ring3"), folder.0.join("ring3.yaml")).unwrap();
    let program = folder.0.join("axon");
    // A separate process copies it. If another thread of this one forks while the copy is open for
    // writing, the copy cannot be executed.
    let binary = env!("CARGO_BIN_EXE_axon");
    assert!(
        Command::new("cp").args([binary.as_ref(), program.as_os_str()]).status().unwrap().success()
    );
    for path in [&folder.0, &program] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    (folder, program.to_str().unwrap().to_owned())
}

#[test]
fn a_lab_from_up_to_down() {
    if !needs::lab() || !needs::programs(&["udhcpc"]) {
        return;
    }
    let (folder, program) = prepared("own");
    round_trip(&User { program: vec![&program], folder: &folder });
}

#[test]
fn a_lab_without_root_from_up_to_down() {
    let as_nobody = ["runuser", "-u", "nobody", "--"];
    if !needs::is_root() {
        // In this case `a_lab_from_up_to_down` is the same test.
        return;
    }
    let probe: Vec<&str> =
        as_nobody.into_iter().chain(["unshare", "-Urnpf", "--mount-proc", "true"]).collect();
    if !needs::programs(&["ip", "tc", "ping", "udhcpc", "runuser"]) {
        return;
    }
    if !can_run(&probe) {
        needs::skip("lab without root: the kernel allows no user namespaces here");
        return;
    }
    let (folder, program) = prepared("nobody");
    chown(&folder.0, Some(NOBODY), None).unwrap();
    let program: Vec<&str> = as_nobody.into_iter().chain([program.as_str()]).collect();
    round_trip(&User { program, folder: &folder });
}
