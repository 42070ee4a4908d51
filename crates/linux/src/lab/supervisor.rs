//! The process that a lab lives and dies with.
//!
//! `up` starts a launcher, which leaves the terminal's session, makes the lab's namespaces
//! and starts the supervisor as the first process of the new PID namespace. When that
//! process ends, even by SIGKILL, the kernel kills all others of the namespace; with the
//! last of them the mounts go, and with the mounts the network namespaces and veths.

use super::build;
use super::plan::Plan;
use super::state::{ProcessId, StateDir};
use super::{PART, Report, UpOptions};
use crate::status::ask;
use anyhow::{Context, Result, bail};
use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getegid, geteuid, setsid};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Between looks at switches that have not found the controller yet.
const LOOK: Duration = Duration::from_millis(50);
/// How long daemons may take to end by themselves, to finish their captures.
const GRACE: Duration = Duration::from_millis(500);

/// How far `up` is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// What is being done.
    pub step: String,
    /// How many are done.
    pub done: usize,
    /// Of how many.
    pub of: usize,
}

/// One line from the supervisor to whoever called `up`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Line {
    Progress(Progress),
    Ready(Report),
    Failed(String),
}

/// Says a line. If nobody listens any more, `up` was interrupted, and the error that comes
/// back ends the lab.
fn say(line: &Line) -> Result<()> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, line)?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}

fn progress(step: &str, done: usize, of: usize) -> Result<()> {
    say(&Line::Progress(Progress { step: step.into(), done, of }))
}

/// Makes the namespaces and starts the supervisor in them.
pub(super) fn launch(state: &StateDir) -> Result<()> {
    match try_launch(state) {
        Err(error) => say(&Line::Failed(format!("{error:#}"))),
        Ok(()) => Ok(()),
    }
}

fn try_launch(state: &StateDir) -> Result<()> {
    setsid().context("the launcher is a new process and can lead a session")?;
    let (user, group) = (geteuid(), getegid());
    let program = std::env::current_exe()?;
    let own = CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNET;
    // Root in a container may lack the right and still be allowed a user namespace.
    let as_root = if user.is_root() { unshare(own) } else { Err(Errno::EPERM) };
    if as_root.is_err() {
        unshare(CloneFlags::CLONE_NEWUSER | own).context(
            "the kernel allows neither namespaces nor user namespaces to this user; run as \
             root, or see sysctl user.max_user_namespaces and kernel.unprivileged_userns_clone",
        )?;
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("0 {user} 1"))
            .context("cannot map this user to root of the user namespace")?;
        fs::write("/proc/self/gid_map", format!("0 {group} 1"))?;
    }
    let log = File::create(state.log("supervisor"))?;
    let child = Command::new(program)
        .args([PART, "supervisor"])
        .arg(state.path())
        .stdin(Stdio::null())
        .stderr(log)
        .spawn()
        .context("cannot start the supervisor")?;
    let process = ProcessId::of(child.id() as i32).context("the supervisor ended at once")?;
    state.write_supervisor(process)
}

/// Builds the lab, waits until it works, then keeps it until told to end.
pub(super) fn supervise(state: &StateDir) -> Result<()> {
    let mut mask = SigSet::empty();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGCHLD] {
        mask.add(signal);
    }
    mask.thread_block()?;
    let result = Supervisor::build(state).and_then(|mut supervisor| {
        let report = supervisor.wait_until_connected()?;
        supervisor.plan.hosts.iter().try_for_each(build::announce)?;
        say(&Line::Ready(report))?;
        Ok(supervisor)
    });
    match result {
        Ok(mut supervisor) => supervisor.keep(&mask),
        Err(error) => {
            eprintln!("{error:#}");
            say(&Line::Failed(format!("{error:#}")))
        }
    }
}

struct Supervisor {
    plan: Plan,
    options: UpOptions,
    lab: StateDir,
    daemons: BTreeMap<Pid, String>,
}

