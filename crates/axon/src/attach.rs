//! `axon attach`: an agent of a fabric file, at its port of a switch.

use crate::cli::say;
use crate::cli::{output, real};
use anyhow::{Result, ensure};
use axon_linux::attach::{self, AttachOptions, AttachmentStatus};
use axon_linux::daemon::{DaemonOptions, agent_socket};
use axon_wire::Span;
use serde::Serialize;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Maximum time that an agent polls for packets before it sleeps.
const SPIN_MAX: Span = Span::from_secs(1);

/// Run an agent of the fabric file at its port of a switch on this machine
#[derive(clap::Args)]
#[command(
    after_help = "Exit status: 0 ended by SIGTERM or SIGINT; 2 it could not be attached, or wrong \
    usage. A program of your own (`run`) takes the place of this one, and ends as it does"
)]
pub struct Arguments {
    /// Fabric file
    file: PathBuf,
    /// Name of the agent in the fabric file, such as a1
    agent: String,
    /// Socket of its port, instead of /run/axon/FABRIC/AGENT.sock; a switch with --status-socket
    /// has it beside that one
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Time to poll for packets before sleeping, 0s to 1s; 20us by default. A longer time reduces
    /// latency, and uses a CPU
    #[arg(long, value_name = "TIME", value_parser = spin)]
    spin: Option<Span>,
    /// Serve the status on this Unix socket
    #[arg(long, value_name = "PATH")]
    status_socket: Option<PathBuf>,
    /// Print the agent's counters as JSON when it ends
    #[arg(long)]
    json: bool,
}

fn spin(text: &str) -> Result<Span, String> {
    let span = axon_fabric::units::span(text).map_err(|expected| format!("expected {expected}"))?;
    if span <= SPIN_MAX { Ok(span) } else { Err("expected 0s to 1s".to_owned()) }
}

/// Runs until SIGTERM or SIGINT, and attaches the agent again when its switch comes back; prints
/// its counters.
///
/// # Errors
/// The file is wrong or has no such agent, or no switch accepts it at the socket.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let fabric = real::load(&arguments.file)?;
    let agent = attach::agent_of(&fabric, &arguments.agent)?;
    let usual = || agent_socket(&fabric, &agent.name, &DaemonOptions::default());
    let socket = arguments.socket.clone().unwrap_or_else(usual);
    let folder = arguments.file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    if let Some(mut program) = attach::own_program(agent, &socket, folder) {
        let has_options =
            arguments.spin.is_some() || arguments.status_socket.is_some() || arguments.json;
        ensure!(
            !has_options,
            "agent {} is a program of its own; expected none of --spin, --status-socket and --json",
            agent.name
        );
        let error = program.exec();
        let program = program.get_program().display();
        anyhow::bail!("agent {}: cannot run {program}: {error}", agent.name);
    }
    let mut options = AttachOptions::at(socket);
    options.spin = arguments.spin.unwrap_or(options.spin);
    options.status_socket = arguments.status_socket.clone();
    let status = attach::attach(&fabric, &agent.name, &options)?;
    say::print(&match arguments.json {
        true => output::json(&Output { agent: &status })?,
        false => text(&status),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// JSON output of an agent that has ended.
#[derive(Serialize)]
struct Output<'a> {
    /// Agent and its counters.
    agent: &'a AttachmentStatus,
}

fn text(status: &AttachmentStatus) -> String {
    let AttachmentStatus { agent, kind, attachments, counters, .. } = status;
    let counters: Vec<String> =
        counters.iter().map(|(name, count)| format!(", {name} {count}")).collect();
    format!("agent {agent} ({kind}): attachments {attachments}{}\n", counters.concat())
}
