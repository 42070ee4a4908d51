//! `axon rekey FILE [SOCKET]`: other keys for nodes that run.

use anyhow::{Context, Result, bail};
use axon_linux::lab::Lab;
use axon_linux::rekey::rekey;
use std::path::PathBuf;
use std::process::ExitCode;

/// Give running nodes the keys that their fabric file has now, without an outage
#[derive(clap::Args)]
#[command(after_help = "Exit status: 0 the nodes use the keys; 2 one of them does not, or wrong \
    usage")]
pub struct Arguments {
    /// The fabric file, with `key` or `key_file`
    file: PathBuf,
    /// The status socket of one node, as in its --status-socket; without it, every switch and the
    /// controller of the lab that runs with this file
    socket: Option<PathBuf>,
    #[command(flatten)]
    dangers: crate::cli::real::Dangers,
}

/// Asks the nodes to change their keys. One that does not keeps no other from it.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let Arguments { file, socket, dangers } = arguments;
    let fabric = crate::cli::real::load_for_daemon(file, dangers, |_| Ok(()))?;
    if let Some(socket) = socket {
        rekey(socket, &fabric.keys)
            .with_context(|| format!("{}: the keys are not in use", socket.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let lab = Lab::open(Some(&fabric.name))?;
    let outcomes = lab.rekey(&fabric.keys)?;
    let mut failed = Vec::new();
    for (node, outcome) in outcomes {
        if let Err(error) = outcome {
            crate::cli::say::note!("{node}: {error:#}");
            failed.push(node);
        }
    }
    if !failed.is_empty() {
        bail!("the keys are not in use at {}", failed.join(", "));
    }
    Ok(ExitCode::SUCCESS)
}
