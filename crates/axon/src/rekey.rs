//! `axon rekey FILE SOCKET`: other keys for a running switch or controller.

use anyhow::{Context, Result, bail};
use axon_linux::request;
use axon_node::{Done, Request};
use std::path::PathBuf;
use std::process::ExitCode;

/// Give a running switch or controller the keys that its fabric file has now
#[derive(clap::Args)]
#[command(after_help = "Exit status: 0 the node uses the keys; 2 it does not; wrong usage")]
pub struct Arguments {
    /// The fabric file, with `key` or `key_file`
    file: PathBuf,
    /// The status socket of the node, as in its --status-socket
    socket: PathBuf,
    #[command(flatten)]
    dangers: crate::real::Dangers,
}

/// Asks the node to change its keys.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let Arguments { file, socket, dangers } = arguments;
    let fabric = crate::real::load_for_daemon(file, dangers)?;
    let done = request::ask(socket, Request::Rekey(fabric.keys))
        .with_context(|| format!("{}: the keys are not in use", socket.display()))?;
    match done {
        Done::Rekeyed => Ok(ExitCode::SUCCESS),
        Done::Probe(_) => bail!("{}: it has answered something else", socket.display()),
    }
}
