//! `axon demo`: table 1 of the Axon paper with real Linux hosts.

use crate::cli::say;
use anyhow::Result;
use axon_demo::process::Stop;
use std::path::PathBuf;
use std::process::ExitCode;

/// Measure six flows over a line and a ring of real hosts, and cut a link under traffic
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit status: 0 all bounds held; 1 a bound missed; 2 it could not be tried, or \
    wrong usage; 130 interrupted"
)]
pub struct Arguments {
    /// Folder for the summary, the capture, the plot and the logs
    #[arg(long, value_name = "DIR", default_value = "results/demo")]
    out: PathBuf,
}

/// Runs the demo. Answers whether every bound is met.
///
/// # Errors
/// A step of the demo fails; everything that was started is stopped again.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let stop = Stop::on_signals()?;
    let summary = match axon_demo::run(&arguments.out, axon_cli::COMMIT, &stop) {
        Err(error) if stop.check().is_err() => {
            say::note!("{error:#}");
            return Ok(say::INTERRUPTED.into());
        }
        summary => summary?,
    };
    let out = arguments.out.display();
    say::print(&format!("\n{}\nResults are in {out}\n", summary.text()))?;
    Ok(say::answer(summary.pass))
}
