//! DCBX of IEEE 802.1Q (clause 38, annex D.2), and the congestion notification TLV.
//!
//! ```text
//!  subtype  bytes behind it
//!    8      1 CNPV bits, 1 ready bits                                     congestion notification
//!    9      1 W C 000 classes, 4 priority assignment, 8 bandwidth, 8 TSA  ETS configuration
//!   10      1 zero, 4 priority assignment, 8 bandwidth, 8 TSA             ETS recommendation
//!   11      1 W M 00 classes, 1 enabled bits                              PFC
//!   12      1 zero, 3 for each entry: priority 00 selector, protocol      application priority
//! ```
//!
//! W is "willing", C is "credit-based shaper", and M is "MACsec bypass". In the bitmaps, bit n
//! stands for priority n. The priority assignment consists of eight half bytes, beginning with
//! priority 0. Reserved bits are sent as zero and ignored on receipt.

use super::{DcbxError, OUI_IEEE};
use crate::lldp::Tlv;
use crate::priority::{PRIORITIES, Priority, PrioritySet, TrafficClass};
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// Subtype of the congestion notification TLV.
pub const SUBTYPE_CONGESTION: u8 = 8;
/// Subtype of the ETS configuration TLV.
pub const SUBTYPE_ETS_CONFIGURATION: u8 = 9;
/// Subtype of the ETS recommendation TLV.
pub const SUBTYPE_ETS_RECOMMENDATION: u8 = 10;
/// Subtype of the PFC TLV.
pub const SUBTYPE_PFC: u8 = 11;
/// Subtype of the application priority TLV.
pub const SUBTYPE_APPLICATION: u8 = 12;
/// Bytes of an ETS table: priority assignment, bandwidth, algorithms.
const ETS_BYTES: usize = 20;
/// Maximum number of entries in one application priority TLV.
pub const APPLICATIONS_MAX: usize = 168;

/// Transmission selection algorithm of a traffic class (802.1Q table 8-6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tsa(pub u8);

impl Tsa {
    /// Strict priority.
    pub const STRICT: Tsa = Tsa(0);
    /// The credit-based shaper.
    pub const CREDIT_BASED: Tsa = Tsa(1);
    /// Enhanced transmission selection: a share of the bandwidth that remains.
    pub const ETS: Tsa = Tsa(2);
    /// Vendor-specific algorithm.
    pub const VENDOR: Tsa = Tsa(255);
}

/// Complete ETS table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ets {
    /// The traffic class of each priority.
    pub class_of: [TrafficClass; PRIORITIES],
    /// Share of each class, in percent of the bandwidth that strict classes leave.
    pub percent: [u8; PRIORITIES],
    /// Transmission selection algorithm of each class.
    pub tsa: [Tsa; PRIORITIES],
}

/// Problems that make an ETS table unusable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EtsProblem {
    /// The shares of the ETS classes do not add up to 100.
    #[error("the shares of the ETS classes sum to {0} percent, not 100")]
    Sum(u16),
    /// A class with an algorithm other than ETS has a share.
    #[error("traffic class {0} is not ETS and yet has a share")]
    Share(TrafficClass),
    /// The table uses more classes than the port has.
    #[error("traffic class {0}, but the port has fewer")]
    Classes(TrafficClass),
    /// The table uses an algorithm that the port does not support.
    #[error("traffic class {0} wants an algorithm that the port does not have")]
    Algorithm(TrafficClass),
}

impl Ets {
    /// Checks that a port with `classes` traffic classes (1 to 8), strict priority and ETS, and the
    /// credit-based shaper if `credit_based`, supports this table.
    ///
    /// # Errors
    /// The first problem found.
    pub fn check(&self, classes: u8, credit_based: bool) -> Result<(), EtsProblem> {
        let used = |class: TrafficClass| self.class_of.contains(&class);
        let (mut sum, mut any) = (0, false);
        for class in TrafficClass::ALL {
            let (tsa, percent) = (self.tsa[class.index()], self.percent[class.index()]);
            if class.value() >= classes && (used(class) || percent > 0) {
                return Err(EtsProblem::Classes(class));
            }
            match tsa {
                Tsa::ETS => (sum, any) = (sum + u16::from(percent), true),
                _ if percent > 0 => return Err(EtsProblem::Share(class)),
                Tsa::STRICT => {}
                Tsa::CREDIT_BASED if credit_based => {}
                _ if class.value() < classes => return Err(EtsProblem::Algorithm(class)),
                _ => {}
            }
        }
        if any && sum != 100 { Err(EtsProblem::Sum(sum)) } else { Ok(()) }
    }

