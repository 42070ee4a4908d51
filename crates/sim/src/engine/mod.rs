//! The engine: stations, events in one total order, shards on threads, the trace.

mod accounts;
pub(crate) mod adapter;
mod conservation;
pub mod dataplane;
pub(crate) mod event;
mod headless;
mod load;
pub(crate) mod lookahead;
mod partition;
pub(crate) mod place;
mod power;
mod prefetch;
pub mod queue;
pub(crate) mod shard;
mod simulator;
pub mod station;
pub(crate) mod stations;
mod store;
pub(crate) mod taps;
mod threads;
pub mod trace;

pub use accounts::Accounts;
pub use simulator::{Engine, Step};
