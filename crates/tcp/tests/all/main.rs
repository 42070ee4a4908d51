//! Two ends and a link between them, without a simulator.

mod behaviour;
mod congestion;
mod hostile;
mod link;
mod random;