    fn parse(bytes: &[u8; ETS_BYTES]) -> Result<Ets, DcbxError> {
        let mut ets = Ets::default();
        for n in 0..PRIORITIES {
            let class = if n % 2 == 0 { bytes[n / 2] >> 4 } else { bytes[n / 2] & 0x0f };
            ets.class_of[n] = TrafficClass::new(class).ok_or(DcbxError::TrafficClass(class))?;
            ets.percent[n] = bytes[4 + n];
            ets.tsa[n] = Tsa(bytes[12 + n]);
        }
        Ok(ets)
    }

    fn emit(&self, first: u8) -> [u8; 1 + ETS_BYTES] {
        let mut bytes = [0; 1 + ETS_BYTES];
        bytes[0] = first;
        for n in 0..PRIORITIES {
            bytes[1 + n / 2] |= self.class_of[n].value() << if n % 2 == 0 { 4 } else { 0 };
            bytes[5 + n] = self.percent[n];
            bytes[13 + n] = self.tsa[n].0;
        }
        bytes
    }
}

/// Splits the content of a TLV with an ETS table into its first byte and the table.
fn ets_of(info: &[u8]) -> Result<(u8, Ets), DcbxError> {
    match info.split_first_chunk::<{ 1 + ETS_BYTES }>() {
        Some((&[first, ref table @ ..], [])) => Ok((first, Ets::parse(table)?)),
        _ => Err(DcbxError::Length(info.len())),
    }
}

/// ETS configuration in force on a port, and its willingness to accept a recommendation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EtsConfiguration {
    /// True if the port accepts the peer's recommendation.
    pub willing: bool,
    /// True if the port supports the credit-based shaper.
    pub credit_based: bool,
    /// Number of traffic classes, 1 to 8. Emission takes the low three bits, so that 8 is sent as
    /// zero.
    pub classes_max: u8,
    /// The table in force.
    pub ets: Ets,
}

impl EtsConfiguration {
    /// Parses the content of an ETS configuration TLV, which begins after the subtype.
    ///
    /// # Errors
    /// A length other than 21, or a traffic class above 7.
    pub fn parse(info: &[u8]) -> Result<EtsConfiguration, DcbxError> {
        let (first, ets) = ets_of(info)?;
        let classes_max = if first & 7 == 0 { 8 } else { first & 7 };
        Ok(EtsConfiguration {
            willing: first >> 7 == 1,
            credit_based: first >> 6 & 1 == 1,
            classes_max,
            ets,
        })
    }

    /// Returns the ETS configuration TLV.
    pub fn emit(&self) -> Tlv {
        let first =
            u8::from(self.willing) << 7 | u8::from(self.credit_based) << 6 | self.classes_max & 7;
        Tlv::of_organisation(OUI_IEEE, SUBTYPE_ETS_CONFIGURATION, &self.ets.emit(first))
    }
}

/// ETS recommendation of a port to its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EtsRecommendation(pub Ets);

impl EtsRecommendation {
    /// Parses the content of an ETS recommendation TLV, which begins after the subtype.
    ///
    /// # Errors
    /// A length other than 21, or a traffic class above 7.
    pub fn parse(info: &[u8]) -> Result<EtsRecommendation, DcbxError> {
        ets_of(info).map(|(_, ets)| EtsRecommendation(ets))
    }

    /// Returns the ETS recommendation TLV.
    pub fn emit(&self) -> Tlv {
        Tlv::of_organisation(OUI_IEEE, SUBTYPE_ETS_RECOMMENDATION, &self.0.emit(0))
    }
}

