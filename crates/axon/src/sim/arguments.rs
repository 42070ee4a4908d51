//! The arguments of `axon sim`.

use axon_fabric::model::RouterKind;
use axon_fabric::units;
use axon_sim::DataplaneKind;
use axon_wire::{Bytes, Span};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::path::PathBuf;

/// Simulate a fabric, its traffic and its faults: the same seed gives the same trace
#[derive(clap::Args)]
#[command(
    after_help = "Exit status: 0 passed; 1 failed: a flow that did not come to its end, a pair of \
    hosts without an answer, a host without an address, a stale route, a deadlock, or \
    frames that are not accounted for; 2 it could not be tried, a result could not be \
    written, or wrong usage; 130 interrupted"
)]
pub struct Arguments {
    /// The fabric file; `-` is standard input
    pub file: PathBuf,
    /// Seed of all random choices; the file's by default
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Router of the controller, instead of the file's controller.router
    #[arg(long, value_name = "NAME", value_parser = crate::cli::router::parser())]
    pub router: Option<RouterKind>,
    /// The data plane of the switches; `reference` is slow, stores every frame, and has no traffic
    /// classes; `pipeline` holds routes and steps in the tables of a programmable pipeline
    #[arg(long, value_name = "NAME", default_value = "software", value_parser = dataplane())]
    pub dataplane: DataplaneKind,
    /// Go on from a snapshot of `axon snapshot`, with its seed, router and data plane. FILE may
    /// differ from the file that it was made of in `faults` that are still to come
    #[arg(long, value_name = "SNAPSHOT", conflicts_with_all = ["seed", "router", "dataplane"])]
    pub from: Option<PathBuf>,
    /// Threads to run on, 1 to 64; results are the same with any number
    #[arg(long, value_name = "K", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=64))]
    pub threads: u16,
    /// How long to run after the network is ready, such as 10ms; by default until all traffic is
    /// done, or for 1s if some has no end. Flows that have an end and have not come to it when the
    /// run ends make it fail
    #[arg(long, value_name = "TIME", value_parser = units::span)]
    pub duration: Option<Span>,
    /// Write the report as JSON. For this and every other FILE, `-` is standard output, which takes
    /// nothing else then
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write flows, ports, drops, ends in normal operation and samples over time as CSV files into
    /// this folder, and the version of their format as format.json
    #[arg(long, value_name = "DIR")]
    pub csv: Option<PathBuf>,
    /// Plot throughput over time as SVG, and queues over time as FILE-queues.svg
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
    /// Write what a port carries as pcapng, such as s1-p0=s1.pcapng; may be given more than once
    #[arg(long, value_name = "PORT=FILE")]
    pub pcap: Vec<String>,
    /// Write a trace, a line of text for each event; `axon trace` reads it
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Interval of the samples for --csv and --plot, from when traffic begins, such as 10us; by
    /// default one that gives 1000 to 2000 samples
    #[arg(long, value_name = "TIME", value_parser = units::span)]
    pub sample: Option<Span>,
    /// Stop when the process uses more memory than this, such as 8GiB; no limit by default
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    pub memory_max: Option<Bytes>,
    /// The process of a sweep that this is a run of: it ends with it
    #[arg(long, value_name = "PID", hide = true)]
    pub part_of: Option<u32>,
}

/// Takes the name of a data plane, and lists all of them in the help.
pub fn dataplane() -> impl TypedValueParser<Value = DataplaneKind> {
    let find = |name: &str| DataplaneKind::NAMED.into_iter().find(|kind| kind.name() == name);
    PossibleValuesParser::new(DataplaneKind::NAMED.map(DataplaneKind::name))
        .try_map(move |name| find(&name).ok_or("no such data plane"))
}
