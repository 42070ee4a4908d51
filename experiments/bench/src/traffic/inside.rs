//! Processes that end with the run, even if it is killed.

use anyhow::{Context, Result};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Subcommand of this program that turns it into another program.
const PART: &str = "inside";

/// Returns a command for `argv` that ends together with the thread that starts it. That is the main
/// thread, provided that nothing is started from another one.
///
/// # Errors
/// The path of this program's own file cannot be determined.
pub(crate) fn command(argv: &[String]) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([PART, "--"]).args(argv);
    Ok(command)
}

/// Returns the command line for a subcommand of this program, such as `packets-receive 9`.
///
/// # Errors
/// The path of this program's own file cannot be determined.
pub(crate) fn own(words: &str) -> Result<Vec<String>> {
    let program = std::env::current_exe()?.display().to_string();
    let words = words.split(' ').map(str::to_owned);
    Ok([program].into_iter().chain(words).collect())
}

/// Executes the command `argv`, which is killed when its parent ends. Returns only if the execution
/// fails.
///
/// # Errors
/// There is no such program.
pub fn become_command(argv: &[String]) -> Result<()> {
    set_pdeathsig(Signal::SIGKILL)?;
    let (program, arguments) = argv.split_first().context("no command given")?;
    let error = Command::new(program).args(arguments).exec();
    Err(error).with_context(|| format!("cannot run {program}"))
}
