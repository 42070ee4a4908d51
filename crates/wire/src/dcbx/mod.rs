//! DCBX: LLDP TLVs for scheduling, PFC and priorities.
//!
//! [`ieee`] is the standard (IEEE 802.1Qaz, now 802.1Q clause 38 and annex D), and [`cee`] is the
//! earlier form that vendors agreed on. CIN, which precedes both, is recognised but not parsed.

pub mod cee;
mod dialect;
mod error;
pub mod ieee;

pub use dialect::Dialect;
pub use error::DcbxError;

/// OUI of the IEEE 802.1 TLVs.
pub const OUI_IEEE: [u8; 3] = [0x00, 0x80, 0xc2];
/// OUI of the pre-standard TLVs, CIN and CEE.
pub const OUI_BEFORE: [u8; 3] = [0x00, 0x1b, 0x21];
/// Subtype of DCBX 1.00, "CIN".
pub(crate) const SUBTYPE_CIN: u8 = 1;
/// Subtype of DCBX 1.01, "CEE".
pub const SUBTYPE_CEE: u8 = 2;
