//! Selects the data plane that carries the frames of a switch.
//!
//! The fabric file names a data plane for the switch, or leaves the choice open. A named data plane
//! must support everything that the file needs from this switch, and this machine must allow it.
//! Otherwise the file is refused, and the error gives the key that names the data plane. An open
//! choice selects the fastest suitable data plane. That is tc if possible, and otherwise the
//! process of the switch, which supports everything. XDP is never selected automatically, because
//! it does not enforce rates.

use crate::dataplane::{capabilities, in_kernel, on_pipeline};
use crate::kernel::Plane;
use crate::machine::Machine;
use axon_fabric::Problem;
use axon_fabric::model::{DataplaneName, Fabric, Network};
use axon_fabric::needs::{Runtime, needs_of};
use serde::{Deserialize, Serialize};

/// Data plane that carries the frames of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Carrier {
    /// Kernel, with programs at tc.
    Tc,
    /// Kernel, with programs in drivers (XDP).
    Xdp,
    /// Process of the switch.
    Full,
    /// Process of the switch, with routes and steps in the tables of a pipeline.
    Pipeline,
}

impl Carrier {
    /// Returns the name in the fabric file.
    pub const fn name(self) -> &'static str {
        match self {
            Carrier::Tc => "tc",
            Carrier::Xdp => "xdp",
            Carrier::Full => "full",
            Carrier::Pipeline => "pipeline",
        }
    }

    /// Returns the kernel's data plane if the kernel carries the frames, otherwise `None`.
    pub const fn plane(self) -> Option<Plane> {
        match self {
            Carrier::Tc => Some(Plane::Tc),
            Carrier::Xdp => Some(Plane::Xdp),
            Carrier::Full | Carrier::Pipeline => None,
        }
    }

    /// Returns whether the process of the switch carries the frames.
    pub const fn is_process(self) -> bool {
        self.plane().is_none()
    }
}

/// Selected data plane of a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataplaneChoice {
    /// Data plane that carries the frames.
    pub carrier: Carrier,
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
    let (asked, key) = axon_fabric::dataplane::of_switch(fabric, switch);
    if fabric.network == Network::Program {
        return programmable(asked, key);
    }
    let carrier = match asked {
        DataplaneName::Auto => return automatic(fabric, switch, machine),
        DataplaneName::Tc => Carrier::Tc,
        DataplaneName::Xdp => Carrier::Xdp,
        DataplaneName::Full => Carrier::Full,
        DataplaneName::Pipeline => Carrier::Pipeline,
    };
    let refused = |what: String, expected: String| Err(Problem { key: key.into(), what, expected });
    let missing = lacking(fabric, switch, carrier);
    if !missing.is_empty() {
        let what = format!("the data plane `{asked}` lacks {}", missing.join(", "));
        let fits = |carrier: &&Carrier| {
            lacking(fabric, switch, **carrier).is_empty() && refusal(machine, **carrier).is_none()
        };
        let others = [Carrier::Tc, Carrier::Full];
        let expected = others.iter().find(fits).map_or("a file that needs less", |one| one.name());
        return refused(what, expected.into());
    }
    if let Some(lacks) = refusal(machine, carrier) {
        return refused(format!("no data plane `{asked}`: {lacks}"), "full, or auto".into());
    }
    Ok(DataplaneChoice { carrier, why: format!("asked for by `{key}`") })
}

/// Returns the data plane of a programmable switch, which always runs in its process.
fn programmable(asked: DataplaneName, key: &str) -> Result<DataplaneChoice, Problem> {
    let why = match asked {
        DataplaneName::Auto => "the tables of a programmable switch are in its process".into(),
        DataplaneName::Pipeline => format!("asked for by `{key}`"),
        DataplaneName::Tc | DataplaneName::Xdp | DataplaneName::Full => {
            let what = format!("the data plane `{asked}` has no tables for a program to fill");
            return Err(Problem { key: key.into(), what, expected: "pipeline, or auto".into() });
        }
    };
    Ok(DataplaneChoice { carrier: Carrier::Pipeline, why })
}

/// Returns the reason why this machine does not allow a data plane, if any.
fn refusal(machine: &Machine, carrier: Carrier) -> Option<&str> {
    carrier.plane().and_then(|plane| machine.lacks(plane))
}

/// Selects the fastest suitable data plane.
fn automatic(
    fabric: &Fabric,
    switch: usize,
    machine: &Machine,
) -> Result<DataplaneChoice, Problem> {
    let missing = lacking(fabric, switch, Carrier::Tc);
    let (carrier, why) = if !missing.is_empty() {
        (Carrier::Full, format!("tc lacks {}", missing.join(", ")))
    } else if let Some(lacks) = machine.lacks(Plane::Tc) {
        (Carrier::Full, lacks.into())
    } else {
        (Carrier::Tc, "the fastest that has all that the file needs".into())
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

fn lacking(fabric: &Fabric, switch: usize, carrier: Carrier) -> Vec<String> {
    let software = capabilities(fabric.hop_width);
    let has = match carrier {
        Carrier::Tc => in_kernel(Plane::Tc, software),
        Carrier::Xdp => in_kernel(Plane::Xdp, software),
        Carrier::Full => software,
        Carrier::Pipeline => on_pipeline(fabric.hop_width, software),
    };
    has.missing(&needs_of(fabric, switch, Runtime::Ports))
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
        use Carrier::{Full, Pipeline, Tc, Xdp};
        let (able, none) = (&Machine::ABLE, &Machine::without("as the test says"));
        let only_xdp = &Machine { no_tc: Some("no TCX".into()), no_xdp: None };
        let table: [(&str, &str, &Machine, Carrier, &str); 12] = [
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
        ];
        for (key, more, machine, says) in table {
            let refused = choose(&fabric(&format!("{key}\n{more}")), 1, machine).unwrap_err();
            assert_eq!(refused.to_string(), says);
        }
        let mut wide = fabric("dataplane: pipeline\nhop_width: 16\n");
        assert_eq!(choose(&wide, 1, none).unwrap().carrier, Carrier::Pipeline);
        wide.switches[1].ports = 1023;
        let refused = choose(&wide, 1, none).unwrap_err().to_string();
        let says = "dataplane: the data plane `pipeline` lacks 1023 ports (asked for by \
                    `topology`; it has 1022); expected full";
        assert_eq!(refused, says);
        let mixed = fabric(
            "overrides: [{switches: [s2], dataplane: xdp}, {between: [s1, s3], \
                            rate: 1Mbps}]",
        );
        assert_eq!(choose(&mixed, 0, able).unwrap().carrier, Carrier::Tc);
        let key = choose(&mixed, 1, able).unwrap_err().key;
        assert_eq!(key, "overrides[0].dataplane");
    }
}
