//! `axon bench`: compares every data plane of Axon with Linux bridges, Open vSwitch and a bare
//! redirect, in one run.
//!
//! Subjects are built in their own network namespaces, measured, and removed again, one after
//! another. This is done in several rounds, so that a slow minute of the machine affects all
//! subjects. The report gives medians and the spread over the rounds. `docs/bench.md` describes how
//! each figure is measured.

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
