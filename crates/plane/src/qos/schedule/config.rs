//! Configuration of a schedule.

use alloc::vec::Vec;
use axon_wire::dcbx::ieee::{Ets, Tsa};
use axon_wire::priority::PRIORITIES;
use axon_wire::{Span, TrafficClass};

/// Transmission selection of one egress port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleConfig {
    /// Algorithm of each traffic class, class 0 first; one to eight.
    pub classes: Vec<Algorithm>,
    /// Cost of a frame, charged to its class's share.
    pub cost: FrameCost,
    /// Adaptation of the weights to the traffic.
    pub weights: Weights,
}

/// Transmission selection algorithm of a class (IEEE 802.1Q clause 8.6.8). Bandwidth that strict
/// classes leave is shared among the others, which all have the same algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Strict priority: before all others; among several, the highest class number first.
    Strict,
    /// Enhanced transmission selection (clauses 8.6.8.4 and 37).
    Ets {
        /// Share of the bandwidth that strict classes leave, in percent; those of all classes add
        /// up to 100. A class with 0 has no guarantee: such classes have equal shares while no
        /// other is ready.
        percent: u8,
    },
    /// Weighted deficit round robin (Shreedhar and Varghese 1995).
    Drr {
        /// Quantum per round, in bytes of [`FrameCost`]; 1 to [`QUANTUM_BYTES_MAX`]. From the
        /// longest frame's cost on, each round sends a frame.
        quantum_bytes: u32,
    },
    /// Weighted fair queueing: the ideal that other algorithms are compared with.
    Wfq {
        /// Weight relative to the sum of all; 1 to [`WFQ_WEIGHT_MAX`].
        weight: u32,
    },
}

/// The largest quantum, in bytes: 134 ms at 1 Gb/s.
pub const QUANTUM_BYTES_MAX: u32 = 1 << 24;
/// The largest weight of a class with [`Algorithm::Wfq`].
pub const WFQ_WEIGHT_MAX: u32 = 1 << 16;
/// Maximum length of a frame in bytes; longer ones are charged as this length.
const FRAME_BYTES_MAX: u32 = 1 << 24;

/// Cost of a frame to the scheduler: its bytes and an overhead, in whole cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameCost {
    /// Bytes added to each frame, at most 65,535: 0 to count frame bytes only, 4 with the FCS, 24
    /// with FCS, preamble and gap, which is the time on the wire (IEEE 802.3 clause 4.4.2). Where
    /// frame bytes include the FCS already: 0 and 20.
    pub overhead_bytes: u16,
    /// Bytes of a cell, for switches whose scheduler counts the memory cells of frames; 1 counts
    /// bytes.
    pub cell_bytes: u16,
}

impl FrameCost {
    /// Frame bytes only.
    pub const FRAME: FrameCost = FrameCost { overhead_bytes: 0, cell_bytes: 1 };
    /// Time on the wire for frames whose FCS is not counted among their bytes.
    pub const WIRE: FrameCost = FrameCost { overhead_bytes: 24, cell_bytes: 1 };

    /// Returns the cost of a frame of this many bytes; at least 1.
    pub const fn of(self, bytes: u32) -> u32 {
        let bytes = if bytes < FRAME_BYTES_MAX { bytes } else { FRAME_BYTES_MAX };
        let cost = bytes + self.overhead_bytes as u32;
        let cell = self.cell_bytes as u32;
        match cost {
            0 => 1,
            _ if cell > 1 => cost.div_ceil(cell) * cell,
            _ => cost,
        }
    }
}

/// Adaptation of the quanta of DRR and ETS classes to the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weights {
    /// None: the quanta stay as configured.
    Fixed,
    /// DRR-AWC (paper 002 §6.3, algorithm 1).
    Awc {
        /// Time for which frames are counted before the weights are recomputed, above zero; one
        /// minute in the paper.
        window: Span,
        /// Bytes added to a frame's bytes for its size: 4 if the FCS is not among them. Sizes are
        /// put into bins with the FCS, as by the paper's switch.
        size_added_bytes: u16,
        /// Weight of frames larger than all bins.
        larger: Larger,
    },
    /// Byte-fair: classes that are always ready get bytes, not costs, in proportion to their
    /// configured quanta.
    ByteFair {
        /// Time for which bytes are counted before the quanta are corrected, above zero: some
        /// milliseconds.
        window: Span,
        /// Bytes added to each frame's bytes: 4 to share bytes with an FCS that is not among them.
        size_added_bytes: u16,
    },
}

