//! Pre-standard DCBX (version 1.01, "CEE"): one TLV with OUI 00-1B-21 and subtype 2. It consists of
//! parts that have heads like those of TLVs.
//!
//! ```text
//!  part  bytes behind its head
//!   1    1 version, 1 version max, 4 sequence, 4 acknowledged                   control
//!   2    head, 4 group of each priority, 8 percent, 1 classes                   priority groups
//!   3    head, 1 enabled bits, 1 classes                                        PFC
//!   4    head, 6 for each entry: 2 protocol, 1 OUI and selector, 2 OUI, 1 bits  application
//!
//!        head:  1 version, 1 version max, 1 enable willing error 00000, 1 subtype
//! ```
//!
//! Parts of other types are kept unchanged. An end (type 0) ends the list of parts early.

use super::{DcbxError, OUI_BEFORE, SUBTYPE_CEE};
use crate::lldp::{Tlv, Tlvs, kind};
use crate::priority::{PRIORITIES, PrioritySet};
use alloc::vec::Vec;

/// Type of the control part, which is mandatory in every TLV.
pub(crate) const PART_CONTROL: u8 = 1;
/// Type of the part with priority groups.
pub const PART_GROUPS: u8 = 2;
/// Type of the part with the PFC configuration.
pub const PART_PFC: u8 = 3;
/// Type of the part with application priorities.
pub const PART_APPLICATION: u8 = 4;
/// The priority group that is served first, without limit.
pub const GROUP_STRICT: u8 = 15;
/// Selector for an application identified by its EtherType.
pub const SELECTOR_ETHERTYPE: u8 = 0;
/// Selector for an application identified by a TCP or UDP port.
pub const SELECTOR_PORT: u8 = 1;
/// The OUI customarily used in application entries.
pub const APPLICATION_OUI: [u8; 3] = [0x00, 0x1b, 0x21];

/// Control part: the number of the last change, and the acknowledged number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Control {
    /// The version in use.
    pub version: u8,
    /// The highest version that the sender supports.
    pub version_max: u8,
    /// The number of the sender's last change.
    pub sequence: u32,
    /// The number of the peer's last change that the sender has received.
    pub acknowledged: u32,
}

/// Head common to all features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FeatureHead {
    /// The version in use.
    pub version: u8,
    /// The highest version that the sender supports.
    pub version_max: u8,
    /// True if the feature is enabled.
    pub enabled: bool,
    /// True if the sender accepts the peer's configuration.
    pub willing: bool,
    /// True if the configurations of the two peers are incompatible.
    pub error: bool,
    /// Instance of the feature; only 0 is in use.
    pub subtype: u8,
}

/// Priority groups and their shares of the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Groups {
    /// The priority group of each priority. Groups 0 to 7 have a share, [`GROUP_STRICT`] is served
    /// first, and the others are reserved. Emission takes the low four bits.
    pub group_of: [u8; PRIORITIES],
    /// Share of each priority group, in percent.
    pub percent: [u8; PRIORITIES],
    /// Number of traffic classes that the sender supports.
    pub classes_max: u8,
}

/// PFC configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CeePfc {
    /// Priorities with PFC enabled.
    pub enabled: PrioritySet,
    /// Number of traffic classes that may have PFC at the same time.
    pub classes_max: u8,
}

/// Application entry: the priorities of an application's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CeeApplication {
    /// EtherType or port number.
    pub protocol: u16,
    /// OUI that defines the protocol number. The two low bits of the first byte are not sent.
    pub oui: [u8; 3],
    /// [`SELECTOR_ETHERTYPE`] or [`SELECTOR_PORT`]; others are reserved. Emission takes the low two
    /// bits.
    pub selector: u8,
    /// The priorities, bit n for priority n.
    pub priorities: u8,
}

/// One part other than the control part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Feature {
    /// Priority groups, part type 2.
    Groups(FeatureHead, Groups),
    /// PFC, part type 3.
    Pfc(FeatureHead, CeePfc),
    /// Application priority, part type 4.
    Application(FeatureHead, Vec<CeeApplication>),
    /// Any other part, unchanged.
    Other(Tlv),
}

/// Content of one CEE TLV.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cee {
    /// The control part.
    pub control: Control,
    /// The other parts, in their order.
    pub features: Vec<Feature>,
}

impl Control {
    fn parse(value: &[u8]) -> Result<Control, DcbxError> {
        let &[version, version_max, a, b, c, d, e, f, g, h] = value else {
            return Err(DcbxError::Length(value.len()));
        };
        let sequence = u32::from_be_bytes([a, b, c, d]);
        let acknowledged = u32::from_be_bytes([e, f, g, h]);
        Ok(Control { version, version_max, sequence, acknowledged })
    }

    fn part(&self) -> Tlv {
        let mut value = Vec::with_capacity(10);
        value.extend_from_slice(&[self.version, self.version_max]);
        value.extend_from_slice(&self.sequence.to_be_bytes());
        value.extend_from_slice(&self.acknowledged.to_be_bytes());
        Tlv { kind: PART_CONTROL, value }
    }
}

