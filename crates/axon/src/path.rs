//! `axon path FROM TO`: the path of frames between two hosts of a running lab.

use crate::cli::lab::Choice;
use crate::cli::say;
use anyhow::{Context, Result, ensure};
use axon_fabric::assemble::host_index;
use axon_lab::view::Directory;
use axon_lab::view::path::{PathView, path, text};
use serde::Serialize;
use std::process::ExitCode;

/// Show the path of frames between two hosts of a running lab in both directions, switch by switch
#[derive(clap::Args)]
#[command(
    after_help = "Exit status: 0 both directions have a route that arrives; 1 one has not; 2 \
    there is no lab or no such host, the controller does not answer, or wrong usage"
)]
pub struct Arguments {
    #[command(flatten)]
    lab: Choice,
    /// Host that sends, such as h1
    from: String,
    /// Host that receives, such as h2
    to: String,
    /// Print the path as JSON
    #[arg(long)]
    json: bool,
}

/// JSON output of `axon path --json`.
#[derive(Serialize)]
struct Output {
    /// Path from the first host to the second.
    there: PathView,
    /// Path from the second host to the first.
    back: PathView,
}

/// Prints the path. The exit status shows whether both directions have a route that arrives.
///
/// # Errors
/// There is no lab or no such host, or the controller does not answer.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let seen = arguments.lab.seen()?;
    let index = |name: &str| {
        host_index(&seen.fabric, name).with_context(|| {
            let all: Vec<&str> = seen.fabric.hosts.iter().map(|host| host.name.as_str()).collect();
            format!("{} has no host {name}; it has {}", seen.fabric.name, all.join(" "))
        })
    };
    let (from, to) = (index(&arguments.from)?, index(&arguments.to)?);
    ensure!(from != to, "{0} and {0} are one host: expected two", arguments.from);
    let directory = Directory::new(&seen.fabric, &seen.status);
    let (there, back) = (path(&directory, from, to), path(&directory, to, from));
    let is_whole = there.arrives && back.arrives;
    if arguments.json {
        say::print(&crate::cli::output::json(&Output { there, back })?)?;
    } else {
        say::print(&format!("{}\n{}", text(&there), text(&back)))?;
    }
    Ok(say::answer(is_whole))
}
