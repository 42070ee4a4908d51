//! Reads a fabric file for a command, and prints the warnings about it.

pub use axon_cli::file::{check_no_directory, check_there, unread};

use axon_fabric::model::Fabric;
use axon_fabric::{FILE_BYTES_MAX, LoadError, Problem};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Name of standard input in errors and warnings.
const STANDARD_INPUT: &str = "standard input";

/// Reads a fabric file, and warns of renamed keys. `-` is standard input; paths in its text are
/// then relative to the working directory.
///
/// # Errors
/// As for [`axon_fabric::load`].
pub fn load(file: &Path) -> Result<Fabric, LoadError> {
    let (text, path) = text(file)?;
    parse(&path, &text)
}

/// Parses the text of a fabric file, and warns of renamed keys. `path` is its name in errors.
///
/// # Errors
/// As for [`axon_fabric::load`].
pub fn parse(path: &Path, text: &str) -> Result<Fabric, LoadError> {
    let (fabric, warnings) = axon_fabric::parse_with_warnings(path, text)?;
    warnings.iter().for_each(|line| crate::cli::say::note!("warning: {line}"));
    Ok(fabric)
}

/// Returns the text of a fabric file, and its name in errors. `-` is standard input.
///
/// # Errors
/// The file cannot be read, is too long, or is not UTF-8 text.
pub fn text(file: &Path) -> Result<(String, PathBuf), LoadError> {
    match file == Path::new("-") {
        true => Ok((standard_input()?, STANDARD_INPUT.into())),
        false => Ok((axon_fabric::file_text(file)?, file.to_owned())),
    }
}

/// Reads standard input, up to the maximum size of a fabric file.
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
