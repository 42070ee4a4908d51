//! Axon's one binary: each verb has a file of its own.
#![forbid(unsafe_code)]

mod agent;
mod cam;
mod capture;
mod check;
mod conformance;
mod controller;
mod demo;
mod down;
mod exec;
mod file;
mod probe;
mod prove;
mod real;
mod record;
mod replay;
mod reproduce;
mod reserve;
mod router;
mod say;
mod schema;
mod sim;
mod status;
mod switch;
mod trace;
mod up;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Build, prove, simulate and run lossless, source-routed Ethernet fabrics
#[derive(Parser)]
#[command(
    name = "axon",
    version,
    propagate_version = true,
    after_help = "\
    Exit status: 0 success; 1 an error, or a run that failed; 2 wrong usage. `axon COMMAND --help` \
    has what differs."
)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Up(up::Arguments),
    Exec(exec::Arguments),
    Status(status::Arguments),
    Down(down::Arguments),
    Prove(prove::Arguments),
    Conformance(Box<conformance::Arguments>),
    Sim(sim::Arguments),
    Trace(trace::Arguments),
    Replay(replay::Arguments),
    Probe(probe::Arguments),
    Demo(demo::Arguments),
    Reproduce(reproduce::Arguments),
    Cam(cam::Arguments),
    Check(check::Arguments),
    Schema(schema::Arguments),
    Switch(switch::Arguments),
    Controller(controller::Arguments),
    Agent(agent::Arguments),
}

/// The exit status of each verb is in its help. In general 0 is success, 1 an error or a run that
/// failed, 2 wrong usage.
fn main() -> ExitCode {
    // Before any thread starts: this may be a process of a lab.
    if let Some(code) = axon_linux::lab::part() {
        return code;
    }
    let cli = Cli::parse();
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(axon_linux::log::writer).init();
    let outcome = match cli.verb {
        Verb::Up(arguments) => up::run(&arguments),
        Verb::Exec(arguments) => exec::run(&arguments),
        Verb::Status(arguments) => status::run(&arguments),
        Verb::Down(arguments) => down::run(&arguments),
        Verb::Prove(arguments) => prove::run(&arguments),
        Verb::Conformance(arguments) => conformance::run(&arguments),
        Verb::Sim(arguments) => sim::run(&arguments),
        Verb::Trace(arguments) => trace::run(&arguments),
        Verb::Replay(arguments) => replay::run(&arguments),
        Verb::Probe(arguments) => probe::run(&arguments),
        Verb::Demo(arguments) => demo::run(&arguments),
        Verb::Reproduce(arguments) => reproduce::run(&arguments),
        Verb::Cam(arguments) => cam::run(&arguments),
        Verb::Check(arguments) => check::run(&arguments),
        Verb::Schema(arguments) => schema::run(&arguments),
        Verb::Switch(arguments) => switch::run(&arguments),
        Verb::Controller(arguments) => controller::run(&arguments),
        Verb::Agent(arguments) => agent::run(&arguments),
    };
    outcome.unwrap_or_else(|error| {
        axon_linux::log::line(format_args!("{error:#}"));
        if error.is::<say::Usage>() { say::USAGE.into() } else { ExitCode::FAILURE }
    })
}
