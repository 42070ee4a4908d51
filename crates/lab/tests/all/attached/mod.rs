//! Agents of the fabric file in a lab, as `axon up` starts them: attached to their switches,
//! restarted when they are killed, and carrying the traffic of real programs.

mod balancer;
mod congestion;
mod memcached;
mod own;
use crate::support::Test;
use axon_lab::attached::AttachedAgent;
use axon_lab::{Lab, UpOptions, table};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

/// Limit for the restart of a daemon on a machine that also compiles.
const LIMIT: Duration = Duration::from_secs(60);

pub const TESTS: &[Test] = &[
    ("a_balancer_spreads_connections_and_comes_back", balancer::spreads_and_comes_back),
    ("a_cache_saves_what_it_answers_of_memcached", memcached::saves_what_it_answers),
    ("a_congestion_responder_answers_the_source_of_marks", congestion::is_answered),
    ("a_program_of_the_users_own_is_started_and_attached", own::is_started_and_attached),
];

pub use own::run_part;

/// Returns the path of an example.
fn scenario(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../scenarios/{name}.yaml"))
}

/// Starts a lab of this file, and waits until its agents are attached.
fn up(file: &Path) -> Lab {
    let options = UpOptions { timeout_ms: 120_000, ..UpOptions::default() };
    let (lab, report) = axon_lab::up(file, &options, |_| ()).unwrap_or_else(|e| panic!("{e:#}"));
    let late = [&report.missing, &report.unknown, &report.detached];
    assert!(late.iter().all(|names| names.is_empty()), "{report:?}");
    lab
}

fn down(lab: &Lab) {
    axon_lab::down(Some(lab.name())).expect("it ends");
}

/// Runs a command on a node, which must succeed; returns its output.
fn output(lab: &Lab, node: &str, words: &[&str]) -> String {
    let output: Output = lab.command(node, words).expect("a node").output().expect("it starts");
    assert!(output.status.success(), "{node}: {words:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns the only agent of a lab.
fn agent(lab: &Lab) -> AttachedAgent {
    let status = lab.status().expect("a status");
    let [agent] = &lab.attached(&status).expect("its agents")[..] else { panic!("one agent") };
    agent.clone()
}

/// Returns the process of the only agent, by its number in the lab, as reported by its switch's
/// port.
fn agent_process(lab: &Lab) -> Option<i32> {
    let status = lab.status().expect("a status");
    let ports = status.iter().filter_map(|node| node.status()).flat_map(|status| &status.ports);
    let port = ports.filter_map(|port| port.agent.as_ref()).next()?;
    port.agent.as_ref().map(|(_, process)| *process)
}

/// Kills a process of the lab.
fn kill(lab: &Lab, process: i32) {
    output(lab, "s1", &["kill", "-KILL", &process.to_string()]);
}

/// Waits until a condition holds for the lab.
fn until(lab: &Lab, what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        let status = || table::table(&lab.status().expect("a status"));
        assert!(began.elapsed() < LIMIT, "{what}: not so after {LIMIT:?}\n{}", status());
        std::thread::sleep(Duration::from_millis(50));
    }
}
