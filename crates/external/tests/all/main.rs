//! Control programs in a process of their own, on a switch.

mod ends;
mod parity;
mod python;
mod queue;
mod rig;

#[path = "../../../wire/tests/needs/mod.rs"]
mod needs;
