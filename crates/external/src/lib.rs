//! Control programs in separate processes, such as those in Python.
//!
//! Each switch has one process, joined by a socket pair that carries the messages of [`message`],
//! each after its length. The switch sends a call (start, link, packet, timeout); the program
//! answers with requests of the API ([`axon_pipeline::Control`]) and finally reports completion.
//! [`Waiting`] blocks until then, so simulations are deterministic; [`Queued`] never blocks, for
//! real ports.
//!
//! A program that raises, exits or exceeds its time fails for good: its switch continues with its
//! present tables.
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
