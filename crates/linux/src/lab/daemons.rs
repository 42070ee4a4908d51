//! The daemons of a lab, as its supervisor keeps them.
//!
//! A daemon that crashes is started again in its namespace, as a new life of its node: 0.2 s
//! later, and then, while it goes on crashing, after twice the pause each time, up to 5 s. A
//! life of 10 s is a good one, and the next pause is the short one again. A daemon that ends
//! because it was told to (status 0) stays away.

use super::state::StateDir;
use super::{PART, UpOptions, build};
use anyhow::{Context, Result};
use nix::sched::{CloneFlags, setns};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PAUSE_FIRST: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(5);
const GOOD_LIFE: Duration = Duration::from_secs(10);

/// How long to wait before the next life, after the pause before this one.
fn pause_after(pause: Option<Duration>, lived: Duration) -> Duration {
    match pause {
        Some(pause) if lived < GOOD_LIFE => (pause * 2).min(PAUSE_MAX),
        _ => PAUSE_FIRST,
    }
}

/// What a node has been through.
#[derive(Debug)]
struct Life {
    started: Instant,
    /// Before it was started; `None` in its first life.
    pause: Option<Duration>,
    restarts: u32,
    /// When it starts again, if it has crashed.
    due: Option<Instant>,
}

pub(super) struct Daemons {
    lab: StateDir,
    options: UpOptions,
    running: BTreeMap<Pid, String>,
    lives: BTreeMap<String, Life>,
}

impl Daemons {
    pub(super) fn new(lab: StateDir, options: UpOptions) -> Daemons {
        Daemons { lab, options, running: BTreeMap::new(), lives: BTreeMap::new() }
    }

    /// How many run.
    pub(super) fn running(&self) -> usize {
        self.running.len()
    }

    /// Starts a node's daemon in the network namespace of the calling process.
    pub(super) fn start(&mut self, node: &str) -> Result<()> {
        let started = Instant::now();
        let first = Life { started, pause: None, restarts: 0, due: None };
        let life = self.lives.entry(node.to_owned()).or_insert(first);
        life.started = started;
        let log = OpenOptions::new().create(true).append(true).open(self.lab.log(node))?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args([PART, "node", build::LAB, node]);
        if self.options.capture.iter().any(|name| name == node) {
            // What led to a crash is not overwritten by the life after it.
            let capture = match life.restarts {
                0 => self.lab.capture(node),
                life => self.lab.capture(&format!("{node}.{life}")),
            };
            command.arg(capture);
        }
        let child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start the daemon of {node}"))?;
        self.running.insert(Pid::from_raw(child.id() as i32), node.into());
        Ok(())
    }

    /// Takes the exit status of every process that has ended: daemons, and whatever a
    /// command on a node has left behind. Whoever has crashed is to be started again.
    pub(super) fn reap(&mut self) {
        while let Ok(status) = waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            let Some(pid) = status.pid() else { return };
            let Some(node) = self.running.remove(&pid) else { continue };
            if matches!(status, WaitStatus::Exited(_, 0)) {
                continue;
            }
            eprintln!("the daemon of {node} ended: {status:?}");
            self.crashed(&node);
        }
    }

    fn crashed(&mut self, node: &str) {
        if let Some(life) = self.lives.get_mut(node) {
            let now = Instant::now();
            let pause = pause_after(life.pause, now.duration_since(life.started));
            life.pause = Some(pause);
            life.due = Some(now + pause);
        }
    }

    /// How long until somebody is to be started again.
    pub(super) fn next_due(&self) -> Option<Duration> {
        let due = self.lives.values().filter_map(|life| life.due).min()?;
        Some(due.saturating_duration_since(Instant::now()))
    }

    /// Starts again whose time has come.
    pub(super) fn restart_due(&mut self) -> Result<()> {
        let now = Instant::now();
        let due = |life: &Life| life.due.is_some_and(|due| due <= now);
        let due = self.lives.iter().filter(|(_, life)| due(life));
        let nodes: Vec<String> = due.map(|(node, _)| node.clone()).collect();
        if nodes.is_empty() {
            return Ok(());
        }
        let home = File::open("/proc/self/ns/net")?;
        for node in &nodes {
            if let Some(life) = self.lives.get_mut(node) {
                life.due = None;
                life.restarts += 1;
                eprintln!("the daemon of {node} starts again, restart {}", life.restarts);
            }
            if let Err(error) = build::enter_net(node).and_then(|()| self.start(node)) {
                eprintln!("{error:#}");
                self.crashed(node);
            }
        }
        setns(home, CloneFlags::CLONE_NEWNET)?;
        let restarts = self.lives.iter().map(|(node, life)| (node.clone(), life.restarts));
        self.lab.write_restarts(&restarts.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_crashes_again_and_again_waits_longer_and_longer() {
        let mut pause = None;
        let mut waited = Vec::new();
        for _ in 0..7 {
            pause = Some(pause_after(pause, Duration::from_millis(50)));
            waited.extend(pause.map(|pause| pause.as_millis()));
        }
        assert_eq!(waited, [200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!(pause_after(pause, GOOD_LIFE), PAUSE_FIRST);
    }
}
