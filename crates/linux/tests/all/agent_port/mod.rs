//! Agent ports: both sides of the shared memory, and agents that break it.

mod carries;
mod floods;
mod hostile;
#[path = "../../../../wire/tests/needs/mod.rs"]
mod needs;
mod python;
mod rogue;
mod short;
mod slow;
mod stops;
mod support;
mod switch;
