//! Settings of a simulation beside its fabric file: options of `sim`.

use axon_fabric::model::RouterKind;
use axon_fabric::units;
use axon_sim::DataplaneKind;
use axon_wire::Bytes;
use clap::builder::{PossibleValuesParser, TypedValueParser};

/// Options of every command that simulates a fabric once.
#[derive(clap::Args)]
pub struct World {
    /// Seed of all random choices; the file's by default
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Router of the controller, instead of the file's controller.router
    #[arg(long, value_name = "NAME", value_parser = crate::cli::router::parser())]
    pub router: Option<RouterKind>,
    /// Data plane of the switches; `reference` is slow, stores every frame, and has no traffic
    /// classes; `pipeline` holds routes and steps in the tables of a programmable pipeline
    #[arg(long, value_name = "NAME", default_value = "software", value_parser = dataplane())]
    pub dataplane: DataplaneKind,
    /// Threads to run on, 1 to 64; results are the same with any number
    #[arg(long, value_name = "K", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=64))]
    pub threads: u16,
    /// Stop when the process uses more memory than this, such as 8GiB; no limit by default
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    pub memory_max: Option<Bytes>,
}

/// Returns a parser for the name of a data plane that lists all of them in the help.
pub(crate) fn dataplane() -> impl TypedValueParser<Value = DataplaneKind> {
    let find = |name: &str| DataplaneKind::SIMULATED.into_iter().find(|kind| kind.name() == name);
    PossibleValuesParser::new(DataplaneKind::SIMULATED.map(DataplaneKind::name))
        .try_map(move |name| find(&name).ok_or("no such data plane"))
}
