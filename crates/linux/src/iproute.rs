//! The programs of iproute2, where a system call of our own would say no more.

use anyhow::{Context, Result, bail};
use std::io::Write;
use std::process::{Command, Stdio};

/// Runs `ip` or `tc` in this thread's network namespace.
///
/// # Errors
/// It is not installed, or what it says.
pub fn run(program: &str, arguments: &[&str], input: &str) -> Result<()> {
    call(program, arguments, input).map(drop)
}

/// What `ip` or `tc` prints.
///
/// # Errors
/// As [`run`].
pub(crate) fn output(program: &str, arguments: &[&str]) -> Result<Vec<u8>> {
    call(program, arguments, "")
}

fn call(program: &str, arguments: &[&str], input: &str) -> Result<Vec<u8>> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run `{program}`; it is in the package iproute2"))?;
    if let Some(mut stdin) = child.stdin.take() {
        // Whoever stops reading says why on stderr.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("`{program} {}` failed: {}", arguments.join(" "), said.trim());
    }
    Ok(output.stdout)
}
