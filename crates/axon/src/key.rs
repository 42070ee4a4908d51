//! `axon key FILE`: a new key for a fabric.

use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The bytes of a key.
const KEY_BYTES: usize = 32;

/// Make a new key file, which only its owner may read, for `key_file` of a fabric file
#[derive(clap::Args)]
#[command(after_help = "Exit status: 0 the key is written; 2 it cannot be written, or the file \
    exists; wrong usage")]
pub struct Arguments {
    /// The file to make, with mode 0600; one that exists is never overwritten. `-` is standard
    /// output
    file: PathBuf,
}

/// Writes 64 hex digits and a line end.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let text = hex(&random()?);
    if arguments.file.as_os_str() == "-" {
        crate::say::print(&text)?;
    } else {
        write(&arguments.file, &text)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Unpredictable bytes. The device blocks at boot until the kernel has some.
fn random() -> Result<[u8; KEY_BYTES]> {
    let mut key = [0; KEY_BYTES];
    File::open("/dev/random")
        .and_then(|mut file| file.read_exact(&mut key))
        .context("cannot read /dev/random")?;
    Ok(key)
}

fn hex(key: &[u8]) -> String {
    let mut text = String::new();
    for byte in key {
        let _ = write!(text, "{byte:02x}");
    }
    text.push('\n');
    text
}

/// Makes a file that only this user may read. One that could not be written whole goes again.
fn write(path: &Path, text: &str) -> Result<()> {
    let cannot = || format!("cannot make the key file {}", path.display());
    let mut options = OpenOptions::new();
    let mut file =
        options.write(true).create_new(true).mode(0o600).open(path).with_context(cannot)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    if written.is_err() {
        let _ = fs::remove_file(path);
    }
    written.with_context(cannot)
}
