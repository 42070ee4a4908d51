//! Dialects of DCBX, by the OUI and subtype of their TLVs.

use super::{OUI_BEFORE, OUI_IEEE, SUBTYPE_CEE, SUBTYPE_CIN, ieee};
use crate::lldp::Tlv;
use core::fmt;
use serde::{Deserialize, Serialize};

/// Dialect of a DCBX TLV.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Dialect {
    /// Pre-standard DCBX 1.00, "CIN".
    Cin,
    /// DCBX 1.01, "converged enhanced Ethernet".
    Cee,
    /// DCBX of IEEE 802.1Q.
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
    /// Returns the dialect of `tlv`, or `None` if it is not a DCBX TLV.
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