/// Weight of frames above 1024 bytes, which paper 002's five bins do not count and which the paper
/// does not specify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Larger {
    /// 1: the figures from which the formulas are fitted give weights relative to a queue of frames
    /// of the maximum size.
    One,
    /// The result of formula 6.2 for frames of this many bytes: 0.9758 for 1522. A negative result
    /// for extreme sizes counts as 0.
    Formula {
        /// The frame size in bytes, FCS included.
        frame_bytes: u16,
    },
}

/// Errors in a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleFault {
    /// There are no classes, or more than eight.
    #[error("{0} traffic classes: 1 to {PRIORITIES} are possible")]
    ClassCount(usize),
    /// The percentages of the ETS classes do not add up to 100.
    #[error("the percentages of the ETS classes add up to {0}, not to 100")]
    EtsSum(u32),
    /// Two sharing classes have different algorithms: this is the higher one.
    #[error("class {0} shares by another algorithm than the classes below it")]
    Mixed(TrafficClass),
    /// The class's quantum is 0 or above [`QUANTUM_BYTES_MAX`].
    #[error("the quantum of class {0} is not 1 to {QUANTUM_BYTES_MAX} bytes")]
    Quantum(TrafficClass),
    /// The class's weight is 0 or above [`WFQ_WEIGHT_MAX`].
    #[error("the weight of class {0} is not 1 to {WFQ_WEIGHT_MAX}")]
    Weight(TrafficClass),
    /// The cell size is 0.
    #[error("a cell needs at least one byte")]
    Cell,
    /// Weights are adaptive, but no class has a quantum, or the window is empty.
    #[error("weights that follow the traffic need a window and ETS or DRR classes")]
    NothingToAdapt,
    /// A priority is mapped to this class, which has no algorithm, so its frames would never leave.
    #[error("a priority is mapped to class {0}, which has no algorithm")]
    Unserved(TrafficClass),
}

impl ScheduleConfig {
    /// Returns a schedule of these classes in order; frames cost their time on the wire, and
    /// weights are fixed.
    pub fn of(classes: impl IntoIterator<Item = Algorithm>) -> ScheduleConfig {
        ScheduleConfig {
            classes: classes.into_iter().collect(),
            cost: FrameCost::WIRE,
            weights: Weights::Fixed,
        }
    }

    /// Returns the schedule of an ETS table with this frame cost; its algorithms must be strict
    /// priority and ETS ([`Ets::check`]).
    pub fn of_ets(ets: &Ets, cost: FrameCost) -> ScheduleConfig {
        let classes = ets.tsa.iter().zip(ets.percent).map(|(&tsa, percent)| match tsa {
            Tsa::ETS => Algorithm::Ets { percent },
            _ => Algorithm::Strict,
        });
        ScheduleConfig { cost, ..ScheduleConfig::of(classes) }
    }

    /// Checks that each class to which `prio_tc` maps a priority has an algorithm.
    ///
    /// # Errors
    /// The class without an algorithm of the lowest such priority.
    pub fn serves(&self, prio_tc: &[TrafficClass; PRIORITIES]) -> Result<(), ScheduleFault> {
        match prio_tc.iter().find(|class| class.index() >= self.classes.len()) {
            Some(&class) => Err(ScheduleFault::Unserved(class)),
            None => Ok(()),
        }
    }

