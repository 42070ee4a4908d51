//! What an operator or a runtime asks of a node, and what the node answers.
//!
//! There is no other way in beside frames, carrier and time: so what a node was fed can be recorded
//! and replayed.

use crate::keys::{KeyMismatch, Keys};
use crate::probe::{ProbeId, ProbePlan, ProbeRefusal};
use alloc::boxed::Box;
use alloc::string::String;
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
}

/// Why a command was not carried out; nothing has changed. The first three come from a node, the
/// others from the runtime that takes commands for it.
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
}

impl core::fmt::Display for NodeKind {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            NodeKind::Switch => "switch",
            NodeKind::Controller => "controller",
            NodeKind::Agent => "agent",
            NodeKind::Host => "host",
            NodeKind::Baseline => "switch of another network",
        })
    }
}
