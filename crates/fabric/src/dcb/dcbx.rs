//! What switches say of Data Center Bridging to their neighbours: from the file to each switch,
//! and what the two ends of a link would not agree on.

use super::notice;
use crate::error::Problem;
use crate::file;
use crate::model::{Dcb, Fabric};
use axon_control::dcbx::meeting::End;
use axon_control::dcbx::{
    Asked, DcbxConfig, DcbxNodeConfig, Duplicates, Mismatch, Mode, Recommendation, TieRule,
    ZeroClasses, mismatches,
};
use axon_control::lldp::LldpConfig;
use axon_plane::dcb::DcbConfig;
use axon_wire::dcbx::ieee::{Application, Selector};
use axon_wire::{Priority, PrioritySet, Span};
use std::collections::BTreeMap;

/// LLDP and DCBX in the switches of a fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dcbx {
    /// Timers and bounds.
    pub lldp: LldpConfig,
    /// What all switches say, but for these.
    pub common: Said,
    /// By index of the switch.
    pub apart: BTreeMap<usize, Said>,
}

/// What one switch says, and heeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// All but what follows from its plane.
    pub asked: Asked,
    /// The priorities that have PFC, if not all lossless ones.
    pub pfc: Option<PrioritySet>,
}

impl Dcbx {
    /// What the switch with this index says.
    pub fn said(&self, switch: usize) -> &Said {
        self.apart.get(&switch).unwrap_or(&self.common)
    }
}

/// What the control plane of a switch, by index, is told; `None` if it is to say nothing.
pub(crate) fn node_config(
    fabric: &Fabric,
    switch: usize,
    plane: &DcbConfig,
) -> Option<Box<DcbxNodeConfig>> {
    let dcb = fabric.dcb.as_ref()?;
    let dcbx = dcb.dcbx.as_ref()?;
    let ports = fabric.switches[switch].ports;
    let defences = dcb.cn.as_ref().map(|cn| notice::defences(fabric, cn, switch, ports));
    Some(Box::new(DcbxNodeConfig {
        system_name: fabric.switches[switch].name.clone(),
        lldp: dcbx.lldp,
        dcbx: DcbxConfig::for_plane(plane, &dcbx.said(switch).asked),
        defences: defences.unwrap_or_default(),
    }))
}

/// What the two ends of each link between switches will not agree on: the index of the link, and
/// what. Empty where switches do not speak DCBX.
pub fn disagreements(fabric: &Fabric) -> Vec<(usize, Mismatch)> {
    let config = |switch| crate::assemble::switch_config(fabric, switch, 1, 0).node;
    let mut found = Vec::new();
    // Most switches are alike, and what alike ones say depends on who has the lower address.
    let mut known: BTreeMap<(usize, usize, bool), Vec<Mismatch>> = BTreeMap::new();
    let Some(dcbx) = fabric.dcb.as_ref().and_then(|dcb| dcb.dcbx.as_ref()) else { return found };
    let kind = |switch| if dcbx.apart.contains_key(&switch) { switch + 1 } else { 0 };
    for (index, link) in fabric.links.iter().enumerate() {
        let [one, other] = [link.a.switch, link.b.switch];
        let key = (kind(one), kind(other), one < other);
        let told = known.entry(key).or_insert_with(|| {
            let [one, other] = [config(one), config(other)];
            match (&one.dcbx, &other.dcbx) {
                (Some(a), Some(b)) => mismatches([
                    End { mac: one.mac, config: &a.dcbx },
                    End { mac: other.mac, config: &b.dcbx },
                ]),
                _ => Vec::new(),
            }
        });
        found.extend(told.iter().map(|mismatch| (index, mismatch.clone())));
    }
    found
}

/// Reads `dcb.dcbx`, once the switches have their names. PFC can be told otherwise only for
/// priorities that are lossless.
pub(crate) fn resolve(file: &file::Dcb, fabric: &mut Fabric) -> Result<(), Problem> {
    let (Some(asked), Some(dcb)) = (&file.dcbx, &fabric.dcb) else { return Ok(()) };
    let mut common = Said { asked: common(asked)?, pfc: None };
    // What agents are to know, they may be told.
    let told = &mut common.asked.applications;
    let same = |one: &Application, other: &Application| {
        (one.selector, one.protocol) == (other.selector, other.protocol)
    };
    for rule in &dcb.applications {
        if !told.iter().any(|known| same(known, rule)) {
            told.push(*rule);
        }
    }
    let mut apart = BTreeMap::new();
    for (index, one) in asked.apart.iter().enumerate() {
        let key = format!("dcb.dcbx.apart[{index}]");
        let said = differing(&common, one, dcb, &key)?;
        for (number, name) in one.switches.iter().enumerate() {
            let switch = crate::assemble::switch_index(fabric, name).ok_or_else(|| {
                let what = format!("there is no switch {name}");
                Problem::new(format!("{key}.switches[{number}]"), what, "the name of a switch")
            })?;
            apart.insert(switch, said.clone());
        }
    }
    let lldp = lldp(asked)?;
    if let Some(dcb) = &mut fabric.dcb {
        dcb.dcbx = Some(Box::new(Dcbx { lldp, common, apart }));
    }
    Ok(())
}

