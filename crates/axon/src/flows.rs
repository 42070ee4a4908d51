//! `axon flows`: the installed routes of a running lab.

use crate::cli::lab::Choice;
use crate::cli::say;
use anyhow::{Result, ensure};
use axon_lab::view::Directory;
use axon_lab::view::flows::{FlowView, flows, text};
use serde::Serialize;
use std::process::ExitCode;

/// Show the routes at the edges of a running lab: from which port, to which host, by which ports
#[derive(clap::Args)]
#[command(
    after_help = "Exit status: 0 done; 2 there is no lab or no such host, the controller does \
    not answer, or wrong usage"
)]
pub struct Arguments {
    #[command(flatten)]
    lab: Choice,
    /// Show only the routes from or to these hosts
    hosts: Vec<String>,
    /// Print the routes as JSON
    #[arg(long)]
    json: bool,
}

/// JSON output of `axon flows --json`.
#[derive(Serialize)]
struct Output {
    /// Routes in the order of switches, ports and destinations.
    flows: Vec<FlowView>,
}

/// Prints the routes.
///
/// # Errors
/// There is no lab or no such host, or the controller does not answer.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let seen = arguments.lab.seen()?;
    let mut flows = flows(&Directory::new(&seen.fabric, &seen.status));
    for name in &arguments.hosts {
        let is_host = seen.fabric.hosts.iter().any(|host| host.name == *name);
        let is_seen = |flow: &FlowView| flow.to == *name || flow.from.contains(name);
        ensure!(
            is_host || flows.iter().any(is_seen),
            "{} has no host {name}, and no route is from or to it; `axon hosts` shows all",
            seen.fabric.name
        );
    }
    let wanted = |name: &String| arguments.hosts.is_empty() || arguments.hosts.contains(name);
    flows.retain(|flow| wanted(&flow.to) || flow.from.iter().any(wanted));
    if arguments.json {
        say::print(&crate::cli::output::json(&Output { flows })?)?;
    } else if flows.is_empty() {
        say::print("no routes: each comes with the first frame of a host to another\n")?;
    } else {
        say::print(&text(&flows))?;
    }
    Ok(ExitCode::SUCCESS)
}
