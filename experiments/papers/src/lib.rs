//! Papers that Axon builds on, one module each: their tables and figures beside our results.
//!
//! Numbers of the papers are constants here, with page and table. Our numbers come from a run, in
//! the simulator or among real Linux hosts, never from a file.

#![forbid(unsafe_code)]

pub mod axon;
pub mod hagen;
pub mod payload;
pub mod reproduce;
pub mod serverswitch;
