//! `axon status`: what switches and controller tell of themselves.

use crate::say;
use anyhow::Result;
use axon_linux::lab::{Lab, table};
use axon_linux::{dcbx, flow_control};
use serde_json::json;
use std::process::ExitCode;

/// Show the nodes of a running lab. Ends with 1 if its lossless links have stopped each other for
/// good, and with 2 if nobody could be asked
#[derive(clap::Args)]
pub struct Arguments {
    /// The lab, if more than one is up
    lab: Option<String>,
    /// Everything, as JSON
    #[arg(long)]
    json: bool,
}

/// Prints the status. Fails if lossless buffers have stopped one another for good; that they
/// could not be asked is another matter and has an exit code of its own.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    shown(arguments).or_else(|error| {
        eprintln!("{error:#}");
        Ok(say::USAGE.into())
    })
}

fn shown(arguments: &Arguments) -> Result<ExitCode> {
    let lab = Lab::open(arguments.lab.as_deref())?;
    let status = lab.status()?;
    let deadlock = lab.deadlock(&status)?;
    if arguments.json {
        println!("{:#}", json!({ "nodes": status, "deadlock": deadlock }));
    } else {
        print!("{}", table::table(&status));
        for ports in [dcbx::table(&status), flow_control::table(&status)] {
            if !ports.is_empty() {
                print!("\n{ports}");
            }
        }
        if let Some(deadlock) = &deadlock {
            let seconds = deadlock.still_ms as f64 / 1e3;
            println!("\ndeadlock for {seconds:.1} s: {}", deadlock.round.join(" -> "));
        }
    }
    Ok(if deadlock.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
