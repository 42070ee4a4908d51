//! Main function of a program beside `axon`: command line, log, exit status.

use crate::{say, usage};
use anyhow::Result;
use clap::Parser;
use signal_hook::consts::SIGINT;
use signal_hook::flag::register_conditional_shutdown;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Runs a program with the options `T`. Its name in usage texts is the one that it was started by:
/// `axon-bench`, or `axon bench` if `axon` has started it so.
///
/// Every error means that the command could not run: it goes to standard error, and the exit status
/// is [`say::UNTRIED`], or [`say::INTERRUPTED`] if `is_interrupted` returns true for the error.
pub fn run<T: Parser>(
    command: impl FnOnce(&T) -> Result<ExitCode>,
    is_interrupted: impl FnOnce(&anyhow::Error) -> bool,
) -> ExitCode {
    let started_as = std::env::args_os().next().unwrap_or_default();
    let mut cli = T::command();
    let name = cli.get_name().to_owned();
    let from_axon = name.replacen('-', " ", 1);
    cli = cli.bin_name(if started_as == *from_axon { from_axon } else { name });
    let parsed = cli.try_get_matches_from_mut(std::env::args_os());
    let parsed = parsed
        .and_then(|matches| T::from_arg_matches(&matches).map_err(|error| error.format(&mut cli)));
    let options = match parsed {
        Ok(options) => options,
        Err(error) => return usage::answer(&error, None),
    };
    trace_to_log();
    command(&options).unwrap_or_else(|error| ended(&error, is_interrupted(&error)))
}

/// Prints an error, and returns the exit status of a program that ends because of it.
pub fn ended(error: &anyhow::Error, is_interrupted: bool) -> ExitCode {
    say::note!("{error:#}");
    if is_interrupted { say::INTERRUPTED.into() } else { say::UNTRIED.into() }
}

/// Makes SIGINT end the program at once, with [`say::INTERRUPTED`]: it has nothing to undo.
pub fn end_at_interrupt() {
    let always = Arc::new(AtomicBool::new(true));
    // Without it the process ends by the signal, which a shell reports as the same status.
    register_conditional_shutdown(SIGINT, say::INTERRUPTED.into(), always).ok();
}

/// Sends traces to the log, filtered by the environment (`RUST_LOG`).
pub fn trace_to_log() {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(axon_log::writer)
        .log_internal_errors(false)
        .init();
}
