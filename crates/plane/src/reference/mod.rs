//! The reference data plane: a slow and obvious interpreter of the step that every data plane
//! takes, for tests.
//!
//! It shares the contract of `axon-node` and the codecs of `axon-wire` with the software plane, and
//! no code of forwarding, buffers or tables. Each port has one map of routes and one FIFO. A frame
//! is stored until its last byte has come. There are no traffic classes, no flow control and no
//! cut-through; its capabilities say so.

mod attach;
mod dataplane;
mod limit;
mod probes;
mod refusing;
mod rules;
mod step;
mod switch;

pub use dataplane::capabilities;
pub use refusing::Refusing;
pub use step::{Verdict, step};
pub use switch::Reference;
