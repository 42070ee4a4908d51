//! What a probe measures, and how its records are read.
//!
//! Clocks of different switches cannot be compared, so only differences between stamps of one
//! switch are formed. The time inside a switch is egress minus ingress. The time of a link is
//! found on a way out and back: from the stamp with which the probe left the near switch to
//! that with which it came back there, less the time it was beyond the far switch's ingress.

use alloc::vec::Vec;
use axon_wire::probe::{ProbeOptions, ProbeRecord, ProbeUnit};
use axon_wire::{Bytes, Hops, PortNo, Span, Time};
use serde::{Deserialize, Serialize};

/// Probes that one plan may have.
pub const PROBES_PER_PLAN_MAX: u32 = 1000;
/// Plans, finished ones included, that a node remembers; a new one takes the place of the
/// oldest that is finished.
pub const PLANS_MAX: usize = 16;
/// The longest that a plan may take, from its first probe until its last one is back or lost: a
/// node works on few plans at a time, and none can be cancelled.
pub const PLAN_SPAN_MAX: Span = Span::from_secs(3600);

/// The shortest time from one probe of a plan to the next: fewer leave in one call of the node.
pub const PROBE_INTERVAL_MIN: Span = Span::from_micros(1);

/// Why a plan was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum ProbeRefusal {
    /// The route is not a circuit back to the control plane that sends the probe.
    #[error("the route must go out and end at the control plane of the switch that sends it")]
    NoCircuit,
    /// A hop that the fabric's hop width cannot name.
    #[error("a hop of the route does not fit the fabric's hop width")]
    Unrepresentable,
    /// Shorter than the probe's header and head, or than Ethernet.
    #[error("{bytes} bytes are too short for this probe; it needs {min} at least")]
    TooShort {
        /// What was asked for.
        bytes: usize,
        /// What it takes.
        min: usize,
    },
    /// With the records of all units it would be longer than the links take.
    #[error("{bytes} bytes are too long: with its records this probe may have {max} at most")]
    TooLong {
        /// What was asked for.
        bytes: usize,
        /// What there is room for.
        max: usize,
    },
    /// None, or more than [`PROBES_PER_PLAN_MAX`].
    #[error("{0} probes, where 1 to {PROBES_PER_PLAN_MAX} were expected")]
    Count(u32),
    /// Several probes would leave at once.
    #[error("an interval of {0}, where {PROBE_INTERVAL_MIN} to {PLAN_SPAN_MAX} was expected")]
    Interval(Span),
    /// With its interval and its timeout it would take longer than [`PLAN_SPAN_MAX`].
    #[error("the plan may take {0}; expected at most {PLAN_SPAN_MAX}")]
    TooSlow(Span),
    /// An ether probe needs two different host ports that have carrier.
    #[error("{0} is not a host port with carrier, or is named twice")]
    Port(PortNo),
    /// [`PLANS_MAX`] plans are not finished yet.
    #[error("{PLANS_MAX} plans are in flight already")]
    Busy,
}

/// One plan of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProbeId(pub u64);

/// Where probes go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlanKind {
    /// Along these hops, which end at the control plane that sends them.
    Circuit(Hops),
    /// Ether probes: out of one host port and in by another, through whatever Ethernet is
    /// outside.
    Ether {
        /// The host port that the probe leaves by, from 0.
        from: PortNo,
        /// The host port that the probe comes back by, from 0.
        to: PortNo,
    },
}

/// What is to be measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbePlan {
    /// The kind of probes, and where they go.
    pub kind: PlanKind,
    /// Length of each when it is made, header included, without FCS and records; 60 at least.
    pub bytes: usize,
    /// The number of probes to send.
    pub count: u32,
    /// From one to the next.
    #[serde(rename = "interval_ticks")]
    pub interval: Span,
    /// How long one may be out.
    #[serde(rename = "timeout_ticks")]
    pub timeout: Span,
    /// What the units on the way append.
    pub options: ProbeOptions,
}

impl ProbePlan {
    /// One probe of 60 bytes (64 with its FCS) with all options, a millisecond between
    /// probes, one second for each.
    pub const fn new(kind: PlanKind) -> ProbePlan {
        ProbePlan {
            kind,
            bytes: 60,
            count: 1,
            interval: Span::from_millis(1),
            timeout: Span::from_secs(1),
            options: ProbeOptions::ALL,
        }
    }

    /// The longest that it takes: all intervals, the timeout of the last probe, and that of the
    /// frame that the network outside learns from; saturates.
    pub fn span_max(&self) -> Span {
        self.interval * u64::from(self.count) + self.timeout * 2
    }

    /// Probes that leave by `out`, one port for each switch of a path but the last, and come
    /// back by `back`, the ports from the last switch to the first.
    pub fn out_and_back(out: &[PortNo], back: &[PortNo]) -> ProbePlan {
        let hops = out.iter().chain(back).copied().chain([PortNo::CONTROL]).collect();
        ProbePlan::new(PlanKind::Circuit(hops))
    }
}

/// What came of a plan so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeReport {
    /// The identity of the probe request.
    pub id: ProbeId,
    /// What was asked for.
    pub plan: ProbePlan,
    /// Probes that the origin sent.
    pub sent: u32,
    /// Probes that have not come back in time.
    pub lost: u32,
    /// Whether the network outside has carried the frame it was to learn from; true for a
    /// circuit.
    pub learned: bool,
    /// Those that came back, in that order.
    pub returns: Vec<ProbeReturn>,
}