/// PFC configuration of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PfcConfiguration {
    /// True if the port accepts the peer's configuration.
    pub willing: bool,
    /// MACsec bypass (MBC): true if the delay that MACsec adds remains when MACsec is off.
    pub macsec_bypass: bool,
    /// Number of traffic classes that may have PFC at the same time, 0 to 15. Emission takes the
    /// low four bits.
    pub classes_max: u8,
    /// Priorities with PFC enabled.
    pub enabled: PrioritySet,
}

impl PfcConfiguration {
    /// Parses the content of a PFC TLV, which begins after the subtype.
    ///
    /// # Errors
    /// A length other than 2.
    pub fn parse(info: &[u8]) -> Result<PfcConfiguration, DcbxError> {
        let &[first, enabled] = info else { return Err(DcbxError::Length(info.len())) };
        Ok(PfcConfiguration {
            willing: first >> 7 == 1,
            macsec_bypass: first >> 6 & 1 == 1,
            classes_max: first & 0x0f,
            enabled: PrioritySet::from_bits(enabled),
        })
    }

    /// Returns the PFC TLV.
    pub fn emit(&self) -> Tlv {
        let first = u8::from(self.willing) << 7
            | u8::from(self.macsec_bypass) << 6
            | self.classes_max & 0x0f;
        Tlv::of_organisation(OUI_IEEE, SUBTYPE_PFC, &[first, self.enabled.bits()])
    }
}

/// Selector of three bits: the packet field that identifies an application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Selector(u8);

impl Selector {
    /// Matches an EtherType. Protocol 0 sets the default priority.
    pub const ETHERTYPE: Selector = Selector(1);
    /// Matches a TCP or SCTP port.
    pub const STREAM_PORT: Selector = Selector(2);
    /// Matches a UDP or DCCP port.
    pub const DATAGRAM_PORT: Selector = Selector(3);
    /// Matches a TCP, SCTP, UDP or DCCP port.
    pub const PORT: Selector = Selector(4);
    /// Matches a DSCP, 0 to 63.
    pub const DSCP: Selector = Selector(5);

    /// Returns the selector with this number, or `None` if the number is above 7.
    pub const fn new(value: u8) -> Option<Selector> {
        if value < 8 { Some(Selector(value)) } else { None }
    }

    /// Returns the number of the selector, 0 to 7.
    pub const fn value(self) -> u8 {
        self.0
    }
}

/// Application priority entry: the priority of an application's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Application {
    /// The priority.
    pub priority: Priority,
    /// The field by which the application is identified.
    pub selector: Selector,
    /// EtherType, port or DSCP of the application.
    pub protocol: u16,
}

impl Application {
    /// Returns whether both entries match the same packets, regardless of their priorities.
    pub fn is_about_same(&self, other: &Application) -> bool {
        (self.selector, self.protocol) == (other.selector, other.protocol)
    }
}

/// Parses the entries of an application priority TLV, in order. They begin after the subtype.
///
/// # Errors
/// A length that is not one byte plus a whole number of entries.
pub fn parse_applications(info: &[u8]) -> Result<Vec<Application>, DcbxError> {
    let (entries, rest) = info.get(1..).ok_or(DcbxError::Length(0))?.as_chunks::<3>();
    if !rest.is_empty() {
        return Err(DcbxError::Length(info.len()));
    }
    let entry = |&[first, high, low]: &[u8; 3]| Application {
        priority: Priority::from_low_bits(first >> 5),
        selector: Selector(first & 7),
        protocol: u16::from_be_bytes([high, low]),
    };
    Ok(entries.iter().map(entry).collect())
}

/// Returns the TLV with these application priorities. Entries beyond [`APPLICATIONS_MAX`] do not
/// fit and are omitted.
pub fn emit_applications(applications: &[Application]) -> Tlv {
    let mut info = Vec::with_capacity(1 + 3 * applications.len().min(APPLICATIONS_MAX));
    info.push(0);
    for entry in applications.iter().take(APPLICATIONS_MAX) {
        let [high, low] = entry.protocol.to_be_bytes();
        info.extend_from_slice(&[entry.priority.value() << 5 | entry.selector.0, high, low]);
    }
    Tlv::of_organisation(OUI_IEEE, SUBTYPE_APPLICATION, &info)
}

