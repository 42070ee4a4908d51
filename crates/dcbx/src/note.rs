//! Disagreements and errors between the two ends of a link.

use axon_wire::PrioritySet;
use axon_wire::dcbx::cee::{PART_APPLICATION, PART_GROUPS, PART_PFC};
use axon_wire::dcbx::ieee::EtsProblem;
use axon_wire::dcbx::{DcbxError, Dialect};
use core::fmt;

/// A disagreement or error between the two ends of a link. Each is reported once, when it arises.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DcbxNote {
    /// This number of neighbours, 2 or more, send DCBX. The port acts as if none did.
    SeveralPeers(usize),
    /// A TLV in the peer's last LLDPDU cannot be parsed and is ignored.
    Unreadable {
        /// The subtype of the TLV.
        subtype: u8,
        /// The reason.
        error: DcbxError,
    },
    /// A TLV is repeated in one LLDPDU.
    Repeated {
        /// The subtype of the TLV.
        subtype: u8,
    },
    /// The port is willing, but cannot apply the recommended ETS table.
    Recommendation(EtsProblem),
    /// The port is willing, but supports PFC for only this many traffic classes, fewer than the
    /// peer.
    PfcClasses(u8),
    /// Neither end is willing, and their PFC differs. Holds the priorities for which the peer has
    /// PFC.
    PfcDiffers(PrioritySet),
    /// The peer sends only an older form, which the port is not configured to use.
    Dialect(Dialect),
    /// CEE: a feature is in error, because the two ends are incompatible or the peer advertises an
    /// error. Holds the part type of the feature.
    FeatureError(u8),
}

impl fmt::Display for DcbxNote {
    /// Formats the note for operators.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DcbxNote::SeveralPeers(peers) => {
                write!(f, "{peers} neighbours send DCBX: with more than one, none is used")
            }
            DcbxNote::Unreadable { subtype, error } => {
                write!(f, "TLV {subtype} cannot be read: {error}")
            }
            DcbxNote::Repeated { subtype } => {
                write!(f, "TLV {subtype} is in the LLDPDU more than once")
            }
            DcbxNote::Recommendation(problem) => {
                write!(f, "cannot apply the recommended ETS table: {problem}")
            }
            DcbxNote::PfcClasses(most) => {
                write!(f, "has PFC for {most} classes only, fewer than the peer")
            }
            DcbxNote::PfcDiffers(theirs) => {
                write!(f, "neither end is willing, and the peer has PFC for {theirs}")
            }
            DcbxNote::Dialect(dialect) => write!(f, "the peer sends {dialect} only"),
            DcbxNote::FeatureError(part) => match *part {
                PART_GROUPS => f.write_str("priority groups are incompatible with the peer's"),
                PART_PFC => f.write_str("PFC is incompatible with the peer's"),
                PART_APPLICATION => {
                    f.write_str("application priorities are incompatible with the peer's")
                }
                part => write!(f, "feature {part} is incompatible with the peer's"),
            },
        }
    }
}
