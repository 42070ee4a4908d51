//! Why a TLV of DCBX cannot be read.

use crate::lldp::LldpError;

/// Why the content of a TLV does not match its subtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DcbxError {
    /// Another number of bytes than it must have.
    #[error("{0} bytes, which it cannot have")]
    Length(usize),
    /// A traffic class above 7.
    #[error("traffic class {0}; there are 0 to 7")]
    TrafficClass(u8),
    /// The parts of CEE's TLV do not fit into it.
    #[error("the parts do not fit: {0}")]
    Parts(#[from] LldpError),
    /// CEE only: the control part is not there, or there twice.
    #[error("{0} control parts, where one was expected")]
    Control(usize),
}
