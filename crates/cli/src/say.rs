//! Standard output, standard error and exit statuses.
//!
//! It is not an error if a reader of either closes its end early, as `head` does. Text that
//! standard error does not accept is lost. Text that standard output does not accept, for example
//! on a full disk, is an error. Unlike `println!` and `eprintln!`, nothing here panics.

use anyhow::{Context, Result};
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

/// Exit status of a negative result.
pub const NO: u8 = 1;
/// Exit status of an unknown result. The command could not run, its result could not be written, or
/// the usage was wrong.
pub const UNTRIED: u8 = 2;
/// Exit status of an interrupted command, which is the one that a shell reports for SIGINT.
pub const INTERRUPTED: u8 = 130;

/// Returns the exit status for a result.
pub fn answer(yes: bool) -> ExitCode {
    if yes { ExitCode::SUCCESS } else { NO.into() }
}

/// Writes a line to standard error, or to the log that replaces it. A line that cannot be written
/// is lost.
#[macro_export]
macro_rules! note {
    ($($text:tt)*) => { $crate::say::line(format_args!($($text)*)) };
}
pub use axon_log::line;

pub use crate::note;

/// Returns the number of threads to run if `asked` are requested. It is at most one per core, and a
/// note informs the user if it is lower than requested. Threads wait for one another at every step,
/// so more threads than cores gain nothing. The results are the same with any number.
pub fn threads(asked: usize) -> usize {
    let cores = std::thread::available_parallelism().map_or(asked, std::num::NonZero::get);
    if asked > cores {
        let noun = if cores == 1 { "core" } else { "cores" };
        let verb = if cores == 1 { "is" } else { "are" };
        note!("{asked} threads on {cores} {noun} would wait for one another: {cores} {verb} used");
    }
    asked.min(cores)
}

/// Writes a text to standard output.
///
/// # Errors
/// The text cannot be written, for a reason other than that the reader has closed its end.
pub fn print(text: &str) -> Result<()> {
    print_again(text).map(drop)
}

/// Writes one of several texts to standard output. Returns false once its reader has closed its end
/// (a closed pipe).
///
/// # Errors
/// The errors of [`print()`].
pub fn print_again(text: &str) -> Result<bool> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        outcome => outcome.map(|()| true).context("cannot write standard output"),
    }
}

/// Counter of results that could not be written. Each failure is reported on standard error, and
/// the results after it are still written.
#[derive(Debug, Default)]
pub struct Unwritten {
    failures: usize,
}

impl Unwritten {
    /// Records the outcome of writing one result.
    pub fn take(&mut self, outcome: Result<()>) {
        if let Err(error) = outcome {
            note!("{error:#}");
            self.failures += 1;
        }
    }

    /// Returns the exit status: [`UNTRIED`] if any result could not be written, and otherwise that
    /// of the result.
    pub fn answer(&self, yes: bool) -> ExitCode {
        self.status(yes).into()
    }

    /// Returns the exit status as a number; see [`answer`](Unwritten::answer).
    pub fn status(&self, yes: bool) -> u8 {
        match (self.failures > 0, yes) {
            (true, _) => UNTRIED,
            (false, true) => 0,
            (false, false) => NO,
        }
    }
}
