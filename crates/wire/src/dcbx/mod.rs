//! DCBX: the TLVs of LLDP on scheduling, PFC and priorities.
//!
//! [`ieee`] is the standard (IEEE 802.1Qaz, now 802.1Q clause 38 and annex D), [`cee`] what the
//! vendors agreed on before it. What came before that, CIN, is recognised but not read.

pub mod cee;
mod dialect;
mod error;
pub mod ieee;

pub use dialect::Dialect;
pub use error::DcbxError;

/// IEEE 802.1's own TLVs.
pub const OUI_IEEE: [u8; 3] = [0x00, 0x80, 0xc2];
/// Those of the forms before the standard.
pub const OUI_BEFORE: [u8; 3] = [0x00, 0x1b, 0x21];
/// Among those: DCBX 1.00, "CIN".
pub const SUBTYPE_CIN: u8 = 1;
/// Among those: DCBX 1.01, "CEE".
pub const SUBTYPE_CEE: u8 = 2;
