//! Arguments of `axon sim`.

use crate::cli::world::World;
use axon_fabric::units;
use axon_wire::Span;
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
    /// Fabric file; `-` is standard input
    pub file: PathBuf,
    /// Settings of the simulation.
    #[command(flatten)]
    pub world: World,
    /// Simulate FILE until it is warm, and let OTHER go on from there: the same fabric with other
    /// `faults` to come. May be given more than once; each goes on from the same point, and only
    /// the text of its report is printed
    #[arg(long, value_name = "OTHER")]
    #[arg(conflicts_with_all = ["json", "csv", "plot", "pcap", "trace", "sample"])]
    pub fork: Vec<PathBuf>,
    /// Time that the traffic of FILE runs before --fork, such as 5ms, in whole milliseconds; 0ms
    /// by default
    #[arg(long, value_name = "TIME", requires = "fork", value_parser = units::span)]
    pub warm_up: Option<Span>,
    /// Time to run after the network is ready, such as 10ms; by default until all traffic is done,
    /// or 1s if some has no end. The run fails if flows that have an end do not reach it
    #[arg(long, value_name = "TIME", value_parser = units::span)]
    pub duration: Option<Span>,
    /// Write the report as JSON. For this and every other FILE, `-` is standard output, which then
    /// takes nothing else
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write flows, ports, drops, ends in normal operation and samples over time as CSV files into
    /// this folder, and the version of their format as format.json
    #[arg(long, value_name = "DIR")]
    pub csv: Option<PathBuf>,
    /// Plot throughput over time as SVG, and queues over time as FILE-queues.svg
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
    /// Write the frames of a port as pcapng, such as s1-p0=s1.pcapng; may be given more than once
    #[arg(long, value_name = "PORT=FILE")]
    pub pcap: Vec<String>,
    /// Write a trace, with a line of text for each event; `axon trace` reads it
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Interval of the samples for --csv and --plot, from when traffic begins, such as 10us; by
    /// default one that gives 1000 to 2000 samples
    #[arg(long, value_name = "TIME", value_parser = units::span)]
    pub sample: Option<Span>,
    /// Process of the sweep that started this run; the run ends with it
    #[arg(long, value_name = "PID", hide = true)]
    pub part_of: Option<u32>,
}
