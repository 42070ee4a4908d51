//! Features that a fabric needs of the data plane of its switches, and the check of a data plane.

use crate::dcb::Dcb;
use crate::model::{End, Fabric, FaultKind, Link, Network, OnFull};
use crate::names::port_name;
use axon_node::{Capabilities, Feature, Need, Needs};
use axon_wire::{PortNo, Priority, Rate};
use std::collections::BTreeSet;

/// Runtime of the switches: not every runtime acts on every key of a fabric file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Runtime {
    /// The simulator, in which switches have the pipeline of `device`.
    Simulator,
    /// Real ports: `device` is ignored.
    Ports,
}

/// Error: a data plane lacks features that a fabric needs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the data plane `{dataplane}` lacks {}{}", listed(.missing), way_out(.instead))]
pub struct Lacking {
    /// Name of the data plane.
    pub dataplane: &'static str,
    /// Missing features, each with the key of the fabric file that needs it.
    pub missing: Vec<String>,
    /// Another data plane of the runtime that has all features needed.
    pub instead: Option<&'static str>,
}

fn listed(missing: &[String]) -> String {
    match missing {
        [others @ .., last] if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => missing.concat(),
    }
}

fn way_out(instead: &Option<&str>) -> String {
    instead.map_or_else(String::new, |name| format!("; use --dataplane {name}"))
}

/// Returns the needs of the most demanding switch of a fabric in this runtime. Networks other than
/// Axon have none: their switches bring data planes of their own.
pub fn needs(fabric: &Fabric, runtime: Runtime) -> Needs {
    needs_where(fabric, runtime, |_| true)
}

/// Returns the needs of one switch, by its index; see [`needs`].
pub fn needs_of(fabric: &Fabric, switch: usize, runtime: Runtime) -> Needs {
    needs_where(fabric, runtime, |index| index == switch)
}

/// Returns what a data plane lacks for one switch, by its index, each with the key that needs it.
pub fn missing_at(
    fabric: &Fabric,
    switch: usize,
    runtime: Runtime,
    has: &Capabilities,
) -> Vec<String> {
    let mut missing = has.missing(&needs_of(fabric, switch, runtime));
    let is_axon = fabric.network == Network::Axon;
    if is_axon && fabric.cam.punts_resolution() && has.masqueraded_per_port_max == 0 {
        missing.push("masqueraded addresses (asked for by `cam.entries`)".into());
    }
    missing
}

fn needs_where(fabric: &Fabric, runtime: Runtime, of: impl Fn(usize) -> bool) -> Needs {
    if fabric.network != Network::Axon {
        return Needs::default();
    }
    let dcb = fabric.dcb.as_deref();
    let switches = fabric.switches.iter().enumerate().filter(|(index, _)| of(*index));
    let ports = switches.map(|(_, switch)| switch.ports).max();
    Needs {
        ports: ports.map(|amount| Need { amount, key: "topology".into() }),
        frame_bytes_max: Some(Need {
            amount: crate::model::frame_bytes_max(fabric),
            key: "mtu".into(),
        }),
        port_rate_max: port_rate_max(fabric, runtime, &of),
        queues_per_port: dcb.map(|dcb| Need {
            amount: dcb.schedule.classes.len() as u8,
            key: "dcb.classes".into(),
        }),
        lossless_classes: dcb.and_then(lossless_classes),
        features: features(fabric, runtime, &of),
    }
}

/// Returns the rate of the fastest link. In the simulator, a fault may raise it.
fn port_rate_max(
    fabric: &Fabric,
    runtime: Runtime,
    of: &impl Fn(usize) -> bool,
) -> Option<Need<Rate>> {
    let host_ports = fabric.hosts.iter().map(|host| (host.wire.rate, host.switch, host.port));
    let ends = |link: &Link| [link.b, link.a].map(|end| (link.wire.rate, end.switch, end.port));
    let links = fabric.links.iter().flat_map(ends);
    let controller = &fabric.controller;
    let controller_port = (controller.wire.rate, controller.at.switch, controller.at.port);
    let all = host_ports.chain(links).chain([controller_port]);
    let all: Vec<(Rate, usize, PortNo)> = all.filter(|(_, switch, _)| of(*switch)).collect();
    let &(fastest, switch, port) = all.iter().max_by_key(|(rate, ..)| *rate)?;
    let faults = fabric.faults.iter().chain(&fabric.faults_after_start);
    let changed = faults.filter_map(|fault| match fault.what {
        FaultKind::Rate(_, rate) if runtime == Runtime::Simulator => Some(rate),
        _ => None,
    });
    if let Some(amount) = changed.max().filter(|rate| *rate > fastest) {
        return Some(Need { amount, key: "faults".into() });
    }
    let key = if all.iter().all(|(rate, ..)| *rate == fastest) {
        "links.rate".into()
    } else {
        format!("rate of {}", port_name(&fabric.switches[switch].name, port))
    };
    Some(Need { amount: fastest, key })
}

