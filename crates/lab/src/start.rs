//! Starts and ends a lab. Both operations hold the lab's lock until they are done (`changing.rs`).
//! Concurrent starts of one lab therefore cannot destroy each other's lab.

use super::changing;
use super::interrupt::Interrupts;
use super::neighbours;
use super::options::{PART, RecordInto, Report, UpOptions};
use super::plan::Plan;
use super::root::{self, RootLock};
use super::running::{Lab, only};
use super::state::StateDir;
use super::supervisor::{Line, Progress};
use super::uplinks;
use anyhow::{Context, Result, bail};
use axon_linux::dataplane;
use axon_linux::machine::Machine;
use axon_linux::programmable;
use axon_linux::record::EXTENSION;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Time limit for a lab to end before it is killed.
const END_LIMIT: Duration = Duration::from_secs(3);

/// Error for SIGINT, SIGTERM or SIGHUP before a lab was up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// Starts the lab of `fabric` (a fabric file). Returns when all switches have a verified path to
/// the controller or when the time is up.
///
/// # Errors
/// The file is wrong or lacks a switch that `asked` names; a lab with that name is running or being
/// started; the privilege or iproute2 is missing; the kernel refuses an operation; or SIGINT,
/// SIGTERM or SIGHUP arrived in the meantime. In each case, nothing is left behind.
pub fn up(
    fabric: &Path,
    asked: &UpOptions,
    mut on_progress: impl FnMut(&Progress),
) -> Result<(Lab, Report)> {
    let (name, plan, options) = {
        let file = fabric;
        let mut fabric = axon_fabric::load(file)?;
        axon_fabric::program::fix_addresses(&mut fabric);
        dataplane::check(&fabric).with_context(|| file.display().to_string())?;
        programmable::check(&fabric)?;
        let mut options = UpOptions { machine: Some(Machine::ABLE), ..asked.clone() };
        let chosen = |options: &UpOptions| {
            options.dataplanes(&fabric).map_err(|error| axon_fabric::placed(file, error))
        };
        // A trial takes time, so a file that does not need the kernel skips it.
        if chosen(&options)?.iter().any(|choice| choice.carrier.is_in_kernel()) {
            options.machine = Some(asked.machine.clone().unwrap_or_else(Machine::tried));
        }
        let plan = Plan::of(&fabric, &options).map_err(|error| axon_fabric::placed(file, error))?;
        (fabric.name.clone(), plan, options)
    };
    let options = &UpOptions { record: recordings(options.record.as_ref())?, ..options };
    let state = StateDir::of(&name)?;
    if let Some(unknown) = asked.capture.iter().find(|name| !plan.daemons().any(|n| n == *name)) {
        bail!("{name} has no switch {unknown} to capture");
    }
    let interrupts = Interrupts::hold().context("cannot hold signals back")?;
    let (taken, note) = take_new(&name, &state, plan.hosts.len())?;
    let started = uplinks::check(&plan.uplinks)
        .and_then(|()| start(&state, fabric, options, &plan, &interrupts, &mut on_progress));
    match started {
        Ok(mut report) => {
            report.notes.extend(note);
            Ok((Lab::started(name, state), report))
        }
        Err(error) => {
            let log = std::fs::read_to_string(state.log("supervisor")).unwrap_or_default();
            let error = match end(&name, &state, taken) {
                Ok(()) => error,
                Err(left) => error.context(format!("{left:#}")),
            };
            Err(if log.is_empty() { error } else { error.context(log.trim().to_owned()) })
        }
    }
}

/// Creates the directory for recordings and returns its absolute path. A directory that already
/// contains recordings is refused, because a replay would attribute them to this lab.
fn recordings(asked: Option<&RecordInto>) -> Result<Option<RecordInto>> {
    let Some(RecordInto { directory, bytes_max }) = asked else {
        return Ok(None);
    };
    let cannot = || format!("cannot record into {}", directory.display());
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).with_context(cannot)?;
    for entry in fs::read_dir(directory).with_context(cannot)?.flatten() {
        if entry.path().extension().is_some_and(|extension| extension == EXTENSION) {
            let found = entry.path();
            bail!("{} is there already: name an empty directory", found.display());
        }
    }
    let directory = fs::canonicalize(directory).with_context(cannot)?;
    Ok(Some(RecordInto { directory, bytes_max: *bytes_max }))
}