impl ProbeReport {
    /// Whether every probe came back or is lost.
    pub fn is_done(&self) -> bool {
        self.lost as usize + self.returns.len() >= self.plan.count as usize
    }
}

/// A probe that came back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeReturn {
    /// Its number in the plan, from 0.
    pub number: u32,
    /// When its origin made it.
    #[serde(rename = "sent_at_ticks")]
    pub sent_at: Time,
    /// When its origin's control plane had it back.
    #[serde(rename = "back_at_ticks")]
    pub back_at: Time,
    /// What was appended on the way.
    pub records: Vec<ProbeRecord>,
}

/// A probe's way through one switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passage {
    /// The port it came in by.
    pub ingress: PortNo,
    /// The port it left by.
    pub egress: PortNo,
    /// From the ingress unit to the egress unit.
    pub residence: Span,
    /// Bytes that waited for the egress port when it left.
    pub queued: Bytes,
    /// When the ingress unit saw it, by that switch's clock.
    pub came_at: Time,
    /// When the egress unit saw it.
    pub left_at: Time,
}

/// The times of one probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeTimes {
    /// From the origin's egress unit to its ingress unit.
    pub total: Span,
    /// By this port of the origin it left.
    pub out: PortNo,
    /// By this port of the origin it came back.
    pub back: PortNo,
    /// The switches between, in order.
    pub passages: Vec<Passage>,
}

impl ProbeReturn {
    /// Its times; `None` unless every unit on the way has left its record.
    pub fn times(&self) -> Option<ProbeTimes> {
        let (first, rest) = self.records.split_first()?;
        let (last, inner) = rest.split_last()?;
        let (pairs, odd) = inner.as_chunks::<2>();
        let ends = (first.unit, last.unit) == (ProbeUnit::Egress, ProbeUnit::Ingress);
        if !ends || !odd.is_empty() {
            return None;
        }
        let passage = |[came, left]: &[ProbeRecord; 2]| {
            let units = (came.unit, left.unit) == (ProbeUnit::Ingress, ProbeUnit::Egress);
            units.then(|| Passage {
                ingress: came.port,
                egress: left.port,
                residence: left.time.since(came.time),
                queued: left.queued,
                came_at: came.time,
                left_at: left.time,
            })
        };
        Some(ProbeTimes {
            total: last.time.since(first.time),
            out: first.port,
            back: last.port,
            passages: pairs.iter().map(passage).collect::<Option<Vec<_>>>()?,
        })
    }
}

impl ProbeTimes {
    /// The time of each link of a path that was taken out and back, nearest first: both
    /// directions together. `None` if there is no middle: the number of passages is even.
    ///
    /// Passage `k` on the way out and passage `n - 1 - k` on the way back are the same
    /// switch, so from its first ingress stamp to its last egress stamp is time by one clock.
    /// What the near switch measures around it, less that, is the link between.
    pub fn round_trips(&self) -> Option<Vec<Span>> {
        let passages = &self.passages;
        if passages.len().is_multiple_of(2) {
            return None;
        }
        let half = passages.len().div_ceil(2);
        let mut outer = self.total;
        let mut links = Vec::with_capacity(half);
        for index in 0..half {
            let (near, far) = (&passages[index], &passages[passages.len() - 1 - index]);
            let inside = far.left_at.since(near.came_at);
            links.push(Span::from_ticks(outer.ticks().saturating_sub(inside.ticks())));
            outer = far.came_at.since(near.left_at);
        }
        Some(links)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// Records of a way out to the third switch and back, with three clocks that know nothing
    /// of each other.
    fn records() -> Vec<ProbeRecord> {
        let record = |unit, port, nanos| ProbeRecord {
            unit,
            port: PortNo(port),
            queued: Bytes(u64::from(port)),
            time: Time::from_nanos(nanos),
        };
        let (i, e) = (ProbeUnit::Ingress, ProbeUnit::Egress);
        vec![
            record(e, 1, 1000),
            record(i, 2, 70_100),
            record(e, 3, 70_150),
            record(i, 4, 500),
            record(e, 4, 520),
            record(i, 3, 70_190),
            record(e, 2, 70_200),
            record(i, 1, 1300),
        ]
    }

    fn returned(records: Vec<ProbeRecord>) -> ProbeReturn {
        ProbeReturn { number: 0, sent_at: Time::ZERO, back_at: Time::ZERO, records }
    }

    #[test]
    fn only_stamps_of_one_clock_are_compared() {
        let times = returned(records()).times().unwrap();
        let nanos = |span: Span| span.as_nanos();
        assert_eq!((nanos(times.total), times.out, times.back), (300, PortNo(1), PortNo(1)));
        let residence: Vec<u64> = times.passages.iter().map(|p| nanos(p.residence)).collect();
        assert_eq!(residence, [50, 20, 10]);
        assert_eq!(times.passages[1].queued, Bytes(4));
        // 300 out there, 100 of them beyond the second switch's ingress; 40, and 20 inside.
        let links: Vec<u64> = times.round_trips().unwrap().into_iter().map(nanos).collect();
        assert_eq!(links, [200, 20]);
    }

    #[test]
    fn a_missing_record_is_no_time() {
        for missing in 0..8 {
            let mut records = records();
            records.remove(missing);
            assert_eq!(returned(records).times(), None);
        }
        let mut swapped = records();
        swapped.swap(1, 2);
        assert_eq!(returned(swapped).times(), None);
        assert_eq!(returned(Vec::new()).times(), None);
        let mut cycle = records();
        cycle.drain(3..5);
        assert_eq!(returned(cycle).times().unwrap().round_trips(), None);
    }
}