/// Returns the number of lossless classes, with the key of the first; `None` if there are none.
fn lossless_classes(dcb: &Dcb) -> Option<Need<u8>> {
    let classes: BTreeSet<usize> =
        dcb.lossless.iter().map(|priority| dcb.prio_tc[priority.index()].index()).collect();
    let first = classes.first()?;
    Some(Need { amount: classes.len() as u8, key: format!("dcb.classes[{first}].lossless") })
}

fn features(
    fabric: &Fabric,
    runtime: Runtime,
    of: &impl Fn(usize) -> bool,
) -> Vec<(Feature, String)> {
    let mut features = Vec::new();
    let mut ask = |feature: Feature, key: String| features.push((feature, key));
    if let Some(dcb) = &fabric.dcb {
        ask(Feature::TrafficClasses, "dcb.classes".into());
        if dcb.cn.is_some() {
            ask(Feature::CongestionNotification, "dcb.congestion_notification".into());
        }
        if let Some(class) = dcb.ecn.iter().position(Option::is_some) {
            ask(Feature::CongestionNotification, format!("dcb.classes[{class}].ecn"));
        }
    }
    let hosts = fabric.hosts.iter().filter(|host| of(host.switch));
    let hosts = hosts.map(|host| End { switch: host.switch, port: host.port });
    let tables = hosts.filter_map(|at| crate::ports::host_priorities(fabric, at));
    if tables.into_iter().any(|priorities| priorities.table() != Priority::ALL) {
        let policies = &fabric.port_policies;
        let says = policies.priorities.is_some()
            || policies.overrides.values().any(|trust| trust.priorities.is_some());
        let key = if says { "ports.priorities" } else { "dcb.classes" };
        ask(Feature::PriorityRegeneration, key.into());
    }
    if !fabric.vlans.is_empty() {
        ask(Feature::Vlans, "vlans".into());
    }
    if let Some(key) = crate::isolation::by_source_key(fabric) {
        ask(Feature::RoutesBySource, key.into());
    }
    if fabric.on_full != OnFull::Drop {
        ask(Feature::RefusedFrames, "links.on_full".into());
    }
    if fabric.self_congestion_pause {
        ask(Feature::SelfCongestionPause, "self_congestion_pause".into());
    }
    match runtime {
        Runtime::Simulator if fabric.device.cut_through => {
            ask(Feature::CutThrough, "device".into());
        }
        // A simulated link paces its ends; a NIC sends at full speed.
        Runtime::Simulator => {}
        Runtime::Ports => {
            fabric.rate_key.iter().for_each(|key| ask(Feature::Shaping, key.clone()));
        }
    }
    features
}

