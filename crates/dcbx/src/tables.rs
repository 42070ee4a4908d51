//! Translation between the configuration of a plane and DCBX tables.
//!
//! A strict class is strict in both, and an ETS class has its share in both. Deficit round robin
//! and fair queueing are "vendor specific" algorithms in the standard's TLVs. CEE has no value for
//! them, so a port with such classes sends no priority groups in CEE. CEE has one strict group. It
//! identifies applications by EtherType or by a port for both TCP and UDP, but not by DSCP, and it
//! has no entry for the default priority.

use super::applications::cee_applications;
use super::{
    CeeConfig, CeeFeature, DcbxConfig, Duplicates, IeeeConfig, Mode, TieRule, ZeroClasses,
};
use alloc::vec::Vec;
use axon_plane::dcb::DcbConfig;
use axon_plane::qcn::DefenceConfig;
use axon_plane::schedule::Algorithm;
use axon_wire::TrafficClass;
use axon_wire::dcbx::cee::{CeePfc, GROUP_STRICT, Groups};
use axon_wire::dcbx::ieee::{Application, Ets, Tsa};

/// Number of traffic classes on each port of a plane.
pub(crate) const CLASSES_MAX: u8 = 8;

/// DCBX settings of a switch's ports that cannot be derived from the configuration of its plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DcbxSettings {
    /// The form of DCBX to use.
    pub mode: Mode,
    /// True if the port applies the ETS table that a peer recommends.
    pub ets_willing: bool,
    /// True if the port follows a peer's PFC.
    pub pfc_willing: bool,
    /// The ETS table to recommend to peers.
    pub recommendation: Recommendation,
    /// Maximum number of traffic classes that may have PFC at the same time: 0 to 8.
    pub pfc_classes_max: u8,
    /// Meaning of 0 in `pfc_classes_max`.
    pub pfc_classes_zero: ZeroClasses,
    /// Application priorities to advertise. They are informational for the peer.
    pub applications: Vec<Application>,
    /// True if the port follows a peer's application priorities. CEE only.
    pub applications_willing: bool,
    /// Rule for two willing ends, which selects the one that keeps its own PFC.
    pub tie: TieRule,
    /// Handling of repeated TLVs.
    pub duplicates: Duplicates,
    /// True if both ends must want the same groups; see [`CeeConfig::groups_must_match`].
    pub groups_must_match: bool,
}

impl Default for DcbxSettings {
    /// Returns settings that use the standard's form, are not willing, so that the operator's
    /// configuration applies, and recommend the port's own ETS table.
    fn default() -> DcbxSettings {
        DcbxSettings {
            mode: Mode::default(),
            ets_willing: false,
            pfc_willing: false,
            recommendation: Recommendation::Own,
            pfc_classes_max: CLASSES_MAX,
            pfc_classes_zero: ZeroClasses::default(),
            applications: Vec::new(),
            applications_willing: false,
            tie: TieRule::default(),
            duplicates: Duplicates::default(),
            groups_must_match: false,
        }
    }
}

/// The ETS table that a port recommends to its peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recommendation {
    /// No table is recommended.
    None,
    /// The port's own configured table, or none if that table has vendor specific algorithms, which
    /// a peer could not apply.
    #[default]
    Own,
    /// A given table.
    This(Ets),
}

/// Returns the ETS table in a plane's configuration.
pub(crate) fn ets_of(dcb: &DcbConfig) -> Ets {
    let mut ets = Ets { class_of: dcb.prio_tc, ..Ets::default() };
    for (class, algorithm) in dcb.schedule.classes.iter().enumerate() {
        (ets.tsa[class], ets.percent[class]) = match *algorithm {
            Algorithm::Strict => (Tsa::STRICT, 0),
            Algorithm::Ets { percent } => (Tsa::ETS, percent),
            Algorithm::Drr { .. } | Algorithm::Wfq { .. } => (Tsa::VENDOR, 0),
        };
    }
    ets
}

