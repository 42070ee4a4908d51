//! Tests of control programs in separate processes, attached to a switch.

mod ends;
mod parity;
mod python;
mod queue;
mod rig;

#[path = "../../../wire/tests/needs/mod.rs"]
mod needs;
