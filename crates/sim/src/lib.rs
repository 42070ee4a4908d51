//! The deterministic world: the very nodes of the fabric on simulated links, with hosts that
//! have a real IP stack.
//!
//! [`World`] runs a fabric; [`run()`] runs a whole scenario and reports. The same fabric and
//! seed give the same trace, bit for bit, on any number of threads: one total order of events,
//! integers only, random numbers from pinned generators.
#![forbid(unsafe_code)]

pub mod account;
mod ahead;
pub mod apps;
pub mod arp_host;
pub mod bare;
pub mod baseline;
pub mod capture;
pub mod card;
pub mod classes;
mod datagram;
pub mod deadlock;
mod device;
pub mod engine;
pub mod faults;
mod give;
mod harness;
pub mod host;
mod jack;
pub mod links;
mod look;
mod lost;
mod multipath;
mod nic;
mod noise;
mod parallel;
mod partition;
pub mod ping;
mod plugs;
pub mod probe;
pub mod queue;
mod ready;
mod resolve;
pub mod results;
pub mod run;
mod rx_ring;
mod shard;
mod stack;
pub mod station;
pub mod trace;
pub mod truth;
pub mod world;

pub use engine::Engine;
pub use ping::{PingPlan, PingStats};
pub use run::{Options, Report, run};
pub use world::{PingId, World};
