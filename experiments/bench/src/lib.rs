//! `axon bench`: every data plane of Axon beside Linux bridges, Open vSwitch and a bare redirect,
//! in one run.
//!
//! Each subject is built in its own network namespaces, measured and removed again, one after the
//! other and in several rounds, so that a slow minute of the machine affects all of them. The
//! report has medians and the spread of the rounds. `docs/bench.md` describes how each figure is
//! taken.

pub mod cpu;
pub mod measure;
pub mod noise;
pub mod plot;
pub mod quantity;
pub mod report;
pub mod run;
pub mod selection;
pub mod statistics;
pub mod subject;
pub mod table;
pub mod traffic;
