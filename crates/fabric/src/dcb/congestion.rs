//! Congestion notification and ECN: from the file to the configuration of switches.

use super::{Cn, Dcb, Defence};
use crate::error::Problem;
use crate::file;
use crate::model::Fabric;
use crate::names::priority;
use axon_plane::ecn::{EcnError, NotCapable, Profile, Red};
use axon_plane::notification::{CnConfig, EcnConfig};
use axon_plane::qcn::{
    Choice, CpConfig, CpError, CpInterpretations, DefenceConfig, DefenceMode, Defences, HalfPeriod,
    Increase, Rounding, RpInterpretations,
};
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet};
use axon_wire::{Bytes, Rate, Span};

const KEY: &str = "dcb.congestion_notification";

/// Reads `dcb.congestion_notification`. `pool` is the maximum memory of a queue of each priority,
/// `lossless` the priorities whose senders are paused, `has_dcbx` whether switches receive what
/// hosts advertise.
pub(super) fn congestion(
    asked: &file::CongestionNotification,
    pool: impl Fn(Priority) -> Bytes,
    lossless: PrioritySet,
    has_dcbx: bool,
) -> Result<Cn, Problem> {
    let priority = |key: &str, value: u8| priority(format!("{KEY}.{key}"), value);
    let mut cnpvs = PrioritySet::EMPTY;
    for &value in &asked.priorities {
        cnpvs.insert(priority("priorities", value)?);
    }
    if cnpvs.is_empty() || cnpvs == PrioritySet::ALL {
        let what = if cnpvs.is_empty() { "there is none" } else { "no priority is left outside" };
        return Err(Problem::new(format!("{KEY}.priorities"), what, "1 to 7 priorities"));
    }
    let alternate = asked.alternate.map(|value| priority("alternate", value)).transpose()?;
    if let Some(alternate) = alternate.filter(|alternate| cnpvs.contains(*alternate)) {
        let what = format!("priority {} is in the domain", alternate.value());
        return Err(Problem::new(format!("{KEY}.alternate"), what, "a priority outside"));
    }
    let point = point(asked)?;
    let small = cnpvs.iter().map(pool).min().filter(|pool| point.set_point >= *pool);
    if let Some(pool) = small {
        let what = format!("the pool of these priorities has {pool}");
        return Err(Problem::new(format!("{KEY}.set_point"), what, "less than the pool"));
    }
    let mode = |defence: &file::Defence| match defence {
        file::Defence::Auto => Defence::Auto,
        file::Defence::Disabled => Defence::Fixed(DefenceMode::Disabled),
        file::Defence::Edge => Defence::Fixed(DefenceMode::Edge),
        file::Defence::Interior => Defence::Fixed(DefenceMode::Interior),
        file::Defence::InteriorReady => Defence::Fixed(DefenceMode::InteriorReady),
    };
    let auto = asked.defence.iter().find(|(_, defence)| **defence == file::Defence::Auto);
    if let (Some((host, _)), false) = (auto, has_dcbx) {
        let what = "switches without dcbx receive no LLDP from hosts";
        return Err(Problem::new(format!("{KEY}.defence.{host}"), what, "another, or dcbx"));
    }
    let defence = asked.defence.iter().map(|(host, defence)| (host.clone(), mode(defence)));
    let cnm_priority = priority("cnm_priority", asked.cnm_priority)?;
    if lossless.contains(cnm_priority) {
        let what =
            format!("priority {} is lossless, so CNMs could be stopped", cnm_priority.value());
        let expected = "a priority of a lossy class";
        return Err(Problem::new(format!("{KEY}.cnm_priority"), what, expected));
    }
    let (defence, reaction) = (defence.collect(), reaction(asked.reaction));
    Ok(Cn { cnpvs, point, cnm_priority, reaction, defence, alternate })
}

fn reaction(asked: file::Reaction) -> RpInterpretations {
    RpInterpretations {
        increase: match asked.increase {
            file::Increase::Reaches => Increase::Reaches,
            file::Increase::Passes => Increase::Passes,
            file::Increase::Always => Increase::Always,
        },
        half_period: match asked.half_period {
            file::HalfPeriod::FromActive => HalfPeriod::FromActive,
            file::HalfPeriod::OnlyHyper => HalfPeriod::OnlyHyper,
        },
        reduction_log2: match asked.target_falls_to {
            file::TargetPart::Eighth => 3,
            file::TargetPart::Half => 1,
        },
    }
}

