//! Standard output, standard error and exit statuses.
//!
//! A reader of either that has seen enough and closed its end, as `head` does, is no error. What
//! standard error does not take is lost; what standard output does not take, such as on a full
//! disk, is an error. Nothing here panics, as `println!` and `eprintln!` do.

use anyhow::{Context, Result};
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

/// The exit status where the answer is no.
pub const NO: u8 = 1;
/// The exit status where the answer is not known: it could not be tried or not be written, or the
/// usage was wrong.
pub const UNTRIED: u8 = 2;
/// The exit status of what was interrupted: that of a shell for SIGINT.
pub const INTERRUPTED: u8 = 130;

/// The exit status of an answer.
pub fn answer(yes: bool) -> ExitCode {
    if yes { ExitCode::SUCCESS } else { NO.into() }
}

/// Writes a line to standard error, or to the log that it is; if that takes none, it is lost.
#[macro_export]
macro_rules! note {
    ($($text:tt)*) => { $crate::say::line(format_args!($($text)*)) };
}
pub use axon_log::line;

pub use crate::note;

/// The number of threads to run when `asked` are wanted: at most one per core, with a note to the
/// user if that is fewer. Threads wait for one another at every step, so more threads than cores
/// gain nothing; results are the same with any number.
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
/// It cannot be written, for another reason than that its reader has left.
pub fn print(text: &str) -> Result<()> {
    print_again(text).map(drop)
}

/// Writes one of several texts to standard output. False once its reader has left (a closed pipe).
///
/// # Errors
/// As [`print()`].
pub fn print_again(text: &str) -> Result<bool> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        outcome => outcome.map(|()| true).context("cannot write standard output"),
    }
}

/// Counts results that could not be written. Each failure is reported on standard error, and the
/// results after it are still written.
#[derive(Debug, Default)]
pub struct Unwritten {
    failures: usize,
}

impl Unwritten {
    /// Takes the outcome of writing one result.
    pub fn take(&mut self, outcome: Result<()>) {
        if let Err(error) = outcome {
            note!("{error:#}");
            self.failures += 1;
        }
    }

    /// The exit status: [`UNTRIED`] if anything could not be written, else that of the answer.
    pub fn answer(&self, yes: bool) -> ExitCode {
        if self.failures > 0 { UNTRIED.into() } else { answer(yes) }
    }
}
