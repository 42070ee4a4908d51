//! Selects the data plane that carries the frames of a switch.
//!
//! The fabric file names a data plane for the switch, or leaves the choice open. A named data plane
//! must support everything that the file needs from this switch, and this machine must allow it.
//! Otherwise the file is refused, and the error gives the key that names the data plane. An open
//! choice selects the fastest suitable data plane. That is tc if possible, and otherwise the
//! process of the switch, which supports everything. XDP is never selected automatically, because
//! it does not enforce rates.

use crate::dataplane::{capabilities, in_gates, in_kernel, on_pipeline};
use crate::kernel::Hook;
use crate::machine::Machine;
use axon_fabric::Problem;
use axon_fabric::model::{DataplaneKind, Fabric, Network};
use axon_fabric::needs::{Runtime, missing_at};
use axon_node::Capabilities;
use axon_rtl::Model;
use axon_wire::HopWidth;
use serde::{Deserialize, Serialize};

/// Selected data plane of a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataplaneChoice {
    /// Data plane that carries the frames, never `Auto`.
    pub carrier: DataplaneKind,
    /// Reason for the selection, in a sentence.
    pub why: String,
}

/// Selects the data plane for the switch with this index, on this machine.
///
/// # Errors
/// The file names a data plane that lacks a capability that the file needs, or that this machine
/// does not allow. The error gives the key that names the data plane.
pub fn choose(
    fabric: &Fabric,
    switch: usize,
    machine: &Machine,
) -> Result<DataplaneChoice, Problem> {
    let (carrier, key) = axon_fabric::dataplane::of_switch(fabric, switch);
    if fabric.network == Network::Program {
        return programmable(carrier, key);
    }
    if carrier == DataplaneKind::Auto {
        return automatic(fabric, switch, machine);
    }
    let asked = carrier.setting();
    let refused = |what: String, expected: String| Err(Problem { key: key.into(), what, expected });
    let missing = lacking(fabric, switch, carrier);
    if !missing.is_empty() {
        let what = format!("the data plane `{asked}` lacks {}", missing.join(", "));
        let fits = |&other: &DataplaneKind| {
            lacking(fabric, switch, other).is_empty()
                && refusal(machine, other, fabric.hop_width).is_none()
        };
        let mut others = [DataplaneKind::Tc, DataplaneKind::Software].into_iter();
        let expected = others.find(fits).map_or("a file that needs less", DataplaneKind::setting);
        return refused(what, expected.into());
    }
    if let Some(lacks) = refusal(machine, carrier, fabric.hop_width) {
        return refused(format!("no data plane `{asked}`: {lacks}"), "full, or auto".into());
    }
    Ok(DataplaneChoice { carrier, why: format!("asked for by `{key}`") })
}

/// Returns the data plane of a programmable switch, which always runs in its process.
fn programmable(asked: DataplaneKind, key: &str) -> Result<DataplaneChoice, Problem> {
    let why = match asked {
        DataplaneKind::Auto => "the tables of a programmable switch are in its process".into(),
        DataplaneKind::Pipeline => format!("asked for by `{key}`"),
        _ => {
            let asked = asked.setting();
            let what = format!("the data plane `{asked}` has no tables for a program to fill");
            return Err(Problem { key: key.into(), what, expected: "pipeline, or auto".into() });
        }
    };
    Ok(DataplaneChoice { carrier: DataplaneKind::Pipeline, why })
}

/// Checks that a replay has the data plane of a recorded switch.
///
/// # Errors
/// The switch is in gates. The error gives the key that names the data plane.
pub fn check_recorded(
    fabric: &Fabric,
    switch: usize,
    choice: &DataplaneChoice,
) -> Result<(), Problem> {
    if choice.carrier == DataplaneKind::Rtl {
        let key = axon_fabric::dataplane::of_switch(fabric, switch).1.into();
        let what = "a recording (--record) is replayed without gates".into();
        return Err(Problem { key, what, expected: "full, or auto".into() });
    }
    Ok(())
}

/// Returns the reason why this machine does not allow a data plane, if any.
fn refusal(machine: &Machine, carrier: DataplaneKind, hop_width: HopWidth) -> Option<String> {
    if carrier == DataplaneKind::Rtl {
        return Model::load(hop_width).err().map(|error| error.to_string());
    }
    Hook::of(carrier).and_then(|hook| machine.lacks(hook)).map(str::to_owned)
}

/// Selects the fastest suitable data plane.
fn automatic(
    fabric: &Fabric,
    switch: usize,
    machine: &Machine,
) -> Result<DataplaneChoice, Problem> {
    let missing = lacking(fabric, switch, DataplaneKind::Tc);
    let (carrier, why) = if !missing.is_empty() {
        (DataplaneKind::Software, format!("tc lacks {}", missing.join(", ")))
    } else if let Some(lacks) = machine.lacks(Hook::Tc) {
        (DataplaneKind::Software, lacks.into())
    } else {
        (DataplaneKind::Tc, "the fastest that has all that the file needs".into())
    };
    match lacking(fabric, switch, carrier) {
        missing if missing.is_empty() => Ok(DataplaneChoice { carrier, why }),
        missing => {
            let what = format!("the data plane `full` lacks {}", missing.join(", "));
            let expected = "a file that needs less".into();
            Err(Problem {
                key: axon_fabric::dataplane::of_switch(fabric, switch).1.into(),
                what,
                expected,
            })
        }
    }
}

fn lacking(fabric: &Fabric, switch: usize, carrier: DataplaneKind) -> Vec<String> {
    let has = |has: Capabilities| missing_at(fabric, switch, Runtime::Ports, &has);
    on_ports(carrier, fabric.hop_width).map_or_else(|| vec!["real ports".into()], has)
}

