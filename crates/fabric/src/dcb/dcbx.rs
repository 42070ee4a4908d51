//! DCBX: from the file to the configuration of each switch, and disagreements between the two ends
//! of a link.

use super::{Advertised, Dcb, Dcbx, FlowControl, applications, congestion, plane};
use crate::error::Problem;
use crate::file;
use crate::identity::switch_mac;
use crate::model::{End, Fabric};
use axon_dcbx::lldp::LldpConfig;
use axon_dcbx::{
    DcbxConfig, DcbxNodeConfig, DcbxSettings, Duplicates, Meeting, Mismatch, Mode, Recommendation,
    TieRule, ZeroClasses, meet, meeting,
};
use axon_plane::dcb::DcbConfig;
use axon_wire::{Priority, PrioritySet, Span};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Returns the LLDP and DCBX configuration of a switch, by index; `None` if it advertises nothing.
pub(crate) fn node_config(
    fabric: &Fabric,
    switch: usize,
    plane: &DcbConfig,
) -> Option<Box<DcbxNodeConfig>> {
    let dcb = fabric.dcb.as_ref()?;
    let dcbx = dcb.dcbx.as_ref()?;
    let ports = fabric.switches[switch].ports;
    let defences = dcb.cn.as_ref().map(|cn| congestion::defences(fabric, cn, switch, ports));
    Some(Box::new(DcbxNodeConfig {
        system_name: fabric.switches[switch].name.clone(),
        lldp: dcbx.lldp,
        dcbx: DcbxConfig::for_plane(plane, &dcbx.advertised(switch).asked),
        defences: defences.unwrap_or_default(),
    }))
}

/// Returns the disagreements between the two ends of each link between switches, with the index of
/// the link. Empty where switches have no DCBX.
pub fn disagreements(fabric: &Fabric) -> Vec<(usize, Mismatch)> {
    let mut found = Vec::new();
    for (link, met) in meetings(fabric) {
        found.extend(met.mismatches.iter().map(|mismatch| (link, mismatch.clone())));
    }
    found
}

/// Returns the ports at which lossless priorities have no PFC, in the order of switches and ports:
/// a sender there is never paused, and frames that do not fit are lost. Between switches, the PFC
/// is the one that both ends have agreed on; towards hosts, whose advertisement is not known in
/// advance, it is the one configured at the switch. Empty where switches have no DCBX, or flow
/// control other than PFC.
pub fn without_pfc(fabric: &Fabric) -> Vec<(End, PrioritySet)> {
    let dcb = fabric.dcb.as_deref().filter(|dcb| dcb.flow_control == FlowControl::Pfc);
    let Some((dcb, dcbx)) = dcb.and_then(|dcb| Some((dcb, dcb.dcbx.as_ref()?))) else {
        return Vec::new();
    };
    let links = meetings(fabric).into_iter().flat_map(|(index, met)| {
        let link = &fabric.links[index];
        let [one, other] = met.pfc;
        [link.a, link.b].map(|end| (end, one.intersection(other)))
    });
    let hosts = fabric.hosts.iter().map(|host| {
        let end = End { switch: host.switch, port: host.port };
        (end, dcbx.advertised(host.switch).pfc.unwrap_or(dcb.lossless))
    });
    let without = links.chain(hosts).map(|(end, pfc)| (end, dcb.lossless.difference(pfc)));
    let found: BTreeMap<End, PrioritySet> =
        without.filter(|(_, priorities)| !priorities.is_empty()).collect();
    found.into_iter().collect()
}

