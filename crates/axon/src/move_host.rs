//! `axon move HOST PORT`: moves a host of a running lab to a port of another switch.

use crate::cli::lab::Choice;
use anyhow::Result;
use std::process::ExitCode;

/// Move a host of a running lab, or whatever is plugged into a port, to another port
#[derive(clap::Args)]
#[command(
    after_help = "Exit status: 0 done, also if it is there already; 2 there is no such lab, host \
    or port, or the port is taken, or wrong usage"
)]
pub struct Arguments {
    #[command(flatten)]
    lab: Choice,
    /// A host, such as h1, or the port where something is plugged in, such as s1-p0
    #[arg(value_name = "HOST")]
    what: String,
    /// A free port, such as s3-p2
    #[arg(value_name = "PORT")]
    to: String,
    /// The host does not announce its addresses there
    #[arg(long)]
    silent: bool,
}

/// Moves the host, and says from where to where.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let lab = arguments.lab.open()?;
    let moved = lab.move_cable(&arguments.what, &arguments.to, !arguments.silent)?;
    let what = moved.host.as_deref().unwrap_or("what was there");
    let line = format!("{}: {what} moved from {} to {}\n", lab.name(), moved.from, moved.to);
    crate::cli::say::print(&line)?;
    Ok(ExitCode::SUCCESS)
}
