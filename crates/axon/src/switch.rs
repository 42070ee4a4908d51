//! `axon switch FILE NAME`: one switch, on the ports of this machine.

use crate::cli::daemon::DaemonArguments;
use crate::cli::real;
use anyhow::Result;
use axon_fabric::model::Fabric;
use axon_linux::daemon::{self, DaemonOptions};
use axon_linux::machine::Machine;
use std::path::PathBuf;
use std::process::ExitCode;

/// Run one switch of a fabric on this machine's ports NAME-p0, NAME-p1, ...
#[derive(clap::Args)]
#[command(
    after_help = "Exit status: 0 ended by SIGTERM or SIGINT; 2 it could not run, or wrong usage"
)]
pub struct Arguments {
    /// Fabric file
    file: PathBuf,
    /// Name of the switch in the fabric file, such as s1
    name: String,
    /// File for the switch's incarnation number, made if missing, so that a clock that is set back
    /// does no harm
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Make this port, such as s1-p4, a TAP device for a virtual machine or this machine itself;
    /// may be given more than once
    #[arg(long, value_name = "PORT")]
    tap: Vec<String>,
    #[command(flatten)]
    dangers: real::Dangers,
    #[command(flatten)]
    daemon: DaemonArguments,
}

/// Runs until SIGTERM or SIGINT.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let options = DaemonOptions {
        state: arguments.state.clone(),
        taps: arguments.tap.clone(),
        machine: Machine::tried(),
        ..arguments.daemon.options(Some(&arguments.file))?
    };
    let check = |fabric: &Fabric| daemon::check_switch(fabric, &arguments.name, &options);
    let fabric = real::load_for_daemon(&arguments.file, &arguments.dangers, check)?;
    real::warn_of_master_key(&fabric, &arguments.name, &arguments.file);
    real::wait_for_ports(&fabric, &arguments.name, &arguments.tap);
    daemon::switch(&fabric, &arguments.name, &options)?;
    Ok(ExitCode::SUCCESS)
}