impl FeatureHead {
    fn parse(value: &[u8]) -> Result<(FeatureHead, &[u8]), DcbxError> {
        let (&[version, version_max, flags, subtype], rest) =
            value.split_first_chunk().ok_or(DcbxError::Length(value.len()))?;
        let flag = |bit: u8| flags >> bit & 1 == 1;
        let (enabled, willing, error) = (flag(7), flag(6), flag(5));
        Ok((FeatureHead { version, version_max, enabled, willing, error, subtype }, rest))
    }

    fn part(&self, kind: u8, info: &[u8]) -> Tlv {
        let flags =
            u8::from(self.enabled) << 7 | u8::from(self.willing) << 6 | u8::from(self.error) << 5;
        let mut value = Vec::with_capacity(4 + info.len());
        value.extend_from_slice(&[self.version, self.version_max, flags, self.subtype]);
        value.extend_from_slice(info);
        Tlv { kind, value }
    }
}

impl Groups {
    fn parse(info: &[u8; 13]) -> Groups {
        let half = |n: usize| info[n / 2] >> if n.is_multiple_of(2) { 4 } else { 0 } & 0x0f;
        Groups {
            group_of: core::array::from_fn(half),
            percent: core::array::from_fn(|n| info[4 + n]),
            classes_max: info[12],
        }
    }

    fn info(&self) -> [u8; 13] {
        let mut info = [0; 13];
        for (n, group) in self.group_of.iter().enumerate() {
            info[n / 2] |= (group & 0x0f) << if n % 2 == 0 { 4 } else { 0 };
        }
        info[4..12].copy_from_slice(&self.percent);
        info[12] = self.classes_max;
        info
    }
}

impl CeeApplication {
    fn parse(&[p, r, first, b, c, priorities]: &[u8; 6]) -> CeeApplication {
        let protocol = u16::from_be_bytes([p, r]);
        CeeApplication { protocol, oui: [first & 0xfc, b, c], selector: first & 3, priorities }
    }

    fn emit(&self) -> [u8; 6] {
        let ([p, r], [a, b, c]) = (self.protocol.to_be_bytes(), self.oui);
        [p, r, a & 0xfc | self.selector & 3, b, c, self.priorities]
    }
}

impl Feature {
    fn parse(kind: u8, value: &[u8]) -> Result<Feature, DcbxError> {
        let wrong = DcbxError::Length(value.len());
        if ![PART_GROUPS, PART_PFC, PART_APPLICATION].contains(&kind) {
            return Ok(Feature::Other(Tlv { kind, value: value.to_vec() }));
        }
        let (head, info) = FeatureHead::parse(value)?;
        match (kind, info) {
            (PART_GROUPS, _) => {
                let info = info.try_into().map_err(|_| wrong)?;
                Ok(Feature::Groups(head, Groups::parse(info)))
            }
            (PART_PFC, &[enabled, classes_max]) => {
                let enabled = PrioritySet::from_bits(enabled);
                Ok(Feature::Pfc(head, CeePfc { enabled, classes_max }))
            }
            (PART_APPLICATION, _) => match info.as_chunks() {
                (list, []) => {
                    let list = list.iter().map(CeeApplication::parse).collect();
                    Ok(Feature::Application(head, list))
                }
                _ => Err(wrong),
            },
            _ => Err(wrong),
        }
    }

    fn part(&self) -> Tlv {
        match self {
            Feature::Groups(head, groups) => head.part(PART_GROUPS, &groups.info()),
            Feature::Pfc(head, pfc) => head.part(PART_PFC, &[pfc.enabled.bits(), pfc.classes_max]),
            Feature::Application(head, list) => {
                let info: Vec<u8> = list.iter().flat_map(CeeApplication::emit).collect();
                head.part(PART_APPLICATION, &info)
            }
            Feature::Other(part) => part.clone(),
        }
    }

    /// Returns the type of the part.
    #[cfg(test)]
    pub(crate) fn kind(&self) -> u8 {
        match self {
            Feature::Groups(..) => PART_GROUPS,
            Feature::Pfc(..) => PART_PFC,
            Feature::Application(..) => PART_APPLICATION,
            Feature::Other(part) => part.kind,
        }
    }
}

impl Cee {
    /// Parses the content of a CEE TLV, which begins after the subtype.
    ///
    /// # Errors
    /// Parts that do not fit, parts of an invalid length, and a number of control parts other than
    /// one.
    pub fn parse(info: &[u8]) -> Result<Cee, DcbxError> {
        let (mut control, mut features) = (Vec::new(), Vec::new());
        for part in Tlvs::new(info) {
            let part = part?;
            match part.kind {
                kind::END => break,
                PART_CONTROL => control.push(Control::parse(part.value)?),
                kind => features.push(Feature::parse(kind, part.value)?),
            }
        }
        match control[..] {
            [control] => Ok(Cee { control, features }),
            _ => Err(DcbxError::Control(control.len())),
        }
    }

