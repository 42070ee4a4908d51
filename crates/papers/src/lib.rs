//! The papers Axon builds on, one module each: their tables and figures, theirs beside ours.
//!
//! Numbers of the papers are constants here, with page and table; numbers of ours come from
//! a run, in the simulator or among real Linux hosts, never from a file.

#![forbid(unsafe_code)]

pub mod axon;
pub mod hagen;
pub mod payload;
pub mod reproduce;
pub mod serverswitch;
