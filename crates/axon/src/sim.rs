//! `axon sim FILE`: the fabric in the deterministic simulator.

use anyhow::{Context, Result};
use axon_sim::run::{Options, Report};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Run a fabric and its faults in the simulator: same seed, same trace
#[derive(clap::Args)]
pub struct Arguments {
    /// The fabric file
    file: PathBuf,
    /// Seed of everything random; the file's if not said
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Write the report as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write every event as a line of text
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

/// Fails if a connected pair of hosts has no answer, a route is stale or a frame is lost
/// from the accounts.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let fabric = axon_fabric::load(&arguments.file)?;
    let mut options = Options { seed: arguments.seed, ..Options::default() };
    if let Some(path) = &arguments.trace {
        let file = File::create(path).with_context(|| path.display().to_string())?;
        options.trace = Some(Box::new(BufWriter::new(file)) as Box<dyn Write>);
    }
    let report = axon_sim::run::run(&fabric, options);
    if let Some(path) = &arguments.json {
        let text = report.to_json() + "\n";
        std::fs::write(path, text).with_context(|| path.display().to_string())?;
    }
    print(&report);
    if report.passed() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("{} failed; replay it with --seed {}", report.fabric, report.seed);
    Ok(ExitCode::FAILURE)
}

fn print(report: &Report) {
    let Report { fabric, seed, hosts, addressed, .. } = report;
    println!("{fabric}, seed {seed}: {addressed} of {hosts} hosts have an address");
    for round in &report.rounds {
        println!(
            "from {} ms: {} of {} pairs answer, at most {} us",
            round.at_ns / 1_000_000,
            round.answered,
            round.pairs,
            round.rtt_max_ns / 1_000
        );
        for pair in &round.unanswered {
            println!("  no answer: {pair}");
        }
    }
    for route in &report.stale_routes {
        println!("stale route: {route}");
    }
    for problem in report.unaccounted.iter().chain(&report.trace_error) {
        println!("{problem}");
    }
    println!("{} events, trace {}", report.events, report.trace_hash);
}
