//! `axon exec HOST -- CMD`: a command on a host, or a shell.

use crate::cli::lab::Choice;
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::ExitCode;

/// Shells in order of preference, each with its options and its prompt after the name of the node.
/// None reads the files of the user's own shell, which would set another prompt.
const SHELLS: [(&str, &[&str], &str); 2] = [
    ("/bin/bash", &["--noprofile", "--norc"], r":\w\$ "),
    // POSIX shell, which cannot show the directory in a prompt.
    ("/bin/sh", &[], "$ "),
];

/// Run a command on a node of a running lab, or a shell; exit with its status
#[derive(clap::Args)]
#[command(
    after_help = "Exit status: that of the command; 2 there is no such lab or node, or wrong usage"
)]
pub struct Arguments {
    #[command(flatten)]
    lab: Choice,
    /// Node: a host, a switch or the controller, such as h1
    node: String,
    /// Command and its arguments; a shell by default, with the node's name in its prompt
    #[arg(last = true)]
    command: Vec<OsString>,
}

/// Replaces the process by the command; returns only on failure.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let lab = arguments.lab.open()?;
    let node = &arguments.node;
    let mut command = match &arguments.command[..] {
        [] => {
            let [first, .., last] = SHELLS;
            let (shell, options, prompt) = if Path::new(first.0).exists() { first } else { last };
            let argv: Vec<&str> = [shell].into_iter().chain(options.iter().copied()).collect();
            let mut command = lab.command(node, &argv)?;
            command.env("PS1", format!("{node}{prompt}"));
            command
        }
        argv => lab.command(node, argv)?,
    };
    let error = command.exec();
    Err(error).with_context(|| format!("cannot enter {node}"))
}
