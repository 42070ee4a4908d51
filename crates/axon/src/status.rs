//! `axon status`: the state of the switches and the controller of a lab.

use crate::say;
use anyhow::Result;
use axon_linux::lab::{Deadlock, Lab, alarms, table};
use axon_linux::status::NodeStatus;
use axon_linux::{dcbx, flow_control};
use serde::Serialize;
use std::process::ExitCode;

/// Show the nodes of a running lab: ports, routes, drops, DCBX, paused queues and deadlocks
#[derive(clap::Args)]
#[command(after_help = "Exit status: 0 no deadlock; 1 a deadlock; 2 there is no lab, or a switch \
    does not answer and no deadlock is found, or wrong usage")]
pub struct Arguments {
    /// Name of the lab; needed if more than one is up
    lab: Option<String>,
    /// Print the status as JSON, with all counters
    #[arg(long)]
    json: bool,
}

/// Prints the status. Answers whether no lossless buffers are deadlocked.
///
/// # Errors
/// There is no lab, or switches could not be asked.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let lab = Lab::open(arguments.lab.as_deref())?;
    let status = lab.status()?;
    let found = lab.deadlock(&status);
    let deadlock = found.as_ref().ok().and_then(Option::as_ref);
    if arguments.json {
        // A deadlock that could not be looked for is left out.
        let deadlock = found.is_ok().then_some(deadlock);
        let output = Output { nodes: &status, deadlock };
        say::print(&crate::output::json(&output)?)?;
    } else {
        say::print(&text(&status, deadlock))?;
    }
    Ok(say::answer(found?.is_none()))
}

/// The JSON of a lab's status.
#[derive(Serialize)]
struct Output<'a> {
    /// The switches, the controller and the agents.
    nodes: &'a [NodeStatus],
    /// Lossless buffers that wait for each other; null if there are none, left out if a switch does
    /// not answer and none was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    deadlock: Option<Option<&'a Deadlock>>,
}

fn text(status: &[NodeStatus], deadlock: Option<&Deadlock>) -> String {
    let mut parts = vec![
        table::table(status),
        dcbx::table(status),
        flow_control::table(status),
        alarms::alarms(status),
    ];
    parts.extend(deadlock.map(|deadlock| {
        let seconds = deadlock.still_ms as f64 / 1e3;
        format!("deadlock for {seconds:.1} s: {}\n", deadlock.round.join(" -> "))
    }));
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}
