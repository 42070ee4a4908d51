//! `axon switch FILE NAME`: one switch, on the ports of this machine.

use crate::capture;
use anyhow::Result;
use axon_linux::daemon::{self, DaemonOptions};
use std::path::PathBuf;
use std::process::ExitCode;

/// Run one switch of a fabric on this machine's ports NAME-p0, NAME-p1, ...
#[derive(clap::Args)]
pub struct Arguments {
    /// The fabric file
    file: PathBuf,
    /// The switch: s1
    name: String,
    /// Answer status requests on this socket
    #[arg(long, value_name = "PATH")]
    status_socket: Option<PathBuf>,
    #[command(flatten)]
    capture: capture::Arguments,
}

/// Runs until SIGTERM or SIGINT.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let options = DaemonOptions {
        status_socket: arguments.status_socket.clone(),
        capture: arguments.capture.options(),
    };
    daemon::switch(&axon_fabric::load(&arguments.file)?, &arguments.name, &options)?;
    Ok(ExitCode::SUCCESS)
}
