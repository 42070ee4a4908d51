//! Tests of the data plane in gates, with the simulated device. They need the shared libraries that
//! `make rtl-model` builds, and are skipped without.

mod clocks;
mod fates;
mod frames;
mod fuzz;
mod line_rate;
mod links;
#[path = "../../../wire/tests/needs/mod.rs"]
mod needs;
mod probes;
mod traffic;
mod vectors;
mod wrongs;