    /// Checks the configuration.
    ///
    /// # Errors
    /// The first fault, in the order of [`ScheduleFault`].
    pub fn check(&self) -> Result<(), ScheduleFault> {
        if !(1..=PRIORITIES).contains(&self.classes.len()) {
            return Err(ScheduleFault::ClassCount(self.classes.len()));
        }
        let percent = |class: &Algorithm| match *class {
            Algorithm::Ets { percent } => Some(u32::from(percent)),
            _ => None,
        };
        let mut percents = self.classes.iter().filter_map(percent).peekable();
        if percents.peek().is_some() {
            let sum = percents.sum();
            if sum != 100 {
                return Err(ScheduleFault::EtsSum(sum));
            }
        }
        let numbered = || TrafficClass::ALL.into_iter().zip(&self.classes);
        let sharing = || numbered().filter(|(_, of)| **of != Algorithm::Strict);
        let kind = |of: &Algorithm| core::mem::discriminant(of);
        let first = sharing().next().map(|(_, of)| kind(of));
        if let Some((class, _)) = sharing().find(|(_, of)| Some(kind(of)) != first) {
            return Err(ScheduleFault::Mixed(class));
        }
        for (class, of) in sharing() {
            match *of {
                Algorithm::Drr { quantum_bytes: quantum }
                    if !(1..=QUANTUM_BYTES_MAX).contains(&quantum) =>
                {
                    return Err(ScheduleFault::Quantum(class));
                }
                Algorithm::Wfq { weight } if !(1..=WFQ_WEIGHT_MAX).contains(&weight) => {
                    return Err(ScheduleFault::Weight(class));
                }
                _ => {}
            }
        }
        if self.cost.cell_bytes == 0 {
            return Err(ScheduleFault::Cell);
        }
        let has_quanta = sharing().any(|(_, of)| !matches!(of, Algorithm::Wfq { .. }));
        match self.weights {
            Weights::Fixed => Ok(()),
            Weights::Awc { window, .. } | Weights::ByteFair { window, .. }
                if has_quanta && window > Span::ZERO =>
            {
                Ok(())
            }
            _ => Err(ScheduleFault::NothingToAdapt),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec;

    fn fault(classes: &[Algorithm]) -> Result<(), ScheduleFault> {
        ScheduleConfig::of(classes.iter().copied()).check()
    }

    #[test]
    fn each_fault_is_found_and_said() {
        use Algorithm::{Drr, Ets, Strict, Wfq};
        let ets = |percent| Ets { percent };
        for (classes, expected) in [
            (vec![], Err(ScheduleFault::ClassCount(0))),
            (vec![Strict; 9], Err(ScheduleFault::ClassCount(9))),
            (vec![Strict; 8], Ok(())),
            (vec![ets(50), ets(49), Strict], Err(ScheduleFault::EtsSum(99))),
            (vec![ets(255), ets(255)], Err(ScheduleFault::EtsSum(510))),
            (vec![ets(0), ets(0)], Err(ScheduleFault::EtsSum(0))),
            (vec![ets(0), Strict, ets(100)], Ok(())),
            (
                vec![ets(100), Strict, Wfq { weight: 1 }],
                Err(ScheduleFault::Mixed(TrafficClass::ALL[2])),
            ),
            (
                vec![Drr { quantum_bytes: 1 }, Drr { quantum_bytes: 0 }],
                Err(ScheduleFault::Quantum(TrafficClass::ALL[1])),
            ),
            (
                vec![Drr { quantum_bytes: QUANTUM_BYTES_MAX + 1 }],
                Err(ScheduleFault::Quantum(TrafficClass::ALL[0])),
            ),
            (vec![Wfq { weight: 0 }], Err(ScheduleFault::Weight(TrafficClass::ALL[0]))),
        ] {
            assert_eq!(fault(&classes), expected, "{classes:?}");
        }
        assert!(fault(&[Strict, ets(99)]).unwrap_err().to_string().contains("add up to 99"));
        let mut config = ScheduleConfig::of([Strict, Wfq { weight: 3 }]);
        config.weights = Weights::ByteFair { window: Span::from_millis(5), size_added_bytes: 0 };
        assert_eq!(config.check(), Err(ScheduleFault::NothingToAdapt));
        config.classes[1] = ets(100);
        assert_eq!(config.check(), Ok(()));
        config.weights = Weights::ByteFair { window: Span::ZERO, size_added_bytes: 0 };
        assert_eq!(config.check(), Err(ScheduleFault::NothingToAdapt));
        config.cost.cell_bytes = 0;
        assert_eq!(config.check(), Err(ScheduleFault::Cell));
    }

    #[test]
    fn a_frame_costs_its_bytes_and_overhead_in_whole_cells() {
        assert_eq!((FrameCost::FRAME.of(60), FrameCost::WIRE.of(60)), (60, 84));
        let cells = FrameCost { overhead_bytes: 20, cell_bytes: 40 };
        assert_eq!([60, 61, 68].map(|bytes| cells.of(bytes)), [80, 120, 120]);
        assert_eq!(FrameCost::FRAME.of(0), 1, "no frame is free");
        let worst = FrameCost { overhead_bytes: u16::MAX, cell_bytes: u16::MAX };
        assert!(worst.of(u32::MAX) < 1 << 25);
    }
}
