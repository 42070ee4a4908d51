//! Errors in parsing a DCBX TLV.

use crate::lldp::LldpError;

/// Mismatch between the content of a TLV and its subtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DcbxError {
    /// A wrong number of bytes.
    #[error("{0} bytes, which it cannot have")]
    Length(usize),
    /// A traffic class above 7.
    #[error("traffic class {0}; there are 0 to 7")]
    TrafficClass(u8),
    /// The parts of a CEE TLV do not fit into it.
    #[error("the parts do not fit: {0}")]
    Parts(#[from] LldpError),
    /// CEE only: the control part is missing or repeated.
    #[error("{0} control parts, where one was expected")]
    Control(usize),
}
