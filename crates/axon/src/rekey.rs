//! `axon rekey FILE [SOCKET]`: new keys for running nodes.

use anyhow::{Context, Result, bail};
use axon_lab::Lab;
use axon_linux::rekey::rekey;
use std::path::PathBuf;
use std::process::ExitCode;

/// Give running nodes the current keys of their fabric file, without an outage
#[derive(clap::Args)]
#[command(after_help = "Exit status: 0 the nodes use the keys; 2 one of them does not, or wrong \
    usage")]
pub struct Arguments {
    /// Fabric file, with `key` or `key_file`
    file: PathBuf,
    /// Status socket of one node, as in its --status-socket; without it, every switch and the
    /// controller of the running lab of this file
    socket: Option<PathBuf>,
    #[command(flatten)]
    dangers: crate::cli::real::Dangers,
}

/// Requests the change of keys at all nodes, even if it fails at some.
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
