//! The process that starts a test and cleans up after it, however the test ends.
//!
//! The guard is a subreaper (prctl(2)): processes that outlive their parents become its children,
//! also those that lead sessions of their own, as a lab's supervisor does. It first ends the labs
//! in the way that users end them, then kills the rest. A test that passes must leave nothing.
//!
//! Standard input is a pipe from the runner. When it closes, the runner has ended, and the guard
//! kills the test. When the guard is killed, the kernel kills the test, and the runner starts
//! another process that cleans up.

use super::{Labs, TEST};
use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, setsid};
use std::io::Read;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time that processes of a test that has passed may take to end by themselves.
const END_LIMIT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Runs the test of this name, and cleans up: ends its labs and removes its folder.
pub fn guard(name: &str, folder: &Path, labs: Option<&Labs>) -> ExitCode {
    setsid().expect("a new process leads no group yet");
    prctl::set_child_subreaper(true).expect("Linux has it");
    let program = std::env::current_exe().expect("a running program has a path");
    let test = Command::new(program).args([TEST, name]).stdin(Stdio::null()).spawn();
    let test = Pid::from_raw(test.expect("it starts").id() as i32);
    let has_ended = Arc::new(AtomicBool::new(false));
    let watched = has_ended.clone();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        if !watched.load(Ordering::SeqCst) {
            let _ = kill(test, Signal::SIGKILL);
        }
    });
    let code = loop {
        match waitpid(None, None) {
            Ok(WaitStatus::Exited(process, code)) if process == test => break code,
            Ok(WaitStatus::Signaled(process, signal, _)) if process == test => {
                eprintln!("the test was killed by {signal}");
                break 128 + signal as i32;
            }
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => panic!("cannot wait for the test: {error}"),
        }
    };
    has_ended.store(true, Ordering::SeqCst);
    let mut left = end(labs);
    if code == 0 {
        left.extend(wait_for_children());
    }
    kill_children();
    // Labs that were just being started.
    end(labs);
    remove(folder);
    if code == 0 && !left.is_empty() {
        eprintln!("the test has passed and left: {}", left.join(", "));
        return ExitCode::FAILURE;
    }
    ExitCode::from(code as u8)
}

/// Cleans up after a guard that was killed. The kernel has killed the test.
pub fn clean_after(guard: i32, folder: &Path, labs: Option<&Labs>) -> ExitCode {
    let _ = killpg(Pid::from_raw(guard), Signal::SIGKILL);
    end(labs);
    remove(folder);
    ExitCode::SUCCESS
}

/// Ends all labs; returns their names.
fn end(labs: Option<&Labs>) -> Vec<String> {
    let names = labs.map_or_else(Vec::new, |labs| (labs.end)());
    names.into_iter().map(|name| format!("lab {name}")).collect()
}

fn remove(folder: &Path) {
    if let Err(error) = std::fs::remove_dir_all(folder) {
        eprintln!("{} stays: {error}", folder.display());
    }
}

/// Running children of this process, by number and command line.
fn children() -> Vec<(Pid, String)> {
    let own = std::process::id().to_string();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let child = |pid: i32| {
        let folder = Path::new("/proc").join(pid.to_string());
        let stat = std::fs::read_to_string(folder.join("stat")).ok()?;
        // The name in parentheses may contain any character.
        let (_, rest) = stat.rsplit_once(") ")?;
        let mut fields = rest.split(' ');
        let (state, parent) = (fields.next()?, fields.next()?);
        let line = std::fs::read(folder.join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        (state != "Z" && parent == own).then(|| (Pid::from_raw(pid), line.trim().to_owned()))
    };
    pids.filter_map(child).collect()
}

/// Gives the processes of a passed test time to end; returns those that do not.
fn wait_for_children() -> Vec<String> {
    let began = Instant::now();
    loop {
        while let Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) =
            waitpid(None, Some(WaitPidFlag::WNOHANG))
        {}
        let left = children();
        if left.is_empty() || began.elapsed() > END_LIMIT {
            return left.into_iter().map(|(pid, line)| format!("process {pid} ({line})")).collect();
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Kills the children of this process, and theirs, as these become its own.
fn kill_children() {
    loop {
        for (pid, _) in children() {
            let _ = kill(pid, Signal::SIGKILL);
        }
        match waitpid(None, None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return,
        }
    }
}
