//! Forked copies of this process (`fork(2)`), each for one piece of work. State that took long to
//! build is built once, and every copy continues from there with its own memory. The kernel copies
//! a page when one of the processes writes to it.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, dup2_stderr, dup2_stdout, fork, getpid, getppid, pipe2};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, ExitStatus};
use std::time::Duration;

/// Number of checks for threads that are ending, 10 ms apart.
const ENDING_CHECKS: u32 = 200;
/// Exit status of a Rust program that has panicked.
pub const PANICKED: i32 = 101;

/// Lets the kernel kill the process that `command` starts when the thread that starts it ends.
pub fn end_with_parent(command: &mut Command) {
    // SAFETY: one system call, which the new process may make before it executes the program.
    unsafe { command.pre_exec(|| set_pdeathsig(Signal::SIGKILL).map_err(Into::into)) };
}

/// Running copy of this process. It is killed if it is dropped before its end, or when the thread
/// that started it ends.
#[derive(Debug)]
pub struct Forked {
    pid: Pid,
    /// Read end of a pipe that the copy holds open while it runs.
    alive: OwnedFd,
    output: File,
    errors: File,
    /// True until the copy has been waited for.
    runs: bool,
}

/// Exit status and output of a copy that has ended.
#[derive(Debug)]
pub struct Ended {
    /// Exit status of the work, 101 after a panic, or a signal.
    pub status: ExitStatus,
    /// Bytes that the copy wrote to standard output.
    pub output: Vec<u8>,
    /// Bytes that the copy wrote to standard error.
    pub errors: Vec<u8>,
}

impl Forked {
    /// Starts a copy of this process that runs `work` and exits with its result.
    ///
    /// # Errors
    /// This process has several threads, of which the copy would have only one. Or the system
    /// refuses to create another process.
    pub fn start(work: impl FnOnce() -> u8) -> io::Result<Forked> {
        alone()?;
        let file = |name: &str| memfd_create(name, MFdFlags::MFD_CLOEXEC).map(File::from);
        let (output, errors) = (file("output")?, file("errors")?);
        let (alive, held) = pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
        io::stdout().flush()?;
        let parent = getpid();
        // SAFETY: this process has one thread, so no lock is held by a thread that the copy lacks.
        match unsafe { fork() }? {
            ForkResult::Parent { child } => {
                Ok(Forked { pid: child, alive, output, errors, runs: true })
            }
            ForkResult::Child => {
                drop(alive);
                let is_redirected = set_pdeathsig(Signal::SIGKILL)
                    .and_then(|()| dup2_stdout(&output))
                    .and_then(|()| dup2_stderr(&errors));
                // The parent may have ended before the first of these calls.
                if getppid() != parent {
                    std::process::exit(PANICKED);
                }
                let status = match is_redirected {
                    Ok(()) => catch_unwind(AssertUnwindSafe(work)).map_or(PANICKED, i32::from),
                    Err(error) => error as i32,
                };
                drop(held);
                std::process::exit(status);
            }
        }
    }

    /// Waits until the copy has ended.
    ///
    /// # Errors
    /// The system has lost the process or its output.
    pub fn wait(mut self) -> io::Result<Ended> {
        self.runs = false;
        let status = loop {
            match waitpid(self.pid, None) {
                Err(nix::errno::Errno::EINTR) => {}
                ended => break ended?,
            }
        };
        let status = match status {
            nix::sys::wait::WaitStatus::Exited(_, code) => ExitStatus::from_raw(code << 8),
            nix::sys::wait::WaitStatus::Signaled(_, signal, _) => {
                ExitStatus::from_raw(signal as i32)
            }
            other => return Err(io::Error::other(format!("{other:?}"))),
        };
        Ok(Ended { status, output: all_of(&mut self.output)?, errors: all_of(&mut self.errors)? })
    }
}

impl Drop for Forked {
    fn drop(&mut self) {
        if self.runs {
            // Harmless if it has just ended: its PID is not reused until it is waited for.
            kill(self.pid, Signal::SIGKILL).ok();
            waitpid(self.pid, None).ok();
        }
    }
}

/// Waits for at most `limit` until one of the copies has ended, and returns the index of that copy.
///
/// # Errors
/// The system refuses to wait.
pub fn first_ended(all: &[Forked], limit: Duration) -> io::Result<Option<usize>> {
    let mut waits: Vec<PollFd> =
        all.iter().map(|one| PollFd::new(one.alive.as_fd(), PollFlags::POLLIN)).collect();
    let limit = PollTimeout::try_from(limit).unwrap_or(PollTimeout::MAX);
    match poll(&mut waits, limit) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(waits.iter().position(|one| one.revents().is_some_and(|events| !events.is_empty())))
}

/// Waits until this process has one thread, because joined threads may still be ending.
fn alone() -> io::Result<()> {
    let mut threads = 0;
    for _ in 0..ENDING_CHECKS {
        threads = std::fs::read_dir("/proc/self/task")?.count();
        if threads == 1 {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err(io::Error::other(format!("a process with {threads} threads cannot be copied")))
}

fn all_of(file: &mut File) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut all)?;
    Ok(all)
}
