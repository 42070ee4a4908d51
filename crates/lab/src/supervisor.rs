//! Supervisor of a lab, a process that starts the lab and with which the lab ends.
//!
//! `up` starts a launcher, which leaves the terminal's session, creates the lab's namespaces and
//! starts the supervisor as the first process of the new PID namespace. When the supervisor ends,
//! even by SIGKILL, the kernel kills all other processes in that namespace. The mounts are removed
//! with the last of these processes, and the network namespaces and veths are removed with the
//! mounts.

use super::announce;
use super::bridge;
use super::daemons::Daemons;
use super::namespaces;
use super::options::{PART, Report};
use super::plan::{AttachedPlan, HostPlan, Plan};
use super::state::{ProcessId, StateDir};
use super::uplinks::{self, Keeper};
use anyhow::{Context, Result, bail};
use axon_linux::log;
use axon_linux::machine;
use axon_linux::status::ask;
use axon_linux::sys::{self, Offload};
use axon_node::PortKind;
use axon_node::telemetry::NodeTelemetry;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{Pid, getegid, geteuid, setsid};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Polling interval for switches that have not found the controller yet.
const LOOK: Duration = Duration::from_millis(50);
/// Time limit for daemons to end by themselves, so that they can finish their captures.
const GRACE: Duration = Duration::from_millis(500);

/// Progress of `up`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Current step.
    pub step: String,
    /// Number of completed items.
    pub done: usize,
    /// Total number of items.
    pub of: usize,
}

/// One line from the supervisor to the caller of `up`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Line {
    Progress(Progress),
    Ready(Report),
    Failed(String),
}

/// Writes a line. If the reader is gone, `up` was interrupted. The resulting error then ends the
/// lab.
fn say(line: &Line) -> Result<()> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, line)?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}

fn progress(step: &str, done: usize, of: usize) -> Result<()> {
    say(&Line::Progress(Progress { step: step.into(), done, of }))
}

/// Creates the namespaces and starts the supervisor in them. If the lab uses devices of the
/// machine, starts the keeper of these devices first.
pub(super) fn launch(state: &StateDir, has_devices: bool) -> Result<()> {
    match try_launch(state, has_devices) {
        Err(error) => say(&Line::Failed(format!("{error:#}"))),
        Ok(()) => Ok(()),
    }
}

fn try_launch(state: &StateDir, has_devices: bool) -> Result<()> {
    setsid().context("the launcher is a new process and can lead a session")?;
    let (user, group) = (geteuid(), getegid());
    let program = std::env::current_exe()?;
    let keeper = has_devices.then(|| uplinks::start(state)).transpose()?;
    let own = CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNET;
    // Root in a container may lack the permission but may still be allowed a user namespace.
    let as_root = if user.is_root() { unshare(own) } else { Err(Errno::EPERM) };
    if as_root.is_err() {
        if has_devices {
            bail!("a device becomes a port only outside of user namespaces: run as root there");
        }
        unshare(CloneFlags::CLONE_NEWUSER | own).context(
            "the kernel allows neither namespaces nor user namespaces to this user; run as \
             root, or see sysctl user.max_user_namespaces and kernel.unprivileged_userns_clone",
        )?;
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("0 {user} 1"))
            .context("cannot map this user to root of the user namespace")?;
        fs::write("/proc/self/gid_map", format!("0 {group} 1"))?;
    }
    let log = log::open(&state.log("supervisor"))?;
    let child = Command::new(program)
        .args([PART, "supervisor"])
        .arg(state.path())
        .stdin(keeper.map_or_else(Stdio::null, Stdio::from))
        .stderr(log)
        .spawn()
        .context("cannot start the supervisor")?;
    let process = ProcessId::of(child.id() as i32).context("the supervisor ended at once")?;
    state.write_supervisor(process)
}

/// Builds the lab, waits until it works, and then keeps it until SIGTERM. It does not wait for
/// bridges, because the ports of a spanning tree take seconds.
pub(super) fn supervise(state: &StateDir) -> Result<()> {
    let mut mask = SigSet::empty();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGCHLD] {
        mask.add(signal);
    }
    mask.thread_block()?;
    let result = Supervisor::build(state).and_then(|mut supervisor| {
        let started = Instant::now();
        if supervisor.plan.has_bridges {
            say(&Line::Ready(supervisor.report(Vec::new())))?;
            return Ok(supervisor);
        }
        let mut report = supervisor.wait_until_connected(started)?;
        if report.missing.is_empty() && supervisor.plan.knowing().next().is_some() {
            report.unknown = supervisor.wait_until_known(started)?;
        }
        say(&Line::Ready(report))?;
        Ok(supervisor)
    });
    match result {
        Ok(mut supervisor) => supervisor.keep(&mask),
        Err(error) => say(&Line::Failed(format!("{error:#}"))),
    }
}

struct Supervisor {
    plan: Plan,
    /// Keeper of those devices of the machine that are ports.
    keeper: Keeper,
    timeout: Duration,
    lab: StateDir,
    daemons: Daemons,
}

