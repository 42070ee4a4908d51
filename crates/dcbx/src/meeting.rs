//! Detection of DCBX mismatches between the two ends of a link before the first frame.
//!
//! Two ports with these configurations run LLDP for a minute of virtual time over a link without
//! loss or delay, using the same code as a switch. Then the operational states and notes of both
//! ends are compared. If a state still changes in the second half of that minute, it counts as
//! never settling.

use super::{DcbEvent, DcbPort, DcbxConfig, DcbxNote};
use crate::lldp::{LldpAgent, LldpConfig, LldpIdentity};
use alloc::vec::Vec;
use axon_wire::dcbx::ieee::{Application, Ets, Selector};
use axon_wire::lldp::Id;
use axon_wire::priority::{Priority, PrioritySet};
use axon_wire::{MacAddr, Span, Time};
use core::fmt;

/// Virtual time of an exchange. A new neighbour gets four LLDPDUs in four seconds, and changes are
/// sent at once, so one minute is enough.
const EXCHANGE_SPAN: Span = Span::from_secs(60);

/// One end of a link.
#[derive(Clone, Debug)]
pub struct End<'a> {
    /// MAC address of its frames, which the tie rule compares if both ends are willing.
    pub mac: MacAddr,
    /// Its DCBX configuration.
    pub config: &'a DcbxConfig,
}

/// A mismatch between two ends, with the value at each of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// The priorities with PFC in force differ: one end sends PFC that the other ignores.
    Pfc([PrioritySet; 2]),
    /// These priorities have PFC at both ends, but share a traffic class with different priorities
    /// at each end, so that a pause blocks different traffic.
    Classes(PrioritySet),
    /// The priorities with congestion notification differ.
    Congestion([PrioritySet; 2]),
    /// The ends assign different priorities to an application.
    Application {
        /// Selector of the application.
        selector: Selector,
        /// The EtherType, port or DSCP of the application.
        protocol: u16,
        /// The priority at each end.
        priorities: [Priority; 2],
    },
    /// One end, 0 or 1, has this note.
    Note(usize, DcbxNote),
    /// The operational states never settle, because each end keeps changing in response to the
    /// other.
    Unsettled,
}

/// The result of an exchange between the two ends of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meeting {
    /// Mismatches between the two ends; empty if they agree.
    pub mismatches: Vec<Mismatch>,
    /// The priorities with PFC in force at each end.
    pub pfc: [PrioritySet; 2],
}

