//! Daemons of a lab, managed by its supervisor.
//!
//! A daemon that crashes is restarted in its namespace as a new incarnation of its node. The first
//! restart follows after 0.2 s. While the daemon keeps crashing, each pause is twice the previous
//! one, up to 5 s. After an incarnation of 10 s, the pause is reset. A daemon that ends by SIGTERM
//! (status 0) is not restarted.
//!
//! The agents of the fabric file are also daemons, in the namespaces of their switches.

use super::namespaces;
use super::options::{PART, UpOptions};
use super::state::StateDir;
use anyhow::{Context, Result};
use axon_linux::log;
use nix::sched::{CloneFlags, setns};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::fs::File;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PAUSE_FIRST: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(5);
const STABLE_AFTER: Duration = Duration::from_secs(10);
/// Maximum number of log lines in an error.
const LINES_MAX: usize = 5;

/// Returns the pause before the next incarnation, given the last pause and the lifetime.
fn pause_after(pause: Option<Duration>, lived: Duration) -> Duration {
    match pause {
        Some(pause) if lived < STABLE_AFTER => (pause * 2).min(PAUSE_MAX),
        _ => PAUSE_FIRST,
    }
}

/// Describes how a process has ended.
fn how(status: WaitStatus) -> String {
    match status {
        WaitStatus::Exited(_, code) => format!("ended with exit status {code}"),
        WaitStatus::Signaled(_, signal, _) => format!("was ended by {signal}"),
        other => format!("changed its state: {other:?}"),
    }
}

/// Returns the last lines of a daemon's log, for use in an error.
fn last_lines(log: &str) -> String {
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    match &lines[lines.len().saturating_sub(LINES_MAX)..] {
        [] => "its log is empty".to_owned(),
        [one] => format!("its log: {one}"),
        several => format!("the end of its log:\n    {}", several.join("\n    ")),
    }
}

/// Kind of daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Switch, controller, or agent of a host.
    Node,
    /// Agent of the fabric file, attached to a switch.
    Attached,
}

/// State of a daemon.
#[derive(Debug)]
struct Incarnation {
    part: Part,
    /// Node in whose network namespace the daemon runs.
    at: String,
    started: Instant,
    /// Pause before the last start; `None` in the first incarnation.
    pause: Option<Duration>,
    restarts: u32,
    /// Time of the restart after a crash.
    due: Option<Instant>,
    /// Description of the last crash.
    ended: Option<String>,
}

pub(super) struct Daemons {
    lab: StateDir,
    options: UpOptions,
    running: BTreeMap<Pid, String>,
    incarnations: BTreeMap<String, Incarnation>,
}

impl Daemons {
    pub(super) fn new(lab: StateDir, options: UpOptions) -> Daemons {
        Daemons { lab, options, running: BTreeMap::new(), incarnations: BTreeMap::new() }
    }

    /// Returns the number of running daemons.
    pub(super) fn running(&self) -> usize {
        self.running.len()
    }

    /// Describes how each crashed daemon that is not running has ended, with the last lines of its
    /// log. The logs themselves are removed if a lab does not come up.
    pub(super) fn last_words(&self) -> String {
        let crashed = self.incarnations.iter().filter(|(_, incarnation)| incarnation.due.is_some());
        let words = crashed.map(|(node, incarnation)| {
            let log = std::fs::read_to_string(self.lab.log(node)).unwrap_or_default();
            let ended = incarnation.ended.as_deref().unwrap_or("has ended");
            format!("the daemon of {node} {ended}; {}", last_lines(&log))
        });
        words.collect::<Vec<String>>().join("\n")
    }

    /// Starts a node's daemon in the network namespace of the calling process, which must be that
    /// of the node.
    pub(super) fn start(&mut self, node: &str) -> Result<()> {
        self.start_part(node, node, Part::Node)
    }

    /// Starts an agent of the fabric file in the network namespace of the calling process, which
    /// must be that of its switch.
    pub(super) fn start_attached(&mut self, agent: &str, switch: &str) -> Result<()> {
        self.start_part(agent, switch, Part::Attached)
    }