fn point(asked: &file::CongestionNotification) -> Result<CpConfig, Problem> {
    let rounding = match asked.rounding {
        file::Rounding::Down => Rounding::Down,
        file::Rounding::Nearest => Rounding::Nearest,
        file::Rounding::Up => Rounding::Up,
    };
    let point = CpConfig {
        set_point: asked.set_point.0,
        weight_log2: asked.weight_log2,
        sample_base: asked.sample.0,
        header_octets_min: asked.header_bytes,
        interpretations: CpInterpretations { rounding, ..CpInterpretations::default() },
        format: asked.cnm,
        ..CpConfig::default()
    };
    point.check().map_err(|error| {
        let (key, expected) = match error {
            CpError::SetPoint(_) => ("set_point", "100 bytes or more"),
            CpError::Weight(_) => ("weight_log2", "-10 to 10"),
            CpError::SampleBase(_) => ("sample", "10000 bytes or more"),
            CpError::HeaderOctets(_) => ("header_bytes", "0 to 64"),
            // These errors cannot occur in a file.
            CpError::Interval | CpError::Kilobyte(_) => ("sample", "another"),
        };
        Problem::new(format!("{KEY}.{key}"), error.to_string(), expected)
    })?;
    Ok(point)
}

/// Checks that every host with a configured defence exists.
pub(crate) fn check_hosts(fabric: &Fabric) -> Result<(), Problem> {
    let cn = fabric.dcb.as_ref().and_then(|dcb| dcb.cn.as_ref());
    let said = cn.into_iter().flat_map(|cn| cn.defence.keys());
    for name in said {
        if !fabric.hosts.iter().any(|host| host.name == *name) {
            let what = format!("there is no host {name}");
            return Err(Problem::new(format!("{KEY}.defence"), what, "names of hosts"));
        }
    }
    Ok(())
}

/// Reads `ecn` of class `index`.
pub(super) fn ecn(index: usize, class: &file::DcbClass) -> Result<Option<EcnConfig>, Problem> {
    let Some(asked) = &class.ecn else { return Ok(None) };
    let key = format!("dcb.classes[{index}].ecn");
    let profile = match (&asked.threshold, &asked.red) {
        (Some(threshold), None) => Profile::Threshold(threshold.0),
        (None, Some(red)) => Profile::Red(Red {
            queue_min: red.min.0,
            queue_max: red.max.0,
            permille_max: red.permille_max,
            weight_log2: red.weight_log2,
            gentle: red.gentle,
            drop_over_max: red.drop_over_max,
            // Set by port: see `at_rate`.
            frame_time: Span::from_micros(1),
        }),
        _ => {
            let what = "it has neither threshold nor red, or both";
            return Err(Problem::new(key, what, "one of threshold and red"));
        }
    };
    let not_capable = match asked.non_ect {
        None if class.lossless => NotCapable::Pass,
        Some(file::NonEct::Pass) => NotCapable::Pass,
        Some(file::NonEct::Drop) if class.lossless => {
            let what = "the class is lossless";
            return Err(Problem::new(format!("{key}.non_ect"), what, "pass, or a lossy class"));
        }
        None | Some(file::NonEct::Drop) => NotCapable::Drop,
    };
    if class.lossless && asked.red.as_ref().is_some_and(|red| red.drop_over_max) {
        let what = "the class is lossless";
        return Err(Problem::new(format!("{key}.red.drop_over_max"), what, "false"));
    }
    profile.check().map_err(|error| {
        let (field, expected) = match error {
            EcnError::Range(..) => ("min", "less than max"),
            EcnError::Permille(_) => ("permille_max", "1 to 1000"),
            EcnError::Weight(_) => ("weight_log2", "0 to 32"),
            // This error cannot occur in a file.
            EcnError::FrameTime => ("min", "another"),
        };
        Problem::new(format!("{key}.red.{field}"), error.to_string(), expected)
    })?;
    Ok(Some(EcnConfig { profile, not_capable }))
}

/// Returns the marker of a class at a port of `rate`: idle time is measured in transmission times
/// of a maximum frame.
fn at_rate(ecn: EcnConfig, rate: Rate, frame_bytes_max: u64) -> EcnConfig {
    let profile = match ecn.profile {
        Profile::Red(red) => {
            Profile::Red(Red { frame_time: rate.time_for(Bytes(frame_bytes_max)), ..red })
        }
        threshold => threshold,
    };
    EcnConfig { profile, ..ecn }
}

/// Returns the marking configuration of queues, by port and class.
pub(super) fn markers(
    fabric: &Fabric,
    dcb: &Dcb,
    rates: &[Rate],
) -> Vec<[Option<EcnConfig>; PRIORITIES]> {
    let frame_bytes_max = crate::model::frame_bytes_max(fabric) as u64;
    let port = |&rate: &Rate| dcb.ecn.map(|ecn| Some(at_rate(ecn?, rate, frame_bytes_max)));
    rates.iter().map(port).collect()
}

/// Returns the congestion points and defences of the ports of a switch.
pub(super) fn points(fabric: &Fabric, cn: &Cn, switch: usize, ports: u16) -> CnConfig {
    let mut config = CnConfig::new(ports, cn.cnpvs);
    config.points.fill(cn.point);
    config.cnm_priority = cn.cnm_priority;
    let defences = defences(fabric, cn, switch, ports);
    for (treatments, defence) in config.treatments.iter_mut().zip(defences) {
        if let Ok(defences) = Defences::new(defence) {
            *treatments = Priority::ALL.map(|priority| defences.treatment(priority));
        }
    }
    config
}

