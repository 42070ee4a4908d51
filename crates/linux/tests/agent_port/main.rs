//! Agent ports: both sides of the shared memory, and agents that break it.

mod carries;
mod hostile;
#[path = "../../../wire/tests/needs/mod.rs"]
mod needs;
mod python;
mod support;
mod switch;
