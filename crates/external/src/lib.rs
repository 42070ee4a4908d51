//! Control programs in separate processes, such as those in Python.
//!
//! Each switch has one process. A socket pair joins them and carries the messages in [`message`],
//! each after its length. The switch sends a call (start, link, packet, timeout). The program
//! answers with API requests ([`axon_pipeline::Control`]) and finally reports completion.
//! [`Waiting`] blocks until then, so that simulations are deterministic. [`Queued`] is for real
//! ports and never blocks.
//!
//! A program that raises an exception, exits or exceeds its time has failed for good. Its switch
//! continues with its present tables.
#![forbid(unsafe_code)]

pub mod message;

mod channel;
mod interpreter;
mod limits;
mod output;
mod process;
mod queued;
mod serve;
mod session;
mod waiting;

pub use channel::ChannelError;
pub use interpreter::{Interpreter, StartError, start};
pub use limits::{Limits, Overtime};
pub use output::Sink;
pub use process::Peer;
pub use queued::Queued;
pub use session::Session;
pub use waiting::Waiting;
