//! Which data plane carries the frames of a switch, and why that one.
//!
//! In plain English: the file names a data plane for the switch, or leaves the choice open. One
//! that is named has to have all that the file needs of this switch, and this machine has to allow
//! it: otherwise the file is refused, by the key that names it. Left open, it is the fastest that
//! fits: tc, and else the process of the switch, which can do everything. XDP is never chosen by
//! itself, since it holds no rates.

use crate::dataplane::{capabilities, in_kernel};
use crate::kernel::Plane;
use axon_fabric::Problem;
use axon_fabric::model::{DataplaneName, Fabric};
use axon_fabric::needs::{Runtime, needs_of};
use axon_node::Capabilities;
use serde::{Deserialize, Serialize};

/// Why no kernel helps.
const NOT_YET: &str = "no switch of this version runs on the kernel's data planes yet";
/// What a user namespace lacks.
const NOT_PERMITTED: &str =
    "BPF programs are not permitted here: that takes root outside of user namespaces";

/// What this machine allows of what the kernel's data planes need. One of which nothing is known
/// allows nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// The run loop of a switch hands frames to the kernel's data planes.
    pub run_loop: bool,
    /// Root outside of user namespaces: it may load programs and attach them.
    pub root: bool,
    /// The kernel runs BPF programs.
    pub bpf: bool,
    /// It has links for programs at tc (TCX, Linux 6.6).
    pub tcx: bool,
    /// It has the queueing discipline that holds the rates of links.
    pub htb: bool,
}

impl Machine {
    /// A machine that allows everything.
    pub const ABLE: Machine =
        Machine { run_loop: true, root: true, bpf: true, tcx: true, htb: true };
    /// Any machine, as long as the run loop knows the software plane alone.
    pub const SOFTWARE_ONLY: Machine = Machine { run_loop: false, ..Machine::ABLE };

    /// What it lacks for a data plane, if anything.
    const fn lacks(&self, plane: Plane) -> Option<&'static str> {
        match plane {
            _ if !self.run_loop => Some(NOT_YET),
            _ if !self.bpf => Some("the kernel runs no BPF programs"),
            _ if !self.root => Some(NOT_PERMITTED),
            Plane::Tc if !self.tcx => {
                Some("the kernel has no links for programs at tc (TCX, Linux 6.6)")
            }
            Plane::Tc if !self.htb => {
                Some("the kernel has no HTB (CONFIG_NET_SCH_HTB), which holds the rates of links")
            }
            Plane::Tc | Plane::Xdp => None,
        }
    }
}

/// What carries the frames of a switch. In this version always `full`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Carrier {
    /// The kernel, in programs at tc.
    Tc,
    /// The kernel, in programs in drivers.
    Xdp,
    /// The process of the switch.
    Full,
}

impl Carrier {
    /// Its name in the fabric file.
    pub const fn name(self) -> &'static str {
        match self {
            Carrier::Tc => "tc",
            Carrier::Xdp => "xdp",
            Carrier::Full => "full",
        }
    }
}

/// The data plane of a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataplaneChoice {
    /// What carries the frames.
    pub carrier: Carrier,
    /// Why this one, in a sentence.
    pub why: String,
}

/// Chooses the data plane of a switch, by its index, on this machine.
///
/// # Errors
/// The file names one that lacks what the file needs, or that this machine does not allow; the key
/// is the one that names it.
pub fn choose(
    fabric: &Fabric,
    switch: usize,
    machine: &Machine,
) -> Result<DataplaneChoice, Problem> {
    let (asked, key) = fabric.dataplane(switch);
    let carrier = match asked {
        DataplaneName::Auto => return automatic(fabric, switch, machine),
        DataplaneName::Tc => Carrier::Tc,
        DataplaneName::Xdp => Carrier::Xdp,
        DataplaneName::Full => Carrier::Full,
    };
    let refused = |what: String, expected: String| Err(Problem { key: key.into(), what, expected });
    let (has, plane) = capabilities_of(fabric, carrier);
    let missing = has.missing(&needs_of(fabric, switch, Runtime::Ports));
    if !missing.is_empty() {
        let what = format!("the data plane `{asked}` lacks {}", missing.join(", "));
        let allowed = |carrier| {
            let (_, plane) = capabilities_of(fabric, carrier);
            plane.and_then(|plane| machine.lacks(plane)).is_none()
        };
        let fits = |carrier: &&Carrier| {
            lacking(fabric, switch, **carrier).is_empty() && allowed(**carrier)
        };
        let others = [Carrier::Tc, Carrier::Full];
        let expected = others.iter().find(fits).map_or("a file that needs less", |one| one.name());
        return refused(what, expected.into());
    }
    if let Some(lacks) = plane.and_then(|plane| machine.lacks(plane)) {
        return refused(format!("no data plane `{asked}`: {lacks}"), "full, or auto".into());
    }
    Ok(DataplaneChoice { carrier, why: format!("asked for by `{key}`") })
}

