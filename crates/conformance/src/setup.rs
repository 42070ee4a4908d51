//! What a device is configured for.

use axon_wire::priority::{PRIORITIES, PrioritySet, TrafficClass};

/// What a device is configured for, the same at every port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Priorities with PFC, none of whose frames may be lost.
    pub pfc: PrioritySet,
    /// The traffic class of each priority.
    pub prio_tc: [TrafficClass; PRIORITIES],
    /// The per cent of each traffic class with ETS; the others are strict.
    pub shares: [Option<u8>; PRIORITIES],
    /// Priorities with congestion notification.
    pub congestion: PrioritySet,
    /// What its ports say by DCBX; nothing without.
    pub dcbx: Option<Dcbx>,
    /// Whether it is an end station that sends as fast as it may, rather than a switch.
    pub station: bool,
}

/// Which form of DCBX a device speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// IEEE 802.1Qaz.
    #[default]
    Ieee,
    /// What was before it.
    Cee,
}

/// How a device takes part in DCBX. What it says of ETS and PFC is that of its [`Setup`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dcbx {
    /// Which form.
    pub form: Form,
    /// Whether it does what the peer recommends of ETS.
    pub ets_willing: bool,
    /// Whether it follows the peer's PFC.
    pub pfc_willing: bool,
    /// Of two willing ports, whether the one with the higher address keeps its own PFC: not the
    /// standard's rule, but that of lldpad.
    pub higher_keeps: bool,
}

impl Default for Setup {
    /// A class for each priority, all strict, nothing else.
    fn default() -> Setup {
        Setup {
            pfc: PrioritySet::EMPTY,
            prio_tc: TrafficClass::ALL,
            shares: [None; PRIORITIES],
            congestion: PrioritySet::EMPTY,
            dcbx: None,
            station: false,
        }
    }
}

impl Setup {
    /// The default with PFC for these priorities.
    pub fn with_pfc(pfc: PrioritySet) -> Setup {
        Setup { pfc, ..Setup::default() }
    }

    /// Classes 0, 1, ... share by these percentages; priority n is in class n, and those
    /// beyond are strict.
    pub fn with_shares(percents: &[u8]) -> Setup {
        let shares = core::array::from_fn(|class| percents.get(class).copied());
        Setup { shares, ..Setup::default() }
    }

    /// In what a device that is configured so differs from one that a case wants: as text, empty
    /// if in nothing.
    pub fn lacks(&self, wanted: &Setup) -> String {
        let mut lacks = Vec::new();
        if self.pfc != wanted.pfc {
            lacks.push(format!("PFC on {} (--pfc), not on {}", list(wanted.pfc), list(self.pfc)));
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
        if self.dcbx != wanted.dcbx {
            lacks.push("other DCBX settings (--dcbx)".into());
        }
        if self.station != wanted.station {
            let kind =
                if wanted.station { "an end station that sends (--station)" } else { "a switch" };
            lacks.push(kind.into());
        }
        lacks.join("; ")
    }
}

/// Priorities as a person writes them: `3, 4`, or `none`.
pub fn list(priorities: PrioritySet) -> String {
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
    }
}
