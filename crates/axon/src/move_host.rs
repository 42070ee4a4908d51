//! `axon move HOST PORT`: moves a host of a running lab to a port of another switch.

use crate::cli::lab::Choice;
use anyhow::Result;
use std::process::ExitCode;

/// Move a host of a running lab, or the cable in a port, to another port
#[derive(clap::Args)]
#[command(
    after_help = "Exit status: 0 done, also if it is there already; 2 there is no such lab, host \
    or port, or the port is taken, or wrong usage"
)]
pub struct Arguments {
    #[command(flatten)]
    lab: Choice,
    /// Host, such as h1, or a port with a cable in it, such as s1-p0
    #[arg(value_name = "HOST")]
    what: String,
    /// Free port, such as s3-p2
    #[arg(value_name = "PORT")]
    to: String,
    /// Do not let the host announce its addresses there
    #[arg(long)]
    silent: bool,
}

/// Moves the host, and prints the old and the new port.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let lab = arguments.lab.open()?;
    let moved = lab.move_cable(&arguments.what, &arguments.to, !arguments.silent)?;
    let what = moved.host.as_deref().unwrap_or("what was there");
    let line = format!("{}: {what} moved from {} to {}\n", lab.name(), moved.from, moved.to);
    crate::cli::say::print(&line)?;
    Ok(ExitCode::SUCCESS)
}
