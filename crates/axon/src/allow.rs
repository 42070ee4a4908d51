//! `axon allow A B`: allows two hosts to reach each other.

use crate::cli::policy::Target;
use anyhow::Result;
use std::process::ExitCode;

/// Allow two hosts to reach each other, regardless of their tenants
#[derive(clap::Args)]
#[command(
    after_help = "Exit status: 0 done; 1 a switch has not acknowledged within 2 s that it removes \
    routes; 2 there is no such lab, controller or host, or wrong usage"
)]
pub struct Arguments {
    #[command(flatten)]
    target: Target,
    /// Host: a name of the fabric file, or a MAC
    #[arg(value_name = "A")]
    one: String,
    /// Other host
    #[arg(value_name = "B")]
    other: String,
}

/// Changes the policy of the controller, and waits for the switches.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    arguments.target.pair([&arguments.one, &arguments.other], true)
}
