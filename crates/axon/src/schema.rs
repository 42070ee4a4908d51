//! `axon schema`: the JSON Schema of fabric files.

use anyhow::Result;
use std::process::ExitCode;

/// Print the JSON Schema of fabric files
#[derive(clap::Args)]
#[command(after_help = "Exit status: 0 success; 1 an error; 2 wrong usage")]
pub struct Arguments {}

/// Prints the schema.
pub fn run(_: &Arguments) -> Result<ExitCode> {
    crate::say::print(&axon_fabric::json_schema())?;
    Ok(ExitCode::SUCCESS)
}
