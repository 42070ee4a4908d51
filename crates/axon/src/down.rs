//! `axon down`: ends a lab and removes what was made for it.

use anyhow::Result;
use std::process::ExitCode;

/// End a lab and remove exactly what was made for it, also after a crash
#[derive(clap::Args)]
pub struct Arguments {
    /// The lab, if there is more than one
    lab: Option<String>,
}

/// Ends the lab.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let name = axon_linux::lab::down(arguments.lab.as_deref())?;
    crate::say::print(&format!("{name} is down\n"))?;
    Ok(ExitCode::SUCCESS)
}
