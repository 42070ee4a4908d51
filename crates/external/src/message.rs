//! Messages between a switch and its program, in the postcard encoding.

use axon_pipeline::{Change, ChangeError, Register, RegisterError};
use axon_programs::Plan;
use axon_wire::{PortNo, Time};
use serde::{Deserialize, Serialize};

/// Message version, which must be the same in a program's module and its switch.
pub const VERSION: u16 = 1;

/// Longest message, in bytes, not counting its length field. An end that exceeds this limit counts
/// as failed.
pub(crate) const MESSAGE_BYTES_MAX: usize = 1 << 24;

/// Message from the switch to its program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToProgram {
    /// Event; the program answers with requests and [`FromProgram::Done`].
    Call {
        /// Time of the switch.
        now: Time,
        /// Event.
        call: Call,
    },
    /// Reply to the last request that has one.
    Reply(Reply),
}

/// Event for a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Call {
    /// The first call: the program is loaded and configured.
    Load(Box<Place>),
    /// The switch starts.
    Start,
    /// The carrier of a port has changed.
    Link {
        /// Port.
        port: PortNo,
        /// True if the port has carrier now.
        up: bool,
    },
    /// The switch has sent a packet to its program.
    Packet {
        /// Ingress port.
        ingress: PortNo,
        /// Frame without FCS.
        frame: Vec<u8>,
    },
    /// The deadline has passed, or may have.
    Timeout,
}

/// Place of a program in its network ([`axon_programs::Site`] in its encoded form).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Network.
    pub plan: Plan,
    /// Node that the program controls, by its number from 0.
    pub node: u32,
    /// Seed of its random choices, different for each node and run.
    pub seed: u64,
}

/// Message from a program to its switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromProgram {
    /// A call of the API.
    Request(Request),
    /// The call is completed.
    Done {
        /// Time of the next [`Call::Timeout`].
        deadline: Option<Time>,
        /// True if the switch can carry traffic of hosts, as far as the program knows.
        is_ready: bool,
    },
    /// The program has ended by its own error: in Python the last line of the traceback.
    Failed(String),
}

/// A call of the API ([`axon_pipeline::Control`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Makes all changes or none; answered by [`Reply::Commit`].
    Commit(Vec<Change>),
    /// Reads a register; answered by [`Reply::Read`].
    Read(Register),
    /// Writes a register; answered by [`Reply::Write`].
    Write(Register, u64),
    /// Queries the carrier of a port; answered by [`Reply::IsUp`].
    IsUp(PortNo),
    /// Sends a frame out of a port; not answered.
    Send {
        /// Port.
        port: PortNo,
        /// Frame without FCS.
        frame: Vec<u8>,
    },
    /// Forwards a frame by the tables; not answered.
    Inject {
        /// Ingress port of the lookup; `None` for the control plane's.
        port: Option<PortNo>,
        /// Frame without FCS.
        frame: Vec<u8>,
    },
}

/// Reply to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// Reply to [`Request::Commit`].
    Commit(Result<(), ChangeError>),
    /// Reply to [`Request::Read`].
    Read(Result<u64, RegisterError>),
    /// Reply to [`Request::Write`].
    Write(Result<(), RegisterError>),
    /// Reply to [`Request::IsUp`].
    IsUp(bool),
}
