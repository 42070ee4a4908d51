//! The files of results. `-` is standard output, for every option that names a file.
//!
//! JSON has the version of its format at the top, and what belongs to the machine and not to the
//! result in one object, `machine`.

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::path::Path;

/// The version of all formats of JSON and CSV. It grows when a key or a column goes, or changes its
/// meaning or its unit; a new key or a new last column leaves it as it is.
pub const FORMAT: u32 = 2;

/// A result with the version of its format.
#[derive(Serialize)]
struct Versioned<'a, T> {
    /// The version of this format: [`FORMAT`].
    format: u32,
    #[serde(flatten)]
    result: &'a T,
}

/// The file beside tables in CSV that has the version of their format.
pub const CSV_FORMAT: &str = "format.json";

/// What that file says.
#[derive(Serialize)]
pub struct CsvFormat<'a> {
    /// The names of the columns of each table, in their order.
    pub tables: BTreeMap<&'a str, Vec<String>>,
}

/// A result as JSON, which ends in a newline.
///
/// # Errors
/// It is no object, or has keys that are no text.
pub fn json<T: Serialize>(result: &T) -> Result<String> {
    Ok(serde_json::to_string_pretty(&Versioned { format: FORMAT, result })? + "\n")
}

/// A result that is being written. If it is standard output and its reader leaves, the rest is
/// thrown away.
#[derive(Debug)]
pub struct Output {
    /// `None` after the reader has left.
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

/// Whether a path names standard output.
pub fn is_standard(path: &Path) -> bool {
    path == Path::new("-")
}

/// Opens a result, empty; for `-`, standard output as it is.
///
/// # Errors
/// It cannot be opened.
pub fn create(path: &Path) -> io::Result<Output> {
    let is_standard = is_standard(path);
    let file = match is_standard {
        true => File::from(io::stdout().as_fd().try_clone_to_owned()?),
        false => File::create(path)?,
    };
    Ok(Output { file: Some(file), is_standard })
}

/// Writes a whole result. A reader of standard output that has left is no error.
///
/// # Errors
/// It cannot be written; the error names it.
pub fn write(path: &Path, contents: &str) -> Result<()> {
    let written = create(path).and_then(|mut out| out.write_all(contents.as_bytes()));
    written.with_context(|| format!("cannot write {}", name(path)))
}

/// What a path is called in an error.
pub fn name(path: &Path) -> String {
    if is_standard(path) { "standard output".into() } else { path.display().to_string() }
}

/// Whether one of some results goes to standard output, which then takes nothing else.
///
/// # Errors
/// More than one does.
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
