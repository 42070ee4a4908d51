//! A whole fabric in simulated time: its switches, controller and hosts, their workload, and the
//! observations.

pub mod agents;
mod arp_hosts;
pub mod bare;
pub mod baselines;
mod behind;
mod bonds;
pub mod capture;
mod class_bytes;
pub mod deadlock;
mod fabric;
mod faults;
mod host_dcb;
mod hosts;
pub mod probe;
mod python;
mod reach;
mod ready;
pub mod results;
pub mod run;
mod running;
#[cfg(test)]
mod shortcuts;
mod traffic;
pub mod truth;
pub mod warm;
mod watch;

pub use fabric::{Setup, World};
pub use python::PythonLoader;
pub use running::PingId;
