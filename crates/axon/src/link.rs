//! `axon link LINK down|up`: cuts or restores a link of a running lab.

use crate::cli::lab::Choice;
use anyhow::Result;
use std::process::ExitCode;

/// Cut a link of a running lab at both ends, or restore it
#[derive(clap::Args)]
#[command(
    after_help = "Exit status: 0 done, also if the link was so already; 2 there is no such lab or \
    link, or wrong usage"
)]
pub struct Arguments {
    #[command(flatten)]
    lab: Choice,
    /// Nodes at its ends, such as s1,s2 or h1,s1, or one of its ports, such as s1-p2
    link: String,
    /// New state of the link
    #[arg(value_enum)]
    state: State,
}

/// State of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum State {
    /// Both ends lose carrier
    Down,
    /// Both ends have carrier again
    Up,
}

/// Cuts or restores the link, and prints the ports that it connects.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let lab = arguments.lab.open()?;
    let up = arguments.state == State::Up;
    let [a, b] = lab.set_link(&arguments.link, up)?;
    let state = if up { "up" } else { "down" };
    crate::cli::say::print(&format!("{}: link {a} to {b} is {state}\n", lab.name()))?;
    Ok(ExitCode::SUCCESS)
}
