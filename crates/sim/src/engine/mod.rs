//! The engine: stations, events in one total order, shards on threads, the trace.

pub(crate) mod adapter;
mod conservation;
mod inspect;
mod partition;
mod prefetch;
pub mod queue;
pub(crate) mod shard;
mod simulator;
pub mod station;
mod threads;
pub mod trace;

pub use simulator::{Engine, Step};
