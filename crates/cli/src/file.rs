//! Input files of commands, with one wording for read errors.

use anyhow::{Error, Result, anyhow, ensure};
use std::fs::File;
use std::io;
use std::path::Path;

/// Returns the error of every command for a file that cannot be opened. It contains the path, the
/// reason, and the expected contents.
pub fn unread(path: &Path, error: &io::Error, wanted: &str) -> Error {
    anyhow!("{}: cannot be read: {error}; expected {wanted}", path.display())
}

/// Refuses a file that is missing or cannot be opened.
///
/// # Errors
/// The error of [`unread`].
pub fn check_there(path: &Path, wanted: &str) -> Result<()> {
    // Opening a pipe would wait for its writer.
    let found = std::fs::metadata(path);
    let opened = found.and_then(|found| match found.is_file() {
        true => File::open(path).map(drop),
        false => Ok(()),
    });
    opened.map_err(|error| unread(path, &error, wanted))
}

/// Checks that `path` exists, can be read and is not a directory. `wanted` describes the expected
/// contents in the error.
///
/// # Errors
/// The error of [`unread`].
pub fn check_no_directory(path: &Path, wanted: &str) -> Result<()> {
    check_there(path, wanted)?;
    ensure!(!path.is_dir(), "{}: it is a directory; expected {wanted}", path.display());
    Ok(())
}
