//! Fabrics as programs on the programmable data plane ([`axon_pipeline`]).
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

extern crate alloc;

pub mod axon;
