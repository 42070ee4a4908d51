//! `axon hosts`: the hosts of a running lab and their ports.

use crate::cli::lab::Choice;
use crate::cli::say;
use anyhow::Result;
use axon_lab::view::Directory;
use axon_lab::view::hosts::{HostView, hosts, text};
use serde::Serialize;
use std::process::ExitCode;

/// Show the hosts of a running lab: MAC and IP addresses, ports, routes
#[derive(clap::Args)]
#[command(
    after_help = "Exit status: 0 done; 2 there is no lab, its controller does not answer, or \
    wrong usage"
)]
pub struct Arguments {
    #[command(flatten)]
    lab: Choice,
    /// Print the hosts as JSON
    #[arg(long)]
    json: bool,
}

/// JSON output of `axon hosts --json`.
#[derive(Serialize)]
struct Output {
    /// Hosts of the fabric file in its order, then all others by MAC address.
    hosts: Vec<HostView>,
}

/// Prints the hosts.
///
/// # Errors
/// There is no lab, or its controller does not answer.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let seen = arguments.lab.seen()?;
    let hosts = hosts(&Directory::new(&seen.fabric, &seen.status));
    if arguments.json {
        say::print(&crate::cli::output::json(&Output { hosts })?)?;
    } else {
        say::print(&text(&hosts))?;
    }
    Ok(ExitCode::SUCCESS)
}
