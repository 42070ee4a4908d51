//! The Axon device in gates as a data plane.
//!
//! The gates are SystemVerilog (`rtl/device`). Verilator makes a shared library of them, [`model`]
//! loads it, and [`pins`] steps it: frames are bytes on GMII, one in a clock cycle. [`driver`] is
//! the driver of the device, which sees nothing but a register bus. [`RtlDataplane`] puts them
//! behind the interface of every data plane, so that a switch in the simulator or on Linux forwards
//! its frames in gates.
#![deny(unsafe_code)]

pub mod device;
pub mod driver;
pub mod gmii;
pub mod model;
pub mod pins;
pub mod registers;
mod routes;

pub use device::{RtlDataplane, capabilities};
pub use model::{Model, ModelError};
