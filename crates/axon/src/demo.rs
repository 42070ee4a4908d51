//! `axon demo`: table 1 of the Axon paper with real Linux hosts.

use anyhow::Result;
use axon_papers::axon::live::process::Stop;
use axon_papers::axon::live::{self, gap};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Measure six flows over a line and a ring of real hosts, and cut a link under traffic
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status: 0 all bounds held; 1 a bound missed, or an error; 2 wrong \
    usage")]
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

/// Runs the demo; fails if a bound is missed.
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
            print!("{}", gap::receive(Duration::from_millis(millis))?);
            Ok(ExitCode::SUCCESS)
        }
        None => {
            let stop = Stop::on_signals()?;
            let summary = live::run(&arguments.out, &stop)?;
            print!("\n{}", summary.text());
            println!("\nResults are in {}", arguments.out.display());
            Ok(if summary.pass { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
    }
}