    /// Returns the CEE TLV, with the control part first.
    ///
    /// # Errors
    /// A part is too long. The emission of the TLV checks that all parts together fit.
    pub fn emit(&self) -> Result<Tlv, DcbxError> {
        let mut info = Vec::new();
        self.control.part().emit(&mut info)?;
        for feature in &self.features {
            feature.part().emit(&mut info)?;
        }
        Ok(Tlv::of_organisation(OUI_BEFORE, SUBTYPE_CEE, &info))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lldp::LldpError;
    use alloc::vec;
    use proptest::prelude::*;

    const KNOWN: [u8; 63] = [
        0xfe, 0x3d, 0, 0x1b, 0x21, 2, 2, 10, 0, 0, 0, 0, 0, 5, 0, 0, 0, 4, 4, 0x11, 0, 0, 0xc0, 0,
        0, 0x11, 0x22, 0x3f, 25, 25, 50, 0, 0, 0, 0, 0, 8, 6, 6, 0, 0, 0xc0, 0, 8, 8, 8, 0x10, 0,
        0, 0xc0, 0, 0x89, 6, 0, 0x1b, 0x21, 8, 0x0c, 0xbc, 1, 0x1b, 0x21, 0x10,
    ];

    fn known() -> Cee {
        let head = FeatureHead { enabled: true, willing: true, ..FeatureHead::default() };
        let groups = Groups {
            group_of: [0, 0, 1, 1, 2, 2, 3, GROUP_STRICT],
            percent: [25, 25, 50, 0, 0, 0, 0, 0],
            classes_max: 8,
        };
        let pfc = CeePfc { enabled: PrioritySet::from_bits(8), classes_max: 8 };
        let entry = |protocol, selector, priorities| CeeApplication {
            protocol,
            oui: APPLICATION_OUI,
            selector,
            priorities,
        };
        Cee {
            control: Control { sequence: 5, acknowledged: 4, ..Control::default() },
            features: vec![
                Feature::Groups(head, groups),
                Feature::Pfc(head, pfc),
                Feature::Application(head, vec![entry(0x8906, 0, 8), entry(3260, 1, 0x10)]),
            ],
        }
    }

    #[test]
    fn cee_is_byte_for_byte_what_others_dissect() {
        let mut out = vec![0xa5; 9];
        known().emit().unwrap().emit(&mut out).unwrap();
        assert_eq!(out[9..], KNOWN);
        assert_eq!(Cee::parse(&KNOWN[6..]), Ok(known()));
    }

    #[test]
    fn unknown_parts_are_kept_and_an_end_ends() {
        let mut cee = known();
        cee.features.push(Feature::Other(Tlv { kind: 6, value: vec![0, 0, 0x80, 0, 7] }));
        let tlv = cee.emit().unwrap();
        let info = tlv.organisation().unwrap().2;
        assert_eq!(Cee::parse(info), Ok(cee.clone()));
        let ended = [info, &[0, 0, 0xff, 0xff]].concat();
        assert_eq!(Cee::parse(&ended), Ok(cee.clone()));
        let kinds: Vec<u8> = cee.features.iter().map(Feature::kind).collect();
        assert_eq!(kinds, [2, 3, 4, 6]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for length in 0..KNOWN.len() - 6 {
            let cut = Cee::parse(&KNOWN[6..6 + length]);
            match length {
                0 => assert_eq!(cut, Err(DcbxError::Control(0))),
                // Ends of complete parts.
                12 | 31 | 39 => assert!(cut.is_ok()),
                _ => assert_eq!(cut, Err(DcbxError::Parts(LldpError::Truncated))),
            }
        }
        let twice = [&KNOWN[6..18], &KNOWN[6..18]].concat();
        assert_eq!(Cee::parse(&twice), Err(DcbxError::Control(2)));
        let with = |part: &[u8]| Cee::parse(&[&KNOWN[6..18], part].concat()).unwrap_err();
        assert_eq!(with(&[4, 5, 0, 0, 0, 0, 0]), DcbxError::Length(5));
        assert_eq!(with(&[6, 5, 0, 0, 0, 0, 0]), DcbxError::Length(5));
        assert_eq!(with(&[8, 5, 0, 0, 0, 0, 0]), DcbxError::Length(5));
        assert_eq!(with(&[8, 3, 0, 0, 0]), DcbxError::Length(3));
        assert_eq!(Cee::parse(&[2, 1, 0]), Err(DcbxError::Length(1)));
        let long = Feature::Other(Tlv { kind: 9, value: vec![0; 600] });
        let cee = Cee { features: vec![long], ..known() };
        assert_eq!(cee.emit(), Err(DcbxError::Parts(LldpError::Unrepresentable)));
    }

    proptest! {
        #[test]
        fn what_is_parsed_is_emitted_to_the_same(
            kind in 2_u8..7,
            value in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let part = [&[kind << 1, value.len() as u8][..], &value].concat();
            if let Ok(cee) = Cee::parse(&[&KNOWN[6..18], &part].concat()) {
                let tlv = cee.emit().unwrap();
                prop_assert_eq!(Cee::parse(tlv.organisation().unwrap().2), Ok(cee));
            }
        }
    }
}
