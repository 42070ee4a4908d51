//! `axon controller FILE`: the controller, on a port of this machine.

use crate::{capture, real, record};
use anyhow::Result;
use axon_linux::daemon::{self, DaemonOptions};
use std::path::PathBuf;
use std::process::ExitCode;

/// Run a fabric's controller on this machine's port c1-p0
#[derive(clap::Args)]
#[command(
    after_help = "Exit status: 0 ended by SIGTERM or SIGINT; 2 it could not run, or wrong usage"
)]
pub struct Arguments {
    /// The fabric file
    file: PathBuf,
    /// Serve the status on this Unix socket, and take commands on one beside it whose name ends in
    /// .ask
    #[arg(long, value_name = "PATH")]
    status_socket: Option<PathBuf>,
    /// Keep the controller's incarnation number in this file, made if missing, so that a clock that
    /// is set back does no harm; and its hosts and leases in FILE.store, so that it has them when
    /// it starts again
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    #[command(flatten)]
    dangers: real::Dangers,
    #[command(flatten)]
    capture: capture::Arguments,
    #[command(flatten)]
    record: record::Arguments,
}

/// Runs until SIGTERM or SIGINT.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let (file, dangers) = (&arguments.file, &arguments.dangers);
    let fabric = real::load_for_daemon(file, dangers, daemon::check_controller)?;
    let options = DaemonOptions {
        status_socket: arguments.status_socket.clone(),
        capture: arguments.capture.options(),
        record: arguments.record.options(Some(&arguments.file))?,
        state: arguments.state.clone(),
        taps: Vec::new(),
    };
    real::wait_for_ports(&fabric, &fabric.controller.name, &[]);
    daemon::controller(&fabric, &options)?;
    Ok(ExitCode::SUCCESS)
}
