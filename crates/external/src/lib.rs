//! Control programs in a process of their own, such as those in Python.
//!
//! Each switch has one process, joined by a socket pair: messages of [`message`], each behind its
//! length. The switch sends a call (start, link, packet, timeout); the program answers with
//! requests of the API ([`axon_pipeline::Control`]) and, at last, that it is done. [`Waiting`]
//! waits for that, so a simulation stays the same whenever it runs; [`Queued`] never waits, for
//! real ports.
//!
//! A program that raises, exits or exceeds its time fails for good: its switch goes on with the
//! tables that it has.
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