impl Supervisor {
    fn build(state: &StateDir) -> Result<Supervisor> {
        let options = state.load_options()?;
        let fabric = state.load_fabric()?;
        let plan = Plan::of(&fabric, &options)?;
        let hosts_file = plan.hosts_file();
        let recordings = options.record.as_ref().map(|record| record.directory.as_path());
        namespaces::private_mounts(state.path(), recordings)?;
        if plan.has_kernel {
            machine::mount_bpf(Path::new(namespaces::PINS))?;
        }
        let lab = StateDir::at(namespaces::LAB);
        log::rotate(lab.log("supervisor"));
        let nodes: Vec<&str> = plan.nodes().collect();
        // The cables are created from the supervisor's own namespace, which belongs to this user.
        let home = File::open("/proc/self/ns/net")?;
        for (done, node) in nodes.iter().enumerate() {
            progress("namespaces", done, nodes.len())?;
            let made = match plan.server_of(node) {
                // Switches come before hosts.
                Some(server) => namespaces::join_node(node, server, &hosts_file),
                None => namespaces::make_node(node, &hosts_file),
            };
            made.with_context(|| format!("cannot make node {node}"))?;
        }
        for server in plan.hosts.iter().filter_map(|host| host.server.as_deref()) {
            namespaces::enter_net(server)?;
            namespaces::leave_ports_to_switch()?;
        }
        nix::sched::setns(&home, CloneFlags::CLONE_NEWNET)?;
        progress("cables", 0, plan.cables.len())?;
        namespaces::make_cables(&plan)?;
        // If there is a keeper, standard input is the other end of its socket pair.
        let mut keeper = Keeper::at(std::io::stdin().as_fd().try_clone_to_owned()?);
        for uplink in &plan.uplinks {
            namespaces::enter_net(&uplink.switch)?;
            keeper.take(uplink)?;
        }
        let mut supervisor = Supervisor {
            plan,
            keeper,
            timeout: Duration::from_millis(options.timeout_ms),
            daemons: Daemons::new(lab.clone(), options),
            lab,
        };
        supervisor.bring_up()?;
        nix::sched::setns(&home, CloneFlags::CLONE_NEWNET)?;
        Ok(supervisor)
    }

    /// Sets all devices up, and starts a daemon in each namespace that has one.
    fn bring_up(&mut self) -> Result<()> {
        let plan = self.plan.clone();
        let devices = plan.devices();
        // GRO must be on before any device is up, because a veth checks only when it is set up
        // whether its peer accepts XDP redirects.
        for (done, (node, ends)) in devices.iter().enumerate() {
            progress("offloads", done, devices.len())?;
            for end in ends.iter().filter(|end| end.gro) {
                namespaces::enter_net(node)?;
                sys::set_offload(&end.device, Offload::Gro, true)?;
            }
        }
        for (done, host) in plan.hosts.iter().enumerate() {
            progress("hosts", done, plan.hosts.len())?;
            namespaces::enter_net(&host.name)?;
            namespaces::set_up_host(host)?;
            sys::set_device_up(&host.device, true)?;
        }
        // A cable has carrier a moment before its second end accepts frames, so all devices are up
        // before any daemon sends.
        let daemons: Vec<&str> = plan.daemons().collect();
        for (done, node) in daemons.iter().enumerate() {
            progress("devices", done, daemons.len())?;
            namespaces::enter_net(node)?;
            for end in devices.get(node).into_iter().flatten() {
                sys::set_device_up(&end.device, true)?;
            }
            for uplink in plan.uplinks.iter().filter(|uplink| uplink.switch == *node) {
                sys::set_device_up(&uplink.port, true)?;
            }
        }
        for (done, node) in daemons.iter().enumerate() {
            progress("daemons", done, daemons.len())?;
            namespaces::enter_net(node)?;
            if !plan.has_bridges {
                self.daemons.start(node)?;
            } else if plan.controller.as_deref() != Some(*node) {
                bridge::set_up(&plan, node, devices.get(node).map_or(&[], Vec::as_slice))?;
            }
        }
        for agent in &plan.attached {
            namespaces::enter_net(&agent.switch)?;
            self.daemons.start_attached(&agent.name, &agent.switch)?;
        }
        Ok(())
    }

    /// Polls every switch until it is ready for hosts and its agents are attached.
    fn wait_until_connected(&mut self, started: Instant) -> Result<Report> {
        let switches = self.plan.switches.len();
        let host_agents: Vec<&str> = self.plan.host_agents().collect();
        let mut missing = self.plan.switches.clone();
        let mut detached: Vec<&AttachedPlan> = self.plan.attached.iter().collect();
        loop {
            self.daemons.reap();
            // Check agents first and then switches, because a port is re-evaluated when its agent
            // attaches.
            detached.retain(|agent| !agent.is_at(&self.lab.socket(&agent.switch)));
            missing.retain(|switch| {
                detached.iter().any(|agent| agent.switch == **switch)
                    || !is_connected(&self.lab.socket(switch))
            });
            let ready = host_agents.iter().all(|host| has_ports(&self.lab.socket(host)));
            let step = match self.plan.knowing().next() {
                Some(_) => "switches connected",
                None => "programs ready",
            };
            progress(step, switches - missing.len(), switches)?;
            if missing.is_empty() && ready || started.elapsed() > self.timeout {
                let detached = detached.into_iter().map(|agent| agent.name.clone()).collect();
                return Ok(Report { detached, ..self.report(missing) });
            }
            check_running(&self.plan, &self.daemons)?;
            std::thread::sleep(LOOK);
        }
    }

