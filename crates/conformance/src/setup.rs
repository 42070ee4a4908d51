//! Configuration of a device.

use axon_wire::priority::{PRIORITIES, Priority, PrioritySet, TrafficClass};
use core::fmt;

/// Configuration of a device, which is the same at every port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Lossless priorities, which have PFC.
    pub pfc: PrioritySet,
    /// True if the device sends PAUSE, for all priorities. Only possible without PFC.
    pub pause: bool,
    /// Traffic class of each priority.
    pub prio_tc: [TrafficClass; PRIORITIES],
    /// Percentage for each traffic class that has ETS. The other classes are strict.
    pub shares: [Option<u8>; PRIORITIES],
    /// Priorities that have congestion notification.
    pub congestion: PrioritySet,
    /// Defence mode of the device's port that is connected to the tester's port 0. The other ports
    /// are interior ready.
    pub defence: DefenceMode,
    /// Alternate priority for frames from outside the domain. By default, it is the next lower
    /// priority outside the domain, or the next higher one if there is none.
    pub alternate: Option<Priority>,
    /// DCBX configuration of the ports, or `None` if they have no DCBX.
    pub dcbx: Option<Dcbx>,
    /// True if the device is an end station that sends as fast as it may, not a switch.
    pub station: bool,
}

/// Defence mode of a port for a priority with congestion notification (IEEE 802.1Q clause 33.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefenceMode {
    /// The priority has no congestion notification at this port.
    Disabled,
    /// The neighbour is outside the domain.
    Edge,
    /// The neighbour is inside the domain and takes no CN-TAGs.
    Interior,
    /// The neighbour is inside the domain and takes CN-TAGs.
    InteriorReady,
}

/// Names of the defence modes.
pub const DEFENCES: [(&str, DefenceMode); 4] = [
    ("disabled", DefenceMode::Disabled),
    ("edge", DefenceMode::Edge),
    ("interior", DefenceMode::Interior),
    ("interior-ready", DefenceMode::InteriorReady),
];

/// Form of DCBX.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Form specified in IEEE 802.1Qaz.
    #[default]
    Ieee,
    /// CEE, the predecessor of the standard form.
    Cee,
}

/// DCBX configuration of a device. It advertises the ETS and PFC of its [`Setup`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dcbx {
    /// Form of DCBX that the device uses.
    pub form: Form,
    /// True if the device is willing to apply the peer's ETS recommendation.
    pub ets_willing: bool,
    /// True if the device is willing to follow the peer's PFC.
    pub pfc_willing: bool,
    /// True if, between two willing ports, the one with the higher address keeps its own PFC. This
    /// is lldpad's rule, not the standard's.
    pub higher_keeps: bool,
}

impl fmt::Display for Dcbx {
    /// Writes the setup as command-line options.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let form = match self.form {
            Form::Ieee => "ieee",
            Form::Cee => "cee",
        };
        write!(f, "DCBX (--dcbx {form})")?;
        let willing = match (self.ets_willing, self.pfc_willing) {
            (false, false) => ", not willing (no --willing)",
            (true, true) => ", willing (--willing)",
            (true, false) => ", willing for ETS only",
            (false, true) => ", willing for PFC only",
        };
        f.write_str(willing)?;
        let tie = if self.higher_keeps {
            ", by the other tie rule (--interpretation tie=higher)"
        } else {
            ""
        };
        f.write_str(tie)
    }
}

impl Default for Setup {
    /// Returns a setup with a separate class for each priority. All classes are strict.
    fn default() -> Setup {
        Setup {
            pfc: PrioritySet::EMPTY,
            pause: false,
            prio_tc: TrafficClass::ALL,
            shares: [None; PRIORITIES],
            congestion: PrioritySet::EMPTY,
            defence: DefenceMode::InteriorReady,
            alternate: None,
            dcbx: None,
            station: false,
        }
    }
}

impl Setup {
    /// Returns the default setup with PFC for these priorities.
    pub(crate) fn with_pfc(pfc: PrioritySet) -> Setup {
        Setup { pfc, ..Setup::default() }
    }

    /// Returns a setup in which classes 0, 1, ... have these percentages. Priority n is in class n,
    /// and higher classes are strict.
    pub fn with_shares(percents: &[u8]) -> Setup {
        let shares = core::array::from_fn(|class| percents.get(class).copied());
        Setup { shares, ..Setup::default() }
    }

    /// Describes the differences from the setup that a case wants. The text is empty if there are
    /// none.
    pub(crate) fn lacks(&self, wanted: &Setup) -> String {
        let mut lacks = Vec::new();
        if self.pfc != wanted.pfc {
            lacks.push(format!("PFC on {} (--pfc), not on {}", list(wanted.pfc), list(self.pfc)));
        }
        if self.pause != wanted.pause {
            let how = if wanted.pause { "flow control by PAUSE" } else { "none by PAUSE" };
            lacks.push(format!("{how} (--pause)"));
        }
        if self.prio_tc != wanted.prio_tc {
            let classes = wanted.prio_tc.map(|class| class.value().to_string()).join(",");
            lacks.push(format!("priorities in classes {classes} (--classes)"));
        }
        if self.shares != wanted.shares {
            lacks.push(format!("ETS with {} (--shares)", shares(&wanted.shares)));
        }
        if self.congestion != wanted.congestion {
            lacks.push(format!("congestion notification on {} (--cn)", list(wanted.congestion)));
        }
        if self.defence != wanted.defence {
            let name = DEFENCES.iter().find(|(_, mode)| *mode == wanted.defence);
            let name = name.map_or("", |(name, _)| name);
            lacks.push(format!("defence mode {name} (--defence)"));
        }
        if self.alternate != wanted.alternate {
            lacks.push("another alternate priority (--alternate)".into());
        }
        match (self.dcbx, wanted.dcbx) {
            (own, wanted) if own == wanted => {}
            (_, None) => lacks.push("no DCBX (--dcbx)".into()),
            (_, Some(wanted)) => lacks.push(wanted.to_string()),
        }
        if self.station != wanted.station {
            let kind =
                if wanted.station { "an end station that sends (--station)" } else { "a switch" };
            lacks.push(kind.into());
        }
        lacks.join("; ")
    }
}

/// Formats priorities as `3, 4`, or as `none`.
pub(crate) fn list(priorities: PrioritySet) -> String {
    let names: Vec<String> = priorities.iter().map(|priority| priority.to_string()).collect();
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

fn shares(shares: &[Option<u8>; PRIORITIES]) -> String {
    let percent = |(class, share): (usize, &Option<u8>)| share.map(|p| format!("{class}:{p}"));
    let named: Vec<String> = shares.iter().enumerate().filter_map(percent).collect();
    if named.is_empty() { "no shares".into() } else { named.join(",") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_the_option_that_says_it() {
        let given = Setup::with_pfc(PrioritySet::from_bits(0b1000));
        assert_eq!(given.lacks(&given), "");
        let wanted =
            Setup { pfc: PrioritySet::from_bits(0b11000), ..Setup::with_shares(&[30, 70]) };
        let lacks = given.lacks(&wanted);
        assert_eq!(lacks, "PFC on 3, 4 (--pfc), not on 3; ETS with 0:30,1:70 (--shares)");
        let wanted = Setup {
            dcbx: Some(Dcbx { pfc_willing: true, ets_willing: true, ..Dcbx::default() }),
            defence: DefenceMode::Edge,
            ..given.clone()
        };
        let lacks = given.lacks(&wanted);
        assert_eq!(lacks, "defence mode edge (--defence); DCBX (--dcbx ieee), willing (--willing)");
    }
}
