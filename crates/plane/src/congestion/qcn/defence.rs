//! Congestion notification domain defence (IEEE 802.1Q clauses 31.1 and 33.4).
//!
//! A priority under congestion notification (a CNPV) must carry only frames whose sources act on
//! CNMs. So the domain is defended at its edge: frames from a neighbour outside in such a priority
//! are moved to another one, and CN-TAGs, which that neighbour would not understand, are removed
//! from frames to it. The defence mode of a port, for each priority, is set by the manager or
//! follows the neighbour's LLDP advertisements.

pub use axon_node::settings::{InputPriority, Treatment};
use axon_wire::dcbx::ieee::CongestionNotification;
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet};

/// The defence mode of one priority at one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefenceMode {
    /// Congestion notification is disabled for the priority.
    Disabled,
    /// The neighbour is outside: its frames leave the priority, frames to it lose their CN-TAGs.
    Edge,
    /// The neighbour is inside, but may still remap the priority: CN-TAGs are still removed.
    Interior,
    /// The neighbour is inside and accepts CN-TAGs.
    InteriorReady,
}

/// Manager's choice for one priority, of a component or of one port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The mode follows LLDP. The alternate priority is the next lower one that is not a CNPV, or
    /// if there is none the next higher.
    #[default]
    Auto,
    /// The mode and the alternate priority are fixed.
    Admin(DefenceMode, Priority),
}

/// Interpretation of several neighbours at one port, on which sources disagree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Several {
    /// Several neighbours count as none: the senders of frames cannot be distinguished.
    #[default]
    AsNone,
    /// The intersection of the advertisements of all neighbours applies.
    AllAgree,
}

/// Defence configuration of one port (IEEE8021-CN-MIB, the tables of components' and of ports'
/// priorities).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DefenceConfig {
    /// The priorities under congestion notification: at most seven.
    pub cnpvs: PrioritySet,
    /// Choice of the component by priority, for ports without their own.
    pub component: [Choice; PRIORITIES],
    /// Choice of this port by priority; `None` follows the component.
    pub port: [Option<Choice>; PRIORITIES],
    /// Interpretation of several neighbours.
    pub several: Several,
}

/// Errors in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DefenceError {
    /// All priorities are CNPVs, so frames from outside would have none left.
    #[error("eight priorities under congestion notification, where seven are the most")]
    AllPriorities,
    /// Frames from outside would be moved into the domain.
    #[error("alternate priority {} of priority {} is itself under congestion notification",
        .alternate.value(), .priority.value())]
    Alternate {
        /// The defended priority.
        priority: Priority,
        /// The alternate priority for frames from outside.
        alternate: Priority,
    },
}

impl DefenceMode {
    /// Returns the name, as in fabric files.
    pub fn name(self) -> &'static str {
        match self {
            DefenceMode::Disabled => "disabled",
            DefenceMode::Edge => "edge",
            DefenceMode::Interior => "interior",
            DefenceMode::InteriorReady => "interior_ready",
        }
    }

    fn is_interior(self) -> bool {
        matches!(self, DefenceMode::Interior | DefenceMode::InteriorReady)
    }
}

impl DefenceConfig {
    /// Checks the configuration.
    ///
    /// # Errors
    /// All eight priorities are CNPVs, or the alternate of one is another.
    pub(crate) fn check(&self) -> Result<(), DefenceError> {
        if self.cnpvs == PrioritySet::ALL {
            return Err(DefenceError::AllPriorities);
        }
        for priority in Priority::ALL.into_iter().filter(|p| self.cnpvs.contains(*p)) {
            if let Choice::Admin(_, alternate) = self.choice(priority)
                && self.cnpvs.contains(alternate)
            {
                return Err(DefenceError::Alternate { priority, alternate });
            }
        }
        Ok(())
    }

    fn choice(&self, priority: Priority) -> Choice {
        self.port[priority.index()].unwrap_or(self.component[priority.index()])
    }

