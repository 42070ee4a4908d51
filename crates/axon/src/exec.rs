//! `axon exec HOST -- CMD`: a command on a host.

use anyhow::{Context, Result};
use axon_linux::lab::Lab;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::ExitCode;

/// Run a command on a node of a running lab, and exit with its status
#[derive(clap::Args)]
#[command(
    after_help = "Exit status: that of the command; 2 there is no such lab or node, or wrong usage"
)]
pub struct Arguments {
    /// Name of the lab; needed if more than one is up
    #[arg(long, value_name = "NAME")]
    lab: Option<String>,
    /// The node: a host, a switch or the controller, such as h1
    node: String,
    /// The command and its arguments
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Becomes the command; comes back only if that cannot be.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let lab = Lab::open(arguments.lab.as_deref())?;
    let mut command = lab.command(&arguments.node, &arguments.command)?;
    let error = command.exec();
    Err(error).with_context(|| format!("cannot enter {}", arguments.node))
}
