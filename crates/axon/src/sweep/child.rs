//! One run as a process of its own: `axon sim` of this same program, with the fabric file on its
//! standard input and the report on its standard output.
//!
//! So a run has its own memory, which can be limited and is freed, and a failure (a panic, a
//! signal) affects no other run. It ends with the sweep, even if that is killed.

use super::figures::Ran;
use super::plan::{Plan, Run};
use super::store::{Kept, Status};
use anyhow::{Context, Result};
use axon_fabric::units::span_text;
use axon_linux::fork::PANICKED;
use axon_wire::Bytes;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

/// This program, even after its file was replaced.
const PROGRAM: &str = "/proc/self/exe";
/// Messages of `axon sim` for a run that needs more than `--memory-max`, before and after its
/// start.
const MEMORY: [&str; 2] = ["--memory-max is", "it needs more memory than --memory-max"];

/// Outcome of a run.
pub enum Outcome {
    /// The run is finished.
    Kept(Box<Kept>),
    /// The run needs more memory than its limit.
    OutOfMemory,
}

/// Process of a worker, if it is running.
#[derive(Default)]
pub struct Slot {
    child: Mutex<Option<Child>>,
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Kills the process, and those that it has started.
    pub(crate) fn kill(&self) {
        if let Some(child) = &*self.lock() {
            // The PID stays valid until the process is waited for.
            let group = Pid::from_raw(child.id().cast_signed());
            // If all have ended already, the error is ignored.
            killpg(group, Signal::SIGKILL).ok();
        }
    }

    /// Runs one run to its end. `None` if `is_over` returns true before it begins.
    ///
    /// # Errors
    /// No process can be started.
    pub fn run(
        &self,
        (plan, run): (&Plan, usize),
        memory: Option<Bytes>,
        is_over: impl FnOnce() -> bool,
    ) -> Result<Option<Outcome>> {
        let one = plan.run(run)?;
        let mut child = {
            let mut slot = self.lock();
            if is_over() {
                return Ok(None);
            }
            let mut child = command(plan, &one, memory).spawn().context("cannot start a run")?;
            let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
            *slot = Some(child);
            pipes
        };
        if let Some(mut input) = child.0.take() {
            // A process that ends without reading its input reports the reason.
            input.write_all(one.document.text().as_bytes()).ok();
        }
        let (report, said) = thread::scope(|scope| {
            let said = scope.spawn(|| all_of(child.2));
            (all_of(child.1), said.join().unwrap_or_default())
        });
        let ended = self.lock().take().map(|mut child| child.wait());
        let status = ended.transpose()?.unwrap_or_default();
        Ok(Some(outcome(status, &report, &String::from_utf8_lossy(&said), plan.parameters(run))))
    }
}

/// Reads all input, up to the first error.
fn all_of(input: Option<impl Read>) -> Vec<u8> {
    let mut all = Vec::new();
    if let Some(mut input) = input {
        input.read_to_end(&mut all).ok();
    }
    all
}

fn command(plan: &Plan, run: &Run, memory: Option<Bytes>) -> Command {
    let mut command = Command::new(PROGRAM);
    let own = std::process::id().to_string();
    command.args(["sim", "-", "--json", "-", "--part-of", &own]);
    command.args(["--dataplane", plan.dataplane.name()]);
    if let Some(seed) = run.seed {
        command.args(["--seed", &seed.to_string()]);
    }
    if let Some(router) = run.router {
        command.args(["--router", router.name()]);
    }
    if let Some(duration) = plan.duration {
        command.args(["--duration", &span_text(duration)]);
    }
    if let Some(Bytes(bytes)) = memory {
        command.args(["--memory-max", &format!("{bytes}B")]);
    }
    // Ctrl-C is handled by the sweep, which ends its runs itself.
    command.process_group(0).current_dir(plan.folder());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Returns the outcome of an ended process.
pub(crate) fn outcome(
    status: ExitStatus,
    report: &[u8],
    said: &str,
    parameters: Vec<(String, String)>,
) -> Outcome {
    let kept = |status, reason, figures| {
        let parameters = parameters.into_iter().collect();
        Outcome::Kept(Box::new(Kept { parameters, status, reason, figures }))
    };
    let ran = Ran::read(report);
    let stopped = ran.as_ref().ok().and_then(|ran| ran.stopped.clone());
    let is_memory = |text: &str| MEMORY.iter().any(|part| text.contains(part));
    match (status.code(), ran, stopped) {
        (Some(2), _, Some(reason)) if is_memory(&reason) => Outcome::OutOfMemory,
        (Some(2), Err(_), _) if is_memory(said) => Outcome::OutOfMemory,
        (Some(0), Ok(ran), None) => kept(Status::Passed, None, Some(ran.figures())),
        (Some(1), Ok(ran), None) => kept(Status::Failed, Some(ran.why()), Some(ran.figures())),
        (Some(_), _, Some(reason)) => kept(Status::Stopped, Some(reason), None),
        (code, ..) => kept(Status::Crashed, Some(last_words(code, status.signal(), said)), None),
    }
}

/// Returns the reason that a process has left no report.
fn last_words(code: Option<i32>, signal: Option<i32>, said: &str) -> String {
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    match (code, lines.last()) {
        (Some(PANICKED), _) => {
            // `thread 'main' (123) panicked at crates/a.rs:1:2:`, then the message. The number is
            // that of the thread.
            let at = lines.iter().position(|line| line.contains("panicked at "));
            let place = at.and_then(|at| lines[at].split("panicked at ").nth(1));
            let message = at.and_then(|at| lines.get(at + 1));
            let [place, message] = [place, message.copied()].map(Option::unwrap_or_default);
            format!("a panic at {} {message}", place.trim_end_matches(':'))
        }
        (Some(_), Some(last)) => (*last).to_owned(),
        (Some(code), None) => format!("it ended with status {code}"),
        (None, _) => format!("it was ended by signal {}", signal.unwrap_or(0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_a_report_has_a_reason_that_is_the_same_every_time() {
        let panic =
            "\nthread 'main' (4711) panicked at crates/a.rs:7:9:\nno route\nnote: run with\n";
        let of = |code, said| last_words(code, Some(9), said);
        assert_eq!(of(Some(101), panic), "a panic at crates/a.rs:7:9 no route");
        assert_eq!(
            of(Some(2), "warning: x\nprogram p.py: no such file\n"),
            "program p.py: no such file"
        );
        assert_eq!(of(Some(3), ""), "it ended with status 3");
        assert_eq!(of(None, "anything"), "it was ended by signal 9");
    }

    #[test]
    fn memory_is_what_a_process_says_of_it() {
        let ended = |report: &str, said: &str| {
            outcome(ExitStatus::from_raw(2 << 8), report.as_bytes(), said, Vec::new())
        };
        let said = "a: 6 hosts need at least 1 MiB before anything is sent; --memory-max is 10 KiB";
        assert!(matches!(ended("", said), Outcome::OutOfMemory));
        let Outcome::Kept(kept) = ended("", "cannot do it") else { panic!("no memory") };
        assert_eq!((kept.status, kept.reason.as_deref()), (Status::Crashed, Some("cannot do it")));
    }
}
