//! `axon controller FILE`: the controller, on a port of this machine.

use crate::cli::daemon::DaemonArguments;
use crate::cli::real;
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
    /// Fabric file
    file: PathBuf,
    /// File for the controller's incarnation number, made if missing, so that a clock that is set
    /// back does no harm; its hosts and leases are kept in FILE.store across restarts
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    #[command(flatten)]
    dangers: real::Dangers,
    #[command(flatten)]
    daemon: DaemonArguments,
}

/// Runs until SIGTERM or SIGINT.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let (file, dangers) = (&arguments.file, &arguments.dangers);
    let fabric = real::load_for_daemon(file, dangers, daemon::check_controller)?;
    let options = DaemonOptions {
        state: arguments.state.clone(),
        ..arguments.daemon.options(Some(&arguments.file))?
    };
    real::wait_for_ports(&fabric, &fabric.controller.name, &[]);
    daemon::controller(&fabric, &options)?;
    Ok(ExitCode::SUCCESS)
}