/// Returns the capabilities of a data plane on real ports; `None` if it has none.
fn on_ports(carrier: DataplaneKind, hop_width: HopWidth) -> Option<Capabilities> {
    let software = capabilities(hop_width);
    match carrier {
        DataplaneKind::Tc => Some(in_kernel(Hook::Tc, software)),
        DataplaneKind::Xdp => Some(in_kernel(Hook::Xdp, software)),
        DataplaneKind::Software => Some(software),
        DataplaneKind::Pipeline => Some(on_pipeline(hop_width, software)),
        DataplaneKind::Rtl => Some(in_gates(hop_width)),
        DataplaneKind::Auto | DataplaneKind::Reference | DataplaneKind::Refusing => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DCB: &str = "dcb: {classes: [{priorities: [0, 1, 2, 3, 4, 5, 6, 7]}]}\n";
    const RATE: &str = "links: {rate: 200Mbps}\n";
    const NONE: &str = "";

    fn fabric(more: &str) -> Fabric {
        let text = format!("name: a\ntopology: {{ring: {{switches: 3}}}}\n{more}");
        axon_fabric::parse("a.yaml".as_ref(), &text).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn the_choice_follows_from_file_and_machine() {
        use DataplaneKind::{Pipeline, Software as Full, Tc, Xdp};
        let (able, none) = (&Machine::ABLE, &Machine::without("as the test says"));
        let only_xdp = &Machine { no_tc: Some("no TCX".into()), no_xdp: None };
        let table: [(&str, &str, &Machine, DataplaneKind, &str); 12] = [
            (NONE, NONE, able, Tc, "the fastest"),
            (NONE, RATE, able, Tc, "the fastest"),
            (NONE, NONE, none, Full, "as the test says"),
            (NONE, NONE, only_xdp, Full, "no TCX"),
            (NONE, DCB, able, Full, "traffic classes (asked for by `dcb.classes`)"),
            (NONE, "self_congestion_pause: true", able, Full, "`self_congestion_pause`"),
            (NONE, "links: {on_full: nack}", able, Full, "`links.on_full`"),
            ("tc", RATE, able, Tc, "asked for by `dataplane`"),
            ("xdp", NONE, only_xdp, Xdp, "`dataplane`"),
            ("full", DCB, none, Full, "asked for by `dataplane`"),
            ("pipeline", DCB, none, Pipeline, "asked for by `dataplane`"),
            ("auto", DCB, none, Full, "tc lacks"),
        ];
        for (asked, more, machine, carrier, why) in table {
            let key =
                if asked.is_empty() { String::new() } else { format!("dataplane: {asked}\n") };
            let choice = choose(&fabric(&format!("{key}{more}")), 1, machine).unwrap();
            assert_eq!(choice.carrier, carrier, "{asked} {more} {machine:?}: {choice:?}");
            assert!(choice.why.contains(why), "{asked} {more} {machine:?}: {choice:?}");
        }
    }

    #[test]
    fn a_data_plane_that_is_asked_for_and_does_not_fit_is_refused_by_its_key() {
        let (able, none) = (&Machine::ABLE, &Machine::without("as the test says"));
        let table = [
            (
                "dataplane: tc",
                DCB,
                able,
                "dataplane: the data plane `tc` lacks traffic classes \
             (asked for by `dcb.classes`); expected full",
            ),
            (
                "dataplane: xdp",
                RATE,
                able,
                "dataplane: the data plane `xdp` lacks shaping to the \
             rate of a link (asked for by `links.rate`); expected tc",
            ),
            (
                "dataplane: xdp",
                RATE,
                none,
                "dataplane: the data plane `xdp` lacks shaping to the \
             rate of a link (asked for by `links.rate`); expected full",
            ),
            (
                "dataplane: tc",
                NONE,
                none,
                "dataplane: no data plane `tc`: as the test says; expected full, or auto",
            ),
            (
                "dataplane: rtl",
                "mtu: 9000",
                none,
                "dataplane: the data plane `rtl` lacks frames of 9014 bytes (asked for by `mtu`; \
                 it has 1856); expected full",
            ),
            (
                "dataplane: rtl",
                "self_congestion_pause: true",
                none,
                "dataplane: the data plane `rtl` lacks PAUSE against self-congestion (asked for by \
                 `self_congestion_pause`); expected full",
            ),
        ];
        for (key, more, machine, says) in table {
            let refused = choose(&fabric(&format!("{key}\n{more}")), 1, machine).unwrap_err();
            assert_eq!(refused.to_string(), says);
        }
        let mut ports = fabric("overrides: [{switches: [s2], dataplane: rtl}]");
        ports.switches[1].ports = 6;
        let refused = choose(&ports, 1, able).unwrap_err().to_string();
        let says = "overrides[0].dataplane: the data plane `rtl` lacks 6 ports (asked for by \
                    `topology`; it has 4); expected tc";
        assert_eq!(refused, says);
        let mut wide = fabric("dataplane: pipeline\nhop_width: 16\n");
        assert_eq!(choose(&wide, 1, none).unwrap().carrier, DataplaneKind::Pipeline);
        wide.switches[1].ports = 1023;
        let refused = choose(&wide, 1, none).unwrap_err().to_string();
        let says = "dataplane: the data plane `pipeline` lacks 1023 ports (asked for by \
                    `topology`; it has 1022); expected full";
        assert_eq!(refused, says);
        let mixed = fabric(
            "overrides: [{switches: [s2], dataplane: xdp}, {between: [s1, s3], \
                            rate: 1Mbps}]",
        );
        assert_eq!(choose(&mixed, 0, able).unwrap().carrier, DataplaneKind::Tc);
        let key = choose(&mixed, 1, able).unwrap_err().key;
        assert_eq!(key, "overrides[0].dataplane");
    }
}
