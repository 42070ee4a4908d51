//! Runs iproute2 programs for tasks in which direct system calls have no advantage.

use anyhow::{Context, Result, bail};
use std::io::Write;
use std::process::{Command, Stdio};

/// Runs `ip` or `tc` in this thread's network namespace.
///
/// # Errors
/// The program is not installed, or it fails. The error includes its message.
pub fn run(program: &str, arguments: &[&str], input: &str) -> Result<()> {
    call(program, arguments, input).map(drop)
}

/// Returns the output of `ip` or `tc`.
///
/// # Errors
/// As [`run`].
pub fn output(program: &str, arguments: &[&str]) -> Result<Vec<u8>> {
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
        // If the program stops reading, it reports the cause on stderr.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("`{program} {}` failed: {}", arguments.join(" "), said.trim());
    }
    Ok(output.stdout)
}