/// Congestion notification state of a port, per priority (IEEE 802.1Q annex D.2.7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CongestionNotification {
    /// Priorities with congestion notification (CNPVs).
    pub values: PrioritySet,
    /// CNPVs that are no longer remapped.
    pub ready: PrioritySet,
}

impl CongestionNotification {
    /// Parses the content of a congestion notification TLV, which begins after the subtype.
    ///
    /// # Errors
    /// A length other than 2.
    pub fn parse(info: &[u8]) -> Result<CongestionNotification, DcbxError> {
        let &[values, ready] = info else { return Err(DcbxError::Length(info.len())) };
        Ok(CongestionNotification {
            values: PrioritySet::from_bits(values),
            ready: PrioritySet::from_bits(ready),
        })
    }

    /// Returns the congestion notification TLV.
    pub fn emit(&self) -> Tlv {
        let info = [self.values.bits(), self.ready.bits()];
        Tlv::of_organisation(OUI_IEEE, SUBTYPE_CONGESTION, &info)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    /// Returns the bytes that the TLV appends to a non-empty buffer.
    fn bytes(tlv: &Tlv) -> Vec<u8> {
        let mut out = vec![0xa5; 3];
        tlv.emit(&mut out).unwrap();
        out.split_off(3)
    }

    fn info(tlv: &Tlv) -> &[u8] {
        tlv.organisation().unwrap().2
    }

    fn ets() -> Ets {
        Ets {
            class_of: TrafficClass::ALL,
            percent: [10, 20, 30, 40, 0, 0, 0, 0],
            tsa: [2, 2, 2, 2, 0, 1, 255, 0].map(Tsa),
        }
    }

    const ETS_TABLE: [u8; 20] =
        [0x01, 0x23, 0x45, 0x67, 10, 20, 30, 40, 0, 0, 0, 0, 2, 2, 2, 2, 0, 1, 0xff, 0];

    #[test]
    fn ets_is_byte_for_byte_what_others_dissect() {
        let configuration =
            EtsConfiguration { willing: true, credit_based: false, classes_max: 8, ets: ets() };
        let tlv = configuration.emit();
        assert_eq!(bytes(&tlv), [&[0xfe, 0x19, 0, 0x80, 0xc2, 9, 0x80][..], &ETS_TABLE].concat());
        assert_eq!(EtsConfiguration::parse(info(&tlv)), Ok(configuration));
        let tlv = EtsRecommendation(ets()).emit();
        assert_eq!(bytes(&tlv), [&[0xfe, 0x19, 0, 0x80, 0xc2, 10, 0][..], &ETS_TABLE].concat());
        assert_eq!(EtsRecommendation::parse(info(&tlv)), Ok(EtsRecommendation(ets())));
        let three = EtsConfiguration { classes_max: 3, credit_based: true, ..configuration };
        assert_eq!(info(&three.emit())[0], 0xc3);
        assert_eq!(EtsConfiguration::parse(info(&three.emit())), Ok(three));
    }

    #[test]
    fn pfc_is_byte_for_byte_what_others_dissect() {
        let pfc = PfcConfiguration {
            willing: true,
            macsec_bypass: true,
            classes_max: 8,
            enabled: PrioritySet::from_bits(9),
        };
        assert_eq!(bytes(&pfc.emit()), [0xfe, 6, 0, 0x80, 0xc2, 11, 0xc8, 9]);
        assert_eq!(PfcConfiguration::parse(&[0xf8, 9]), Ok(pfc), "reserved bits are ignored");
    }

    #[test]
    fn applications_are_byte_for_byte_what_others_dissect() {
        let entry = |priority: usize, selector, protocol| Application {
            priority: Priority::ALL[priority],
            selector,
            protocol,
        };
        let list = [
            entry(3, Selector::ETHERTYPE, 0x8906),
            entry(4, Selector::STREAM_PORT, 3260),
            entry(6, Selector::DSCP, 48),
        ];
        let tlv = emit_applications(&list);
        let expected =
            [0xfe, 0x0e, 0, 0x80, 0xc2, 12, 0, 0x61, 0x89, 6, 0x82, 0x0c, 0xbc, 0xc5, 0, 0x30];
        assert_eq!(bytes(&tlv), expected);
        assert_eq!(parse_applications(info(&tlv)), Ok(list.to_vec()));
        let many = vec![list[0]; APPLICATIONS_MAX + 1];
        let full = emit_applications(&many);
        assert!(full.emit(&mut vec![]).is_ok());
        assert_eq!(parse_applications(info(&full)).unwrap().len(), APPLICATIONS_MAX);
    }

    #[test]
    fn congestion_notification_is_byte_for_byte_what_others_dissect() {
        let cn = CongestionNotification {
            values: PrioritySet::from_bits(0x20),
            ready: PrioritySet::from_bits(8),
        };
        assert_eq!(bytes(&cn.emit()), [0xfe, 6, 0, 0x80, 0xc2, 8, 0x20, 8]);
        assert_eq!(CongestionNotification::parse(&[0x20, 8]), Ok(cn));
    }

    #[test]
    fn a_wrong_length_is_refused() {
        for length in 0..30 {
            let bytes = vec![0; length];
            let error = DcbxError::Length(length);
            let (ets, two) = (length == 21, length == 2);
            assert_eq!(EtsConfiguration::parse(&bytes) == Err(error), !ets);
            assert_eq!(EtsRecommendation::parse(&bytes) == Err(error), !ets);
            assert_eq!(PfcConfiguration::parse(&bytes) == Err(error), !two);
            assert_eq!(CongestionNotification::parse(&bytes) == Err(error), !two);
            assert_eq!(parse_applications(&bytes) == Err(error), length % 3 != 1);
        }
    }

    #[test]
    fn there_is_no_traffic_class_above_seven() {
        let mut bytes = [0; 21];
        bytes[4] = 0x78;
        assert_eq!(EtsRecommendation::parse(&bytes), Err(DcbxError::TrafficClass(8)));
    }

    #[test]
    fn a_table_that_a_port_cannot_apply_is_recognised() {
        let good = Ets { tsa: [2, 2, 2, 2, 0, 1, 0, 0].map(Tsa), ..ets() };
        assert_eq!(good.check(8, true), Ok(()));
        assert_eq!(good.check(8, false), Err(EtsProblem::Algorithm(TrafficClass::ALL[5])));
        assert_eq!(ets().check(8, true), Err(EtsProblem::Algorithm(TrafficClass::ALL[6])));
        assert_eq!(good.check(5, true), Err(EtsProblem::Classes(TrafficClass::ALL[5])));
        let sum = Ets { percent: [10, 20, 30, 41, 0, 0, 0, 0], ..good };
        assert_eq!(sum.check(8, true), Err(EtsProblem::Sum(101)));
        let share = Ets { percent: [10, 20, 30, 40, 1, 0, 0, 0], ..good };
        assert_eq!(share.check(8, true), Err(EtsProblem::Share(TrafficClass::ALL[4])));
        assert_eq!(Ets::default().check(1, false), Ok(()), "all strict, one class");
    }

    proptest! {
        #[test]
        fn what_is_parsed_is_emitted_to_the_same(
            table in prop::array::uniform21(any::<u8>()),
            list in prop::collection::vec(any::<u8>(), 0..100),
        ) {
            if let Ok(ets) = EtsConfiguration::parse(&table) {
                prop_assert_eq!(EtsConfiguration::parse(info(&ets.emit())), Ok(ets));
            }
            let pfc = PfcConfiguration::parse(&table[..2]).unwrap();
            prop_assert_eq!(PfcConfiguration::parse(info(&pfc.emit())), Ok(pfc));
            if let Ok(list) = parse_applications(&list) {
                prop_assert_eq!(parse_applications(info(&emit_applications(&list))), Ok(list));
            }
        }
    }
}