fn lldp(asked: &file::Dcbx) -> Result<LldpConfig, Problem> {
    let Some(interval) = asked.interval else { return Ok(LldpConfig::default()) };
    let secs = interval.0.ticks() / Span::from_secs(1).ticks();
    if Span::from_secs(secs) != interval.0 || !(1..=3600).contains(&secs) {
        let what = format!("{} is impossible", crate::units::span_text(interval.0));
        return Err(Problem::new("dcb.dcbx.interval", what, "1s to 1h, in whole seconds"));
    }
    Ok(LldpConfig { tx_interval_secs: secs as u16, ..LldpConfig::default() })
}

fn mode(asked: file::DcbxMode) -> Mode {
    match asked {
        file::DcbxMode::Ieee => Mode::Ieee,
        file::DcbxMode::Cee => Mode::Cee,
        file::DcbxMode::Auto => Mode::Auto,
    }
}

/// For classes, and for PFC.
fn willing(asked: file::Willing) -> (bool, bool) {
    use file::Willing::{Both, Ets, Pfc};
    (matches!(asked, Ets | Both), matches!(asked, Pfc | Both))
}

fn recommendation(asked: file::Recommend) -> Recommendation {
    match asked {
        file::Recommend::Own => Recommendation::Own,
        file::Recommend::None => Recommendation::None,
    }
}

fn tie(asked: file::Tie) -> TieRule {
    match asked {
        file::Tie::Lower => TieRule::LowerKeeps,
        file::Tie::Higher => TieRule::HigherKeeps,
    }
}

fn common(asked: &file::Dcbx) -> Result<Asked, Problem> {
    let plain = Asked::default();
    let pfc_classes_max = asked.pfc_classes.unwrap_or(plain.pfc_classes_max);
    if pfc_classes_max > plain.pfc_classes_max {
        let what = format!("{pfc_classes_max} is more than there are");
        return Err(Problem::new("dcb.dcbx.pfc_classes", what, "0 to 8"));
    }
    let (ets_willing, pfc_willing) = willing(asked.willing);
    let applications: Result<_, _> =
        asked.applications.iter().enumerate().map(|(index, one)| application(index, one)).collect();
    Ok(Asked {
        mode: mode(asked.mode),
        ets_willing,
        pfc_willing,
        recommendation: recommendation(asked.recommend),
        pfc_classes_max,
        pfc_classes_zero: match asked.pfc_classes_zero {
            file::ZeroClasses::None => ZeroClasses::None,
            file::ZeroClasses::All => ZeroClasses::All,
        },
        applications: applications?,
        tie: tie(asked.tie),
        duplicates: match asked.repeated {
            file::Repeated::Kind => Duplicates::IgnoreKind,
            file::Repeated::Peer => Duplicates::IgnorePeer,
        },
        groups_must_match: asked.groups_must_match,
    })
}

fn application(index: usize, asked: &file::Application) -> Result<Application, Problem> {
    let key = format!("dcb.dcbx.applications[{index}]");
    let Some(priority) = Priority::new(asked.priority) else {
        let what = format!("{} is no priority", asked.priority);
        return Err(Problem::new(format!("{key}.priority"), what, "0 to 7"));
    };
    let ways = [
        (Selector::ETHERTYPE, asked.ethertype),
        (Selector::STREAM_PORT, asked.tcp),
        (Selector::DATAGRAM_PORT, asked.udp),
        (Selector::PORT, asked.port),
        (Selector::DSCP, asked.dscp.map(u16::from)),
    ];
    let mut ways = ways.into_iter().filter_map(|(selector, told)| Some((selector, told?)));
    let (Some((selector, protocol)), None) = (ways.next(), ways.next()) else {
        let what = "it is told in no way, or in more than one";
        return Err(Problem::new(key, what, "one of ethertype, tcp, udp, port, dscp"));
    };
    let (name, range) = match selector {
        Selector::ETHERTYPE => ("ethertype", 1536..=u16::MAX),
        Selector::DSCP => ("dscp", 0..=63),
        _ => return Ok(Application { priority, selector, protocol }),
    };
    if !range.contains(&protocol) {
        let expected = format!("{} to {}", range.start(), range.end());
        return Err(Problem::new(format!("{key}.{name}"), format!("{protocol} is none"), expected));
    }
    Ok(Application { priority, selector, protocol })
}

