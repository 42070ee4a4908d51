//! First use of a lab from the command line: addresses, names, pings, shells and links.

use crate::common::{Folder, bad, failed, good, text};
use crate::needs;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Output, Stdio};

/// A folder for fabric files and the labs started from it, which end with the test.
struct Bench {
    folder: Folder,
}

impl Bench {
    /// Returns `None` where labs are not possible and that is not a failure.
    fn new(name: &str) -> Option<Bench> {
        needs::lab().then(|| Bench { folder: Folder::new(&format!("lab-{name}")) })
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_axon"));
        command.args(line.split(' ')).current_dir(&self.folder.0);
        command.env("AXON_STATE_DIR", self.folder.0.join("state")).env_remove("XDG_RUNTIME_DIR");
        command
    }

    fn axon(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    /// Writes a template and starts its lab.
    fn up(&self, template: &str, options: &str) {
        good(&self.axon(&format!("init {template} {template}.yaml")));
        let output = self.axon(&format!("up {template}.yaml --timeout 120{options}"));
        assert!(good(&output).starts_with(&format!("{template}: ")), "{output:?}");
        let listed = good(&output).contains("\naddresses: h1 10.0.0.1, h2 10.0.0.2, ");
        assert_eq!(listed, !options.contains("--bare"), "{output:?}");
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let state = self.folder.0.join("state");
        for entry in std::fs::read_dir(state).into_iter().flatten().flatten() {
            self.axon(&format!("down --lab {}", entry.file_name().display()));
        }
    }
}

#[test]
fn hosts_have_addresses_and_names_when_up_returns() {
    let Some(bench) = Bench::new("names") else { return };
    bench.up("ring", "");
    for (host, address) in [("h1", "10.0.0.1/24"), ("h6", "10.0.0.6/24")] {
        let output = bench.axon(&format!("exec {host} -- ip -4 -o addr show dev {host}-p0"));
        assert!(good(&output).contains(&format!("inet {address} ")), "{output:?}");
    }
    let output = bench.axon("exec h1 -- ping -c 1 -W 5 h3");
    assert!(good(&output).contains("10.0.0.3"), "{output:?}");
    let hosts = bench.axon("exec s1 -- cat /etc/hosts");
    assert!(good(&hosts).starts_with("127.0.0.1 localhost\n10.0.0.1 h1\n"), "{hosts:?}");
    // The file of the machine is unchanged.
    assert!(!std::fs::read_to_string("/etc/hosts").unwrap_or_default().contains("10.0.0.1 h1"));

    let output = bench.axon("ping");
    let lines: Vec<&str> = good(&output).lines().collect();
    assert_eq!(lines[1].split_whitespace().collect::<Vec<_>>().join(" "), "ms h1 h2 h3 h4 h5 h6");
    assert!(lines[2].starts_with("h1") && lines.len() == 9, "{output:?}");
    assert!(lines[8].starts_with("30 of 30 pairs answered, 30 requests, longest"), "{output:?}");
    assert_eq!(text(&output.stderr), "", "no bar where nobody looks");
    let output = bench.axon("ping h4 h2 --json");
    let json: Value = serde_json::from_str(good(&output)).unwrap();
    let pings = json["pings"].as_array().unwrap();
    assert_eq!((&json["pairs"], &json["answered"], pings.len()), (&2.into(), &2.into(), 2));
    assert_eq!((&pings[0]["from"], &pings[0]["to"]), (&"h2".into(), &"h4".into()));
    assert_eq!(pings[0]["address"], "10.0.0.4");
    assert!(pings[1]["rtt_ns"].as_u64().unwrap() > 1_000);
    assert!(bad(&bench.axon("ping h9"), 2).contains("ring has no host h9; it has h1 h2"));
    bad(&bench.axon("ping --timeout 0"), 2);

    let status = bench.axon("status");
    let start: Vec<&str> = good(&status).lines().collect();
    let drops = start[0].find("drops").unwrap();
    for row in &start[1..5] {
        assert!(row[drops..].starts_with("0 "), "a start is no loss: {row}");
    }
}

#[test]
fn a_shell_on_a_host_has_its_name_in_the_prompt() {
    let Some(bench) = Bench::new("shell") else { return };
    bench.up("line", "");
    let mut shell = bench.command("exec h2");
    let piped = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut shell = piped.spawn().unwrap();
    shell.stdin.take().unwrap().write_all(b"hostname\nexit 7\n").unwrap();
    let output = shell.wait_with_output().unwrap();
    assert_eq!((text(&output.stdout), output.status.code()), ("h2\n", Some(7)), "{output:?}");
    // On a terminal, emulated by script(1).
    if !needs::programs(&["script"]) {
        return;
    }
    let line = format!("{} exec h2", env!("CARGO_BIN_EXE_axon"));
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &line, "/dev/null"]).current_dir(&bench.folder.0);
    terminal.env("AXON_STATE_DIR", bench.folder.0.join("state")).stdin(Stdio::piped());
    let mut terminal = terminal.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut keys = terminal.stdin.take().unwrap();
    let mut screen = Vec::new();
    let mut out = BufReader::new(terminal.stdout.take().unwrap());
    // Input is typed only when the shell reads; an earlier end of input is lost.
    while !text(&screen).contains("h2:") && out.read_until(b':', &mut screen).unwrap() > 0 {}
    keys.write_all(b"sleep 100 &\njobs\nexit 3\n").unwrap();
    std::io::Read::read_to_end(&mut out, &mut screen).unwrap();
    let screen = String::from_utf8_lossy(&screen);
    assert_eq!(terminal.wait().unwrap().code(), Some(3), "{screen}");
    assert!(screen.contains("Running"), "{screen}");
    assert!(!screen.contains("job control"), "{screen}");
}