    /// Returns the alternate priority for frames of `priority` from outside.
    pub fn alternate(&self, priority: Priority) -> Priority {
        if let Choice::Admin(_, alternate) = self.choice(priority) {
            return alternate;
        }
        let (lower, higher) = Priority::ALL.split_at(priority.index());
        let mut candidates = lower.iter().rev().chain(higher);
        let free = candidates.find(|candidate| !self.cnpvs.contains(**candidate));
        free.copied().unwrap_or(Priority::ZERO)
    }

    /// Returns the CNPVs and ready priorities that all neighbours advertise.
    fn received(&self, neighbours: &[CongestionNotification]) -> CongestionNotification {
        match (neighbours, self.several) {
            ([], _) | ([_, _, ..], Several::AsNone) => CongestionNotification::default(),
            ([first, rest @ ..], _) => {
                rest.iter().fold(*first, |all, one| CongestionNotification {
                    values: all.values.intersection(one.values),
                    ready: all.ready.intersection(one.ready),
                })
            }
        }
    }
}

/// Domain defence of one port, for all priorities.
///
/// A priority that follows LLDP begins in edge mode and is advertised as CNPV, not ready. When the
/// neighbour advertises the priority as a CNPV too, the port goes to interior and stops remapping;
/// once that [is in force](Self::in_force) it advertises ready. When the neighbour advertises ready
/// as well, the port goes to interior ready and keeps the CN-TAGs. A neighbour that is no longer
/// ready takes it back to interior; one that no longer has the priority, or is gone, back to edge.
/// A disabled priority is not advertised. A fixed mode does not change, and is advertised as if
/// LLDP had selected it.
#[derive(Clone, Debug)]
pub struct Defences {
    config: DefenceConfig,
    received: CongestionNotification,
    modes: [DefenceMode; PRIORITIES],
    /// Interior priorities whose remapping has ended in the data plane.
    ready: PrioritySet,
}

impl Defences {
    /// Returns the defence of a port without a neighbour.
    ///
    /// # Errors
    /// A configuration that `DefenceConfig::check` refuses.
    pub fn new(config: DefenceConfig) -> Result<Defences, DefenceError> {
        config.check()?;
        let modes = [DefenceMode::Disabled; PRIORITIES];
        let mut port = Defences {
            config,
            received: CongestionNotification::default(),
            modes,
            ready: PrioritySet::EMPTY,
        };
        port.settle();
        Ok(port)
    }

    /// Sets the advertisements of the neighbours: one entry for each neighbour, empty for a
    /// neighbour that sends no such TLV. Returns the priorities whose [treatment](Self::treatment)
    /// changes.
    pub fn neighbours(&mut self, advertised: &[CongestionNotification]) -> PrioritySet {
        self.received = self.config.received(advertised);
        self.settle()
    }

    /// Records that the data plane applies the [`treatment`](Self::treatment) of every priority;
    /// only now may the port advertise ready.
    pub fn in_force(&mut self) {
        for priority in Priority::ALL {
            if self.mode(priority).is_interior() {
                self.ready.insert(priority);
            }
        }
    }

    /// Returns the mode of `priority`.
    pub fn mode(&self, priority: Priority) -> DefenceMode {
        self.modes[priority.index()]
    }

    /// Returns the treatment of frames of `priority`.
    pub fn treatment(&self, priority: Priority) -> Treatment {
        let (input, strip_tag) = match self.mode(priority) {
            DefenceMode::Disabled => (InputPriority::Regenerated, false),
            DefenceMode::Edge => (InputPriority::Moved(self.config.alternate(priority)), true),
            DefenceMode::Interior => (InputPriority::Kept, true),
            DefenceMode::InteriorReady => (InputPriority::Kept, false),
        };
        Treatment { input, strip_tag }
    }

    /// Returns the LLDP advertisement of the port.
    pub fn advertises(&self) -> CongestionNotification {
        let mut cnpvs = PrioritySet::EMPTY;
        for priority in Priority::ALL {
            if self.mode(priority) != DefenceMode::Disabled {
                cnpvs.insert(priority);
            }
        }
        CongestionNotification { values: cnpvs, ready: self.ready }
    }