/// What a switch says that differs from the others.
fn differing(common: &Said, one: &file::Apart, dcb: &Dcb, key: &str) -> Result<Said, Problem> {
    let mut said = common.clone();
    let asked = &mut said.asked;
    asked.mode = one.mode.map_or(asked.mode, mode);
    if let Some(both) = one.willing {
        (asked.ets_willing, asked.pfc_willing) = willing(both);
    }
    asked.recommendation = one.recommend.map_or(asked.recommendation, recommendation);
    asked.tie = one.tie.map_or(asked.tie, tie);
    let Some(values) = &one.pfc else { return Ok(said) };
    let mut pfc = PrioritySet::EMPTY;
    for (index, &value) in values.iter().enumerate() {
        match Priority::new(value).filter(|&priority| dcb.lossless.contains(priority)) {
            Some(priority) => pfc.insert(priority),
            None => {
                let what = format!("priority {value} is not lossless");
                let key = format!("{key}.pfc[{index}]");
                return Err(Problem::new(key, what, "priorities of lossless classes"));
            }
        }
    }
    said.pfc = Some(pfc);
    Ok(said)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::switch_config;

    const TEXT: &str = "name: a\ntopology: {line: {switches: 3}}\ndcb:\n  classes:\n  \
        - {priorities: [0, 1, 2, 5, 6], ets: 40}\n  \
        - {priorities: [3, 4], ets: 60, lossless: true}\n  - {priorities: [7]}\n";

    fn fabric(dcbx: &str) -> Fabric {
        crate::parse("a.yaml".as_ref(), &format!("{TEXT}{dcbx}")).unwrap()
    }

    #[test]
    fn what_the_file_says_reaches_each_switch() {
        let silent = fabric("");
        assert_eq!(switch_config(&silent, 0, 1, 7).node.dcbx, None);
        let fabric = fabric(
            "  dcbx:\n    {mode: auto, willing: ets, interval: 5s, pfc_classes: 2,\n    \
             applications: [{priority: 3, udp: 4791}],\n    \
             apart: [{switches: [s2], willing: both, pfc: [4], recommend: none}]}\n",
        );
        let [one, two] = [0, 1].map(|index| switch_config(&fabric, index, 1, 7).node);
        let (one, said) = (one.dcbx.unwrap(), two.dcbx.unwrap());
        assert_eq!((one.system_name.as_str(), one.lldp.tx_interval_secs), ("s1", 5));
        assert_eq!((one.dcbx.mode, one.dcbx.ieee.pfc_classes_max), (Mode::Auto, 2));
        assert_eq!((one.dcbx.ieee.ets_willing, one.dcbx.ieee.pfc_willing), (true, false));
        assert_eq!((one.dcbx.ieee.pfc.bits(), said.dcbx.ieee.pfc.bits()), (0x18, 0x10));
        assert_eq!(two.plane.dcb.unwrap().pfc.bits(), 0x10, "the plane begins as it says");
        assert!(said.dcbx.ieee.pfc_willing && said.dcbx.ieee.recommendation.is_none());
        assert_eq!(said.dcbx.ieee.applications[0].protocol, 4791);
    }

    #[test]
    fn what_sources_differ_on_can_be_said_either_way() {
        let said = |dcbx: &str| {
            let node = switch_config(&fabric(dcbx), 0, 1, 7).node;
            let DcbxConfig { ieee, cee, .. } = node.dcbx.unwrap().dcbx;
            (ieee.pfc_classes_zero, ieee.duplicates, ieee.tie, cee.groups_must_match)
        };
        let plain = (ZeroClasses::None, Duplicates::IgnoreKind, TieRule::LowerKeeps, false);
        assert_eq!(said("  dcbx: {}\n"), plain);
        let other = "  dcbx: {pfc_classes: 0, pfc_classes_zero: all, repeated: peer, tie: higher, \
                     groups_must_match: true}\n";
        let all = (ZeroClasses::All, Duplicates::IgnorePeer, TieRule::HigherKeeps, true);
        assert_eq!(said(other), all);
    }

    #[test]
    fn links_whose_ends_will_not_agree_are_found() {
        assert_eq!(disagreements(&fabric("  dcbx: {}\n")), []);
        assert_eq!(disagreements(&fabric("")), []);
        let apart = fabric("  dcbx: {apart: [{switches: [s3], pfc: [3]}]}\n");
        let told: Vec<_> = disagreements(&apart)
            .into_iter()
            .map(|(link, mismatch)| (link, mismatch.to_string()))
            .collect();
        assert_eq!(told, [(1, "PFC for 3,4 at one end and for 3 at the other".to_string())]);
        let follows = fabric("  dcbx: {apart: [{switches: [s3], willing: pfc, pfc: [3]}]}\n");
        assert_eq!(disagreements(&follows), []);
    }
}