    fn start_part(&mut self, node: &str, at: &str, part: Part) -> Result<()> {
        let (started, at) = (Instant::now(), at.to_owned());
        let first =
            Incarnation { part, at, started, pause: None, restarts: 0, due: None, ended: None };
        let incarnation = self.incarnations.entry(node.to_owned()).or_insert(first);
        incarnation.started = started;
        // If the log cannot be created, the daemon runs without one.
        let log = log::open(&self.lab.log(node)).map_or_else(|_| Stdio::null(), Stdio::from);
        let mut command = Command::new(std::env::current_exe()?);
        let part = match part {
            Part::Node => "node",
            Part::Attached => "attached",
        };
        command.args([PART, part, namespaces::LAB, node]);
        if self.options.capture.iter().any(|name| name == node) {
            // The next incarnation must not overwrite the capture that led to a crash.
            let capture = match incarnation.restarts {
                0 => self.lab.capture(node),
                incarnation => self.lab.capture(&format!("{node}.{incarnation}")),
            };
            command.arg(capture);
        }
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start the daemon of {node}"))?;
        self.running.insert(Pid::from_raw(child.id() as i32), node.into());
        Ok(())
    }

    /// Collects the exit status of all ended processes: daemons, and remainders of commands on
    /// nodes. Schedules a restart for each crashed daemon.
    pub(super) fn reap(&mut self) {
        while let Ok(status) = waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            let Some(pid) = status.pid() else { return };
            let Some(node) = self.running.remove(&pid) else { continue };
            if matches!(status, WaitStatus::Exited(_, 0)) {
                continue;
            }
            let (ended, log) = (how(status), self.lab.log(&node));
            log::line(format_args!("the daemon of {node} {ended}; its log: {}", log.display()));
            if let Some(incarnation) = self.incarnations.get_mut(&node) {
                incarnation.ended = Some(ended);
            }
            self.crashed(&node);
        }
    }

    fn crashed(&mut self, node: &str) {
        if let Some(incarnation) = self.incarnations.get_mut(node) {
            let now = Instant::now();
            let pause = pause_after(incarnation.pause, now.duration_since(incarnation.started));
            incarnation.pause = Some(pause);
            incarnation.due = Some(now + pause);
        }
    }

    /// Returns the time until the next restart.
    pub(super) fn next_due(&self) -> Option<Duration> {
        let due = self.incarnations.values().filter_map(|incarnation| incarnation.due).min()?;
        Some(due.saturating_duration_since(Instant::now()))
    }

    /// Restarts daemons that are due.
    pub(super) fn restart_due(&mut self) -> Result<()> {
        let now = Instant::now();
        let due = |incarnation: &Incarnation| incarnation.due.is_some_and(|due| due <= now);
        let due = self.incarnations.iter().filter(|(_, incarnation)| due(incarnation));
        let nodes: Vec<(String, String, Part)> =
            due.map(|(node, due)| (node.clone(), due.at.clone(), due.part)).collect();
        if nodes.is_empty() {
            return Ok(());
        }
        let home = File::open("/proc/self/ns/net")?;
        for (node, at, part) in &nodes {
            if let Some(incarnation) = self.incarnations.get_mut(node) {
                incarnation.due = None;
                incarnation.restarts += 1;
                let restarts = incarnation.restarts;
                log::line(format_args!("the daemon of {node} starts again, restart {restarts}"));
            }
            if let Err(error) =
                namespaces::enter_net(at).and_then(|()| self.start_part(node, at, *part))
            {
                log::line(format_args!("{error:#}"));
                self.crashed(node);
            }
        }
        setns(home, CloneFlags::CLONE_NEWNET)?;
        let restarts = self
            .incarnations
            .iter()
            .map(|(node, incarnation)| (node.clone(), incarnation.restarts));
        self.lab.write_restarts(&restarts.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::signal::Signal;

    #[test]
    fn how_a_daemon_has_ended_is_said_in_words_and_with_the_end_of_its_log() {
        let pid = Pid::from_raw(17);
        assert_eq!(how(WaitStatus::Exited(pid, 1)), "ended with exit status 1");
        assert_eq!(how(WaitStatus::Signaled(pid, Signal::SIGKILL, false)), "was ended by SIGKILL");
        assert_eq!(last_lines("\n"), "its log is empty");
        assert_eq!(last_lines("a\n\n"), "its log: a");
        let log: String = (0..9).map(|line| format!("{line}\n")).collect();
        assert_eq!(last_lines(&log), "the end of its log:\n    4\n    5\n    6\n    7\n    8");
    }

    #[test]
    fn who_crashes_again_and_again_waits_longer_and_longer() {
        let mut pause = None;
        let mut waited = Vec::new();
        for _ in 0..7 {
            pause = Some(pause_after(pause, Duration::from_millis(50)));
            waited.extend(pause.map(|pause| pause.as_millis()));
        }
        assert_eq!(waited, [200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!(pause_after(pause, STABLE_AFTER), PAUSE_FIRST);
    }
}