    /// Recomputes the modes; returns the priorities whose mode has changed.
    fn settle(&mut self) -> PrioritySet {
        let mut changed = PrioritySet::EMPTY;
        for priority in Priority::ALL {
            let mode = self.found(priority);
            if mode != self.mode(priority) {
                self.modes[priority.index()] = mode;
                changed.insert(priority);
            }
            if !mode.is_interior() {
                self.ready.remove(priority);
            }
        }
        changed
    }

    fn found(&self, priority: Priority) -> DefenceMode {
        if !self.config.cnpvs.contains(priority) {
            return DefenceMode::Disabled;
        }
        if let Choice::Admin(mode, _) = self.config.choice(priority) {
            return mode;
        }
        match (self.received.values.contains(priority), self.received.ready.contains(priority)) {
            (false, _) => DefenceMode::Edge,
            (true, false) => DefenceMode::Interior,
            (true, true) => DefenceMode::InteriorReady,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn priority(value: u8) -> Priority {
        Priority::new(value).unwrap()
    }

    fn said(cnpvs: u8, ready: u8) -> CongestionNotification {
        CongestionNotification {
            values: PrioritySet::from_bits(cnpvs),
            ready: PrioritySet::from_bits(ready),
        }
    }

    fn config(cnpvs: u8) -> DefenceConfig {
        DefenceConfig { cnpvs: PrioritySet::from_bits(cnpvs), ..DefenceConfig::default() }
    }

    fn moved(to: u8) -> InputPriority {
        InputPriority::Moved(priority(to))
    }

    #[test]
    fn two_ports_that_receive_each_other_become_interior_and_then_ready() {
        let (mut a, mut b) = (Defences::new(config(8)).unwrap(), Defences::new(config(8)).unwrap());
        let three = priority(3);
        assert_eq!((a.mode(three), a.advertises()), (DefenceMode::Edge, said(8, 0)));
        a.in_force();
        assert_eq!(a.advertises(), said(8, 0), "an edge is never ready");
        assert_eq!(a.neighbours(&[b.advertises()]), PrioritySet::from_bits(8));
        assert_eq!((a.mode(three), a.advertises()), (DefenceMode::Interior, said(8, 0)));
        a.in_force();
        assert_eq!(a.advertises(), said(8, 8), "ready once the remapping has ended");
        b.neighbours(&[a.advertises()]);
        assert_eq!(b.mode(three), DefenceMode::InteriorReady);
        b.in_force();
        a.neighbours(&[b.advertises()]);
        assert_eq!(a.mode(three), DefenceMode::InteriorReady);
        assert_eq!(a.neighbours(&[b.advertises()]), PrioritySet::EMPTY, "nothing new");
    }

    #[test]
    fn what_the_neighbour_takes_back_is_taken_back() {
        let mut port = Defences::new(config(8)).unwrap();
        port.neighbours(&[said(8, 8)]);
        port.in_force();
        port.neighbours(&[said(8, 0)]);
        assert_eq!(port.mode(priority(3)), DefenceMode::Interior);
        assert_eq!(port.advertises(), said(8, 8), "we are still ready");
        for gone in [&[said(0, 8)][..], &[]] {
            port.neighbours(&[said(8, 8)]);
            port.in_force();
            port.neighbours(gone);
            assert_eq!(
                (port.mode(priority(3)), port.advertises()),
                (DefenceMode::Edge, said(8, 0))
            );
        }
    }

    #[test]
    fn several_neighbours_mean_what_is_configured() {
        let both = [said(8, 8), said(0x18, 0x10)];
        let mut port = Defences::new(config(0x18)).unwrap();
        port.neighbours(&both);
        assert_eq!(port.mode(priority(3)), DefenceMode::Edge);
        let agree = DefenceConfig { several: Several::AllAgree, ..config(0x18) };
        let mut port = Defences::new(agree).unwrap();
        port.neighbours(&both);
        assert_eq!(port.mode(priority(3)), DefenceMode::Interior);
        assert_eq!(port.mode(priority(4)), DefenceMode::Edge);
    }

    #[test]
    fn each_mode_treats_frames_as_the_table_says() {
        let treatment = |mode| {
            let mut config = config(8);
            config.component[3] = Choice::Admin(mode, priority(1));
            let port = Defences::new(config).unwrap();
            let treatment = port.treatment(priority(3));
            (treatment.input, treatment.strip_tag)
        };
        assert_eq!(treatment(DefenceMode::Disabled), (InputPriority::Regenerated, false));
        assert_eq!(treatment(DefenceMode::Interior), (InputPriority::Kept, true));
        assert_eq!(treatment(DefenceMode::InteriorReady), (InputPriority::Kept, false));
        assert_eq!(treatment(DefenceMode::Edge), (moved(1), true));
        let port = Defences::new(config(8)).unwrap();
        let other = port.treatment(priority(4));
        assert_eq!((other.input, other.strip_tag), (InputPriority::Regenerated, false));
    }

    #[test]
    fn the_port_knows_better_than_the_component() {
        let mut config = config(0x38);
        for index in [3, 4] {
            config.component[index] = Choice::Admin(DefenceMode::Disabled, priority(0));
        }
        config.port[4] = Some(Choice::Auto);
        config.port[5] = Some(Choice::Admin(DefenceMode::InteriorReady, priority(0)));
        let mut port = Defences::new(config).unwrap();
        port.neighbours(&[said(0xff, 0)]);
        assert_eq!(port.mode(priority(3)), DefenceMode::Disabled);
        assert_eq!(port.mode(priority(4)), DefenceMode::Interior);
        assert_eq!(port.mode(priority(5)), DefenceMode::InteriorReady);
        assert_eq!(port.advertises().values, PrioritySet::from_bits(0x30));
    }

    #[test]
    fn an_alternate_is_the_next_lower_free_priority_or_else_the_next_higher() {
        let alternate =
            |cnpvs: u8, of: u8| Defences::new(config(cnpvs)).unwrap().treatment(priority(of)).input;
        assert_eq!(alternate(0b0001_1000, 4), moved(2));
        assert_eq!(alternate(0b0000_0011, 1), moved(2));
        assert_eq!(alternate(0b0111_1111, 0), moved(7));
    }

    #[test]
    fn a_domain_without_a_way_out_is_refused() {
        let all = Defences::new(config(0xff)).unwrap_err();
        assert_eq!(all, DefenceError::AllPriorities);
        let mut inside = config(0x18);
        inside.port[3] = Some(Choice::Admin(DefenceMode::Edge, priority(4)));
        let expected = DefenceError::Alternate { priority: priority(3), alternate: priority(4) };
        assert_eq!(Defences::new(inside).unwrap_err(), expected);
    }

    proptest! {
        #[test]
        fn whatever_is_received_foreign_frames_leave_the_domain_and_only_the_ready_keep_tags(
            cnpvs in 0u8..255,
            received in
                prop::collection::vec((any::<u8>(), any::<u8>(), 0usize..3, any::<bool>()), 1..9),
        ) {
            let mut port = Defences::new(config(cnpvs)).unwrap();
            for (theirs, ready, count, in_force) in received {
                port.neighbours(&[said(theirs, ready); 2][..count.min(2)]);
                if in_force {
                    port.in_force();
                }
                for priority in Priority::ALL {
                    let ours = cnpvs >> priority.value() & 1 == 1;
                    let inside = count == 1 && theirs >> priority.value() & 1 == 1;
                    let tags = inside && ready >> priority.value() & 1 == 1;
                    let treatment = port.treatment(priority);
                    prop_assert_eq!(treatment.strip_tag, ours && !tags);
                    prop_assert_eq!(treatment.input == InputPriority::Kept, ours && inside);
                    if let InputPriority::Moved(to) = treatment.input {
                        prop_assert_eq!(cnpvs >> to.value() & 1, 0);
                    }
                    let ours_now = port.advertises();
                    prop_assert_eq!(ours_now.values.bits(), cnpvs);
                    prop_assert!(!ours_now.ready.contains(priority) || ours && inside);
                }
            }
        }
    }
}
