//! Agent ports: both sides of the shared memory, and agents that break it.

mod carries;
mod floods;
mod hostile;
mod rogue;
mod support;
mod switch;
