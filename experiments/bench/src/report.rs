//! Report of `axon bench`: figures, ratios to bridges, bounds, and noise on the machine.

use crate::noise::Calibration;
use crate::quantity::{Better, Figures, Quantity};
use crate::selection::{Part, Settings, Subject};
use crate::statistics::{median, range, spread};
use serde::Serialize;
use std::collections::BTreeMap;

/// Median loop time, in multiples of the best, above which the CPU was shared.
pub(crate) const SLOWDOWN_MAX: f64 = 1.1;
/// Spread of the bridges' figures, as a fraction of their median, above which the machine counts as
/// noisy.
pub(crate) const SPREAD_MAX: f64 = 0.3;
/// Figures of the bridges by which noise is judged.
const JUDGED: [Quantity; 3] = [Quantity::TcpOneStream, Quantity::PingMean, Quantity::PacketsPeak];
/// Fraction of its rate from which an egress counts as full: the remainder is taken by headers and
/// by streams that look for their share.
const FULL: f64 = 0.85;
/// Number of switches for which bounds apply.
const BOUND_SWITCHES: u32 = 3;

/// Figures from all rounds, by subject, number of switches (0 for figures without a number) and
/// quantity.
#[derive(Clone, Debug, Default)]
pub struct Samples(BTreeMap<(Subject, u32, Quantity), Vec<f64>>);

impl Samples {
    /// Adds the figures of one subject through a number of switches.
    pub(crate) fn add(&mut self, subject: Subject, switches: u32, figures: &Figures) {
        for &(quantity, figure) in figures {
            self.0.entry((subject, switches, quantity)).or_default().push(figure);
        }
    }

    /// Returns the figures from all rounds, or an empty slice if there are none.
    pub(crate) fn of(&self, subject: Subject, switches: u32, quantity: Quantity) -> &[f64] {
        self.0.get(&(subject, switches, quantity)).map_or(&[], Vec::as_slice)
    }

    /// Returns the median over all rounds.
    pub(crate) fn median(
        &self,
        subject: Subject,
        switches: u32,
        quantity: Quantity,
    ) -> Option<f64> {
        median(self.of(subject, switches, quantity))
    }

    /// Returns a median in multiples of the bridges' median.
    pub(crate) fn ratio(&self, subject: Subject, switches: u32, quantity: Quantity) -> Option<f64> {
        let bridges = self.median(Subject::Bridges, switches, quantity)?;
        (bridges > 0.0).then_some(self.median(subject, switches, quantity)? / bridges)
    }
}

/// Results of a run.
#[derive(Default)]
pub struct Found {
    /// Figures from all rounds.
    pub samples: Samples,
    /// Features that this machine lacks.
    pub skipped: Vec<Skipped>,
    /// Measurements that failed.
    pub failed: Vec<Failed>,
    /// Measurements of the noise.
    pub calibration: Calibration,
}

/// Output of `axon bench --json`.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Number of rounds that were measured.
    pub rounds: u32,
    /// Approximate duration of each measurement in seconds.
    pub seconds: u32,
    /// Medians of the other subjects in multiples of those of the bridges.
    pub ratios: Vec<Ratio>,
    /// Bounds on the data planes of Axon, through three switches.
    pub bounds: Vec<Bound>,
    /// Figures that were measured, in order.
    pub figures: Vec<Figure>,
    /// Noise of the machine.
    pub noise: Noise,
    /// Missing features of this machine, and the measurements skipped for them.
    pub skipped: Vec<Skipped>,
    /// Measurements that failed, with the reason.
    pub failed: Vec<Failed>,
    /// Description of this machine and this run.
    pub machine: MachineJson,
}

/// One figure of one subject, over all rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Subject that carried the frames.
    pub subject: Subject,
    /// Switches in the line; null for figures without a number of switches.
    pub switches: Option<u32>,
    /// Name of the measured figure.
    pub quantity: Quantity,
    /// Unit of the figure in words.
    pub unit: &'static str,
    /// Median of all rounds.
    pub median: f64,
    /// Minimum of all rounds.
    pub min: f64,
    /// Maximum of all rounds.
    pub max: f64,
    /// Figure of each round in order.
    pub samples: Vec<f64>,
}

/// Median in multiples of that of the bridges.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// Subject that carried the frames.
    pub subject: Subject,
    /// Switches in the line; null for figures without a number of switches.
    pub switches: Option<u32>,
    /// Name of the compared figure.
    pub quantity: Quantity,
    /// Median in multiples of the bridges' median.
    pub ratio: f64,
}

