//! Networks of layer 2 alone: switches' data planes, sources of frames that honour flow
//! control, and sinks. There is no control plane and no host protocol, so that experiments see
//! this flow control alone (paper 002 §7.3), frame by frame.
//!
//! A source makes a frame at each of its intervals, whether it may send or not; what waits in it
//! goes out at line rate when it may. Its frames carry their route, so no switch needs tables.

mod ends;
mod plan;
mod run;
mod switch;

pub use plan::{OVERHEAD_BYTES, Passed, Phase, Plan, Seen, Sink, Source, Storm};