/// Removes anything that a crash has left, and then creates and locks the directory of a new lab.
/// Returns the lock and a message for the user.
fn take_new(name: &str, state: &StateDir, hosts: usize) -> Result<(File, Option<String>)> {
    let lock = root::lock()?;
    if state.supervisor().is_some() {
        bail!("lab {name} is already up; end it with `axon down --lab {name}`");
    }
    if state.check().is_ok() {
        let _taken = take(name, state, &lock)?;
        // The supervisor is dead. All other processes died with it or are returning devices.
        let lost = uplinks::given_back(state)?;
        state.remove(&lock)?;
        if let Some(lost) = lost {
            bail!("lab {name} ended without a word before, and left this: {lost}");
        }
    }
    state.create(&lock)?;
    let taken = take(name, state, &lock)?;
    match neighbours::raise(&lock, name, hosts) {
        Ok(note) => Ok((taken, note)),
        Err(error) => {
            state.remove(&lock)?;
            Err(error)
        }
    }
}

fn take(name: &str, state: &StateDir, lock: &RootLock) -> Result<File> {
    state.lock(lock)?.with_context(|| {
        format!("lab {name} is just being started or ended by another axon; try again later")
    })
}

fn start(
    state: &StateDir,
    fabric: &Path,
    options: &UpOptions,
    plan: &Plan,
    interrupts: &Interrupts,
    on_progress: &mut dyn FnMut(&Progress),
) -> Result<Report> {
    state.keep_fabric(fabric)?;
    state.keep_options(options)?;
    let mut launcher = Command::new(std::env::current_exe()?)
        .args([PART, "launcher"])
        .arg(state.path())
        .args((!plan.uplinks.is_empty()).then_some("devices"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start the lab's launcher")?;
    let words = launcher.stdout.take().context("stdout is a pipe")?;
    // Closes the pipe. A supervisor without a reader stops.
    let report = listen(words, interrupts, on_progress);
    // The launcher records the supervisor before it ends.
    launcher.wait()?;
    report
}

/// Reads the supervisor's messages until the lab is up or has failed, or until a signal arrives.
fn listen(
    mut words: ChildStdout,
    interrupts: &Interrupts,
    on_progress: &mut dyn FnMut(&Progress),
) -> Result<Report> {
    let mut received = Vec::new();
    loop {
        let mut fds = [
            PollFd::new(words.as_fd(), PollFlags::POLLIN),
            PollFd::new(interrupts.fd(), PollFlags::POLLIN),
        ];
        match poll(&mut fds, PollTimeout::NONE) {
            Ok(_) => {}
            Err(Errno::EINTR) => continue,
            Err(error) => return Err(error.into()),
        }
        let has_words = fds[0].any().unwrap_or(false);
        if interrupts.has_come() {
            bail!(Interrupted);
        }
        if !has_words {
            continue;
        }
        let mut part = [0; 4096];
        let length = words.read(&mut part)?;
        if length == 0 {
            bail!("the supervisor ended without a word");
        }
        received.extend_from_slice(&part[..length]);
        while let Some(end) = received.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = received.drain(..=end).collect();
            match serde_json::from_slice(&line)? {
                Line::Progress(progress) => on_progress(&progress),
                Line::Failed(why) => bail!(why),
                Line::Ready(report) => return Ok(report),
            }
        }
    }
}

/// Ends all processes of the lab and removes it. `taken` is the lock of the lab.
fn end(name: &str, state: &StateDir, taken: File) -> Result<()> {
    if let Some(process) = state.supervisor() {
        let pid = Pid::from_raw(process.pid);
        let started = Instant::now();
        let mut signal = Signal::SIGTERM;
        while process.is_alive() {
            match kill(pid, signal) {
                Ok(()) | Err(Errno::ESRCH) => {}
                Err(error) => return Err(error).context("cannot end the lab's supervisor"),
            }
            if started.elapsed() > END_LIMIT {
                signal = Signal::SIGKILL;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    let lost = uplinks::given_back(state)?;
    let lock = root::lock()?;
    neighbours::restore(&lock, name);
    let removed = state.remove(&lock);
    drop(taken);
    match lost {
        Some(lost) => removed.and_then(|()| bail!("lab {name} has ended; {lost}")),
        None => removed,
    }
}

/// Ends the lab `name` or, without a name, the only lab. Removes everything that was created for
/// it, also after a crash. Returns its name.
///
/// # Errors
/// There is no such lab, the choice is ambiguous, the lab is being started, or the directory with
/// that name was not created by `up` for this user. In each case, nothing is changed.
pub fn down(name: Option<&str>) -> Result<String> {
    let name = match name {
        Some(name) => name.to_owned(),
        None => only(&StateDir::all()?)?,
    };
    let state = StateDir::of(&name)?;
    if !state.exists() {
        bail!("there is no lab {name}");
    }
    let taken = changing::take(&name, &state)?;
    end(&name, &state, taken)?;
    Ok(name)
}