#[test]
fn a_link_is_cut_and_mended_by_the_names_of_its_ends() {
    let Some(bench) = Bench::new("link") else { return };
    bench.up("ring", "");
    assert_eq!(good(&bench.axon("link h1,s1 down")), "ring: link h1-p0 to s1-p0 is down\n");
    let output = bench.axon("ping h1 h2 --timeout 1");
    let said = failed(&output);
    assert_eq!(said, "", "{output:?}");
    assert!(text(&output.stdout).contains("no answer: h1 to h2, h2 to h1\n0 of 2 pairs"));
    // When the command returns, a host that never sends is reachable.
    assert_eq!(good(&bench.axon("link s1-p0 up")), "ring: link h1-p0 to s1-p0 is up\n");
    good(&bench.axon("ping h2 h1"));
    let cut = bench.axon("link s2,s1 down");
    assert!(good(&cut).starts_with("ring: link s1-p") && good(&cut).ends_with("is down\n"));
    good(&bench.axon("link s1,s2 down"));
    let carrier = bench.axon("exec s1 -- cat /sys/class/net/s1-p2/carrier");
    assert_ne!(text(&carrier.stdout), "1\n");
    assert!(good(&bench.axon("ping")).contains("30 of 30 pairs answered"), "the other way round");
    good(&bench.axon("link s1,s2 up"));
    for (line, why) in [
        ("link s1,s9 down", "there is no node s9"),
        ("link s1 down", "there is no link at s1"),
        ("link h1,h2 down", "no link joins them"),
        ("link s1,s2 sideways", "[possible values: down, up]"),
    ] {
        assert!(bad(&bench.axon(line), 2).contains(why), "{line}: {:?}", bench.axon(line));
    }
}

