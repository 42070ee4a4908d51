//! A whole fabric in simulated time: its switches, controller and hosts, their workload, and the
//! observations.

pub mod agents;
pub mod bare;
pub mod baselines;
mod builder;
mod bursts;
pub mod capture;
pub mod deadlock;
mod fabric;
mod host_dcb;
pub mod layout;
pub mod nodes;
pub mod probe;
mod python;
pub mod reach;
mod ready;
pub mod results;
pub mod run;
mod running;
mod setup;
#[cfg(test)]
mod shortcuts;
mod traffic;
pub mod truth;
pub mod warm;
mod watch;

pub use bursts::bursts;
pub use fabric::World;
pub use python::PythonLoader;
pub use running::PingId;
pub use setup::Setup;
