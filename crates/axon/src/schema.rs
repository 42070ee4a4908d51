//! `axon schema`: the JSON Schema of fabric files.

use anyhow::Result;
use std::process::ExitCode;

/// Print the JSON Schema of fabric files
#[derive(clap::Args)]
#[command(after_help = "Exit status: 0 done; 2 it could not be written, or wrong usage")]
pub struct Arguments {}

/// Prints the schema.
pub fn run(_: &Arguments) -> Result<ExitCode> {
    crate::cli::say::print(&axon_fabric::json_schema())?;
    Ok(ExitCode::SUCCESS)
}
