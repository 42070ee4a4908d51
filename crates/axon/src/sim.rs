//! `axon sim FILE`: the fabric in the deterministic simulator.

use anyhow::{Context, Result};
use axon_sim::run::{Options, Report};
use indicatif::ProgressBar;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Run a fabric and its faults in the simulator: same seed, same trace
#[derive(clap::Args)]
pub struct Arguments {
    /// The fabric file
    file: PathBuf,
    /// Seed of everything random; the file's if not said
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Write the report as JSON; `-` writes it to standard output, and nothing else
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
    let progress = ProgressBar::new_spinner().with_message(format!("simulating {}", fabric.name));
    progress.enable_steady_tick(Duration::from_millis(100));
    let report = axon_sim::run::run(&fabric, options);
    progress.finish_and_clear();
    match arguments.json.as_deref() {
        Some(path) if path == Path::new("-") => println!("{}", report.to_json()),
        Some(path) => {
            let text = report.to_json() + "\n";
            std::fs::write(path, text).with_context(|| path.display().to_string())?;
            print(&report);
        }
        None => print(&report),
    }
    if report.passed() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("{} failed; replay it with --seed {}", report.fabric, report.seed);
    Ok(ExitCode::FAILURE)
}

fn print(report: &Report) {
    let Report { fabric, seed, hosts, addressed, .. } = report;
    println!("{fabric}, seed {seed}: {addressed} of {hosts} hosts have an address");
    println!(
        "{:>10}  {:>13}  {:>8}  {:>8}  {:>10}",
        "from", "pairs", "requests", "replies", "worst rtt"
    );
    for round in &report.rounds {
        println!(
            "{:>7} ms  {:>13}  {:>8}  {:>8}  {:>7} us",
            round.at_ns / 1_000_000,
            format!("{} of {}", round.answered, round.pairs),
            round.requests,
            round.replies,
            round.rtt_max_ns / 1_000
        );
    }
    for pair in report.rounds.iter().flat_map(|round| &round.unanswered) {
        println!("no answer: {pair}");
    }
    for (title, counts) in [("drops", &report.drops), ("losses on links", &report.losses)] {
        // The ordinary end of a control packet is no loss.
        let counts = counts.iter().filter(|(reason, _)| **reason != "consumed");
        let text: Vec<String> = counts.map(|(reason, count)| format!("{reason} {count}")).collect();
        println!("{title}: {}", if text.is_empty() { "none".to_owned() } else { text.join(", ") });
    }
    for route in &report.stale_routes {
        println!("stale route: {route}");
    }
    for problem in report.unaccounted.iter().chain(&report.trace_error) {
        println!("{problem}");
    }
    let simulated_ms = report.simulated_ns / 1_000_000;
    println!("{simulated_ms} ms simulated, {} events, trace {}", report.events, report.trace_hash);
}
