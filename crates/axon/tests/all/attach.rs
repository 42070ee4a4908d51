//! `axon attach` with a shipped agent at a port of a switch, and its errors.

use crate::common::{Folder, axon, bad, good, text};
use axon_linux::agent_port::{AgentPort, AgentPortSetup};
use axon_linux::attach::ask;
use axon_linux::port::{Pool, Port};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const FABRIC: &str = "name: a\ntopology: {ring: {switches: 3}}\nagents:\n\
    - {name: vip, at: s2, forwarder: {address: 10.0.0.99, routes: [{to: 0.0.0.0/0}]}}\n\
    - {name: own, at: s1, run: [sh, -c, 'echo $AXON_AGENT_NAME at $AXON_AGENT_SOCKET; exit 3']}\n";

/// Time limit of each step of an agent.
const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn what_cannot_be_attached_is_refused_with_the_way_out() {
    let folder = Folder::new("attach-wrong");
    let fabric = folder.file("a.yaml", FABRIC);
    let none = folder.file("none.yaml", "name: b\ntopology: {ring: {switches: 3}}\n");
    let socket = folder.path("no.sock");
    for (arguments, expected) in [
        (&[&fabric, "lb"][..], "fabric a has no agent lb; it has vip own"),
        (&[&none, "vip"], "fabric b has no agents; expected one in its `agents`"),
        (&[&fabric, "vip"], "nobody listens at /run/axon/a/vip.sock; s2 listens there once"),
        (&[&fabric, "vip", "--socket", &socket], "`axon switch FILE s2`"),
        (&[&fabric, "vip", "--spin", "2s"], "expected 0s to 1s"),
        (&[&fabric, "own", "--json"], "agent own is a program of its own; expected none of"),
    ] {
        let output = axon(&[&["attach"], arguments].concat());
        let said = bad(&output, 2);
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}

#[test]
fn a_program_of_the_users_own_takes_its_place_and_has_its_socket() {
    let folder = Folder::new("attach-own");
    let fabric = folder.file("a.yaml", FABRIC);
    let output = axon(&["attach", &fabric, "own", "--socket", "/x/own.sock"]);
    assert_eq!((text(&output.stdout), output.status.code()), ("own at /x/own.sock\n", Some(3)));
    let usual = axon(&["attach", &fabric, "own"]);
    assert_eq!(text(&usual.stdout), "own at /run/axon/a/own.sock\n");
}

/// Opens the port of a switch; the test services it as a switch does.
fn opened(socket: &str) -> AgentPort {
    AgentPort::open("s2-p4", &AgentPortSetup::at(Path::new(socket))).unwrap()
}

/// Services a port until `holds` is true.
fn care(port: &mut AgentPort, what: &str, holds: impl Fn(&AgentPort) -> bool) {
    let (mut pool, began) = (Pool::default(), Instant::now());
    while !holds(port) {
        assert!(began.elapsed() < LIMIT, "{what}: not so after {LIMIT:?}");
        port.receive(&mut pool, &mut Vec::new()).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn an_agent_is_attached_again_and_ends_with_what_it_has_counted() {
    let folder = Folder::new("attach");
    let (fabric, socket) = (folder.file("a.yaml", FABRIC), folder.path("vip.sock"));
    let status = folder.path("status.sock");
    let mut port = opened(&socket);
    let mut command = Command::new(env!("CARGO_BIN_EXE_axon"));
    command.args(["attach", &fabric, "vip", "--socket", &socket, "--status-socket", &status]);
    let agent = command.arg("--json").stdout(Stdio::piped()).spawn().unwrap();
    care(&mut port, "attached", |port| port.carrier() == Some(true));
    let (name, process) = port.agent_status().agent.unwrap();
    assert_eq!((&name[..], process as u32), ("vip", agent.id()));

    // A second agent is refused with the reason of the switch.
    let second = std::thread::scope(|scope| {
        let second = scope.spawn(|| axon(&["attach", &fabric, "vip", "--socket", &socket]));
        care(&mut port, "refused", |port| port.agent_status().counters.refused == 1);
        second.join().unwrap()
    });
    let said = bad(&second, 2);
    assert!(
        said.contains("s2 refuses agent vip") && said.contains("attached to this port"),
        "{said}"
    );

    // The switch stops and restarts.
    drop(port);
    let mut port = opened(&socket);
    care(&mut port, "attached again", |port| port.carrier() == Some(true));
    let shown = ask(Path::new(&status)).unwrap();
    assert_eq!((shown.attached, shown.attachments, &shown.kind[..]), (true, 2, "forwarder"));
    assert!(shown.counters.contains_key("other"), "{shown:?}");

    let ended = Command::new("kill").args(["-TERM", &agent.id().to_string()]).status().unwrap();
    assert!(ended.success());
    let output = agent.wait_with_output().unwrap();
    let json: Value = serde_json::from_str(good(&output)).unwrap();
    assert_eq!(
        (&json["agent"]["agent"], &json["agent"]["attachments"]),
        (&"vip".into(), &2.into())
    );
    assert_eq!(json["agent"]["counters"]["other"], 0);
    care(&mut port, "detached", |port| port.carrier() == Some(false));
}