/// Bound on one data plane. It does not affect the exit status.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bound {
    /// Data plane of Axon.
    pub subject: Subject,
    /// Name of the bounded figure.
    pub quantity: Quantity,
    /// True if the bound is in multiples of the bridges' median.
    pub of_bridges: bool,
    /// Median, or ratio of medians.
    pub value: f64,
    /// Lower bound; null for none.
    pub least: Option<f64>,
    /// Upper bound; null for none.
    pub most: Option<f64>,
    /// True if the bound is held.
    pub held: bool,
}

/// Noise of the machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Noise {
    /// True if something else ran, so that the figures should not be quoted.
    pub noisy: bool,
    /// Reasons for the noise, one sentence each.
    pub reasons: Vec<String>,
    /// Median time of a loop on all CPUs before each measurement, in multiples of its best.
    pub slowdown: Option<f64>,
    /// Largest spread of the bridges' figures, as a fraction of their median; null with fewer than
    /// two rounds.
    pub bridges_spread: Option<f64>,
}

/// Skipped subject or measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// Name of the subject or of the measurement.
    pub what: String,
    /// Missing feature, in a sentence.
    pub reason: String,
}

/// Failed subject or measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failed {
    /// Subject whose measurement has failed.
    pub subject: Subject,
    /// Switches in the line.
    pub switches: u32,
    /// Failed measurement; null if the subject did not come up.
    pub part: Option<Part>,
    /// Error, in a sentence.
    pub why: String,
}

/// Description of this machine and this run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MachineJson {
    /// End of the run in UTC, by RFC 3339.
    pub date: String,
    /// Commit of the program.
    pub commit: String,
    /// CPU model in /proc/cpuinfo.
    pub cpu: String,
    /// CPUs that this process may use.
    pub cpus: usize,
    /// Release of the kernel.
    pub kernel: String,
    /// Duration of the run in seconds of wall time.
    pub wall_seconds: f64,
}

impl Report {
    /// Creates the report from the results of a run.
    pub fn new(settings: &Settings, found: Found, machine: MachineJson) -> Report {
        let Found { samples, skipped, failed, calibration } = found;
        let figures = samples.0.iter().filter_map(|(&(subject, switches, quantity), samples)| {
            let (min, max) = range(samples)?;
            Some(Figure {
                subject,
                switches: (switches > 0).then_some(switches),
                quantity,
                unit: quantity.unit(),
                median: median(samples)?,
                min,
                max,
                samples: samples.clone(),
            })
        });
        let ratios = samples.0.keys().filter_map(|&(subject, switches, quantity)| {
            let compared = subject != Subject::Bridges && quantity.is_compared();
            let ratio = compared.then(|| samples.ratio(subject, switches, quantity))??;
            let switches = (switches > 0).then_some(switches);
            Some(Ratio { subject, switches, quantity, ratio })
        });
        Report {
            rounds: settings.rounds,
            seconds: settings.seconds,
            ratios: ratios.collect(),
            bounds: bounds(&samples),
            figures: figures.collect(),
            noise: noise(&samples, &calibration),
            skipped,
            failed,
            machine,
        }
    }

    /// Returns whether all measurements succeeded and all data arrived unaltered.
    pub fn is_good(&self) -> bool {
        let broken = |figure: &&Figure| {
            let is_data =
                matches!(figure.quantity, Quantity::IntactTcpIpv6 | Quantity::IntactUdpGso);
            is_data && figure.subject.is_axon() && figure.min < 1.0
        };
        self.failed.is_empty() && !self.figures.iter().any(|figure| broken(&figure))
    }

    /// Returns the figure of a subject, if it was measured.
    pub(crate) fn figure(
        &self,
        subject: Subject,
        switches: u32,
        quantity: Quantity,
    ) -> Option<&Figure> {
        let switches = (switches > 0).then_some(switches);
        self.figures.iter().find(|figure| {
            figure.subject == subject && figure.switches == switches && figure.quantity == quantity
        })
    }
}

