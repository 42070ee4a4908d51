//! A program of the user's own as an agent of a lab.
//!
//! It knows nothing of the bound of its log. So the daemon stays before it: what the program writes
//! to its standard error goes to the log by the daemon, line by line, and signals the other way.

use crate::log;
use anyhow::{Context, Result, bail};
use nix::errno::Errno;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

/// A longer line of a program is several lines of its log, in bytes.
const LINE_BYTES_MAX: u64 = 8 << 10;
/// How long the last lines of a program may take after its end: what it has started, and what goes
/// on, has the same standard error.
const LAST_LINES_MAX: Duration = Duration::from_secs(1);

/// Runs a program whose log is this file, until it ends; then ends as it did. To be called while
/// the process has one thread.
///
/// # Errors
/// It cannot be started, or was ended by a signal.
pub(super) fn run(mut program: Command, log: PathBuf) -> Result<()> {
    log::rotate(log);
    let mut signals = SigSet::empty();
    signals.extend([Signal::SIGTERM, Signal::SIGINT, Signal::SIGCHLD]);
    signals.thread_block().context("cannot hold signals back")?;
    // SAFETY: one system call, which the new process may make before it becomes the program.
    unsafe { program.pre_exec(|| set_pdeathsig(Signal::SIGKILL).map_err(Into::into)) };
    // The library lets the program have all signals.
    let child = program.stderr(Stdio::piped()).spawn();
    let mut child = child.with_context(|| format!("cannot run {:?}", program.get_program()))?;
    let (ended, has_ended) = channel();
    if let Some(lines) = child.stderr.take() {
        let copy = move || copy_lines(lines, &ended);
        std::thread::Builder::new().name("log".into()).spawn(copy).context("no thread")?;
    }
    let status = wait(&mut child, &signals)?;
    let _ = has_ended.recv_timeout(LAST_LINES_MAX);
    match status.code() {
        Some(code) => std::process::exit(code),
        None => bail!("its program was ended by signal {}", status.signal().unwrap_or(0)),
    }
}

/// Waits until a program has ended, and gives it the signals that ask for that.
fn wait(child: &mut Child, signals: &SigSet) -> Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        match signals.wait() {
            Ok(Signal::SIGCHLD) | Err(Errno::EINTR) => {}
            // It may have ended meanwhile.
            Ok(signal) => drop(kill(Pid::from_raw(child.id() as i32), signal)),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Copies lines to the log of this process until there are no more, and says so by dropping what
/// it was given for that.
fn copy_lines(from: impl Read, _ended: &Sender<()>) {
    let (mut from, mut line) = (BufReader::new(from), Vec::new());
    while from.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
        if line.last() != Some(&b'\n') {
            line.push(b'\n');
        }
        // It reports no error.
        let _ = log::writer().write_all(&line);
        line.clear();
    }
}
