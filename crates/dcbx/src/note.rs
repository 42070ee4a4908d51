//! Disagreements and errors between the two ends of a link.

use axon_wire::PrioritySet;
use axon_wire::dcbx::cee::{PART_APPLICATION, PART_GROUPS, PART_PFC};
use axon_wire::dcbx::ieee::EtsProblem;
use axon_wire::dcbx::{DcbxError, Dialect};
use core::fmt;

/// What is wrong between the two ends; each is told once, when it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DcbxNote {
    /// So many neighbours speak DCBX: the port does as if none did.
    SeveralPeers(usize),
    /// A TLV of the peer's last LLDPDU cannot be read: as if it were not there.
    Unreadable {
        /// Its subtype.
        subtype: u8,
        /// Why.
        error: DcbxError,
    },
    /// A TLV came more than once in one LLDPDU.
    Repeated {
        /// Its subtype.
        subtype: u8,
    },
    /// The port would follow a recommendation, but cannot do what it says.
    Recommendation(EtsProblem),
    /// The port would follow the peer's PFC, but has it for so many traffic classes only.
    PfcClasses(u8),
    /// PFC differs at the two ends, and will: this is what the peer says.
    PfcDiffers(PrioritySet),
    /// The peer speaks an older form only, which the port is not set to speak.
    Dialect(Dialect),
    /// CEE: a feature does not work, because the two ends do not fit or the peer says so. By the
    /// type of its part.
    FeatureError(u8),
}

impl fmt::Display for DcbxNote {
    /// For operators.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DcbxNote::SeveralPeers(peers) => {
                write!(f, "{peers} neighbours speak DCBX, so none is heeded")
            }
            DcbxNote::Unreadable { subtype, error } => {
                write!(f, "TLV {subtype} cannot be read: {error}")
            }
            DcbxNote::Repeated { subtype } => write!(f, "TLV {subtype} comes more than once"),
            DcbxNote::Recommendation(problem) => {
                write!(f, "cannot do what is recommended: {problem}")
            }
            DcbxNote::PfcClasses(most) => {
                write!(f, "has PFC for {most} classes only, fewer than the peer's")
            }
            DcbxNote::PfcDiffers(theirs) => {
                write!(f, "neither end is willing, and the peer has PFC for {theirs}")
            }
            DcbxNote::Dialect(dialect) => write!(f, "the peer speaks {dialect} only"),
            DcbxNote::FeatureError(part) => match *part {
                PART_GROUPS => f.write_str("priority groups do not fit the peer's"),
                PART_PFC => f.write_str("PFC does not fit the peer's"),
                PART_APPLICATION => f.write_str("application priorities do not fit the peer's"),
                part => write!(f, "feature {part} does not fit the peer's"),
            },
        }
    }
}
