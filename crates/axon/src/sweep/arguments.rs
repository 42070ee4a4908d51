//! Arguments of `axon sweep`.

use crate::cli::world::dataplane;
use axon_fabric::units;
use axon_sim::DataplaneKind;
use axon_wire::{Bytes, Span};
use std::path::PathBuf;

/// Simulate a fabric many times, with different values of its keys, on all cores: one table of all
/// runs
#[derive(clap::Args)]
#[command(
    after_help = "The product of all --over is run; the last one varies fastest. Values are a,b,c \
    or a range of whole numbers with both ends, 1..100, or 10..100..10 in steps of 10.\n\
    KEY is `seed` or `router`, as the options of `axon sim`; or a key of the fabric file by its \
    path, such as links.rate, traffic.0.udp.rate or dcb.classes.1.ets; file.seed is the file's \
    seed, which random topologies and patterns are drawn by.\n\n\
    DIR has runs.csv and runs.parquet, with a row for each run in the order of the product, and a \
    record of finished runs. The same command goes on where an earlier one was interrupted.\n\n\
    Exit status: 0 all runs passed; 1 one did not: it failed, was stopped or crashed, and the \
    others ran; 2 the sweep could not begin, a result could not be written, or wrong usage; 130 \
    interrupted"
)]
pub struct Arguments {
    /// Fabric file; `-` is standard input
    pub file: PathBuf,
    /// Key and its values, such as seed=1..100 or router=ecmp,spain; may be given more than once
    #[arg(long, value_name = "KEY=VALUES", required = true)]
    pub over: Vec<String>,
    /// Simulate the fabric once until it is ready and its traffic has run for TIME, such as 5ms in
    /// whole milliseconds or 0ms, and let each run go on from there; KEYs are then those of
    /// `faults` that are still to come
    #[arg(long, value_name = "TIME", value_parser = units::span)]
    pub warm_up: Option<Span>,
    /// Number of concurrent runs, each a process with one thread; the number of cores by default.
    /// Results are the same with any number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Folder for the tables and the record; results/sweep/NAME by default, NAME being the fabric's
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Repeat all runs, whatever the folder contains; without it, the record of another sweep is
    /// refused
    #[arg(long)]
    pub again: bool,
    /// Time that each run continues after its network is ready, as for `axon sim`
    #[arg(long, value_name = "TIME", value_parser = units::span)]
    pub duration: Option<Span>,
    /// Data plane of the switches, as for `axon sim`
    #[arg(long, value_name = "NAME", default_value = "software", value_parser = dataplane())]
    pub dataplane: DataplaneKind,
    /// Memory that all runs together may use, such as 8GiB; no limit by default. Each of N
    /// concurrent runs has an Nth of it; a run that needs more is repeated at the end, alone with
    /// all of it
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    pub memory_max: Option<Bytes>,
}
