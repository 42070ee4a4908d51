//! Reference data plane: a slow and simple interpreter of the forwarding step common to all data
//! planes, for tests.
//!
//! It shares the contract of `axon-node` and the codecs of `axon-wire` with the software plane, and
//! no code of forwarding, buffers or tables. Each port has one map of routes and one FIFO. A frame
//! is stored until its last byte has arrived. There are no traffic classes, no flow control and no
//! cut-through, as its capabilities state.

mod arrivals;
mod limit;
mod port;
mod probes;
mod refusing;
mod rules;
mod step;
mod switch;

pub use refusing::Refusing;
pub use step::{Verdict, step};
pub use switch::{Reference, capabilities};
