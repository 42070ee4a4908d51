//! What a fabric needs of the data plane of its switches, and whether one will do.

use crate::model::{Fabric, Network, OnFull};
use axon_node::{Capabilities, Feature, Needs};

/// Where switches run: not every runtime acts on every key of a fabric file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Runtime {
    /// The simulator, which gives switches the pipeline of `device`.
    Simulator,
    /// Real ports: `device` is ignored.
    Ports,
}

/// A data plane lacks what a fabric needs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the data plane `{dataplane}` lacks {}{}", listed(.missing), way_out(.instead))]
pub struct Lacking {
    /// Its name.
    pub dataplane: &'static str,
    /// What it lacks, each with the key of the fabric file that asks for it.
    pub missing: Vec<String>,
    /// Another data plane of the runtime that lacks nothing.
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

/// What the most demanding switch of a fabric needs in this runtime. Other networks than Axon need
/// nothing: their switches bring data planes of their own.
pub fn needs(fabric: &Fabric, runtime: Runtime) -> Needs {
    if fabric.network != Network::Axon {
        return Needs::default();
    }
    let mut features = Vec::new();
    let mut ask = |feature: Feature, key: String| features.push((feature, key));
    if let Some(dcb) = &fabric.dcb {
        ask(Feature::TrafficClasses, "dcb.classes".into());
        if let Some(priority) = dcb.lossless.iter().next() {
            let class = dcb.prio_tc[priority.index()].index();
            ask(Feature::LosslessClasses, format!("dcb.classes[{class}].lossless"));
        }
        if dcb.cn.is_some() {
            ask(Feature::CongestionNotification, "dcb.congestion_notification".into());
        }
        if let Some(class) = dcb.ecn.iter().position(Option::is_some) {
            ask(Feature::CongestionNotification, format!("dcb.classes[{class}].ecn"));
        }
    }
    if fabric.on_full != OnFull::Drop {
        ask(Feature::RefusedFrames, "links.on_full".into());
    }
    if fabric.self_congestion_pause {
        ask(Feature::SelfCongestionPause, "self_congestion_pause".into());
    }
    if fabric.device.cut_through && runtime == Runtime::Simulator {
        ask(Feature::CutThrough, "device".into());
    }
    Needs {
        ports: fabric.switches.iter().map(|switch| switch.ports).max().unwrap_or(0),
        frame_bytes_max: fabric.frame_bytes_max(),
        features,
    }
}

/// Refuses a data plane that lacks what the fabric needs. `others` are those that the operator can
/// choose instead.
///
/// # Errors
/// All that it lacks.
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
            features,
        }
    }

    fn asked(fabric: &Fabric, runtime: Runtime) -> Vec<(Feature, String)> {
        needs(fabric, runtime).features
    }

    #[test]
    fn each_feature_is_asked_for_by_the_key_that_needs_it() {
        assert_eq!(asked(&fabric(""), Runtime::Simulator), []);
        let keys = "links: {on_full: nack}\nself_congestion_pause: true\ndevice: axon-netfpga";
        let expected = [
            (Feature::RefusedFrames, "links.on_full".to_owned()),
            (Feature::SelfCongestionPause, "self_congestion_pause".to_owned()),
            (Feature::CutThrough, "device".to_owned()),
        ];
        assert_eq!(asked(&fabric(keys), Runtime::Simulator), expected);
        assert_eq!(asked(&fabric(keys), Runtime::Ports), expected[..2], "no port acts on device");
        let dcb = "dcb: {classes: [{priorities: [0, 1, 2, 4, 5, 6, 7], ets: 50}, \
                   {priorities: [3], ets: 50, lossless: true}], hosts: false}";
        let expected = [
            (Feature::TrafficClasses, "dcb.classes".to_owned()),
            (Feature::LosslessClasses, "dcb.classes[1].lossless".to_owned()),
        ];
        assert_eq!(asked(&fabric(dcb), Runtime::Ports), expected);
        assert_eq!(asked(&fabric("network: ethernet"), Runtime::Simulator), []);
    }

    #[test]
    fn a_refusal_names_all_that_is_missing_and_the_data_plane_that_has_it() {
        let fabric = fabric("links: {on_full: nack}\nmtu: 9000\ndevice: axon-netfpga");
        let plain = dataplane("plain", FeatureSet::EMPTY);
        let able = dataplane("able", FeatureSet::ALL);
        let small = Capabilities { frame_bytes_max: 1514, ..dataplane("small", FeatureSet::ALL) };
        let check = |has: &Capabilities, others: &[Capabilities]| {
            super::check(&fabric, Runtime::Simulator, has, others)
        };
        assert_eq!(check(&able, &[]), Ok(()));
        let refused = check(&plain, &[small.clone(), able.clone()]).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the data plane `plain` lacks NACK or congestion messages on a full output (asked for \
             by `links.on_full`) and cut-through (asked for by `device`); use --dataplane able"
        );
        let refused = check(&small, std::slice::from_ref(&plain)).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the data plane `small` lacks frames of 9014 bytes; its longest is 1514"
        );
    }
}
