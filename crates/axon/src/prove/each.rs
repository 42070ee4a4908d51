//! Single failures of every link or every switch.

use super::bar::bar;
use axon_fabric::cycle::ingress_ports;
use axon_fabric::failure::{self, Failed, FailureProof};
use axon_fabric::model::Fabric;
use axon_fabric::planned::Planned;
use axon_prove::Verdict;
use serde::Serialize;
use std::fmt::Write;

/// Maximum number of unproved failures that are named.
const SHOWN: usize = 10;

/// Kind of single failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Each {
    /// Every link between switches.
    Link,
    /// Every switch.
    Switch,
}

/// Results of the failures of one kind.
pub struct Failures {
    each: Each,
    /// Number of failures that were examined.
    count: usize,
    /// Number of failures that moved a route.
    moving: usize,
    /// Number of failures after which frames on old paths had to leave before some routes were
    /// installed.
    draining: usize,
    /// Number of failures that left hosts without any path to others.
    cutting_off: usize,
    /// Failures that are not proved: the name, and the reason.
    not_proved: Vec<(String, Why)>,
}

/// Reason that a failure is not proved.
pub enum Why {
    /// Buffers of these ingress ports may wait for each other while routes change; the first is
    /// repeated at the end.
    CycleDuring(Vec<String>),
    /// Buffers of these ingress ports may wait for each other after the change; the first is
    /// repeated at the end.
    CycleAfter(Vec<String>),
    /// This many ordered pairs of hosts have no route, although a path exists.
    WithoutRoute(usize),
}

/// Results of the single failures of links, or of switches.
#[derive(Serialize)]
pub(super) struct FailuresJson<'a> {
    /// Kind of the failures: `link` or `switch`.
    each: &'static str,
    /// Number of failures that were examined.
    count: usize,
    /// Number of proved failures.
    proved: usize,
    /// Number of failures that moved a route.
    moving: usize,
    /// Number of failures after which some routes were installed only when frames on old ones had
    /// left.
    draining: usize,
    /// Number of failures that left hosts without any path to others.
    cutting_off: usize,
    /// Failures that are not proved, with the reason.
    not_proved: Vec<NotProvedJson<'a>>,
}

/// A failure that is not proved.
#[derive(Serialize)]
struct NotProvedJson<'a> {
    /// Two ports of the link, or the switch.
    failed: &'a str,
    /// Ingress ports of buffers that may wait for each other while routes change, the first
    /// repeated at the end; null if there is no cycle.
    cycle_during: Option<&'a [String]>,
    /// Ingress ports of buffers that may wait for each other after the change, the first repeated
    /// at the end; null if there is no cycle.
    cycle_after: Option<&'a [String]>,
    /// Ordered pairs of hosts that have no route in the end, although a path exists.
    without_route: usize,
}

impl Each {
    /// Parses the kind of failures in `--fail`; `None` if the text is a link.
    pub(crate) fn named(text: &str) -> Option<Each> {
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
    /// Returns whether all failures are proved.
    pub(crate) fn are_proved(&self) -> bool {
        self.not_proved.is_empty()
    }

    /// Returns the results for JSON.
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

    /// Writes one line, and more for failures that are not proved.
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

/// Proves all requested kinds of failures.
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