/// Refuses a data plane that lacks what the fabric needs. `others` are the data planes that the
/// operator can choose instead.
///
/// # Errors
/// All missing features.
pub fn check(
    fabric: &Fabric,
    runtime: Runtime,
    has: &Capabilities,
    others: &[Capabilities],
) -> Result<(), Lacking> {
    let needs = needs(fabric, runtime);
    let missing = has.missing(&needs);
    if missing.is_empty() {
        return Ok(());
    }
    let instead = others.iter().find(|other| other.missing(&needs).is_empty());
    Err(Lacking { dataplane: has.name, missing, instead: instead.map(|other| other.name) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_node::FeatureSet;
    use axon_wire::HopWidth;

    /// Three classes, of which two are lossless; one of them has two priorities.
    const DCB: &str = "dcb: {classes: [{priorities: [0, 1, 2, 6, 7], ets: 50}, \
                       {priorities: [3, 4], ets: 25, lossless: true}, \
                       {priorities: [5], ets: 25, lossless: true}], hosts: false}\n";

    fn fabric(more: &str) -> Fabric {
        let text = format!("name: a\ntopology: {{ring: {{switches: 3}}}}\n{more}");
        crate::parse("a.yaml".as_ref(), &text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    fn dataplane(name: &'static str, features: FeatureSet) -> Capabilities {
        Capabilities {
            name,
            ports: 255,
            hop_width: HopWidth::Eight,
            frame_bytes_max: 9018,
            route_bytes_max: 128,
            routes_per_port_max: 16,
            masqueraded_per_port_max: 0,
            port_rate_max: Rate::FASTEST,
            queues_per_port: 8,
            lossless_classes: 8,
            features,
        }
    }

    fn asked(fabric: &Fabric, runtime: Runtime) -> Vec<(Feature, String)> {
        needs(fabric, runtime).features
    }

    #[test]
    fn each_feature_is_asked_for_by_the_key_that_needs_it() {
        assert_eq!(asked(&fabric(""), Runtime::Simulator), []);
        let keys = "links: {on_full: nack, rate: 1Gbps}\nself_congestion_pause: true\n\
                    device: axon-netfpga";
        let both = [
            (Feature::RefusedFrames, "links.on_full".to_owned()),
            (Feature::SelfCongestionPause, "self_congestion_pause".to_owned()),
        ];
        let with = |more: Feature, key: &str| [&both[..], &[(more, key.to_owned())]].concat();
        let simulated = with(Feature::CutThrough, "device");
        assert_eq!(asked(&fabric(keys), Runtime::Simulator), simulated);
        let real = with(Feature::Shaping, "links.rate");
        assert_eq!(asked(&fabric(keys), Runtime::Ports), real, "no port acts on device");
        let dcb = fabric(DCB);
        let classes = [(Feature::TrafficClasses, "dcb.classes".to_owned())];
        assert_eq!(asked(&dcb, Runtime::Simulator), classes);
        assert_eq!(needs(&fabric("network: ethernet"), Runtime::Simulator), Needs::default());
    }

    #[test]
    fn shaping_is_asked_for_where_the_file_sets_a_rate_and_by_that_key() {
        let one = "{between: [s1, s2], rate: 1Mbps}";
        let rates = [
            (
                format!("overrides: [{{switches: [s1], dataplane: full}}, {one}]"),
                "overrides[1].rate",
            ),
            (format!("links: {{rate: 1Gbps}}\noverrides: [{one}]"), "links.rate"),
        ];
        for (more, key) in rates {
            let asked = asked(&fabric(&more), Runtime::Ports);
            assert_eq!(asked, [(Feature::Shaping, key.to_owned())]);
        }
        assert_eq!(asked(&fabric(""), Runtime::Ports), []);
        let listed = "name: a\ntopology:\n  listed:\n    switches: [s1, s2]\n    \
                      hosts: {h1: s1}\n    links: [{between: [s1, s2], rate: 1Mbps}]\n";
        let listed = crate::parse("a.yaml".as_ref(), listed).unwrap();
        assert_eq!(listed.rate_key.as_deref(), Some("topology.listed.links[0].rate"));
    }

    #[test]
    fn one_switch_needs_what_its_own_ports_are() {
        let fabric = fabric("overrides: [{between: [s2, s3], rate: 40Gbps}]");
        let rate = |switch| needs_of(&fabric, switch, Runtime::Ports).port_rate_max.unwrap().amount;
        assert_eq!([rate(0), rate(1), rate(2)], [1, 40, 40].map(Rate::gbps));
        let ports = |switch| needs_of(&fabric, switch, Runtime::Ports).ports.unwrap().amount;
        assert_eq!([ports(0), ports(1)], [4, 3], "the controller is at the first");
    }

    #[test]
    fn classes_are_counted_and_those_that_are_lossless_once_each() {
        let none = needs(&fabric(""), Runtime::Ports);
        assert_eq!((none.queues_per_port, none.lossless_classes), (None, None));
        let asked = needs(&fabric(DCB), Runtime::Ports);
        let classes = Need { amount: 3, key: "dcb.classes".into() };
        assert_eq!(asked.queues_per_port, Some(classes));
        let lossless = Need { amount: 2, key: "dcb.classes[1].lossless".into() };
        assert_eq!(asked.lossless_classes, Some(lossless), "3 and 4 are in one class");
    }

    #[test]
    fn tables_of_few_entries_ask_for_masqueraded_addresses() {
        let fabric = fabric("cam: {entries: 4}");
        let without = dataplane("plain", FeatureSet::ALL);
        let missing = |has: &Capabilities| missing_at(&fabric, 0, Runtime::Ports, has);
        assert_eq!(missing(&without), ["masqueraded addresses (asked for by `cam.entries`)"]);
        let with = Capabilities { masqueraded_per_port_max: 1, ..without };
        assert_eq!(missing(&with), [""; 0]);
    }

    #[test]
    fn the_fastest_link_is_named_by_what_makes_it_so() {
        let need = |more: &str, runtime| {
            let need = needs(&fabric(more), runtime).port_rate_max.unwrap();
            (need.amount, need.key)
        };
        let all = "links: {rate: 25Gbps}\n";
        let one = "links: {rate: 25Gbps}\noverrides: [{between: [s2, s3], rate: 40Gbps}]\n";
        let later = format!("{one}faults: [{{at: 1s, rate: 100Gbps, between: [s1, s2]}}]\n");
        for runtime in [Runtime::Simulator, Runtime::Ports] {
            assert_eq!(need(all, runtime), (Rate::gbps(25), "links.rate".into()));
            assert_eq!(need(one, runtime).0, Rate::gbps(40));
            assert!(need(one, runtime).1.starts_with("rate of s2-p"), "{runtime:?}");
        }
        assert_eq!(need(&later, Runtime::Simulator), (Rate::gbps(100), "faults".into()));
        assert_eq!(need(&later, Runtime::Ports).0, Rate::gbps(40), "a lab has no faults");
        let slower = format!("{all}faults: [{{at: 1s, rate: 1Gbps, between: [s1, s2]}}]\n");
        assert_eq!(need(&slower, Runtime::Simulator), (Rate::gbps(25), "links.rate".into()));
    }

    #[test]
    fn each_amount_that_a_data_plane_is_short_of_is_refused_with_its_key() {
        let text = format!("mtu: 9000\nlinks: {{rate: 25Gbps}}\n{DCB}");
        let able = dataplane("small", FeatureSet::ALL);
        let refusals = [
            (
                Capabilities { ports: 2, ..able.clone() },
                "4 ports (asked for by `topology`; it has 2)",
            ),
            (
                Capabilities { frame_bytes_max: 1514, ..able.clone() },
                "frames of 9018 bytes (asked for by `mtu`; it has 1514)",
            ),
            (
                Capabilities { port_rate_max: Rate::gbps(10), ..able.clone() },
                "links of 25 Gb/s (asked for by `links.rate`; it has 10 Gb/s)",
            ),
            (
                Capabilities { queues_per_port: 2, ..able.clone() },
                "3 queues per port (asked for by `dcb.classes`; it has 2)",
            ),
            (
                Capabilities { lossless_classes: 1, ..able.clone() },
                "2 lossless classes (asked for by `dcb.classes[1].lossless`; it has 1)",
            ),
        ];
        let fabric = fabric(&text);
        for runtime in [Runtime::Simulator, Runtime::Ports] {
            assert_eq!(check(&fabric, runtime, &able, &[]), Ok(()));
            for (small, missing) in &refusals {
                let refused = check(&fabric, runtime, small, &[]).unwrap_err();
                let says = format!("the data plane `small` lacks {missing}");
                assert_eq!(refused.to_string(), says);
            }
        }
    }

    #[test]
    fn a_refusal_names_all_that_is_missing_and_the_data_plane_that_has_it() {
        let fabric = fabric("links: {on_full: nack}\nmtu: 9000\ndevice: axon-netfpga");
        let plain = dataplane("plain", FeatureSet::EMPTY);
        let able = dataplane("able", FeatureSet::ALL);
        let small = Capabilities { frame_bytes_max: 1514, ..dataplane("small", FeatureSet::ALL) };
        let refused = check(&fabric, Runtime::Simulator, &plain, &[small, able]).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the data plane `plain` lacks NACK or congestion messages on a full output (asked for \
             by `links.on_full`) and cut-through (asked for by `device`); use --dataplane able"
        );
    }
}
