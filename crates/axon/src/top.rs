//! `axon top`: load of the ports of a running lab, the busiest first.

use crate::cli::lab::Choice;
use crate::cli::say;
use anyhow::Result;
use axon_lab::Lab;
use axon_lab::view::top::{PortLoad, loads, text};
use serde::Serialize;
use std::process::ExitCode;
use std::time::Duration;

/// Show the load of the ports of a running lab, the busiest first, repeatedly until Ctrl-C
#[derive(clap::Args)]
#[command(after_help = "Exit status: 0 done; 2 there is no lab, or wrong usage; 130 ended by \
    Ctrl-C, as it is without --once")]
pub struct Arguments {
    #[command(flatten)]
    lab: Choice,
    /// Seconds between measurements, 1 to 3600
    #[arg(long, value_name = "SECONDS", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..=3600))]
    every: u64,
    /// Number of ports to show, 1 to 10000
    #[arg(long, value_name = "N", default_value_t = 20,
          value_parser = clap::value_parser!(u64).range(1..=10_000))]
    lines: u64,
    /// Show one measurement and exit
    #[arg(long)]
    once: bool,
    /// Print the loads of all ports as JSON, once
    #[arg(long)]
    json: bool,
}

/// JSON output of `axon top --json`.
#[derive(Serialize)]
struct Output {
    /// Ports of all switches that have carrier, the busiest first.
    ports: Vec<PortLoad>,
}

/// Prints the loads.
///
/// # Errors
/// There is no lab.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let lab = arguments.lab.open()?;
    let fabric = lab.fabric()?;
    let (clear, gap) = say::again();
    let mut before = lab.status()?;
    loop {
        std::thread::sleep(Duration::from_secs(arguments.every));
        Lab::open(Some(lab.name()))?;
        let after = lab.status()?;
        let loads = loads(&fabric, &before, &after);
        if arguments.json {
            say::print(&crate::cli::output::json(&Output { ports: loads })?)?;
            return Ok(ExitCode::SUCCESS);
        }
        let text = text(&loads, arguments.lines as usize);
        if arguments.once {
            say::print(&text)?;
            return Ok(ExitCode::SUCCESS);
        }
        if !say::print_again(&format!("{clear}{text}{gap}"))? {
            return Ok(ExitCode::SUCCESS);
        }
        before = after;
    }
}
