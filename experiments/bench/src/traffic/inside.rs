//! Processes that end with the run, even if it is killed.

use anyhow::{Context, Result};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The subcommand of this program that becomes another program.
const PART: &str = "inside";

/// Returns the command `argv`, ended with the thread that starts it: the main one, as long as
/// nothing is started from another.
///
/// # Errors
/// This program's own file cannot be named.
pub fn command(argv: &[String]) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([PART, "--"]).args(argv);
    Ok(command)
}

/// Returns the command line of a part of this program, such as `packets-receive 9`.
///
/// # Errors
/// This program's own file cannot be named.
pub fn own(words: &str) -> Result<Vec<String>> {
    let program = std::env::current_exe()?.display().to_string();
    let words = words.split(' ').map(str::to_owned);
    Ok([program].into_iter().chain(words).collect())
}

/// Executes the command `argv`, which is killed when its parent ends. Returns only if that fails.
///
/// # Errors
/// There is no such program.
pub fn become_command(argv: &[String]) -> Result<()> {
    set_pdeathsig(Signal::SIGKILL)?;
    let (program, arguments) = argv.split_first().context("no command given")?;
    let error = Command::new(program).args(arguments).exec();
    Err(error).with_context(|| format!("cannot run {program}"))
}
