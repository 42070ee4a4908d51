//! Deterministic simulation of a fabric: its real nodes on simulated links, with hosts that have a
//! real IP stack.
//!
//! [`World`] runs a fabric; [`run()`] runs a whole scenario and reports. A fabric and a seed give
//! the same trace, bit for bit, on any number of threads: one total order of events, integers only,
//! random numbers from pinned generators.
#![forbid(unsafe_code)]

pub mod engine;
pub mod link;
pub mod world;

pub use axon_fabric::model::DataplaneKind;
pub use axon_simhost::{Host, PingPlan, PingStats, apps, arp_host, dcb_nic};
pub use engine::dataplane::{SwitchPlane, capabilities, check_gates};
pub use engine::{Engine, station};
pub use link::{classes, disorder, links};
pub use world::run::{Options, Report, run};
pub use world::{
    PingId, Setup, World, agents, bare, baselines, bursts, capture, deadlock, probe, results, run,
    warm,
};
