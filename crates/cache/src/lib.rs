//! Payload caching (paper 003, section 3). An agent gets the head of a frame and a handle, and the
//! payload stays in a buffer in the switch until the agent sends or releases it.
//!
//! [`PayloadCache`] is the set of buffers for one agent. It has no ring, no socket and no clock.
//! The runtime moves heads and handles, and the cache decides which operations on a payload are
//! valid.
//!
//! ```
//! use axon_cache::{CacheConfig, HandleFault, PayloadCache};
//! use axon_wire::{FrameBuf, Time};
//!
//! let config = CacheConfig { buffers: 2, seed: 7, ..CacheConfig::default() };
//! let mut cache = PayloadCache::new(config)?;
//! let now = Time::ZERO;
//!
//! // A frame of 1500 bytes comes in. The agent gets the first 128 of them and the handle.
//! let handle = cache.receive(now, FrameBuf::new(&[1; 1500]))?.handle;
//! assert_eq!(cache.room(), 1);
//!
//! // The agent sends a new head of 20 bytes: the payload is here, so that is a hit.
//! let frame = cache.send(handle, 20)?;
//! assert_eq!(frame, FrameBuf::new(&[1; 1500]));
//! assert_eq!(cache.counters().hits, 1);
//! assert_eq!(cache.counters().saved_bytes, 1500 - 128);
//!
//! // It is gone now. A second answer sends nothing.
//! assert_eq!(cache.send(handle, 20).unwrap_err().fault, HandleFault::Gone);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod buffer;

mod cache;
mod config;
mod counters;
mod error;
mod free;
mod handle;
mod queue;
mod segment;
mod store;

pub use buffer::{OnSent, State};
pub use cache::{Attached, PayloadCache};
pub use config::CacheConfig;
pub use counters::CacheCounters;
pub use error::{
    ConfigError, FetchError, Full, HandleError, HandleFault, Refused, ReplaceError, Side,
};
pub use handle::Handle;
