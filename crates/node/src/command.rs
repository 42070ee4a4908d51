//! Commands of operators and runtimes to a node, and its replies.
//!
//! Frames, carrier, time and commands are a node's only inputs, so its inputs can be recorded and
//! replayed.

use crate::keys::{KeyMismatch, Keys};
use crate::policy::{PolicyChange, PolicyDone, PolicyRefusal};
use crate::probe::{ProbeId, ProbePlan, ProbeRefusal};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// Identifier that links a reply to its command; chosen by the requester.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct RequestId(pub u64);

/// Command to a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Identifier, returned in the reply.
    pub id: RequestId,
    /// The request.
    pub request: Request,
}

impl Command {
    /// Returns the reply of a node that does not support the request.
    pub fn unsupported_by(&self, kind: NodeKind) -> Reply {
        Reply { id: self.id, result: Err(CommandError::Unsupported(kind)) }
    }
}

/// Request to a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Send probes by this plan, the first at once. For switches and controllers.
    Probe(ProbePlan),
    /// Seal and open control messages with these keys from now on; links and routes are kept. For
    /// switches and controllers.
    Rekey(Box<Keys>),
    /// Show or change the tables of a programmable switch, in an encoding of its data plane, which
    /// begins with a version. For programmable switches.
    Tables(#[serde(with = "bytes")] Vec<u8>),
    /// Change which hosts may reach each other. For controllers.
    Policy(PolicyChange),
}

/// Reply to one command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// Identifier of the command.
    pub id: RequestId,
    /// The result, or the error.
    pub result: Result<Done, CommandError>,
}

/// Result of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Done {
    /// Probes are sent; their reports are in the telemetry under this identifier.
    Probe(ProbeId),
    /// The keys are in use.
    Rekeyed,
    /// Answer of a programmable data plane, in its own encoding.
    Tables(#[serde(with = "bytes")] Vec<u8>),
    /// The policy is changed, and routes that it forbids are being removed.
    Policy(PolicyDone),
}

/// Bytes as hexadecimal text in human-readable formats, and as bytes in others.
mod bytes {
    use alloc::string::String;
    use alloc::vec::Vec;
    use core::fmt::Write;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        if !to.is_human_readable() {
            return bytes.serialize(to);
        }
        let mut text = String::with_capacity(2 * bytes.len());
        for byte in bytes {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        to.serialize_str(&text)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        if !from.is_human_readable() {
            return Vec::deserialize(from);
        }
        let text = String::deserialize(from)?;
        let digit = |digit: u8| (digit as char).to_digit(16);
        let byte = |pair: &[u8]| match *pair {
            [high, low] => Some((digit(high)? << 4 | digit(low)?) as u8),
            _ => None,
        };
        let bytes = text.as_bytes().chunks(2).map(byte).collect::<Option<Vec<u8>>>();
        bytes.ok_or_else(|| de::Error::custom("expected bytes in hexadecimal"))
    }
}

/// Errors of commands; nothing has changed. `Unsupported`, `Probe`, `Keys`, `Tables` and `Policy`
/// come from a node, the others from the runtime that receives its commands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum CommandError {
    /// A node of this kind does not support the command.
    #[error("a {0} cannot do this")]
    Unsupported(NodeKind),
    /// The probe plan cannot be carried out.
    #[error(transparent)]
    Probe(#[from] ProbeRefusal),
    /// The keys are not those of this node.
    #[error(transparent)]
    Keys(#[from] KeyMismatch),
    /// The input is not a command; the reason.
    #[error("not a command: {0}")]
    Unreadable(String),
    /// The command is unknown to this version; the reason.
    #[error("unknown command: {0}")]
    Unknown(String),
    /// The command is too long.
    #[error("the command is longer than {bytes_max} bytes")]
    TooLong {
        /// Maximum length in bytes.
        bytes_max: u64,
    },
    /// The request for the tables is invalid; the reason.
    #[error("not a request for tables: {0}")]
    Tables(String),
    /// The policy cannot be changed in this way.
    #[error(transparent)]
    Policy(#[from] PolicyRefusal),
}

/// Kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeKind {
    /// An Axon switch.
    Switch,
    /// The controller.
    Controller,
    /// The agent at a host's edge.
    Agent,
    /// A host of the simulator.
    Host,
    /// A switch of a network that Axon is compared with.
    Baseline,
    /// A programmable switch.
    Programmable,
}

impl core::fmt::Display for NodeKind {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            NodeKind::Switch => "switch",
            NodeKind::Controller => "controller",
            NodeKind::Agent => "agent",
            NodeKind::Host => "host",
            NodeKind::Baseline => "switch of another network",
            NodeKind::Programmable => "programmable switch",
        })
    }
}
