//! `axon down`: stops a lab and removes all that was made for it.

use crate::cli::lab::Choice;
use anyhow::Result;
use std::process::ExitCode;

/// Stop a lab and remove exactly what was made for it, also after a crash
#[derive(clap::Args)]
#[command(
    after_help = "Exit status: 0 the lab is down; 2 there is no such lab, or it cannot be removed, \
    or wrong usage"
)]
pub struct Arguments {
    #[command(flatten)]
    lab: Choice,
}

/// Stops the lab.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let name = axon_lab::down(arguments.lab.name())?;
    crate::cli::say::print(&format!("{name} is down\n"))?;
    Ok(ExitCode::SUCCESS)
}
