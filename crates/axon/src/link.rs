//! `axon link LINK down|up`: cuts or mends a link of a running lab.

use crate::cli::lab::Choice;
use anyhow::Result;
use std::process::ExitCode;

/// Cut a link of a running lab at both ends, or mend it
#[derive(clap::Args)]
#[command(
    after_help = "Exit status: 0 done, also if the link was so already; 2 there is no such lab or \
    link, or wrong usage"
)]
pub struct Arguments {
    #[command(flatten)]
    lab: Choice,
    /// The nodes at its ends, such as s1,s2 or h1,s1, or one of its ports, such as s1-p2
    link: String,
    /// What becomes of it
    #[arg(value_enum)]
    state: State,
}

/// What becomes of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum State {
    /// Both ends lose carrier
    Down,
    /// Both ends have carrier again
    Up,
}

/// Cuts or mends the link, and says which ports it joins.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let lab = arguments.lab.open()?;
    let up = arguments.state == State::Up;
    let [a, b] = lab.set_link(&arguments.link, up)?;
    let state = if up { "up" } else { "down" };
    crate::cli::say::print(&format!("{}: link {a} to {b} is {state}\n", lab.name()))?;
    Ok(ExitCode::SUCCESS)
}
