//! A whole fabric in simulated time: its switches, controller and hosts, what runs on them,
//! and what is seen of it.

pub mod bare;
pub mod baselines;
pub mod capture;
pub mod deadlock;
mod fabric;
mod faults;
pub(crate) mod host_dcb;
pub mod probe;
mod ready;
pub mod results;
pub mod run;
mod traffic;
pub mod truth;

pub use fabric::{PingId, World};
