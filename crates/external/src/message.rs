//! What a switch and its program send each other, in postcard's encoding.

use axon_pipeline::{Change, ChangeError, Register, RegisterError};
use axon_programs::Plan;
use axon_wire::{PortNo, Time};
use serde::{Deserialize, Serialize};

/// The version of these messages. A program's module and its switch need the same.
pub const VERSION: u16 = 1;

/// The longest message, in bytes without its length: beyond it the other end has failed.
pub const MESSAGE_BYTES_MAX: usize = 1 << 24;

/// From the switch to its program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToProgram {
    /// Something has happened; the program answers with requests and [`FromProgram::Done`].
    Call {
        /// The time of the switch.
        now: Time,
        /// What has happened.
        call: Call,
    },
    /// The answer to the last request that has one.
    Reply(Reply),
}

/// What has happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Call {
    /// The first call: the program is loaded and configured.
    Load(Box<Place>),
    /// The switch begins.
    Start,
    /// The carrier of a port came or went.
    Link {
        /// The port.
        port: PortNo,
        /// Whether it has carrier now.
        up: bool,
    },
    /// The switch has sent a packet to its program.
    Packet {
        /// The port that it came in by.
        ingress: PortNo,
        /// The frame, without FCS.
        frame: Vec<u8>,
    },
    /// The deadline has passed, or may have.
    Timeout,
}

/// The place of a program in its network ([`axon_programs::Site`], as it is sent).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The network.
    pub plan: Plan,
    /// The node that the program controls, by its number from 0.
    pub node: u32,
    /// Makes its random choices others than those of other nodes and other runs.
    pub seed: u64,
}

/// From a program to its switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromProgram {
    /// A call of the API.
    Request(Request),
    /// The call has been answered.
    Done {
        /// When to send [`Call::Timeout`] next.
        deadline: Option<Time>,
        /// Whether the switch can carry what hosts send, as far as the program knows.
        is_ready: bool,
    },
    /// The program has ended by an error of its own: in Python the last line of the traceback.
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
    /// Whether a port has carrier; answered by [`Reply::IsUp`].
    IsUp(PortNo),
    /// Sends a frame out of a port; not answered.
    Send {
        /// The port.
        port: PortNo,
        /// The frame, without FCS.
        frame: Vec<u8>,
    },
    /// Sends a frame where the tables say; not answered.
    Inject {
        /// The port that it is looked up as having come in by; the control plane's without one.
        port: Option<PortNo>,
        /// The frame, without FCS.
        frame: Vec<u8>,
    },
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// To [`Request::Commit`].
    Commit(Result<(), ChangeError>),
    /// To [`Request::Read`].
    Read(Result<u64, RegisterError>),
    /// To [`Request::Write`].
    Write(Result<(), RegisterError>),
    /// To [`Request::IsUp`].
    IsUp(bool),
}