impl Supervisor {
    fn build(state: &StateDir) -> Result<Supervisor> {
        let options = serde_json::from_slice(&fs::read(state.path().join("options.json"))?)?;
        let fabric = state.load_fabric()?;
        let plan = Plan::of(&fabric);
        build::private_mounts(state.path())?;
        let nodes: Vec<&str> = plan.nodes().collect();
        // The cables are made from the supervisor's own namespace, which is this user's.
        let home = File::open("/proc/self/ns/net")?;
        for (done, node) in nodes.iter().enumerate() {
            progress("namespaces", done, nodes.len())?;
            build::make_node(node).with_context(|| format!("cannot make node {node}"))?;
        }
        nix::sched::setns(&home, CloneFlags::CLONE_NEWNET)?;
        progress("cables", 0, plan.cables.len())?;
        build::make_cables(&plan)?;
        let lab = StateDir::at(build::LAB);
        let mut supervisor = Supervisor { plan, options, lab, daemons: BTreeMap::new() };
        supervisor.plug_in()?;
        nix::sched::setns(&home, CloneFlags::CLONE_NEWNET)?;
        Ok(supervisor)
    }

    /// Sets all devices up, and starts a daemon in each namespace that has one.
    fn plug_in(&mut self) -> Result<()> {
        let plan = self.plan.clone();
        let devices = plan.devices();
        for (done, host) in plan.hosts.iter().enumerate() {
            progress("hosts", done, plan.hosts.len())?;
            build::enter_net(&host.name)?;
            build::set_up_host(host)?;
            crate::sys::set_device_up(&host.device, true)?;
        }
        let daemons: Vec<&str> = plan.daemons().collect();
        for (done, node) in daemons.iter().enumerate() {
            progress("daemons", done, daemons.len())?;
            build::enter_net(node)?;
            for device in devices.get(node).into_iter().flatten() {
                crate::sys::set_device_up(device, true)?;
            }
            self.start_daemon(node)?;
        }
        Ok(())
    }

    fn start_daemon(&mut self, node: &str) -> Result<()> {
        let log = File::create(self.lab.log(node))?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args([PART, "node", build::LAB, node]);
        if self.options.capture.iter().any(|name| name == node) {
            command.arg("capture");
        }
        let child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start the daemon of {node}"))?;
        self.daemons.insert(Pid::from_raw(child.id() as i32), node.into());
        Ok(())
    }

    /// Asks every switch until it is ready for hosts.
    fn wait_until_connected(&mut self) -> Result<Report> {
        let started = Instant::now();
        let limit = Duration::from_millis(self.options.timeout_ms);
        let switches = self.plan.switches.len();
        let mut missing = self.plan.switches.clone();
        loop {
            self.reap();
            missing.retain(|switch| !is_connected(&self.lab.socket(switch)));
            progress("switches connected", switches - missing.len(), switches)?;
            if missing.is_empty() || started.elapsed() > limit {
                return Ok(Report {
                    missing,
                    switches,
                    hosts: self.plan.hosts.len(),
                    notes: Vec::new(),
                });
            }
            if self.daemons.len() < switches + 1 {
                bail!("a daemon ended; see its log in the lab's directory");
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Keeps the lab: buries the dead, and ends at SIGTERM.
    fn keep(&mut self, mask: &SigSet) -> Result<()> {
        while mask.wait()? == Signal::SIGCHLD {
            self.reap();
        }
        // To all processes of this PID namespace but this one.
        let _ = kill(Pid::from_raw(-1), Signal::SIGTERM);
        let signals = SignalFd::with_flags(mask, SfdFlags::SFD_CLOEXEC)?;
        let ended = Instant::now();
        while !self.daemons.is_empty() && ended.elapsed() < GRACE {
            let mut fds = [nix::poll::PollFd::new(
                std::os::fd::AsFd::as_fd(&signals),
                nix::poll::PollFlags::POLLIN,
            )];
            nix::poll::poll(&mut fds, 20u16)?;
            self.reap();
        }
        Ok(())
    }

    /// Takes the exit status of every process that has ended: daemons, and whatever a
    /// command on a node has left behind.
    fn reap(&mut self) {
        while let Ok(status) = waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            let Some(pid) = status.pid() else { return };
            if let Some(node) = self.daemons.remove(&pid) {
                match status {
                    WaitStatus::Exited(_, 0) => {}
                    status => eprintln!("the daemon of {node} ended: {status:?}"),
                }
            }
        }
    }
}

/// Whether a switch has a verified path to the controller and knows what each of its ports
/// with carrier is, so that hosts are heard.
fn is_connected(socket: &Path) -> bool {
    let Ok(status) = ask(socket) else {
        return false;
    };
    let ports = status["ports"].as_array().map_or(&[][..], Vec::as_slice);
    let unknown = ports.iter().any(|port| port["up"] == true && port["kind"] == "unknown");
    !unknown && !status["node"]["controller_path"].is_null()
}
