//! Every link or every switch fails, each by itself.

use super::bar::bar;
use axon_fabric::cycle::ingress_ports;
use axon_fabric::failure::{self, Failed, FailureProof};
use axon_fabric::model::Fabric;
use axon_fabric::planned::Planned;
use axon_prove::Verdict;
use serde::Serialize;
use std::fmt::Write;

/// Failures that are not proved and are named.
const SHOWN: usize = 10;

/// What fails, each by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Each {
    /// Every link between switches.
    Link,
    /// Every switch.
    Switch,
}

/// The failures of one kind.
pub struct Failures {
    each: Each,
    /// How many there are.
    count: usize,
    /// Failures that moved a route.
    moving: usize,
    /// Failures after which frames on old paths had to leave before some routes were given.
    draining: usize,
    /// Failures that left hosts without any way to others.
    cutting_off: usize,
    /// Those that are not proved: the name, and why.
    not_proved: Vec<(String, Why)>,
}

/// Why a failure is not proved.
pub enum Why {
    /// Buffers of these ingress ports may wait for each other while routes change; the first is
    /// there once more at the end.
    CycleDuring(Vec<String>),
    /// The same after the change.
    CycleAfter(Vec<String>),
    /// So many ordered pairs of hosts have no route, though there is a way.
    WithoutRoute(usize),
}

/// What becomes of the links, or of the switches, that fail each by itself.
#[derive(Serialize)]
pub(super) struct FailuresJson<'a> {
    /// What fails, each by itself: `link` or `switch`.
    each: &'static str,
    /// How many there are.
    count: usize,
    /// How many are proved.
    proved: usize,
    /// After how many routes moved.
    moving: usize,
    /// After how many some routes were given only when frames on old ones had left.
    draining: usize,
    /// How many left hosts without any way to others.
    cutting_off: usize,
    /// Those that are not proved, and why.
    not_proved: Vec<NotProvedJson<'a>>,
}

/// A failure that is not proved.
#[derive(Serialize)]
struct NotProvedJson<'a> {
    /// The two ports of the link, or the switch.
    failed: &'a str,
    /// Ingress ports of buffers that may wait for each other while routes change, the first once
    /// more at the end; null if none may.
    cycle_during: Option<&'a [String]>,
    /// The same when they have changed.
    cycle_after: Option<&'a [String]>,
    /// Ordered pairs of hosts that have no route in the end, though there is a way.
    without_route: usize,
}

impl Each {
    /// What `--fail` names so, if it does.
    pub fn named(text: &str) -> Option<Each> {
        [Each::Link, Each::Switch].into_iter().find(|each| text == format!("each-{}", each.name()))
    }

    const fn name(self) -> &'static str {
        match self {
            Each::Link => "link",
            Each::Switch => "switch",
        }
    }
}

impl Failures {
    /// Whether each of them is.
    pub fn are_proved(&self) -> bool {
        self.not_proved.is_empty()
    }

    /// The same in JSON.
    pub(super) fn json(&self) -> FailuresJson<'_> {
        let Failures { each, count, moving, draining, cutting_off, not_proved } = self;
        FailuresJson {
            each: each.name(),
            count: *count,
            proved: count - not_proved.len(),
            moving: *moving,
            draining: *draining,
            cutting_off: *cutting_off,
            not_proved: not_proved.iter().map(|(failed, why)| of(failed, why)).collect(),
        }
    }

    /// One line, and more for those that are not proved.
    ///
    /// # Errors
    /// That of the writer.
    pub(super) fn write(&self, out: &mut String) -> std::fmt::Result {
        let Failures { each, count, moving, draining, cutting_off, not_proved } = self;
        let proved = count - not_proved.len();
        let label = format!("each {}", each.name());
        write!(out, "{label:<15}{proved} of {count} failures proved; {moving} move routes")?;
        write!(out, ", {draining} wait until old frames have left")?;
        writeln!(out, ", {cutting_off} cut hosts off")?;
        for (name, why) in not_proved.iter().take(SHOWN) {
            let why = match why {
                Why::CycleDuring(ports) => {
                    format!("while routes change, {} may wait in a cycle", ports.join(" -> "))
                }
                Why::CycleAfter(ports) => {
                    format!("afterwards, {} may wait in a cycle", ports.join(" -> "))
                }
                Why::WithoutRoute(pairs) => format!("{pairs} pairs of hosts have no route"),
            };
            writeln!(out, "  NOT PROVED   {name}: {why}")?;
        }
        match not_proved.len().checked_sub(SHOWN) {
            Some(more) if more > 0 => writeln!(out, "  and {more} more"),
            _ => Ok(()),
        }
    }
}

fn of<'a>(failed: &'a str, why: &'a Why) -> NotProvedJson<'a> {
    let (mut cycle_during, mut cycle_after, mut without_route) = (None, None, 0);
    match why {
        Why::CycleDuring(ports) => cycle_during = Some(&ports[..]),
        Why::CycleAfter(ports) => cycle_after = Some(&ports[..]),
        Why::WithoutRoute(pairs) => without_route = *pairs,
    }
    NotProvedJson { failed, cycle_during, cycle_after, without_route }
}

/// Lets everything fail that is asked for.
pub(super) fn prove(
    planned: &Planned<'_>,
    pairs: &[(usize, usize)],
    each: &[Each],
) -> Vec<Failures> {
    each.iter().map(|&each| all(planned, pairs, each)).collect()
}

fn all(planned: &Planned<'_>, pairs: &[(usize, usize)], each: Each) -> Failures {
    let fabric = planned.fabric();
    let is_asked = |failed: &Failed| match each {
        Each::Link => matches!(failed, Failed::Link(_)),
        Each::Switch => matches!(failed, Failed::Switch(_)),
    };
    let failed: Vec<Failed> = Failed::each(fabric).filter(is_asked).collect();
    let count = failed.len();
    let (mut moving, mut draining, mut cutting_off) = (0, 0, 0);
    let mut not_proved = Vec::new();
    let bar = bar(count as u64, "failures", each.name());
    for failed in failed {
        let proof = failure::prove(planned, pairs, failed);
        moving += usize::from(proof.moved > 0);
        draining += usize::from(proof.drained.is_some_and(|routes| routes > 0));
        cutting_off += usize::from(proof.cut_off > 0);
        not_proved.extend(why(fabric, &proof).map(|why| (failed.name(fabric), why)));
        bar.inc(1);
    }
    bar.finish_and_clear();
    Failures { each, count, moving, draining, cutting_off, not_proved }
}

fn why(fabric: &Fabric, proof: &FailureProof) -> Option<Why> {
    match (&proof.during, &proof.after) {
        (Verdict::Cycle(cycle), _) => Some(Why::CycleDuring(ingress_ports(fabric, cycle))),
        (_, Verdict::Cycle(cycle)) => Some(Why::CycleAfter(ingress_ports(fabric, cycle))),
        _ if !proof.unreachable.is_empty() => Some(Why::WithoutRoute(proof.unreachable.len())),
        _ => None,
    }
}
