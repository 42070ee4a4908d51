//! `axon-demo`: table 1 of the Axon paper with real Linux hosts. `axon demo` runs it, and `make
//! demo` builds only it, because it needs neither the simulator nor the rows of the other papers.

#![forbid(unsafe_code)]
// Both macros panic if the reader has gone or the disk is full, see `say`.
#![deny(clippy::print_stdout, clippy::print_stderr)]

use anyhow::Result;
use axon_cli::say;
use axon_demo::process::Stop;
use std::path::PathBuf;
use std::process::ExitCode;

/// Measure six flows over a line and a ring of real hosts, and cut a link under traffic
#[derive(Debug, clap::Parser)]
#[command(
    name = "axon-demo",
    version,
    after_help = "Exit status: 0 all bounds held; 1 a bound missed; 2 it could not be tried, or \
    wrong usage; 130 interrupted"
)]
struct Arguments {
    /// Folder for the summary, the capture, the plot and the logs
    #[arg(long, value_name = "DIR", default_value = "results/demo")]
    out: PathBuf,
}

fn main() -> ExitCode {
    // This must precede any thread, because the lab and the demo start their parts from this
    // program.
    if let Some(code) = axon_lab::part().or_else(axon_demo::part) {
        return code;
    }
    axon_cli::program::run(run, |error| error.is::<axon_lab::Interrupted>())
}

/// Runs the demo. Returns whether every bound is met.
///
/// # Errors
/// A step of the demo fails. Everything that was started is stopped again.
fn run(arguments: &Arguments) -> Result<ExitCode> {
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
