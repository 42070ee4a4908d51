//! Result files. `-` is standard output, for every option that names a file.
//!
//! JSON has the version of its format at the top. Figures that depend on the machine rather than on
//! the result are in one object, `machine`.

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::path::Path;

/// Version of all JSON and CSV formats. It is incremented when a key or a column is removed or
/// changes its meaning or its unit. A new key or a new last column does not change it.
pub(crate) const FORMAT: u32 = 2;

/// A result with the version of its format.
#[derive(Serialize)]
struct Versioned<'a, T> {
    /// Version of this format: [`FORMAT`].
    format: u32,
    #[serde(flatten)]
    result: &'a T,
}

/// File next to CSV tables that contains the version of their format.
pub const CSV_FORMAT: &str = "format.json";

/// Contents of [`CSV_FORMAT`].
#[derive(Serialize)]
pub struct CsvFormat<'a> {
    /// Names of the columns of each table, in order.
    pub tables: BTreeMap<&'a str, Vec<String>>,
}

/// Returns a result as JSON, which ends in a newline.
///
/// # Errors
/// The result is not an object, or has keys that are not text.
pub fn json<T: Serialize>(result: &T) -> Result<String> {
    Ok(serde_json::to_string_pretty(&Versioned { format: FORMAT, result })? + "\n")
}

/// Result that is being written. If it is standard output and its reader closes it, further data is
/// discarded.
#[derive(Debug)]
pub struct Output {
    /// File to write to. `None` after the reader has closed it.
    file: Option<File>,
    is_standard: bool,
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(file) = &mut self.file else { return Ok(bytes.len()) };
        match file.write(bytes) {
            Err(error) if self.is_standard && error.kind() == ErrorKind::BrokenPipe => {
                self.file = None;
                Ok(bytes.len())
            }
            written => written,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), File::flush)
    }
}

/// Returns whether a path stands for standard output.
pub fn is_standard(path: &Path) -> bool {
    path == Path::new("-")
}

/// Opens a result file and empties it. For `-`, opens standard output unchanged.
///
/// # Errors
/// The file cannot be opened.
pub fn create(path: &Path) -> io::Result<Output> {
    let is_standard = is_standard(path);
    let file = match is_standard {
        true => File::from(io::stdout().as_fd().try_clone_to_owned()?),
        false => File::create(path)?,
    };
    Ok(Output { file: Some(file), is_standard })
}

/// Writes a whole result. A reader of standard output that has closed its end is not an error.
///
/// # Errors
/// The result cannot be written. The error names it.
pub fn write(path: &Path, contents: &str) -> Result<()> {
    let written = create(path).and_then(|mut out| out.write_all(contents.as_bytes()));
    written.with_context(|| format!("cannot write {}", name(path)))
}

/// Returns the name of a path for use in an error.
pub fn name(path: &Path) -> String {
    if is_standard(path) { "standard output".into() } else { path.display().to_string() }
}

/// Returns whether one of these results goes to standard output. If so, nothing else may go there.
///
/// # Errors
/// More than one result goes to standard output.
pub fn standard<'a>(paths: impl Iterator<Item = (&'a str, &'a Path)>) -> Result<bool> {
    let options: Vec<&str> =
        paths.filter(|(_, path)| is_standard(path)).map(|(option, _)| option).collect();
    let all = options.join(" and ");
    ensure!(
        options.len() < 2,
        "{all}: standard output takes one of them; expected a file for the others"
    );
    Ok(!options.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_output_takes_one_result() {
        let of = |paths: &[(&'static str, &'static str)]| {
            standard(paths.iter().map(|(option, path)| (*option, Path::new(*path))))
        };
        assert!(!of(&[("--json", "a"), ("--csv", "b")]).unwrap());
        assert!(of(&[("--json", "-"), ("--csv", "b")]).unwrap());
        let refused = of(&[("--json", "-"), ("--csv", "-")]).unwrap_err().to_string();
        assert!(refused.starts_with("--json and --csv: standard output takes one"), "{refused}");
    }
}