/// Returns the outcome of DCBX between the two ends of each link between switches, with the index
/// of the link; empty where switches have no DCBX.
fn meetings(fabric: &Fabric) -> Vec<(usize, Rc<Meeting>)> {
    let mut found = Vec::new();
    // Most switches have equal settings, and then the outcome depends on which has the lower
    // address.
    let mut known: BTreeMap<(usize, usize, bool), Option<Rc<Meeting>>> = BTreeMap::new();
    let dcb = fabric.dcb.as_deref().and_then(|dcb| Some((dcb, dcb.dcbx.as_ref()?)));
    let Some((dcb, dcbx)) = dcb else { return found };
    let station = |switch| {
        let mac = switch_mac(switch);
        let node = node_config(fabric, switch, &plane::config(fabric, dcb, switch, mac))?;
        Some((mac, node))
    };
    let kind = |switch| if dcbx.overrides.contains_key(&switch) { switch + 1 } else { 0 };
    for (index, link) in fabric.links.iter().enumerate() {
        let [one, other] = [link.a.switch, link.b.switch];
        let key = (kind(one), kind(other), one < other);
        let met = known.entry(key).or_insert_with(|| {
            let ends = [station(one)?, station(other)?];
            let ends =
                ends.each_ref().map(|(mac, node)| meeting::End { mac: *mac, config: &node.dcbx });
            Some(Rc::new(meet(ends)))
        });
        found.extend(met.clone().map(|met| (index, met)));
    }
    found
}

/// Reads `dcb.dcbx`, once the switches have their names. PFC can be overridden only for
/// priorities that are lossless.
pub(crate) fn resolve(file: &file::Dcb, fabric: &mut Fabric) -> Result<(), Problem> {
    let (Some(asked), Some(dcb)) = (&file.dcbx, &fabric.dcb) else { return Ok(()) };
    let mut common = Advertised { asked: common(asked)?, pfc: None };
    let all = applications::all(&dcb.applications, &asked.applications)?;
    let fit = |mode, says: &str| applications::check(&all, dcb.applications.len(), (mode, says));
    fit(common.asked.mode, "dcb.dcbx.mode")?;
    common.asked.applications = all.clone();
    let mut overrides = BTreeMap::new();
    for (index, one) in asked.overrides.iter().enumerate() {
        let key = format!("dcb.dcbx.overrides[{index}]");
        let said = differing(&common, one, dcb, &key)?;
        fit(said.asked.mode, &format!("{key}.mode"))?;
        for (number, name) in one.switches.iter().enumerate() {
            let switch = crate::names::switch_index(fabric, name).ok_or_else(|| {
                let what = format!("there is no switch {name}");
                Problem::new(format!("{key}.switches[{number}]"), what, "the name of a switch")
            })?;
            overrides.insert(switch, said.clone());
        }
    }
    let lldp = lldp(asked)?;
    if let Some(dcb) = &mut fabric.dcb {
        dcb.dcbx = Some(Box::new(Dcbx { lldp, common, overrides }));
    }
    Ok(())
}

