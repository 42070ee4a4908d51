//! `axon demo`: table 1 of the Axon paper with real Linux hosts.

use crate::cli::say;
use anyhow::Result;
use axon_papers::axon::live::process::Stop;
use axon_papers::axon::live::{self, gap};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

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
    #[command(subcommand)]
    part: Option<Part>,
}

/// What the demo runs on its hosts.
#[derive(Debug, clap::Subcommand)]
enum Part {
    /// Send a probe each millisecond
    #[command(hide = true)]
    ProbeSend {
        /// To whom
        receiver: Ipv4Addr,
        /// For how long, in milliseconds
        millis: u64,
    },
    /// Receive probes and print when each came
    #[command(hide = true)]
    ProbeReceive {
        /// For how long, in milliseconds
        millis: u64,
    },
}

/// Runs the demo. Answers whether every bound is met.
///
/// # Errors
/// A step of the demo fails; everything that was started is stopped again.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    match arguments.part {
        Some(Part::ProbeSend { receiver, millis }) => {
            gap::send(receiver, Duration::from_millis(millis))?;
            Ok(ExitCode::SUCCESS)
        }
        Some(Part::ProbeReceive { millis }) => {
            say::print(&gap::receive(Duration::from_millis(millis))?.to_string())?;
            Ok(ExitCode::SUCCESS)
        }
        None => {
            let stop = Stop::on_signals()?;
            let summary = match live::run(&arguments.out, env!("AXON_COMMIT"), &stop) {
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
    }
}
