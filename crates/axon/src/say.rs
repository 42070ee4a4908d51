//! Words for standard output.

use anyhow::{Context, Result};
use std::io::{ErrorKind, Write};

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
