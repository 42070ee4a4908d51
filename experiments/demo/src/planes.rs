//! Data planes of the switches, as the switches report them.

use crate::fabric::carrier;
use axon_fabric::model::DataplaneKind;
use axon_linux::dataplane_choice::DataplaneChoice;
use axon_linux::machine::Machine;
use serde::Serialize;
use std::collections::BTreeMap;

/// Data planes of all switches in all labs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Dataplanes {
    /// Fastest data plane of this machine: `tc`, or else `full`.
    pub expected: DataplaneKind,
    /// Reason why this machine has no tc, if so.
    pub no_tc: Option<String>,
    /// Reported data plane of each switch, by lab.
    pub labs: BTreeMap<String, BTreeMap<String, DataplaneChoice>>,
}

impl Default for Dataplanes {
    fn default() -> Dataplanes {
        Dataplanes::expected(&Machine::ABLE)
    }
}

impl Dataplanes {
    /// Creates an empty record for this machine.
    pub(crate) fn expected(machine: &Machine) -> Dataplanes {
        let labs = BTreeMap::new();
        Dataplanes { expected: carrier(machine), no_tc: machine.no_tc.clone(), labs }
    }

    /// Adds the reports from a lab's switches.
    pub(crate) fn add(&mut self, lab: &str, reported: Vec<(String, DataplaneChoice)>) {
        self.labs.insert(lab.to_owned(), reported.into_iter().collect());
    }

    /// Returns the number of switches that have reported, and the number of those that have the
    /// expected data plane.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let all = || self.labs.values().flat_map(BTreeMap::values);
        (all().count(), all().filter(|choice| choice.carrier == self.expected).count())
    }

    /// Describes the data planes in one line, such as `tc at s1, s2 and s3`.
    pub fn text(&self) -> String {
        let mut switches = BTreeMap::<&str, Vec<&str>>::new();
        for (switch, choice) in self.labs.values().flatten() {
            let carriers = switches.entry(switch).or_default();
            if !carriers.contains(&choice.carrier.setting()) {
                carriers.push(choice.carrier.setting());
            }
        }
        let each = switches.iter().map(|(name, planes)| format!("{name} {}", planes.join("/")));
        let why = match &self.no_tc {
            Some(why) => format!("; no tc: {why}"),
            None => String::new(),
        };
        format!("{}{why}", each.collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn sample(machine: &Machine, carriers: [DataplaneKind; 3]) -> Dataplanes {
        let mut planes = Dataplanes::expected(machine);
        let choice = |carrier| DataplaneChoice { carrier, why: "the fastest".into() };
        let names = ["s1", "s2", "s3"].map(str::to_owned);
        planes.add("demo-ring", names.into_iter().zip(carriers.map(choice)).collect());
        planes
    }

    #[test]
    fn a_switch_on_another_data_plane_than_the_machine_allows_is_seen() {
        use DataplaneKind::{Software as Full, Tc};
        let good = sample(&Machine::ABLE, [Tc; 3]);
        assert_eq!((good.counts(), good.text()), ((3, 3), "s1 tc, s2 tc, s3 tc".into()));
        let mixed = sample(&Machine::ABLE, [Tc, Full, Tc]);
        assert_eq!((mixed.counts(), mixed.text()), ((3, 2), "s1 tc, s2 full, s3 tc".into()));
        let none = sample(&Machine::without("no right"), [Full; 3]);
        let text = "s1 full, s2 full, s3 full; no tc: no right";
        assert_eq!((none.counts(), none.text().as_str()), ((3, 3), text));
    }
}