/// Returns the domain defence at each port of a switch.
pub(super) fn defences(fabric: &Fabric, cn: &Cn, switch: usize, ports: u16) -> Vec<DefenceConfig> {
    let auto = DefenceConfig { cnpvs: cn.cnpvs, ..DefenceConfig::default() };
    let fixed = |mode| {
        let alternate = |priority| cn.alternate.unwrap_or(auto.alternate(priority));
        let component = Priority::ALL.map(|priority| Choice::Admin(mode, alternate(priority)));
        DefenceConfig { component, ..auto }
    };
    let mut defences = vec![fixed(DefenceMode::InteriorReady); usize::from(ports)];
    for host in fabric.hosts.iter().filter(|host| host.switch == switch) {
        match cn.defence.get(&host.name) {
            None => {}
            Some(Defence::Auto) => defences[host.port.index()] = auto,
            Some(&Defence::Fixed(mode)) => defences[host.port.index()] = fixed(mode),
        }
    }
    defences
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::switch_config;
    use axon_plane::qcn::InputPriority;
    use axon_wire::cn::CnmFormat;
    use std::path::Path;

    const TEXT: &str = "name: a\ntopology: {ring: {switches: 3, hosts_per_switch: 1}}\n\
        links: {rate: 10Gbps}\ndcb:\n  classes:\n  - {priorities: [0, 1, 2, 5, 6], ets: 40, \
        ecn: {red: {min: 30kB, max: 90kB}}}\n  - {priorities: [3, 4], ets: 60, lossless: true, \
        ecn: {threshold: 50kB}}\n  - {priorities: [7]}\n  congestion_notification:\n    \
        priorities: [3, 4]\n    set_point: 50kB\n    rounding: nearest\n    \
        cnm: {queue_in_units: false}\n    defence: {h2: edge, h3: interior}\n";

    fn fabric(text: &str) -> Fabric {
        crate::parse(Path::new("a.yaml"), text).unwrap()
    }

    #[test]
    fn what_is_written_is_what_switches_are_configured_for() {
        let fabric = fabric(TEXT);
        let dcb = |switch| {
            let host = fabric.hosts.iter().find(|host| host.switch == switch).unwrap();
            let config = switch_config(&fabric, switch, Default::default(), 1);
            (config.plane.dcb.unwrap(), host.port.index())
        };
        for switch in 0..3 {
            let (dcb, port) = dcb(switch);
            let cn = dcb.cn.unwrap();
            assert_eq!((cn.cnpvs, cn.check()), (PrioritySet::from_bits(0x18), Ok(())));
            assert!(cn.points.iter().all(|point| point.set_point == Bytes(50_000)));
            assert!(cn.points.iter().all(|point| !point.format.queue_in_units));
            let three = cn.treatments[port][3];
            let expected = match switch {
                0 => (InputPriority::Kept, false),
                1 => (InputPriority::Moved(Priority::ALL[2]), true),
                _ => (InputPriority::Kept, true),
            };
            assert_eq!((three.input, three.strip_tag), expected, "h{}", switch + 1);
            let lossless = dcb.ecn[port][1].unwrap();
            assert_eq!(lossless.profile, Profile::Threshold(Bytes(50_000)));
            assert_eq!(lossless.not_capable, NotCapable::Pass);
            let Some(EcnConfig { profile: Profile::Red(red), not_capable }) = dcb.ecn[port][0]
            else {
                panic!("{:?}", dcb.ecn)
            };
            assert_eq!(not_capable, NotCapable::Drop);
            assert!(red.frame_time > Span::from_nanos(1_200), "{:?}", red.frame_time);
            assert!(red.frame_time < Span::from_nanos(1_300), "{:?}", red.frame_time);
        }
    }

    #[test]
    fn what_sources_differ_on_can_be_said_either_way() {
        let said = |more: &str| {
            let text = TEXT.replace("cnm: {queue_in_units: false}", more);
            let cn = fabric(&text).dcb.unwrap().cn.unwrap();
            (cn.point.format, cn.reaction)
        };
        assert_eq!(said("cnm_priority: 6"), (CnmFormat::default(), RpInterpretations::default()));
        let (format, reaction) = said(
            "cnm: {source_is_point: false, copies_tag: true, strict: true, \
             always_tagged: false}\n    \
             reaction: {increase: passes, half_period: only_hyper, target_falls_to: half}",
        );
        let wanted = CnmFormat {
            source_is_point: false,
            copies_tag: true,
            strict: true,
            always_tagged: false,
            ..CnmFormat::default()
        };
        let interpretations = RpInterpretations {
            increase: Increase::Passes,
            half_period: HalfPeriod::OnlyHyper,
            reduction_log2: 1,
        };
        assert_eq!((format, reaction), (wanted, interpretations));
    }

    #[test]
    fn what_is_not_said_is_not_there() {
        let plain = TEXT.split("  congestion_notification").next().unwrap();
        let fabric = fabric(plain);
        let config = switch_config(&fabric, 0, Default::default(), 1);
        assert_eq!(config.plane.dcb.unwrap().cn, None);
    }
}
