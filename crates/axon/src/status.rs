//! `axon status`: state of the switches and the controller of a lab.

use crate::cli::lab::Choice;
use crate::cli::say;
use anyhow::Result;
use axon_fabric::model::Fabric;
use axon_lab::attached::{self, AttachedAgent};
use axon_lab::{Deadlock, Lab, alarms, bonds, policy, restored, table};
use axon_linux::status::NodeStatus;
use axon_linux::{dcbx, flow_control, registers};
use serde::Serialize;
use std::process::ExitCode;
use std::time::Duration;

/// Show the nodes of a running lab: ports, routes, drops, agents, DCBX, paused queues and deadlocks
#[derive(clap::Args)]
#[command(after_help = "Exit status: 0 no deadlock; 1 a deadlock; 2 there is no lab, or a switch \
    does not answer and no deadlock is found, or wrong usage; 130 ended by Ctrl-C, as --watch is")]
pub struct Arguments {
    #[command(flatten)]
    lab: Choice,
    /// Print the status as JSON, with all counters
    #[arg(long, conflicts_with = "watch")]
    json: bool,
    /// Show the status again at this interval in seconds, 1 to 3600, until Ctrl-C; in place on a
    /// terminal, else one after the other
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true,
          default_missing_value = "1", value_parser = clap::value_parser!(u64).range(1..=3600))]
    watch: Option<u64>,
}

/// Prints the status. The exit status shows whether lossless buffers are deadlocked.
///
/// # Errors
/// There is no lab, or switches could not be queried.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let lab = arguments.lab.open()?;
    if let Some(seconds) = arguments.watch {
        return watch(&lab, Duration::from_secs(seconds));
    }
    let status = lab.status()?;
    let agents = lab.attached(&status)?;
    let found = lab.deadlock(&status);
    let deadlock = found.as_ref().ok().and_then(Option::as_ref);
    if arguments.json {
        // The result of a failed deadlock search is left out.
        let deadlock = found.is_ok().then_some(deadlock);
        let output = Output { nodes: &status, agents: &agents, deadlock };
        say::print(&crate::cli::output::json(&output)?)?;
    } else {
        say::print(&text(&status, &agents, deadlock, &lab.fabric()?))?;
    }
    Ok(say::answer(found?.is_none()))
}

/// Prints the status repeatedly, until Ctrl-C, or until the lab is down.
fn watch(lab: &Lab, pause: Duration) -> Result<ExitCode> {
    let (before, after) = say::again();
    loop {
        let status = lab.status()?;
        let deadlock = lab.deadlock(&status).ok().flatten();
        let agents = lab.attached(&status)?;
        let text = text(&status, &agents, deadlock.as_ref(), &lab.fabric()?);
        let text = format!("{before}{text}{after}");
        if !say::print_again(&text)? {
            return Ok(ExitCode::SUCCESS);
        }
        std::thread::sleep(pause);
        Lab::open(Some(lab.name()))?;
    }
}

/// JSON output of a lab's status.
#[derive(Serialize)]
struct Output<'a> {
    /// Switches, controller, and agents of hosts.
    nodes: &'a [NodeStatus],
    /// Agents of the fabric file, each at a port of its switch.
    agents: &'a [AttachedAgent],
    /// Lossless buffers that wait for each other; null if there are none, omitted if a switch does
    /// not answer and none was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    deadlock: Option<Option<&'a Deadlock>>,
}

fn text(
    status: &[NodeStatus],
    agents: &[AttachedAgent],
    deadlock: Option<&Deadlock>,
    fabric: &Fabric,
) -> String {
    let mut parts = vec![
        table::table(status),
        attached::text(agents),
        dcbx::table(status),
        flow_control::table(status),
        registers::tables(status),
        restored::text(status),
        bonds::text(status, fabric),
        policy::text(status, fabric),
        alarms::alarms(status) + &bonds::alarms(status, fabric),
    ];
    parts.extend(deadlock.map(|deadlock| {
        let seconds = deadlock.blocked_ms as f64 / 1e3;
        format!("deadlock for {seconds:.1} s: {}\n", deadlock.cycle.join(" -> "))
    }));
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}
