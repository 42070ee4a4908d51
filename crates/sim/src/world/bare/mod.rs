//! Layer 2 networks: switches' data planes, sources that honour flow control, and sinks. There is
//! no control plane and no host protocol, so that experiments observe flow control alone (paper 002
//! §7.3), frame by frame.
//!
//! A source makes a frame at each interval, whether or not it may send. Queued frames leave at line
//! rate when permitted. Frames carry their route, so switches need no tables.

mod ends;
mod plan;
mod run;
mod switch;

pub use plan::{OVERHEAD_BYTES, Passed, Phase, Plan, Seen, Sink, Source, Storm};
