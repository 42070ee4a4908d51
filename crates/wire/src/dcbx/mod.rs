//! DCBX: what two ports tell each other of scheduling, pausing and priorities, inside LLDP.
//!
//! [`ieee`] is the standard (IEEE 802.1Qaz, now 802.1Q clause 38 and annex D), [`cee`] what the
//! vendors agreed on before it. What came before that, CIN, is recognised and not read.

pub mod cee;
pub mod ieee;

use crate::lldp::{LldpError, Tlv};
use core::fmt;
use serde::{Deserialize, Serialize};

/// IEEE 802.1's own TLVs.
pub const OUI_IEEE: [u8; 3] = [0x00, 0x80, 0xc2];
/// Those of the forms before the standard.
pub const OUI_BEFORE: [u8; 3] = [0x00, 0x1b, 0x21];
/// Among those: DCBX 1.00, "CIN".
pub const SUBTYPE_CIN: u8 = 1;
/// Among those: DCBX 1.01, "CEE".
pub const SUBTYPE_CEE: u8 = 2;

/// In which form a TLV of DCBX is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Dialect {
    /// DCBX 1.00 of some vendors.
    Cin,
    /// DCBX 1.01, "converged enhanced Ethernet".
    Cee,
    /// The standard.
    Ieee,
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Dialect::Cin => "CIN",
            Dialect::Cee => "CEE",
            Dialect::Ieee => "IEEE",
        })
    }
}

impl Dialect {
    /// In which form `tlv` speaks of DCBX, if it does.
    pub fn of(tlv: &Tlv) -> Option<Dialect> {
        match tlv.organisation()? {
            (OUI_IEEE, ieee::SUBTYPE_ETS_CONFIGURATION..=ieee::SUBTYPE_APPLICATION, _) => {
                Some(Dialect::Ieee)
            }
            (OUI_BEFORE, SUBTYPE_CEE, _) => Some(Dialect::Cee),
            (OUI_BEFORE, SUBTYPE_CIN, _) => Some(Dialect::Cin),
            _ => None,
        }
    }
}

/// Why the inside of a TLV is not what its subtype says.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dialect_is_known_by_oui_and_subtype() {
        let of = |oui, subtype| Dialect::of(&Tlv::of_organisation(oui, subtype, &[1, 2]));
        for subtype in 0..=u8::MAX {
            let ieee = (9..=12).contains(&subtype).then_some(Dialect::Ieee);
            assert_eq!(of(OUI_IEEE, subtype), ieee);
        }
        assert_eq!(of(OUI_BEFORE, 1), Some(Dialect::Cin));
        assert_eq!(of(OUI_BEFORE, 2), Some(Dialect::Cee));
        assert_eq!(of(OUI_BEFORE, 3), None);
        assert_eq!(of([0, 0x12, 0x0f], 2), None);
        assert_eq!(Dialect::of(&Tlv { kind: 5, value: b"\0\x1b\x21\x02".to_vec() }), None);
    }
}
