//! Agent ports: both sides of the shared memory, and agents that break it.

mod carries;
mod hostile;
mod support;
mod switch;
