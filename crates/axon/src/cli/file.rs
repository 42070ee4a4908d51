//! Reads a fabric file for a verb of the CLI, and prints the warnings about it.

use anyhow::{Error, Result, anyhow, ensure};
use axon_fabric::model::Fabric;
use axon_fabric::{FILE_BYTES_MAX, LoadError, Problem};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// What standard input is called in errors and warnings.
const STANDARD_INPUT: &str = "standard input";

/// Reads a fabric file, and warns of keys with an old name. `-` is standard input; files that its
/// text names are then relative to the working directory.
///
/// # Errors
/// As [`axon_fabric::load`].
pub fn load(file: &Path) -> Result<Fabric, LoadError> {
    let (text, path) = text(file)?;
    parse(&path, &text)
}

/// Reads the text of a fabric file that `path` names, and warns of keys with an old name.
///
/// # Errors
/// As [`axon_fabric::load`].
pub fn parse(path: &Path, text: &str) -> Result<Fabric, LoadError> {
    let (fabric, warnings) = axon_fabric::parse_with_warnings(path, text)?;
    warnings.iter().for_each(|line| crate::cli::say::note!("warning: {line}"));
    Ok(fabric)
}

/// The text of a fabric file, and what it is called in errors. `-` is standard input.
///
/// # Errors
/// It cannot be read, is too long, or is no text.
pub fn text(file: &Path) -> Result<(String, PathBuf), LoadError> {
    match file == Path::new("-") {
        true => Ok((standard_input()?, STANDARD_INPUT.into())),
        false => Ok((axon_fabric::file_text(file)?, file.to_owned())),
    }
}

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

/// The same, and refuses a directory.
///
/// # Errors
/// As [`unread`].
pub fn check_no_directory(path: &Path, wanted: &str) -> Result<()> {
    check_there(path, wanted)?;
    ensure!(!path.is_dir(), "{}: it is a directory; expected {wanted}", path.display());
    Ok(())
}

/// The whole of standard input, as much as a fabric file may have.
fn standard_input() -> Result<String, LoadError> {
    let mut text = Vec::new();
    let read = std::io::stdin().lock().take(FILE_BYTES_MAX + 1).read_to_end(&mut text);
    let refused = |what: String| LoadError {
        file: STANDARD_INPUT.into(),
        position: None,
        problem: Problem { key: String::new(), what, expected: "a fabric file in YAML".into() },
    };
    read.map_err(|error| refused(format!("cannot be read: {error}")))?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(refused("it has more than 16 MiB".into()));
    }
    String::from_utf8(text).map_err(|_| refused("it is no text in UTF-8".into()))
}
