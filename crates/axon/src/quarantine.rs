//! `axon quarantine HOST`: isolates a host, or any host at a port, from all others.

use crate::cli::policy::Target;
use anyhow::Result;
use std::process::ExitCode;

/// Isolate a host, or any host at a port, from all others
#[derive(clap::Args)]
#[command(
    after_help = "Exit status: 0 done; 1 a switch has not acknowledged within 2 s that it removes \
    routes; 2 there is no such lab, controller, host or port, or wrong usage"
)]
pub struct Arguments {
    #[command(flatten)]
    target: Target,
    /// Host by its name in the fabric file or its MAC, or a port such as s1-p3
    host: String,
    /// End the quarantine
    #[arg(long)]
    off: bool,
}

/// Changes the policy of the controller, and waits for the switches.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    arguments.target.quarantine(&arguments.host, !arguments.off)
}