#[test]
fn an_operator_sees_hosts_flows_paths_and_loads() {
    let Some(bench) = Bench::new("view") else { return };
    bench.up("ring", "");
    let json = |line: &str| -> Value {
        serde_json::from_str(good(&bench.axon(&format!("{line} --json")))).unwrap()
    };
    let hosts = json("hosts");
    assert_eq!(hosts["hosts"].as_array().unwrap().len(), 6);
    let h3 = &hosts["hosts"][2];
    assert_eq!((&h3["host"], &h3["addresses"][0]), (&"h3".into(), &"10.0.0.3".into()));
    assert_eq!(h3["at"], h3["learned_at"][0]);
    // Nothing was sent yet, so there is no route; the command succeeds.
    let none = bench.axon("path h1 h3");
    assert_eq!(none.status.code(), Some(1), "{none:?}");
    assert!(text(&none.stdout).contains("`axon ping h1 h3`"), "{none:?}");
    good(&bench.axon("exec h1 -- ping -c 3 -i 0.2 -W 5 h3"));
    let path = json("path h1 h3");
    let steps = path["there"]["steps"].as_array().unwrap();
    assert!(path["there"]["arrives"] == true && path["back"]["arrives"] == true, "{path}");
    assert!(steps.len() == 2 && steps[1]["egress"] == h3["at"], "{path}");
    let flows = good(&bench.axon("flows h3")).to_owned();
    assert!(flows.lines().count() == 3 && flows.contains("in the table"), "{flows}");
    let top = good(&bench.axon("top --once --lines 2")).to_owned();
    assert!(top.starts_with("port") && top.contains("ports more"), "{top}");
    for (line, reason) in [
        ("path h1 h9", "has no host h9"),
        ("path h1 h1", "are one host"),
        ("flows h9", "has no host h9"),
    ] {
        let output = bench.axon(line);
        assert!(bad(&output, 2).contains(reason), "{output:?}");
    }
}

#[test]
fn of_two_labs_every_command_wants_one_named() {
    let Some(bench) = Bench::new("two") else { return };
    bench.up("line", " --bare");
    // A single running lab need not be named.
    let none = bench.axon("exec h1 -- ip -4 -o addr show dev h1-p0");
    assert_eq!(good(&none), "", "--bare");
    let output = bench.axon("ping h1 h2");
    assert_eq!(failed(&output), "");
    assert!(text(&output.stdout).contains("no address: h1, h2; run a DHCP client"), "{output:?}");
    bench.up("ring", "");
    let commands = [
        "status",
        "exec h1 -- true",
        "exec h1",
        "ping h1 h2",
        "link s1,s2 up",
        "probe --live --path s1,s2",
        "down",
    ];
    for line in commands {
        let said = bench.axon(line);
        let expected = "several labs are up; name one with --lab: line, ring";
        assert!(bad(&said, 2).contains(expected), "{line}: {said:?}");
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let named = format!("{verb} --lab ring {rest}");
        let mut command = bench.command(named.trim_end());
        good(&command.stdin(Stdio::null()).output().unwrap());
    }
    assert!(bad(&bench.axon("status --lab ring"), 2).contains("no lab ring is up"));
    good(&bench.axon("status"));
    let probe = bench.axon("probe line.yaml --lab line --path s1,s2");
    assert!(bad(&probe, 2).contains("--lab NAME goes with --live"), "{probe:?}");
}

#[test]
fn a_watched_status_is_plain_where_it_is_not_a_terminal_and_ends_with_the_lab() {
    let Some(bench) = Bench::new("watch") else { return };
    bench.up("line", "");
    let mut unread = bench.command("status --watch=1").stdout(Stdio::piped()).spawn().unwrap();
    drop(unread.stdout.take());
    assert!(unread.wait().unwrap().success(), "its reader has left");
    let mut watch = bench.command("status --watch=1");
    let mut watch = watch.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut headings = 0;
    while headings < 2 {
        let line = lines.next().expect("it goes on").unwrap();
        assert!(!line.contains('\x1b'), "{line:?}");
        headings += u32::from(line.starts_with("node "));
    }
    good(&bench.axon("down"));
    lines.for_each(drop);
    let output = watch.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("no lab line is up"), "{output:?}");
    bad(&bench.axon("status --json --watch"), 2);
}
