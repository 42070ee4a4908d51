//! `axon completions SHELL`: shell completion of commands and options.

use anyhow::Result;
use clap::Command;
use clap_complete::Shell;
use std::process::ExitCode;

/// Print a script that completes axon's commands and options in a shell
#[derive(clap::Args)]
#[command(after_help = "For this session of bash: source <(axon completions bash)\n\n\
    Exit status: 0 the script is printed; 2 it cannot be written, or wrong usage")]
pub struct Arguments {
    /// Shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the script for `command`, the root command of axon.
pub fn run(arguments: &Arguments, mut command: Command) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "axon", &mut script);
    crate::cli::say::print(&String::from_utf8(script)?)?;
    Ok(ExitCode::SUCCESS)
}
