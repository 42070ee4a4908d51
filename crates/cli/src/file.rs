//! Files that a command reads: one wording for those that it cannot.

use anyhow::{Error, Result, anyhow, ensure};
use std::fs::File;
use std::io;
use std::path::Path;

/// The error of every command for a file that it cannot open: the path, why, and what was wanted.
pub fn unread(path: &Path, error: &io::Error, wanted: &str) -> Error {
    anyhow!("{}: cannot be read: {error}; expected {wanted}", path.display())
}

/// Refuses a file that is not there or cannot be opened.
///
/// # Errors
/// As [`unread`].
pub fn check_there(path: &Path, wanted: &str) -> Result<()> {
    // To open a pipe would wait for whoever writes to it.
    let found = std::fs::metadata(path);
    let opened = found.and_then(|found| match found.is_file() {
        true => File::open(path).map(drop),
        false => Ok(()),
    });
    opened.map_err(|error| unread(path, &error, wanted))
}

/// Checks that `path` is there, can be read and is not a directory. `wanted` says in the error what
/// was expected.
///
/// # Errors
/// As [`unread`].
pub fn check_no_directory(path: &Path, wanted: &str) -> Result<()> {
    check_there(path, wanted)?;
    ensure!(!path.is_dir(), "{}: it is a directory; expected {wanted}", path.display());
    Ok(())
}
