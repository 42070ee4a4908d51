//! Runs a command as if it were on a node. The command has the node's network, host name, /etc,
//! /run and DHCP leases, and is among the lab's processes.

use super::namespaces::{NODES, enter_net};
use super::options::PART;
use super::state::StateDir;
use anyhow::{Context, Result, bail};
use axon_linux::log;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, Signal};
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitCode};

/// Joins the namespaces of a running lab. Call this before any thread is started, because the
/// kernel lets only single-threaded processes change their user namespace.
pub(super) fn join(state: &StateDir) -> Result<()> {
    let Some(supervisor) = state.supervisor() else {
        bail!("no lab runs at {}", state.path().display());
    };
    let proc = format!("/proc/{}/ns", supervisor.pid);
    let open = |name: &str| {
        File::open(format!("{proc}/{name}")).with_context(|| format!("cannot open {proc}/{name}"))
    };
    let (user, mounts, pids) = (open("user")?, open("mnt")?, open("pid")?);
    let directory = std::env::current_dir();
    if user.metadata()?.ino() != fs::metadata("/proc/self/ns/user")?.ino() {
        setns(user, CloneFlags::CLONE_NEWUSER).context("cannot enter the lab's user namespace")?;
    }
    setns(mounts, CloneFlags::CLONE_NEWNS).context("cannot enter the lab's mount namespace")?;
    setns(pids, CloneFlags::CLONE_NEWPID).context("cannot enter the lab's PID namespace")?;
    if let Ok(directory) = directory {
        // If the directory does not exist in the lab (below /run), the command starts in the root.
        let _ = std::env::set_current_dir(directory);
    }
    Ok(())
}

/// Joins the lab and runs `argv` on `node`. Returns its exit status.
pub(super) fn enter(state: &StateDir, node: &str, argv: &[OsString]) -> Result<ExitCode> {
    let program = std::env::current_exe()?;
    join(state)?;
    enter_net(node)?;
    // Ctrl-C is meant for the command. This process stays, to return its status.
    let mut mask = SigSet::empty();
    mask.add(Signal::SIGINT);
    mask.add(Signal::SIGQUIT);
    mask.thread_block()?;
    let status = Command::new(program).args([PART, "inside", node]).args(argv).status()?;
    let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    Ok(ExitCode::from(code as u8))
}

/// Second half of [`enter`], already in the lab's PID namespace. Creates the node's own view of the
/// files and executes the command. Returns only if that fails.
pub(super) fn inside(node: &str, argv: &[OsString]) -> Result<ExitCode> {
    set_pdeathsig(Signal::SIGKILL)?;
    // A child inherits the blocked signals, but this command must receive Ctrl-C.
    SigSet::all().thread_unblock()?;
    unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWUTS)
        .context("cannot make the command's own namespaces")?;
    nix::unistd::sethostname(node).context("cannot set the host name")?;
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
    let own = Path::new(NODES).join(node);
    for (name, target) in [("etc", "/etc"), ("dhcp", "/var/lib/dhcp"), ("run", "/run")] {
        if Path::new(target).is_dir() {
            let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
            mount(Some(&own.join(name)), target, none, flags, none)
                .with_context(|| format!("cannot give the node its own {target}"))?;
        }
    }
    // Makes /sys/class/net show this node's devices. Not every container allows this, and few
    // commands need it.
    let _ = mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::MS_RDONLY, none);
    let Some((program, arguments)) = argv.split_first() else { bail!("no command given") };
    let error = Command::new(program).args(arguments).exec();
    log::line(format_args!("axon exec: {}: {error}", program.display()));
    let code = if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
    Ok(ExitCode::from(code))
}

/// Joins the lab and sets a device of `node` up or down.
pub(super) fn set_device(state: &StateDir, node: &str, device: &str, up: bool) -> Result<()> {
    join(state)?;
    enter_net(node)?;
    axon_linux::sys::set_device_up(device, up)
        .with_context(|| format!("{node} has no port {device}"))
}