/// The data plane of each switch on this machine, by its index.
///
/// # Errors
/// As [`choose`].
pub fn choices(fabric: &Fabric, machine: &Machine) -> Result<Vec<DataplaneChoice>, Problem> {
    (0..fabric.switches.len()).map(|switch| choose(fabric, switch, machine)).collect()
}

/// The fastest that fits.
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
            Err(Problem { key: fabric.dataplane(switch).1.into(), what, expected })
        }
    }
}

fn lacking(fabric: &Fabric, switch: usize, carrier: Carrier) -> Vec<String> {
    let needs = needs_of(fabric, switch, Runtime::Ports);
    capabilities_of(fabric, carrier).0.missing(&needs)
}

fn capabilities_of(fabric: &Fabric, carrier: Carrier) -> (Capabilities, Option<Plane>) {
    let software = capabilities(fabric.hop_width);
    match carrier {
        Carrier::Full => (software, None),
        Carrier::Tc => (in_kernel(Plane::Tc, software), Some(Plane::Tc)),
        Carrier::Xdp => (in_kernel(Plane::Xdp, software), Some(Plane::Xdp)),
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
        use Carrier::{Full, Tc, Xdp};
        let able = Machine::ABLE;
        let table: [(&str, &str, Machine, Carrier, &str); 14] = [
            (NONE, NONE, able, Tc, "the fastest"),
            (NONE, RATE, able, Tc, "the fastest"),
            (NONE, NONE, Machine::SOFTWARE_ONLY, Full, "no switch of this version"),
            (NONE, NONE, Machine { bpf: false, ..able }, Full, "no BPF programs"),
            (NONE, NONE, Machine { root: false, ..able }, Full, "not permitted"),
            (NONE, NONE, Machine { tcx: false, ..able }, Full, "TCX"),
            (NONE, NONE, Machine { htb: false, ..able }, Full, "HTB"),
            (NONE, DCB, able, Full, "traffic classes (asked for by `dcb.classes`)"),
            (NONE, "self_congestion_pause: true", able, Full, "`self_congestion_pause`"),
            (NONE, "links: {on_full: nack}", able, Full, "`links.on_full`"),
            ("tc", RATE, able, Tc, "asked for by `dataplane`"),
            ("xdp", NONE, Machine { htb: false, tcx: false, ..able }, Xdp, "`dataplane`"),
            ("full", DCB, Machine::SOFTWARE_ONLY, Full, "asked for by `dataplane`"),
            ("auto", DCB, Machine::SOFTWARE_ONLY, Full, "tc lacks"),
        ];
        for (asked, more, machine, carrier, why) in table {
            let key =
                if asked.is_empty() { String::new() } else { format!("dataplane: {asked}\n") };
            let choice = choose(&fabric(&format!("{key}{more}")), 1, &machine).unwrap();
            assert_eq!(choice.carrier, carrier, "{asked} {more} {machine:?}: {choice:?}");
            assert!(choice.why.contains(why), "{asked} {more} {machine:?}: {choice:?}");
        }
    }

    #[test]
    fn a_data_plane_that_is_asked_for_and_does_not_fit_is_refused_by_its_key() {
        let able = Machine::ABLE;
        let only_root = Machine { root: false, ..able };
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
                Machine::SOFTWARE_ONLY,
                "dataplane: the data plane `xdp` lacks shaping to the \
             rate of a link (asked for by `links.rate`); expected full",
            ),
            (
                "dataplane: tc",
                NONE,
                Machine::SOFTWARE_ONLY,
                "dataplane: no data plane `tc`: no switch of this \
             version runs on the kernel's data planes yet; expected full, or auto",
            ),
            (
                "dataplane: tc",
                NONE,
                only_root,
                "dataplane: no data plane `tc`: BPF programs are \
             not permitted here: that takes root outside of user namespaces; expected full, or \
             auto",
            ),
        ];
        for (key, more, machine, says) in table {
            let refused = choose(&fabric(&format!("{key}\n{more}")), 1, &machine).unwrap_err();
            assert_eq!(refused.to_string(), says);
        }
        let mixed = fabric(
            "overrides: [{switches: [s2], dataplane: xdp}, {between: [s1, s3], \
                            rate: 1Mbps}]",
        );
        assert_eq!(choose(&mixed, 0, &able).unwrap().carrier, Carrier::Tc);
        let key = choose(&mixed, 1, &able).unwrap_err().key;
        assert_eq!(key, "overrides[0].dataplane");
    }
}