fn lldp(asked: &file::Dcbx) -> Result<LldpConfig, Problem> {
    let Some(interval) = asked.interval else { return Ok(LldpConfig::default()) };
    let secs = interval.0.ticks() / Span::from_secs(1).ticks();
    if Span::from_secs(secs) != interval.0 || !(1..=3600).contains(&secs) {
        return Err(Problem::range(
            "dcb.dcbx.interval",
            crate::units::span_text(interval.0),
            "1s to 1h, in whole seconds",
        ));
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

/// Returns whether the classes, and whether PFC, are adopted from neighbours.
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

fn common(asked: &file::Dcbx) -> Result<DcbxSettings, Problem> {
    let plain = DcbxSettings::default();
    let pfc_classes_max = asked.pfc_classes.unwrap_or(plain.pfc_classes_max);
    if pfc_classes_max > plain.pfc_classes_max {
        let what = format!("{pfc_classes_max} is more than there are");
        return Err(Problem::new("dcb.dcbx.pfc_classes", what, "0 to 8"));
    }
    let (ets_willing, pfc_willing) = willing(asked.willing);
    Ok(DcbxSettings {
        mode: mode(asked.mode),
        ets_willing,
        pfc_willing,
        recommendation: recommendation(asked.recommend),
        pfc_classes_max,
        pfc_classes_zero: match asked.pfc_classes_zero {
            file::ZeroClasses::None => ZeroClasses::None,
            file::ZeroClasses::All => ZeroClasses::All,
        },
        tie: tie(asked.tie),
        duplicates: match asked.repeated {
            file::Repeated::Kind => Duplicates::IgnoreKind,
            file::Repeated::Peer => Duplicates::IgnorePeer,
        },
        groups_must_match: asked.groups_must_match,
        ..plain
    })
}

/// Returns the advertised settings of a switch with an override.
fn differing(
    common: &Advertised,
    one: &file::DcbxOverride,
    dcb: &Dcb,
    key: &str,
) -> Result<Advertised, Problem> {
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
    let differ = |group: &&Vec<Priority>| {
        let with_pfc = group.iter().filter(|&&layer| pfc.contains(layer)).count();
        (1..group.len()).contains(&with_pfc)
    };
    if let Some(group) = dcb.layers.iter().find(differ) {
        let group: PrioritySet = group.iter().copied().collect();
        let (some, others) = (group.intersection(pfc), group.difference(pfc));
        let what = format!("{some} has PFC and {others} has not, and hosts know them as one");
        let key = format!("{key}.pfc");
        return Err(Problem::new(key, what, "all priorities of a list of dcb.layers, or none"));
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
        assert_eq!(switch_config(&silent, 0, 1, 7).control.dcbx, None);
        let fabric = fabric(
            "  dcbx:\n    {mode: auto, willing: ets, interval: 5s, pfc_classes: 2,\n    \
             applications: [{priority: 3, udp: 4791}],\n    \
             overrides: [{switches: [s2], willing: both, pfc: [4], recommend: none}]}\n",
        );
        let [one, two] = [0, 1].map(|index| switch_config(&fabric, index, 1, 7));
        let (one, said) = (one.control.dcbx.unwrap(), two.control.dcbx.unwrap());
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
            let node = switch_config(&fabric(dcbx), 0, 1, 7).control;
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
        let overridden = fabric("  dcbx: {overrides: [{switches: [s3], pfc: [3]}]}\n");
        let found: Vec<_> = disagreements(&overridden)
            .into_iter()
            .map(|(link, mismatch)| (link, mismatch.to_string()))
            .collect();
        assert_eq!(found, [(1, "PFC for 3,4 at one end and for 3 at the other".to_string())]);
        let follows = fabric("  dcbx: {overrides: [{switches: [s3], willing: pfc, pfc: [3]}]}\n");
        assert_eq!(disagreements(&follows), []);
    }

    #[test]
    fn lossless_priorities_without_pfc_are_found_at_every_port_whether_ends_agree_or_not() {
        let found = |dcbx: &str| {
            let fabric = fabric(dcbx);
            let name = |end: End| format!("{}-{}", fabric.switches[end.switch].name, end.port);
            let found = without_pfc(&fabric).into_iter();
            found.map(|(end, without)| (name(end), without.bits())).collect::<Vec<_>>()
        };
        let four = |ports: &[&str]| -> Vec<_> {
            ports.iter().map(|port| (port.to_string(), 0x10)).collect()
        };
        assert_eq!(found(""), []);
        assert_eq!(found("  dcbx: {}\n"), []);
        // Both ends agree, yet no sender is ever paused in priority 4.
        let all = "  dcbx: {overrides: [{switches: [s1, s2, s3], pfc: [3]}]}\n";
        assert_eq!(disagreements(&fabric(all)), []);
        assert_eq!(found(all).len(), 4 + 3, "four ends of links, and three hosts");
        // The second switch follows its neighbour, and has no neighbour to follow at its host.
        let willing = "  dcbx: {overrides: [{switches: [s3], willing: pfc, pfc: [3]}]}\n";
        assert_eq!(disagreements(&fabric(willing)), []);
        assert_eq!(found(willing), four(&["s3-p0"]));
    }
}