/// Bound: quantity, number of switches, data planes, whether it is in multiples of bridges, and
/// lower and upper bound.
type Row = (Quantity, u32, &'static [Subject], bool, (Option<f64>, Option<f64>));

/// Evaluates the bounds for the data planes that were measured.
fn bounds(samples: &Samples) -> Vec<Bound> {
    use Quantity as Q;
    let kernel: &'static [Subject] = &[Subject::Tc];
    let rated: &'static [Subject] = &[Subject::Full, Subject::Tc];
    let all: &'static [Subject] = &[Subject::Full, Subject::Tc, Subject::Xdp, Subject::Program];
    let least = |least| (Some(least), None);
    let (equal, intact) = ((Some(0.98), Some(1.02)), least(1.0));
    let table: [Row; 8] = [
        (Q::TcpOneStream, BOUND_SWITCHES, kernel, true, least(0.9)),
        (Q::TcpFourStreams, BOUND_SWITCHES, kernel, true, least(0.9)),
        (Q::PingMean, BOUND_SWITCHES, kernel, true, (None, Some(1.3))),
        (Q::OverloadDelivered, BOUND_SWITCHES, all, false, least(0.8)),
        (Q::IntactTcpIpv6, BOUND_SWITCHES, all, false, intact),
        (Q::IntactUdpGso, BOUND_SWITCHES, all, false, intact),
        (Q::SharesTwoHundredMbps, 0, rated, false, equal),
        (Q::SharesOneGbps, 0, rated, false, equal),
    ];
    let mut found = Vec::new();
    for (quantity, switches, subjects, of_bridges, (least, most)) in table {
        for &subject in subjects {
            let value = match of_bridges {
                true => samples.ratio(subject, switches, quantity),
                false => samples.median(subject, switches, quantity),
            };
            let Some(value) = value.filter(|_| is_full(samples, subject, quantity)) else {
                continue;
            };
            let held =
                least.is_none_or(|least| value >= least) && most.is_none_or(|most| value <= most);
            found.push(Bound { subject, quantity, of_bridges, value, least, most, held });
        }
    }
    found
}

/// Returns whether an egress was full where its shares are bounded. If it was not, there was
/// nothing to share.
fn is_full(samples: &Samples, subject: Subject, quantity: Quantity) -> bool {
    let (total, rate_mbps) = match quantity {
        Quantity::SharesTwoHundredMbps => (Quantity::TotalTwoHundredMbps, 200.0),
        Quantity::SharesOneGbps => (Quantity::TotalOneGbps, 1000.0),
        _ => return true,
    };
    samples.median(subject, 0, total).is_some_and(|total| total >= FULL * rate_mbps)
}

/// Judges the noise on the machine by the loops and by the bridges.
fn noise(samples: &Samples, calibration: &Calibration) -> Noise {
    let slowdown = calibration.slowdown();
    let bridges = samples.0.iter().filter(|((subject, _, quantity), _)| {
        *subject == Subject::Bridges && JUDGED.contains(quantity)
    });
    let spreads = bridges.filter_map(|((_, switches, quantity), samples)| {
        Some((spread(samples)?, *switches, *quantity))
    });
    let worst = spreads.max_by(|a, b| a.0.total_cmp(&b.0));
    let mut reasons = Vec::new();
    if let Some(slowdown) = slowdown.filter(|&slowdown| slowdown > SLOWDOWN_MAX) {
        reasons.push(format!(
            "a loop on all CPUs took {slowdown:.2} times its best (at most {SLOWDOWN_MAX})"
        ));
    }
    if let Some((spread, switches, quantity)) = worst.filter(|worst| worst.0 > SPREAD_MAX) {
        reasons.push(format!(
            "of bridges, {}, {switches} switches, lies apart by {:.0} % of its median (at most \
             {:.0} %)",
            quantity.label(),
            spread * 100.0,
            SPREAD_MAX * 100.0
        ));
    }
    let bridges_spread = worst.map(|worst| worst.0);
    Noise { noisy: !reasons.is_empty(), reasons, slowdown, bridges_spread }
}

impl Better {
    /// Returns the gain for a ratio to bridges, or `None` for a figure that is best near one.
    pub(crate) fn times(self, ratio: f64) -> Option<f64> {
        match self {
            Better::More => Some(ratio),
            Better::Less => (ratio > 0.0).then(|| 1.0 / ratio),
            Better::One => None,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn samples(of: &[(Subject, u32, Quantity, &[f64])]) -> Samples {
        let mut samples = Samples::default();
        for &(subject, switches, quantity, figures) in of {
            for &figure in figures {
                samples.add(subject, switches, &vec![(quantity, figure)]);
            }
        }
        samples
    }

    /// Returns a report on bridges, and on tc that is a little slower and shares evenly.
    pub(crate) fn sample() -> Report {
        let samples = samples(&[
            (Subject::Bridges, 3, Quantity::TcpOneStream, &[10.0, 11.0, 12.0]),
            (Subject::Tc, 3, Quantity::TcpOneStream, &[11.0, 10.0, 10.45]),
            (Subject::Bridges, 3, Quantity::PingMean, &[40.0]),
            (Subject::Tc, 3, Quantity::PingMean, &[60.0]),
            (Subject::Bridges, 0, Quantity::PacketsPerHop, &[500.0]),
            (Subject::Tc, 0, Quantity::PacketsPerHop, &[400.0]),
            (Subject::Full, 3, Quantity::OverloadDelivered, &[0.5]),
            (Subject::Tc, 0, Quantity::SharesTwoHundredMbps, &[1.01]),
            (Subject::Tc, 0, Quantity::TotalTwoHundredMbps, &[189.0]),
            (Subject::Full, 0, Quantity::SharesOneGbps, &[1.4]),
            (Subject::Full, 0, Quantity::TotalOneGbps, &[480.0]),
            (Subject::Full, 3, Quantity::IntactUdpGso, &[1.0]),
        ]);
        report_of(samples)
    }

    fn report_of(samples: Samples) -> Report {
        let settings = Settings::new(3, 1, &[1, 3, 5], &[]).unwrap();
        let skipped =
            vec![Skipped { what: "ovs".into(), reason: "ovs-vswitchd is missing".into() }];
        let found = Found { samples, skipped, ..Found::default() };
        let machine =
            MachineJson { date: "2026-11-22T12:00:00Z".into(), cpus: 2, ..MachineJson::default() };
        Report::new(&settings, found, machine)
    }

    #[test]
    fn ratios_are_those_of_medians_and_bounds_follow_from_them() {
        let report = sample();
        let ratio = |quantity| {
            report.ratios.iter().find(|one| one.quantity == quantity).map(|one| one.ratio)
        };
        assert_eq!(ratio(Quantity::TcpOneStream), Some(0.95));
        assert_eq!(ratio(Quantity::PacketsPerHop), Some(0.8));
        assert_eq!(ratio(Quantity::OverloadDelivered), None);
        let held = report.bounds.iter().map(|bound| (bound.subject, bound.quantity, bound.held));
        let held: Vec<(Subject, Quantity, bool)> = held.collect();
        let expected = [
            (Subject::Tc, Quantity::TcpOneStream, true),
            (Subject::Tc, Quantity::PingMean, false),
            (Subject::Full, Quantity::OverloadDelivered, false),
            (Subject::Full, Quantity::IntactUdpGso, true),
            (Subject::Tc, Quantity::SharesTwoHundredMbps, true),
        ];
        assert_eq!(held, expected);
        let figure = report.figure(Subject::Bridges, 3, Quantity::TcpOneStream).unwrap();
        assert_eq!((figure.min, figure.median, figure.max), (10.0, 11.0, 12.0));
    }

    #[test]
    fn programmable_switches_have_the_bounds_of_every_plane() {
        let report = report_of(samples(&[
            (Subject::Program, 3, Quantity::OverloadDelivered, &[0.9]),
            (Subject::Program, 3, Quantity::IntactUdpGso, &[0.99]),
        ]));
        let held = report.bounds.iter().map(|bound| (bound.subject, bound.quantity, bound.held));
        let held: Vec<(Subject, Quantity, bool)> = held.collect();
        let expected = [
            (Subject::Program, Quantity::OverloadDelivered, true),
            (Subject::Program, Quantity::IntactUdpGso, false),
        ];
        assert_eq!(held, expected);
    }

    #[test]
    fn bridges_that_vary_make_the_machine_noisy() {
        assert!(!sample().noise.noisy, "{:?}", sample().noise);
        let of = [(Subject::Bridges, 3, Quantity::TcpOneStream, &[8.0, 11.0, 12.0][..])];
        let noise = noise(&samples(&of), &Calibration::default());
        assert!(noise.noisy && noise.bridges_spread > Some(0.36), "{noise:?}");
        assert!(noise.reasons[0].contains("TCP, 1 stream, 3 switches, lies apart by 36 %"));
        // Any other subject may share unevenly.
        let of = [(Subject::Full, 3, Quantity::TcpOneStream, &[1.0, 11.0, 12.0][..])];
        assert!(!super::noise(&samples(&of), &Calibration::default()).noisy);
    }

    #[test]
    fn data_that_is_not_intact_and_what_failed_make_it_bad() {
        let mut report = sample();
        assert!(report.is_good());
        report.figures.iter_mut().for_each(|figure| {
            if figure.quantity == Quantity::IntactUdpGso {
                figure.min = 0.99;
            }
        });
        assert!(!report.is_good());
        let mut report = sample();
        let why = "it did not come up".into();
        report.failed.push(Failed { subject: Subject::Tc, switches: 3, part: None, why });
        assert!(!report.is_good());
    }

    #[test]
    fn less_time_is_better() {
        assert_eq!(Better::Less.times(0.5), Some(2.0));
        assert_eq!(Better::More.times(0.5), Some(0.5));
        assert_eq!(Better::One.times(1.0), None);
    }
}