/// Runs the exchange between two ends of a link and compares them.
pub fn meet(ends: [End<'_>; 2]) -> Meeting {
    let (ports, settled) = exchange(&ends);
    let mismatches = mismatches(&ends, &ports, settled);
    Meeting { mismatches, pfc: ports.each_ref().map(|port| port.operational().pfc) }
}

fn mismatches(ends: &[End<'_>; 2], ports: &[DcbPort; 2], settled: bool) -> Vec<Mismatch> {
    let mut found = Vec::new();
    if !settled {
        found.push(Mismatch::Unsettled);
    }
    let [one, other] = ports.each_ref().map(DcbPort::operational);
    if one.pfc != other.pfc {
        found.push(Mismatch::Pfc([one.pfc, other.pfc]));
    }
    let beside = |ets: &Ets, one: Priority| -> PrioritySet {
        let same = |other: &Priority| ets.class_of[other.index()] == ets.class_of[one.index()];
        Priority::ALL.into_iter().filter(same).collect()
    };
    let both = one.pfc.intersection(other.pfc).iter();
    let apart: PrioritySet =
        both.filter(|&at| beside(&one.ets, at) != beside(&other.ets, at)).collect();
    if !apart.is_empty() {
        found.push(Mismatch::Classes(apart));
    }
    informational(ends, &mut found);
    for (end, port) in ports.iter().enumerate() {
        // A PFC difference has already been reported above, and both ends have a note about it.
        let new = |note: &&DcbxNote| !matches!(note, DcbxNote::PfcDiffers(_));
        found.extend(port.notes().iter().filter(new).map(|note| Mismatch::Note(end, note.clone())));
    }
    found
}

/// Finds differences in advertised values that have no effect on the other end.
fn informational([one, other]: &[End<'_>; 2], found: &mut Vec<Mismatch>) {
    let values = |end: &End<'_>| end.config.congestion.map(|domain| domain.cnpvs);
    match (values(one), values(other)) {
        (Some(one), Some(other)) if one != other => found.push(Mismatch::Congestion([one, other])),
        _ => {}
    }
    for own in &one.config.ieee.applications {
        let Application { selector, protocol, priority } = *own;
        let theirs = other.config.ieee.applications.iter().find(|known| own.is_about_same(known));
        if let Some(theirs) = theirs.filter(|theirs| theirs.priority != priority) {
            let priorities = [priority, theirs.priority];
            found.push(Mismatch::Application { selector, protocol, priorities });
        }
    }
}

/// Runs LLDP between the two ends. Returns the ports and whether their states have settled.
fn exchange(ends: &[End<'_>; 2]) -> ([DcbPort; 2], bool) {
    let start = Time::ZERO;
    let mut ports = [0, 1].map(|number: usize| {
        let End { mac, config } = ends[number].clone();
        // Two ends on one switch have the same address and are distinguished by their ports.
        let port = Id::port_of_name(["first", "second"][number]);
        let identity = LldpIdentity { mac, chassis: Id::chassis_of_mac(mac), port };
        DcbPort::new(LldpAgent::new(LldpConfig::default(), identity), config.clone(), Vec::new())
    });
    let mut settled = true;
    let mut now = start;
    let mut out: [Vec<DcbEvent>; 2] = [Vec::new(), Vec::new()];
    for (port, out) in ports.iter_mut().zip(&mut out) {
        port.link(now, true, out);
    }
    loop {
        while out.iter().any(|out| !out.is_empty()) {
            for from in 0..2 {
                for event in core::mem::take(&mut out[from]) {
                    match event {
                        DcbEvent::Send(frame) => {
                            ports[1 - from].receive(now, &frame, &mut out[1 - from]);
                        }
                        DcbEvent::Operational if now.since(start) * 2 > EXCHANGE_SPAN => {
                            settled = false
                        }
                        DcbEvent::Operational | DcbEvent::Note(_) => {}
                    }
                }
            }
        }
        match ports.iter().filter_map(DcbPort::deadline).min() {
            Some(next) if next.since(start) <= EXCHANGE_SPAN => now = next,
            _ => return (ports, settled),
        }
        for (port, out) in ports.iter_mut().zip(&mut out) {
            port.timeout(now, out);
        }
    }
}

impl fmt::Display for Mismatch {
    /// Formats the mismatch for operators. The ends are called "one end" and "the other".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::Pfc([one, other]) => {
                write!(f, "PFC for {one} at one end and for {other} at the other")
            }
            Mismatch::Classes(priorities) => {
                write!(f, "priorities {priorities} share a class with others at the other end")
            }
            Mismatch::Congestion([one, other]) => {
                write!(f, "congestion notification for {one} at one end, for {other} at the other")
            }
            Mismatch::Application { selector, protocol, priorities: [one, other] } => {
                let kind = match *selector {
                    Selector::ETHERTYPE => "EtherType",
                    Selector::DSCP => "DSCP",
                    _ => "port",
                };
                write!(f, "{kind} {protocol} has priority {one} at one end, {other} at the other")
            }
            Mismatch::Note(end, note) => {
                write!(f, "{}: {note}", if *end == 0 { "one end" } else { "the other" })
            }
            Mismatch::Unsettled => f.write_str("the two ends never settle on what is in force"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DcbxSettings, Mode, TieRule};
    use alloc::string::ToString;
    use alloc::vec;
    use axon_plane::dcb::DcbConfig;
    use axon_plane::notification::CnConfig;
    use axon_plane::schedule::{Algorithm, ScheduleConfig};
    use axon_wire::dcbx::Dialect;
    use axon_wire::{Rate, TrafficClass};

    fn config(pfc: u8, change: impl FnOnce(&mut DcbConfig, &mut DcbxSettings)) -> DcbxConfig {
        let mut dcb = DcbConfig {
            prio_tc: [0, 0, 0, 1, 1, 0, 0, 2].map(|class| TrafficClass::new(class).unwrap()),
            schedule: ScheduleConfig::of([40, 60].map(|percent| Algorithm::Ets { percent })),
            pfc: PrioritySet::from_bits(pfc),
            ..DcbConfig::lossy(vec![Rate::gbps(10)], MacAddr([2; 6]))
        };
        dcb.schedule.classes.push(Algorithm::Strict);
        let mut settings = DcbxSettings::default();
        change(&mut dcb, &mut settings);
        DcbxConfig::for_plane(&dcb, &settings)
    }

    fn plain(pfc: u8) -> DcbxConfig {
        config(pfc, |_, _| {})
    }

    fn between(one: &DcbxConfig, other: &DcbxConfig) -> Vec<Mismatch> {
        let end = |last, config| End { mac: MacAddr([2, 0, 0, 0, 0, last]), config };
        meet([end(1, one), end(2, other)]).mismatches
    }

    fn set(bits: u8) -> PrioritySet {
        PrioritySet::from_bits(bits)
    }

    #[test]
    fn two_of_a_kind_agree_and_a_willing_end_follows() {
        let willing =
            config(0, |_, settings| (settings.pfc_willing, settings.ets_willing) = (true, true));
        for mode in [Mode::Ieee, Mode::Cee, Mode::Auto] {
            let in_mode = |mut config: DcbxConfig| {
                config.mode = mode;
                config
            };
            let [strict, soft] = [plain(0x18), willing.clone()].map(in_mode);
            assert_eq!(between(&strict, &strict), [], "{mode:?}");
            assert_eq!(between(&strict, &soft), [], "{mode:?}");
            assert_eq!(between(&soft, &soft), [], "{mode:?}");
        }
    }

    #[test]
    fn pfc_that_differs_for_ever_is_found_in_either_form() {
        assert_eq!(between(&plain(0x18), &plain(0x08)), [Mismatch::Pfc([set(0x18), set(0x08)])]);
        let older = |bits| config(bits, |_, settings| settings.mode = Mode::Cee);
        let part = axon_wire::dcbx::cee::PART_PFC;
        let error = |end| Mismatch::Note(end, DcbxNote::FeatureError(part));
        assert_eq!(between(&older(0x18), &older(0x08)), [error(0), error(1)]);
    }

    #[test]
    fn two_forms_do_not_understand_each_other() {
        let older = config(0x18, |_, settings| settings.mode = Mode::Cee);
        let found = between(&plain(0x18), &older);
        assert!(found.contains(&Mismatch::Note(0, DcbxNote::Dialect(Dialect::Cee))), "{found:?}");
        assert!(!found.iter().any(|one| matches!(one, Mismatch::Pfc(_))), "each does its own");
        let auto = config(0x18, |_, settings| settings.mode = Mode::Auto);
        assert_eq!(between(&auto, &older), []);
    }

    #[test]
    fn opposite_tie_rules_swap_for_ever_or_never_meet() {
        let with = |bits, tie| {
            config(bits, |_, settings| (settings.pfc_willing, settings.tie) = (true, tie))
        };
        // The first end has the lower address. Either both keep their own, or each adopts the
        // other's.
        let keeps = between(&with(0x18, TieRule::LowerKeeps), &with(0x08, TieRule::HigherKeeps));
        assert_eq!(keeps, [Mismatch::Pfc([set(0x18), set(0x08)])]);
        let swaps = between(&with(0x18, TieRule::HigherKeeps), &with(0x08, TieRule::LowerKeeps));
        assert!(!swaps.is_empty());
        let same = between(&with(0x18, TieRule::LowerKeeps), &with(0x08, TieRule::LowerKeeps));
        assert_eq!(same, []);
    }

    #[test]
    fn a_lossless_class_has_the_same_company_at_both_ends() {
        let alone = config(0x18, |dcb, _| dcb.prio_tc[4] = TrafficClass::ZERO);
        let found = between(&plain(0x18), &alone);
        assert_eq!(found, [Mismatch::Classes(set(0x18))]);
    }

    #[test]
    fn what_is_advertised_for_information_is_compared_too() {
        let fcoe = |priority: usize, values: Option<u8>| {
            config(0x18, |dcb, settings| {
                let (selector, protocol) = (Selector::ETHERTYPE, 0x8906);
                let priority = Priority::ALL[priority];
                settings.applications = vec![Application { priority, selector, protocol }];
                dcb.cn = values.map(|bits| CnConfig::new(1, set(bits)));
            })
        };
        let found = between(&fcoe(3, Some(0x20)), &fcoe(4, Some(0x60)));
        let shown: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "congestion notification for 5 at one end, for 5,6 at the other",
                "EtherType 35078 has priority 3 at one end, 4 at the other",
            ]
        );
        assert_eq!(between(&fcoe(3, Some(0x20)), &fcoe(3, None)), [], "an end without CN");
    }
}
