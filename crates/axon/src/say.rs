//! Words for who sits at the terminal.

use anyhow::{Context, Result};
use std::io::{ErrorKind, Write};

/// The exit code of wrong usage.
pub const USAGE: u8 = 2;

/// Options that contradict each other or the world: the run ends with [`USAGE`].
#[derive(Debug)]
pub struct Usage(pub String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// How many of the threads that are asked for run: as many as there are cores, and it is said
/// if that is fewer. Threads wait for one another at every step, so more of them than cores
/// only take turns; results are the same with any number.
pub fn threads(asked: usize) -> usize {
    let cores = std::thread::available_parallelism().map_or(asked, std::num::NonZero::get);
    if asked > cores {
        let noun = if cores == 1 { "core" } else { "cores" };
        let verb = if cores == 1 { "is" } else { "are" };
        eprintln!(
            "{asked} threads on {cores} {noun} would wait for one another: {cores} {verb} used"
        );
    }
    asked.min(cores)
}

/// Writes a text. A reader that has seen enough and closed its end, as `head` does, is no
/// error.
///
/// # Errors
/// The output cannot be written for another reason, such as a full disk.
pub fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome.context("standard output"),
    }
}
