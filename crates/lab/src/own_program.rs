//! Runs a user program as an agent of a lab.
//!
//! A user program does not limit the size of its log. Therefore, the daemon stays as its parent,
//! copies its standard error to the log line by line, and forwards signals.

use anyhow::{Context, Result, bail};
use axon_linux::{fork, log};
use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

/// Maximum length of a log line, in bytes. Longer lines are split.
const LINE_BYTES_MAX: u64 = 8 << 10;
/// Time limit for the last lines of a program after its end. Processes that it has started and that
/// are still running share its standard error.
const LAST_LINES_MAX: Duration = Duration::from_secs(1);

/// Runs a program until it ends, with this file as its log, and exits with its status. Call this
/// while the process has one thread.
///
/// # Errors
/// The program cannot be started, or a signal has ended it.
pub(super) fn run(mut program: Command, log: PathBuf) -> Result<()> {
    log::rotate(log);
    let mut signals = SigSet::empty();
    signals.extend([Signal::SIGTERM, Signal::SIGINT, Signal::SIGCHLD]);
    signals.thread_block().context("cannot hold signals back")?;
    fork::end_with_parent(&mut program);
    // The standard library unblocks all signals for the program.
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

/// Waits until a program has ended, and forwards the signals that request its end.
fn wait(child: &mut Child, signals: &SigSet) -> Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        match signals.wait() {
            Ok(Signal::SIGCHLD) | Err(Errno::EINTR) => {}
            // The program may have ended in the meantime.
            Ok(signal) => drop(kill(Pid::from_raw(child.id() as i32), signal)),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Copies lines to the log of this process until there are no more. Then drops the sender, as a
/// signal that it is done.
fn copy_lines(from: impl Read, _ended: &Sender<()>) {
    let (mut from, mut line) = (BufReader::new(from), Vec::new());
    while from.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
        if line.last() != Some(&b'\n') {
            line.push(b'\n');
        }
        // The writer reports no errors.
        let _ = log::writer().write_all(&line);
        line.clear();
    }
}