/// Converts an ETS table to CEE priority groups. Returns `None` if CEE cannot express it.
fn groups_of(ets: &Ets) -> Option<Groups> {
    let group = |class: &TrafficClass| match ets.tsa[class.index()] {
        Tsa::STRICT => Some(GROUP_STRICT),
        Tsa::ETS => Some(class.value()),
        _ => None,
    };
    let mut groups = Groups { percent: ets.percent, classes_max: CLASSES_MAX, ..Groups::default() };
    for (group_of, class) in groups.group_of.iter_mut().zip(&ets.class_of) {
        *group_of = group(class)?;
    }
    Some(groups)
}

impl DcbxConfig {
    /// Returns the DCBX configuration of a port whose plane has the configuration `dcb`.
    pub fn for_plane(dcb: &DcbConfig, settings: &DcbxSettings) -> DcbxConfig {
        let ets = ets_of(dcb);
        let recommendation = match settings.recommendation {
            Recommendation::None => None,
            Recommendation::Own => ets.check(CLASSES_MAX, false).is_ok().then_some(ets),
            Recommendation::This(ets) => Some(ets),
        };
        let groups = groups_of(&ets);
        let applications = cee_applications(&settings.applications);
        let pfc = CeePfc { enabled: dcb.pfc, classes_max: settings.pfc_classes_max };
        DcbxConfig {
            mode: settings.mode,
            ieee: IeeeConfig {
                ets_willing: settings.ets_willing,
                credit_based: false,
                classes_max: CLASSES_MAX,
                ets,
                recommendation,
                pfc_willing: settings.pfc_willing,
                macsec_bypass: false,
                pfc_classes_max: settings.pfc_classes_max,
                pfc_classes_zero: settings.pfc_classes_zero,
                pfc: dcb.pfc,
                applications: settings.applications.clone(),
                tie: settings.tie,
                duplicates: settings.duplicates,
            },
            cee: CeeConfig {
                groups: CeeFeature {
                    advertised: groups.is_some(),
                    enabled: true,
                    willing: settings.ets_willing,
                    desired: groups.unwrap_or_default(),
                },
                pfc: CeeFeature {
                    advertised: true,
                    enabled: true,
                    willing: settings.pfc_willing,
                    desired: pfc,
                },
                applications: CeeFeature {
                    advertised: settings.applications_willing || !applications.is_empty(),
                    enabled: true,
                    willing: settings.applications_willing,
                    desired: applications,
                },
                groups_must_match: settings.groups_must_match,
            },
            congestion: (dcb.cn.as_ref())
                .map(|cn| DefenceConfig { cnpvs: cn.cnpvs, ..DefenceConfig::default() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::applications::{applications_of, cee_can_carry};
    use crate::cee;
    use alloc::vec;
    use axon_plane::schedule::{FrameCost, ScheduleConfig};
    use axon_wire::dcbx::cee::CeeApplication;
    use axon_wire::dcbx::ieee::Selector;
    use axon_wire::priority::{PRIORITIES, Priority};
    use axon_wire::{MacAddr, PrioritySet, Rate};

    fn dcb(classes: Vec<Algorithm>, class_of: [u8; PRIORITIES]) -> DcbConfig {
        DcbConfig {
            prio_tc: class_of.map(|class| TrafficClass::new(class).unwrap()),
            schedule: ScheduleConfig::of(classes),
            pfc: PrioritySet::from_bits(0x18),
            ..DcbConfig::lossy(vec![Rate::gbps(10)], MacAddr([2; 6]))
        }
    }

    const THREE: [u8; PRIORITIES] = [0, 0, 0, 1, 1, 0, 0, 2];

    fn three() -> DcbConfig {
        let [lossy, lossless] = [40, 60].map(|percent| Algorithm::Ets { percent });
        dcb(vec![lossy, lossless, Algorithm::Strict], THREE)
    }

    #[test]
    fn a_plane_says_what_it_does_and_does_what_it_says() {
        let own = three();
        let ets = ets_of(&own);
        assert_eq!((ets.tsa[..3].to_vec(), ets.percent[..3].to_vec()), {
            (vec![Tsa::ETS, Tsa::ETS, Tsa::STRICT], vec![40, 60, 0])
        });
        assert_eq!(ets.check(CLASSES_MAX, false), Ok(()));
        let schedule = ScheduleConfig::of_ets(&ets, FrameCost::FRAME);
        assert_eq!((schedule.check(), schedule.cost), (Ok(()), FrameCost::FRAME));
        assert_eq!(schedule.classes[..3], own.schedule.classes);
        assert_eq!(schedule.serves(&ets.class_of), Ok(()));
        let settings = DcbxConfig::for_plane(&own, &DcbxSettings::default());
        assert_eq!((settings.ieee.recommendation, settings.ieee.pfc), (Some(ets), own.pfc));
    }

    #[test]
    fn cee_carries_the_same_table() {
        let config = DcbxConfig::for_plane(&three(), &DcbxSettings::default());
        let groups = config.cee.groups.desired;
        assert_eq!(groups.group_of, [0, 0, 0, 1, 1, 0, 0, GROUP_STRICT]);
        assert_eq!(cee::ets_of(&groups), Some(config.ieee.ets));
        assert_eq!(config.cee.pfc.desired.enabled.bits(), 0x18);
    }

    #[test]
    fn what_is_our_own_way_is_not_recommended_and_has_no_groups() {
        let own = dcb(vec![Algorithm::Drr { quantum_bytes: 1600 }; 2], [0, 0, 0, 1, 1, 0, 0, 0]);
        let config = DcbxConfig::for_plane(&own, &DcbxSettings::default());
        assert_eq!(config.ieee.ets.tsa[..3], [Tsa::VENDOR, Tsa::VENDOR, Tsa::STRICT]);
        assert_eq!((config.ieee.recommendation, config.cee.groups.advertised), (None, false));
    }

    #[test]
    fn an_application_has_one_entry_in_the_older_form() {
        let entry = |priority: usize, selector, protocol| Application {
            priority: Priority::ALL[priority],
            selector,
            protocol,
        };
        let applications = vec![
            entry(3, Selector::ETHERTYPE, 0x8906),
            entry(4, Selector::STREAM_PORT, 3260),
            entry(5, Selector::DATAGRAM_PORT, 3260),
            entry(6, Selector::DSCP, 48),
            entry(7, Selector::ETHERTYPE, 0),
            entry(2, Selector::PORT, 2049),
        ];
        assert_eq!(applications.iter().filter(|one| cee_can_carry(one)).count(), 2);
        let list = cee_applications(&applications);
        let sent: Vec<_> = list.iter().map(|a| (a.protocol, a.selector, a.priorities)).collect();
        assert_eq!(sent, [(0x8906, 0, 0x08), (3260, 1, 0x30), (2049, 1, 0x04)]);
        let port = |priority, protocol| entry(priority, Selector::PORT, protocol);
        let back = [applications[0], port(4, 3260), port(5, 3260), port(2, 2049)];
        assert_eq!(applications_of(&list), back);
        let reserved = [(0, 0), (2, 3260), (3, 9)].map(|(selector, protocol)| CeeApplication {
            selector,
            protocol,
            ..list[0]
        });
        assert_eq!(applications_of(&reserved), []);
    }

    #[test]
    fn as_many_applications_as_are_sent_fit_into_the_tlv_of_the_older_form_beside_all_else() {
        let (priority, selector) = (Priority::ALL[3], Selector::PORT);
        let many = 1..=cee::APPLICATIONS_MAX as u16 + 1;
        let many = many.map(|protocol| Application { priority, selector, protocol });
        let settings = DcbxSettings { applications: many.collect(), ..DcbxSettings::default() };
        let mut port = cee::Cee::default();
        port.update(&DcbxConfig::for_plane(&three(), &settings).cee, None);
        let tlv = port.to_send().emit().unwrap();
        // The length of a TLV has nine bits, and an entry takes six bytes.
        assert!((511 - 5..=511).contains(&tlv.value.len()), "{}", tlv.value.len());
    }
}
