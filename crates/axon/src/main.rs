//! The `axon` binary: each command has a file of its own, except experiments, which are separate
//! programs; `cli` has the code that commands share.
#![forbid(unsafe_code)]
// Both panic if the reader has gone or the disk is full; see `say`.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod agent;
mod allow;
mod attach;
mod check;
mod cli;
mod completions;
mod conformance;
mod controller;
mod deny;
mod down;
mod exec;
mod experiment;
mod flows;
mod hosts;
mod init;
mod key;
mod link;
mod man;
mod move_host;
mod path;
mod ping;
mod probe;
mod prove;
mod quarantine;
mod rekey;
mod replay;
mod schema;
mod sim;
mod status;
mod sweep;
mod switch;
mod table;
mod top;
mod trace;
mod trace_packet;
mod up;

use axon_cli::program;
use clap::{CommandFactory, Parser, Subcommand};
use cli::say;
use experiment::Experiment;
use std::process::ExitCode;

/// Build, prove, simulate and run lossless, source-routed Ethernet fabrics
#[derive(Parser)]
#[command(name = "axon", version, propagate_version = true, after_help = say::STATUSES)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Init(init::Arguments),
    Up(up::Arguments),
    Exec(exec::Arguments),
    Ping(ping::Arguments),
    Link(link::Arguments),
    Move(move_host::Arguments),
    Allow(allow::Arguments),
    Deny(deny::Arguments),
    Quarantine(quarantine::Arguments),
    Status(status::Arguments),
    Hosts(hosts::Arguments),
    Flows(flows::Arguments),
    Path(path::Arguments),
    Top(top::Arguments),
    Table(table::Arguments),
    TracePacket(trace_packet::Arguments),
    Down(down::Arguments),
    Prove(prove::Arguments),
    Conformance(Box<conformance::Arguments>),
    Sim(sim::Arguments),
    Sweep(sweep::Arguments),
    Trace(trace::Arguments),
    Replay(replay::Arguments),
    Probe(probe::Arguments),
    /// Measure six flows over a line and a ring of real hosts, and cut a link under traffic
    #[command(after_help = experiment::HELP)]
    Demo(experiment::Arguments),
    /// Run experiments of the papers and compare their results with ours
    #[command(after_help = experiment::HELP)]
    Reproduce(experiment::Arguments),
    /// Measure the data planes of this machine beside bridges, Open vSwitch and a bare redirect
    #[command(after_help = experiment::HELP)]
    Bench(experiment::Arguments),
    /// Compute how many CAM entries the destinations in a capture need: hit rate against entries
    #[command(after_help = experiment::HELP)]
    Cam(experiment::Arguments),
    /// Compute what a machine carries, by a queueing model
    #[command(after_help = experiment::HELP)]
    Model(experiment::Arguments),
    Check(check::Arguments),
    Schema(schema::Arguments),
    Key(key::Arguments),
    Rekey(rekey::Arguments),
    Switch(switch::Arguments),
    Controller(controller::Arguments),
    Agent(agent::Arguments),
    Attach(attach::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
}

impl Verb {
    /// Returns whether SIGINT may end the command at once: it handles no signals itself, and has
    /// nothing to undo.
    fn ends_at_once(&self) -> bool {
        use Verb::{
            Allow, Check, Conformance, Deny, Down, Flows, Hosts, Link, Move, Path, Ping, Probe,
            Prove, Quarantine, Replay, Schema, Status, Table, Top, Trace, TracePacket,
        };
        matches!(
            self,
            Status(_)
                | Hosts(_)
                | Flows(_)
                | Path(_)
                | Top(_)
                | Ping(_)
                | Link(_)
                | Move(_)
                | Allow(_)
                | Deny(_)
                | Quarantine(_)
                | Down(_)
                | Prove(_)
                | Conformance(_)
                | Trace(_)
                | Replay(_)
                | Probe(_)
                | Check(_)
                | Table(_)
                | TracePacket(_)
                | Schema(_)
        )
    }
}

/// The exit status is that of [`say::STATUSES`]: a result is a status, and every error means that
/// the command could not run.
fn main() -> ExitCode {
    // Before any thread starts, since this may be a process of a lab.
    if let Some(code) = axon_lab::part() {
        return code;
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return cli::usage::answer(&error, &Cli::command()),
    };
    program::trace_to_log();
    if cli.verb.ends_at_once() {
        program::end_at_interrupt();
    }
    let outcome = match cli.verb {
        Verb::Init(arguments) => init::run(&arguments),
        Verb::Up(arguments) => up::run(&arguments),
        Verb::Exec(arguments) => exec::run(&arguments),
        Verb::Ping(arguments) => ping::run(&arguments),
        Verb::Link(arguments) => link::run(&arguments),
        Verb::Move(arguments) => move_host::run(&arguments),
        Verb::Allow(arguments) => allow::run(&arguments),
        Verb::Deny(arguments) => deny::run(&arguments),
        Verb::Quarantine(arguments) => quarantine::run(&arguments),
        Verb::Status(arguments) => status::run(&arguments),
        Verb::Hosts(arguments) => hosts::run(&arguments),
        Verb::Flows(arguments) => flows::run(&arguments),
        Verb::Path(arguments) => path::run(&arguments),
        Verb::Top(arguments) => top::run(&arguments),
        Verb::Table(arguments) => table::run(&arguments),
        Verb::TracePacket(arguments) => trace_packet::run(&arguments),
        Verb::Down(arguments) => down::run(&arguments),
        Verb::Prove(arguments) => prove::run(&arguments),
        Verb::Conformance(arguments) => conformance::run(&arguments),
        Verb::Sim(arguments) => sim::run(&arguments),
        Verb::Sweep(arguments) => sweep::run(&arguments),
        Verb::Trace(arguments) => trace::run(&arguments),
        Verb::Replay(arguments) => replay::run(&arguments),
        Verb::Probe(arguments) => probe::run(&arguments),
        Verb::Demo(_) => experiment::run(Experiment::Demo),
        Verb::Reproduce(_) => experiment::run(Experiment::Reproduce),
        Verb::Bench(_) => experiment::run(Experiment::Bench),
        Verb::Cam(_) => experiment::run(Experiment::Cam),
        Verb::Model(_) => experiment::run(Experiment::Model),
        Verb::Check(arguments) => check::run(&arguments),
        Verb::Schema(arguments) => schema::run(&arguments),
        Verb::Key(arguments) => key::run(&arguments),
        Verb::Rekey(arguments) => rekey::run(&arguments),
        Verb::Switch(arguments) => switch::run(&arguments),
        Verb::Controller(arguments) => controller::run(&arguments),
        Verb::Agent(arguments) => agent::run(&arguments),
        Verb::Attach(arguments) => attach::run(&arguments),
        Verb::Completions(arguments) => completions::run(&arguments, Cli::command()),
        Verb::Man(arguments) => man::run(&arguments, Cli::command()),
    };
    outcome.unwrap_or_else(|error| program::ended(&error, error.is::<axon_lab::Interrupted>()))
}