    /// Builds the report of `up` with these missing switches.
    fn report(&self, missing: Vec<String>) -> Report {
        let (switches, hosts) = (self.plan.switches.len(), self.plan.hosts.len());
        let (unknown, detached, notes) = Default::default();
        Report { missing, unknown, detached, switches, hosts, notes }
    }

    /// Announces the addresses of hosts until the controller knows them. Returns the hosts that it
    /// does not know when the time is up.
    fn wait_until_known(&mut self, started: Instant) -> Result<Vec<String>> {
        let Supervisor { plan, timeout, lab, daemons, .. } = self;
        let hosts: Vec<&HostPlan> =
            plan.hosts.iter().filter(|host| host.address.is_some()).collect();
        let on_look = |known| {
            daemons.reap();
            check_running(plan, daemons)?;
            progress("hosts known", known, hosts.len())
        };
        let end = started + *timeout;
        let unknown = announce::until_known(lab, plan, hosts.iter().copied(), end, on_look)?;
        Ok(unknown.into_iter().map(|host| host.name.clone()).collect())
    }

    /// Keeps the lab: reaps exited processes and restarts crashed daemons. Ends at SIGTERM.
    fn keep(&mut self, mask: &SigSet) -> Result<()> {
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let signals = SignalFd::with_flags(mask, flags)?;
        let mut is_to_end = false;
        while !is_to_end {
            wait(&signals, self.daemons.next_due())?;
            while let Some(signal) = signals.read_signal()? {
                is_to_end |= signal.ssi_signo != Signal::SIGCHLD as u32;
            }
            self.daemons.reap();
            if let Err(error) = self.daemons.restart_due() {
                log::line(format_args!("{error:#}"));
            }
        }
        // This signals all processes in this PID namespace except this one.
        let _ = kill(Pid::from_raw(-1), Signal::SIGTERM);
        let ended = Instant::now();
        while self.daemons.running() > 0 && ended.elapsed() < GRACE {
            wait(&signals, Some(Duration::from_millis(20)))?;
            while signals.read_signal()?.is_some() {}
            self.daemons.reap();
        }
        let lost = self.keeper.give_back_without();
        if !lost.is_empty() {
            let mut log = log::open(&self.lab.log(StateDir::KEEPER))?;
            lost.iter().try_for_each(|error| writeln!(log, "{error:#}"))?;
        }
        Ok(())
    }
}

/// Returns an error if a daemon has ended before the lab was up.
fn check_running(plan: &Plan, daemons: &Daemons) -> Result<()> {
    if daemons.running() < plan.daemons().count() + plan.attached.len() {
        bail!("a daemon did not stay up: {}", daemons.last_words());
    }
    Ok(())
}

/// Waits for a signal, or until `limit` is over.
fn wait(signals: &SignalFd, limit: Option<Duration>) -> Result<()> {
    // Round up, so that the wait does not end too early.
    let limit = limit.map(|limit| i32::try_from(limit.as_millis() + 1).unwrap_or(i32::MAX));
    let limit = limit.map_or(Ok(PollTimeout::NONE), PollTimeout::try_from)?;
    match poll(&mut [PollFd::new(signals.as_fd(), PollFlags::POLLIN)], limit) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Returns whether the agent of a host has both of its ports.
fn has_ports(socket: &Path) -> bool {
    ask(socket).is_ok_and(|status| status.ports.iter().all(|port| port.up))
}

/// Returns whether a switch accepts frames from hosts. It then has identified the peer of each port
/// with carrier. It also has a verified path to the controller, or else all links of the fabric
/// file and contact with all other switches. A programmable switch needs a ready program and all
/// its links.
fn is_connected(socket: &Path) -> bool {
    let Ok(status) = ask(socket) else {
        return false;
    };
    let unknown = status.ports.iter().any(|port| port.up && port.kind == PortKind::Unknown);
    match &status.node {
        NodeTelemetry::Switch(switch) => match &switch.alone {
            None => !unknown && switch.controller_path.is_some(),
            Some(alone) => !unknown && alone.missing.is_empty() && alone.met + 1 == alone.switches,
        },
        NodeTelemetry::Programmable(switch) => {
            // Only ports with a device count, because all others have no cable.
            let down = status.ports.iter().any(|port| !port.up && port.rate_bps.is_some());
            let lacks = switch.failure.is_some() || switch.refusal.is_some();
            !down && switch.ready && !lacks
        }
        NodeTelemetry::Controller(_) | NodeTelemetry::Agent(_) => false,
    }
}
