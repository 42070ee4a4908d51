//! The arguments of `axon sim`.

use axon_fabric::model::RouterKind;
use axon_fabric::units;
use axon_sim::DataplaneKind;
use axon_wire::{Bytes, Span};
use std::path::PathBuf;

/// Run a fabric, its traffic and its faults in the simulator: same seed, same trace
#[derive(clap::Args)]
pub struct Arguments {
    /// The fabric file
    pub file: PathBuf,
    /// Seed of all random choices; that of the file by default
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// How the controller chooses paths, whatever the file's controller.router says
    #[arg(long, value_name = "NAME", value_parser = crate::router::named)]
    pub router: Option<RouterKind>,
    /// The data plane of the switches; `reference` is slow, stores every frame, and has no traffic
    /// classes
    #[arg(long, value_name = "NAME", default_value = "software", value_parser = dataplane)]
    pub dataplane: DataplaneKind,
    /// Threads to run on; results are the same with any number
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub threads: u16,
    /// How long to run after the network is ready, such as 10ms; by default until all traffic is
    /// done, or for 1s if some has no end
    #[arg(long, value_name = "TIME", value_parser = units::span)]
    pub duration: Option<Span>,
    /// Write the report as JSON; `-` writes it to standard output, and nothing else
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write flows, ports, drops and samples over time as CSV files into this folder
    #[arg(long, value_name = "DIR")]
    pub csv: Option<PathBuf>,
    /// Draw throughput and queues over time as SVG; the queues go beside it, as FILE-queues.svg
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
    /// Write what a port carries as pcapng, such as s1-p0=s1.pcapng; may be given more than once
    #[arg(long, value_name = "PORT=FILE")]
    pub pcap: Vec<String>,
    /// Write every event as a line of text; `axon trace` reads it
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// How often to sample for --csv and --plot, from when traffic begins; by
    /// default so often that there are 1000 to 2000 samples
    #[arg(long, value_name = "TIME", value_parser = units::span)]
    pub sample: Option<Span>,
    /// Stop when the process needs more memory than this, such as 8GiB
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    pub memory_max: Option<Bytes>,
}

/// The data plane of this name.
fn dataplane(name: &str) -> Result<DataplaneKind, String> {
    let found = DataplaneKind::NAMED.into_iter().find(|kind| kind.name() == name);
    found.ok_or_else(|| {
        let names = DataplaneKind::NAMED.map(DataplaneKind::name);
        format!("no such data plane; expected {}", names.join(" or "))
    })
}
