//! Programmable data plane (paper 004, ServerSwitch): a parser with user-defined lookup keys,
//! exact-match tables, longest prefix match and a TCAM, an interface table, and modifiers.
//!
//! A frame is parsed once and looked up in all tables; the action of the winning entry is applied.
//! The tables are initially empty; a control program ([`Program`]) fills them by transactions
//! ([`Change`]). Ports, queues, priorities and flow control are those of [`axon_plane`].
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

extern crate alloc;

pub mod action;
pub mod change;
pub mod expand;
pub mod explain;
pub mod frame_type;
pub mod key;
mod modify;
pub mod ordered;
mod pipeline;
mod program;
pub mod register;
pub mod request;
pub mod sizes;
mod tables;

pub use action::{Action, Group, Interface, Label, Mirror, Modify, Target, Tunnel};
pub use change::{Change, ChangeError, EntryName, Reason};
pub use explain::{Explanation, Stage};
pub use frame_type::{FrameType, Parsed};
pub use key::{Field, KEY_BYTES, KeyBytes, KeyError, Udlk, UdlkId};
pub use pipeline::{Pipeline, PipelineConfig};
pub use program::{Control, Program, ProgramNode, Received};
pub use register::{Register, RegisterError};
pub use request::{TablesAnswer, TablesRequest};
pub use sizes::Sizes;
pub use tables::{
    EntryCount, Hit, MacKey, Objects, PortOptions, Prefix, Shown, TableName, Tables, TcamEntry,
    Verdict,
};
