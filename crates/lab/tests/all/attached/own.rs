//! A user's own program as an agent, which is this test program.

use super::{agent, down, up};
use crate::support::{part, state_root};
use axon_agents::{Agent, Event, Outbox};
use axon_lab::StateDir;
use axon_linux::agent_port::client::Client;
use axon_linux::agent_port::runner::{self, RunOptions};
use axon_linux::attach::{NAME_VARIABLE, SOCKET_VARIABLE};
use axon_linux::log::LOG_BYTES_MAX;
use axon_wire::Time;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Lines of 101 bytes that it writes to its standard error.
const LINES: u64 = 3 * LOG_BYTES_MAX / 100;

/// An agent that forwards everything.
struct Onward;

impl Agent for Onward {
    fn handle(&mut self, _: Time, event: Event<'_>, out: &mut dyn Outbox) {
        if let Event::Packet(packet) = event {
            out.forward(packet.handle);
        }
    }
}

/// Runs the agent.
pub fn run_part(_: &[&str]) -> ExitCode {
    let variable = |name| std::env::var_os(name).expect("its starter sets it");
    // More than the limit of a log.
    for line in 0..LINES {
        eprintln!("{line:0>100}");
    }
    let (socket, name) = (PathBuf::from(variable(SOCKET_VARIABLE)), variable(NAME_VARIABLE));
    // Files beside the fabric file are visible.
    assert!(Path::new(&name).with_extension("here").is_file(), "it was started elsewhere");
    let mut client = loop {
        match Client::connect(&socket, &name.to_string_lossy()) {
            Ok(client) => break client,
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let never = AtomicBool::new(false);
    let ended = runner::run(&mut client, &mut Onward, RunOptions::default(), &never);
    ExitCode::from(u8::from(ended.is_err()))
}

pub fn is_started_and_attached() {
    let root = state_root();
    let folder = root.with_extension("own");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("mine.here"), "").expect("a file");
    let words = part("attached", []).join("', '");
    // ICMP passes through the agent.
    let text = format!(
        "name: own-agent\nprogram: bridge\n\
         topology: {{ listed: {{ switches: [s1], hosts: {{ h1: s1, h2: s1 }}, links: [] }} }}\n\
         agents:\n- name: mine\n  at: s1\n  run: ['{words}']\n  \
         select: [{{ ethertype: 0x0800, bytes: [{{ at: 23, value: '01' }}] }}]\n"
    );
    std::fs::write(folder.join("fabric.yaml"), text).expect("a file");
    let lab = up(&folder.join("fabric.yaml"));
    let fabric = lab.fabric().expect("its file is there");
    let pings = lab.ping(&fabric, &[(0, 1)], Duration::from_secs(30), || ()).expect("pings");
    assert!(pings.iter().all(|ping| ping.rtt_ns.is_some()), "{pings:?}");
    let agent = agent(&lab);
    let port = agent.port_counters.expect("the switch answers");
    assert!(agent.attached && agent.counters.is_none(), "{agent:?}");
    assert!(port.packets >= 2 && port.forwarded == port.packets, "{port:?}");
    let log = StateDir::of(lab.name()).expect("its state").log("mine");
    for file in [log.clone(), log.with_extension("log.old")] {
        let bytes = std::fs::metadata(&file).map(|of| of.len());
        let bytes = bytes.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert!((1..=LOG_BYTES_MAX).contains(&bytes), "{}: {bytes} bytes", file.display());
    }
    let last = std::fs::read_to_string(&log).expect("it is there");
    assert!(last.lines().any(|line| line == format!("{:0>100}", LINES - 1)), "its last line");
    down(&lab);
    std::fs::remove_dir_all(&folder).expect("it is there");
}
