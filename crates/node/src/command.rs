//! What an operator or a runtime asks of a node, and what the node answers.
//!
//! There is no other way in beside frames, carrier and time: so what a node was fed can be recorded
//! and replayed.

use crate::keys::{KeyMismatch, Keys};
use crate::policy::{PolicyChange, PolicyDone, PolicyRefusal};
use crate::probe::{ProbeId, ProbePlan, ProbeRefusal};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// Joins a command and its reply; chosen by the requester.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct RequestId(pub u64);

/// A request to a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Comes back in the reply.
    pub id: RequestId,
    /// What is asked for.
    pub request: Request,
}

impl Command {
    /// The answer of a node that has no such function.
    pub fn unsupported_by(&self, kind: NodeKind) -> Reply {
        Reply { id: self.id, result: Err(CommandError::Unsupported(kind)) }
    }
}

/// What can be asked of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Send probes by this plan, the first at once. A switch or a controller does.
    Probe(ProbePlan),
    /// Seal and open control messages with these keys from now on; no link and no route is lost. A
    /// switch or a controller does.
    Rekey(Box<Keys>),
    /// Show or change the tables of a programmable switch, in an encoding of its data plane, which
    /// begins with a version. A programmable switch does.
    Tables(#[serde(with = "bytes")] Vec<u8>),
    /// Change which hosts may reach which. A controller does.
    Policy(PolicyChange),
}

/// The answer to one command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// Of the command.
    pub id: RequestId,
    /// Done, or why not.
    pub result: Result<Done, CommandError>,
}

/// What came of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Done {
    /// Probes are sent; their reports are in the telemetry under this number.
    Probe(ProbeId),
    /// The keys are in use.
    Rekeyed,
    /// The answer of a programmable data plane, in its own encoding.
    Tables(#[serde(with = "bytes")] Vec<u8>),
    /// The policy is changed, and routes that it forbids are being removed.
    Policy(PolicyDone),
}

/// Bytes as hexadecimal text where people read the format, and as bytes elsewhere.
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

/// Why a command was not carried out; nothing has changed. `Unsupported`, `Probe`, `Keys`, `Tables`
/// and `Policy` come from a node, the others from the runtime that takes commands for it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum CommandError {
    /// A node of this kind cannot do it.
    #[error("a {0} cannot do this")]
    Unsupported(NodeKind),
    /// The probe plan is not one that can be carried out.
    #[error(transparent)]
    Probe(#[from] ProbeRefusal),
    /// The keys are not those of this node.
    #[error(transparent)]
    Keys(#[from] KeyMismatch),
    /// What has come is no command; why.
    #[error("not a command: {0}")]
    Unreadable(String),
    /// A command that this version does not know; why.
    #[error("unknown command: {0}")]
    Unknown(String),
    /// The command is too long to be read.
    #[error("the command is longer than {bytes_max} bytes")]
    TooLong {
        /// The most that is read.
        bytes_max: u64,
    },
    /// What is asked of the tables cannot be read; why.
    #[error("not a request for tables: {0}")]
    Tables(String),
    /// The policy cannot be changed in this way.
    #[error(transparent)]
    Policy(#[from] PolicyRefusal),
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeKind {
    /// A switch of ours.
    Switch,
    /// The controller.
    Controller,
    /// The agent at a host's edge.
    Agent,
    /// A host of the simulator.
    Host,
    /// A switch of a network that ours is compared with.
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
